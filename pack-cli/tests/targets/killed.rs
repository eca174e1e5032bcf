//! If a run is killed at any moment, the target has its old or its new files, and the same command completes it and leaves nothing else. `cargo xtask
//! big kills` does this at hundreds of moments, with a real tree.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::ops::Deref;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

use sealift_desk::{Desk, kill_after, noise};

const KILLS: u32 = 12;
const PACK: &str = "pack new -o work/b.sealift --force --name os --bundle-version 2";
const UNPACK: &str = "unpack new.sealift work/target --allow-unsigned";
const UPDATE: &str = "unpack new.sealift work/target --update --delete --allow-unsigned";

/// A folder with two trees, and their bundles.
struct Killed(Desk);

impl Deref for Killed {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

impl Killed {
    fn new() -> Self {
        let desk = Self(Desk::in_memory());
        make_tree(&desk.path("old"));
        make_tree(&desk.path("new"));
        change(&desk.path("new"));
        for line in [
            "pack old -o old.sealift --name os --bundle-version 1",
            "pack new -o new.sealift --name os --bundle-version 2",
        ] {
            desk.good(line);
        }
        desk
    }

    /// Starts over, with no target or with the old tree.
    fn begin(&self, with_target: bool) {
        let work = self.path("work");
        if work.exists() {
            open_up(&work);
            fs::remove_dir_all(&work).expect("it can be removed");
        }
        fs::create_dir(&work).expect("a new folder");
        if with_target {
            self.good("unpack old.sealift work/target --allow-unsigned --durability none");
        }
    }

    /// Kills a run at several moments, and calls `check` after each with the number of the run.
    fn kill(&self, line: &str, with_target: bool, check: impl Fn(u32)) {
        self.begin(with_target);
        let start = Instant::now();
        self.good(line);
        let duration = start.elapsed();
        for number in 0..KILLS {
            self.begin(with_target);
            kill_after(duration.mul_f64(f64::from(number) / f64::from(KILLS)), &mut self.command(line));
            check(number);
        }
    }
}

fn make_tree(dir: &Path) {
    for number in 0..300 {
        let folder = dir.join(format!("d{}/e{}", number % 7, number % 3));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(format!("f{number:03}")), noise(number, number * 15)).expect("there is room");
    }
    let large = File::create_new(dir.join("large")).expect("a new file");
    large.write_all_at(&noise(1000, 2 << 20), 3 << 20).expect("there is room");
    large.set_len(8 << 20).expect("it may have holes");
    fs::hard_link(dir.join("large"), dir.join("d1/other")).expect("a link");
    symlink("../d1", dir.join("d2/link")).expect("a link");
    fs::create_dir(dir.join("closed")).expect("a folder");
    fs::write(dir.join("closed/file"), "in a directory that is read-only\n").expect("there is room");
    fs::set_permissions(dir.join("closed"), Permissions::from_mode(0o555)).expect("it is ours");
}

fn change(dir: &Path) {
    for number in (0..300).step_by(3) {
        let path = dir.join(format!("d{}/e{}/f{number:03}", number % 7, number % 3));
        match number % 4 {
            0 => fs::write(&path, noise(number + 5000, 3000)),
            1 => fs::remove_file(&path),
            2 => fs::rename(&path, path.with_extension("moved")),
            _ => fs::set_permissions(&path, Permissions::from_mode(0o640)),
        }
        .expect("it is there");
    }
    let large = File::options().write(true).open(dir.join("large")).expect("it is there");
    large.write_all_at(&noise(7, 100_000), 6 << 20).expect("there is room");
    fs::remove_dir_all(dir.join("d3")).expect("it is there");
    fs::write(dir.join("d3"), "a file now\n").expect("there is room");
}

/// Without root, files in a read-only directory cannot be removed.
fn open_up(dir: &Path) {
    let _ = fs::set_permissions(dir, Permissions::from_mode(0o755));
    for entry in fs::read_dir(dir).expect("it can be listed").flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Directory,
    File(Vec<u8>),
    Link(PathBuf),
}

