//! Tests of each word of Vdbench: steps, their order, and the fields of their loads.

mod applied;
mod runs;
mod texts;

use super::*;
use crate::scenario::Step;
use weir_load::workload::{Operation, Pattern};

/// A file and a workload that uses it, for what follows.
const BASE: &str = "sd=sd1,lun=/v/f1,size=1g\nwd=wd1,sd=sd1\n";

fn source(text: &str) -> Source {
    Source { name: "dir/test.vdb".to_owned(), text: text.to_owned(), language: Language::Vdbench }
}

fn read(text: &str) -> Result<Scenario, LangError> {
    scenario(&source(text), &Options::default())
}

fn steps(text: &str) -> Vec<Step> {
    read(text).unwrap_or_else(|error| panic!("{text}: {error}")).steps
}

/// The only load of the only step.
fn load(text: &str) -> Workload {
    let steps = steps(text);
    assert_eq!((steps.len(), steps[0].loads.len()), (1, 1), "{text}");
    steps[0].loads[0].clone()
}

fn error(text: &str) -> String {
    match read(text) {
        Ok(scenario) => panic!("{text} was read: {:?}", scenario.steps),
        Err(error) => error.to_string(),
    }
}

fn names(steps: &[Step]) -> Vec<&str> {
    steps.iter().map(|step| step.name.as_str()).collect()
}

fn operation(load: &Workload) -> (Pattern, u8) {
    match load.operation {
        Operation::Data { pattern, read_percent } => (pattern, read_percent),
        other => panic!("{other:?}"),
    }
}
