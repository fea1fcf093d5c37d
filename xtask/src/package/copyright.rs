//! `debian/copyright`: Weir's licence and those of everything that is linked into the program, in
//! Debian's machine-readable form. Made from what cargo resolved and from the licence files that
//! the crates bring, so that a new library can't be forgotten.

use super::FEATURES;
use crate::process;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const PROGRAM: &str = "weir-weir";
const APACHE: &str = "Apache-2.0";
/// Between these are the terms of the Apache License.
const APACHE_FIRST: &str = "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION";
const APACHE_LAST: &str = "END OF TERMS AND CONDITIONS";
const APACHE_PLACE: &str =
    "(On Debian systems its terms are in /usr/share/common-licenses/Apache-2.0.)";

const HEAD: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Weir
Comment: Files: * is Weir. What follows is linked into its program; folders below
 linked/ name a library and its version.

Files: *
Copyright: The Weir authors
License: Apache-2.0

Files: linked/rust-standard-library/*
Copyright: The Rust Project contributors
License: Apache-2.0

";

/// Sources in another language that a crate builds: the crate, what it is, and the file in the
/// crate that has its licence, or `None` where it has none.
const WITHIN: [(&str, &str, Option<&str>); 2] = [
    ("libmimalloc-sys", "mimalloc", Some("c_src/mimalloc/v2/LICENSE")),
    ("libsqlite3-sys", "sqlite", None),
];

/// Crates that bring no licence file, and the crate of the same project that brings theirs.
const TEXT_OF: [(&str, &str); 1] = [("tonic-prost", "tonic")];

const PUBLIC_DOMAIN: &str = "\
The author disclaims copyright to this source code. In place of a legal notice, here is a blessing:
May you do good and not evil.
May you find forgiveness for yourself and forgive others.
May you share freely, never taking more than you give.
";

const TAIL: &str = "\
License: Apache-2.0
 Licensed under the Apache License, Version 2.0. On Debian systems its whole
 text is in /usr/share/common-licenses/Apache-2.0.
";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    authors: Vec<String>,
    manifest_path: String,
    source: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// None for what is linked; `dev` and `build` otherwise.
    kind: Option<String>,
}

/// The whole file.
///
/// # Errors
/// Cargo can't resolve, or a crate has neither Apache-2.0 among its licences nor a licence file.
pub(super) fn text() -> Result<String> {
    let host = process::output("rustc", &["-vV"])?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not say what it builds for")?;
    let args = ["metadata", "--format-version=1", "--locked", FEATURES, "--filter-platform", host];
    let metadata: Metadata = serde_json::from_str(&process::output("cargo", &args)?)?;
    let mut text = HEAD.to_owned();
    let linked = linked(&metadata)?;
    for package in &linked {
        text += &paragraph(package, &linked)?;
        text += &within(package)?;
    }
    Ok(text + TAIL)
}

/// The packages of others that end up in the program, by name: neither what only builds or tests
/// it, nor procedural macros, which run in the compiler.
fn linked(metadata: &Metadata) -> Result<Vec<&Package>> {
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let program = metadata.packages.iter().find(|package| package.name == PROGRAM);
    let mut open = vec![program.context("cargo does not know the program")?.id.as_str()];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        let is_macro = |target: &Target| target.kind.iter().any(|kind| kind == "proc-macro");
        if packages[id].targets.iter().any(is_macro) || !seen.insert(id) {
            continue;
        }
        let deps = nodes[id].deps.iter();
        let linked = deps.filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind.is_none()));
        open.extend(linked.map(|dep| dep.pkg.as_str()));
    }
    let mut linked: Vec<&Package> = seen.iter().map(|id| packages[id]).collect();
    linked.retain(|package| package.source.is_some());
    linked.sort_by_key(|package| (&package.name, &package.version));
    Ok(linked)
}

fn paragraph(package: &Package, linked: &[&Package]) -> Result<String> {
    let Package { name, version, authors, .. } = package;
    let license = package.license.as_deref().unwrap_or("unknown");
    let by = if authors.is_empty() { format!("The {name} authors") } else { authors.join(", ") };
    let mut text = format!("Files: linked/{name}-{version}/*\nCopyright: {by}\n");
    if under_apache(license) {
        let _ = writeln!(text, "License: {APACHE}");
        // The licence asks that notices are passed on (section 4d).
        let notices = files(package, &["NOTICE"])?;
        if !notices.is_empty() {
            let _ = write!(text, "Comment: Notice:\n{}", indented(&notices));
        }
    } else {
        let with = TEXT_OF.iter().find(|(without, _)| without == name).map(|(_, with)| with);
        let with = linked.iter().find(|other| Some(&other.name.as_str()) == with);
        let with = with.unwrap_or(&package);
        let own = files(with, &["LICENSE", "LICENCE", "COPYING", "UNLICENSE"])?;
        if own.is_empty() {
            bail!("{name} {version} is under {license} and brings no text of it");
        }
        // Each has its own text, so none can be shared.
        let own = indented(&without_apache(&own));
        let _ = write!(text, "License: {}\n{own}", short_name(license));
    }
    Ok(text + "\n")
}

fn within(package: &Package) -> Result<String> {
    let mut text = String::new();
    for (_, what, file) in WITHIN.iter().filter(|(name, ..)| *name == package.name) {
        let (license, own) = match file {
            Some(file) => {
                let folder = Path::new(&package.manifest_path).with_file_name(file);
                ("Expat", fs::read_to_string(&folder).context(folder.display().to_string())?)
            }
            None => ("public-domain", PUBLIC_DOMAIN.to_owned()),
        };
        let _ = write!(
            text,
            "Files: linked/{what}/*\nCopyright: The {what} authors\nLicense: {license}\n{}\n",
            indented(&own)
        );
    }
    Ok(text)
}

/// May it be passed on under Apache-2.0, as Weir is?
fn under_apache(license: &str) -> bool {
    !license.contains(" AND ")
        && license.replace('/', " OR ").split(" OR ").any(|one| one.trim() == APACHE)
}

/// The expression in the words of Debian's format.
fn short_name(license: &str) -> String {
    license.replace("MIT", "Expat").replace(" OR ", " or ").replace(" AND ", " and ")
}

/// The texts of the files beside the manifest whose names begin so, one after the other.
fn files(package: &Package, prefixes: &[&str]) -> Result<String> {
    let folder = Path::new(&package.manifest_path).parent().unwrap_or(Path::new("."));
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if entry.file_type()?.is_file() && prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            found.insert(name, fs::read_to_string(entry.path())?);
        }
    }
    Ok(found.into_values().collect::<Vec<_>>().join("\n"))
}

/// The text with the terms of the Apache License, which every Debian system has, told by their
/// place.
fn without_apache(text: &str) -> String {
    let Some((before, rest)) = text.split_once(APACHE_FIRST) else { return text.to_owned() };
    match rest.split_once(APACHE_LAST) {
        Some((_, after)) => format!("{before}{APACHE_PLACE}{}", without_apache(after)),
        None => text.to_owned(),
    }
}

/// The text as the continuation of a field: every line indented, empty ones as a dot.
fn indented(text: &str) -> String {
    let line = |line: &str| match line.trim_end() {
        "" => " .\n".to_owned(),
        line => format!(" {line}\n"),
    };
    text.trim_matches('\n').lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_for_apache_and_a_sum_is_told_in_full() {
        assert!(under_apache("MIT OR Apache-2.0") && under_apache("MIT/Apache-2.0"));
        assert!(under_apache("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT"));
        assert!(!under_apache("MIT") && !under_apache("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert_eq!(short_name("MIT AND BSD-3-Clause"), "Expat and BSD-3-Clause");
    }

    #[test]
    fn the_terms_of_the_apache_license_are_told_by_their_place() {
        let text =
            format!("a {APACHE_FIRST}\n1. b\n{APACHE_LAST}\nc {APACHE_FIRST}x{APACHE_LAST}d");
        assert_eq!(without_apache(&text), format!("a {APACHE_PLACE}\nc {APACHE_PLACE}d"));
        let open = format!("a {APACHE_FIRST} b");
        assert_eq!(without_apache(&open), open);
    }

    #[test]
    fn a_text_becomes_the_continuation_of_a_field() {
        assert_eq!(indented("\na  \n\n  b\n"), " a\n .\n   b\n");
    }

    #[test]
    fn what_is_linked_is_told_and_what_only_builds_or_tests_is_not() {
        let text = text().unwrap();
        for told in ["tokio", "axum", "libsqlite3-sys", "rustix", "clap_mangen", "etcd-client"] {
            assert!(text.contains(&format!("\nFiles: linked/{told}-")), "{told}");
        }
        assert!(text.contains("\nFiles: linked/sqlite/*\n"));
        assert!(text.contains("\nFiles: linked/mimalloc/*\n") && text.contains("Daan Leijen"));
        let tonic = text.split("\nFiles: linked/tonic-prost-").nth(1).unwrap();
        assert!(tonic.split("\nFiles: ").next().unwrap().contains("Permission is hereby granted"));
        for left_out in ["criterion", "proptest", "serde_derive", "nfs3_client", "cc"] {
            assert!(!text.contains(&format!("\nFiles: linked/{left_out}-")), "{left_out}");
        }
        assert_eq!(text.matches("\nLicense: Apache-2.0\n Licensed").count(), 1);
    }
}
