//! `--progress json`: every line of real output conforms to docs/progress.schema.json, and the last one has the outcome.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

const SCHEMA: &str = include_str!("../../../docs/progress.schema.json");

/// Checks `value` against `schema`, and returns the reason if it does not conform. Supports the keywords that this schema uses; any other is an
/// error.
fn check(schema: &Value, value: &Value) -> Result<(), String> {
    for (word, rule) in schema.as_object().ok_or("a schema is an object")? {
        let holds = match word.as_str() {
            "$schema" | "title" | "description" | "examples" => true,
            "const" => value == rule,
            "enum" => rule.as_array().is_some_and(|all| all.contains(value)),
            "minimum" => value.as_f64() >= rule.as_f64(),
            "type" => match rule.as_str() {
                Some("object") => value.is_object(),
                Some("string") => value.is_string(),
                Some("integer") => value.is_u64() || value.is_i64(),
                Some("number") => value.is_number(),
                _ => return Err(format!("the type {rule} is unknown here")),
            },
            "required" => {
                rule.as_array().is_some_and(|names| names.iter().all(|n| value.get(n.as_str().unwrap()).is_some()))
            }
            "properties" => {
                for (name, schema) in rule.as_object().ok_or("properties are an object")? {
                    value.get(name).map_or(Ok(()), |value| check(schema, value).map_err(|e| format!("{name}: {e}")))?;
                }
                true
            }
            _ => return Err(format!("the word {word} is unknown here")),
        };
        if !holds {
            return Err(format!("{value} is against {word} {rule}"));
        }
    }
    Ok(())
}

/// Runs sealift with `--progress json`, and returns its lines of progress.
fn lines(folder: &Path, arguments: &[&str], success: bool) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sealift"));
    command.current_dir(folder).args(arguments).args(["--json", "--progress", "json"]).stdin(Stdio::null());
    command.env("SOURCE_DATE_EPOCH", "1700000000").env("SEALIFT_STATE", folder.join("state"));
    let done = command.output().unwrap();
    let text = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.success(), success, "{arguments:?}: {text}");
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.filter(|line: &Value| line.get("phase").is_some()).collect();
    let known = schema["properties"].as_object().unwrap();
    for line in &lines {
        check(&schema, line).unwrap_or_else(|error| panic!("{arguments:?}: {line}: {error}"));
        assert!(known["phase"]["examples"].as_array().unwrap().contains(&line["phase"]), "{line}");
        for field in line.as_object().unwrap().keys() {
            assert!(known.contains_key(field), "{field} is in no schema");
        }
    }
    let ends: Vec<bool> = lines.iter().map(|line| line.get("outcome").is_some()).collect();
    assert_eq!(ends.iter().position(|end| *end), Some(ends.len() - 1), "{arguments:?}: {text}");
    check_rules(&lines);
    lines
}

/// Checks the rules of docs/progress.md about the order of lines.
fn check_rules(lines: &[Value]) {
    const COUNTS: [&str; 5] = ["bytes", "bytes_total", "files", "files_total", "files_kept"];
    let first = |at: usize| at == 0 || lines[at - 1]["phase"] != lines[at]["phase"];
    for (at, line) in lines.iter().enumerate() {
        if first(at) {
            assert_eq!((&line["bytes"], &line["files"]), (&0.into(), &0.into()), "a phase begins at 0: {line}");
            continue;
        }
        let before = &lines[at - 1];
        for count in COUNTS {
            assert!(line[count].as_u64() >= before[count].as_u64(), "{count} falls from {before} to {line}");
        }
        let pause = line["seconds"].as_f64().unwrap() - before["seconds"].as_f64().unwrap();
        assert!(pause < 2.0, "{before}, {line}"); // half a second, plus time for a busy machine
    }
}

fn phases(lines: &[Value]) -> Vec<&str> {
    let mut phases: Vec<&str> = lines.iter().map(|line| line["phase"].as_str().unwrap()).collect();
    phases.dedup();
    phases
}

fn last<'a>(lines: &'a [Value], field: &str) -> &'a Value {
    &lines.last().unwrap()[field]
}

