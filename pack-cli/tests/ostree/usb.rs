//! A medium for devices that have only OSTree: it is the same as that of `ostree create-usb` for the same refs, and OSTree's clients accept it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use sealift_desk::{Desk, as_root, kill_after, out, text, told};

const COLLECTION: &str = "org.example.Os";
const USB: &str = "unpack b.sealift --usb stick --allow-unsigned";
const KILLS: u32 = 12;

/// A folder with the repository `from`, which has two refs of a collection, and its bundle.
struct Media(Desk);

impl Deref for Media {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

impl Media {
    fn new() -> Self {
        Self::with_commits(Desk::new())
    }

    fn with_commits(desk: Desk) -> Self {
        let desk = Self::with_tree(desk);
        desk.ostree(&["init", "--repo=from", "--mode=archive", "--collection-id", COLLECTION]);
        desk.commit("os/stable", "1.0", &[]);
        desk.commit("os/apps/editor", "2.0", &[]);
        desk.sealift("pack --force ostree:from -o b.sealift --name os --bundle-version 1");
        desk
    }

    /// A desk without these, but with a tree and an empty medium.
    fn empty() -> Self {
        Self::with_tree(Desk::new())
    }

    fn with_tree(desk: Desk) -> Self {
        let desk = Self(desk);
        fs::create_dir(desk.path("stick")).expect("a new folder");
        desk.write("tree/usr/bin/run", "#!/bin/sh\n");
        desk.write("tree/large", b"0123456789abcde\n".repeat(200_000));
        desk.write("tree/empty", "");
        symlink("usr/bin/run", desk.path("tree/link")).expect("a new link");
        desk
    }

    fn url(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    /// Changes the tree and commits it. Returns the commit's checksum.
    fn commit(&self, branch: &str, version: &str, more: &[&str]) -> String {
        fs::write(self.path("tree/version"), version).expect("a file");
        let version = format!("--add-metadata-string=version={version}");
        let args = ["commit", "--repo=from", "--timestamp=@1700000000", "--owner-uid=0", "--owner-gid=0", "-b", branch];
        self.ostree(&[&args[..], &[&version, "--tree=dir=tree"], more].concat()).trim().to_owned()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.0.command(line);
        command.arg("--quiet");
        command
    }

    fn sealift(&self, line: &str) {
        out(&mut self.command(line));
    }

    fn refused(&self, line: &str) -> String {
        let (status, said) = told(&mut self.command(line));
        assert_ne!(status, Some(0), "{line}: {said}");
        said
    }

    fn try_ostree(&self, args: &[&str]) -> Result<String, String> {
        let mut command = self.command_of("ostree");
        let done = command.args(args).env("GNUPGHOME", self.path("gnupg")).output();
        let done = done.expect("ostree is installed: apt install ostree");
        if done.status.success() { Ok(text(&done.stdout)) } else { Err(format!("{args:?}: {}", text(&done.stderr))) }
    }

    fn ostree(&self, args: &[&str]) -> String {
        self.try_ostree(args).unwrap_or_else(|error| panic!("{error}"))
    }

    fn create_usb(&self, medium: &str, refs: &[&str]) {
        fs::create_dir_all(self.path(medium)).expect("a new folder");
        let refs = refs.iter().flat_map(|name| [COLLECTION, name]);
        self.ostree(&["create-usb", "--repo=from", medium].into_iter().chain(refs).collect::<Vec<_>>());
    }

    /// Creates the repository of a device, with this remote.
    fn device(&self, name: &str, url: &str) -> String {
        let repo = format!("--repo={name}");
        self.ostree(&["init", &repo, "--mode=bare-user-only"]);
        let collection = format!("--collection-id={COLLECTION}");
        self.ostree(&["remote", "add", &repo, "--no-gpg-verify", &collection, "os", url]);
        repo
    }

    fn tip(&self, branch: &str) -> String {
        self.ostree(&["rev-parse", "--repo=from", branch]).trim().to_owned()
    }

    /// Returns everything below a folder: type, permissions and bytes.
    fn listing(&self, name: &str) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut found = BTreeMap::new();
        walk(&self.path(name), Path::new(""), &mut found);
        found
    }

