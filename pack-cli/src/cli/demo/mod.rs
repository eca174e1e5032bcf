//! `sealift demo`: the main job before the reader's eyes.

mod compare;
mod peers;
mod scratch;
mod table;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use sealift::pack::{Output, PackOptions, PackRef};
use sealift::source::{Source, SourceOptions};
use sealift::trust::TrustOptions;
use sealift::trust::sign::{Signer, generate_key, room_for, sign_root};
use sealift::unpack::UnpackOptions;
use sealift::verify::Depth;
use sealift::{Error, Identity, Input, Limits};

use super::bundle::jobs;
use super::failure::Failure;
use super::human::{self, Bytes, count};
use super::show::{BAD, BOLD, DIM, GOOD, Pace, Show};
use super::time::Moment;
use super::trust_args::Judge;
use super::{escape, info, interrupt};
use peers::Peers;
use scratch::Scratch;
use table::{Row, Table};

/// Pack, sign, verify, unpack and compare a tree on this machine
///
/// Shows each step as you would type it, compares the result with the tree, and runs the same job with tar and zstd for comparison. All
/// files are in one directory, printed first and removed at the end, also after Ctrl-C.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift demo
  sealift demo /usr/lib --scratch /mnt/big --level 19")]
pub(crate) struct Demo {
    /// The tree [default: the cargo registry's sources or /usr/share, whichever is larger]
    #[arg(value_hint = ValueHint::DirPath)]
    tree: Option<PathBuf>,
    /// Directory to work in [default: the first of TMPDIR, /tmp, /var/tmp and . with enough space]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    scratch: Option<PathBuf>,
    /// zstd's level, 1 to 22, on both sides
    #[arg(long, value_name = "N", default_value_t = PackOptions::LEVEL, value_parser = clap::value_parser!(i32).range(1..=22))]
    level: i32,
    /// Threads, on both sides [default: as many as the machine runs at once]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    pace: Pace,
}

impl Demo {
    pub(crate) fn run(self) -> Result<(), Failure> {
        interrupt::hold();
        let jobs = jobs(self.jobs.map(usize::from));
        let tree = self.pace.watch(self.show, "Looking for a tree", |_| choose_tree(self.tree.as_deref(), jobs))?;
        // Bundle, archive, one unpacked tree at a time.
        let needed = tree.bytes.saturating_mul(3).saturating_add(tree.nodes.saturating_mul(4096));
        let scratch = Scratch::create(self.scratch.as_deref(), needed)?;
        let mut run = Run {
            out: if self.show.json || self.show.quiet { Box::new(io::sink()) } else { self.show.out() },
            peers: Peers::find(self.level, jobs),
            tree,
            scratch,
            jobs,
            level: self.level,
            show: self.show,
            pace: self.pace,
            table: Table::default(),
        };
        let done = run.all(needed);
        let Run { scratch, table, mut out, .. } = run;
        let path = scratch.path().to_owned();
        self.pace.watch(self.show, "Removing", |_| {
            drop(scratch);
            Ok::<_, Failure>(())
        })?;
        done?;
        if self.show.json {
            return Ok(table.print_json(&mut self.show.out())?);
        }
        writeln!(out, "\n{DIM}Removed {}.{DIM:#}", escape::text(&path.display().to_string()))?;
        Ok(())
    }
}

/// What is packed.
struct Chosen {
    path: PathBuf,
    files: u64,
    nodes: u64,
    bytes: u64,
}

/// The tree that was asked for, or the larger of two that most machines have.
fn choose_tree(wish: Option<&Path>, jobs: usize) -> Result<Chosen, Error> {
    if let Some(wish) = wish {
        return measure(wish, jobs);
    }
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let candidates = [home.map(|home| home.join("registry/src")), Some("/usr/share".into())];
    let trees = candidates.into_iter().flatten().filter(|path| path.is_dir()).map(|path| measure(&path, jobs));
    let largest = trees.collect::<Result<Vec<_>, _>>()?.into_iter().max_by_key(|tree| tree.bytes);
    largest.ok_or_else(|| Error::Usage("neither cargo's registry nor /usr/share exists: give a TREE".into()))
}

