//! Kernels before 5.6, and sandboxes that refuse openat2(2): paths are opened name by name, and still no link is followed.

use std::fs;
use std::os::unix::fs::symlink;

use sealift_desk::told;

use crate::installed::Installed;

#[test]
fn without_openat2_no_link_is_followed() {
    for error in ["ENOSYS", "EPERM"] {
        let desk = Installed::new();
        desk.pack(1);
        desk.write("tree/etc/motd", "goodbye\n");
        desk.pack(2);
        let failing = ["-e", "trace=openat2", "-e", &format!("inject=openat2:error={error}")];
        let run = |line: &str| desk.strace(&failing, line).map(|mut strace| told(&mut strace));
        let Some((status, said)) = run("unpack 1.sealift target --allow-unsigned") else { return };
        assert_eq!(status, Some(0), "{error}: {said}");
        // Somebody puts a link in the place of a directory.
        fs::rename(desk.path("target/etc"), desk.path("elsewhere")).unwrap();
        symlink("../elsewhere", desk.path("target/etc")).unwrap();
        let (status, said) = run("unpack 2.sealift target --update --delete --allow-unsigned").expect("it ran before");
        assert_eq!(status, Some(0), "{error}: {said}");
        assert_eq!(desk.text("elsewhere/motd"), "hello\n", "{error}");
        desk.assert_same("target", "tree");
    }
}
