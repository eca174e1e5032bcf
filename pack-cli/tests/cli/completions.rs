//! What bash offers to complete the words that were typed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// Calls the completion function that the script registered, as bash does when Tab is pressed.
const TAB: &str = r#"
source "$1" && shift || exit
registered=$(complete -p sealift) || exit
[[ $registered == *'-o default'* ]] || exit
function=${registered#*-F }
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"${function%% *}" sealift "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}" 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
"#;

fn sealift(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sealift")).args(arguments).output().expect("sealift runs")
}

/// A folder with the script and some files.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = sealift(&["completions", "bash"]);
    assert!(script.status.success());
    fs::write(folder.path().join("script"), script.stdout).expect("a new file");
    for name in ["os.sealift", "os two.sealift"] {
        fs::write(folder.path().join(name), "").expect("a new file");
    }
    folder
}

fn complete(folder: &Path, words: &[&str]) -> Vec<String> {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", TAB, "bash", "./script"]).args(words).current_dir(folder);
    let done = bash.output().expect("bash runs");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).expect("our names are UTF-8");
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn verbs_options_and_files_are_completed() {
    let folder = folder();
    let cases: [(&[&str], &[&str]); 13] = [
        (&["sealift", "ver"], &["verify"]),
        (&["sealift", "pack", "--one"], &["--one-file-system"]),
        (&["sealift", "pack", "--clamp"], &["--clamp-mtime"]),
        (&["sealift", "verify", "--progress", "j"], &["json"]),
        (&["sealift", "key", ""], &["generate"]),
        (&["sealift", "trust", "list", "--thr"], &["--threshold"]),
        (&["sealift", "completions", "po"], &["powershell"]),
        // Names of files are completed whole, including their spaces.
        (&["sealift", "verify", "--trust", "os"], &["os.sealift", "os two.sealift"]),
        // No words of ours: bash itself completes files.
        (&["sealift", "verify", ""], &[]),
        (&["sealift", "verify", "--deep", "os"], &[]),
        // A value that is not a file.
        (&["sealift", "pack", "--name", "os"], &["os"]),
        // Hidden verbs, and verbs that this program does not have.
        (&["sealift", "man"], &[]),
        (&["sealift", "por"], if cfg!(feature = "portal") { &["portal"] } else { &[] }),
    ];
    for (words, expected) in cases {
        let mut found = complete(folder.path(), words);
        found.sort_by_key(String::len);
        assert_eq!(found, expected, "{words:?}");
    }
}

#[test]
fn every_verb_is_offered_and_nothing_else() {
    let help = String::from_utf8(sealift(&["--help"]).stdout).expect("UTF-8");
    let (verbs, _) = help.split_once("\nOptions\n").expect("the options");
    let mut verbs: Vec<&str> = verbs.lines().filter_map(verb).collect();
    let mut found = complete(folder().path(), &["sealift", ""]);
    verbs.sort_unstable();
    found.sort();
    assert_eq!(found, verbs);
}

/// Returns the verb that a line of the help names.
fn verb(line: &str) -> Option<&str> {
    let name = line.strip_prefix("  ")?.split(' ').next()?;
    name.starts_with(|first: char| first.is_ascii_lowercase()).then_some(name)
}

#[test]
fn every_shell_has_a_script() {
    for shell in SHELLS {
        let script = sealift(&["completions", shell]);
        let text = String::from_utf8(script.stdout).expect("UTF-8");
        assert!(script.status.success() && text.contains("one-file-system"), "{shell}");
        assert!(!text.contains("manual"), "{shell} offers what the help hides");
    }
    assert_eq!(sealift(&["completions", "sh"]).status.code(), Some(2));
}
