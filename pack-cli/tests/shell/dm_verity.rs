//! Disk images in a bundle, and their dm-verity root hashes: those that `veritysetup` prints.

use std::fs;
use std::process::Command;

use sealift_desk::{Desk, noise, out, skipped};
use serde_json::Value;

/// Makes an image, which has the bytes of `os/hello` and some noise.
const IMAGES: [(&str, &str); 3] = [
    ("root.squashfs", "mksquashfs files tree/root.squashfs -noappend -quiet -no-progress"),
    ("root.erofs", "mkfs.erofs tree/root.erofs files"),
    ("root.ext4", "mkfs.ext4 -q -F -d files tree/root.ext4 4M"),
];

/// Runs a program, and returns what it printed.
fn tool(desk: &Desk, line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let program = words.next().unwrap();
    let Ok(done) = Command::new(program).args(words).current_dir(desk.path(".")).output() else {
        skipped(&format!("needs {program}"));
        return None;
    };
    assert!(done.status.success(), "{line}: {done:?}");
    Some(String::from_utf8(done.stdout).unwrap())
}

/// Returns a desk with files for images, two levels of hashes worth.
fn new_desk() -> Desk {
    let desk = Desk::with_key();
    desk.write("files/noise", noise(7, 1 << 20));
    desk.write("files/hello", "hello");
    desk.write("tree/README", "images\n");
    desk
}

/// Makes a hash tree with `veritysetup`, and returns the root hash that it prints.
fn format(desk: &Desk, data: &str, tree: &str, options: &str) -> Option<String> {
    let salt = if options.contains("--salt") { "" } else { " --salt=00112233445566778899aabbccddeeff" };
    let printed = tool(desk, &format!("veritysetup format tree/{data} tree/{tree}{salt}{options}"))?;
    let line = printed.lines().find_map(|line| line.strip_prefix("Root hash:"));
    Some(line.unwrap().trim().to_owned())
}

/// Appends a hash tree to an image.
fn append(desk: &Desk, image: &str, options: &str) -> Option<String> {
    let len = fs::metadata(desk.path(&format!("tree/{image}"))).unwrap().len();
    format(desk, image, image, &format!(" --hash-offset={len}{options}"))
}

/// Makes a squashfs image with a hash tree appended. Returns the root hash, and the offset of the tree.
fn squashfs(desk: &Desk) -> Option<(String, usize)> {
    tool(desk, IMAGES[0].1)?;
    let len = desk.read("tree/root.squashfs").len();
    Some((append(desk, "root.squashfs", "")?, len))
}

fn pack(desk: &Desk) {
    desk.good("pack tree -o os.sealift --name os --bundle-version 1 --key release --force");
}

/// Returns the images that a line of JSON lists.
fn images(desk: &Desk, line: &str) -> Vec<Value> {
    desk.json(&format!("{line} --trust signers --json"))["dm_verity"].as_array().unwrap().clone()
}

/// Checks that both verbs print the root hash of the only image.
fn assert_root_hash(desk: &Desk, path: &str, root_hash: &str, what: &str) {
    pack(desk);
    for (line, compared) in [("info --dm-verity os.sealift", "top-block"), ("verify --deep os.sealift", "every-block")]
    {
        let found = images(desk, line);
        let [image] = &found[..] else { panic!("{what}: {found:?}") };
        assert_eq!((&image["path"], &image["root_hash"]), (&path.into(), &root_hash.into()), "{what}: {line}");
        assert_eq!((&image["compared"], &image["fault"]), (&compared.into(), &Value::Null), "{what}: {line}");
    }
    desk.says("info --dm-verity os.sealift --trust signers", root_hash);
    let said = desk.says("verify --deep os.sealift --trust signers", root_hash);
    assert!(said.contains(&format!("{path}: every block matches its dm-verity hash tree")), "{said}");
}