    fn summary(&self, medium: &str) -> Vec<u8> {
        fs::read(self.path(medium).join(".ostree/repo/summary")).expect("there is a summary")
    }

    /// Returns the description of the summary, except for the time when it was written.
    fn told(&self, medium: &str) -> Vec<String> {
        let text = self.ostree(&["summary", "-v", &format!("--repo={medium}/.ostree/repo")]);
        text.lines().filter(|line| !line.starts_with("Last-Modified")).map(str::to_owned).collect()
    }

    fn fsck(&self, repo: &str) {
        self.ostree(&["fsck", repo]);
    }
}

fn walk(root: &Path, below: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(root.join(below)).expect("a folder") {
        let path = below.join(entry.expect("an entry").file_name());
        let metadata = fs::symlink_metadata(root.join(&path)).expect("it is there");
        let bytes = if metadata.is_file() { fs::read(root.join(&path)).expect("a file") } else { Vec::new() };
        found.insert(path.clone(), (metadata.mode(), bytes));
        if metadata.is_dir() {
            walk(root, &path, found);
        }
    }
}

/// Returns objects with their inodes and change times: an object that is written again differs.
fn objects(medium: &Path) -> BTreeMap<PathBuf, (u64, i64, i64)> {
    let mut found = BTreeMap::new();
    let root = medium.join(".ostree/repo/objects");
    walk(&root, Path::new(""), &mut found);
    let files = found.into_keys().map(|path| (fs::metadata(root.join(&path)).expect("it is there"), path));
    files
        .filter(|(metadata, _)| metadata.is_file())
        .map(|(metadata, path)| (path, (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())))
        .collect()
}

#[test]
fn a_command_is_told_of_repositories_and_media() {
    let desk = Media::new();
    desk.device("device", &desk.url("from"));
    let then = r#"echo "$SEALIFT_NAME $SEALIFT_VERSION $SEALIFT_TARGET" >> told"#;
    let repository = "unpack b.sealift ostree:device --allow-unsigned";
    for (line, target) in [(repository, "ostree:device"), (repository, "ostree:device"), (USB, "stick"), (USB, "stick")]
    {
        let (status, said) = desk.run_then(line, then);
        assert_eq!((status, desk.text("told")), (Some(0), format!("os 1 {target}\n")), "{line}: {said}");
        fs::remove_file(desk.path("told")).expect("it is there");
    }
    let done = desk.command(repository).args(["--json", "--then", "echo noise; exit 7"]).output().expect("it starts");
    let told: serde_json::Value = serde_json::from_slice(&done.stdout).expect("it is JSON");
    assert_eq!((done.status.code(), &told["then"]["exit_status"]), (Some(5), &7.into()), "{}", text(&done.stderr));
    let (status, said) = desk.run_then(&format!("{USB} --dry-run"), then);
    assert_eq!((status, desk.path("told").exists()), (Some(0), false), "{said}");
}

#[test]
fn is_as_create_usb_makes_it() {
    let desk = Media::new();
    desk.create_usb("theirs", &["os/stable", "os/apps/editor"]);
    desk.sealift(USB);
    let (mut ours, mut theirs) = (desk.listing("stick"), desk.listing("theirs"));
    let summary = Path::new(".ostree/repo/summary");
    let (ours_summary, theirs_summary) = (ours.remove(summary), theirs.remove(summary));
    assert_eq!(
        ours_summary.map(|(mode, bytes)| (mode, bytes.len())),
        theirs_summary.map(|(mode, bytes)| (mode, bytes.len()))
    );
    let names = |listing: &BTreeMap<PathBuf, (u32, Vec<u8>)>| {
        listing.iter().map(|(path, (mode, _))| format!("{mode:o} {}", path.display())).collect::<Vec<_>>()
    };
    assert_eq!(names(&ours), names(&theirs));
    // Deflate has many encodings of a file; everything else has one.
    let is_same = |path: &Path| path.extension().is_none_or(|extension| extension != "filez");
    for (path, (_, bytes)) in ours.iter().filter(|(path, _)| is_same(path)) {
        assert_eq!(bytes, &theirs[path].1, "{}", path.display());
    }
    assert_eq!(desk.told("stick"), desk.told("theirs"));
    let differing = desk.summary("stick").iter().zip(desk.summary("theirs")).filter(|(a, b)| *a != b).count();
    assert!((1..=8).contains(&differing), "the time differs alone, and {differing} bytes do");
    desk.fsck("--repo=stick/.ostree/repo");
}

#[test]
fn devices_take_commits_by_path() {
    let desk = Media::new();
    desk.sealift(USB);
    let commit = desk.tip("os/stable");
    let repo = desk.device("local", &desk.url("nowhere"));
    desk.ostree(&["pull-local", &repo, "--remote=os", "stick/.ostree/repo", &commit]);
    desk.fsck(&repo);
    let repo = desk.device("url", &desk.url("stick/.ostree/repo"));
    desk.ostree(&["pull", &repo, "os", &commit]);
    desk.fsck(&repo);
    desk.ostree(&["checkout", "-U", &repo, &commit, "out"]);
    assert_eq!(fs::read(desk.path("out/large")).ok(), fs::read(desk.path("tree/large")).ok());
    assert_eq!(fs::read_to_string(desk.path("out/version")).ok().as_deref(), Some("1.0"));
    let found = desk.ostree(&["find-remotes", &repo, "--finders=config", COLLECTION, "os/stable"]);
    assert!(found.contains(&format!("({COLLECTION}, os/stable) = {commit}")), "{found}");
}

#[test]
fn devices_take_commits_over_http() {
    let desk = Media::new();
    desk.sealift(USB);
    let url = serve(desk.path("stick/.ostree/repo"));
    let repo = desk.device("device", &url);
    desk.ostree(&["pull", &repo, "os", &desk.tip("os/apps/editor")]);
    desk.fsck(&repo);
}

/// Starts a static server that runs until the test ends. Returns its address.
fn serve(root: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it has an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let root = root.clone();
            std::thread::spawn(move || answer(stream, &root));
        }
    });
    url
}

