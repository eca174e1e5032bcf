//! Each file and folder of the repository that a page for contributors names exists.

use std::path::Path;

use super::machine::repository;

/// The pages. Paths in them are relative to the repository, or to one of the folders beside the page's name.
const PAGES: &[(&str, &[&str])] = &[
    ("CONTRIBUTING.md", &[]),
    ("SECURITY.md", &[]),
    (
        "docs/architecture.md",
        &[
            "format/src",
            "verify/src",
            "container/src",
            "wasm/src",
            "wasm/inside/src",
            "wasm/npm/src",
            "wasm/npm/src/page",
            "store/src",
            "pack-cli/src",
        ],
    ),
    ("README.md", &[]),
];

/// Returns whether a word in backquotes is a path that must exist: a folder with its slash, or a file by its extension.
fn is_path(word: &str) -> bool {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    let endings = ["/", ".rs", ".js", ".md", ".toml"];
    is_plain && !word.starts_with('/') && endings.iter().any(|ending| word.ends_with(ending))
}

/// Returns the words in backquotes, except those in fenced blocks.
fn words(page: &str) -> Vec<&str> {
    let text = page.split("```").step_by(2);
    text.flat_map(|text| text.split('`').skip(1).step_by(2)).collect()
}

fn is_there(folders: &[&str], word: &str) -> bool {
    let top = repository();
    top.join(word).exists() || folders.iter().any(|folder| top.join(folder).join(word).exists())
}

#[test]
fn what_contributors_are_sent_to_is_there() {
    for (page, folders) in PAGES {
        let text = super::read(page);
        let named: Vec<_> = words(&text).into_iter().filter(|word| is_path(word)).collect();
        let missing: Vec<_> = named.iter().filter(|word| !is_there(folders, word)).collect();
        assert!(missing.is_empty(), "{page} names what is not there: {missing:?}");
        assert!(!named.is_empty() || *page == "README.md", "{page} names nothing");
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    for (page, _) in PAGES {
        let folder = repository().join(page).parent().map(Path::to_owned).unwrap();
        let text = super::read(page);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for link in links.filter(|link| !link.is_empty() && !link.contains("://")) {
            assert!(folder.join(link).exists(), "{page} links to {link}");
        }
    }
}
