//! The programs that steps and tests find: those of Debian's minimal system, of what CONTRIBUTING.md asks for, and of the packages in `packages.rs`,
//! with all that these depend on. What else is installed on a machine stays invisible: a call that the list lacks fails here as it would elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::packages::{self, Chore};
use crate::shell::{has_program, output, program};
use crate::tools;

/// What a person installs before anything of ours runs, beside rustup.
pub const ASKED_FOR: [&str; 4] = ["build-essential", "ca-certificates", "curl", "git"];

const FOLDERS: [&str; 2] = ["/usr/bin", "/usr/sbin"];

/// Scripts that run in systems of their own.
const GUESTS: &str = ":!bench/src/compare/*.sh";

/// This machine's own Node, if it is new enough, whatever brought it.
const NODE: [&str; 3] = ["node", "npm", "npx"];

/// Other programs of no package: cargo's, and our own.
const OTHERS: [&str; 5] = ["cargo", "rustc", "rustup", "sealift", "vectors"];

/// A folder with links to programs, which is removed in the end. It lies where every user can enter: tests run programs as others too.
pub struct Programs {
    folder: Option<PathBuf>,
}

impl Programs {
    /// Links the programs of a chore's packages. Where dpkg is missing, nothing is linked, and all that is installed is found.
    pub fn of(chore: Chore) -> Result<Self> {
        if !has_program("dpkg-query") {
            return Ok(Self { folder: None });
        }
        // What the quick steps call, ci installs; a machine that has it runs those tests.
        let chore = if chore == Chore::Quick { Chore::Ci } else { chore };
        let folder = env::temp_dir().join(format!("sealift-programs.{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let programs = Self { folder: Some(folder.clone()) };
        let of_node =
            if tools::node()?.is_none() { NODE.iter().filter_map(|name| program(name)).collect() } else { vec![] };
        for program in installed_by(packages::of(chore))?.into_iter().chain(of_node) {
            let name = program.file_name().context("a program has a name")?;
            symlink(&program, folder.join(name)).with_context(|| format!("cannot link {}", program.display()))?;
        }
        fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
        Ok(programs)
    }

    /// Returns a PATH with these programs, Node and cargo.
    pub fn path(&self) -> Result<OsString> {
        let usual = env::var_os("PATH").unwrap_or_default();
        let Some(folder) = &self.folder else { return Ok(usual) };
        let cargo = env::split_paths(&usual).filter(|dir| dir.join("cargo").is_file());
        Ok(env::join_paths(tools::node()?.into_iter().chain([folder.clone()]).chain(cargo))?)
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        // What stays is a folder of links.
        let _ = self.folder.take().map(fs::remove_dir_all);
    }
}

/// Returns the programs of Debian's minimal system, of [`ASKED_FOR`], and of more packages, with those of all that they depend on.
fn installed_by(packages: impl Iterator<Item = &'static str>) -> Result<Vec<PathBuf>> {
    let installed = Installed::read()?;
    let owned = installed.files(&installed.closure(ASKED_FOR.into_iter().chain(packages)))?;
    let mut programs = BTreeMap::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {folder}"))? {
            let program = entry?.path();
            // Names such as awk and cc lead to a program by way of /etc/alternatives.
            let is_owned =
                owned.contains(&program) || fs::canonicalize(&program).is_ok_and(|real| owned.contains(&real));
            if is_owned {
                programs.entry(program.file_name().map(ToOwned::to_owned)).or_insert(program);
            }
        }
    }
    Ok(programs.into_values().collect())
}

/// What dpkg says of the installed packages.
struct Installed {
    /// For each, the alternatives of each dependency.
    needs: BTreeMap<String, Vec<Vec<String>>>,
    /// The packages that provide a virtual one.
    providers: BTreeMap<String, Vec<String>>,
    /// The packages of every system.
    minimal: Vec<String>,
}

impl Installed {
    fn read() -> Result<Self> {
        let format = "${Package}\t${Pre-Depends}, ${Depends}\t${Provides}\t${Priority}\t${Essential}\n";
        let said = output(Command::new("dpkg-query").args(["--show", "--showformat", format]))?;
        let mut installed = Self { needs: BTreeMap::new(), providers: BTreeMap::new(), minimal: Vec::new() };
        for line in said.lines() {
            let [name, needs, provides, priority, essential] = line.split('\t').collect::<Vec<_>>()[..] else {
                continue;
            };
            for provided in alternatives(&provides.replace(',', "|")) {
                installed.providers.entry(provided).or_default().push(name.to_owned());
            }
            if priority == "required" || essential == "yes" || name == "apt" {
                installed.minimal.push(name.to_owned());
            }
            installed.needs.insert(name.to_owned(), needs.split(',').map(alternatives).collect());
        }
        Ok(installed)
    }

    /// Returns these packages, those of every system, and all that they depend on.
    fn closure(&self, seeds: impl Iterator<Item = &'static str>) -> BTreeSet<&str> {
        let mut left: Vec<&str> = seeds.collect();
        left.extend(self.minimal.iter().map(String::as_str));
        let mut closure = BTreeSet::new();
        while let Some(name) = left.pop() {
            let Some((name, needs)) = self.needs.get_key_value(name) else { continue };
            if closure.insert(name.as_str()) {
                left.extend(needs.iter().filter_map(|alternatives| self.first(alternatives)));
            }
        }
        closure
    }