#[test]
fn progress_is_as_its_schema_says() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("tree")).unwrap();
    for number in 0..20 {
        fs::write(folder.join(format!("tree/{number}")), vec![number; 10_000]).unwrap();
    }
    let trust = ["--allow-unsigned", "--state", "state"];
    let with = |arguments: &[&'static str]| [arguments, &trust].concat();

    let packed = lines(folder, &["pack", "tree", "-o", "a.sealift", "--name", "a"], true);
    assert_eq!((last(&packed, "phase"), last(&packed, "outcome")), (&"finishing".into(), &"done".into()));
    assert_eq!(phases(&packed), ["starting", "listing", "packing", "finishing"]);
    let unpacked = lines(folder, &with(&["unpack", "a.sealift", "target"]), true);
    assert_eq!(phases(&unpacked), ["starting", "unpacking", "syncing"]);

    fs::write(folder.join("tree/3"), "new").unwrap();
    fs::copy(folder.join("tree/4"), folder.join("tree/copy")).unwrap();
    lines(folder, &["pack", "tree", "-o", "b.sealift", "--name", "a"], true);
    let delta = with(&["pack", "tree", "-o", "delta.sealift", "--force", "--name", "a", "--base", "a.sealift"]);
    assert_eq!(phases(&lines(folder, &delta, true)), ["starting", "listing", "packing", "encoding", "finishing"]);
    let update = with(&["unpack", "b.sealift", "target", "--update"]);
    let looked = lines(folder, &[&update[..], &["--dry-run"]].concat(), true);
    assert_eq!(last(&looked, "files_kept"), &19);
    let updated = lines(folder, &update, true);
    assert_eq!((last(&updated, "files_kept"), last(&updated, "outcome")), (&19.into(), &"done".into()));
    assert_eq!(phases(&updated), ["starting", "listing", "copying", "unpacking", "syncing", "moving", "syncing"]);
    let moved = updated.iter().rfind(|line| line["phase"] == "moving").unwrap();
    assert_eq!((&moved["files"], &moved["files_total"]), (&2.into(), &2.into()));
    let rehashed = lines(folder, &[&update[..], &["--rehash"]].concat(), true);
    assert!(phases(&rehashed).contains(&"hashing"), "{rehashed:?}");
    lines(folder, &with(&["audit", "target", "--ignore", "privileged"]), true);

    let verified = lines(folder, &with(&["verify", "b.sealift"]), true);
    assert!(last(&verified, "bytes").as_u64() > Some(0), "{verified:?}");
    assert_eq!(last(&verified, "bytes"), last(&verified, "bytes_total"));

    let mut bytes = fs::read(folder.join("b.sealift")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(folder.join("b.sealift"), bytes).unwrap();
    let refused = lines(folder, &with(&["verify", "b.sealift"]), false);
    assert_eq!(last(&refused, "outcome"), "failed");
}

#[test]
fn that_the_files_needed_first_are_written_is_told_when_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("tree")).unwrap();
    let noise = |seed: u8| {
        let mut bytes = vec![0; 300_000];
        blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
        bytes
    };
    for number in 0..20 {
        fs::write(folder.join(format!("tree/{number}")), noise(number)).unwrap();
    }
    fs::write(folder.join("order"), "7\n3\n").unwrap();
    let trust = ["--allow-unsigned", "--state", "state", "--jobs", "1"];
    let with = |arguments: &[&'static str]| [arguments, &trust].concat();
    // Returns how many bytes had been written when `first_written` first appeared.
    let told = |lines: &[Value]| {
        let told: Vec<bool> = lines.iter().map(|line| line.get("first_written").is_some()).collect();
        let first = told.iter().position(|told| *told)?;
        assert!(told[first..].iter().all(|told| *told), "it stays true: {lines:?}");
        assert_eq!(lines[first]["phase"], "unpacking");
        let count = |name: &str| lines[first][name].as_u64().unwrap();
        Some((count("bytes"), count("bytes_total")))
    };
    lines(folder, &["pack", "tree", "-o", "a.sealift", "--name", "a", "--order", "order"], true);
    let (written, all) = told(&lines(folder, &with(&["unpack", "a.sealift", "target"]), true)).unwrap();
    assert!(written == 600_000 && all == 6_000_000, "{written} of {all}");
    fs::write(folder.join("tree/3"), noise(33)).unwrap();
    fs::write(folder.join("tree/9"), noise(39)).unwrap();
    let base = ["--base", "a.sealift", "--allow-unsigned"];
    lines(folder, &[&["pack", "tree", "-o", "d.sealift", "--name", "a"], &base[..]].concat(), true);
    let (written, all) = told(&lines(folder, &with(&["unpack", "d.sealift", "target", "--update"]), true)).unwrap();
    assert!((300_000..350_000).contains(&written) && all >= 600_000, "{written} of {all}");
    // In a new directory, the parts that the base has are copied before.
    let new = ["unpack", "d.sealift", "new", "--base", "a.sealift"];
    let seen = lines(folder, &with(&new), true);
    let (written, all) = told(&seen).unwrap();
    assert!((300_000..350_000).contains(&written) && all >= 600_000, "{written} of {all}");
    assert_eq!(phases(&seen), ["starting", "hashing", "copying", "unpacking", "copying", "syncing"]);
    // A delta that changes nothing in the hot set.
    fs::write(folder.join("tree/9"), noise(49)).unwrap();
    let base = ["--base", "target", "--allow-unsigned"];
    lines(folder, &[&["pack", "tree", "-o", "e.sealift", "--name", "a"], &base[..]].concat(), true);
    let seen = lines(folder, &with(&["unpack", "e.sealift", "target", "--update"]), true);
    assert_eq!(told(&seen).unwrap().0, 0);
    // With the hot set at the end of the file, it is still written first.
    let end = ["pack", "tree", "-o", "end.sealift", "--name", "a", "--order", "order", "--zone", "end"];
    lines(folder, &end, true);
    assert_eq!(told(&lines(folder, &with(&["unpack", "end.sealift", "third"]), true)), Some((600_000, 6_000_000)));
    lines(folder, &["pack", "tree", "-o", "plain.sealift", "--name", "a"], true);
    assert_eq!(told(&lines(folder, &with(&["unpack", "plain.sealift", "other"]), true)), None);
    assert_eq!(told(&lines(folder, &["verify", "a.sealift", "--deep", "--allow-unsigned"], true)), None);
}

