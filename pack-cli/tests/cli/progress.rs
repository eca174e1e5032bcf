//! `--progress json`: every line of real output conforms to docs/progress.schema.json, and the last one has the outcome.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use sealift_desk::{Desk, noise};
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
fn lines(desk: &Desk, run: &str, success: bool) -> Vec<Value> {
    let done = desk.command(run).args(["--json", "--progress", "json"]).output().unwrap();
    let text = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.success(), success, "{run}: {text}");
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.filter(|line: &Value| line.get("phase").is_some()).collect();
    let known = schema["properties"].as_object().unwrap();
    for line in &lines {
        check(&schema, line).unwrap_or_else(|error| panic!("{run}: {line}: {error}"));
        assert!(known["phase"]["examples"].as_array().unwrap().contains(&line["phase"]), "{line}");
        for field in line.as_object().unwrap().keys() {
            assert!(known.contains_key(field), "{field} is in no schema");
        }
    }
    let ends: Vec<bool> = lines.iter().map(|line| line.get("outcome").is_some()).collect();
    assert_eq!(ends.iter().position(|end| *end), Some(ends.len() - 1), "{run}: {text}");
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
    let desk = Desk::new();
    for number in 0..20 {
        desk.write(&format!("tree/{number}"), vec![number; 10_000]);
    }

    let packed = lines(&desk, "pack tree -o a.sealift --name a", true);
    assert_eq!((last(&packed, "phase"), last(&packed, "outcome")), (&"finishing".into(), &"done".into()));
    assert_eq!(phases(&packed), ["starting", "listing", "packing", "finishing"]);
    let unpacked = lines(&desk, "unpack a.sealift target --allow-unsigned", true);
    assert_eq!(phases(&unpacked), ["starting", "unpacking", "syncing"]);

    desk.write("tree/3", "new");
    fs::copy(desk.path("tree/4"), desk.path("tree/copy")).unwrap();
    lines(&desk, "pack tree -o b.sealift --name a", true);
    let delta = "pack tree -o delta.sealift --force --name a --base a.sealift --allow-unsigned";
    assert_eq!(phases(&lines(&desk, delta, true)), ["starting", "listing", "packing", "encoding", "finishing"]);
    let update = "unpack b.sealift target --allow-unsigned --update";
    let looked = lines(&desk, &format!("{update} --dry-run"), true);
    assert_eq!(last(&looked, "files_kept"), &19);
    let updated = lines(&desk, update, true);
    assert_eq!((last(&updated, "files_kept"), last(&updated, "outcome")), (&19.into(), &"done".into()));
    assert_eq!(phases(&updated), ["starting", "listing", "copying", "unpacking", "syncing", "moving", "syncing"]);
    let moved = updated.iter().rfind(|line| line["phase"] == "moving").unwrap();
    assert_eq!((&moved["files"], &moved["files_total"]), (&2.into(), &2.into()));
    let rehashed = lines(&desk, &format!("{update} --rehash"), true);
    assert!(phases(&rehashed).contains(&"hashing"), "{rehashed:?}");
    lines(&desk, "audit target --ignore privileged --allow-unsigned", true);

    let verified = lines(&desk, "verify b.sealift --allow-unsigned", true);
    assert!(last(&verified, "bytes").as_u64() > Some(0), "{verified:?}");
    assert_eq!(last(&verified, "bytes"), last(&verified, "bytes_total"));

    let mut bytes = desk.read("b.sealift");
    *bytes.last_mut().unwrap() ^= 1;
    desk.write("b.sealift", bytes);
    let refused = lines(&desk, "verify b.sealift --allow-unsigned", false);
    assert_eq!(last(&refused, "outcome"), "failed");
}

#[test]
fn that_the_files_needed_first_are_written_is_told_when_they_are() {
    let desk = Desk::new();
    for number in 0..20 {
        desk.write(&format!("tree/{number}"), noise(number, 300_000));
    }
    desk.write("order", "7\n3\n");
    let unpacked = |line: &str| lines(&desk, &format!("unpack {line} --allow-unsigned --jobs 1"), true);
    // Returns how many bytes had been written when `first_written` first appeared.
    let told = |lines: &[Value]| {
        let told: Vec<bool> = lines.iter().map(|line| line.get("first_written").is_some()).collect();
        let first = told.iter().position(|told| *told)?;
        assert!(told[first..].iter().all(|told| *told), "it stays true: {lines:?}");
        assert_eq!(lines[first]["phase"], "unpacking");
        let count = |name: &str| lines[first][name].as_u64().unwrap();
        Some((count("bytes"), count("bytes_total")))
    };
    lines(&desk, "pack tree -o a.sealift --name a --order order", true);
    let (written, all) = told(&unpacked("a.sealift target")).unwrap();
    assert!(written == 600_000 && all == 6_000_000, "{written} of {all}");
    desk.write("tree/3", noise(33, 300_000));
    desk.write("tree/9", noise(39, 300_000));
    lines(&desk, "pack tree -o d.sealift --name a --base a.sealift --allow-unsigned", true);
    let (written, all) = told(&unpacked("d.sealift target --update")).unwrap();
    assert!((300_000..350_000).contains(&written) && all >= 600_000, "{written} of {all}");
    // In a new directory, the parts that the base has are copied before.
    let seen = unpacked("d.sealift new --base a.sealift");
    let (written, all) = told(&seen).unwrap();
    assert!((300_000..350_000).contains(&written) && all >= 600_000, "{written} of {all}");
    assert_eq!(phases(&seen), ["starting", "hashing", "copying", "unpacking", "copying", "syncing"]);
    // A delta that changes nothing in the hot set.
    desk.write("tree/9", noise(49, 300_000));
    lines(&desk, "pack tree -o e.sealift --name a --base target --allow-unsigned", true);
    let seen = unpacked("e.sealift target --update");
    assert_eq!(told(&seen).unwrap().0, 0);
    // With the hot set at the end of the file, it is still written first.
    lines(&desk, "pack tree -o end.sealift --name a --order order --zone end", true);
    assert_eq!(told(&unpacked("end.sealift third")), Some((600_000, 6_000_000)));
    lines(&desk, "pack tree -o plain.sealift --name a", true);
    assert_eq!(told(&unpacked("plain.sealift other")), None);
    assert_eq!(told(&lines(&desk, "verify a.sealift --deep --allow-unsigned", true)), None);
}

#[test]
fn what_is_stopped_says_so() {
    let desk = Desk::new();
    desk.write("tree/file", noise(1, 12_000_000));
    let mut pack = desk.command("pack tree -o b.sealift --level 22 --jobs 1 --progress json --json");
    let mut child = pack.stdout(Stdio::null()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(stderr.any(|line| line.unwrap().contains("\"packing\"")), "it ended");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let rest: Vec<Value> = stderr.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    let outcomes = rest.iter().filter_map(|line| line.get("outcome")).collect::<Vec<_>>();
    assert_eq!(outcomes, ["cancelled"], "{rest:?}");
    assert_eq!(last(&rest, "error")["kind"], "cancelled");
    assert_eq!(desk.names(""), ["tree"], "something is left beside it");
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