#[test]
fn a_tree_behind_any_file_system_has_the_root_hash_of_veritysetup() {
    for (name, line) in IMAGES {
        let desk = new_desk();
        if tool(&desk, line).is_none() {
            continue;
        }
        let image = desk.read(&format!("tree/{name}"));
        pack(&desk);
        assert_eq!(images(&desk, "verify --deep os.sealift"), Vec::<Value>::new(), "{name} has no tree yet");
        for options in [
            "",
            " --hash=sha512",
            " --salt=-",
            " --data-block-size=1024 --hash-block-size=1024",
            " --data-block-size=512 --hash-block-size=512 --hash=sha512",
            " --data-block-size=512 --hash-block-size=4096",
            " --data-block-size=4096 --hash-block-size=512",
            " --format=0",
            " --data-blocks=1",
        ] {
            desk.write(&format!("tree/{name}"), &image);
            let Some(root_hash) = append(&desk, name, options) else { return };
            assert_root_hash(&desk, name, &root_hash, &format!("{name}{options}"));
        }
    }
}

#[test]
fn a_tree_beside_an_image_has_the_root_hash_of_veritysetup() {
    for (image, tree) in [
        ("root.raw", "root.verity"),
        ("root.img", "root.img.verity"),
        ("root.img", "root.hash"),
        ("root.squashfs-xz", "root.squashfs-xz.hash"),
        ("root", "root.verity"),
    ] {
        let desk = new_desk();
        if tool(&desk, IMAGES[0].1).is_none() {
            return;
        }
        fs::rename(desk.path("tree/root.squashfs"), desk.path(&format!("tree/{image}"))).unwrap();
        let Some(root_hash) = format(&desk, image, tree, "") else { return };
        assert_root_hash(&desk, image, &root_hash, tree);
        assert_eq!(images(&desk, "info --dm-verity os.sealift")[0]["tree_path"], tree);
        // systemd's file with the root hash is another witness.
        let stem = image.strip_suffix(".raw").or(image.strip_suffix(".img")).unwrap_or(image);
        desk.write(&format!("tree/{stem}.roothash"), format!("{}\n", root_hash.to_uppercase()));
        assert_root_hash(&desk, image, &root_hash, tree);
        desk.write(&format!("tree/{stem}.roothash"), root_hash.replace(&root_hash[..2], "00"));
        pack(&desk);
        let why = format!("{image}: {stem}.roothash names another root hash");
        desk.refused("verify --deep os.sealift --trust signers", 1, &why);
        desk.says("info --dm-verity os.sealift --trust signers", "roothash names another root hash");
    }
}

