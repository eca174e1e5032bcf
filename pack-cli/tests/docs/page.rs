//! A page in Markdown, divided into commands and the text between them.

/// The beginning of a block that no test runs; the reason follows, for readers as well.
pub(crate) const NOT_RUN: &str = "# Not run by the tests: ";

/// The languages of blocks without commands.
const NO_COMMANDS: [&str; 6] = ["", "text", "json", "html", "js", "toml"];

pub(crate) enum Part<'a> {
    /// All other text.
    Text(&'a str),
    Command {
        shown: &'a str,
        command: String,
        status: i32,
        /// The expected output, if the page shows it.
        output: Option<String>,
    },
    /// A block that is not run.
    NotRun { shown: &'a str, why: &'a str },
}

impl<'a> Part<'a> {
    pub(crate) fn shown(&self) -> &'a str {
        match self {
            Self::Text(text) | Self::Command { shown: text, .. } | Self::NotRun { shown: text, .. } => text,
        }
    }
}

/// Divides a page. In a block marked `console`, lines that begin with `$ ` are commands, and the others are their output; in one marked `sh`, all
/// lines are commands.
pub(crate) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((fence, body)) = next_fence(rest) {
        let passed = &rest[..rest.len() - body.len()];
        has_no_commands(passed.rsplit_once("```").map_or("", |(before, _)| before));
        parts.push(Part::Text(passed));
        let len = if body.starts_with("```\n") { 0 } else { body.find("\n```\n").expect("a fence is closed") + 1 };
        let (block, behind) = body.split_at(len);
        match fence {
            "console" => shown_commands(block, &mut parts),
            "sh" => commands(block, &mut parts),
            other => {
                assert!(NO_COMMANDS.contains(&other), "a block marked {other:?}");
                let typed =
                    block.lines().find(|line| ["$ ", "# ", "sealift "].iter().any(|start| line.starts_with(start)));
                assert_eq!(typed, None, "a command in a block that is not run");
                parts.push(Part::Text(block));
            }
        }
        parts.push(Part::Text("```\n"));
        rest = &behind["```\n".len()..];
    }
    has_no_commands(rest);
    parts.push(Part::Text(rest));
    parts
}

/// Checks that text has no code block which a reader sees but [`next_fence`] does not: it would not be run.
fn has_no_commands(text: &str) {
    let is_code = |line: &&str| {
        let inner = line.trim_start_matches([' ', '\t', '>']);
        inner.starts_with("```") || inner.starts_with("~~~") || line.starts_with("    ") || line.starts_with('\t')
    };
    assert_eq!(text.lines().find(is_code), None, "a block of code that is not found");
}

/// Returns the word after the next opening fence, and the text after its line.
fn next_fence(text: &str) -> Option<(&str, &str)> {
    let at = if text.starts_with("```") { 0 } else { text.find("\n```")? + 1 };
    text[at + 3..].split_once('\n')
}

fn commands<'a>(block: &'a str, parts: &mut Vec<Part<'a>>) {
    if let Some(why) = block.strip_prefix(NOT_RUN) {
        parts.push(Part::NotRun { shown: block, why: why.lines().next().unwrap_or_default() });
        return;
    }
    let mut rest = block;
    while !rest.is_empty() {
        let mut len = line_len(rest);
        while rest[..len].ends_with("\\\n") {
            len += line_len(&rest[len..]);
        }
        let (shown, behind) = rest.split_at(len);
        rest = behind;
        let is_command = !shown.trim().is_empty() && !shown.starts_with('#');
        parts.push(match is_command {
            true => Part::Command { shown, command: shown.to_owned(), status: 0, output: None },
            false => Part::Text(shown),
        });
    }
}

