//! Runs the vectors through the Rust reader in various portions, and checks that checks.md lists every vector and cites existing sections.

use std::collections::BTreeSet;

use sealift::verify::{Depth, verify_opened};
use sealift::{GivenBases, Input, Limits, Progress};
use sealift_format::{Head, Kind, Opened, Recovery, RecoveryHeader, Request, Volume};
use sealift_tests::content::{of_bundle, of_list, of_request};
use sealift_tests::reader::{
    Portions, apply, complete_request, judge, open, read, read_list, read_recovery, read_volumes, walk,
};
use sealift_tests::vector::{
    Check, Vector, folder, load, load_lists, load_recovery, load_requests, load_volumes, names, names_with_content,
};
use sealift_tests::vectors;

fn word<T>(result: Result<T, Kind>) -> String {
    result.map_or_else(|kind| kind.word().into(), |_| "ok".into())
}

#[test]
fn the_reader_gives_what_the_vectors_expect() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut wrong = Vec::new();
    let all = load();
    for vector in &all {
        let path = folder.path().join(&vector.name);
        std::fs::write(&path, &vector.bytes).expect("there is room");
        let opened = read(Input::open(&path).expect("it was written"), vector.check, vector.trust.as_ref());
        let opened = opened.and_then(|opened| apply(opened, vector, &all));
        let content = match &opened {
            Ok(Opened::Whole(bundle)) => Some(of_bundle(bundle)),
            _ => None,
        };
        if content != vector.content {
            wrong.push(format!("{}: the content is another", vector.name));
        }
        let found = word(opened);
        if found != vector.expect {
            wrong.push(format!("{}: expected {}, found {found}", vector.name, vector.expect));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Completes it as `verify --deep --base` does: the bases are files, in any order.
#[test]
fn the_tool_gives_what_the_vectors_expect_over_given_bases() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (all, progress) = (load(), Progress::default());
    let path = |name: &str| folder.path().join(name);
    let mut ran = 0;
    for vector in &all {
        std::fs::write(path(&vector.name), &vector.bytes).expect("there is room");
    }
    for vector in all.iter().filter(|vector| vector.check == Check::Apply) {
        let places = vector.bases.iter().rev().map(|base| path(base).into_os_string()).collect();
        let given = GivenBases { places, limits: Limits::default(), jobs: 2, state: None };
        let verified = Input::open(&path(&vector.name)).and_then(|input| {
            let (input, opened) = input.begin(Limits::default())?.open_any()?;
            let (opened, bases) = given.complete(opened, input.path(), &progress)?;
            verify_opened(input, opened, bases, Depth::Objects, 2, &progress)
        });
        let found = verified.map_or_else(|error| error.word(), |_| "ok");
        assert_eq!(found, vector.expect, "{}", vector.name);
        ran += 1;
    }
    assert!(ran > 50, "{ran}");
}

/// A reader of some of the classes knows from the header which vectors are for it.
#[test]
fn each_vector_needs_what_its_content_has() {
    const CLASSES: [&str; 15] = [
        "core",
        "delta",
        "images",
        "kernel-signatures",
        "lists",
        "lz4",
        "making",
        "ostree",
        "recipes",
        "recovery",
        "requests",
        "trust",
        "volumes",
        "xz",
        "zstd",
    ];
    for vector in load() {
        let needs: Vec<&str> = vector.needs.split(' ').collect();
        assert!(needs[0] == "core" && needs.is_sorted(), "{}: {needs:?}", vector.name);
        assert!(needs.iter().all(|class| CLASSES.contains(class)), "{}: {needs:?}", vector.name);
        let content = vector.content.as_deref().unwrap_or_default();
        for (class, is_needed) in [
            ("delta", vector.check == Check::Apply || content.contains("\n  \"bases\": [")),
            ("images", content.contains("\n  \"images\": [")),
            ("ostree", content.contains("\"kind\":\"ostree\"")),
            ("requests", vector.check == Check::Request),
            ("trust", vector.trust.is_some()),
            ("volumes", vector.check == Check::Volume),
            ("recovery", vector.check == Check::Recovery),
        ] {
            assert!(!is_needed || needs.contains(&class), "{} needs {class}: {needs:?}", vector.name);
        }
        let has_time = vector.trust.as_ref().is_none_or(|trust| trust.now.is_some());
        assert!(has_time, "{}: windows of validity are judged at a time that it does not have", vector.name);
    }
}

/// An installed record begins with a head, followed by other data.
#[test]
fn a_head_is_found_before_whatever_follows() {
    for vector in load().iter().filter(|vector| vector.expect == "ok") {
        let (head, rest) = Head::parse_first(&vector.bytes).expect("it was taken");
        assert_eq!([&head.encode()[..], rest].concat(), vector.bytes, "{}", vector.name);
        let len = vector.bytes.len() - rest.len();
        assert_eq!(Head::parse_first(&vector.bytes[..len]), Ok((head, &[][..])), "{}", vector.name);
        for cut in [32, len - 1] {
            let error = Head::parse_first(&vector.bytes[..cut]).expect_err("it is cut");
            assert_eq!(error.kind(), Kind::Truncated, "{}: {cut} of {len}", vector.name);
        }
    }
}

#[test]
fn requests_are_what_the_vectors_expect() {
    let (all, mut good) = (load(), 0);
    for vector in load_requests() {
        let index = complete_request(&vector, &all).map_err(|error| error.kind());
        assert_eq!(word(index.as_ref().map_err(|kind| *kind)), vector.expect, "{}", vector.name);
        // Accepted bundles re-encode to the same bytes.
        if let Ok(index) = index {
            let request = Request::parse(&vector.bytes, &Limits::default()).expect("it was taken");
            assert_eq!(Some(of_request(&request, &index)), vector.content, "{}", vector.name);
            let frame = sealift_tests::frame::frame(request.outline());
            assert_eq!(request.encode(&frame).expect("it fits"), vector.bytes, "{}", vector.name);
            good += 1;
        }
    }
    assert_eq!(good, 3);
}

#[test]
fn lists_are_what_the_vectors_expect() {
    let mut good = 0;
    for vector in load_lists() {
        let list = read_list(&vector.bytes, vector.trust.as_ref());
        assert_eq!(word(list.as_ref().map_err(|kind| *kind)), vector.expect, "{}", vector.name);
        if let Ok(signed) = list {
            assert_eq!(Some(of_list(&signed)), vector.content, "{}", vector.name);
            assert_eq!(signed.encode(), vector.bytes, "{}", vector.name);
            assert_eq!(signed.list().signed().expect("it fits"), signed.signed(), "{}", vector.name);
            good += 1;
        }
    }
    assert_eq!(good, 5);
}

#[test]
fn volumes_are_what_the_vectors_expect() {
    let all = load_volumes();
    let mut good = 0;
    for vector in &all {
        let content = read_volumes(vector, &all);
        assert_eq!(word(content.as_ref().map_err(|kind| *kind)), vector.expect, "{}", vector.name);
        if content.is_ok() {
            assert_eq!(content.ok(), vector.content, "{}", vector.name);
            let header = Volume::parse(&vector.bytes[..112]).expect("it was taken");
            assert_eq!(header.encode(), vector.bytes[..112], "{}", vector.name);
            good += 1;
        }
    }
    assert_eq!(good, 6);
}

#[test]
fn recovery_files_are_what_the_vectors_expect() {
    let (all, files) = (load_volumes(), load_recovery());
    let all = [all, files.clone()].concat();
    for vector in &files {
        let content = read_recovery(vector, &all);
        assert_eq!(word(content.as_ref().map_err(|kind| *kind)), vector.expect, "{}", vector.name);
        assert_eq!(content.ok(), vector.content, "{}", vector.name);
        if vector.expect == "ok" {
            let header = RecoveryHeader::parse(&vector.bytes[..112]).expect("it was taken");
            let at = 112 + usize::try_from(header.offset).expect("it is small");
            let recovery = Recovery::parse(&vector.bytes[..112], &vector.bytes[at..]).expect("it was taken");
            let (header, geometry) = recovery.encode().expect("it is sound");
            assert!(vector.bytes.starts_with(&header) && vector.bytes[at..].starts_with(&geometry), "{}", vector.name);
        }
    }
    assert_eq!(files.iter().filter(|vector| vector.expect == "ok").count(), 8);
}

/// A reader of bundles takes no volume for one.
#[test]
fn a_volume_is_no_bundle() {
    for vector in load_volumes().iter().filter(|vector| vector.expect == "ok") {
        let error = open(&vector.bytes, &[usize::MAX]).expect_err("it is a volume");
        assert_eq!((&error, error.kind()), (&sealift_format::Error::IsVolume, Kind::Header), "{}", vector.name);
    }
}

/// Returns sizes of portions: all at once, one byte, and a few repeating sequences.
fn portions(vector: &Vector) -> Vec<Vec<usize>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(sealift_tests::bytes::narrow(vector.bytes.len()));
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 57).expect("seven bits") + 1
    };
    let mut all = vec![vec![usize::MAX], vec![1]];
    all.extend((0..3).map(|_| (0..7).map(|_| random()).collect()));
    all
}