fn measure(path: &Path, jobs: usize) -> Result<Chosen, Error> {
    if interrupt::pending() {
        return Err(Error::Cancelled);
    }
    if !path.is_dir() {
        return Err(Error::Usage(format!("{} is not a directory", path.display())));
    }
    let source = open(path, jobs)?;
    let bytes = (0..source.content_count()).map(|content| source.content_len(content)).sum();
    let mut nodes = 0;
    source.tree().visit(|_| nodes += 1);
    Ok(Chosen { path: path.to_owned(), files: source.content_count().into(), nodes, bytes })
}

fn open(path: &Path, jobs: usize) -> Result<Source, Error> {
    // A path that looks like a scheme is still a path.
    let path =
        std::fs::canonicalize(path).map_err(|source| Error::Io { doing: "read", path: path.to_owned(), source })?;
    Source::open_spec(path.as_os_str(), &SourceOptions::default(), jobs)
}

/// The demo while it runs.
struct Run {
    out: Box<dyn Write>,
    peers: Peers,
    tree: Chosen,
    scratch: Scratch,
    jobs: usize,
    level: i32,
    show: Show,
    pace: Pace,
    table: Table,
}

impl Run {
    fn all(&mut self, needed: u64) -> Result<(), Failure> {
        self.introduce(needed)?;
        self.warm()?;
        let signer = self.make_key()?;
        self.pack(&signer)?;
        self.info()?;
        self.verify("", Depth::Stored)?;
        self.verify("--deep ", Depth::Objects)?;
        self.unpack()?;
        self.compare()?;
        self.run_peers()?;
        writeln!(self.out)?;
        let mut notes = self.peers.notes();
        if cfg!(debug_assertions) {
            notes.push("This is a build for debugging, whose times say little: use cargo run --release.");
        }
        Ok(self.table.print(&mut self.out, &notes)?)
    }

    fn introduce(&mut self, needed: u64) -> io::Result<()> {
        let tree = escape::text(&self.tree.path.display().to_string());
        let (files, bytes) = (count(self.tree.files, "file"), Bytes(self.tree.bytes));
        writeln!(self.out, "{BOLD}{tree}{BOLD:#}: {files}, {bytes}")?;
        let scratch = escape::text(&self.scratch.path().display().to_string());
        let free = Bytes(self.scratch.free);
        writeln!(self.out, "Everything is written to {BOLD}{scratch}{BOLD:#} and removed at the end:")?;
        writeln!(self.out, "at most {} of the {free} that are free there.", Bytes(needed))
    }

    /// Says what would be typed.
    fn command(&mut self, line: &str) -> Result<(), Failure> {
        if interrupt::pending() {
            return Err(Error::Cancelled.into());
        }
        writeln!(self.out, "\n{DIM}${DIM:#} {BOLD}{}{BOLD:#}", escape::text(line))?;
        Ok(self.out.flush()?)
    }

    /// Waits until nothing is left to write of what came before.
    fn settle(&self) -> Result<(), Error> {
        self.pace.watch(self.show, "Settling", |_| self.scratch.settle())
    }

    fn remove(&self, path: &Path) -> Result<(), Error> {
        self.pace.watch(self.show, "Removing", |_| {
            scratch::remove(path);
            Ok(())
        })
    }

    /// Runs one side's work and takes its time, what it wrote included.
    fn time<T>(&self, label: &'static str, work: impl FnOnce() -> Result<T, Error>) -> Result<(T, Duration), Error> {
        self.settle()?;
        let start = Instant::now();
        let done = self.pace.watch(self.show, label, |_| work())?;
        Ok((done, start.elapsed()))
    }

    /// Reads the tree once where memory holds it, so that whoever comes first has no longer way than who comes last.
    fn warm(&self) -> Result<(), Error> {
        if self.tree.bytes > free_memory() / 2 {
            return Ok(());
        }
        self.pace.watch(self.show, "Reading the tree once", |_| {
            compare::compare(&self.tree.path, &self.tree.path, false, self.jobs).map(|_| ())
        })
    }