    /// Returns the first alternative that is installed, itself or by a package that provides it.
    fn first<'a>(&'a self, alternatives: &'a [String]) -> Option<&'a str> {
        alternatives.iter().find_map(|name| {
            let real = self.needs.contains_key(name).then_some(name);
            real.or_else(|| self.providers.get(name)?.first()).map(String::as_str)
        })
    }

    /// Returns the files of packages, below /usr where older packages name /bin.
    fn files(&self, packages: &BTreeSet<&str>) -> Result<BTreeSet<PathBuf>> {
        let said = output(Command::new("dpkg-query").arg("--listfiles").args(packages))?;
        let usr = |line: &str| match line {
            _ if line.starts_with("/bin/") || line.starts_with("/sbin/") => PathBuf::from(format!("/usr{line}")),
            _ => PathBuf::from(line),
        };
        Ok(said.lines().map(usr).collect())
    }
}

/// Parses `a (>= 1) | b:any` into names.
fn alternatives(text: &str) -> Vec<String> {
    let name = |text: &str| text.split(|end| " :(".contains(end)).next().unwrap_or_default().to_owned();
    text.split('|').map(|text| name(text.trim())).filter(|name| !name.is_empty()).collect()
}

/// Checks that each program which sources call by name is brought by a package of the list, or is there before.
///
/// # Errors
///
/// Returns an error that names the places of other calls.
pub fn check() -> Result<()> {
    let is_debian = has_program("dpkg-query");
    let base: BTreeSet<_> = if is_debian {
        installed_by(std::iter::empty())?.iter().filter_map(|path| name_of(path)).collect()
    } else {
        BTreeSet::new()
    };
    let listed: BTreeSet<_> = packages::programs().chain(NODE).chain(OTHERS).collect();
    let mut unknown = Vec::new();
    let files = output(Command::new("git").args(["ls-files", "*.rs", "*.mjs", "*.sh", "*.md", GUESTS]))?;
    for file in files.lines() {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        for (line, program) in calls(file, &text) {
            // Without dpkg, nothing says what belongs to a minimal system.
            let is_known = listed.contains(program) || base.contains(program) || !is_debian;
            if !is_known {
                unknown.push(format!("{file}:{line} calls {program}"));
            }
        }
    }
    ensure!(unknown.is_empty(), "no package in xtask/src/packages.rs brings these programs:\n{}", unknown.join("\n"));
    Ok(())
}

fn name_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

/// Returns the programs that a source file calls by name, with their lines.
fn calls<'a>(file: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    let starts: &[&str] = match file.rsplit_once('.') {
        Some((_, "rs")) => &["Command::new(\""],
        Some((_, "mjs")) => &["execFileSync(\"", "spawnSync(\"", "execFile(\"", "spawn(\""],
        _ => return in_shell(file, text),
    };
    let names = text.lines().zip(1..).flat_map(|(line, number)| {
        starts.iter().flat_map(move |start| line.split(start).skip(1)).map(move |rest| (number, rest))
    });
    let names = names.filter_map(|(number, rest)| Some((number, rest.split_once('"')?.0)));
    names.filter(|(_, name)| !name.contains('/')).collect()
}

/// Returns the words in the place of a command that are programs on this machine: in a script, in a page's blocks of sh, and behind a prompt.
fn in_shell<'a>(file: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    let is_script = file.ends_with(".sh");
    let mut block = None;
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if let Some(kind) = line.strip_prefix("```") {
            block = Some(kind);
            continue;
        }
        let code = match block {
            _ if is_script => line,
            Some("sh") => line,
            Some("console") => line.strip_prefix("$ ").unwrap_or_default(),
            _ => continue,
        };
        if code.trim_start().starts_with('#') {
            continue;
        }
        let words = code.split([';', '|', '&', '(', '`']).filter_map(|part| part.split_whitespace().next());
        let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-._+".contains(c));
        found.extend(words.filter(is_word).filter(|word| has_program(word)).map(|word| (number, word)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_in_each_kind_of_source() {
        let rust = "let done = Command::new(\"no-such-program\").arg(\"ls\");\nCommand::new(\"/bin/true\");\n";
        assert_eq!(calls("a/b.rs", rust), [(1, "no-such-program")]);
        assert_eq!(calls("a.test.mjs", "x;\nexecFileSync(\"du\", [\"-s\"]);\n"), [(2, "du")]);
        let page =
            "ls is a word.\n```sh\n# cp is a comment\ncat a | sort > b; unknown-word\n```\ncat\n```text\nls\n```\n";
        assert_eq!(calls("page.md", page), [(4, "cat"), (4, "sort")]);
    }

    #[test]
    fn dependencies_are_names_with_alternatives() {
        assert_eq!(
            alternatives("default-dbus-session-bus | dbus-session-bus"),
            ["default-dbus-session-bus", "dbus-session-bus"]
        );
        assert_eq!(alternatives(" libc6 (>= 2.36)"), ["libc6"]);
        assert_eq!(alternatives("python3:any (>= 3.7)"), ["python3"]);
        assert!(alternatives(" ").is_empty());
    }

    #[test]
    fn every_package_brings_what_it_depends_on() {
        let needs = [("a", "b | c, virtual"), ("c", "d"), ("d", "a"), ("e", ""), ("f", "")];
        let needs = needs.map(|(name, needs)| (name.to_owned(), needs.split(',').map(alternatives).collect()));
        let installed = Installed {
            needs: needs.into(),
            providers: [("virtual".to_owned(), vec!["e".to_owned()])].into(),
            minimal: vec![],
        };
        assert_eq!(installed.closure(["a"].into_iter()).into_iter().collect::<Vec<_>>(), ["a", "c", "d", "e"]);
    }
}
