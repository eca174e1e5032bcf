//! Checks that every type in a signature of the library has a path below `sealift::`: a program can then name what it passes and gets, and look it up
//! in one place. The sources are read as the compiler reads them, with imports, re-exports and globs.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;
use syn::{ImplItem, Item, TraitItem, UseTree, Visibility};

use crate::layers::{list, module_of, parse, workspace};

/// The library, and the crates from which it exports.
const CRATES: &[(&str, &str)] = &[
    ("sealift", "pack-cli/src"),
    ("sealift_store", "store/src"),
    ("sealift_verify", "verify/src"),
    ("sealift_container", "container/src"),
    ("sealift_format", "format/src"),
];

/// The path of a module or an item, from its crate's name.
type Place = Vec<String>;

#[test]
fn every_type_of_a_signature_has_a_path() {
    let mut sources = Sources::default();
    for (name, folder) in CRATES {
        let mut paths = Vec::new();
        let folder = workspace().join(folder);
        list(&folder, &mut paths);
        for path in paths {
            let below = module_of(path.strip_prefix(&folder).expect("it is below"));
            sources.add([&[(*name).to_owned()], &below[..]].concat(), parse(&path).items);
        }
    }
    let hidden = sources.hidden();
    // Each with a place that has it in its signature.
    let lines = hidden.iter().map(|(place, user)| format!("  {} ({})", place.join("::"), user.join("::")));
    let lines = lines.collect::<Vec<_>>().join("\n");
    assert!(hidden.is_empty(), "types in public signatures have no path below sealift::\n{lines}");
}

/// What a name means in a module.
#[derive(Clone, PartialEq, Eq)]
enum Meaning {
    Module(Place),
    Item(Place),
}

/// An import: its visibility, its path, and its name here; `*` for all names.
struct Import {
    is_public: bool,
    path: Vec<String>,
    name: String,
}

#[derive(Default)]
struct Sources {
    modules: BTreeMap<Place, Vec<Item>>,
    imports: BTreeMap<Place, Vec<Import>>,
}

impl Sources {
    fn add(&mut self, module: Place, mut items: Vec<Item>) {
        let imports = self.imports.entry(module.clone()).or_default();
        for item in &items {
            if let Item::Use(item) = item {
                spread(&item.tree, &mut Vec::new(), &mut |path, name| {
                    imports.push(Import { is_public: is_public(&item.vis), path, name });
                });
            }
        }
        for item in &mut items {
            if let Item::Mod(item) = item
                && let Some((_, inner)) = item.content.take()
            {
                self.add(joined(&module, &item.ident), inner);
            }
        }
        self.modules.entry(module).or_default().extend(items);
    }

    /// Returns the types that signatures have and that are not exported, each with an exported item that has it.
    fn hidden(&self) -> BTreeMap<Place, Place> {
        let mut exported = BTreeSet::new();
        self.export(&["sealift".to_owned()], &mut exported, &mut BTreeSet::new());
        let mut hidden = BTreeMap::new();
        for (module, items) in &self.modules {
            for item in items {
                let (user, used) = self.signature(module, item, &exported);
                for place in used.into_iter().filter(|place| !exported.contains(place)) {
                    hidden.entry(place).or_insert_with(|| user.clone());
                }
            }
        }
        hidden
    }

    /// Collects what a module exports.
    fn export(&self, module: &[String], exported: &mut BTreeSet<Place>, seen: &mut BTreeSet<Place>) {
        if !seen.insert(module.to_vec()) {
            return;
        }
        for item in self.modules.get(module).into_iter().flatten() {
            if let Some((ident, vis)) = named(item)
                && is_public(vis)
            {
                let place = joined(module, ident);
                match item {
                    Item::Mod(_) => self.export(&place, exported, seen),
                    _ => drop(exported.insert(place)),
                }
            }
        }
        for import in self.imports.get(module).into_iter().flatten().filter(|import| import.is_public) {
            match self.resolve(module, &import.path, 0) {
                Some(Meaning::Module(place)) => self.export(&place, exported, seen),
                Some(Meaning::Item(place)) => drop(exported.insert(place)),
                None => {}
            }
        }
    }

    /// Returns what a path means in a module; `None` for what is of another crate, or a type parameter.
    fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Option<Meaning> {
        let (first, rest) = path.split_first()?;
        let mut meaning = match first.as_str() {
            "crate" => Meaning::Module(module[..1].to_vec()),
            "self" => Meaning::Module(module.to_vec()),
            "super" => Meaning::Module(module[..module.len() - 1].to_vec()),
            name if CRATES.iter().any(|(known, _)| *known == name) => Meaning::Module(vec![name.to_owned()]),
            name => self.lookup(module, name, depth)?,
        };
        for name in rest {
            let Meaning::Module(within) = &meaning else { break }; // a variant, or an associated type
            meaning = match name.as_str() {
                "super" => Meaning::Module(within[..within.len() - 1].to_vec()),
                name => self.lookup(within, name, depth)?,
            };
        }
        Some(meaning)
    }