fn answer(mut stream: TcpStream, root: &Path) {
    let mut lines = BufReader::new(stream.try_clone().expect("another handle")).lines().map_while(Result::ok);
    while let Some(request) = lines.next() {
        while lines.next().is_some_and(|line| !line.is_empty()) {}
        let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
        let (status, body) = fs::read(root.join(path)).map_or(("404 Not Found", Vec::new()), |body| ("200 OK", body));
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        if stream.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            return;
        }
    }
}

/// By the name of a ref, as an updater does: this requires signatures.
#[test]
fn devices_find_signed_refs() {
    let (desk, commit) = signed();
    desk.sealift(USB);
    find_and_pull(&desk, "config", &desk.url("stick/.ostree/repo"), &commit);
}

/// The same with a medium that is plugged in, and found where it is mounted.
#[test]
fn devices_find_a_medium() {
    let Some((desk, commit)) = as_root("a medium that is mounted", signed) else { return };
    let image = fs::File::create_new(desk.path("image")).expect("a new file");
    image.set_len(64 << 20).expect("there is room");
    out(Command::new("mkfs.ext4").arg("-q").arg(desk.path("image")));
    let medium = Mounted::new(&desk.path("image"));
    desk.sealift(&format!("unpack b.sealift --usb {} --allow-unsigned", medium.0.display()));
    find_and_pull(&desk, "mount", "http://127.0.0.1:1/", &commit);
}

/// A mounted medium, unmounted on drop.
struct Mounted(PathBuf);

impl Mounted {
    fn new(image: &Path) -> Self {
        let point = PathBuf::from(format!("/media/sealift-test-{}", std::process::id()));
        fs::create_dir_all(&point).expect("root may");
        out(Command::new("mount").args(["-o", "loop"]).arg(image).arg(&point));
        Self(point)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        out(Command::new("umount").arg(&self.0));
        fs::remove_dir(&self.0).expect("it is empty");
    }
}

