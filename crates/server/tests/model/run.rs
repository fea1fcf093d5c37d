//! One seed from beginning to end, and what is told when it fails.

use crate::answer::Answer;
use crate::generate::{Plan, plan};
use crate::sides::{Difference, Sides, walk};
use crate::step::Step;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Steps before a failing one that are shown.
const SHOWN: usize = 8;
/// The number of shorter runs that are tried to find the steps that matter.
const TRIALS: usize = 300;

/// The number of times that each operation came to each status.
pub(crate) type Tally = BTreeMap<(&'static str, u32), u64>;

/// The place of a failure in a run: before which step's end, or after the last.
struct Failure {
    at: usize,
    difference: Difference,
}

/// Plays the steps of a seed.
///
/// # Errors
/// Everything that is needed to understand and repeat a failure.
pub(crate) fn run(seed: u64, steps: usize) -> Result<Tally, String> {
    let plan = plan(seed, steps);
    let mut tally = Tally::new();
    let note = |step: &Step, answer: &Answer| {
        *tally.entry((step.op.name(), answer.status.0)).or_default() += 1;
    };
    match play(&plan, &plan.steps, note) {
        Ok(()) => Ok(tally),
        Err(failure) => Err(report(seed, &plan, &failure)),
    }
}

fn play(plan: &Plan, steps: &[Step], mut note: impl FnMut(&Step, &Answer)) -> Result<(), Failure> {
    let mut sides = Sides::new(plan);
    for (at, step) in steps.iter().enumerate() {
        match sides.play(step) {
            Ok(answer) => note(step, &answer),
            Err(difference) => return Err(Failure { at, difference }),
        }
    }
    let failed = |difference| Failure { at: steps.len(), difference };
    walk(&mut sides).map_err(failed)?;
    sides.compare_usage().map_err(failed)
}

fn report(seed: u64, plan: &Plan, failure: &Failure) -> String {
    let mut text = format!("\nseed {seed:#x} differs ");
    match plan.steps.get(failure.at) {
        Some(_) => writeln!(text, "at operation {} of {}:", failure.at, plan.steps.len()),
        None => writeln!(text, "after its {} operations:", plan.steps.len()),
    }
    .unwrap();
    let from = failure.at.saturating_sub(SHOWN);
    for (number, step) in plan.steps.iter().enumerate().take(failure.at + 1).skip(from) {
        writeln!(text, "  {number}: {step:?}").unwrap();
    }
    text.push_str(&failure.difference.text);
    let (steps, shorter) = shrink(plan, failure);
    writeln!(text, "{} operations suffice, as far as was tried:", steps.len()).unwrap();
    for step in &steps {
        writeln!(text, "  {step:?}").unwrap();
    }
    text.push_str(&shorter.text);
    let count = plan.steps.len();
    writeln!(
        text,
        "to replay: WEIR_MODEL_SEED={seed:#x} WEIR_MODEL_OPERATIONS={count} cargo test -p \
         weir-server --test model"
    )
    .unwrap();
    text
}

/// Leaves out steps, fewer and fewer at a time, as long as there remains a difference.
fn shrink(plan: &Plan, failure: &Failure) -> (Vec<Step>, Difference) {
    let mut steps = plan.steps.clone();
    steps.truncate(failure.at + 1);
    let mut difference = failure.difference.clone();
    let (mut part, mut trials) = (steps.len().div_ceil(2), 0);
    while part > 0 {
        let mut from = 0;
        while from < steps.len() && trials < TRIALS {
            let mut fewer = steps.clone();
            fewer.drain(from..steps.len().min(from + part));
            trials += 1;
            match play(plan, &fewer, |_, _| {}) {
                Ok(()) => from += part,
                Err(shorter) => {
                    fewer.truncate(shorter.at + 1);
                    (steps, difference) = (fewer, shorter.difference);
                }
            }
        }
        part /= 2;
    }
    (steps, difference)
}
