//! An import that was interrupted goes on with the objects that it has, and reads only what is missing.

use std::fs;

use sealift_desk::noise;

use super::store::Store;

/// A tree of files of all sizes, and its bundle.
fn packed() -> Store {
    let desk = Store::new();
    desk.nasty_tree("os");
    for number in 0..150 {
        fs::write(desk.path(&format!("os/etc/f{number:03}")), noise(number, 20_000)).unwrap();
        // These are stored within images, and the bundle has them beside others.
        fs::write(desk.path(&format!("os/etc/f{number:03}.tiny")), format!("the tiny file {number}")).unwrap();
    }
    desk.pack("os", "os.sealift", 1, &["--composefs", "--chunk-size", "64KiB"]);
    desk
}

/// Kills an import when it has this share of the bundle.
fn kill_amid(desk: &Store, percent: usize) {
    let bytes = desk.read("os.sealift");
    let line = "unpack - composefs:store --allow-unsigned";
    desk.kill_amid(line, &bytes[..bytes.len() * percent / 100], "store/sealift/tmp");
}

#[test]
fn a_killed_import_goes_on() {
    let desk = packed();
    let unpack = "unpack os.sealift composefs:store --allow-unsigned";
    let Some(fresh) = desk.bytes_read("os.sealift", &unpack.replace("composefs:store", "composefs:whole")) else {
        return;
    };
    kill_amid(&desk, 85);
    assert!(desk.objects().is_empty());
    desk.run(&["status", "composefs:store"]).good().has("incomplete: repeat the command");
    let dry = desk.json(&format!("{unpack} --json --dry-run"));
    assert!(dry["resumed_objects"].as_u64().unwrap() > 20, "{dry}");
    let read = desk.bytes_read("os.sealift", unpack).expect("there is strace");
    assert!(read * 10 < fresh * 6, "{read} bytes of {fresh}");
    assert_eq!(fs::read_dir(desk.path("store/sealift/tmp")).unwrap().count(), 0, "the stages are gone");
    let names = |store: &str| desk.shell_lines(&format!("cd {store} && find objects images | sort"));
    assert_eq!(names("store"), names("whole"));
    desk.audit(&[]).good();
    desk.mounted("os", |desk| desk.assert_same("os", "mnt"));
}

#[test]
fn after_a_bad_copy_a_good_one_is_read_only_where_it_is_needed() {
    let desk = packed();
    let mut bytes = desk.read("os.sealift");
    let place = bytes.len() * 85 / 100;
    bytes[place] ^= 1;
    desk.write("bad.sealift", bytes);
    let said = desk.unpack("bad.sealift", &["--jobs", "1"]);
    said.refused(1, "repeat the command with a good copy to resume, or discard it: sealift clean composefs:store");
    desk.unpack("os.sealift", &[]).good().has("reused ");
    desk.audit(&[]).good();
}

/// What is not whole is imported again.
#[test]
fn only_whole_objects_are_taken() {
    let desk = packed();
    kill_amid(&desk, 85);
    let left = desk.shell_lines("find store/sealift/tmp -type f -size +4k ! -name 'large-*'");
    assert!(left.len() > 10, "{left:?}");
    let file = |number: usize| fs::File::options().write(true).open(desk.path(&left[number])).unwrap();
    file(0).set_len(5000).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file(1), b"other", 7000).unwrap();
    fs::rename(desk.path(&left[2]), desk.path(&left[3])).unwrap();
    let within = desk.shell_lines("find store/sealift/tmp -name within");
    let file = fs::File::options().write(true).open(desk.path(&within[0])).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"\xff\x00nonsense", 100).unwrap();
    desk.unpack("os.sealift", &[]).good().has("reused ");
    desk.audit(&[]).good();
    desk.mounted("os", |desk| desk.assert_same("os", "mnt"));
}

#[test]
fn what_is_left_can_be_discarded() {
    let desk = packed();
    kill_amid(&desk, 85);
    desk.run(&["clean", "composefs:store"]).good().has("discarded an unfinished run");
    assert_eq!(fs::read_dir(desk.path("store/sealift/tmp")).unwrap().count(), 0);
    let done = desk.json("unpack os.sealift composefs:store --allow-unsigned --json");
    assert_eq!(done["resumed_objects"], 0);
}