/// Creates a bundle of a signed commit, whose checksum is returned, with the key beside it.
fn signed() -> (Media, String) {
    let desk = Media::empty();
    fs::create_dir(desk.path("gnupg")).expect("a new folder");
    desk.set_mode("gnupg", 0o700);
    let gpg = |args: &[&str]| {
        let quiet = ["--homedir", "gnupg", "--batch", "--passphrase", ""];
        out(desk.command_of("gpg").args(quiet).args(args));
    };
    gpg(&["--quick-generate-key", "os@example.org", "ed25519", "sign", "never"]);
    gpg(&["--output", "key.gpg", "--export", "os@example.org"]);
    desk.ostree(&["init", "--repo=from", "--mode=archive", "--collection-id", COLLECTION]);
    let commit = desk.commit("os/stable", "1.0", &["--gpg-sign=os@example.org"]);
    out(Command::new("gpgconf").args(["--kill", "all"]).env("GNUPGHOME", desk.path("gnupg")));
    desk.sealift("pack --force ostree:from -o b.sealift --name os --bundle-version 1");
    (desk, commit)
}

fn find_and_pull(desk: &Media, finder: &str, url: &str, commit: &str) {
    desk.ostree(&["init", "--repo=device", "--mode=bare-user-only"]);
    let collection = format!("--collection-id={COLLECTION}");
    desk.ostree(&["remote", "add", "--repo=device", "--gpg-import=key.gpg", &collection, "os", url]);
    let finders = format!("--finders={finder}");
    desk.ostree(&["find-remotes", "--repo=device", &finders, "--pull", COLLECTION, "os/stable"]);
    assert_eq!(desk.ostree(&["rev-parse", "--repo=device", "os:os/stable"]).trim(), commit);
    desk.fsck("--repo=device");
}

#[test]
fn a_second_run_writes_no_object() {
    let desk = Media::new();
    desk.sealift(USB);
    let (listing, before) = (desk.listing("stick"), objects(&desk.path("stick")));
    desk.sealift(USB);
    assert_eq!(before, objects(&desk.path("stick")));
    assert_eq!(listing, desk.listing("stick"));
}

#[test]
fn a_later_bundle_updates_a_medium() {
    let desk = Media::new();
    desk.sealift(&format!("{USB} --ref os/apps/editor --ref os/stable"));
    let before = objects(&desk.path("stick"));
    let commit = desk.commit("os/stable", "1.1", &[]);
    desk.sealift("pack --force ostree:from -o new.sealift --name os --bundle-version 2");
    desk.sealift("unpack new.sealift --usb stick --allow-unsigned --ref os/stable");
    let after = objects(&desk.path("stick"));
    assert!(before.iter().all(|(path, object)| after.get(path) == Some(object)), "what was there is as it was");
    // The commit, its root, and one file.
    assert_eq!(after.len(), before.len() + 3);
    let repo = desk.device("device", &desk.url("stick/.ostree/repo"));
    desk.ostree(&["pull", &repo, "os", &commit]);
    desk.fsck(&repo);
    desk.fsck("--repo=stick/.ostree/repo");
    desk.create_usb("theirs", &["os/stable", "os/apps/editor"]);
    assert_eq!(desk.told("stick"), desk.told("theirs"));
}

#[test]
fn a_medium_of_ostree_is_updated() {
    let desk = Media::new();
    desk.create_usb("stick", &["os/stable"]);
    let signature = desk.path("stick/.ostree/repo/summary.sig");
    fs::write(&signature, "of the old one").expect("a new file");
    desk.sealift(&format!("{USB} --ref os/apps/editor"));
    assert!(!signature.exists(), "it would be wrong");
    desk.create_usb("theirs", &["os/stable", "os/apps/editor"]);
    assert_eq!(desk.told("stick"), desk.told("theirs"));
    desk.fsck("--repo=stick/.ostree/repo");
    // The other way round.
    desk.commit("os/stable", "1.1", &[]);
    desk.create_usb("stick", &["os/stable"]);
    desk.fsck("--repo=stick/.ostree/repo");
}

