//! Rules for source files: a module doc first, a bounded size, `unsafe` in one crate only, no
//! standard library where a crate promises to do no I/O, locks through one door, and nothing that
//! the server says beside its log.

use super::{Findings, has_extension};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 800;

/// The only code that may hold `unsafe` blocks.
const UNSAFE_IN: &str = "crates/store";

/// Crates the compiler keeps away from files, sockets, clocks and threads.
const WITHOUT_STD: [&str; 3] = ["crates/core", "crates/qos", "crates/nfs"];

/// Crates whose locks and channels come from their own `sync` module.
const SYNC_DOOR: [&str; 2] = ["crates/server/src", "crates/store/src"];

/// Paths that only a `sync` module may name.
const BEHIND_THE_DOOR: [&str; 7] = [
    "sync::Mutex",
    "sync::RwLock",
    "sync::Condvar",
    "sync::mpsc",
    "sync::oneshot",
    "sync::watch",
    "sync::Notify",
];

/// Code that runs in a server. What it says goes through the log, which waits for no reader.
const SAYS_BY_LOG: [&str; 7] = [
    "crates/core/src",
    "crates/qos/src",
    "crates/state/src",
    "crates/nfs/src",
    "crates/store/src",
    "crates/catalog/src",
    "crates/server/src",
];

/// What writes to standard output or standard error, and waits for its reader.
const SAYS_ALOUD: [&str; 7] =
    ["println!", "eprintln!", "print!(", "eprint!(", "dbg!(", "stdout()", "stderr()"];

pub(super) fn check(files: &[PathBuf], findings: &mut Findings) -> Result<()> {
    for path in files.iter().filter(|path| has_extension(path, "rs")) {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        for wrong in objections(path, &text) {
            findings.add(path.display(), wrong);
        }
    }
    for folder in WITHOUT_STD {
        let root = Path::new(folder).join("src/lib.rs");
        let text =
            fs::read_to_string(&root).with_context(|| format!("reading {}", root.display()))?;
        if !text.lines().any(|line| line.starts_with("#![") && line.contains("no_std")) {
            findings.add(root.display(), "must be no_std: this crate does no I/O");
        }
        if !text.contains("#![forbid(unsafe_code)]") {
            findings.add(root.display(), "must forbid unsafe code");
        }
    }
    Ok(())
}

fn objections(path: &Path, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    // What a `tests.rs` tests is the module it belongs to.
    let is_tests = path.file_name().is_some_and(|name| name == "tests.rs");
    if !is_tests && !text.starts_with("//!") {
        wrong.push("must open with a `//!` doc saying what the module is and is not".to_owned());
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        wrong.push(format!("has {lines} lines; split it (at most {LINES_MAX})"));
    }
    let product_lines = match text.find("#[cfg(test)]\nmod tests {") {
        Some(tests) => text[..tests].lines().count(),
        None => lines,
    };
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.split("//").next().unwrap_or_default();
        if !path.starts_with(UNSAFE_IN) && is_unsafe(code) {
            wrong.push(format!("line {number}: `unsafe` belongs in {UNSAFE_IN} only"));
        }
        if !is_tests && number <= product_lines && passes_the_door(path, code) {
            wrong.push(format!("line {number}: locks and channels come from the `sync` module"));
        }
        if !is_tests && number <= product_lines && says_aloud(path, code) {
            wrong.push(format!("line {number}: a server says what it says in its log"));
        }
    }
    wrong
}

fn is_unsafe(code: &str) -> bool {
    ["unsafe {", "unsafe fn ", "unsafe impl ", "unsafe extern "]
        .iter()
        .any(|form| code.contains(form) && !code.contains(&format!("\"{form}")))
}

fn says_aloud(path: &Path, code: &str) -> bool {
    SAYS_BY_LOG.iter().any(|folder| path.starts_with(folder))
        && SAYS_ALOUD.iter().any(|form| code.contains(form))
}

fn passes_the_door(path: &Path, code: &str) -> bool {
    let is_door = path.file_stem().is_some_and(|stem| stem == "sync");
    let behind = SYNC_DOOR.iter().any(|folder| path.starts_with(folder));
    let named = ["std::", "tokio::"]
        .iter()
        .any(|from| BEHIND_THE_DOOR.iter().any(|path| code.contains(&format!("{from}{path}"))));
    let grouped = (code.contains("std::sync::{") || code.contains("tokio::sync::{"))
        && BEHIND_THE_DOOR
            .iter()
            .filter_map(|path| path.strip_prefix("sync::"))
            .any(|item| code.contains(item));
    behind && !is_door && (named || grouped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_refuses_what_breaks_it() {
        let at = |path: &str, text: &str| objections(Path::new(path), text).len();
        assert_eq!(at("crates/nfs/src/a.rs", "//! Doc.\nfn a() {}\n"), 0);
        assert_eq!(at("crates/nfs/src/a.rs", "fn a() {}\n"), 1);
        assert_eq!(at("crates/nfs/src/tests.rs", "fn a() {}\n"), 0);
        assert_eq!(at("crates/nfs/src/a.rs", &format!("//! Doc.\n{}", "\n".repeat(800))), 1);
        assert_eq!(at("crates/nfs/src/a.rs", "//! Doc.\nlet a = unsafe { b() };\n"), 1);
        assert_eq!(at("crates/nfs/src/a.rs", "//! Doc.\n// no unsafe { here\n"), 0);
        assert_eq!(at("crates/store/src/a.rs", "//! Doc.\nlet a = unsafe { b() };\n"), 0);
    }

    #[test]
    fn a_server_says_nothing_beside_its_log() {
        let aloud = |path: &str, code: &str| says_aloud(Path::new(path), code);
        assert!(aloud("crates/server/src/a.rs", "eprintln!(\"full\");"));
        assert!(aloud("crates/store/src/local/a.rs", "writeln!(std::io::stderr(), \"full\");"));
        assert!(!aloud("crates/server/src/a.rs", "tracing::warn!(\"full\");"));
        assert!(!aloud("crates/weir/src/a.rs", "println!(\"done\");"));
    }

    #[test]
    fn locks_come_through_one_door() {
        let named = |path: &str, code: &str| passes_the_door(Path::new(path), code);
        assert!(named("crates/server/src/a.rs", "use std::sync::Mutex;"));
        assert!(named("crates/server/src/a.rs", "use std::sync::{Arc, Mutex};"));
        assert!(named("crates/store/src/a.rs", "let a = tokio::sync::mpsc::channel(1);"));
        assert!(!named("crates/server/src/a.rs", "use std::sync::Arc;"));
        assert!(!named("crates/server/src/a.rs", "use crate::sync::Mutex;"));
        assert!(!named("crates/server/src/sync.rs", "pub(crate) use std::sync::Mutex;"));
        assert!(!named("crates/catalog/src/a.rs", "use std::sync::Mutex;"));
    }
}
