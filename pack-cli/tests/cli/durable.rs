//! Files get their names only once their content is on the disk: after a power failure, a name never leads to a part of a file.

use sealift_desk::{Desk, out};

/// Runs the line, and checks that the file of this ending is synced before it is renamed to `name`.
fn syncs_first(desk: &Desk, line: &str, ending: &str, name: &str) {
    let calls = ["-y", "-e", "trace=fsync,rename,renameat,renameat2", "-o"];
    let log = desk.path("calls");
    let Some(mut strace) = desk.strace(&[&calls[..], &[log.to_str().expect("it is text")]].concat(), line) else {
        return;
    };
    out(&mut strace);
    let calls = desk.text("calls");
    let at = |is_it: &dyn Fn(&str) -> bool| calls.lines().position(is_it);
    let synced = at(&|call| call.contains("fsync(") && call.contains(&format!("{ending}>")));
    let renamed = at(&|call| call.contains("rename") && call.contains(&format!("{name}\"")));
    assert!(synced.is_some() && synced < renamed, "{line}: {synced:?}, {renamed:?}\n{calls}");
}

#[test]
fn a_file_is_synced_before_it_gets_its_name() {
    let desk = Desk::with_key();
    desk.write("tree/file", "content");
    let pack = "pack tree -o b.sealift --name os --bundle-version 1";
    syncs_first(&desk, pack, ".sealift-partial", "b.sealift");
    syncs_first(
        &desk,
        "sign b.sealift --key release --name os --bundle-version 1",
        ".sealift-sign-partial",
        "b.sealift",
    );
    syncs_first(&desk, "unpack b.sealift tar:out.tar --trust signers", ".sealift-partial", "out.tar");
    desk.write("sealift/allowed_signers", "");
    let key = desk.path("release.pub");
    let add = format!("trust add os {} --trust sealift/allowed_signers", key.display());
    syncs_first(&desk, &add, ".new", "allowed_signers");
}
