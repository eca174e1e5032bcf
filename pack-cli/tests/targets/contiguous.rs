//! Where ext4 stores the files that are read first, as the kernel reports (FIEMAP, by filefrag), also after updates.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{XattrFlags, getxattr, setxattr};
use sealift_desk::{Mounted, as_root, is_root, noise, out, said, skipped};
use serde_json::Value;

use crate::installed::Installed;

const FILES: u64 = 1500;
const UPDATES: u64 = 10;
/// Files that are closer than this are in one place: a disk reads ahead as far.
const NEAR: u64 = 128 << 10;

/// The maximum number of places of the hot set: ext4 reserves 2 MiB for each processor, from which small files take their blocks.
const PLACES: usize = 6;

/// A file system in an image, unmounted on drop.
struct Disk {
    image: PathBuf,
    point: PathBuf,
}

impl Disk {
    fn ext4(desk: &Installed, block_len: &str) -> Self {
        Self::made_by(desk, Command::new("mkfs.ext4").args(["-q", "-m", "0", "-b", block_len]))
    }

    /// Creates one that belongs to the user.
    fn of_user(desk: &Installed) -> Self {
        desk.make_home();
        let disk = Self::ext4(desk, "4096");
        let user = fs::metadata(desk.path("home")).unwrap().uid();
        chown(&disk.point, Some(user), Some(user)).unwrap();
        disk
    }

    /// Creates the file system that a program makes.
    fn made_by(desk: &Installed, mkfs: &mut Command) -> Self {
        let disk = Self { image: desk.path("image"), point: desk.path("disk") };
        fs::File::create_new(&disk.image).unwrap().set_len(512 << 20).unwrap();
        fs::create_dir(&disk.point).unwrap();
        out(mkfs.arg(&disk.image));
        disk.mount();
        disk
    }

    fn mount(&self) {
        out(Command::new("mount").args(["-o", "loop"]).args([&self.image, &self.point]));
        // As a disk with a moving head, whatever the image is stored on.
        let device = out(Command::new("findmnt").args(["-no", "SOURCE"]).arg(&self.point));
        let name = Path::new(device.trim()).file_name().unwrap();
        fs::write(Path::new("/sys/block").join(name).join("queue/rotational"), "1").unwrap();
    }

    fn unmount(&self) {
        out(Command::new("umount").arg(&self.point));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.point).status();
    }
}

/// Runs a line as the user, which must succeed, and returns its JSON, if it prints that.
fn as_user(desk: &Installed, line: &str) -> Value {
    let done = desk.run_as_user(line);
    assert!(done.status.success(), "{line}: {}", said(&done));
    serde_json::from_slice(&done.stdout).unwrap_or_default()
}

fn name(file: u64) -> String {
    format!("dir{:02}/sub{}/file{file:04}", file % 37, file % 3)
}

fn write(desk: &Installed, file: u64, version: u64) {
    write_up_to(desk, file, version, 45_000);
}

fn write_up_to(desk: &Installed, file: u64, version: u64, len_max: u64) {
    let path = desk.path("tree").join(name(file));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let len = 5_000 + file * 7919 % (len_max - 5_000);
    fs::write(path, noise(file << 8 | version, usize::try_from(len).unwrap())).unwrap();
}

/// Returns the files that change in a version: one in twenty.
fn changed(version: u64) -> Vec<u64> {
    let chance = |file: u64| blake3::hash(&[file.to_le_bytes(), version.to_le_bytes()].concat()).as_bytes()[0];
    (0..FILES).filter(|file| chance(*file) < 13).collect()
}

