//! Bounds on size: lines of a function, and source lines of a crate. Files are in `sources`.

use super::{Findings, has_extension};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a function, with its signature and comments. Clippy counts its code alone.
const FUNCTION_LINES_MAX: usize = 70;

/// Lines of a crate under `src`, without its tests.
const CRATE_LINES_MAX: usize = 16_000;

/// The condition of what other crates' tests use too, and no product binary.
const TESTING: &str = "#[cfg(any(test, feature = \"testing\"))]";

pub(super) fn check(files: &[PathBuf], findings: &mut Findings) -> Result<()> {
    let mut texts = BTreeMap::new();
    for path in files.iter().filter(|path| has_extension(path, "rs")) {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        for (line, length) in long_functions(&text) {
            let wrong = format!("has {length} lines; split it (at most {FUNCTION_LINES_MAX})");
            findings.add(format!("{}:{line}", path.display()), wrong);
        }
        texts.insert(path.as_path(), text);
    }
    for (name, lines) in crate_lines(&texts) {
        if lines > CRATE_LINES_MAX {
            let wrong = format!("has {lines} source lines; split it (at most {CRATE_LINES_MAX})");
            findings.add(format!("crates/{name}"), wrong);
        }
    }
    Ok(())
}

/// The functions in `text`, which is formatted, that are too long: first line and number of lines.
fn long_functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let functions = lines.iter().enumerate().filter(|(_, line)| begins_function(line));
    let lengths = functions.filter_map(|(first, line)| {
        let indent = line.get(..line.len() - line.trim_start().len())?;
        let rest = lines.get(first..)?;
        let opening = rest.iter().position(|line| line.ends_with(['{', ';', '}']))?;
        if !rest.get(opening)?.ends_with('{') {
            return None;
        }
        let closing = rest
            .iter()
            .position(|line| line.strip_prefix(indent).is_some_and(|rest| rest == "}"))?;
        Some((first + 1, closing + 1))
    });
    lengths.filter(|(_, length)| *length > FUNCTION_LINES_MAX).collect()
}

fn begins_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_before = |word: &str| {
        word.starts_with("pub") || ["const", "async", "unsafe", "extern", "\"C\""].contains(&word)
    };
    words.find(|word| !is_before(word) && !word.ends_with(')')).is_some_and(|word| word == "fn")
}

/// The source lines of each crate.
fn crate_lines<'a>(texts: &BTreeMap<&'a Path, String>) -> BTreeMap<&'a str, usize> {
    let tests = test_modules(texts);
    let mut lines = BTreeMap::new();
    for (path, text) in texts {
        let module = path.with_extension("");
        if module.ancestors().any(|module| tests.contains(module)) {
            continue;
        }
        if let Some(name) = crate_of(path) {
            *lines.entry(name).or_default() += product_text(text).lines().count();
        }
    }
    lines
}

/// The crate that a file under `crates/*/src` belongs to.
fn crate_of(path: &Path) -> Option<&str> {
    let path = path.strip_prefix("crates").ok()?;
    let mut parts = path.components();
    let name = parts.next()?.as_os_str().to_str()?;
    (parts.next()?.as_os_str() == "src").then_some(name)
}

/// The text before the tests at its end.
pub(super) fn product_text(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {").and_then(|tests| text.get(..tests)).unwrap_or(text)
}

/// The modules in files of their own that are compiled for tests alone, as paths without extension.
pub(super) fn test_modules(texts: &BTreeMap<&Path, String>) -> BTreeSet<PathBuf> {
    let mut modules = BTreeSet::new();
    for (path, text) in texts {
        let is_root = path
            .file_stem()
            .is_some_and(|stem| ["mod", "lib", "main"].iter().any(|root| stem == *root));
        let folder = if is_root { path.parent().map(Path::to_owned) } else { None };
        let folder = folder.unwrap_or_else(|| path.with_extension(""));
        let mut is_test = false;
        for line in text.lines() {
            let line = line.trim();
            if ["#[cfg(test", "#[cfg(all(test", TESTING].iter().any(|cfg| line.starts_with(cfg)) {
                is_test = true;
            } else if !line.starts_with("#[") {
                let name = line.strip_suffix(';').and_then(|line| line.split("mod ").nth(1));
                if let Some(name) = name.filter(|_| is_test) {
                    modules.insert(folder.join(name));
                }
                is_test = false;
            }
        }
    }
    modules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_as_long_as_its_lines() {
        let function = |head: &str, lines: usize| {
            format!("//! Doc.\n{head}\n{}}}\n", "    a();\n".repeat(lines - 2))
        };
        for head in
            ["fn a() {", "pub fn a() {", "pub(super) async fn a() {", "const extern fn a() {"]
        {
            assert_eq!(long_functions(&function(head, 70)), [], "{head}");
            assert_eq!(long_functions(&function(head, 71)), [(2, 71)], "{head}");
        }
        let signature = "fn a(\n    b: u32,\n) -> u32 {";
        assert_eq!(long_functions(&function(signature, 68)), []);
        assert_eq!(long_functions(&function(signature, 69)), [(2, 71)]);
        // A declaration has no body, and a type is no function.
        assert_eq!(long_functions(&function("fn a();\nstruct B {", 71)), []);
        assert_eq!(long_functions(&function("fn a() {}\nstruct B {", 71)), []);
    }

    #[test]
    fn tests_are_no_source_lines() {
        let texts: BTreeMap<&Path, String> = [
            ("crates/a/src/lib.rs", "#[cfg(test)]\nmod hostile;\nmod b;\n"),
            (
                "crates/e/src/lib.rs",
                "1\n#[cfg(any(test, feature = \"testing\"))]\npub mod double;\n",
            ),
            ("crates/e/src/double.rs", "1\n2\n"),
            (
                "crates/f/src/lib.rs",
                "1\n#[cfg(any(test, feature = \"client\"))]\npub mod client;\n",
            ),
            ("crates/f/src/client.rs", "1\n2\n"),
            ("crates/a/src/hostile.rs", "1\n2\n"),
            ("crates/a/src/hostile/deep.rs", "1\n2\n"),
            ("crates/a/src/b.rs", "1\n#[cfg(test)]\n#[path = \"x\"]\nmod tests;\n"),
            ("crates/a/src/b/tests.rs", "1\n2\n"),
            ("crates/a/src/b/c.rs", "1\n\n#[cfg(test)]\nmod tests {\n}\n"),
            ("crates/a/tests/d.rs", "1\n"),
            ("xtask/src/main.rs", "1\n"),
        ]
        .map(|(path, text)| (Path::new(path), text.to_owned()))
        .into();
        let expected = BTreeMap::from([("a", 3 + 4 + 2), ("e", 3), ("f", 3 + 2)]);
        assert_eq!(crate_lines(&texts), expected);
    }
}
