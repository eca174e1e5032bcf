//! podman loads an image, and runs it.

use std::process::Command;

use sealift_desk::{as_root, has, out, skipped, told};

use super::desk::{Compression, Images};

/// Returns podman with a storage of its own in the desk.
fn podman(desk: &Images) -> Command {
    let mut command = desk.command_of("podman");
    command.args(["--root", &desk.path("storage").display().to_string()]);
    command.args(["--runroot", &desk.path("running").display().to_string()]);
    command.args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "none"]);
    command.args(["--runtime", "runc"]);
    // Podman 5 warns of machines such as this one.
    command.env("PODMAN_IGNORE_CGROUPSV1_WARNING", "1");
    command
}

/// Returns what a container of an image prints.
fn run(desk: &Images, image: &str) -> (Option<i32>, String) {
    let limits = ["--ulimit", "nofile=1000:1000", "--ulimit", "nproc=1000:1000"];
    told(podman(desk).args(["run", "--rm", "--pull", "never", "--network", "none"]).args(limits).arg(image))
}

#[test]
fn podman_loads_and_runs_the_image() {
    if !has(&["podman", "runc", "busybox"]) || as_root("runs podman", || ()).is_none() {
        return;
    }
    let desk = Images::new();
    let manifest = desk.layout("image", "v1", &["base.tar", "app-1.tar"], Compression::Gzip);
    let id = manifest["config"]["digest"].as_str().unwrap().trim_start_matches("sha256:");
    out(podman(&desk).args(["pull", "--quiet", "oci:image:v1"]));
    let before = run(&desk, id);
    out(podman(&desk).args(["rmi", "--force", id]));

    desk.pack("oci:image", "os.sealift", 1, "--recipes");
    desk.does("unpack os.sealift oci:out");
    desk.does("unpack os.sealift docker-archive:out.tar");
    let loaded = out(podman(&desk).args(["load", "--quiet", "--input", "out.tar"]));
    assert!(loaded.contains("localhost/os:v1"), "{loaded}");
    let found = out(podman(&desk).args(["image", "inspect", "--format", "{{.Id}}", "localhost/os:v1"]));
    assert_eq!(found.trim(), id);
    let pulled = out(podman(&desk).args(["pull", "--quiet", "oci:out:v1"]));
    assert_eq!(pulled.trim(), id);
    match before {
        (Some(0), said) => {
            assert_eq!(said, "hello from the base\n");
            assert_eq!(run(&desk, "localhost/os:v1"), (Some(0), said));
        }
        // The image as it was before does not run either.
        (_, why) => skipped(&format!("podman runs no container here: {}", why.trim())),
    }
    out(podman(&desk).args(["rmi", "--all", "--force"]));
}