#[test]
fn a_block_that_differs_is_named_though_the_bundle_is_sound() {
    let desk = new_desk();
    let Some((root_hash, tree)) = squashfs(&desk) else { return };
    let image = desk.read("tree/root.squashfs");
    let blocks = tree / 4096;
    assert!(blocks > 2 * 128, "the tree has two levels");
    let flipped = |places: &[usize]| {
        let mut image = image.clone();
        places.iter().for_each(|at| image[*at] ^= 0x10);
        desk.write("tree/root.squashfs", &image);
        pack(&desk);
    };
    // The superblock is in a block of its own, before the top block and level 0.
    let (top, level) = (tree + 4096, tree + 8192);
    for (places, why) in [
        (vec![130 * 4096 + 17], "data block 130 at byte 532480 does not have the hash in the tree".to_owned()),
        (vec![4095, 200 * 4096, 201 * 4096], "data block 0 at byte 0 and 2 other blocks".to_owned()),
        (vec![level + 4096 + 5], format!("block 1 at byte {}, in level 0 of the hash tree, does not", level + 4096)),
        (vec![level], format!("block 0 at byte {level}, in level 0 of the hash tree, does not")),
        (vec![top + 32], format!("block 1 at byte {}, in level 0 of the hash tree, does not", level + 4096)),
    ] {
        flipped(&places);
        let said = desk.refused("verify --deep os.sealift --trust signers", 1, &why);
        assert!(said.contains("the bundle is as it was signed") && said.contains("dm-verity fails"), "{said}");
        let (status, said) = desk.run("verify --deep os.sealift --trust signers --json");
        assert!(status == Some(1) && said.contains(r#""kind":"differs""#) && said.contains(&why), "{said}");
        // The others agree: the bundle is sound, and veritysetup refuses the image.
        desk.good("verify os.sealift --trust signers");
        let line = format!("verify tree/root.squashfs tree/root.squashfs {root_hash} --hash-offset={tree}");
        let judged = Command::new("veritysetup").args(line.split(' ')).current_dir(desk.path(".")).output().unwrap();
        assert!(!judged.status.success(), "{places:?}");
    }
    // It is as severe as damage.
    desk.good("pack files -o other.sealift --name other --bundle-version 1");
    desk.refused("verify --deep other.sealift os.sealift --trust signers", 1, "a kernel will not read an image in it");
}

#[test]
fn a_hostile_superblock_is_a_note() {
    let desk = new_desk();
    let Some((_, tree)) = squashfs(&desk) else { return };
    let image = desk.read("tree/root.squashfs");
    for (at, bytes, why) in [
        (8, &[2][..], "its superblock has version 2; only version 1 is known"),
        (12, &[9], "its hash format 9 is unknown"),
        (32, b"whirlpool\0", "its hash algorithm whirlpool is not supported"),
        (64, &[0; 4], "its data blocks have 0 bytes"),
        (68, &[0xff; 4], "its hash blocks have 4294967295 bytes"),
        (72, &[0, 0, 0, 0, 0, 0, 0, 0x80], "its superblock states 9223372036854775808 data blocks"),
        (72, &[0; 8], "its superblock states 0 data blocks"),
        (80, &[0xff; 2], "its salt has 65535 bytes"),
    ] {
        let mut image = image.clone();
        image[tree + at..tree + at + bytes.len()].copy_from_slice(bytes);
        desk.write("tree/root.squashfs", &image);
        pack(&desk);
        desk.says("verify --deep os.sealift --trust signers", &format!("root.squashfs: dm-verity not checked: {why}"));
        desk.says("info --dm-verity os.sealift", &format!("unknown: {why}"));
        let found = images(&desk, "verify --deep os.sealift");
        assert!(found[0]["fault"].as_str().unwrap().contains(why) && found[0]["root_hash"].is_null(), "{found:?}");
    }
    desk.write("tree/root.squashfs", &image[..image.len() - 4096]);
    pack(&desk);
    let said = desk.good("verify --deep os.sealift --trust signers");
    assert!(said.contains(&format!("its hash tree ends after {} bytes of its file", image.len())), "{said}");
}

#[test]
fn what_is_read_only_once_or_needs_a_base_is_not_compared() {
    let desk = new_desk();
    let Some((root_hash, _)) = squashfs(&desk) else { return };
    pack(&desk);
    let (status, said) =
        sealift_desk::told(&mut desk.shell("cat os.sealift | sealift verify --deep - --trust signers"));
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("warning: disk images are not compared"), "{said}");
    let (status, said) = sealift_desk::told(&mut desk.shell("cat os.sealift | sealift info --dm-verity -"));
    assert!(status == Some(2) && said.contains("is a pipe"), "{said}");
    // One that a base has, and one that is encoded over a base.
    for change in [b"images 2\n".to_vec(), noise(9, 9000)] {
        desk.write("tree/README", change);
        desk.good("pack tree -o delta.sealift --name os --bundle-version 2 --key release --base os.sealift --trust signers --force");
        desk.says("info --dm-verity delta.sealift", "known only with the base");
        assert_eq!(images(&desk, "verify --deep delta.sealift --base os.sealift")[0]["root_hash"], root_hash[..]);
        desk.says("verify --deep delta.sealift --base os.sealift --trust signers", &root_hash);
    }
    desk.write("files/hello", "hello again");
    let Some((root_hash, _)) = squashfs(&desk) else { return };
    desk.good("pack tree -o delta.sealift --name os --bundle-version 3 --key release --base os.sealift --trust signers --force");
    desk.says("verify --deep delta.sealift --base os.sealift --trust signers", &root_hash);
}

#[test]
fn a_bundle_of_one_file_is_an_image_whatever_its_name() {
    let desk = new_desk();
    let Some((root_hash, _)) = squashfs(&desk) else { return };
    fs::rename(desk.path("tree/root.squashfs"), desk.path("tree/system")).unwrap();
    pack(&desk);
    desk.says("info --dm-verity os.sealift", "\n  none\n".trim());
    fs::remove_file(desk.path("tree/README")).unwrap();
    assert_root_hash(&desk, "system", &root_hash, "the only file");
    // A bundle that nobody trusts is shown with its mark.
    let said = desk.says("info --dm-verity os.sealift", &root_hash);
    assert!(said.contains("os.sealift: UNTRUSTED"), "{said}");
    // What is read is checked.
    let bytes = desk.read("os.sealift");
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    desk.write("damaged.sealift", &damaged);
    desk.good("info damaged.sealift");
    let said = desk.refused("info --dm-verity damaged.sealift", 1, "the bytes do not match their digest");
    assert!(said.contains("Unpacking takes") && !said.contains(&root_hash), "{said}");
}

#[test]
fn of_many_files_with_such_names_some_are_looked_at() {
    let desk = new_desk();
    for number in 0..66 {
        desk.write(&format!("tree/{number}.img"), noise(number, 8192));
    }
    desk.write("tree/same.img", noise(1, 8192));
    desk.write("tree/small.img", noise(1, 8191));
    pack(&desk);
    let said = desk.good("info --dm-verity os.sealift");
    assert!(said.contains("does not look at 2 more files with the name of a disk image"), "{said}");
}

/// A disk image as systemd makes it: the partitions of data and tree have the halves of the root hash as their UUIDs.
#[test]
fn partitions_of_a_disk_image() {
    let desk = new_desk();
    if tool(&desk, IMAGES[1].1).is_none() {
        return;
    }
    let Some(root_hash) = format(&desk, "root.erofs", "tree.bin", "") else { return };
    let (data, tree) = (desk.read("tree/root.erofs"), desk.read("tree/tree.bin"));
    for name in ["root.erofs", "tree.bin"] {
        fs::remove_file(desk.path(&format!("tree/{name}"))).unwrap();
    }
    let uuid =
        |half: &str| format!("{}-{}-{}-{}-{}", &half[..8], &half[8..12], &half[12..16], &half[16..20], &half[20..]);
    let (first, second) = root_hash.split_at(32);
    let (data_at, tree_at) = (2 << 20, 4 << 20);
    let table = |second: &str| {
        format!(
            "label: gpt\nstart=2048, size=16, name=esp\nstart=4096, size={}, name=root, uuid={}, type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709\n\
             start=8192, size={}, name=root-verity, uuid={}, type=2C7357ED-EBD2-46D9-AEC1-23D437EC2BF5\n",
            data.len().div_ceil(512),
            uuid(first),
            tree.len().div_ceil(512),
            uuid(second)
        )
    };
    let make = |second: &str, spoilt: bool| {
        let mut disk = vec![0; 8 << 20];
        disk[data_at..data_at + data.len()].copy_from_slice(&data);
        disk[tree_at..tree_at + tree.len()].copy_from_slice(&tree);
        disk[data_at + 5000] ^= u8::from(spoilt);
        desk.write("tree/os.raw", disk);
        desk.write("table", table(second));
        out(desk.command_of("sh").args(["-c", "sfdisk -q tree/os.raw < table"]));
        pack(&desk);
    };
    make(second, false);
    assert_root_hash_of_partition(&desk, &root_hash);
    make(second, true);
    let (status, said) = desk.run("verify --deep os.sealift --trust signers");
    assert!(status == Some(1) && said.contains("os.raw, partition 2: dm-verity fails"), "{status:?}: {said}");
    // Partitions that belong to other root hashes are none of an image with dm-verity.
    make(&second.replace('0', "1"), false);
    assert_eq!(images(&desk, "info --dm-verity os.sealift").len(), usize::from(!second.contains('0')));
}

fn assert_root_hash_of_partition(desk: &Desk, root_hash: &str) {
    for (line, compared) in [("info --dm-verity os.sealift", "top-block"), ("verify --deep os.sealift", "every-block")]
    {
        let found = images(desk, line);
        let [image] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&image["root_hash"], &image["compared"]), (&root_hash.into(), &compared.into()), "{line}");
        assert_eq!((image["partition"].as_u64(), image["tree_partition"].as_u64()), (Some(2), Some(3)), "{line}");
        assert_eq!((image["tree_offset"].as_u64(), &image["fault"]), (Some(4 << 20), &Value::Null), "{line}");
    }
    let said = desk.says("info --dm-verity os.sealift --trust signers", root_hash);
    assert!(said.contains("in partition 3 of the same file"), "{said}");
    let said = desk.says("verify --deep os.sealift --trust signers", root_hash);
    assert!(said.contains("os.raw, partition 2: every block matches"), "{said}");
}
