//! The runner: scenarios one after the other, and what became of them.

use super::event::Event;
use super::executor::Executor;
use super::options::Options;
use super::place::Place;
use super::plan::Plan;
use super::state::SuiteState;
use crate::cluster::this_machine;
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_core::rng::mix;
use weir_load::control::Control;
use weir_load::stats::result::RunResult;
use weir_load::workload::Location;
use weir_results::compare::pairs;
use weir_results::{Environment, Finding, RESULTS_VERSION, Results, StepResult, TestResult};
use weir_scenario::scenario::Scenario;

/// Everything that running scenarios takes.
pub struct Suite<'a> {
    /// Applies the loads.
    pub executor: &'a mut dyn Executor,
    /// Looks after the directories at the target.
    pub place: &'a mut dyn Place,
    /// The options of running scenarios.
    pub options: &'a Options,
    /// The hand that may stop it.
    pub control: &'a Control,
    /// Told of everything that happens.
    pub observer: &'a mut dyn FnMut(&Event<'_>),
}

/// The outcome of running scenarios.
#[derive(Clone, Debug, Default)]
pub struct SuiteOutcome {
    /// The document.
    pub results: Results,
    /// The failures, a sentence each: steps that could not be run, operations that failed, files
    /// that were not removed. Steps left out by a rule of the scenario's are not among them.
    pub failures: Vec<String>,
}

impl SuiteOutcome {
    /// The reasons why the call has not gone well: the failures, and an interruption.
    #[must_use]
    pub fn unclean(self) -> Vec<String> {
        let mut all = self.failures;
        if self.results.interrupted && all.is_empty() {
            all.push("it was interrupted".to_owned());
        }
        all
    }
}

/// The facts about all tests of a call.
#[derive(Default)]
pub(super) struct Whole {
    pub(super) failures: Vec<String>,
    /// Why nothing more can be run.
    pub(super) over: Option<String>,
    /// Directories of this call that stay.
    pub(super) kept: BTreeSet<Location>,
    /// A run is not whole: it was ended before its time, or lost a worker.
    pub(super) incomplete: bool,
    /// Planned seconds of load that are left; absent where nobody knows.
    pub(super) left_s: Option<f64>,
}

impl Suite<'_> {
    /// Runs `scenarios` in order. It ends early when the control says so or the target is gone;
    /// what was measured until then is there, and says so. Files are removed, unless the options
    /// say otherwise.
    pub fn run(&mut self, scenarios: &[Scenario]) -> SuiteOutcome {
        let plan = Plan::of(scenarios, self.options);
        let left_s = (plan.open_ended == 0).then_some(plan.seconds);
        let mut whole = Whole { left_s, ..Whole::default() };
        let mut outcome = self.begin();
        let of = scenarios.len();
        for (index, scenario) in scenarios.iter().enumerate() {
            (self.observer)(&Event::Test { scenario, number: index + 1, of });
            let test = self.test(scenario, &mut whole);
            outcome.results.tests.push(test);
        }
        self.end(outcome, whole)
    }

    fn test(&mut self, scenario: &Scenario, whole: &mut Whole) -> TestResult {
        let mut test = blank(scenario);
        if test.waiting.is_some() {
            return test;
        }
        let mut state = SuiteState::new(&scenario.name, self.options.seed);
        let of = Some(scenario.steps.len());
        for (index, step) in scenario.steps.iter().enumerate() {
            (self.observer)(&Event::Step { step, number: index + 1, of });
            let result = state.step(self, whole, step);
            (self.observer)(&Event::Done(&result));
            test.steps.push(result);
        }
        state.finish(self, whole);
        test.findings.extend(test.steps.iter().flat_map(kept_depths));
        test
    }

    /// The document before anything was run.
    pub(super) fn begin(&self) -> SuiteOutcome {
        let options = self.options;
        let label = if options.label.is_empty() { &options.target } else { &options.label };
        let here = this_machine();
        let results = Results {
            version: RESULTS_VERSION,
            label: label.clone(),
            target: options.target.clone(),
            command: options.command.clone(),
            program: format!("weir {}", env!("CARGO_PKG_VERSION")),
            started_unix_s: now_s(),
            environment: Environment {
                server: options.cache.server_is_here.then(|| here.clone()),
                clients: if options.clients.is_empty() {
                    vec![here]
                } else {
                    options.clients.clone()
                },
                transport: options.transport.clone(),
                links: options.machine.as_ref().map(|it| it.links().clone()).unwrap_or_default(),
                settings: options.settings.clone(),
                contracts: options.contracts.clone(),
                facts: vec![
                    ("loads applied by".to_owned(), self.executor.name()),
                    ("seed of steps that exclude caches".to_owned(), options.seed.to_string()),
                ],
            },
            ..Results::default()
        };
        SuiteOutcome { results, failures: Vec::new() }
    }

    /// The document once everything was run.
    pub(super) fn end(&self, mut outcome: SuiteOutcome, whole: Whole) -> SuiteOutcome {
        outcome.results.interrupted =
            self.control.stopped() || whole.over.is_some() || whole.incomplete;
        if self.control.stopped() {
            let said = "it was interrupted; the results cover the time until then";
            outcome.results.warnings.push(said.to_owned());
        }
        outcome.results.warnings.extend(whole.failures.iter().cloned());
        outcome.results.pairs = pairs::judge(&[&outcome.results]).pairs;
        outcome.failures.extend(whole.failures);
        outcome
    }
}

