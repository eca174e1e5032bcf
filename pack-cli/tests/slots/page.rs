//! The scripts of docs/slots.md, which are tested as they are written there.

use std::fs;
use std::path::Path;

const PAGE: &str = "docs/slots.md";

/// Returns the shell commands below a heading, with the test's trust and with these words replaced, and without the line that says why the page's own
/// test does not run them.
pub(crate) fn commands(heading: &str, replaced: &[(&str, &str)]) -> String {
    let commands = block(&section(heading), "sh", 0);
    let (why, commands) = commands.split_once('\n').unwrap();
    assert!(why.starts_with("# Not run by the tests: "), "{commands}");
    let commands = replaced_in(commands, &[(" --then ", " --trust signers --then ")]);
    replaced_in(&commands, replaced)
}

/// Returns a file that the page shows below a heading; `number` counts from 0.
pub(crate) fn file(heading: &str, number: usize) -> String {
    block(&section(heading), "text", number)
}

/// Returns the text with other words, each of which it must have.
pub(crate) fn replaced_in(text: &str, words: &[(&str, &str)]) -> String {
    words.iter().fold(text.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{PAGE} does not have {old:?} in {text}");
        text.replace(old, new)
    })
}

fn section(heading: &str) -> String {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE)).unwrap();
    let (_, section) = page.split_once(&format!("\n### {heading}\n")).unwrap();
    section.split("\n##").next().unwrap().to_owned()
}

fn block(section: &str, language: &str, number: usize) -> String {
    let start = format!("\n```{language}\n");
    let block = section.split(&start).nth(number + 1).unwrap();
    format!("{}\n", block.split("\n```").next().unwrap())
}