    /// Returns what a single name means in a module.
    fn lookup(&self, module: &[String], name: &str, depth: usize) -> Option<Meaning> {
        // Two modules may import all of each other.
        if depth > 16 {
            return None;
        }
        let own = [module, &[name.to_owned()]].concat();
        let mut items = self.modules.get(module)?.iter().filter(|item| named(item).is_some_and(|(own, _)| own == name));
        if let Some(item) = items.next() {
            return Some(if matches!(item, Item::Mod(_)) { Meaning::Module(own) } else { Meaning::Item(own) });
        }
        let imports = self.imports.get(module)?;
        let direct = imports.iter().filter(|import| import.name == name);
        direct.map(|import| self.resolve(module, &import.path, depth + 1)).find(Option::is_some).flatten().or_else(
            || {
                imports.iter().filter(|import| import.name == "*").find_map(|import| {
                    match self.resolve(module, &import.path, depth + 1)? {
                        Meaning::Module(place) => self.lookup(&place, name, depth + 1),
                        Meaning::Item(_) => None,
                    }
                })
            },
        )
    }

    /// Returns an item's place, and the types of these crates in its signature; none if it is not exported.
    fn signature(&self, module: &[String], item: &Item, exported: &BTreeSet<Place>) -> (Place, BTreeSet<Place>) {
        let mut types = Types { sources: self, module, found: BTreeSet::new() };
        let place = match item {
            Item::Impl(item) => {
                let syn::Type::Path(own) = &*item.self_ty else { return Default::default() };
                match self.resolve(module, &segments(&own.path), 0) {
                    Some(Meaning::Item(place)) => place,
                    _ => return Default::default(),
                }
            }
            item => named(item).map(|(ident, _)| joined(module, ident)).unwrap_or_default(),
        };
        if exported.contains(&place) {
            types.take(item);
        }
        (place, types.found)
    }
}

/// Collects the types in signatures.
struct Types<'a> {
    sources: &'a Sources,
    module: &'a [String],
    found: BTreeSet<Place>,
}

impl Types<'_> {
    fn take(&mut self, item: &Item) {
        match item {
            Item::Fn(item) => self.visit_signature(&item.sig),
            Item::Struct(item) => self.take_fields(&item.fields, false),
            Item::Enum(item) => item.variants.iter().for_each(|variant| self.take_fields(&variant.fields, true)),
            Item::Type(item) => self.visit_type(&item.ty),
            Item::Const(item) => self.visit_type(&item.ty),
            Item::Static(item) => self.visit_type(&item.ty),
            Item::Trait(item) => {
                for item in &item.items {
                    if let TraitItem::Fn(item) = item {
                        self.visit_signature(&item.sig);
                    }
                }
            }
            Item::Impl(item) => {
                for part in &item.items {
                    match part {
                        ImplItem::Fn(part) if is_public(&part.vis) => self.visit_signature(&part.sig),
                        ImplItem::Type(part) => self.visit_type(&part.ty),
                        ImplItem::Const(part) if is_public(&part.vis) => self.visit_type(&part.ty),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn take_fields(&mut self, fields: &syn::Fields, are_public: bool) {
        fields.iter().filter(|field| are_public || is_public(&field.vis)).for_each(|field| self.visit_type(&field.ty));
    }
}

impl<'ast> Visit<'ast> for Types<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(Meaning::Item(place)) = self.sources.resolve(self.module, &segments(path), 0) {
            self.found.insert(place);
        }
        syn::visit::visit_path(self, path);
    }

    /// The length of an array is a number.
    fn visit_expr(&mut self, _: &'ast syn::Expr) {}
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

fn joined(module: &[String], ident: &syn::Ident) -> Place {
    [module, &[ident.to_string()]].concat()
}

fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Returns the name of an item, and its visibility.
fn named(item: &Item) -> Option<(&syn::Ident, &Visibility)> {
    Some(match item {
        Item::Fn(item) => (&item.sig.ident, &item.vis),
        Item::Struct(item) => (&item.ident, &item.vis),
        Item::Enum(item) => (&item.ident, &item.vis),
        Item::Type(item) => (&item.ident, &item.vis),
        Item::Trait(item) => (&item.ident, &item.vis),
        Item::Const(item) => (&item.ident, &item.vis),
        Item::Static(item) => (&item.ident, &item.vis),
        Item::Mod(item) => (&item.ident, &item.vis),
        _ => return None,
    })
}

/// Passes each path of a tree of imports to `take`, with the name that it has here.
fn spread(tree: &UseTree, above: &mut Vec<String>, take: &mut dyn FnMut(Vec<String>, String)) {
    match tree {
        UseTree::Path(path) => {
            above.push(path.ident.to_string());
            spread(&path.tree, above, take);
            above.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| spread(tree, above, take)),
        UseTree::Glob(_) => take(above.clone(), "*".to_owned()),
        UseTree::Name(name) if name.ident == "self" => take(above.clone(), above.last().cloned().unwrap_or_default()),
        UseTree::Name(name) => take(joined(above, &name.ident), name.ident.to_string()),
        UseTree::Rename(name) => take(joined(above, &name.ident), name.rename.to_string()),
    }
}