/// Returns the extents of files, in the order of the files.
fn extents_in_turn(root: &Path, files: &[u64]) -> Vec<Range<u64>> {
    let paths = files.iter().map(|file| root.join(name(*file)));
    let said = out(Command::new("filefrag").args(["-v", "-b1"]).args(paths));
    // "   0:        0..    8191:     165888..    174079:   8192:             last,eof"
    let extent = |line: &str| {
        let mut fields = line.split(':');
        fields.next()?.trim().parse::<u64>().ok()?;
        let (first, last) = fields.nth(1)?.split_once("..")?;
        Some(first.trim().parse::<u64>().ok()?..last.trim().parse::<u64>().ok()? + 1)
    };
    let extents: Vec<_> = said.lines().filter_map(extent).collect();
    assert!(extents.len() >= files.len(), "{said}");
    extents
}

/// Returns the extents in the order of their places on the disk.
fn extents(root: &Path, files: &[u64]) -> Vec<Range<u64>> {
    let mut extents = extents_in_turn(root, files);
    extents.sort_by_key(|extent| extent.start);
    extents
}

/// Returns the number of places on the disk that are apart, the distance from the first byte to the last, and the number of bytes.
fn places(root: &Path, files: &[u64]) -> (usize, u64, u64) {
    let extents = extents(root, files);
    let apart = extents.windows(2).filter(|pair| pair[1].start > pair[0].end + NEAR).count();
    let bytes = extents.iter().map(|extent| extent.end - extent.start).sum();
    (apart + 1, extents.last().unwrap().end - extents[0].start, bytes)
}

/// Returns how often a disk seeks when it reads these files in turn.
fn seeks(root: &Path, files: &[u64]) -> usize {
    let extents = extents_in_turn(root, files);
    extents.windows(2).filter(|pair| pair[1].start.abs_diff(pair[0].end) > NEAR).count()
}

#[test]
fn what_is_read_first_lies_together_and_still_does_after_updates() {
    let Some(desk) = as_root("an ext4", Installed::new) else { return };
    (0..FILES).for_each(|file| write(&desk, file, 1));
    let mut hot: Vec<u64> = (0..FILES).step_by(10).collect();
    hot.sort_by_key(|file| blake3::hash(&file.to_le_bytes()).to_hex());
    desk.write("profile", hot.iter().map(|file| name(*file)).collect::<Vec<_>>().join("\n"));
    let disk = Disk::ext4(&desk, "4096");
    let target = disk.point.join("target");
    install(&desk);
    let (apart, span, bytes) = places(&target, &hot);
    assert!(apart <= PLACES && span < bytes * 2, "{apart} places, {bytes} bytes over {span}");
    // The same number of files from the whole tree is spread over the whole target.
    let (_, far, _) = places(&target, &(1..FILES).step_by(10).collect::<Vec<_>>());
    assert!(far > span * 3, "{far} {span}");

    let mut rewritten = 0;
    for version in 2..=UPDATES + 1 {
        let (base, number) = (format!("{}.sealift", version - 1), version.to_string());
        changed(version).into_iter().for_each(|file| write(&desk, file, version));
        desk.good(&format!("{PACK} {number} -o delta.sealift --base {base}"));
        desk.good(&format!("{PACK} {number} -o {number}.sealift --order-from {base}"));
        let said = desk.json("unpack delta.sealift disk/target --update --allow-unsigned --json");
        let moved = said["gathered_files"].as_u64().unwrap();
        rewritten += u64::from(moved > 0);
        // Unchanged files of the hot set are moved to the new ones, and no others.
        let new = hot.iter().filter(|file| changed(version).contains(file)).count();
        assert!(new > 3 && (moved == 0 || moved == u64::try_from(hot.len() - new).unwrap()), "{said}");
        assert_eq!((&said["files"], &said["copied_files"]), (&changed(version).len().into(), &0.into()), "{said}");
        let (apart, span, bytes) = places(&target, &hot);
        assert!(apart <= PLACES, "{apart} places, {bytes} bytes over {span}");
    }
    assert!(rewritten >= UPDATES / 3, "{rewritten}");
    // The hot set has no new files: its places stay as they are.
    let last = UPDATES + 2;
    write(&desk, 1, last);
    desk.good(&format!("{PACK} {last} -o delta.sealift --base {}.sealift", last - 1));
    let said = desk.good("unpack delta.sealift disk/target --update --allow-unsigned --json");
    assert!(said.contains("\"gathered_files\":0"));
    desk.good("unpack delta.sealift disk/target --update --allow-unsigned --rehash");
}

