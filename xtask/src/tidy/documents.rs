//! Rules for documents: relative links lead somewhere, each promise in `docs/semantics.md` names
//! tests that exist and that `make test` runs, and `docs/configuration.md` has every setting.

use super::{Findings, has_extension};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PROMISES: &str = "docs/semantics.md";

const SETTINGS: &str = "docs/configuration.md";

/// The file that declares the settings, each with a line `name: "section.key",`.
const SETTINGS_SOURCE: &str = "crates/control/src/config/keys.rs";

/// The file that names the scripts that `make test` runs, each as a text.
const SUITES_SOURCE: &str = "xtask/src/suites/list.rs";

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
    let scripts = scripts_run(&read(SUITES_SOURCE)?, &|path| fs::read_to_string(path).ok());
    let fault = |file: &str, test: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        fault_of((file, &text), test, &scripts)
    };
    check_promises(&read(PROMISES)?, &fault, findings);
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

/// Each `## ` section must end in a line of proof with tests in which `fault` finds nothing.
fn check_promises(
    text: &str,
    fault: &dyn Fn(&str, &str) -> Option<&'static str>,
    findings: &mut Findings,
) {
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
            let (file, test) = proof.split_once("::").unwrap_or((proof, ""));
            if let Some(fault) = fault(file, test) {
                findings.add(PROMISES, format!("\"{heading}\": `{proof}`: {fault}"));
            }
        }
    }
}

/// The reason why `test` proves nothing: `file`, which has this `text`, does not declare it, or is
/// a script that is none of the `scripts` run.
fn fault_of(
    (file, text): (&str, &str),
    test: &str,
    scripts: &BTreeSet<String>,
) -> Option<&'static str> {
    if !text.contains(&declaration(file, test)) {
        return Some("there is no such test");
    }
    let is_run = has_extension(Path::new(file), "rs") || scripts.contains(file);
    (!is_run).then_some("no suite of `make test` runs the script")
}

/// The words with which a file declares the test `test`: a function of Rust or Python, or a named
/// case of a shell suite.
fn declaration(file: &str, test: &str) -> String {
    match Path::new(file).extension().and_then(std::ffi::OsStr::to_str) {
        Some("rs") => format!("fn {test}("),
        Some("py") => format!("def {test}("),
        _ => format!("check {test} "),
    }
}

/// The scripts that the text `suites` names, and those beside them that these run (`$here/NAME`).
fn scripts_run(suites: &str, read: &dyn Fn(&str) -> Option<String>) -> BTreeSet<String> {
    let is_script = |word: &str| word.starts_with("tests/") && has_extension(Path::new(word), "sh");
    let named: BTreeSet<String> =
        suites.split('"').filter(|word| is_script(word)).map(str::to_owned).collect();
    let run_by = |script: &String| {
        let (folder, _) = script.rsplit_once('/')?;
        let text = read(script)?;
        let beside = text.split("$here/").skip(1).filter_map(|rest| rest.split(['"', ' ']).next());
        Some(beside.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>())
    };
    let others: Vec<String> = named.iter().filter_map(run_by).flatten().collect();
    named.into_iter().chain(others).collect()
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
    fn a_test_is_declared_in_the_words_of_its_language() {
        assert_eq!(declaration("a/b.rs", "works"), "fn works(");
        assert_eq!(declaration("a/b.py", "works"), "def works(");
        assert_eq!(declaration("a/b.sh", "works"), "check works ");
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
        let fault = |_: &str, test: &str| (test != "works").then_some("it is gone");
        check_promises(text, &fault, &mut findings);
        assert_eq!(findings.0.len(), 2, "{:?}", findings.0);
    }

    #[test]
    fn a_script_counts_if_a_suite_or_a_script_of_a_suite_runs_it() {
        let suites = r#"run_script("tests/a/one.sh"), Program("two.sh"), "tests/a/c.txt""#;
        let read = |path: &str| {
            (path == "tests/a/one.sh").then(|| "\"$here/guest\" \"$here/cases.sh\" x".to_owned())
        };
        let scripts = scripts_run(suites, &read);
        let expected = ["tests/a/cases.sh", "tests/a/guest", "tests/a/one.sh"];
        assert!(scripts.iter().eq(expected), "{scripts:?}");
    }

    #[test]
    fn a_case_of_a_script_proves_only_if_the_script_is_run() {
        let (file, text) = ("tests/a.sh", "check works true\n");
        let run = BTreeSet::from([file.to_owned()]);
        assert_eq!(fault_of((file, text), "works", &run), None);
        let fault = fault_of((file, text), "works", &BTreeSet::new());
        assert_eq!(fault, Some("no suite of `make test` runs the script"));
        assert_eq!(fault_of((file, text), "gone", &run), Some("there is no such test"));
        let rust = ("a.rs", "fn works() {}");
        assert_eq!(fault_of(rust, "works", &run), None);
        assert_eq!(fault_of(rust, "gone", &run), Some("there is no such test"));
    }
}
