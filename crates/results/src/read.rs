//! Reading results back from files: bounded, and clear about versions. A result of a single run
//! (`weir bench TARGET --json`) is read as results of one test with one step.

use super::{
    CacheProof, Environment, RESULTS_VERSION, Results, StepResult, StepRun, Summary, TestResult,
};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use weir_core::text::plain;
use weir_load::stats::result::{RESULT_VERSION, RunResult};
use weir_scenario::scenario::{Chart, Language};

/// Most bytes of a file of results.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// The JSON in a directory that `--out` names.
pub const FILE_NAME: &str = "results.json";

/// Why a file could not be read as results. The message says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file can't be opened or read.
    #[error("cannot read {path}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A directory has no results.
    #[error(
        "{path} has no {FILE_NAME}: name a directory that --out made, or a JSON file",
        path = path.display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// The file is larger than results ever are.
    #[error("{path} is over 256 MiB; results of `weir bench` are smaller", path = path.display())]
    Large {
        /// The file.
        path: PathBuf,
    },
    /// The file is no JSON, or no result.
    #[error("{path} is not a result file of `weir bench`: write one with --json FILE", path = path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The difference.
        source: serde_json::Error,
    },
    /// A newer program wrote it.
    #[error(
        "{path} has format version {found}, but this program supports {known}: use a version of \
         weir at least as new as the one that wrote it",
        path = path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: u64,
        /// The greatest that can be read.
        known: u32,
    },
}

/// Enough of a file to tell what it is.
#[derive(Deserialize)]
struct Head {
    version: u64,
    tests: Option<serde::de::IgnoredAny>,
    workload: Option<serde::de::IgnoredAny>,
}

/// The results in the file at `path`, or in the directory there that `--out` named.
///
/// # Errors
/// [`ReadError`] if it can't be read, is over [`FILE_BYTES_MAX`], is no result, or is newer than
/// this program.
pub fn read(path: &Path) -> Result<Results, ReadError> {
    if path.is_dir() {
        let inside = path.join(FILE_NAME);
        if !inside.exists() {
            return Err(ReadError::Directory { path: path.to_owned() });
        }
        return read_file(&inside);
    }
    read_file(path)
}

fn read_file(path: &Path) -> Result<Results, ReadError> {
    let failed = |source| ReadError::File { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > FILE_BYTES_MAX) {
        return Err(ReadError::Large { path: path.to_owned() });
    }
    parse(&bytes, path)
}

/// The results in `bytes`; errors name `path`.
///
/// # Errors
/// The errors of [`read`], except those of the file itself.
pub fn parse(bytes: &[u8], path: &Path) -> Result<Results, ReadError> {
    let malformed = |error: serde_json::Error| {
        // The error quotes the file, whose text may command a terminal.
        let source = serde::de::Error::custom(plain(&error.to_string()));
        ReadError::Form { path: path.to_owned(), source }
    };
    let head: Head = serde_json::from_slice(bytes).map_err(malformed)?;
    let single = head.tests.is_none() && head.workload.is_some();
    let known = if single { RESULT_VERSION } else { RESULTS_VERSION };
    if head.version > u64::from(known) {
        return Err(ReadError::Version { path: path.to_owned(), found: head.version, known });
    }
    if single {
        return serde_json::from_slice(bytes).map(single_run).map_err(malformed);
    }
    serde_json::from_slice(bytes).map_err(malformed)
}

/// Results of one test with one step, from the result of a single run.
#[must_use]
pub fn single_run(run: RunResult) -> Results {
    let (target, interrupted) = (run.target.clone(), run.interrupted);
    let (name, started_unix_s) = (run.name.clone(), run.started_unix_s);
    let runs = vec![StepRun {
        total: run,
        loads: Vec::new(),
        targets: Vec::new(),
        workers: Vec::new(),
        steady: None,
        stall: None,
        network: None,
        client_processors: None,
    }];
    let step = StepResult {
        name: name.clone(),
        group: String::new(),
        axis: None,
        preparation: false,
        published: None,
        written_in_flight: None,
        summary: Summary::of(&runs),
        runs,
        skipped: None,
        notes: Vec::new(),
        out_of_reach: Vec::new(),
        cache: CacheProof::default(),
    };
    let test = TestResult {
        title: format!("A single run: {name}"),
        name,
        about: "One load, given on the command line.".to_owned(),
        source: None,
        language: Language::Native,
        chart: Chart::Bars,
        changes: Vec::new(),
        steps: vec![step],
        findings: Vec::new(),
        waiting: None,
    };
    Results {
        version: RESULTS_VERSION,
        label: target.clone(),
        target,
        command: Vec::new(),
        program: String::new(),
        started_unix_s,
        environment: Environment::default(),
        tests: vec![test],
        interrupted,
        warnings: vec![
            "Read from the result of a single run, which does not tell the machines or the command."
                .to_owned(),
        ],
        pairs: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(text.as_bytes(), Path::new("a.json")).unwrap_err().to_string()
    }

    #[test]
    fn newer_versions_are_refused_and_say_what_helps() {
        let message = refused(r#"{"version": 2, "tests": [], "what is this": 1}"#);
        assert!(message.contains("a.json has format version 2"), "{message}");
        assert!(message.contains("as new as"), "{message}");
        assert!(refused(r#"{"version": 7, "workload": {}}"#).contains("version 7"));
    }

    #[test]
    fn what_is_no_result_is_refused() {
        for text in ["", "{}", "[]", r#"{"version": 1}"#, r#"{"version": -1}"#] {
            assert!(refused(text).contains("is not a result"), "{text}");
        }
    }

    #[test]
    fn what_a_file_says_wrongly_commands_no_terminal() {
        let text = r#"{"version": 1, "tests": [{"name": "\u001b[2J", "chart": "\u001b[2J"}]}"#;
        let error = parse(text.as_bytes(), Path::new("a.json")).unwrap_err();
        let why = std::error::Error::source(&error).unwrap().to_string();
        assert!(why.contains("line 1") && !why.contains(char::is_control), "{why:?}");
    }

    #[test]
    fn a_directory_of_out_is_read_and_another_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let message = read(folder.path()).unwrap_err().to_string();
        assert!(message.contains("has no results.json"), "{message}");
        let results = Results { label: "before".to_owned(), ..Results::default() };
        let text = serde_json::to_vec(&results).unwrap();
        std::fs::write(folder.path().join(FILE_NAME), text).unwrap();
        assert_eq!(read(folder.path()).unwrap().label, "before");
    }

    #[test]
    fn files_that_are_missing_or_too_large_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("big.json");
        assert!(matches!(read(&path), Err(ReadError::File { .. })));
        let file = File::create(&path).unwrap();
        file.set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(matches!(read(&path), Err(ReadError::Large { .. })));
    }
}