/// With how many requests in flight the loads of a step kept their latency.
fn kept_depths(step: &StepResult) -> Vec<Finding> {
    let runs = step.runs.iter().flat_map(|run| match run.loads.as_slice() {
        [] => std::slice::from_ref(&run.total),
        loads => loads,
    });
    let finding = |run: &RunResult| {
        let target = run.workload.latency_target?;
        let depths: Vec<u32> = run.jobs.iter().filter_map(|job| job.kept_depth).collect();
        let (least, most) = (*depths.iter().min()?, *depths.iter().max()?);
        let depth = if least == most { least.to_string() } else { format!("{least} to {most}") };
        #[expect(clippy::cast_precision_loss, reason = "a latency in microseconds")]
        let ms = target.us as f64 / 1000.0;
        Some(Finding {
            question: format!(
                "requests in flight of each job of {} with {} % within {ms} ms",
                run.name, target.percent
            ),
            answer: format!("{depth} of {}", run.workload.depth),
            value: f64::from(least),
            unit: "requests in flight".to_owned(),
            steps: vec![step.name.clone()],
        })
    };
    runs.filter_map(finding).collect()
}

/// The result of a scenario before any step.
pub(super) fn blank(scenario: &Scenario) -> TestResult {
    TestResult {
        name: scenario.name.clone(),
        title: scenario.title.clone(),
        about: scenario.about.clone(),
        source: scenario.source.clone(),
        language: scenario.language,
        chart: scenario.chart,
        changes: scenario.changes.clone(),
        steps: Vec::new(),
        findings: Vec::new(),
        waiting: scenario.waiting.clone(),
    }
}

/// A seed of chance, of 53 bits: JSON has no whole numbers beyond.
#[must_use]
pub fn chance_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanos = u64::from(since.subsec_nanos()) << 32 ^ since.as_secs();
    mix(nanos ^ mix(u64::from(std::process::id()))) >> 11
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_load::workload::LatencyTarget;
    use weir_results::testing::step_result;

    #[test]
    fn the_depth_that_kept_a_latency_is_a_finding() {
        let mut step = step_result(100.0, 1.0);
        assert_eq!(kept_depths(&step), []);
        let total = &mut step.runs[0].total;
        let target = LatencyTarget { us: 2000, window_us: 1, percent: 99.9, goes_on: false };
        total.workload.latency_target = Some(target);
        assert_eq!(kept_depths(&step), [], "no job has found one");
        let total = &mut step.runs[0].total;
        let jobs = [9, 7].map(|depth| {
            let mut job = total.jobs[0].clone();
            job.kept_depth = Some(depth);
            job
        });
        total.jobs = jobs.to_vec();
        let [finding] = kept_depths(&step).try_into().unwrap();
        assert!(finding.question.contains("with 99.9 % within 2 ms"), "{}", finding.question);
        assert_eq!((finding.answer.as_str(), finding.value), ("7 to 9 of 16", 7.0));
        assert_eq!(finding.steps, ["step"]);
    }
}
