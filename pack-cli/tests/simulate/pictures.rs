//! The page with the picture.

use crate::scattered::{orders, scattered};

#[test]
fn the_page_is_well_formed_and_says_what_the_table_says() {
    let desk = scattered();
    std::fs::rename(desk.path("plain.sealift"), desk.path("a<&\"b.sealift")).unwrap();
    let line = "simulate a<&\"b.sealift ordered.sealift --profile profile --device dvd";
    let page = desk.good(&format!("{line} --svg - --quiet"));
    let elements = elements(&page);
    assert_eq!(elements.iter().filter(|name| *name == "svg").count(), 2);
    for (name, count) in [("script", 0), ("path", 16), ("rect", 16)] {
        assert_eq!(elements.iter().filter(|found| *found == name).count(), count, "{name}");
    }
    assert!(page.contains("a&lt;&amp;&quot;b.sealift: 150 of the 150 paths"));
    let table = desk.good(line);
    let rows = ["as laid out", "by path", "by hash", "one sweep"];
    for row in table.lines().filter(|line| rows.iter().any(|name| line.contains(name))) {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [name, other, seconds, ..] = words[..] else { panic!("{row}") };
        let (name, seconds, seeks) = match (name, other) {
            ("as", "laid") => ("as laid out".to_owned(), words[3], words[5]),
            _ => (format!("{name} {other}"), seconds, words[4]),
        };
        assert!(page.contains(&format!(">{name}: {seconds} s<")), "{row}");
        assert!(page.contains(&format!(">{seeks} seeks, ")), "{row}");
    }
    // A seek is drawn as a line from one read to the next.
    for order in orders(&desk, "ordered.sealift --profile profile --device dvd") {
        let lines = |path: &&str| u64::try_from(path.matches('M').count()).unwrap() == order.seeks;
        let mut paths = page.split("<path class=\"seek\" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        assert!(paths.any(|path| lines(&path)), "{}", order.name);
    }
    assert!(page.contains("prefers-color-scheme: dark") && !page.contains("http-equiv") && !page.contains("src="));
}

/// Returns the names of a page's elements, and checks that each is closed within its parent.
fn elements(page: &str) -> Vec<String> {
    let rest = page.strip_prefix("<!DOCTYPE html>").unwrap();
    let (mut open, mut found) = (Vec::new(), Vec::new());
    for part in rest.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        for piece in text.split('&').skip(1) {
            let entity = piece.split(';').next().unwrap();
            assert!(["amp", "lt", "gt", "quot"].contains(&entity), "{piece}");
        }
        assert!(!text.contains('>'), "{text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        // Names and values alternate.
        let quoted: Vec<&str> = attributes.split('"').collect();
        assert!(
            quoted.len() % 2 == 1 && quoted.iter().step_by(2).all(|name| name.trim().is_empty() || name.ends_with('=')),
            "{tag}"
        );
        found.push(name.to_owned());
        if !is_empty {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "{open:?}");
    found
}