#[test]
fn what_is_written_again_stays_what_it_was() {
    let Some(desk) = as_root("an ext4", Installed::new) else { return };
    (0..100).for_each(|file| write(&desk, file, 1));
    // A file with two names, and one that gets another name beside the target.
    fs::hard_link(desk.path("tree").join(name(2)), desk.path("tree/second")).unwrap();
    desk.write("profile", (0..30).map(name).collect::<Vec<_>>().join("\n"));
    let disk = Disk::ext4(&desk, "4096");
    let target = disk.point.join("target");
    install(&desk);
    fs::hard_link(target.join(name(4)), disk.point.join("elsewhere")).unwrap();
    // A byte is damaged on the disk: only reading reveals that, and the delta does not bring the content.
    let rotten = extents(&target, &[6])[0].start;
    disk.unmount();
    let image = fs::File::options().read(true).write(true).open(&disk.image).unwrap();
    let mut byte = [0];
    image.read_exact_at(&mut byte, rotten).unwrap();
    image.write_all_at(&[byte[0] ^ 1], rotten).unwrap();
    disk.mount();
    out(Command::new("chattr").arg("+i").arg(target.join(name(8))));
    let inodes: Vec<u64> = (0..30).map(|file| fs::metadata(target.join(name(file))).unwrap().ino()).collect();

    [3, 7, 11, 15, 19, 23].into_iter().for_each(|file| write(&desk, file, 2));
    fs::set_permissions(desk.path("tree").join(name(5)), fs::Permissions::from_mode(0o750)).unwrap();
    desk.good(&format!("{PACK} 2 -o delta.sealift --base 1.sealift"));
    desk.good(&format!("{PACK} 2 -o 2.sealift --order-from 1.sealift"));
    let update = "unpack delta.sealift disk/target --update --allow-unsigned --json";
    let said = desk.json(update);
    // All except the six new ones, the one with a name elsewhere, the one with new metadata, the damaged and the immutable one.
    assert_eq!(said["gathered_files"], 20, "{said}");
    assert_eq!((&said["files"], &said["copied_files"]), (&7.into(), &1.into()), "{said}");
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    let moved: Vec<u64> =
        (0..30).filter(|file| inode(&target.join(name(*file))) != inodes[usize::try_from(*file).unwrap()]).collect();
    assert_eq!(moved, (0..30).filter(|file| ![4, 6, 8].contains(file)).collect::<Vec<_>>());
    assert_eq!(inode(&target.join("second")), inode(&target.join(name(2))));
    let audit = "audit disk/target 2.sealift --allow-unsigned --json";
    let found = desk.command(audit).output().unwrap();
    assert_eq!(found.status.code(), Some(1));
    let found = String::from_utf8(found.stdout).unwrap();
    assert!(found.contains(&name(6)) && !found.contains(&name(5)), "{found}");
    out(Command::new("chattr").arg("-i").arg(target.join(name(8))));
    // It can still be repaired.
    desk.good("unpack 2.sealift disk/target --update --rehash --allow-unsigned");
    desk.good(audit);
}

const PACK: &str = "pack tree --name os --allow-unsigned --force --bundle-version";

/// Packs the first version by the profile, and unpacks it.
fn install(desk: &Installed) {
    desk.good(&format!("{PACK} 1 -o 1.sealift --order profile"));
    desk.good("unpack 1.sealift disk/target --allow-unsigned");
}

/// Packs the delta to a version as `delta.sealift`, and its full bundle.
fn pack_next(desk: &Installed, version: u64) {
    pack_next_with(desk, version, "");
}

