//! The destination of results.

use super::{CliError, Format};
use crate::pages;
use crate::results::Results;
use clap::Args;
use serde::Serialize;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use weir_report::terminal::{self, Text};

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
    fn files(&self) -> Vec<(Form, PathBuf)> {
        let mut files = Vec::new();
        if let Some(directory) = &self.out {
            files.push((Form::Json, directory.join("results.json")));
            files.push((Form::Csv, directory.join("results.csv")));
            files.push((Form::Html, directory.join("report.html")));
        }
        let named = [(Form::Json, &self.json), (Form::Csv, &self.csv), (Form::Html, &self.html)];
        for (form, path) in named {
            files.extend(path.iter().map(|path| (form, path.clone())));
        }
        files
    }

    /// Checks that the files can be written, before anything is measured.
    pub(super) fn check(&self) -> Result<(), CliError> {
        if let Some(directory) = &self.out {
            std::fs::create_dir_all(directory)
                .map_err(|source| CliError::Output { path: directory.clone(), source })?;
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
        assert!(!place.path().join("x.json").exists());
        assert_eq!(std::fs::read_dir(place.path().join("a/b")).unwrap().count(), 0);
        let args =
            OutputArgs { json: Some(place.path().join("no/x.json")), ..OutputArgs::default() };
        assert!(args.check().unwrap_err().to_string().contains("no/x.json"));
    }
}