#[test]
fn portions_do_not_matter() {
    let all = load();
    for vector in &all {
        let whole = open(&vector.bytes, &[usize::MAX]);
        for sizes in portions(vector) {
            assert_eq!(open(&vector.bytes, &sizes), whole, "{}: portions of {sizes:?}", vector.name);
            // For a pipe the length is unknown, so only parts that are read can be missing or trailing.
            let by_length = vector.check == Check::Open && matches!(vector.expect.as_str(), "truncated" | "trailing");
            if !by_length {
                let input = Input::pipe("pipe", Box::new(Portions::new(&vector.bytes, &sizes)));
                let opened = read(input, vector.check, vector.trust.as_ref());
                let found = word(opened.and_then(|opened| apply(opened, vector, &all)));
                assert_eq!(found, vector.expect, "{}: a pipe in portions of {sizes:?}", vector.name);
            }
        }
    }
}

/// Except for envelopes, which it does not check, and chunks, which it always reads.
#[test]
fn the_walk_gives_what_the_vectors_expect() {
    let all = load();
    for vector in &all {
        let is_about_signatures = vector.trust.is_some() || vector.name.starts_with("signature-");
        if is_about_signatures || vector.check == Check::Open {
            continue;
        }
        for sizes in portions(vector) {
            let opened = walk(&vector.bytes, &sizes, vector.check);
            let found = word(opened.and_then(|opened| apply(opened, vector, &all)));
            assert_eq!(found, vector.expect, "{}: portions of {sizes:?}", vector.name);
        }
    }
}