/// Each path below a directory with its content, its mode, its links and its time.
type Listing = BTreeMap<PathBuf, (Content, u32, u64, i64, i64)>;

fn listing(dir: &Path) -> Listing {
    let mut listing = Listing::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        for entry in fs::read_dir(dir.join(&below)).expect("it can be listed") {
            let entry = entry.expect("an entry");
            let (path, metadata) = (below.join(entry.file_name()), entry.metadata().expect("it is there"));
            let (content, links) = if metadata.is_dir() {
                pending.push(path.clone());
                (Content::Directory, 0)
            } else if metadata.is_symlink() {
                (Content::Link(fs::read_link(entry.path()).expect("a link")), 1)
            } else {
                (Content::File(fs::read(entry.path()).expect("it can be read")), metadata.nlink())
            };
            listing.insert(path, (content, metadata.mode(), links, metadata.mtime(), metadata.mtime_nsec()));
        }
    }
    listing
}

fn assert_same(found: &Listing, wanted: &Listing, number: u32) {
    for path in found.keys().chain(wanted.keys()) {
        assert!(found.get(path) == wanted.get(path), "run {number}: {} differs", path.display());
    }
}

/// Checks that each path is as in one of the trees, and exists unless one of them lacks it or has another type there.
fn assert_each_is_old_or_new(found: &Listing, old: &Listing, new: &Listing) {
    for (path, (content, ..)) in found {
        let known = [old.get(path), new.get(path)];
        assert!(known.into_iter().flatten().any(|(known, ..)| known == content), "{}", path.display());
    }
    let kind = |listing: &Listing, path: &Path| listing.get(path).map(|(content, ..)| std::mem::discriminant(content));
    for path in old.keys().filter(|path| kind(old, path) == kind(new, path)) {
        assert!(found.contains_key(path), "{} is missing", path.display());
    }
}

#[test]
fn packing() {
    let desk = Killed::new();
    let whole = fs::read(desk.path("new.sealift")).expect("it was made");
    desk.kill(PACK, false, |number| {
        let bundle = desk.path("work/b.sealift");
        assert!(fs::read(&bundle).is_ok_and(|bytes| bytes == whole) || !bundle.exists(), "run {number}");
        desk.good(PACK);
        assert_eq!(fs::read(&bundle).expect("it was made"), whole, "run {number}");
        assert_eq!(desk.names("work"), ["b.sealift"], "run {number}");
    });
}

#[test]
fn unpacking() {
    let desk = Killed::new();
    let new = listing(&desk.path("new"));
    desk.kill(UNPACK, false, |number| {
        let target = desk.path("work/target");
        if target.exists() {
            assert_same(&listing(&target), &new, number);
        }
        if number % 4 == 3 {
            let was_there = target.exists();
            desk.good("clean work/target");
            assert_eq!(target.exists(), was_there, "run {number}");
            assert!(was_there || desk.names("work").is_empty(), "run {number}");
            return;
        }
        desk.good(UNPACK);
        assert_same(&listing(&target), &new, number);
        assert_eq!(desk.names("work"), [".target.sealift-state", "target"], "run {number}");
    });
}

#[test]
fn updating() {
    let desk = Killed::new();
    let (old, new) = (listing(&desk.path("old")), listing(&desk.path("new")));
    desk.kill(UPDATE, true, |number| {
        let target = desk.path("work/target");
        assert_each_is_old_or_new(&listing(&target), &old, &new);
        if number % 4 == 3 {
            desk.good("clean work/target");
            let found = listing(&target);
            if found != old {
                assert_same(&found, &new, number);
            }
        } else {
            desk.good(UPDATE);
            assert_same(&listing(&target), &new, number);
        }
        assert_eq!(desk.names("work"), [".target.sealift-state", "target"], "run {number}");
    });
}