    fn make_key(&mut self) -> Result<Signer, Failure> {
        self.command("sealift key generate -o key")?;
        let path = self.scratch.file("key");
        let key = generate_key(&path, None, "demo")?;
        let line = format!("demo namespaces=\"sealift\" {} demo\n", key.to_openssh());
        for (name, content) in [("allowed_signers", line.as_str()), ("revoked", "")] {
            let path = self.scratch.file(name);
            std::fs::write(&path, content).map_err(|source| Error::Io { doing: "write", path, source })?;
        }
        writeln!(self.out, "  {}, for this demo alone", key.id())?;
        Ok(Signer::open(&path, &|_| Err(Error::Usage("the demo's key has no passphrase".into())))?)
    }

    fn judge(&self) -> Result<Judge, Error> {
        Judge::by(&TrustOptions {
            signers: Some(self.scratch.file("allowed_signers")),
            revoked: Some(self.scratch.file("revoked")),
            thresholds: vec!["1".into()],
            state: Some(self.scratch.file("state")),
            ..TrustOptions::default()
        })
    }

    fn pack(&mut self, signer: &Signer) -> Result<(), Failure> {
        let level = if self.level == PackOptions::LEVEL { String::new() } else { format!(" --level {}", self.level) };
        self.command(&format!(
            "sealift pack {} -o demo.sealift --name demo --bundle-version 1 --key key{level}",
            self.tree.path.display()
        ))?;
        let now = Moment::now().0;
        let signers = std::slice::from_ref(signer);
        let options = PackOptions {
            level: self.level,
            signature_room: PackOptions::SIGNATURE_ROOM.max(room_for(signers)),
            jobs: self.jobs,
            ..PackOptions::new(Identity {
                name: "demo".into(),
                version: 1,
                created: now,
                expires: None,
                compatible: Vec::new(),
            })
        };
        let output = Output::File(self.scratch.file("demo.sealift"));
        self.settle()?;
        let start = Instant::now();
        let stats = self.pace.watch(self.show, "Listing", |progress| {
            let source = open(&self.tree.path, self.jobs)?;
            let refs = [PackRef { name: "main", source: &source }];
            sealift::pack::pack(&refs, &output, &options, &|signed| sign_root(signed, signers), progress)
        })?;
        let elapsed = start.elapsed();
        let (bytes, stored) = (stats.root.maxima.logical, stats.file_bytes);
        self.tree.bytes = bytes;
        self.say(&format!("{} into {}", Bytes(bytes), human::stored(stored, bytes)), elapsed)?;
        self.table.add(Row::ours("pack", "sealift pack", Some(stored), elapsed, bytes));
        Ok(())
    }

    fn say(&mut self, what: &str, elapsed: Duration) -> io::Result<()> {
        let rate = human::rate(self.tree.bytes, elapsed);
        writeln!(self.out, "  {what} in {}, {rate}", human::duration(elapsed))
    }

    fn info(&mut self) -> Result<(), Failure> {
        self.command("sealift info demo.sealift --trust allowed_signers")?;
        let (mut input, judge) = (Input::open(&self.scratch.file("demo.sealift"))?, self.judge()?);
        let opened = input.open_any(Limits::default())?;
        let seen = judge.inspect(opened.head())?;
        Ok(info::print(&mut self.out, "demo.sealift", opened.head(), &seen, Some(&opened))?)
    }

    fn verify(&mut self, flag: &str, depth: Depth) -> Result<(), Failure> {
        self.command(&format!("sealift verify {flag}demo.sealift --trust allowed_signers"))?;
        let (input, judge) = (Input::open(&self.scratch.file("demo.sealift"))?, self.judge()?);
        let start = Instant::now();
        self.pace.watch(self.show, "Opening", |progress| {
            sealift::verify::verify(judge.admit(input)?.into_unopened(), depth, self.jobs, progress)
        })?;
        let elapsed = start.elapsed();
        let (what, name) = match depth {
            Depth::Stored => ("every byte", "sealift verify"),
            Depth::Objects => ("every byte, and each file's content", "sealift verify --deep"),
        };
        self.say(&format!("{GOOD}sound{GOOD:#}: {what}"), elapsed)?;
        self.table.add(Row::ours("check", name, None, elapsed, self.tree.bytes));
        Ok(())
    }

