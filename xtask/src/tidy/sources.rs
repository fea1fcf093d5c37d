//! Rules for source files: a module doc first, a bounded size, `unsafe` in two crates only, no
//! standard library where a crate promises to do no I/O, locks through one door, and printing
//! through another.

use super::sizes::product_text;
use super::{Findings, has_extension};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 800;

/// The only code that may hold `unsafe` blocks.
const UNSAFE_IN: [&str; 2] = ["crates/ceph", "crates/store"];

/// Crates the compiler keeps away from files, sockets, clocks and threads.
const WITHOUT_STD: [&str; 7] = [
    "crates/core",
    "crates/qos",
    "crates/state",
    "crates/cluster",
    "crates/nfs",
    "crates/smb",
    "crates/smb-names",
];

/// Width of the code and its comments, as in `rustfmt.toml`.
const COLUMNS_MAX: usize = 100;

/// Words that no comment begins with: its subject would be a clause instead of a noun.
const VAGUE_BEGINNINGS: [&str; 5] = ["What", "Who", "Whose", "Whom", "Those"];

/// Crates whose locks and channels come from their own `sync` module.
const SYNC_DOOR: [&str; 4] =
    ["crates/ceph/src", "crates/control/src", "crates/server/src", "crates/store/src"];

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

/// The only code that prints: what it is given can't command a terminal.
const PRINT_DOOR: &str = "crates/report/src/terminal";

/// Names that print, or lead to printing.
const PRINTS: [&str; 17] = [
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
    "dbg!",
    "std::print",
    "std::eprint",
    "std::dbg",
    "stdout()",
    "stderr()",
    "comfy_table",
    "indicatif",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
    ".print_help()",
    ".print_long_help()",
];

/// Calls by which clap prints by itself.
const CLAP_PRINTS: [&str; 2] = [".exit()", "error.print()"];

/// Standard streams that are not for people's terminals alone.
const STREAMS: [(&str, &str); 3] = [
    // A worker speaks a protocol of bytes with its coordinator.
    ("crates/bench/src/cluster/link.rs", "stdout()"),
    // A client of Ceph speaks one of lines with the comparison.
    ("crates/cluster-lab/src/peers/client/serve.rs", "stdout()"),
    // The log has formats of its own, and escapes its values (`log_fields.rs`).
    ("crates/weir/src/cli/logging.rs", "stderr()"),
];

/// Files that print whole documents for other programs, whose lines are not made one by one.
const DOCUMENTS: [&str; 2] =
    ["crates/weir/src/cli/completions.rs", "crates/weir/src/cli/config.rs"];

pub(super) fn check(files: &[PathBuf], findings: &mut Findings) -> Result<()> {
    for path in files.iter().filter(|path| has_extension(path, "rs")) {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        for wrong in objections(path, &text) {
            findings.add(path.display(), wrong);
        }
    }
    let is_root = |path: &&PathBuf| {
        let is_named = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
        is_named && !path.starts_with("fuzz") && !path.starts_with("tests")
    };
    for root in files.iter().filter(is_root).filter(|root| !may_be_unsafe(root)) {
        if !fs::read_to_string(root)?.contains("#![forbid(unsafe_code)]") {
            findings.add(root.display(), "must forbid unsafe code");
        }
    }
    for folder in WITHOUT_STD {
        let root = Path::new(folder).join("src/lib.rs");
        let text =
            fs::read_to_string(&root).with_context(|| format!("reading {}", root.display()))?;
        if !text.lines().any(|line| line.starts_with("#![") && line.contains("no_std")) {
            findings.add(root.display(), "must be no_std: this crate does no I/O");
        }
    }
    Ok(())
}

