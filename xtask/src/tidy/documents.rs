//! Rules for documents: relative links lead somewhere, each promise in `docs/semantics.md` names
//! tests that exist, and `docs/configuration.md` has every setting.

use super::{Findings, has_extension};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PROMISES: &str = "docs/semantics.md";

const SETTINGS: &str = "docs/configuration.md";

/// The file that declares the settings, each with a line `name: "section.key",`.
const SETTINGS_SOURCE: &str = "crates/control/src/config/keys.rs";

/// The words with which a promise names its tests: `` Proved by: `path::name`, `path::name` ``.
const PROOF: &str = "Proved by:";

pub(super) fn check(files: &[PathBuf], findings: &mut Findings) -> Result<()> {
    for path in files.iter().filter(|path| has_extension(path, "md")) {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for target in relative_links(&text) {
            if !folder.join(target).exists() {
                findings.add(path.display(), format!("link to `{target}` leads nowhere"));
            }
        }
    }
    check_promises(&read(PROMISES)?, &test_exists, findings);
    check_settings(&read(SETTINGS_SOURCE)?, &read(SETTINGS)?, findings);
    Ok(())
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {path}"))
}

/// The table of settings must have a row for each that the server knows, and no other.
fn check_settings(source: &str, document: &str, findings: &mut Findings) {
    let known: BTreeSet<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("name: \"")?.strip_suffix("\","))
        .collect();
    let told: BTreeSet<&str> = document
        .lines()
        .filter_map(super::row)
        .filter_map(|cells| super::code_words(cells.first()?).first().copied())
        .collect();
    for setting in known.symmetric_difference(&told) {
        findings
            .add(SETTINGS, format!("`{setting}` is not both known to the server and told here"));
    }
}

/// Targets of Markdown links to files, without their anchors.
fn relative_links(text: &str) -> Vec<&str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://") && !target.contains([' ', '\n']))
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty())
        .collect()
}

/// Each `## ` section must end in a line of proof whose tests exist.
fn check_promises(text: &str, exists: &dyn Fn(&str, &str) -> bool, findings: &mut Findings) {
    for section in text.split("\n## ").skip(1) {
        let heading = section.lines().next().unwrap_or_default();
        let Some((_, proof)) = section.split_once(PROOF) else {
            findings.add(PROMISES, format!("\"{heading}\" names no test (`{PROOF}`)"));
            continue;
        };
        let named: Vec<&str> = super::code_words(proof);
        if named.is_empty() {
            findings.add(PROMISES, format!("\"{heading}\" names no test"));
        }
        for proof in named {
            let found = proof.split_once("::").is_some_and(|(file, test)| exists(file, test));
            if !found {
                findings.add(PROMISES, format!("\"{heading}\": there is no test `{proof}`"));
            }
        }
    }
}

/// Does `file` hold a Rust test function, or a named case of a shell suite, called `test`?
fn test_exists(file: &str, test: &str) -> bool {
    let Ok(text) = fs::read_to_string(file) else { return false };
    if has_extension(Path::new(file), "rs") {
        return text.contains(&format!("fn {test}("));
    }
    text.contains(&format!("check {test} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_files_are_followed() {
        let text = "[a](b.md) [c](https://example.org) [d](#here) [e](f/g.md#there) `a[0](x y)`";
        assert_eq!(relative_links(text), ["b.md", "f/g.md"]);
    }

    #[test]
    fn settings_and_their_table_must_agree() {
        let source = "    name: \"a.b\",\n    name: \"c\",\n";
        let mut findings = Findings::default();
        check_settings(source, "| `a.b` | x | y |\n| `c` | x | y |", &mut findings);
        assert!(findings.0.is_empty(), "{:?}", findings.0);
        check_settings(source, "| `a.b` | x | y |\n| `d` | x | y |", &mut findings);
        assert_eq!(findings.0.len(), 2, "{:?}", findings.0);
    }

    #[test]
    fn a_promise_needs_a_test_that_exists() {
        let text = "# Title\n\n## Kept\nText.\nProved by: `a.rs::works`.\n
## Unproved\nText.\n
## Stale\nProved by: `a.rs::gone`.\n";
        let mut findings = Findings::default();
        check_promises(text, &|_, test| test == "works", &mut findings);
        assert_eq!(findings.0.len(), 2, "{:?}", findings.0);
    }
}
