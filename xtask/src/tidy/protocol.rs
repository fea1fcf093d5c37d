//! The boundary between the server and the protocols it serves: outside the RPC session, no file of
//! `crates/server` names `weir_nfs`, apart from tests.

use super::sizes::{product_text, test_modules};
use super::{Findings, has_extension};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const SERVER: &str = "crates/server/src";
/// The session of RPC, which may name the protocol.
const SESSION: &str = "session/rpc";
const PROTOCOL: &str = "weir_nfs";

pub(super) fn check(files: &[PathBuf], findings: &mut Findings) -> Result<()> {
    let mut texts = BTreeMap::new();
    let of_server = |path: &&PathBuf| path.starts_with(SERVER) && has_extension(path, "rs");
    for path in files.iter().filter(of_server) {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        texts.insert(path.as_path(), text);
    }
    for path in naming(&texts) {
        findings.add(path.display(), format!("names `{PROTOCOL}`: keep the protocol in {SESSION}"));
    }
    Ok(())
}

/// The files under [`SERVER`] that name the protocol outside its session and outside tests.
fn naming<'a>(texts: &BTreeMap<&'a Path, String>) -> Vec<&'a Path> {
    let tests = test_modules(texts);
    let names = |path: &Path, text: &str| {
        let Ok(inner) = path.strip_prefix(SERVER) else { return false };
        let module = path.with_extension("");
        let is_test = module.ancestors().any(|module| tests.contains(module));
        !inner.starts_with(SESSION) && !is_test && product_text(text).contains(PROTOCOL)
    };
    texts.iter().filter(|(path, text)| names(path, text)).map(|(path, _)| *path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_session_and_tests_name_the_protocol() {
        let texts: BTreeMap<&Path, String> = [
            ("crates/server/src/lib.rs", "mod a;\n#[cfg(test)]\nmod hostile;\n"),
            ("crates/server/src/a.rs", "use weir_nfs::v3;\n"),
            ("crates/server/src/b.rs", "#[cfg(test)]\nmod tests {\n    use weir_nfs::v3;\n}\n"),
            ("crates/server/src/hostile.rs", "use weir_nfs::v3;\n"),
            ("crates/server/src/session/rpc/mod.rs", "use weir_nfs::v3;\n"),
            ("crates/server/src/session/mod.rs", "mod rpc;\n"),
        ]
        .map(|(path, text)| (Path::new(path), text.to_owned()))
        .into();
        assert_eq!(naming(&texts), [Path::new("crates/server/src/a.rs")]);
    }
}
