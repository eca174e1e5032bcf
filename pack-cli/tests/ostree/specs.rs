//! `ostree:REPO:REF` as a source, as a base and in comparisons.

use std::fs;

use crate::repos::{Repos, write};

const ROOT: &[&str] = &["--owner-uid=0", "--owner-gid=0", "--no-xattrs"];

fn desk() -> Repos {
    let desk = Repos::new();
    fs::create_dir(desk.path("tree")).expect("a folder");
    for repo in ["repo", "a:b"] {
        desk.init(repo, "archive");
        for name in ["os/stable", "os/next"] {
            write(&desk.path("tree/file"), 0o644, name.as_bytes());
            desk.commit(repo, name, "./tree", ROOT);
        }
    }
    desk
}

#[test]
fn a_source_names_one_ref() {
    let desk = desk();
    let refs = |bundle: &str| {
        let fresh = format!("fresh-{bundle}");
        desk.init(&fresh, "archive");
        let done = desk.import(bundle, &fresh);
        done["refs"].as_array().expect("a list").iter().map(|from| from["name"].to_string()).collect::<Vec<_>>()
    };
    for (number, repo) in ["repo", "./repo", "a:b"].into_iter().enumerate() {
        let bundle = format!("{number}.sealift");
        desk.run(&format!("pack ostree:{repo}:os/stable -o {bundle} --name os --bundle-version 1"));
        assert_eq!(refs(&bundle), ["\"os/stable\""], "{repo}");
        desk.run(&format!("pack ostree:{repo}:os/stable --ref os/stable -o {bundle}-2 --name os --bundle-version 1"));
        let said = desk.refused(&format!("pack ostree:{repo}:os/stable --ref os/next -o no.sealift --name os"));
        assert!(said.contains("is not the one in ostree:"), "{said}");
    }
    desk.run("pack ostree:repo:os/stable ostree:a:b:os/next -o two.sealift --name os --bundle-version 1");
    assert_eq!(refs("two.sealift").len(), 2);
    let said = desk.refused("pack ostree:repo:none -o no.sealift --name os");
    assert!(said.contains("no ref \"none\""), "{said}");
    assert!(!desk.path("no.sealift").exists());
}

#[test]
fn a_base_names_one_or_is_the_ref_of_the_source() {
    let desk = desk();
    desk.run("pack ostree:repo:os/stable -o full.sealift --name os --bundle-version 1");
    write(&desk.path("tree/file"), 0o644, b"changed");
    desk.commit("a:b", "os/stable", "./tree", ROOT);
    let digest = |base: &str| {
        let line = "pack ostree:a:b:os/stable -o delta.sealift --name os --bundle-version 2 --allow-unsigned --force";
        desk.run(&format!("{line} --base {base}"));
        let info = desk.command("info delta.sealift --json").output().expect("sealift runs").stdout;
        let info: serde_json::Value = serde_json::from_slice(&info).expect("it is JSON");
        let [base] = &info["delta"]["bases"].as_array().expect("a list")[..] else { panic!("{info}") };
        base["index_digest"].as_str().expect("a digest").to_owned()
    };
    let by_bundle = digest("full.sealift");
    assert!(by_bundle == digest("ostree:repo:os/stable"), "a commit is the base that its bundle is");
    assert!(by_bundle == digest("ostree:repo"), "the ref of the same name is meant");
    let said =
        desk.refused("pack ostree:a:b:os/stable -o x.sealift --name os --bundle-version 2 --base ostree:none:os");
    assert!(said.contains("none"), "{said}");
    desk.run("request ostree:repo:os/stable -o request");
}

#[test]
fn sides_and_audits_name_one() {
    let desk = desk();
    let differs = "diff ostree:repo:os/stable ostree:repo:os/next --exit-code";
    let output = desk.command(differs).output().expect("sealift runs");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    desk.run("diff ostree:repo:os/stable ostree:a:b:os/stable --exit-code");
    desk.run("diff ostree:repo:os/stable ostree:repo:os/next --exit-code --exclude file");
    let said = desk.refused("diff ostree:repo tree");
    assert!(said.contains("it has several refs: "), "{said}");
    desk.run("pack ostree:repo -o os.sealift --name os --bundle-version 1");
    desk.run("diff os.sealift ostree:repo:os/next --ref os/next --exit-code");
    desk.init_with("target", "bare-user-only", "os.sealift");
    desk.run("audit ostree:target:os/stable --allow-unsigned");
    let said = desk.refused("audit ostree:target:os/stable --ref os/next --allow-unsigned");
    assert!(said.contains("is not the one in ostree:"), "{said}");
}
