//! Checks that the modules of a crate form layers, both top-level modules and those within a module: none may use itself through its siblings. The
//! uses are read from the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{Visit, visit_item_mod};

/// The sources of the crates whose modules are layers.
const CRATES: &[&str] = &[
    "format/src",
    "verify/src",
    "container/src",
    "store/src",
    "pack-cli/src",
    "pack-cli/src/cli",
    "nbdkit/src",
    "wasm/src",
    "wasm/inside/src",
    "xtask/src",
    "bench/src",
];

/// Modules of this name may use anything.
const TESTS: &str = "tests";

/// The path of a module from the crate's root; empty for the crate itself.
type Module = Vec<String>;

/// For each module, the siblings that it uses, and the place of the first use.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn modules_form_layers() {
    let mut circles = Vec::new();
    for source in CRATES {
        for (within, uses) in uses_of(&workspace().join(source)) {
            let place = [&[(*source).to_owned()], &within[..]].concat().join("/");
            circles.extend(circle(&uses).map(|circle| format!("{place}: {circle}")));
        }
    }
    assert!(circles.is_empty(), "modules use each other in a circle:\n{}", circles.join("\n"));
}

/// Returns the folder of the workspace.
pub(crate) fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Returns the uses of modules, grouped by their parent module.
fn uses_of(source: &Path) -> BTreeMap<Module, Uses> {
    let mut paths = Vec::new();
    list(source, &mut paths);
    let mut files = BTreeMap::new();
    for path in paths {
        let module = module_of(path.strip_prefix(source).expect("it is below"));
        if !module.iter().any(|name| name == TESTS) {
            files.insert(module, (parse(&path), path));
        }
    }
    let handed: BTreeMap<_, _> = files.iter().map(|(module, (file, _))| (module, homes(file, module))).collect();
    let mut uses = BTreeMap::<Module, Uses>::new();
    for (module, (file, path)) in &files {
        let mut names = Names { module: module.clone(), place: path.display().to_string(), found: Vec::new() };
        names.visit_file(file);
        for (used, place) in names.found {
            let common = module.iter().zip(&used).take_while(|(own, name)| own == name).count();
            let (Some(own), Some(name)) = (module.get(common), used.get(common)) else { continue };
            let within = &module[..common];
            let home = handed.get(&within.to_vec()).and_then(|homes| homes.get(name)).unwrap_or(name);
            // An item of the parent module itself is not in a sibling.
            let is_neighbour = files
                .keys()
                .any(|module| module.len() == common + 1 && module.starts_with(within) && module[common] == *home);
            if is_neighbour && home != own {
                let neighbours = uses.entry(within.to_vec()).or_default();
                neighbours.entry(own.clone()).or_default().entry(home.clone()).or_insert(place);
            }
        }
    }
    uses
}

/// Lists the sources below a folder, sorted by name.
pub(crate) fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            // A folder with main.rs is a crate of its own.
            if !path.join("main.rs").exists() {
                list(&path, files);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

pub(crate) fn parse(path: &Path) -> syn::File {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the module of a file; empty for the crate's own file.
pub(crate) fn module_of(path: &Path) -> Module {
    let path = path.with_extension("");
    let names = path.iter().map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| !["mod", "lib", "main"].contains(&name.as_str())).collect()
}

/// Returns the child modules from which a file's module re-exports names.
fn homes(file: &syn::File, module: &[String]) -> BTreeMap<String, String> {
    let mut homes = BTreeMap::new();
    for item in &file.items {
        let syn::Item::Use(item) = item else { continue };
        let mut paths = Vec::new();
        spread(&item.tree, &mut Vec::new(), &mut paths);
        for path in paths {
            let is_above = |name: &str| name == "super" || name == "crate" && !module.is_empty();
            let path: Vec<String> =
                path.into_iter().filter(|name| name != "self" && (is_above(name) || name != "crate")).collect();
            if let [home, .., name] = &path[..]
                && !is_above(home)
            {
                homes.insert(name.clone(), home.clone());
            }
        }
    }
    homes
}

/// Returns each path of a tree of imports, with the original names of items renamed by `as`.
fn spread(tree: &syn::UseTree, above: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    let mut whole = |name: String| paths.push([&above[..], &[name]].concat());
    match tree {
        syn::UseTree::Path(path) => {
            above.push(path.ident.to_string());
            spread(&path.tree, above, paths);
            above.pop();
        }
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| spread(tree, above, paths)),
        syn::UseTree::Name(name) => whole(name.ident.to_string()),
        syn::UseTree::Rename(name) => whole(name.ident.to_string()),
        _ => whole("*".to_owned()),
    }
}

/// Collects the paths in a file that refer to its own crate.
struct Names {
    module: Module,
    place: String,
    /// Paths from the crate's root, and where they occur.
    found: Vec<(Module, String)>,
}

impl Names {
    /// Records a path, if it refers to the crate.
    fn take(&mut self, path: &[String], line: usize) {
        let mut at = self.module.clone();
        for (number, name) in path.iter().enumerate() {
            match name.as_str() {
                "crate" if number == 0 => at.clear(),
                "self" if number == 0 => {}
                "super" if number == 0 || path[number - 1] == "super" || path[number - 1] == "self" => {
                    at.pop();
                }
                // The path begins neither at the crate, nor at this module or above it.
                _ if number == 0 => return,
                name => at.push(name.to_owned()),
            }
        }
        self.found.push((at, format!("{}:{line}", self.place)));
    }

    /// The parser does not see the arguments of a macro as paths.
    fn take_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if path.is_empty() {
                        line = name.span().start().line;
                    }
                    path.push(name.to_string());
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => {}
                other => {
                    self.take(&std::mem::take(&mut path), line);
                    if let TokenTree::Group(group) = other {
                        self.take_tokens(group.stream());
                    }
                }
            }
        }
        self.take(&path, line);
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut paths = Vec::new();
        spread(&item.tree, &mut Vec::new(), &mut paths);
        let line = item.use_token.span.start().line;
        paths.iter().for_each(|path| self.take(path, line));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.take(&names, line);
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.take_tokens(item.tokens.clone());
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != TESTS {
            self.module.push(item.ident.to_string());
            visit_item_mod(self, item);
            self.module.pop();
        }
    }
}

/// Returns the first cycle, with the place where each module uses the next.
fn circle(uses: &Uses) -> Option<String> {
    let mut done = BTreeSet::new();
    uses.keys().find_map(|module| follow(uses, module, &mut Vec::new(), &mut done))
}

fn follow<'a>(
    uses: &'a Uses,
    module: &'a str,
    trail: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<String> {
    if let Some(start) = trail.iter().position(|known| *known == module) {
        let ring = [&trail[start..], &[module]].concat();
        let steps = ring.windows(2).map(|pair| format!("  {} uses {} ({})", pair[0], pair[1], uses[pair[0]][pair[1]]));
        return Some(format!("\n{}", steps.collect::<Vec<_>>().join("\n")));
    }
    if done.contains(module) {
        return None;
    }
    trail.push(module);
    let of_module = uses.get(module).into_iter().flatten().map(|(used, _)| used);
    let found = of_module.filter(|used| uses.contains_key(*used)).find_map(|used| follow(uses, used, trail, done));
    trail.pop();
    done.insert(module);
    found
}
