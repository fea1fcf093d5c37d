//! Tests of job files and command lines, option by option, and of refused ones.

mod drives;
mod refused;

use super::*;
use crate::scenario::Scenario;

/// The scenario of `text`.
fn read(text: &str) -> Result<Scenario, String> {
    let source = Source { name: "jobs.fio".into(), text: text.into(), language: Language::Fio };
    scenario(&source, &Options::default()).map_err(|error| error.to_string())
}

/// The scenario of a command line, words by blanks.
fn command_line(line: &str) -> Result<Scenario, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    command(&words, &Options::default()).map_err(|error| error.to_string())
}

/// The only load of a job with these options.
fn load(options: &str) -> Workload {
    let scenario = read(&format!("[a]\nsize=1m\n{}\n", options.replace(' ', "\n"))).unwrap();
    assert_eq!((scenario.steps.len(), scenario.steps[0].loads.len()), (1, 1), "{options}");
    scenario.steps[0].loads[0].clone()
}

/// Why a job with these options is refused.
fn refusal(options: &str) -> String {
    read(&format!("[a]\nsize=1m\n{}\n", options.replace(' ', "\n"))).unwrap_err()
}