fn pack_next_with(desk: &Installed, version: u64, options: &str) {
    let (base, number) = (format!("{}.sealift", version - 1), version.to_string());
    let full = format!("{number}.sealift");
    desk.good(&format!("{PACK} {number} -o delta.sealift --base {base} {options}"));
    desk.good(&format!("{PACK} {number} -o {full} --order-from {base} {options}"));
}

/// ext4 allocates small files and others in separate places, and which files are small depends on the block size.
#[test]
fn what_is_read_first_lies_in_its_order_whatever_its_length() {
    if !is_root() {
        return skipped("needs root: an ext4");
    }
    for (block_len, len_max) in [("1024", 45_000), ("4096", 200_000)] {
        let desk = Installed::new();
        (0..400).for_each(|file| write_up_to(&desk, file, 1, len_max));
        let mut hot: Vec<u64> = (0..400).step_by(4).collect();
        hot.sort_by_key(|file| blake3::hash(&file.to_le_bytes()).to_hex());
        desk.write("profile", hot.iter().map(|file| name(*file)).collect::<Vec<_>>().join("\n"));
        let disk = Disk::ext4(&desk, block_len);
        let target = disk.point.join("target");
        install(&desk);
        let update = |version| {
            pack_next(&desk, version);
            let said = desk.json("unpack delta.sealift disk/target --update --allow-unsigned --json");
            said["gathered_files"].as_u64().unwrap()
        };
        let seeks = || seeks(&target, &hot);
        assert!(seeks() <= 2, "blocks of {block_len}, new: {} seeks", seeks());
        (0..10).for_each(|changed| write_up_to(&desk, hot[changed * 10], 2, len_max));
        assert_eq!(update(2), 90, "{block_len}");
        assert!(seeks() <= 2, "blocks of {block_len}: {} seeks", seeks());
        // One file elsewhere is not worth writing all of them again.
        for version in 3..5 {
            write_up_to(&desk, hot[usize::try_from(version).unwrap() * 20], version, len_max);
            assert_eq!(update(version), 0, "{block_len}");
        }
        desk.good("audit disk/target 4.sealift --allow-unsigned");
        disk.unmount();
        out(Command::new("e2fsck").arg("-fn").arg(&disk.image));
    }
}

/// Space for the hot set is reserved beforehand, but not for files with holes, and not for empty ones.
#[test]
fn sparse_and_empty_files_that_are_read_first_get_no_space() {
    let Some(desk) = as_root("an ext4", Installed::new) else { return };
    let (sparse, empty) = (5, 9);
    (0..100).for_each(|file| write_up_to(&desk, file, 1, 200_000));
    let file = fs::File::create(desk.path("tree").join(name(sparse))).unwrap();
    file.write_all_at(&noise(5, 9000), 0).unwrap();
    file.write_all_at(&noise(6, 9000), 1 << 20).unwrap();
    file.set_len(2 << 20).unwrap();
    fs::write(desk.path("tree").join(name(empty)), "").unwrap();
    let hot: Vec<u64> = (0..30).collect();
    desk.write("profile", hot.iter().map(|file| name(*file)).collect::<Vec<_>>().join("\n"));
    let disk = Disk::ext4(&desk, "4096");
    let check = |target: &str| {
        let root = disk.point.join(target);
        let [sparse_one, empty_one] = [sparse, empty].map(|file| fs::metadata(root.join(name(file))).unwrap());
        assert_eq!(sparse_one.len(), 2 << 20);
        assert!((1..=256).contains(&sparse_one.blocks()), "{target}: {} sectors", sparse_one.blocks());
        assert_eq!((empty_one.len(), empty_one.blocks()), (0, 0));
        let others: Vec<u64> = (0..30).filter(|file| ![sparse, empty].contains(file)).collect();
        assert!(seeks(&root, &others) <= 2, "{target}: {} seeks", seeks(&root, &others));
    };
    install(&desk);
    check("target");

    [3, 7, 11, 15, 19, 23].into_iter().for_each(|file| write_up_to(&desk, file, 2, 200_000));
    pack_next(&desk, 2);
    let said = desk.json("unpack delta.sealift disk/target --update --allow-unsigned --json");
    assert_eq!(said["gathered_files"], 30 - 6 - 2, "{said}");
    check("target");

    // A delta does not say which files of its base are sparse.
    desk.good("unpack delta.sealift disk/new --base 1.sealift --allow-unsigned");
    check("new");
    for target in ["disk/target", "disk/new"] {
        desk.good(&format!("audit {target} 2.sealift --allow-unsigned"));
    }
    disk.unmount();
    out(Command::new("e2fsck").arg("-fn").arg(&disk.image));
}

