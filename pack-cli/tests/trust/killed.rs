//! If signing is killed, the bundle has its old signatures or its new ones.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use sealift::trust::KeyId;
use sealift::trust::sign::{SignChange, sign_bundle};
use sealift::{Error, Input, Progress};
use sealift_desk::noise;
use sealift_format::Limits;

use crate::keyring::{Keyring, head_of, options};

/// The variable that tells the child where the folder is.
const FOLDER: &str = "SEALIFT_TEST_FOLDER";

#[test]
fn it_always_verifies() {
    let desk = Keyring::new();
    // Large enough to be killed while it is copied, and incompressible.
    desk.write("tree/noise", noise(1, 8 << 20));
    desk.trust(&["old", "new"]);
    let bundle = desk.signed(7, &["old"]);
    fs::rename(&bundle, desk.path("bundle")).expect("it can be renamed");
    let bundle = desk.path("bundle");
    let old = desk.public_key("old").id();
    let mut seen = [0, 0];
    for round in 0..20 {
        let mut child = Command::new(env::current_exe().expect("this program"))
            .args(["--exact", "killed::signs_until_it_is_killed", "--ignored", "--nocapture"])
            .env(FOLDER, desk.path(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this program starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        assert!(output.lines().map_while(Result::ok).any(|line| line.contains("signing")), "the child signs");
        std::thread::sleep(Duration::from_micros(round * 3_700 % 41_000));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let signers = verify(&desk, &bundle);
        assert!(signers.contains(&old), "round {round}");
        seen[signers.len() - 1] += 1;
    }
    println!("killed with the old signatures {} times, with the new ones {} times", seen[0], seen[1]);
    desk.sign(&bundle, &["old", "new"]);
    let left = fs::read_dir(desk.path("")).expect("a folder").flatten();
    let partial = |name: &std::ffi::OsStr| name.to_string_lossy().contains("partial");
    assert_eq!(left.filter(|entry| partial(&entry.file_name())).count(), 0, "a killed run's rest is cleared");
}

/// Reads the whole bundle, and returns the keys that signed it.
fn verify(desk: &Keyring, bundle: &Path) -> Vec<KeyId> {
    let guard = desk.guard(&options()).expect("good files");
    let mut input = Input::open(bundle).expect("a bundle");
    let opened = input.open_bundle(Limits::default()).expect("a sound bundle");
    let mut stored = Vec::new();
    for chunk in &opened.layout.chunks {
        input.read_chunk(&opened.head, chunk, &mut stored).expect("a whole file");
        assert_eq!(blake3::hash(&stored).as_bytes(), &chunk.digest);
    }
    let verdict = guard.judge(&opened.head).expect("it is trusted");
    verdict.signers.iter().map(|signer| signer.key).collect()
}

#[test]
#[ignore = "the child of the test above"]
fn signs_until_it_is_killed() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else { return };
    let run = || -> Result<(), Error> {
        let key = sealift::trust::sign::Signer::open(&folder.join("new"), &|_| Err(Error::Cancelled))?;
        let (bundle, id) = (folder.join("bundle"), key.public_key().id());
        let keys = [key];
        loop {
            let has_it = head_of(&bundle).envelopes().count() > 1;
            println!("signing");
            let change = match has_it {
                true => SignChange { remove: &[id], ..SignChange::default() },
                false => SignChange { keys: &keys, ..SignChange::default() },
            };
            sign_bundle(&bundle, &change, &Progress::default())?;
        }
    };
    run().expect("it only ends when it is killed");
}
