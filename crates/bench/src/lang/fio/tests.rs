//! What job files and command lines drive, option by option, and what is refused.

mod drives;
mod refused;

use super::*;
use crate::scenario::Scenario;

/// What `text` says.
fn read(text: &str) -> Result<Scenario, String> {
    let source = Source { name: "jobs.fio".into(), text: text.into(), language: Language::Fio };
    scenario(&source, &Options::default()).map_err(|error| error.to_string())
}

/// What a command line says, words by blanks.
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