fn shown_commands<'a>(block: &'a str, parts: &mut Vec<Part<'a>>) {
    assert!(block.starts_with("$ "), "what comes before the first command would be passed over: {block}");
    let mut rest = block;
    while !rest.is_empty() {
        let mut len = line_len(rest);
        let Some(first) = rest[..len].strip_prefix("$ ") else {
            let (line, behind) = rest.split_at(len);
            parts.push(Part::Text(line));
            rest = behind;
            continue;
        };
        let mut command = first.to_owned();
        while let Some(more) = rest[len..].strip_prefix("> ") {
            command.push_str(&more[..line_len(more)]);
            len += 2 + line_len(more);
        }
        let mut status = 0;
        if let Some(number) = rest[len..].strip_prefix("? ") {
            status = number[..line_len(number)].trim().parse().expect("an exit status");
            len += 2 + line_len(number);
        }
        let (shown, behind) = rest.split_at(len);
        let output: String = behind.split_inclusive('\n').take_while(|line| !line.starts_with("$ ")).collect();
        // An empty line before the next command only separates them.
        let gap = usize::from(output.ends_with("\n\n") || output == "\n");
        let printed = output.len() - gap;
        parts.push(Part::Command { shown, command, status, output: Some(output[..printed].to_owned()) });
        parts.push(Part::Text(&behind[printed..output.len()]));
        rest = &behind[output.len()..];
    }
}

fn line_len(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |at| at + 1)
}

/// Returns whether `got` matches `pattern`, in which `[..]` stands for anything within a line, and `...` for any lines.
pub(crate) fn matches(pattern: &str, got: &str) -> bool {
    let (pattern, got): (Vec<_>, Vec<_>) = (pattern.lines().collect(), got.lines().collect());
    lines_match(&pattern, &got)
}

fn lines_match(pattern: &[&str], got: &[&str]) -> bool {
    match pattern {
        [] => got.is_empty(),
        ["...", rest @ ..] => (0..=got.len()).any(|passed| lines_match(rest, &got[passed..])),
        [first, rest @ ..] => {
            got.split_first().is_some_and(|(line, got)| line_matches(first, line) && lines_match(rest, got))
        }
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    match pattern.split_once("[..]") {
        None => pattern == line,
        Some((start, rest)) => line.strip_prefix(start).is_some_and(|line| {
            line.char_indices().map(|(at, _)| at).chain([line.len()]).any(|at| line_matches(rest, &line[at..]))
        }),
    }
}

#[test]
fn patterns() {
    assert!(matches("a [..] c\n...\nz\n", "a b c\nd\ne\nz\n"));
    assert!(matches("...\n", ""));
    assert!(!matches("a\n", "b\n"));
    assert!(!matches("a [..]c\n", "a d\n"));
}

#[test]
fn what_would_be_passed_over_is_refused() {
    for page in [
        "a\n  ```sh\nb\n  ```\n",
        "a\n~~~sh\nb\n~~~\n",
        "a\n\n    sealift b\n",
        "> ```sh\n> b\n> ```\n",
        "```\n$ sealift b\n```\n",
        "```sh\na\n```\n- b\n  ```\n  c\n  ```\n```sh\nd\n```\n",
        "```console\n# sealift b\n```\n",
    ] {
        assert!(std::panic::catch_unwind(|| parts(page).len()).is_err(), "{page}");
    }
}

#[test]
fn blocks() {
    let page = "text\n```console\n$ one \\\n> two\n? 1\nout\n\n$ three\n```\n```json\n{}\n```\n\
        ```sh\n# first\nfour \\\n  more\n\nfive   # said\n```\n```sh\n# Not run by the tests: it is late\nsix\n```\nend\n";
    let parts = parts(page);
    let said: String = parts
        .iter()
        .map(|part| match part {
            Part::Command { shown, output: Some(output), .. } => [shown, output.as_str()].concat(),
            other => other.shown().to_owned(),
        })
        .collect();
    assert_eq!(said, page);
    let commands = parts.iter().filter_map(|part| match part {
        Part::Command { command, status, output, .. } => Some((command.as_str(), *status, output.as_deref())),
        _ => None,
    });
    let expected = [
        ("one \\\ntwo\n", 1, Some("out\n")),
        ("three\n", 0, Some("")),
        ("four \\\n  more\n", 0, None),
        ("five   # said\n", 0, None),
    ];
    assert_eq!(commands.collect::<Vec<_>>(), expected);
    let not_run = parts.iter().filter_map(|part| match part {
        Part::NotRun { why, .. } => Some(*why),
        _ => None,
    });
    assert_eq!(not_run.collect::<Vec<_>>(), ["it is late"]);
}
