//! The boundary between the server and the protocols it serves: outside the RPC session, few files
//! of `crates/server` name `weir_nfs`, and `ARCHITECTURE.md` lists them.

use super::sizes::{product_text, test_modules};
use super::{Findings, code_words, has_extension};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const SERVER: &str = "crates/server/src";
/// The session of RPC, which may name the protocol.
const SESSION: &str = "session/rpc";
const PROTOCOL: &str = "weir_nfs";
const DOCUMENT: &str = "ARCHITECTURE.md";
/// The beginning of the line that lists the files.
const LIST: &str = "Outside the RPC session, these files of `crates/server` name `weir_nfs`:";
/// Files that may name the protocol.
const FILES_MAX: usize = 6;

pub(super) fn check(files: &[PathBuf], findings: &mut Findings) -> Result<()> {
    let mut texts = BTreeMap::new();
    let of_server = |path: &&PathBuf| path.starts_with(SERVER) && has_extension(path, "rs");
    for path in files.iter().filter(of_server) {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        texts.insert(path.as_path(), text);
    }
    let document = fs::read_to_string(DOCUMENT).with_context(|| format!("reading {DOCUMENT}"))?;
    for wrong in objections(&texts, &document) {
        findings.add(DOCUMENT, wrong);
    }
    Ok(())
}

fn objections(texts: &BTreeMap<&Path, String>, document: &str) -> Vec<String> {
    let (naming, listed) = (naming(texts), listed(document));
    let mut wrong = Vec::new();
    if naming.len() > FILES_MAX {
        let count = naming.len();
        wrong.push(format!(
            "{count} files of {SERVER} outside {SESSION} name `{PROTOCOL}` (at most {FILES_MAX})"
        ));
    }
    for path in naming.difference(&listed) {
        wrong.push(format!(
            "`{path}` names `{PROTOCOL}`: keep the protocol in {SESSION}, or list it"
        ));
    }
    for path in listed.difference(&naming) {
        wrong.push(format!("`{path}` is listed as naming `{PROTOCOL}` and does not"));
    }
    wrong
}

/// The files under [`SERVER`] that name the protocol outside their tests.
fn naming(texts: &BTreeMap<&Path, String>) -> BTreeSet<String> {
    let tests = test_modules(texts);
    let mut naming = BTreeSet::new();
    for (path, text) in texts {
        let Ok(inner) = path.strip_prefix(SERVER) else { continue };
        let module = path.with_extension("");
        let is_test = module.ancestors().any(|module| tests.contains(module));
        if !inner.starts_with(SESSION) && !is_test && product_text(text).contains(PROTOCOL) {
            naming.insert(inner.display().to_string());
        }
    }
    naming
}

/// The files that the document lists: those in backticks after [`LIST`], up to an empty line.
fn listed(document: &str) -> BTreeSet<String> {
    let Some((_, list)) = document.split_once(LIST) else { return BTreeSet::new() };
    let list = list.split_once("\n\n").map_or(list, |(list, _)| list);
    let files = code_words(list).into_iter().filter(|word| word.ends_with(".rs"));
    files.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_name_the_protocol_are_those_that_are_listed() {
        let texts: BTreeMap<&Path, String> = [
            ("crates/server/src/lib.rs", "mod a;\n#[cfg(test)]\nmod hostile;\n"),
            ("crates/server/src/a.rs", "use weir_nfs::v3;\n"),
            ("crates/server/src/b.rs", "#[cfg(test)]\nmod tests {\n    use weir_nfs::v3;\n}\n"),
            ("crates/server/src/hostile.rs", "use weir_nfs::v3;\n"),
            ("crates/server/src/session/rpc/mod.rs", "use weir_nfs::v3;\n"),
        ]
        .map(|(path, text)| (Path::new(path), text.to_owned()))
        .into();
        let document = |files: &str| format!("Doc.\n\n{LIST} {files}.\n\nOther `c.rs`.\n");
        assert_eq!(objections(&texts, &document("`a.rs`")), [""; 0]);
        assert_eq!(objections(&texts, &document("`a.rs`,\n`b.rs`")).len(), 1);
        assert_eq!(objections(&texts, &document("none")).len(), 1);
        let many: Vec<_> =
            (0..FILES_MAX).map(|at| PathBuf::from(format!("{SERVER}/x{at}.rs"))).collect();
        let mut texts = texts;
        texts.extend(many.iter().map(|path| (path.as_path(), "weir_nfs".to_owned())));
        let listed: Vec<_> = (0..FILES_MAX).map(|at| format!("`x{at}.rs`")).collect();
        assert_eq!(objections(&texts, &document(&format!("`a.rs` {}", listed.join(" ")))).len(), 1);
    }
}
