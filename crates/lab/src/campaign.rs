//! The skeleton of a campaign: how it is started, stopped and reported.

use crate::judge::{self, Check};
use crate::stop::Stop;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_report::Page;

/// Longest JSON that is indented.
const INDENTED_BYTES_MAX: usize = 64 << 10;

/// A campaign with its options.
pub trait Campaign {
    /// Checks that the machine has everything that the campaign needs.
    ///
    /// # Errors
    /// Says what is missing, and how to get it.
    fn requirements(&self) -> Result<()> {
        Ok(())
    }

    /// Whether the campaign runs in a network namespace and a mount namespace of its own.
    fn isolated(&self) -> bool {
        false
    }

    /// Runs the campaign.
    ///
    /// # Errors
    /// If it could not be completed.
    fn run(&self, stop: &Stop) -> Result<Report>;
}

/// The results of a campaign: its rules, and the files to write.
#[derive(Debug, Default)]
pub struct Report {
    /// The rules that were judged.
    pub checks: Vec<Check>,
    files: Vec<(PathBuf, String)>,
}

/// The origin of results.
#[derive(Clone, Debug, Serialize)]
pub struct Origin {
    /// Version of the form of the JSON.
    version: u32,
    /// Version of the program.
    weir: &'static str,
    machine: String,
    started_unix_s: f64,
}

impl Origin {
    /// This program on this machine, now.
    pub fn here() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            version: 1,
            weir: env!("CARGO_PKG_VERSION"),
            machine: weir_bench::machine::describe(),
            started_unix_s: now.map_or(0.0, |now| now.as_secs_f64()),
        }
    }

    /// The last line of a report.
    pub fn foot(&self) -> String {
        format!("Weir {}. {}", self.weir, self.machine)
    }
}

impl Report {
    /// The results of rules, without files.
    pub const fn new(checks: Vec<Check>) -> Self {
        Self { checks, files: Vec::new() }
    }

    /// Adds a file.
    pub fn file(mut self, path: PathBuf, text: String) -> Self {
        self.files.push((path, text));
        self
    }

    /// Adds the files `names` in the directory `out`, nothing if there is none: `data` as JSON, and
    /// `page` as Markdown or HTML, by the extension of each name.
    pub fn files(
        mut self,
        out: Option<&Path>,
        names: &[&str],
        (data, page, foot): (&impl Serialize, &Page, String),
    ) -> Result<Self> {
        let Some(out) = out else { return Ok(self) };
        for name in names {
            let text = match Path::new(name).extension().and_then(|extension| extension.to_str()) {
                Some("json") => json(data)?,
                Some("md") => page.to_markdown(&format!("{foot}\n\n{}", siblings(name, names))),
                _ => page.to_html(&foot),
            };
            self.files.push((out.join(name), text));
        }
        Ok(self)
    }

    /// The file for people, which is the last.
    pub fn main_file(&self) -> Option<&Path> {
        self.files.last().map(|(path, _)| path.as_path())
    }

    /// Was every rule kept?
    pub fn kept(&self) -> bool {
        judge::all_kept(&self.checks)
    }

    /// Writes the files.
    ///
    /// # Errors
    /// Names the file that can't be written.
    pub fn write(&self) -> Result<()> {
        self.files.iter().try_for_each(|(path, text)| write(path, text))
    }
}

/// `data` as JSON: indented if that is short enough to be read.
fn json(data: &impl Serialize) -> Result<String> {
    let indented = serde_json::to_string_pretty(data)?;
    let short = indented.len() <= INDENTED_BYTES_MAX;
    Ok(if short { indented } else { serde_json::to_string(data)? } + "\n")
}

/// Links from the Markdown file `own` to the same results in the other forms.
fn siblings(own: &str, names: &[&str]) -> String {
    let others = names.iter().filter(|name| **name != own);
    let links: Vec<String> = others.map(|name| format!("[{name}]({name})")).collect();
    format!("The same results: {}.", links.join(", "))
}

/// Writes a file, and makes its directory.
fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}", parent.display()))?;
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Makes the directory `work` and gives its absolute path.
pub fn work_directory(work: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(work).with_context(|| format!("cannot create {}", work.display()))?;
    Ok(work.canonicalize()?)
}

/// The server program: `given`, or the one beside this program.
pub fn weir_program(given: Option<&Path>) -> Result<PathBuf> {
    let weir = match given {
        Some(weir) => weir.to_owned(),
        None => this_program()?.with_file_name("weir"),
    };
    ensure!(weir.exists(), "{} is missing: build it first", weir.display());
    Ok(weir)
}

/// The path of this program.
pub fn this_program() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find the path of this program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_written_in_the_forms_of_its_names() {
        let out = tempfile::tempdir().unwrap();
        let out = out.path().join("new");
        let mut page = Page::new("Title", "Lead.");
        page.table(&judge::table(&[Check::new("rule", "worst", true)]));
        let names = ["a.json", "a.md", "a.html"];
        let contents = || (&"data", &page, "Foot.".to_owned());
        let report = Report::default().files(Some(&out), &names, contents()).unwrap();
        report.write().unwrap();
        let [json, md, html] = names.map(|name| std::fs::read_to_string(out.join(name)).unwrap());
        assert_eq!(json, "\"data\"\n");
        assert!(md.starts_with("# Title\n\nLead.\n\n| rule |"), "{md}");
        assert!(md.ends_with("Foot.\n\nThe same results: [a.json](a.json), [a.html](a.html).\n"));
        assert!(html.starts_with("<!doctype html>") && html.contains("Foot."));
        let none = Report::default().files(None, &names, contents()).unwrap();
        assert!(none.files.is_empty());
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let error = weir_program(Some(Path::new("/no/such/weir"))).unwrap_err().to_string();
        assert!(error.contains("/no/such/weir") && error.contains("build it"), "{error}");
    }
}