/// Returns the kind and the vectors of each row of the first two tables of checks.md. The kind of vectors that must be accepted is `ok`.
fn rows_of_checks() -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(folder().join("../checks.md")).expect("the table is there");
    let (tables, _) = text.split_once("\n## What has no vector").expect("it ends with what has none");
    let (rejected, accepted) = tables.split_once("\n## What must be accepted").expect("it has two tables");
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(String::from).collect::<Vec<_>>();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells[..] {
            ["", _, _, kind, names, ""] => (kind.trim_matches('*').into(), quoted(names)),
            ["", _, _, names, ""] => ("ok".into(), quoted(names)),
            _ => panic!("no row: {line}"),
        }
    };
    let rows = |table: &str| table.lines().filter(|line| line.starts_with('|')).skip(2).map(row).collect::<Vec<_>>();
    [rows(rejected), rows(accepted)].concat()
}

#[test]
fn each_vector_stands_in_the_table_of_checks_with_its_kind() {
    let found: Vec<(String, String)> = rows_of_checks()
        .into_iter()
        .flat_map(|(kind, names)| names.into_iter().map(move |name| (name, kind.clone())))
        .collect();
    let mut all: Vec<Vector> = load();
    all.extend(load_requests());
    all.extend(load_lists());
    all.extend(load_volumes());
    all.extend(load_recovery());
    let wanted: BTreeSet<_> = all.into_iter().map(|vector| (vector.name, vector.expect)).collect();
    let listed: BTreeSet<_> = found.iter().cloned().collect();
    let (missing, wrong) = (wanted.difference(&listed), listed.difference(&wanted));
    let (missing, wrong): (Vec<_>, Vec<_>) = (missing.collect(), wrong.collect());
    assert!(missing.is_empty() && wrong.is_empty(), "missing in checks.md: {missing:?}; wrong there: {wrong:?}");
    assert_eq!(found.len(), listed.len(), "a vector stands twice");
}

