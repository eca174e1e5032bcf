//! Where images that are made again go.

use std::process::{Command, Stdio};

use sealift_desk::out;

use crate::desk::{Images, POLICY};

#[test]
fn an_image_is_made_again_in_every_kind_of_target() {
    let Some(images) = Images::new() else { return };
    let info = images.json("info 1.sealift --trust signers --state state --json");
    let recipes = &info["recipes"];
    assert_eq!((&recipes["objects"], &recipes["encoders"][0]["name"]), (&1.into(), &"zlib".into()), "{info}");
    assert_eq!(recipes["bytes"], images.len("1/os.squashfs"), "{info}");
    images.says("info 1.sealift --trust signers --state state", "makes 1 object of");
    images.does("unpack 1.sealift tree");
    images.has_image("tree/os.squashfs", 1);
    images.does("audit tree");
    images.does("unpack 1.sealift image:slot");
    images.has_image("slot", 1);
    images.does("audit image:slot");
    images.does("unpack 1.sealift tar:it.tar");
    let from_tar = images.shell("tar xOf it.tar ./os.squashfs || tar xOf it.tar os.squashfs").output().unwrap();
    assert!(from_tar.stdout == images.read("1/os.squashfs"));
    let read = images.command("cat 1.sealift os.squashfs --trust signers --state state").output().unwrap();
    assert!(read.stdout == images.read("1/os.squashfs"));
    images.does("verify --deep 1.sealift");
}

#[test]
fn a_pipe_brings_recipes_too() {
    let Some(images) = Images::new() else { return };
    for line in ["unpack - tree", "verify --deep -"] {
        let pipe = std::fs::File::open(images.path("1.sealift")).unwrap();
        let mut cat = Command::new("cat").stdin(pipe).stdout(Stdio::piped()).spawn().unwrap();
        let mut command = images.command(&format!("{line} {POLICY}"));
        let done = command.stdin(cat.stdout.take().unwrap()).output().unwrap();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        cat.wait().unwrap();
    }
    images.has_image("tree/os.squashfs", 1);
}

#[test]
fn a_file_in_the_tree_and_in_its_image_is_stored_once() {
    let Some(images) = Images::new() else { return };
    images
        .shell("mkdir both && cp -r tree-1 both/tree && cp 1/os.squashfs both/ && cp 1/os.squashfs both/copy")
        .status()
        .unwrap();
    images.good("pack both -o both.sealift --name os --bundle-version 1 --key release --recipes");
    images.good("pack tree-1 -o alone.sealift --name os --bundle-version 1 --key release --recipes");
    let (both, alone) = (images.len("both.sealift"), images.len("alone.sealift"));
    assert!(both < alone + alone / 8, "{both} bytes with the image, {alone} without");
    images.does("unpack both.sealift out");
    images.has_image("out/os.squashfs", 1);
    images.has_image("out/copy", 1);
    images.assert_same("both", "out");
}

#[test]
fn nothing_is_a_recipe_unless_it_is_asked_for() {
    let Some(images) = Images::new() else { return };
    images.good("pack 1 -o plain.sealift --name os --bundle-version 1 --key release");
    let info = images.json("info plain.sealift --trust signers --state state --json");
    assert!(info.get("recipes").is_none(), "{info}");
    // What is installed is the same.
    let digest =
        |name: &str| images.json(&format!("info {name} --trust signers --state state --json"))["identity"].clone();
    assert_eq!(digest("plain.sealift")["index_digest"], digest("1.sealift")["index_digest"]);
    images.does("unpack plain.sealift tree");
    images.has_image("tree/os.squashfs", 1);
}

#[test]
fn what_is_smaller_as_it_is_stays_as_it_is() {
    let Some(images) = Images::new() else { return };
    std::fs::remove_file(images.path("tree-1/usr/share/again")).unwrap();
    for compressor in ["gzip", "xz", "zstd"] {
        std::fs::create_dir(images.path(compressor)).unwrap();
        images.squash("tree-1", &format!("{compressor}/os.squashfs"), compressor);
        for level in ["1", "3", "19"] {
            for (bundle, options) in [("made.sealift", "--recipes"), ("plain.sealift", "")] {
                images.good(&format!("pack {compressor} -o {bundle} --name os --bundle-version 1 --key release --level {level} {options} --force"));
            }
            let (made, plain) = (images.len("made.sealift"), images.len("plain.sealift"));
            assert!(
                made <= plain + plain / 100 + 500,
                "{compressor} at level {level}: {made} bytes with recipes, {plain} without"
            );
        }
    }
}

#[test]
fn what_the_system_s_libzstd_makes_is_made_again_at_every_level() {
    let Some(images) = Images::new() else { return };
    // Beside its files, an image is smaller as a recipe at any level.
    std::fs::create_dir(images.path("zstd")).unwrap();
    std::fs::rename(images.path("tree-1"), images.path("zstd/tree")).unwrap();
    let image = images.path("zstd/os.squashfs");
    let mut encoded = Vec::new();
    for level in [1, 3, 5, 7, 9, 12, 15, 19, 22] {
        let mut squash = Command::new("mksquashfs");
        squash.arg(images.path("zstd/tree")).arg(&image).args([
            "-comp",
            "zstd",
            "-Xcompression-level",
            &level.to_string(),
        ]);
        out(squash.args(["-b", "1M", "-quiet", "-no-progress", "-noappend", "-all-root"]));
        images.good("pack zstd -o zstd.sealift --name os --bundle-version 1 --key release --recipes --force");
        let info = images.json("info zstd.sealift --trust signers --state state --json");
        let encoders = info["recipes"]["encoders"].as_array().cloned().unwrap_or_default();
        encoded.push((level, encoders.iter().filter_map(|encoder| encoder["bytes"].as_u64()).sum::<u64>()));
        std::fs::remove_file(&image).unwrap();
    }
    // A block that a level does not compress is none.
    let most = encoded.iter().map(|(_, bytes)| *bytes).max().unwrap_or_default();
    assert!(most > 1_000_000 && encoded.iter().all(|(_, bytes)| *bytes > most / 100 * 95), "{encoded:?}");
}