#[test]
fn what_is_stopped_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("tree")).unwrap();
    let step = |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    let noise = std::iter::successors(Some(1), step).map(|state| state.to_le_bytes()[7]);
    fs::write(folder.join("tree/file"), noise.take(12_000_000).collect::<Vec<u8>>()).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sealift"))
        .args(["pack", "tree", "-o", "b.sealift", "--level", "22", "--jobs", "1", "--progress", "json", "--json"])
        .current_dir(folder)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(stderr.any(|line| line.unwrap().contains("\"packing\"")), "it ended");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let rest: Vec<Value> = stderr.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    let outcomes = rest.iter().filter_map(|line| line.get("outcome")).collect::<Vec<_>>();
    assert_eq!(outcomes, ["cancelled"], "{rest:?}");
    assert_eq!(last(&rest, "error")["kind"], "cancelled");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "something is left beside the tree");
}

#[test]
fn the_checker_refuses_what_is_wrong() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let good =
        r#"{"v":1,"phase":"packing","bytes":0,"bytes_total":0,"files":0,"files_total":0,"files_kept":0,"seconds":0.1}"#;
    let checked = |from: &str, to: &str| check(&schema, &serde_json::from_str(&good.replace(from, to)).unwrap());
    assert_eq!(checked("", ""), Ok(()));
    for (from, to) in [
        (r#""v":1"#, r#""v":2"#),
        (r#""packing""#, "1"),
        (r#""seconds""#, r#""outcome":"well","seconds""#),
        (r#""bytes":0,"#, ""),
        (r#""bytes":0"#, r#""bytes":-1"#),
        (r#""files":0"#, r#""files":"0""#),
    ] {
        assert!(checked(from, to).is_err(), "{to}");
    }
}
