//! The outcome of all results in a sentence, and the figures that stand out.

use super::steps::{lost_worker, measured, shown};
use super::words::count;
use crate::{Results, StepResult, StepRun};
use weir_report::{Fact, figure};
use weir_scenario::scenario::Cache;

/// The way in which the results are to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Sound,
    WithCare,
    Bad,
}

/// The outcome: how to take it, in a word, in a sentence.
pub(super) fn of(results: &Results) -> (Taken, &'static str, String) {
    let runs = || results.tests.iter().flat_map(|test| &test.steps).flat_map(|step| &step.runs);
    let mismatches = total(runs(), |run| run.total.verify.as_ref().map_or(0, |v| v.mismatches));
    let errors = total(runs(), |run| run.total.error_count());
    let lost = total(runs(), |run| run.total.connections.lost);
    let unread = total(runs(), |run| run.total.verify.as_ref().map_or(0, |v| v.unread));
    if mismatches > 0 {
        let sentence = format!("{} blocks did not contain the written data.", count(mismatches));
        return (Taken::Bad, "Corrupt data", sentence);
    }
    if errors > 0 || lost > 0 {
        let sentence = format!(
            "{} operations failed and {} connections were lost; the figures do not include failed operations.",
            count(errors),
            count(lost)
        );
        return (Taken::Bad, "Failures", sentence);
    }
    let workers = runs().any(lost_worker);
    if results.interrupted || workers || unread > 0 {
        let why = if workers { "A worker was lost" } else { "The run ended before its time" };
        let sentence = format!("{why}; the results cover the time until then.");
        return (Taken::WithCare, "Incomplete", sentence);
    }
    if runs().next().is_none() {
        return (Taken::WithCare, "Nothing measured", "No step was applied.".to_owned());
    }
    let doubts = [
        ("With gaps", gaps(results)),
        ("Complete, with limits", limited(results)),
        ("Complete, with limits", busy(results)),
        ("Complete, with limits", contracts(results)),
        ("Complete, with limits", out_of_reach(results)),
        ("Complete, with care", stalled(results)),
        ("Complete, with care", unsteady(results)),
        ("Complete, with care", caches(results)),
    ];
    let told: Vec<_> =
        doubts.into_iter().filter_map(|(word, doubt)| doubt.map(|doubt| (word, doubt))).collect();
    if let Some((word, _)) = told.first() {
        let sentences: Vec<String> = told.iter().map(|(_, doubt)| doubt.clone()).collect();
        return (Taken::WithCare, word, sentences.join(" "));
    }
    let checked = total(runs(), |run| run.total.verify.as_ref().map_or(0, |v| v.checked));
    let verified = match checked {
        0 => String::new(),
        blocks => format!(" {} blocks were read back as written.", count(blocks)),
    };
    (Taken::Sound, "Sound", format!("Every step ran to its end and no operation failed.{verified}"))
}

/// Says that the load generator was the limit.
fn limited(results: &Results) -> Option<String> {
    let (saturated, all) = count_runs(results, |run| run.total.generator.saturated);
    (saturated > 0).then(|| {
        format!(
            "In {saturated} of {all} runs the load generator was the limit: the target can do more."
        )
    })
}

/// Says that a client's machine had no idle processor.
fn busy(results: &Results) -> Option<String> {
    let (busy, all) = count_runs(results, |run| run.machine_busy().is_some());
    (busy > 0).then(|| {
        format!(
            "In {busy} of {all} runs all processors of the client's machine were busy: rates are a \
             lower bound, latencies an upper one."
        )
    })
}

/// Says that contracts were the limit.
fn contracts(results: &Results) -> Option<String> {
    let contracts = &results.environment.contracts;
    let (reached, all) = count_runs(results, |run| !run.reached(contracts).is_empty());
    (reached > 0).then(|| {
        format!("In {reached} of {all} runs the contract was the limit: the server can do more.")
    })
}

/// Says that published rates are more than this machine can apply.
fn out_of_reach(results: &Results) -> Option<String> {
    let steps = || results.tests.iter().flat_map(|test| &test.steps);
    let measured = steps().filter(|step| !step.runs.is_empty()).count();
    let mut short = steps().filter(|step| !step.out_of_reach.is_empty());
    let first = short.next()?.out_of_reach.join("; ");
    Some(format!(
        "In {} of {measured} steps the published rate is more than this machine by itself can \
         apply: {first}.",
        short.count() + 1
    ))
}