/// Returns the step of core 11.2 in which the reader rejects a vector, 4 also for step 5; 8 stands for what only the bases reveal, 9 for
/// requests, 10 for lists, 11 for volumes and 12 for recovery files.
fn step(vector: &Vector) -> u8 {
    match vector.check {
        Check::Request => return 9,
        Check::List => return 10,
        Check::Volume => return 11,
        Check::Recovery => return 12,
        _ => {}
    }
    let Ok((head, _)) = Head::parse_first(&vector.bytes) else { return 1 };
    let head_len = u64::try_from(head.encode().len()).expect("it fits");
    if Limits::default().check(head.root()).is_err() || head.root().file_len(head_len).is_err() {
        return 2;
    }
    if judge(&head, vector.trust.as_ref()).is_err() {
        return 3;
    }
    match open(&vector.bytes, &[usize::MAX]).map_err(|error| error.kind()) {
        Err(Kind::Trailing) => 6,
        Err(Kind::Truncated) if u64::try_from(vector.bytes.len()).expect("it fits") >= head.chunks_at() => 6,
        Err(_) => 4,
        Ok(_) if walk(&vector.bytes, &[usize::MAX], Check::Deep).is_err() => 7,
        Ok(_) => 8,
    }
}

#[test]
fn the_table_of_checks_has_the_order_of_the_steps() {
    let mut all = load();
    all.extend(load_requests());
    all.extend(load_lists());
    all.extend(load_volumes());
    all.extend(load_recovery());
    let mut last = 0;
    for (_, names) in rows_of_checks().into_iter().filter(|(kind, _)| kind != "ok") {
        for name in names {
            let vector = all.iter().find(|vector| vector.name == name).expect("another test compares the names");
            let own = step(vector);
            assert!(last <= own, "{name} is rejected in step {own}, and a row above in step {last}");
            last = own;
        }
    }
    assert_eq!(last, 12);
}

/// Each row of checks.md cites a part of the specification and its sections: `core 4.3`, `core 1, 4.3`.
#[test]
fn the_table_of_checks_cites_sections_that_there_are() {
    let read = |name: &str| std::fs::read_to_string(folder().join(format!("../{name}.md"))).expect("the part is there");
    let checks = read("checks");
    let mut cited = BTreeSet::new();
    for line in checks.lines().filter(|line| line.starts_with("| ")) {
        let cell = line.split('|').nth(2).unwrap_or_default().trim();
        let Some((part, sections)) = cell.split_once(' ').filter(|_| cell != "defined in") else { continue };
        cited.extend(sections.split(", ").map(|section| (part, section)));
    }
    assert!(cited.contains(&("core", "11.2")), "{cited:?}");
    for (part, section) in cited {
        let is_heading = |line: &str| {
            let number = line.strip_prefix("## ").or_else(|| line.strip_prefix("### "));
            number
                .and_then(|rest| rest.split_once(' '))
                .is_some_and(|(number, _)| number.trim_end_matches('.') == section)
        };
        assert!(read(part).lines().any(is_heading), "checks.md cites {part} {section}");
    }
}

/// Other projects copy the folder, so it states its version.
#[test]
fn the_folder_has_the_version_of_the_format() {
    let version = std::fs::read_to_string(folder().join("VERSION")).expect("it is there");
    let (format, edition) = version.trim_end().split_once('.').expect("two numbers");
    let wanted: u32 = format.parse().expect("a number");
    assert!(edition.parse::<u32>().is_ok(), "{version}");
    for vector in load().iter().filter(|vector| vector.expect == "ok") {
        assert_eq!(u32::from_le_bytes(vector.bytes[8..12].try_into().expect("4 bytes")), wanted, "{}", vector.name);
    }
}

#[test]
fn the_files_are_those_that_the_builder_makes() {
    let made = vectors::all();
    let line = "run: cargo run -p sealift-tests --bin vectors";
    assert_eq!(made.iter().map(|vector| vector.name.clone()).collect::<Vec<_>>(), names(), "{line}");
    let accepted = made.iter().filter(|vector| vector.expect == "ok").map(|vector| vector.name.clone());
    assert_eq!(accepted.collect::<Vec<_>>(), names_with_content(), "{line}");
    for vector in made {
        let file = std::fs::read(folder().join(format!("{}.vec", vector.name))).expect("it was listed");
        assert!(file == vector.encode(), "{} is not what the builder makes; {line}", vector.name);
        let content = std::fs::read_to_string(folder().join(format!("{}.json", vector.name))).ok();
        assert!(content == vector.content, "{}: its content is not what the builder makes; {line}", vector.name);
    }
}
