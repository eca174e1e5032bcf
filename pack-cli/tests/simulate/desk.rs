//! A folder in which trees are packed, and reading them is simulated.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) struct Desk(tempfile::TempDir);

/// The number of small files that `scattered` makes.
pub(crate) const FILES: u64 = 600;

/// An order in the report: its name, seconds, seeks and bytes.
pub(crate) struct Order {
    pub(crate) name: String,
    pub(crate) seconds: f64,
    pub(crate) seeks: u64,
    pub(crate) bytes: u64,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Creates a desk with a tree of small files in many directories, and a profile that reads every fourth of them in an order unrelated to their
    /// names.
    pub(crate) fn scattered() -> Self {
        let desk = Self::new();
        for file in 0..FILES {
            let len = 8_000 + usize::try_from(file * 7919 % 24_000).unwrap();
            desk.write(&name(file, "tree/"), noise(file, len));
        }
        let mut profile: Vec<u64> = (0..FILES).step_by(4).collect();
        profile.sort_by_key(|file| blake3::hash(&file.to_le_bytes()).to_hex());
        let lines: Vec<String> = profile.into_iter().map(|file| name(file, "")).collect();
        desk.write("profile", lines.join("\n"));
        desk.pack("plain.sealift", "--chunk-size 64KiB");
        desk.pack("ordered.sealift", "--chunk-size 64KiB --order profile");
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Returns the exit status of a line, its standard output and its standard error.
    pub(crate) fn run(&self, line: &str) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sealift"));
        command.args(line.split(' ')).current_dir(self.0.path()).env("SOURCE_DATE_EPOCH", "1700000000");
        command.env("HOME", self.path("home")).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("SEALIFT_STATE", self.path("state")).stdin(Stdio::null());
        let done = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    }

    #[track_caller]
    pub(crate) fn good(&self, line: &str) -> String {
        let (status, out, said) = self.run(line);
        assert_eq!(status, Some(0), "{line}: {said}");
        out
    }

    #[track_caller]
    pub(crate) fn refused(&self, line: &str, status: i32, why: &str) {
        let (found, out, said) = self.run(line);
        assert!(found == Some(status) && said.contains(why) && out.is_empty(), "{line}: {found:?}: {said}");
    }

    #[track_caller]
    pub(crate) fn pack(&self, bundle: &str, options: &str) {
        let version = if options.contains("--base") { 2 } else { 1 };
        self.good(&format!("pack tree -o {bundle} --name os --bundle-version {version} --owner 0:0 {options}"));
    }

    #[track_caller]
    pub(crate) fn json(&self, line: &str) -> serde_json::Value {
        serde_json::from_str(&self.good(&format!("simulate {line} --json"))).unwrap()
    }

    /// Returns the orders of a report: as laid out, by path, by hash, one sweep.
    #[track_caller]
    pub(crate) fn orders(&self, line: &str) -> [Order; 4] {
        let report = self.json(line);
        let order = |row: &serde_json::Value| Order {
            name: row["order"].as_str().unwrap().to_owned(),
            seconds: row["simulated_seconds"].as_f64().unwrap(),
            seeks: row["seeks"].as_u64().unwrap(),
            bytes: row["read_bytes"].as_u64().unwrap(),
        };
        let rows: Vec<Order> = report["orders"].as_array().unwrap().iter().map(order).collect();
        rows.try_into().ok().unwrap()
    }
}

pub(crate) fn name(file: u64, before: &str) -> String {
    format!("{before}dir{:02}/file{file:04}", file % 23)
}

/// Returns incompressible bytes.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}