/// If free space is fragmented, the hot set is written again once, and then not before that would help.
#[test]
fn what_cannot_lie_together_is_not_written_again_with_each_update() {
    let Some(desk) = as_root("an ext4", Installed::new) else { return };
    (0..400).for_each(|file| write_up_to(&desk, file, 1, 200_000));
    let hot: Vec<u64> = (0..400).step_by(4).collect();
    desk.write("profile", hot.iter().map(|file| name(*file)).collect::<Vec<_>>().join("\n"));
    let disk = Disk::ext4(&desk, "4096");
    let filler = fs::File::create(disk.point.join("filler")).unwrap();
    let space = rustix::fs::statvfs(&disk.point).unwrap();
    let len = (space.f_bavail - 64) * space.f_frsize;
    rustix::fs::fallocate(&filler, rustix::fs::FallocateFlags::empty(), 0, len).unwrap();
    let hole = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    for at in (0..len - (64 << 10)).step_by(256 << 10) {
        rustix::fs::fallocate(&filler, hole, at, 64 << 10).unwrap();
    }
    install(&desk);
    let update = |version: u64| {
        for changed in (0..100).skip(usize::try_from(version).unwrap()).step_by(10) {
            write_up_to(&desk, hot[changed], version, 200_000);
        }
        pack_next(&desk, version);
        let said = desk.json("unpack delta.sealift disk/target --update --allow-unsigned --json");
        said["gathered_files"].as_u64().unwrap()
    };
    assert_eq!(update(2), 90);
    let left = seeks(&disk.point.join("target"), &hot);
    assert!(left > 100, "{left}");
    // Updates that do not write it again keep this knowledge.
    for version in 3..6 {
        assert_eq!(update(version), 0, "version {version}");
    }
    let text = fs::read_to_string(disk.point.join(".target.sealift-state/seeks")).unwrap();
    assert_eq!(text, format!("{left}\n"));
    // With all of the free space, it helps.
    drop(filler);
    fs::remove_file(disk.point.join("filler")).unwrap();
    fs::remove_file(disk.point.join(".target.sealift-state/seeks")).unwrap();
    disk.unmount();
    disk.mount();
    assert_eq!(update(6), 90);
    let after = seeks(&disk.point.join("target"), &hot);
    assert!(after < left / 4, "{after} of {left}");
}

/// Packs a tree of 100 files, of which some are read first.
fn pack_hot(desk: &Installed, hot: u64) {
    (0..100).for_each(|file| write_up_to(desk, file, 1, 200_000));
    desk.write("profile", (0..hot).map(name).collect::<Vec<_>>().join("\n"));
    desk.good(&format!("{PACK} 1 -o 1.sealift --order profile"));
}

