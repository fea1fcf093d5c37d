//! The layer table of `ARCHITECTURE.md` and the list of libraries in `docs/dependencies.md`,
//! held against what the manifests really say.

use super::{Findings, code_words, row};
use crate::process;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const LAYERS: &str = "ARCHITECTURE.md";
const LIBRARIES: &str = "docs/dependencies.md";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    path: Option<String>,
}

/// Which crates of ours each crate may use.
struct Layers(BTreeMap<String, Allowed>);

enum Allowed {
    All,
    Only(BTreeSet<String>),
}

impl Layers {
    /// Reads rows of the form `` | `crates/name` | owns | may use | never touches | ``.
    fn parse(document: &str) -> Self {
        let mut layers = BTreeMap::new();
        for cells in document.lines().filter_map(row) {
            let [name, _, may_use, _] = cells.as_slice() else { continue };
            let Some(name) = code_words(name).first().and_then(|word| word.strip_prefix("crates/"))
            else {
                continue;
            };
            let allowed = if may_use.starts_with("all") {
                Allowed::All
            } else {
                Allowed::Only(code_words(may_use).into_iter().map(str::to_owned).collect())
            };
            layers.insert(name.to_owned(), allowed);
        }
        Self(layers)
    }

    /// The error in `user` depending on our crate `used`, if there is one.
    fn objection(&self, user: &str, used: &str) -> Option<String> {
        match self.0.get(user) {
            _ if user == used => None,
            None => Some(format!("crate `{user}` is missing in the layer table of {LAYERS}")),
            Some(Allowed::All) => None,
            Some(Allowed::Only(allowed)) if allowed.contains(used) => None,
            Some(Allowed::Only(_)) => {
                Some(format!("`{user}` may not use `{used}` by the layer table of {LAYERS}"))
            }
        }
    }
}

pub(super) fn check(findings: &mut Findings) -> Result<()> {
    let text = process::output("cargo", &["metadata", "--format-version=1", "--no-deps"])?;
    let metadata: Metadata = serde_json::from_str(&text).context("reading cargo metadata")?;
    let layers = Layers::parse(&read(LAYERS)?);
    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &metadata.packages {
        let user = short(&package.name);
        for dependency in &package.dependencies {
            if dependency.path.is_none() {
                users.entry(&dependency.name).or_default().insert(user);
            } else if let Some(wrong) = layers.objection(user, short(&dependency.name)) {
                findings.add(&package.name, wrong);
            }
        }
    }
    check_libraries(&read(LIBRARIES)?, &users, findings);
    Ok(())
}

/// Every library must have a row that names exactly the crates that use it.
fn check_libraries(
    document: &str,
    users: &BTreeMap<&str, BTreeSet<&str>>,
    findings: &mut Findings,
) {
    let mut listed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for cells in document.lines().filter_map(row) {
        let [library, used_by, _why] = cells.as_slice() else { continue };
        if let Some(library) = code_words(library).first()
            && listed.insert(library, code_words(used_by).into_iter().collect()).is_some()
        {
            findings.add(LIBRARIES, format!("`{library}` has two rows"));
        }
    }
    for (library, by) in users {
        match listed.get(library) {
            None => findings.add(LIBRARIES, format!("`{library}` (used by {by:?}) has no row")),
            Some(told) if told != by => {
                findings.add(LIBRARIES, format!("`{library}` is used by {by:?}, not {told:?}"));
            }
            Some(_) => {}
        }
    }
    for library in listed.keys().filter(|library| !users.contains_key(*library)) {
        findings.add(LIBRARIES, format!("`{library}` is listed but nothing uses it"));
    }
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {path}"))
}

fn short(package: &str) -> &str {
    package.strip_prefix("weir-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "| crate | owns | may use of ours | never touches |
|---|---|---|---|
| `crates/core` | ids | – | I/O |
| `crates/nfs` | wire | `core` | sockets |
| `crates/weir` | command line | all | – |";

    #[test]
    fn a_dependency_against_the_table_is_refused() {
        let layers = Layers::parse(TABLE);
        assert!(layers.objection("nfs", "core").is_none());
        assert!(layers.objection("weir", "nfs").is_none());
        assert!(layers.objection("core", "nfs").is_some());
        assert!(layers.objection("nfs", "store").is_some());
        assert!(layers.objection("newcomer", "core").is_some());
        // A crate may ask itself for more features in its tests.
        assert!(layers.objection("nfs", "nfs").is_none());
    }

    #[test]
    fn libraries_are_refused_without_a_row_with_two_with_a_wrong_one_and_when_unused() {
        let document = "| `a` | `b` | x |\n| `b` | `core` | x |\n| `d` | `core` | x |
| `a` | `core` | x |";
        let core = BTreeSet::from(["core"]);
        let users = BTreeMap::from([
            ("a", core.clone()),
            ("b", BTreeSet::from(["core", "nfs"])),
            ("c", core),
        ]);
        let mut findings = Findings::default();
        check_libraries(document, &users, &mut findings);
        assert_eq!(findings.0.len(), 4, "{:?}", findings.0);
    }
}
