//! Checks that keep the documents true and the style uniform, so that reviews can be about design.

mod cycles;
mod documents;
mod layers;
mod protocol;
mod sizes;
mod sources;

use crate::process;
use anyhow::Result;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The faults that the checks found, one line each.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn add(&mut self, place: impl Display, wrong: impl Display) {
        self.0.push(format!("{place}: {wrong}"));
    }
}

/// Runs every check and prints what is wrong; `true` if nothing is.
pub(crate) fn run() -> Result<bool> {
    let files = tracked_files()?;
    let mut findings = Findings::default();
    layers::check(&mut findings)?;
    cycles::check(&files, &mut findings)?;
    sources::check(&files, &mut findings)?;
    sizes::check(&files, &mut findings)?;
    protocol::check(&files, &mut findings)?;
    documents::check(&files, &mut findings)?;
    for finding in &findings.0 {
        eprintln!("tidy: {finding}");
    }
    println!("tidy: {} files, {} findings", files.len(), findings.0.len());
    Ok(findings.0.is_empty())
}

/// The files under version control, and new ones that are not ignored.
fn tracked_files() -> Result<Vec<PathBuf>> {
    let listed =
        process::output("git", &["ls-files", "--cached", "--others", "--exclude-standard"])?;
    Ok(listed.lines().map(PathBuf::from).filter(|path| path.is_file()).collect())
}

/// The cells of a Markdown table row, or nothing if the line is none.
fn row(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// The words in backticks within `cell`.
fn code_words(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own == extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_row_is_split_and_its_code_words_found() {
        let cells = row("| `crates/qos` | x | `core`, `nfs` |");
        assert_eq!(cells, Some(vec!["`crates/qos`", "x", "`core`, `nfs`"]));
        assert_eq!(code_words("`core`, `nfs` (client)"), ["core", "nfs"]);
        assert_eq!(row("no table"), None);
    }
}
