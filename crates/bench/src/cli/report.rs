//! `weir bench report`: shows stored results in any format.

use super::Format;
use crate::pages;
use crate::results::Results;
use crate::results::read::{ReadError, read};
use clap::Args;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use weir_report::terminal::{self, Text};

const EXAMPLES: &str = "\
Examples:
  A page to send to someone:
    weir bench report weir.json --html weir.html

  Two results side by side, with ratios to the first:
    weir bench report weir.json other.json --html both.html

  For a spreadsheet:
    weir bench report weir.json --csv weir.csv

Any JSON written by `weir bench` is accepted, including that of a single load.";

/// Show stored results, or write them as HTML or CSV
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES, max_term_width = 100)]
pub struct ReportArgs {
    /// JSON result files of `weir bench`; several are compared with the first.
    #[arg(required = true, value_name = "RESULT.json")]
    pub results: Vec<PathBuf>,
    /// Write one self-contained HTML file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write one CSV row per repeat of each step.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// An error while showing results.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The results cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output cannot be written.
    #[error("cannot write to {path}", path = path.display())]
    Write {
        /// The file, or "standard output".
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Reads the results and writes them in every requested format. They are printed on standard
/// output, as tables or as JSON, unless only files are requested.
///
/// # Errors
/// [`ReportError`] names the file, and says what to do.
pub fn run(args: &ReportArgs, format: Format) -> Result<(), ReportError> {
    let results = read_all(&args.results)?;
    if let Some(path) = &args.html {
        write(path, &pages::html(&results.iter().collect::<Vec<_>>()))?;
    }
    if let Some(path) = &args.csv {
        // One head, then the rows of all.
        let tables: Vec<String> = results.iter().map(pages::csv).collect();
        let rows = tables.iter().skip(1).filter_map(|table| table.split_once("\r\n"));
        let rest: String = rows.map(|(_, rows)| rows).collect();
        write(path, &(tables.first().cloned().unwrap_or_default() + &rest))?;
    }
    match format {
        Format::Json => json(&results),
        Format::Table if args.html.is_some() || args.csv.is_some() => Ok(()),
        Format::Table => print(&shown(&results)),
    }
}

/// The results as tables, with an empty line between results.
fn shown(results: &[Results]) -> Text {
    let mut text = Text::new();
    for (number, one) in results.iter().enumerate() {
        if number > 0 {
            text.blank();
        }
        text.append(&pages::terminal(one));
    }
    text
}

/// Prints the results as JSON: one document, or an array of several.
fn json(results: &[Results]) -> Result<(), ReportError> {
    match results {
        [one] => print_json(one),
        several => print_json(&several),
    }
}

/// The results in these files. If several have the same label, file names are added to distinguish
/// them.
pub(super) fn read_all(paths: &[PathBuf]) -> Result<Vec<Results>, ReadError> {
    let mut all = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let labels: Vec<String> = all.iter().map(|one| one.label.clone()).collect();
    for (one, path) in all.iter_mut().zip(paths) {
        if labels.iter().filter(|label| **label == one.label).count() > 1 {
            one.label = format!("{} ({})", one.label, told_apart(path, paths));
        }
    }
    Ok(all)
}

/// The name of a file; if others have the same name (`a/results.json` and `b/results.json`), the
/// path as given.
fn told_apart(path: &Path, all: &[PathBuf]) -> String {
    let stem = path.file_stem();
    let alike = all.iter().filter(|other| other.file_stem() == stem).count();
    match stem {
        Some(stem) if alike < 2 => stem.to_string_lossy().into_owned(),
        _ => path.display().to_string(),
    }
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), ReportError> {
    std::fs::write(path, text)
        .map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

pub(super) fn print(text: &Text) -> Result<(), ReportError> {
    terminal::print(text).map_err(failed_output)
}

pub(super) fn print_json(value: &impl Serialize) -> Result<(), ReportError> {
    terminal::json(value).map_err(failed_output)
}

fn failed_output(source: io::Error) -> ReportError {
    ReportError::Write { path: "standard output".into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_name_are_told_apart_by_their_places() {
        let all = ["a/results.json", "b/results.json", "c.json"].map(PathBuf::from);
        let told: Vec<String> = all.iter().map(|path| told_apart(path, &all)).collect();
        assert_eq!(told, ["a/results.json", "b/results.json", "c"]);
    }
}