/// Every block counts once, whether it was reserved or not.
#[test]
fn what_just_fits_still_does_where_space_is_reserved() {
    if !is_root() {
        return skipped("needs root: an ext4");
    }
    for hot in [10, 45, 55, 100] {
        let desk = Installed::new();
        pack_hot(&desk, hot);
        let disk = Disk::ext4(&desk, "4096");
        let unpack = "unpack 1.sealift disk/target --allow-unsigned";
        let filler = fs::File::create(disk.point.join("filler")).unwrap();
        let space = rustix::fs::statvfs(&disk.point).unwrap();
        let needed = fs::metadata(desk.path("1.sealift")).unwrap().len();
        let mut len = space.f_bavail * space.f_frsize - needed;
        rustix::fs::fallocate(&filler, rustix::fs::FallocateFlags::empty(), 0, len).unwrap();
        // The estimate does not include directories of the stage and of the record.
        let beside = 32 << 10;
        while !desk.command(&format!("{unpack} --dry-run")).output().unwrap().status.success() {
            len -= 16 << 10;
            filler.set_len(len).unwrap();
        }
        filler.set_len(len - beside).unwrap();
        desk.good(unpack);
        desk.good("audit disk/target 1.sealift --allow-unsigned");
    }
}

#[test]
fn what_is_damaged_leaves_nothing_of_the_space_reserved() {
    let Some(desk) = as_root("an ext4", Installed::new) else { return };
    pack_hot(&desk, 50);
    let disk = Disk::ext4(&desk, "4096");
    let free = || rustix::fs::statvfs(&disk.point).unwrap().f_bfree;
    rustix::fs::syncfs(fs::File::open(&disk.point).unwrap()).unwrap();
    let (before, len) = (free(), fs::metadata(desk.path("1.sealift")).unwrap().len());
    let bundle = fs::File::options().read(true).write(true).open(desk.path("1.sealift")).unwrap();
    // One byte in the hot set, and one in the last chunk.
    for at in [len / 3, len - 5000] {
        let mut byte = [0];
        bundle.read_exact_at(&mut byte, at).unwrap();
        bundle.write_all_at(&[byte[0] ^ 1], at).unwrap();
        desk.refused("unpack 1.sealift disk/target --allow-unsigned", 1, "");
        bundle.write_all_at(&byte, at).unwrap();
        assert_eq!(desk.names("disk"), ["lost+found"]);
        rustix::fs::syncfs(fs::File::open(&disk.point).unwrap()).unwrap();
        assert!(free() >= before - 4, "{} {before}", free());
    }
    desk.good("unpack 1.sealift disk/target --allow-unsigned");
}

/// Creates a target of 100 files, of which 30 are read first, and a delta in which six of those change. Returns the path of one that does not.
fn thirty_hot(desk: &Installed, unpack: impl Fn(&str)) -> PathBuf {
    thirty_hot_with(desk, "", unpack)
}

/// As [`thirty_hot`], packed with further options.
fn thirty_hot_with(desk: &Installed, options: &str, unpack: impl Fn(&str)) -> PathBuf {
    (0..100).for_each(|file| write(desk, file, 1));
    desk.write("profile", (0..30).map(name).collect::<Vec<_>>().join("\n"));
    desk.good(&format!("{PACK} 1 -o 1.sealift --order profile {options}"));
    unpack("1.sealift");
    [3, 7, 11, 15, 19, 23].into_iter().for_each(|file| write(desk, file, 2));
    pack_next_with(desk, 2, options);
    PathBuf::from(name(4))
}

#[test]
fn a_mount_point_is_not_written_again() {
    let Some(desk) = as_root("an ext4 and mounts", Installed::new) else { return };
    let disk = Disk::ext4(&desk, "4096");
    let file = thirty_hot(&desk, |bundle| drop(desk.good(&format!("unpack {bundle} disk/target --allow-unsigned"))));
    let file = disk.point.join("target").join(file);
    let inode = || fs::metadata(&file).unwrap().ino();
    let before = inode();
    {
        let _bound = Mounted::on_itself(file.clone());
        let said = desk.json("unpack delta.sealift disk/target --update --allow-unsigned --json");
        assert_eq!(said["gathered_files"], 23, "{said}");
        assert_eq!(inode(), before);
    }
    assert_eq!(inode(), before);
    desk.good("audit disk/target 2.sealift --allow-unsigned");
}

