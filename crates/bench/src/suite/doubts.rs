//! Reasons why the figures of a step may not be those of its target.

use super::steady::too_short;
use weir_load::workload::Length;
use weir_results::{MachineBusy, StepResult, StepRun, counted};

/// The reasons in a sentence each, from all repeats that count. `shared`: the server is on this
/// machine.
pub(super) fn doubts(step: &StepResult, shared: bool) -> Vec<String> {
    let runs = counted(&step.runs);
    let all = [busy(&runs, shared), stalled(&runs), unsteady(&runs), short(step, &runs)];
    all.into_iter().flatten().collect()
}

/// Puts the number of the runs concerned in front of `sentence`, if there are several runs.
fn of_runs(count: usize, runs: &[&StepRun], sentence: &str) -> String {
    match runs.len() {
        1 => sentence.to_owned(),
        all => format!("in {count} of {all} repeats {sentence}"),
    }
}

fn busy(runs: &[&StepRun], shared: bool) -> Option<String> {
    let all: Vec<MachineBusy> = runs.iter().filter_map(|run| run.machine_busy()).collect();
    let busiest = all.iter().max_by(|one, other| one.percent.total_cmp(&other.percent))?;
    Some(of_runs(all.len(), runs, &busiest.words(shared)))
}

fn stalled(runs: &[&StepRun]) -> Option<String> {
    let all: Vec<_> = runs.iter().filter_map(|run| run.stall.map(|stall| (stall, *run))).collect();
    let (stall, run) =
        all.iter().max_by(|(one, _), (other, _)| one.seconds.total_cmp(&other.seconds))?;
    let begin = (stall.from_s - run.total.measured.from_s).max(0.0);
    let sentence = format!(
        "no operation was completed for {:.1} s, from second {begin:.0} of the measured part",
        stall.seconds
    );
    Some(of_runs(all.len(), runs, &sentence))
}

fn unsteady(runs: &[&StepRun]) -> Option<String> {
    let found = runs.iter().filter_map(|run| run.steady).filter(|found| !found.steady);
    let all: Vec<_> = found.collect();
    let drift = all
        .iter()
        .map(|found| found.drift_percent)
        .max_by(|one, other| one.abs().total_cmp(&other.abs()))?;
    let excursion = all.iter().map(|found| found.excursion_percent).fold(0.0, f64::max);
    let sentence = format!(
        "the rate was not steady: it drifted by {drift:.0} %, and a second was {excursion:.0} % off \
         the mean"
    );
    Some(of_runs(all.len(), runs, &sentence))
}

fn short(step: &StepResult, runs: &[&StepRun]) -> Option<String> {
    let is_short = |run: &&&StepRun| {
        let by_time = matches!(run.total.workload.length, Length::Seconds(_));
        by_time && run.steady.is_none() && !run.total.interrupted
    };
    let run = runs.iter().find(is_short).filter(|_| !step.preparation)?;
    Some(too_short(&run.total.measured))
}
