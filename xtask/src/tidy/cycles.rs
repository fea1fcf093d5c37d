//! Cycles of imports among the top-level modules of a crate: a module in a cycle cannot be read,
//! tested or moved alone. Tests are left out, and so are paths inside macros. Not here: which crate
//! may use which.

use super::Findings;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree};

/// The crates that must have none.
const WITHOUT_CYCLES: [&str; 11] = [
    "core", "qos", "state", "cluster", "nfs", "smb", "api", "catalog", "control", "scenario",
    "weir",
];

pub(super) fn check(files: &[PathBuf], findings: &mut Findings) -> Result<()> {
    for name in WITHOUT_CYCLES {
        let root = Path::new("crates").join(name).join("src");
        let mut imports = Imports::default();
        for path in files.iter().filter(|path| path.starts_with(&root)) {
            if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(path)
                    .with_context(|| format!("reading {}", path.display()))?;
                let file = syn::parse_file(&text)
                    .with_context(|| format!("parsing {}", path.display()))?;
                imports.add(&module_of(path.strip_prefix(&root)?), &file);
            }
        }
        for cycle in imports.cycles() {
            findings.add(root.display(), format!("modules import each other: {cycle}"));
        }
    }
    Ok(())
}

/// The module that a file is, from the root of its crate: none for the root itself.
fn module_of(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = path
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if names.last().is_some_and(|name| name == "mod" || names.len() == 1 && is_root(name)) {
        names.pop();
    }
    names
}

fn is_root(name: &str) -> bool {
    name == "lib" || name == "main"
}

/// The imports of one crate.
#[derive(Default)]
struct Imports {
    /// The names that the files of each top-level module take from the root of the crate, with the
    /// module of each file.
    taken: Vec<(Vec<String>, BTreeSet<String>)>,
    /// Names that the root gives on, with the modules that have them.
    given_on: BTreeMap<String, String>,
    /// Modules of tests.
    tests: BTreeSet<Vec<String>>,
}

impl Imports {
    fn add(&mut self, module: &[String], file: &syn::File) {
        let mut found = Paths { module: module.to_vec(), ..Paths::default() };
        found.visit_file(file);
        self.tests.append(&mut found.tests);
        if module.is_empty() {
            self.given_on = found.given_on;
        } else {
            self.taken.push((module.to_vec(), found.taken));
        }
    }

    /// The top-level modules that each of them imports.
    fn graph(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let is_test =
            |module: &[String]| (1..=module.len()).any(|len| self.tests.contains(&module[..len]));
        let product = || self.taken.iter().filter(|(module, _)| !is_test(module));
        let tops: BTreeSet<&str> = product().map(|(module, _)| module[0].as_str()).collect();
        let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (module, names) in product() {
            let own = module[0].as_str();
            let imported = names.iter().map(|name| self.given_on.get(name).unwrap_or(name));
            let others = imported.map(String::as_str).filter(|one| *one != own);
            graph.entry(own).or_default().extend(others.filter(|one| tops.contains(one)));
        }
        graph
    }

    /// One cycle through each module that is in one, the shortest, and each cycle once.
    fn cycles(&self) -> BTreeSet<String> {
        let graph = self.graph();
        let shortest = graph.keys().filter_map(|start| shortest(&graph, start));
        let mut found = BTreeMap::new();
        for cycle in shortest {
            let members: BTreeSet<&str> = cycle.iter().copied().collect();
            found.entry(members).or_insert_with(|| format!("{} → {}", cycle.join(" → "), cycle[0]));
        }
        found.into_values().collect()
    }
}

/// The shortest way from `start` along imports back to it.
fn shortest<'a>(
    graph: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    start: &'a str,
) -> Option<Vec<&'a str>> {
    let mut seen = BTreeSet::new();
    let mut ways = std::collections::VecDeque::from([vec![start]]);
    while let Some(way) = ways.pop_front() {
        for next in way.last().and_then(|last| graph.get(last)).into_iter().flatten() {
            if *next == start {
                return Some(way);
            }
            if seen.insert(*next) {
                ways.push_back([way.clone(), vec![*next]].concat());
            }
        }
    }
    None
}

