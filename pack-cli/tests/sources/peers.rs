//! Archives that GNU tar and bsdtar make of a directory.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use sealift::source::{
    DirectoryOptions, Exclude, MetadataOptions, ModeRules, OpenCache, OwnerRule, Source, SourceOptions,
};
use sealift_desk::{can_chown, set_mtime, skipped};

use super::archives::*;
use super::trees::*;

#[test]
fn gnu_tar_of_a_directory_is_the_directory() {
    let scratch = Scratch::new();
    make_plain(&scratch.tree());
    let expected = items(&directory(&scratch.tree()));
    for format in ["--format=v7", "--format=ustar", "--format=gnu", "--format=oldgnu"] {
        compare(&reduced(expected.clone(), false, false), &scratch.packed("tar", &[format]), format);
    }
    make_special(&scratch.tree());
    let expected = items(&directory(&scratch.tree()));
    for format in ["--format=ustar", "--format=gnu"] {
        compare(&reduced(expected.clone(), false, false), &scratch.packed("tar", &[format]), format);
    }
    make_extended(&scratch.tree());
    make_xattrs(&scratch.tree());
    let expected = items(&directory(&scratch.tree()));
    for arguments in [&["--format=gnu"][..], &["--format=gnu", "-S"], &["--format=oldgnu", "-S"]] {
        let found = scratch.packed("tar", arguments);
        compare(&reduced(expected.clone(), false, false), &found, &format!("{arguments:?}"));
    }
    for sparse in ["--sparse-version=0.0", "--sparse-version=0.1", "--sparse-version=1.0", "--no-recursion"] {
        let mut arguments = vec!["--format=posix", "--xattrs", "--xattrs-include=*"];
        if sparse != "--no-recursion" {
            arguments.extend(["-S", sparse]);
        }
        compare(&expected, &scratch.packed("tar", &arguments), sparse);
    }
}

#[test]
fn bsdtar_of_a_directory_is_the_directory() {
    if Command::new("bsdtar").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skipped("needs bsdtar (Debian: libarchive-tools)");
    }
    let scratch = Scratch::new();
    make_plain(&scratch.tree());
    make_special(&scratch.tree());
    let expected = items(&directory(&scratch.tree()));
    for format in ["ustar", "gnutar"] {
        let found = scratch.packed("bsdtar", &["--format", format]);
        compare(&reduced(expected.clone(), false, false), &found, format);
    }
    make_extended(&scratch.tree());
    // libarchive writes a fraction before 1970 as -2.5, where GNU tar writes -1.5.
    set_mtime(&scratch.tree().join("extended/early"), -2, 0);
    make_xattrs(&scratch.tree());
    let expected = items(&directory(&scratch.tree()));
    compare(&expected, &scratch.packed("bsdtar", &["--format", "pax", "--xattrs"]), "pax");
}

#[test]
fn options_hold_for_every_kind() {
    let scratch = Scratch::new();
    make_plain(&scratch.tree());
    make_xattrs(&scratch.tree());
    run("tar", &["--format=posix", "--xattrs"], &scratch.tree(), &scratch.archive());
    let directory = DirectoryOptions {
        exclude: Some(Exclude::new(["/a-first", "e/", "*.o", "/d/long", "!none"].into_iter()).expect("patterns")),
        ..DirectoryOptions::default()
    };
    let metadata = MetadataOptions {
        owner: Some((5, 6)),
        owner_map: vec![OwnerRule::Uid { from: 1234, to: 0 }],
        modes: ModeRules::default(),
        mtime_max: Some(1_000_000_000),
    };
    let options = SourceOptions { directory, metadata, ..without_spool() };
    let open = |spec: &OsStr| items(&Source::open_spec(spec, &options, 2).expect("a source"));
    let of_directory = open(scratch.tree().as_os_str());
    let mut spec = OsString::from("tar:");
    spec.push(scratch.archive());
    compare(&of_directory, &open(&spec), "tar:");
    assert!(!of_directory.contains_key(&b"a-first"[..]) && !of_directory.contains_key(&b"d/e"[..]));
    // The remaining name has the content of the one that was left out.
    assert_eq!(of_directory[&b"d/another"[..]].content.as_deref(), Some(&[0][..]));
    for item in of_directory.values() {
        assert!(item.metadata.uid == 5 || (can_chown() && item.metadata.uid == 0));
        assert!(item.metadata.gid == 6 && item.metadata.mtime <= 1_000_000_000);
    }
    let file = open(scratch.tree().join("d/long").as_os_str());
    assert_eq!(file.keys().collect::<Vec<_>>(), [&b""[..], b"long"]);
    assert!(file.values().all(|item| item.metadata.gid == 6));
}

#[test]
fn large_sizes_are_told_by_binary_numbers_and_by_records() {
    let scratch = Scratch::new();
    let len = 9 << 30;
    for by_record in [false, true] {
        let file = File::create(scratch.archive()).expect("made");
        let mut head = Vec::new();
        if by_record {
            head.extend(pax(&[(b"size", b"9663676416")]));
        }
        head.extend(header(b"large", b'0', if by_record { 0 } else { len }));
        let begin = u64::try_from(head.len()).expect("small");
        file.write_all_at(&head, 0).expect("written");
        file.write_all_at(b"end", begin + len - 3).expect("written");
        file.write_all_at(&member(b"next", b'0', b"content"), begin + len).expect("written");
        file.set_len(begin + len + 2048).expect("grown");
        let source = open_tar(&scratch.archive(), &without_spool()).expect("a source");
        assert_eq!((source.content_len(0), source.content_len(1)), (len, 7));
        let content = source.open(0, &mut OpenCache::default()).expect("opened");
        let mut bytes = [1; 5];
        content.read_at(&mut bytes, len - 5).expect("read");
        assert_eq!(&bytes, b"\0\0end");
        assert_eq!(read(&source, 1, &mut OpenCache::default()).0, b"content");
    }
    // Returns a sparse file of this size, as GNU tar writes it.
    fs::create_dir(scratch.tree()).expect("made");
    make_sparse(&scratch.tree().join("large"), &[(len - 8192, 4096)], len);
    for format in ["--format=gnu", "--format=posix"] {
        run("tar", &["-S", format], &scratch.tree(), &scratch.archive());
        let source = open_tar(&scratch.archive(), &without_spool()).expect("a source");
        let mut bytes = [9; 2];
        let content = source.open(0, &mut OpenCache::default()).expect("opened");
        content.read_at(&mut bytes, len - 8193).expect("read");
        assert_eq!((source.content_len(0), bytes), (len, [0, 1]));
    }
}
