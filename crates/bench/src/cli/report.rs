//! `weir bench report`: shows stored results in any format.

use super::Format;
use clap::Args;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use weir_report::terminal::{self, Text};
use weir_results::Results;
use weir_results::pages;
use weir_results::read::{FILE_NAME, ReadError, read};

const EXAMPLES: &str = "\
Examples:
  A page to send to someone:
    weir bench report weir.json --html weir.html

  What a run wrote with --out before:
    weir bench report before

  Two results side by side, with ratios to the first:
    weir bench report weir.json other.json --html both.html

  For a spreadsheet:
    weir bench report weir.json --csv weir.csv

Any JSON written by `weir bench` is accepted, including that of a single load.";

/// Show stored results, or write them as HTML or CSV
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES, max_term_width = 100)]
pub struct ReportArgs {
    /// JSON result files of `weir bench`, or directories that --out named; several are compared
    /// with the first.
    #[arg(required = true, value_name = "RESULT.json|DIR")]
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

/// The results in these files and directories, with labels that tell several apart.
pub(super) fn read_all(paths: &[PathBuf]) -> Result<Vec<Results>, ReadError> {
    let mut all = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    tell_apart(&mut all, paths);
    Ok(all)
}

/// Gives several results labels of their own. Results without a label get the name of their file or
/// directory. Equal labels get that name added, and then the time of the run.
fn tell_apart(all: &mut [Results], paths: &[PathBuf]) {
    if all.len() < 2 {
        return;
    }
    let names = names(paths);
    for (one, name) in all.iter_mut().zip(&names) {
        if one.label.is_empty() || one.label == one.target {
            one.label.clone_from(name);
        }
    }
    add_where_same(all, |place, one| names.get(place).filter(|name| **name != one.label).cloned());
    add_where_same(all, |_, one| Some(pages::when(one.started_unix_s)));
}

/// Adds `what` in brackets to labels that several have, unless there is nothing to add.
fn add_where_same(all: &mut [Results], what: impl Fn(usize, &Results) -> Option<String>) {
    let labels: Vec<String> = all.iter().map(|one| one.label.clone()).collect();
    for (place, one) in all.iter_mut().enumerate() {
        let is_shared = labels.iter().filter(|label| **label == one.label).count() > 1;
        if let Some(more) = is_shared.then(|| what(place, one)).flatten() {
            one.label = format!("{} ({more})", one.label);
        }
    }
}

/// The names of files and directories, or the paths as given where those are the same.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let names: Vec<Option<String>> = paths.iter().map(|path| name(path)).collect();
    let told = names.iter().zip(paths).map(|(name, path)| match name {
        Some(own) if names.iter().filter(|other| *other == name).count() < 2 => own.clone(),
        _ => path.display().to_string(),
    });
    told.collect()
}

/// The last part of a path, without the ending of JSON. A file with the name that `--out` gives has
/// the name of its directory.
fn name(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|_| path.ends_with(FILE_NAME));
    let last = folder.and_then(Path::file_name).or_else(|| path.file_name())?;
    let name = last.to_string_lossy();
    Some(name.strip_suffix(".json").unwrap_or(&name).to_owned())
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

    fn told(given: [&str; 2], paths: [&str; 2]) -> [String; 2] {
        let mut all = given.map(|label| Results {
            label: label.to_owned(),
            target: "nfs://h/v".to_owned(),
            ..Results::default()
        });
        all[1].started_unix_s = 86_400.0;
        tell_apart(&mut all, &paths.map(PathBuf::from));
        all.map(|one| one.label)
    }

    #[test]
    fn results_without_a_label_have_the_name_of_their_file_or_directory() {
        let target = ["nfs://h/v", "nfs://h/v"];
        assert_eq!(told(target, ["before", "after/"]), ["before", "after"]);
        assert_eq!(told(target, ["a/results.json", "b/results.json"]), ["a", "b"]);
        assert_eq!(told(target, ["results.json", "v1.2"]), ["results", "v1.2"]);
        assert_eq!(told(["nfs://h/v", "mine"], ["a.json", "b.json"]), ["a", "mine"]);
    }

    #[test]
    fn labels_that_are_the_same_are_told_apart_by_names_paths_or_times() {
        assert_eq!(told(["x", "x"], ["a.json", "b.json"]), ["x (a)", "x (b)"]);
        assert_eq!(told(["x", "x"], ["1/a.json", "2/a.json"]), ["x (1/a.json)", "x (2/a.json)"]);
        assert_eq!(told(["x", "y"], ["1/a.json", "2/a.json"]), ["x", "y"]);
        let times = ["1970-01-01 00:00:00 UTC", "1970-01-02 00:00:00 UTC"];
        let twice = told(["", ""], ["a.json", "a.json"]);
        assert_eq!(twice, times.map(|time| format!("a.json ({time})")));
    }
}