/// An update that has begun to move its files succeeds even if unchanged files cannot be replaced, and nothing is lost that only those files have.
#[test]
fn what_cannot_be_replaced_is_not_written_again() {
    let Some(desk) = as_root("an ext4 and mounts", Installed::new) else { return };
    let disk = Disk::ext4(&desk, "4096");
    let target = disk.point.join("target");
    write(&desk, 14, 1);
    fs::hard_link(desk.path("tree").join(name(14)), desk.path("tree/second")).unwrap();
    let chattr = |mode: &str, file: u64| {
        out(Command::new("chattr").arg(mode).arg(target.join(name(file)).parent().unwrap()));
    };
    thirty_hot(&desk, |bundle| drop(desk.good(&format!("unpack {bundle} disk/target --allow-unsigned"))));
    // A label as set by a security module.
    let labelled = target.join(name(16));
    setxattr(&labelled, "trusted.label", b"kept", XattrFlags::empty()).unwrap();
    let inodes = || [8, 12, 14, 16].map(|file| fs::metadata(target.join(name(file))).unwrap().ino());
    let before = inodes();
    {
        // This is the other name of the file.
        let _bound = Mounted::on_itself(target.join(name(14)));
        chattr("+i", 8);
        chattr("+a", 12);
        let done = desk.command("unpack delta.sealift disk/target --update --allow-unsigned --json").output().unwrap();
        chattr("-i", 8);
        chattr("-a", 12);
        assert!(done.status.success(), "{}", said(&done));
        let said: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(said["gathered_files"], 20, "{said}");
    }
    assert_eq!(inodes(), before);
    assert_eq!(getxattr(&labelled, "trusted.label", &mut [0; 8]), Ok(4));
    desk.good("audit disk/target 2.sealift --allow-unsigned");
}

/// A file that only moves needs an inode, as do the new files, and the record that is written after them.
#[test]
fn the_hot_set_is_not_written_again_where_that_takes_too_many_inodes() {
    let Some(desk) = as_root("an ext4", Installed::new) else { return };
    let disk = Disk::ext4(&desk, "4096");
    let target = disk.point.join("target");
    thirty_hot(&desk, |bundle| drop(desk.good(&format!("unpack {bundle} disk/target --allow-unsigned"))));
    let inodes = || [4, 16, 29].map(|file| fs::metadata(target.join(name(file))).unwrap().ino());
    let before = inodes();
    let left = || rustix::fs::statvfs(&disk.point).unwrap().f_favail;
    let update = || {
        let said = desk.json("unpack delta.sealift disk/target --update --allow-unsigned --json");
        said["gathered_files"].as_u64().unwrap()
    };
    fs::create_dir(disk.point.join("fillers")).unwrap();
    for filler in 28..left() {
        fs::File::create(disk.point.join("fillers").join(filler.to_string())).unwrap();
    }
    assert_eq!((left(), update(), inodes()), (28, 0, before));
    desk.good("audit disk/target 2.sealift --allow-unsigned");
    assert_eq!(left(), 28, "nothing is left of the copies");

    // The next update has room.
    fs::remove_dir_all(disk.point.join("fillers")).unwrap();
    [2, 6, 10, 14, 18, 22].into_iter().for_each(|file| write(&desk, file, 3));
    pack_next(&desk, 3);
    assert_eq!(update(), 24);
    desk.good("audit disk/target 3.sealift --allow-unsigned");
}

