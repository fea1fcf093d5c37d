//! The destination of results.

use super::{CliError, Format};
use clap::Args;
use serde::Serialize;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use weir_report::terminal::{self, Text};
use weir_results::pages;
use weir_results::{Results, read};

/// Output of the results, and their label.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputArgs {
    /// Label of the results in reports and comparisons [default: the target].
    #[arg(long, value_name = "WORD", help_heading = "Result")]
    pub label: Option<String>,
    /// Write results.json, results.csv and report.html to this directory, which is created if
    /// absent.
    #[arg(long, value_name = "DIR", help_heading = "Result")]
    pub out: Option<PathBuf>,
    /// Replace the results of an earlier run in the directory of --out.
    #[arg(long, requires = "out", help_heading = "Result")]
    pub overwrite: bool,
    /// Write the results as JSON, for `weir bench report` and `compare`.
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub json: Option<PathBuf>,
    /// Write one CSV line per run.
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub csv: Option<PathBuf>,
    /// Write the report as a self-contained HTML page.
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub html: Option<PathBuf>,
    /// Do not show progress.
    #[arg(long, short, help_heading = "Result")]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Csv,
    Html,
}

impl OutputArgs {
    /// The files in the directory of --out.
    fn out_files(&self) -> Vec<(Form, PathBuf)> {
        let Some(directory) = &self.out else { return Vec::new() };
        [(Form::Json, read::FILE_NAME), (Form::Csv, "results.csv"), (Form::Html, "report.html")]
            .map(|(form, name)| (form, directory.join(name)))
            .into()
    }

    fn files(&self) -> Vec<(Form, PathBuf)> {
        let mut files = self.out_files();
        let named = [(Form::Json, &self.json), (Form::Csv, &self.csv), (Form::Html, &self.html)];
        for (form, path) in named {
            files.extend(path.iter().map(|path| (form, path.clone())));
        }
        files
    }

    /// Refuses a directory of --out that has results, unless they are to be replaced.
    pub(super) fn keep_earlier(&self) -> Result<(), CliError> {
        let Some(directory) = self.out.as_ref().filter(|_| !self.overwrite) else { return Ok(()) };
        let written = |(_, path): (Form, PathBuf)| std::fs::metadata(path).ok()?.modified().ok();
        let Some(written) = self.out_files().into_iter().find_map(written) else { return Ok(()) };
        let unix_s = written.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Err(CliError::Usage(format!(
            "{} has the results of a run that ended at {}: choose another directory for --out, or \
             replace them with --overwrite",
            directory.display(),
            pages::when(unix_s)
        )))
    }

    /// Checks that the files can be written, before anything is measured, and leaves none: a run
    /// that is refused or killed has no results.
    pub(super) fn check(&self) -> Result<(), CliError> {
        self.keep_earlier()?;
        let mut made = Vec::new();
        let checked = self.try_files(&mut made);
        let removed = made.iter().rev().try_for_each(|directory| {
            std::fs::remove_dir(directory)
                .map_err(|source| CliError::Output { path: directory.clone(), source })
        });
        checked.and(removed)
    }

    /// Makes the directory of --out and all files, and removes those files that were not there;
    /// `made` has the directories that were not there, parents first.
    fn try_files(&self, made: &mut Vec<PathBuf>) -> Result<(), CliError> {
        if let Some(directory) = &self.out {
            let absent = directory.ancestors().take_while(|at| is_named(at) && !at.exists());
            let mut absent: Vec<&Path> = absent.collect();
            absent.reverse();
            for at in absent {
                std::fs::create_dir(at)
                    .map_err(|source| CliError::Output { path: at.to_owned(), source })?;
                made.push(at.to_owned());
            }
        }
        for (_, path) in self.files() {
            let there = path.exists();
            OpenOptions::new()
                .append(true)
                .create(true)
                .open(&path)
                .and_then(|_| if there { Ok(()) } else { std::fs::remove_file(&path) })
                .map_err(|source| CliError::Output { path, source })?;
        }
        Ok(())
    }

    /// Writes the files, prints the results in the format `format`, and says where the files are.
    pub(super) fn give(&self, results: &Results, format: Format) -> Result<(), CliError> {
        let mut written = Vec::new();
        if let Some(directory) = &self.out {
            std::fs::create_dir_all(directory)
                .map_err(|source| CliError::Output { path: directory.clone(), source })?;
        }
        for (form, path) in self.files() {
            let text = match form {
                Form::Json => json(results)?,
                Form::Csv => pages::csv(results),
                Form::Html => pages::html(&[results]),
            };
            write(&path, &text)?;
            written.push(path.display().to_string());
        }
        match format {
            Format::Json => print_json(results)?,
            Format::Table => print(&pages::terminal(results))?,
        }
        if !written.is_empty() && !self.quiet {
            weir_report::errln!("written: {}", written.join(", "));
        }
        Ok(())
    }
}

/// Is the path not empty? The ancestors of a relative path end with an empty one.
fn is_named(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}

/// The value as indented JSON with a newline at its end.
pub(super) fn json(value: &impl Serialize) -> Result<String, CliError> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| CliError::Output { path: "JSON".into(), source: error.into() })
}

/// Writes a file, replacing an existing one.
pub(super) fn write(path: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(path, text).map_err(|source| CliError::Output { path: path.to_owned(), source })
}

/// Prints to standard output.
pub(super) fn print(text: &Text) -> Result<(), CliError> {
    terminal::print(text).map_err(failed)
}

/// Prints indented JSON to standard output.
pub(super) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    terminal::json(value).map_err(failed)
}

fn failed(source: std::io::Error) -> CliError {
    CliError::Output { path: "standard output".into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_t_be_written_is_told_before_and_nothing_is_left() {
        let place = tempfile::tempdir().unwrap();
        let args = OutputArgs {
            out: Some(place.path().join("a/b")),
            json: Some(place.path().join("x.json")),
            ..OutputArgs::default()
        };
        args.check().unwrap();
        assert_eq!(
            std::fs::read_dir(place.path()).unwrap().count(),
            0,
            "a refused run has nothing"
        );
        let no = Some(place.path().join("no/x.json"));
        let args = OutputArgs { json: no, ..args };
        assert!(args.check().unwrap_err().to_string().contains("no/x.json"));
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
        std::fs::write(place.path().join("a"), "a file").unwrap();
        assert!(args.check().unwrap_err().to_string().contains("a/b"));
    }

    #[test]
    fn results_of_an_earlier_run_are_replaced_only_if_that_is_asked_for() {
        let place = tempfile::tempdir().unwrap();
        let out = Some(place.path().to_owned());
        let args = OutputArgs { out, quiet: true, ..OutputArgs::default() };
        args.check().expect("the directory is empty");
        let csv = place.path().join("results.csv");
        std::fs::write(&csv, "earlier").unwrap();
        let when = UNIX_EPOCH + std::time::Duration::from_secs(86_400);
        std::fs::File::options().append(true).open(&csv).unwrap().set_modified(when).unwrap();
        let refused = args.check().unwrap_err().to_string();
        for part in ["ended at 1970-01-02 00:00:00 UTC", "--overwrite"] {
            assert!(refused.contains(part), "{refused}");
        }
        let args = OutputArgs { overwrite: true, ..args };
        args.check().unwrap();
        assert_eq!(std::fs::read_to_string(&csv).unwrap(), "earlier", "until there are others");
        args.give(&Results::default(), Format::Json).unwrap();
        assert!(std::fs::read_to_string(&csv).unwrap().starts_with("label"));
        assert!(place.path().join("results.json").exists());
    }
}