#[test]
fn a_ref_needs_a_collection() {
    let desk = Media::empty();
    desk.ostree(&["init", "--repo=from", "--mode=archive"]);
    desk.commit("os/stable", "1.0", &[]);
    desk.sealift("pack --force ostree:from -o b.sealift --name os --bundle-version 1");
    let refusal = desk.refused(USB);
    assert!(
        refusal.contains("os/stable has no collection id") && refusal.contains("pack it from a repository"),
        "{refusal}"
    );
    assert_eq!(desk.listing("stick"), BTreeMap::new());
}

#[test]
fn what_is_refused_writes_nothing() {
    let desk = Media::new();
    desk.refused("unpack b.sealift --usb stick");
    desk.refused("unpack b.sealift --usb stick --allow-unsigned --ref os/other");
    desk.refused("unpack b.sealift --usb stick --allow-unsigned --update");
    desk.refused("unpack b.sealift --allow-unsigned");
    desk.refused("unpack b.sealift --usb nowhere --allow-unsigned");
    desk.sealift(&format!("{USB} --dry-run"));
    assert_eq!(desk.listing("stick"), BTreeMap::new());
    // Damaged after the signed part: what is complete stays for a good copy, and no client sees it.
    let mut bytes = fs::read(desk.path("b.sealift")).expect("a bundle");
    let last = bytes.len() - 10;
    bytes[last] ^= 1;
    fs::write(desk.path("bad.sealift"), bytes).expect("a new file");
    let said = desk.refused("unpack bad.sealift --usb stick --allow-unsigned");
    assert!(said.contains("progress was saved"), "{said}");
    let is_staged = |path: &PathBuf| path.to_string_lossy().contains("/tmp/staging-");
    let is_object = |path: &PathBuf| path.extension().is_some_and(|end| end == "filez");
    assert!(desk.listing("stick").keys().all(|path| is_staged(path) || !is_object(path)), "{said}");
    desk.sealift(USB);
    assert!(!desk.listing("stick").keys().any(is_staged));
    desk.fsck("--repo=stick/.ostree/repo");
    assert!(!desk.path("nowhere").exists());
}

#[test]
fn links_on_a_medium_lead_nowhere() {
    let desk = Media::new();
    fs::create_dir(desk.path("elsewhere")).expect("a new folder");
    symlink("../elsewhere", desk.path("stick/.ostree")).expect("a new link");
    desk.refused(USB);
    assert_eq!(desk.listing("elsewhere"), BTreeMap::new());
}

#[test]
fn what_was_begun_is_gone_on_with() {
    let desk = Media::new();
    fs::create_dir_all(desk.path("stick/.ostree/repo/refs")).expect("new folders");
    fs::write(desk.path("stick/.ostree/repo/.sealift-config"), "[co").expect("a new file");
    desk.sealift(USB);
    desk.create_usb("theirs", &["os/stable", "os/apps/editor"]);
    assert!(desk.listing("stick").keys().eq(desk.listing("theirs").keys()));
}

#[test]
fn killed_it_is_sound() {
    let desk = Media::with_commits(Desk::in_memory());
    let start = Instant::now();
    desk.sealift(USB);
    let duration = start.elapsed();
    let whole = desk.listing("stick");
    for number in 0..KILLS {
        fs::remove_dir_all(desk.path("stick")).expect("it can be removed");
        fs::create_dir(desk.path("stick")).expect("a new folder");
        kill_after(duration.mul_f64(f64::from(number) / f64::from(KILLS)), &mut desk.command(USB));
        if desk.path("stick/.ostree/repo/objects").exists() {
            desk.fsck("--repo=stick/.ostree/repo");
        }
        desk.sealift(USB);
        assert!(whole == desk.listing("stick"), "after kill {number}");
    }
}