/// The system does not include quotas in what it says is free.
#[test]
fn the_hot_set_is_not_written_again_where_that_exceeds_a_quota() {
    let Some(desk) = as_root("a btrfs", Installed::new) else { return };
    // This file system counts as one on flash, so it takes many seeks.
    (0..FILES).for_each(|file| write(&desk, file, 1));
    let hot: Vec<u64> = (0..FILES).step_by(3).collect();
    desk.write("profile", hot.iter().rev().map(|file| name(*file)).collect::<Vec<_>>().join("\n"));
    desk.good(&format!("{PACK} 1 -o 1.sealift"));
    desk.good(&format!("{PACK} 1 -o ordered.sealift --order profile"));
    let disk = Disk::made_by(&desk, Command::new("mkfs.btrfs").arg("-q"));
    let own = disk.point.join("own");
    out(Command::new("btrfs").args(["quota", "enable"]).arg(&disk.point));
    out(Command::new("btrfs").args(["subvolume", "create"]).arg(&own));
    desk.good("unpack 1.sealift disk/own/target --allow-unsigned");
    hot.iter().step_by(50).for_each(|file| write(&desk, *file, 2));
    desk.good(&format!("{PACK} 2 -o 2.sealift --order-from ordered.sealift"));
    let tree: u64 = (0..FILES).map(|file| fs::metadata(own.join("target").join(name(file))).unwrap().len()).sum();
    for (mebibytes, moved) in [(10, 0), (100, 490)] {
        let limit = (tree + (mebibytes << 20)).to_string();
        out(Command::new("btrfs").args(["qgroup", "limit", &limit]).arg(&own));
        let said = desk.json("unpack 2.sealift disk/own/target --update --allow-unsigned --json");
        assert_eq!(said["gathered_files"], moved, "{said}");
        desk.good("audit disk/own/target 2.sealift --allow-unsigned");
        // Once more, from the first version.
        out(Command::new("btrfs").args(["qgroup", "limit", "none"]).arg(&own));
        fs::remove_dir_all(own.join("target")).unwrap();
        fs::remove_dir_all(own.join(".target.sealift-state")).unwrap();
        desk.good("unpack 1.sealift disk/own/target --allow-unsigned");
    }
}

/// Not even if the bundle has it too: only root can give it to the new file.
#[test]
fn a_label_is_not_lost_without_root() {
    if !is_root() {
        return skipped("needs root: an ext4, and sets a label");
    }
    const LABEL: &str = "security.label";
    let label = |path: &Path| setxattr(path, LABEL, b"kept", XattrFlags::empty()).unwrap();
    let desk = Installed::new();
    let disk = Disk::of_user(&desk);
    write(&desk, 16, 1);
    label(&desk.path("tree").join(name(16)));
    thirty_hot_with(&desk, &format!("--xattrs {LABEL}"), |bundle| {
        drop(as_user(&desk, &format!("unpack {bundle} disk/target --allow-unsigned")));
    });
    let file = disk.point.join("target").join(name(16));
    label(&file);
    let before = fs::metadata(&file).unwrap().ino();
    let done = as_user(&desk, "unpack delta.sealift disk/target --update --allow-unsigned --json");
    assert_eq!((&done["gathered_files"], &done["xattrs_skipped"]), (&23.into(), &0.into()), "{done}");
    assert_eq!(fs::metadata(&file).unwrap().ino(), before);
    assert_eq!(getxattr(&file, LABEL, &mut [0; 8]), Ok(4));
}

/// Users can rename another user's file in a directory of their own, but cannot give the new file to that user.
#[test]
fn a_file_of_another_user_is_not_written_again_without_root() {
    let Some(desk) = as_root("an ext4, and gives a file away", Installed::new) else { return };
    let disk = Disk::of_user(&desk);
    let file =
        thirty_hot(&desk, |bundle| drop(as_user(&desk, &format!("unpack {bundle} disk/target --allow-unsigned"))));
    let file = disk.point.join("target").join(file);
    chown(&file, Some(1000), None).unwrap();
    // Nor can they change a directory of another user.
    chown(disk.point.join("target").join(name(5)).parent().unwrap(), Some(1000), None).unwrap();
    let before = fs::metadata(&file).unwrap();
    let done = as_user(&desk, "unpack delta.sealift disk/target --update --allow-unsigned --json");
    assert_eq!(done["gathered_files"], 22, "{done}");
    let after = fs::metadata(&file).unwrap();
    assert_eq!((after.ino(), after.uid()), (before.ino(), 1000));
}