fn stalled(results: &Results) -> Option<String> {
    let (stalled, all) = count_runs(results, |run| run.stall.is_some());
    (stalled > 0).then(|| {
        format!("In {stalled} of {all} runs no operation was completed for a second or more.")
    })
}

fn unsteady(results: &Results) -> Option<String> {
    let (unsteady, all) =
        count_runs(results, |run| run.steady.is_some_and(|steady| !steady.steady));
    (unsteady > 0).then(|| format!("In {unsteady} of {all} runs the rate was not steady."))
}

/// Says what caches may have held although they were to be excluded.
fn caches(results: &Results) -> Option<String> {
    let steps = results.tests.iter().flat_map(|test| &test.steps);
    let excluded =
        steps.filter(|step| step.cache.wanted == Cache::Excluded && !step.runs.is_empty());
    let excluded: Vec<&StepResult> = excluded.collect();
    let open = excluded.iter().filter(|step| !step.cache.open.is_empty());
    let mut sentences: Vec<&str> = Vec::new();
    for sentence in open.clone().flat_map(|step| &step.cache.open) {
        if !sentences.contains(&sentence.as_str()) {
            sentences.push(sentence);
        }
    }
    (!sentences.is_empty()).then(|| {
        format!(
            "Caches were not excluded in {} of {} steps that exclude them: {}.",
            open.count(),
            excluded.len(),
            sentences.join("; ")
        )
    })
}

/// How many runs are `so`, and how many there are.
fn count_runs(results: &Results, so: impl Fn(&StepRun) -> bool) -> (usize, usize) {
    let runs = || results.tests.iter().flat_map(|test| &test.steps).flat_map(|step| &step.runs);
    (runs().filter(|run| so(run)).count(), runs().count())
}

/// Says that steps are missing, whether they failed or a rule of their test ended it.
fn gaps(results: &Results) -> Option<String> {
    let steps = || results.tests.iter().flat_map(|test| &test.steps);
    let left_out = steps().filter(|step| step.skipped.is_some()).count();
    let all = steps().count();
    let sentence = format!(
        "{left_out} of {all} steps were skipped or stopped early; the reason is given for each."
    );
    (left_out > 0).then_some(sentence)
}

fn total<'a>(runs: impl Iterator<Item = &'a StepRun>, figure: impl Fn(&StepRun) -> u64) -> u64 {
    runs.map(figure).fold(0, u64::saturating_add)
}

/// The figures that stand out.
pub(super) fn facts(results: &Results) -> Vec<Fact> {
    let fact = |value: String, label: String| Fact { value, label };
    let all = || results.tests.iter().flat_map(|test| measured(test).map(move |one| (test, one)));
    let steps = results.tests.iter().flat_map(shown).count();
    let mut facts = vec![
        fact(results.tests.len().to_string(), plural(results.tests.len(), "test")),
        fact(format!("{} of {steps}", all().count()), "steps measured".to_owned()),
    ];
    let highest = |value: fn(&crate::Summary) -> f64| {
        all().max_by(|a, b| value(a.1.1).total_cmp(&value(b.1.1)))
    };
    if let Some((_, (step, summary))) = highest(|summary| summary.iops.median) {
        facts.push(fact(figure(summary.iops.median), format!("op/s maximum, in {}", step.name)));
    }
    if let Some((_, (step, summary))) = highest(|summary| summary.mibps.median)
        && summary.mibps.median > 0.0
    {
        facts.push(fact(figure(summary.mibps.median), format!("MiB/s maximum, in {}", step.name)));
    }
    let runs = || results.tests.iter().flat_map(|test| &test.steps).flat_map(|step| &step.runs);
    let failed = total(runs(), |run| run.total.error_count());
    facts.push(fact(count(failed), "operations failed".to_owned()));
    if runs().any(|run| run.total.verify.is_some()) {
        let checked = total(runs(), |run| run.total.verify.as_ref().map_or(0, |v| v.checked));
        facts.push(fact(count(checked), "blocks verified".to_owned()));
    }
    facts
}

fn plural(count: usize, one: &str) -> String {
    if count == 1 { one.to_owned() } else { format!("{one}s") }
}