fn objections(path: &Path, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    // A `tests.rs` tests the module it belongs to.
    let is_tests = path.file_name().is_some_and(|name| name == "tests.rs");
    if !is_tests && !text.starts_with("//!") {
        wrong.push("must open with a `//!` doc saying what the module is and is not".to_owned());
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        wrong.push(format!("has {lines} lines; split it (at most {LINES_MAX})"));
    }
    let product_lines = product_text(text).lines().count();
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.split("//").next().unwrap_or_default();
        if begins_vaguely(line) {
            wrong.push(format!("line {number}: name the subject of the comment: {}", line.trim()));
        }
        if !may_be_unsafe(path) && is_unsafe(code) {
            wrong.push(format!(
                "line {number}: `unsafe` belongs in {} only",
                UNSAFE_IN.join(" and ")
            ));
        }
        if is_wide_comment(line) {
            wrong.push(format!("line {number}: comments end within {COLUMNS_MAX} columns"));
        }
        if !is_tests && number <= product_lines && passes_the_door(path, code) {
            wrong.push(format!("line {number}: locks and channels come from the `sync` module"));
        }
        if !is_tests && number <= product_lines && prints_beside_the_door(path, code) {
            wrong.push(format!("line {number}: printing goes through `weir_report::terminal`"));
        }
    }
    wrong
}

/// Is `line` a comment beyond the width of the code? The rows of a table cannot be wrapped.
fn is_wide_comment(line: &str) -> bool {
    let text = line.trim_start();
    let is_row = text.trim_start_matches(['/', '!']).starts_with(" |");
    text.starts_with("//") && !is_row && line.chars().count() > COLUMNS_MAX
}

/// Is `line` a comment whose first word is one of [`VAGUE_BEGINNINGS`]?
fn begins_vaguely(line: &str) -> bool {
    let Some(text) = line.trim_start().strip_prefix("//") else { return false };
    let first = text.trim_start_matches(['/', '!']).split_whitespace().next().unwrap_or_default();
    VAGUE_BEGINNINGS.contains(&first)
}

/// Is `path` in one of the crates of [`UNSAFE_IN`]?
fn may_be_unsafe(path: &Path) -> bool {
    UNSAFE_IN.iter().any(|folder| path.starts_with(folder))
}