    fn unpack(&mut self) -> Result<(), Failure> {
        self.command("sealift unpack demo.sealift tree --trust allowed_signers")?;
        let (input, judge) = (Input::open(&self.scratch.file("demo.sealift"))?, self.judge()?);
        let options = UnpackOptions { jobs: self.jobs, ..UnpackOptions::default() };
        let target = self.scratch.file("tree");
        self.settle()?;
        let start = Instant::now();
        let stats = self.pace.watch(self.show, "Opening", |progress| {
            sealift::unpack::unpack(judge.admit(input)?, &target, &options, progress)
        })?;
        let elapsed = start.elapsed();
        self.say(&format!("{}, {}", count(stats.files, "file"), count(stats.directories, "directory")), elapsed)?;
        for line in super::unpack::skipped(&stats) {
            writeln!(self.out, "  {line}")?;
        }
        self.table.add(Row::ours("unpack", "sealift unpack", None, elapsed, self.tree.bytes));
        Ok(())
    }

    fn compare(&mut self) -> Result<(), Failure> {
        let (tree, copy) = (self.tree.path.clone(), self.scratch.file("tree"));
        if interrupt::pending() {
            return Err(Error::Cancelled.into());
        }
        writeln!(self.out, "\n{BOLD}The demo compares both trees by itself{BOLD:#}")?;
        let root = rustix::process::geteuid().is_root();
        let compared = self.pace.watch(self.show, "Comparing", |_| compare::compare(&tree, &copy, root, self.jobs))?;
        self.remove(&copy)?;
        if compared.difference_count > 0 {
            writeln!(self.out, "  {BAD}{}{BAD:#}", count(compared.difference_count, "difference"))?;
            for difference in &compared.differences {
                writeln!(self.out, "  {}", escape::text(difference))?;
            }
            return Err(Failure::differs(format!(
                "what came back differs from {} in {}",
                tree.display(),
                count(compared.difference_count, "place")
            )));
        }
        let (files, directories) = (count(compared.files, "file"), count(compared.directories, "directory"));
        let bytes = Bytes(compared.bytes);
        writeln!(
            self.out,
            "  {GOOD}identical{GOOD:#}: {files}, {directories}, {} of other types, {bytes}",
            compared.others
        )?;
        let owners = if root { "owners, " } else { "" };
        writeln!(self.out, "  in content, modes, {owners}times, links and extended attributes")?;
        Ok(())
    }

    fn run_peers(&mut self) -> Result<(), Failure> {
        let (peers, bytes) = (self.peers, self.tree.bytes);
        let (archive, tree) = (self.scratch.file("demo.tar.zst"), self.tree.path.clone());
        self.command(&format!("{} > demo.tar.zst", peers.pack_name()))?;
        let ((), elapsed) = self.time("tar | zstd", || peers.pack(&tree, &archive))?;
        let stored = std::fs::metadata(&archive).map_or(0, |metadata| metadata.len());
        self.say(&format!("{} into {}", Bytes(bytes), human::stored(stored, bytes)), elapsed)?;
        self.table.add(Row::theirs("pack", peers.pack_name(), Some(stored), elapsed, bytes));

        self.command(&format!("{} demo.tar.zst", peers.test_name()))?;
        let ((), elapsed) = self.time("zstd -t", || peers.test(&archive))?;
        self.say(&format!("decompresses: {}", Bytes(bytes)), elapsed)?;
        self.table.add(Row::theirs("check", peers.test_name().into(), None, elapsed, bytes));

        if !peers.can_unpack() {
            return Ok(());
        }
        let target = self.scratch.file("tar");
        self.command(&format!("{} && sync -f .", peers.unpack_name().replacen(" |", " < demo.tar.zst |", 1)))?;
        let ((), elapsed) = self.time("zstd | tar", || {
            peers.unpack(&archive, &target)?;
            self.scratch.settle()
        })?;
        self.say(&format!("unpacked: {}", Bytes(bytes)), elapsed)?;
        self.table.add(Row::theirs("unpack", peers.unpack_name().into(), None, elapsed, bytes));
        self.remove(&target)?;
        Ok(())
    }
}

/// Bytes that the system could use for caching.
fn free_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}