/// The paths of one file.
#[derive(Default)]
struct Paths {
    /// The module at this place of the file.
    module: Vec<String>,
    taken: BTreeSet<String>,
    given_on: BTreeMap<String, String>,
    tests: BTreeSet<Vec<String>>,
}

impl Paths {
    /// Notes the name that a path takes from the root of the crate, if it begins there.
    fn take(&mut self, path: &[String]) {
        let ups = path.iter().take_while(|name| *name == "super").count();
        let from_root = match path.first().map(String::as_str) {
            Some("crate") => 1,
            Some("super") if ups == self.module.len() => ups,
            _ => return,
        };
        self.taken.extend(path.get(from_root).cloned());
    }

    /// Notes each path of a tree of imports.
    fn take_tree(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.take_tree(&path.tree, before);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.take_tree(tree, before);
                }
            }
            UseTree::Name(name) => self.take_leaf(before, &name.ident, &name.ident),
            UseTree::Rename(name) => self.take_leaf(before, &name.ident, &name.rename),
            UseTree::Glob(_) => self.take(before),
        }
    }

    fn take_leaf(&mut self, before: &[String], name: &syn::Ident, given: &syn::Ident) {
        let path: Vec<String> = before.iter().cloned().chain([name.to_string()]).collect();
        self.take(&path);
        let own = path.iter().find(|part| !matches!(part.as_str(), "crate" | "self"));
        if let Some(own) = own.filter(|_| self.module.is_empty()) {
            self.given_on.insert(given.to_string(), own.clone());
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test_only(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        if is_test_only(&item.attrs) {
            self.tests.insert(self.module.clone());
        } else {
            visit::visit_item_mod(self, item);
        }
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.take_tree(&item.tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.take(&names);
        visit::visit_path(self, path);
    }
}

/// Is the item there in tests alone, or where the feature for tests is on?
fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let tokens = attribute.meta.require_list().map(|list| list.tokens.to_string());
        attribute.path().is_ident("cfg")
            && tokens.is_ok_and(|tokens| {
                tokens == "test" || tokens.starts_with("any") && tokens.contains("test")
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cycles of a crate of these files.
    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        let mut imports = Imports::default();
        for (path, text) in files {
            imports.add(&module_of(Path::new(path)), &syn::parse_file(text).unwrap());
        }
        imports.cycles().into_iter().collect()
    }

    #[test]
    fn modules_that_import_each_other_are_found_however_they_write_it() {
        for text in [
            "use crate::a::A;",
            "use crate::{a, c};",
            "fn f() -> crate::a::A { todo() }",
            "use super::a::A;",
            "use crate::A;",
            "mod inner { use super::super::a::A; }",
            "use crate::a::*;",
        ] {
            let files = [
                ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
                ("a.rs", "use crate::b::B;"),
                ("b.rs", text),
                ("c.rs", ""),
            ];
            assert_eq!(cycles(&files), ["a → b → a"], "{text}");
        }
        let files =
            [("a/mod.rs", ""), ("a/x.rs", "use super::super::b::B;"), ("b.rs", "use crate::a;")];
        assert_eq!(cycles(&files), ["a → b → a"]);
    }

    #[test]
    fn longer_cycles_are_found_once_and_by_their_shortest_way() {
        let files = [
            ("a.rs", "use crate::{b, d};"),
            ("b.rs", "use crate::c;"),
            ("c.rs", "use crate::a;"),
            ("d.rs", "use crate::b;"),
        ];
        assert_eq!(cycles(&files), ["a → b → c → a", "d → b → c → a → d"]);
    }

    #[test]
    fn tests_parts_of_a_module_and_trees_without_cycles_are_no_matter() {
        let files = [
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod c;"),
            ("a.rs", "use crate::b::B; mod x; #[cfg(test)] mod tests { use crate::c; }"),
            ("a/x.rs", "use super::A; use crate::a::B;"),
            ("b.rs", "#[cfg(any(test, feature = \"testing\"))] fn f() { crate::a::g() }"),
            ("c.rs", "use crate::{a, b};"),
        ];
        assert_eq!(cycles(&files), [""; 0]);
    }
}