fn is_unsafe(code: &str) -> bool {
    ["unsafe {", "unsafe fn ", "unsafe impl ", "unsafe extern "]
        .iter()
        .any(|form| code.contains(form) && !code.contains(&format!("\"{form}")))
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

/// Does `code`, of a crate's product, print otherwise than through [`PRINT_DOOR`]?
fn prints_beside_the_door(path: &Path, code: &str) -> bool {
    let mut place = path.components().map(std::path::Component::as_os_str);
    let of_product = place.next().is_some_and(|first| first == "crates")
        && place.nth(1).is_some_and(|folder| folder == "src");
    if !of_product || path.starts_with(PRINT_DOOR) {
        return false;
    }
    let is_stream =
        |what| STREAMS.iter().any(|(file, form)| path == Path::new(file) && *form == what);
    let prints = PRINTS.into_iter().any(|what| names(code, what) && !is_stream(what));
    let clap = CLAP_PRINTS.into_iter().any(|what| code.contains(what));
    let document = code.contains("terminal::")
        && names(code, "document")
        && !DOCUMENTS.iter().any(|file| path == Path::new(file));
    prints || clap || document
}

/// Is `what` in `code`, and not the end of a longer name?
fn names(code: &str, what: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(what).any(|(at, _)| {
        let before = code.get(..at).and_then(|before| before.chars().next_back());
        !what.starts_with(is_part) || !before.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_goes_through_one_door() {
        let found = |path: &str, code: &str| prints_beside_the_door(Path::new(path), code);
        let pool = "crates/weir/src/cli/pool.rs";
        for code in [
            r#"println!("{name}");"#,
            r#"    eprint!("\r{text}");"#,
            r#"std::println!("{name}");"#,
            "use std::eprintln as say;",
            "dbg!(name);",
            r#"writeln!(std::io::stdout().lock(), "{name}")?;"#,
            "let mut out = stderr();",
            "use comfy_table::Table;",
            "let bar = indicatif::ProgressBar::new(1);",
            r#"File::create("/dev/tty")?;"#,
            "error.exit();",
            "command.print_help()?;",
            "use weir_report::terminal::{Text, document};",
            "terminal::document(&name)?;",
        ] {
            assert!(found(pool, code), "{code}");
            assert!(found("crates/server/src/serve.rs", code), "{code}");
            assert!(!found("crates/report/src/terminal/mod.rs", code), "{code}");
            assert!(!found("crates/weir/tests/cli.rs", code), "{code}");
            assert!(!found("xtask/src/main.rs", code), "{code}");
        }
        for code in [
            r#"outln!("{name}");"#,
            r#"weir_report::errln!("{name}");"#,
            "print::line(name)?;",
            "print::table(&header, rows)",
            "command.stdout(Stdio::null()).stderr(Stdio::piped());",
            "std::process::exit(1);",
            "let stdout = child.stdout.take();",
        ] {
            assert!(!found(pool, code), "{code}");
        }
        assert!(found(pool, "let mut out = io::stdout();"));
        assert!(!found("crates/bench/src/cluster/link.rs", "write: Box::new(io::stdout()),"));
        assert!(found("crates/bench/src/cluster/link.rs", "write: Box::new(io::stderr()),"));
        assert!(!found("crates/weir/src/cli/config.rs", "use weir_report::terminal::document;"));
    }

    #[test]
    fn printing_in_tests_is_no_matter() {
        let text = "//! Doc.\n#[cfg(test)]\nmod tests {\n    println!();\n}\n";
        assert_eq!(objections(Path::new("crates/weir/src/a.rs"), text), [""; 0]);
        let text = "//! Doc.\nfn a() {\n    println!();\n}\n";
        assert_eq!(objections(Path::new("crates/weir/src/a.rs"), text).len(), 1);
    }

    #[test]
    fn each_rule_refuses_what_breaks_it() {
        let at = |path: &str, text: &str| objections(Path::new(path), text).len();
        assert_eq!(at("crates/nfs/src/a.rs", "//! Doc.\nfn a() {}\n"), 0);
        assert_eq!(at("crates/nfs/src/a.rs", "fn a() {}\n"), 1);
        assert_eq!(at("crates/nfs/src/tests.rs", "fn a() {}\n"), 0);
        assert_eq!(at("crates/nfs/src/a.rs", &format!("//! Doc.\n{}", "\n".repeat(800))), 1);
        assert_eq!(at("crates/nfs/src/a.rs", "//! Doc.\nlet a = unsafe { b() };\n"), 1);
        assert_eq!(at("crates/nfs/src/a.rs", "//! Doc.\n// no unsafe { here\n"), 0);
        for vague in ["/// What is told.", "//! Whose it is.", "    // Those that wait."] {
            assert_eq!(at("crates/nfs/src/a.rs", &format!("//! Doc.\n{vague}\n")), 1, "{vague}");
        }
        assert_eq!(at("crates/nfs/src/a.rs", "//! Doc.\n// Whatever the peer sends.\n"), 0);
        for folder in UNSAFE_IN {
            let path = format!("{folder}/src/a.rs");
            assert_eq!(at(&path, "//! Doc.\nlet a = unsafe { b() };\n"), 0, "{folder}");
        }
        let comment = |begins: &str, length: usize| {
            format!("//! Doc.\n{begins}{}\n", "x".repeat(length - begins.len()))
        };
        assert_eq!(at("crates/nfs/src/a.rs", &comment("    /// ", 100)), 0);
        assert_eq!(at("crates/nfs/src/a.rs", &comment("    /// ", 101)), 1);
        assert_eq!(at("crates/nfs/src/a.rs", &comment("//! | ", 101)), 0, "a row of a table");
        assert_eq!(at("crates/nfs/src/a.rs", &comment("let a = ", 101)), 0, "rustfmt's business");
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
