//! The runner with an executor that follows a script: no load is applied and no time passes.

use super::testing::{Act, Ground, Scripted, scenario};
use super::*;
use std::collections::BTreeSet;
use std::time::Duration;
use weir_load::control::Control;
use weir_load::engine::{Limit, Limits};
use weir_load::error::BenchError;
use weir_load::workload::{Layout, Length, Operation, Pattern, Rate, Workload};
use weir_results::testing::Figures;
use weir_results::{StepResult, TestResult};
use weir_scenario::scenario::{Cache, Published, Scenario};

/// One call of the suite.
#[derive(Default)]
struct Call {
    executor: Scripted,
    ground: Ground,
    options: Options,
    control: Control,
    told: Vec<String>,
}

impl Call {
    fn new(executor: Scripted) -> Self {
        Self { executor, ..Self::default() }
    }

    fn run(&mut self, scenarios: &[Scenario]) -> SuiteOutcome {
        let told = &mut self.told;
        let mut observer = |event: &Event<'_>| match event {
            Event::Test { scenario, .. } => told.push(format!("test {}", scenario.name)),
            Event::Step { step, number, .. } => told.push(format!("step {number} {}", step.name)),
            Event::Run { act, repeat, of, after_s } => {
                told.push(format!("{act:?} {repeat}/{of}, then {after_s:?}"));
            }
            Event::Done(result) => told.push(format!("done {}", result.name)),
            Event::Layout { .. } | Event::Window(_) => {}
        };
        Suite {
            executor: &mut self.executor,
            place: &mut self.ground,
            options: &self.options,
            control: &self.control,
            observer: &mut observer,
        }
        .run(scenarios)
    }

    fn test(&mut self, scenario: &Scenario) -> (TestResult, SuiteOutcome) {
        let outcome = self.run(std::slice::from_ref(scenario));
        (outcome.results.tests[0].clone(), outcome)
    }

    fn layouts(&self) -> Vec<bool> {
        let laid = |loads: &Vec<Workload>| loads[0].layout != Layout::Existing;
        self.executor.applied.iter().map(laid).collect()
    }
}

fn median(step: &StepResult) -> f64 {
    step.summary.unwrap().iops.median
}

#[test]
fn repeats_give_the_median_and_the_spread() {
    let mut call = Call::new(Scripted::rates(&[9000.0, 100.0, 300.0, 200.0]));
    call.options.repeats = 3;
    call.options.discard_first = true;
    let (test, outcome) = call.test(&scenario(&["a"]));
    let summary = test.steps[0].summary.unwrap();
    assert_eq!((summary.repeats, summary.iops.min.round()), (3, 100.0));
    assert_eq!((summary.iops.median.round(), summary.iops.max.round()), (200.0, 300.0));
    assert!(test.steps[0].notes.contains(&"a first run was not counted".to_owned()));
    assert!(outcome.failures.is_empty() && !outcome.results.interrupted);
    let seeds: Vec<u64> = call.executor.applied.iter().map(|loads| loads[0].seed).collect();
    assert_eq!(seeds, [1, 2, 3, 4]);
    assert_eq!(call.layouts(), [true, false, false, false]);
    // 32 s each: all four ahead, then none.
    assert!(call.told.contains(&"Discard 1/4, then Some(96.0)".to_owned()), "{:?}", call.told);
    assert!(call.told.contains(&"Measure 4/4, then Some(0.0)".to_owned()), "{:?}", call.told);
}

#[test]
fn what_keeps_figures_from_being_those_of_the_target_is_noted() {
    let busy = Figures { machine_busy_percent: 99.5, ..Figures::new(1000.0, 1.0) };
    let mut shape = vec![1.0; 10];
    shape[4..8].fill(0.0);
    let stalled = Figures { shape, ..Figures::new(1000.0, 1.0) };
    let short = Figures { seconds: 2, ..Figures::new(1000.0, 1.0) };
    let give = [&busy, &stalled, &short].map(|figures| Act::Give(figures.clone()));
    let mut call = Call::new(Scripted::new(give.into()));
    call.options.cache.server_is_here = true;
    let (test, _) = call.test(&scenario(&["busy", "stalled", "short"]));
    let of = |step: usize| test.steps[step].notes.join("; ");
    assert_eq!(
        of(0),
        "the processors of the client's machine were busy (1.99 of 2; the load generator used \
         0.00), server and load generator share this machine's processors: rates are a lower bound, \
         latencies an upper one"
    );
    let told = "no operation was completed for 4.0 s, from second 4 of the measured part";
    assert!(of(1).contains(told), "{}", of(1));
    assert_eq!(test.steps[1].runs[0].stall.map(|stall| stall.seconds.round()), Some(4.0));
    let told = "measured for 2 s: too short to tell whether the rate was steady; at least 5 s are \
                needed";
    assert_eq!(of(2), told);
    let busier = Figures { machine_busy_percent: 100.0, ..busy.clone() };
    let give = [&busy, &stalled, &busier].map(|figures| Act::Give(figures.clone()));
    let mut call = Call::new(Scripted::new(give.into()));
    call.options.repeats = 3;
    let (test, _) = call.test(&scenario(&["a"]));
    let notes = &test.steps[0].notes;
    let told = "in 2 of 3 repeats the processors of the client's machine were busy (2.00 of 2;";
    let busy: Vec<_> = notes.iter().filter(|note| note.contains("busy")).collect();
    assert!(busy.len() == 1 && busy[0].starts_with(told), "{notes:?}");
    assert!(!busy[0].contains("share"), "{notes:?}");
    let told = "in 1 of 3 repeats no operation was completed for 4.0 s";
    assert!(notes.iter().any(|note| note.starts_with(told)), "{notes:?}");
}

#[test]
fn steps_that_exclude_caches_have_an_order_of_their_own_each() {
    let mut scenario = scenario(&["a", "b", "c"]);
    for step in &mut scenario.steps {
        step.cache = Cache::Excluded;
    }
    let seeds = |seed: u64| {
        let mut call = Call::default();
        call.options.repeats = 2;
        call.options.seed = seed;
        let (_, outcome) = call.test(&scenario);
        let fact = ("seed of steps that exclude caches".to_owned(), seed.to_string());
        assert!(outcome.results.environment.facts.contains(&fact));
        call.executor.applied.iter().map(|loads| loads[0].seed).collect::<Vec<_>>()
    };
    let first = seeds(7);
    assert_eq!(first, seeds(7), "a seed repeats a run");
    let all: BTreeSet<u64> = first.iter().copied().chain(seeds(8)).collect();
    assert_eq!(all.len(), 12, "every step, repeat and run has another");
    assert!(all.iter().all(|seed| *seed < 1 << 53));
}

#[test]
fn documents_carry_seconds_and_nothing_finer() {
    let (test, outcome) = Call::default().test(&scenario(&["a"]));
    let run = &test.steps[0].runs[0].total;
    assert_eq!(run.series_1s.len(), 10);
    assert!(run.series_10ms.is_empty() && run.series_100ms.is_empty());
    assert!(test.steps[0].runs[0].steady.unwrap().steady);
    assert_eq!(outcome.results.version, weir_results::RESULTS_VERSION);
    assert_eq!(outcome.results.environment.clients.len(), 1);
}

#[test]
fn a_share_is_taken_of_what_the_earlier_step_reached() {
    let mut scenario = scenario(&["max", "half"]);
    scenario.steps[1].loads[0].rate = Rate::Share { of: "max".to_owned(), percent: 50.0 };
    let mut call = Call::new(Scripted::rates(&[800.0]));
    call.run(&[scenario.clone()]);
    assert_eq!(call.executor.applied[1][0].rate, Rate::Operations(400.0));
    // Without figures of the first there is nothing to share, and that is told.
    let refused = Act::Fail(BenchError::Workload("no".to_owned()));
    let mut call = Call::new(Scripted::new(vec![refused]));
    let (test, outcome) = call.test(&scenario);
    assert!(test.steps[1].skipped.as_ref().unwrap().contains("has no result"));
    assert_eq!(outcome.failures.len(), 2);
}

#[test]
fn nothing_builds_on_a_step_that_lost_its_connection() {
    let mut scenario = scenario(&["max", "half"]);
    scenario.steps[1].loads[0].rate = Rate::Share { of: "max".to_owned(), percent: 50.0 };
    let lost = || Act::Give(Figures { lost: 1, ..Figures::new(800.0, 1.0) });
    let mut call = Call::new(Scripted::new(vec![lost()]));
    let (test, _) = call.test(&scenario);
    assert!(test.steps[0].summary.is_some(), "its figures are shown");
    assert!(test.steps[1].skipped.as_ref().unwrap().contains("has no result"));
    scenario.steps.truncate(1);
    scenario.steps[0].cache = Cache::Included;
    let mut call = Call::new(Scripted::new(vec![lost()]));
    let (test, _) = call.test(&scenario);
    assert!(test.steps[0].skipped.as_ref().unwrap().contains("the pass that prepares its caches"));
    assert_eq!(call.executor.applied.len(), 1, "caches are not full");
}

#[test]
fn a_group_ends_where_its_latency_is_over_the_bound_and_others_go_on() {
    let mut scenario = scenario(&["a1", "a2", "a3", "b1"]);
    for step in &mut scenario.steps {
        step.group = step.name[..1].to_owned();
        step.stop_over_ms = Some(2.0);
    }
    let give = |ms| Act::Give(Figures::new(500.0, ms));
    let mut call = Call::new(Scripted::new(vec![give(1.0), give(3.0)]));
    let (test, outcome) = call.test(&scenario);
    let skipped = test.steps[2].skipped.as_ref().unwrap();
    assert!(skipped.contains("step a2") && skipped.contains("above 2 ms"), "{skipped}");
    assert!(test.steps[3].summary.is_some());
    assert!(outcome.failures.is_empty(), "a rule of the scenario is no failure");
    assert_eq!(call.executor.applied.len(), 3);
}

#[test]
fn an_interrupt_keeps_what_was_measured_and_leaves_nothing() {
    let partial = Act::Interrupt(Figures::new(300.0, 1.0));
    let mut call = Call::new(Scripted::new(vec![Act::Give(Figures::new(100.0, 1.0)), partial]));
    let (test, outcome) = call.test(&scenario(&["a", "b", "c"]));
    assert!(outcome.results.interrupted);
    assert!(outcome.results.warnings[0].contains("interrupted"));
    assert_eq!(median(&test.steps[1]).round(), 300.0);
    assert_eq!(test.steps[1].skipped.as_deref(), Some("interrupted"));
    assert!(test.steps[2].runs.is_empty());
    assert_eq!(test.steps[2].skipped.as_deref(), Some("interrupted"));
    assert!(call.ground.there.is_empty(), "{:?}", call.ground.log);
    assert_eq!(call.executor.applied.len(), 2);
}

#[test]
fn an_interrupt_while_laying_out_leaves_nothing_either() {
    let mut call = Call::new(Scripted::new(vec![Act::InterruptLayout]));
    let (test, outcome) = call.test(&scenario(&["a", "b"]));
    assert!(outcome.results.interrupted && outcome.failures.is_empty());
    assert!(test.steps.iter().all(|step| step.runs.is_empty()));
    assert!(call.ground.there.is_empty() && call.ground.log.len() == 2);
}

#[test]
fn a_step_that_fails_is_told_and_the_next_goes_on() {
    let refused = Act::Fail(BenchError::Workload("the block is too large".to_owned()));
    let script = vec![Act::Give(Figures::new(100.0, 1.0)), refused];
    let mut call = Call::new(Scripted::new(script));
    let (test, outcome) = call.test(&scenario(&["a", "b", "c"]));
    assert_eq!(test.steps[1].skipped.as_deref(), Some("the block is too large"));
    assert!(test.steps[2].summary.is_some());
    assert_eq!(outcome.failures, ["test, step b: the block is too large"]);
    assert_eq!(outcome.results.warnings, outcome.failures);
    assert!(!outcome.results.interrupted && call.ground.there.is_empty());
}

#[test]
fn nothing_more_is_tried_once_the_target_is_gone() {
    let mut call = Call::new(Scripted::new(vec![Act::Fail(BenchError::Worker)]));
    call.options.reuse = true;
    call.ground.gone = true;
    let tests = [scenario(&["a", "b"]), scenario(&["c"])];
    let outcome = call.run(&tests);
    assert!(outcome.results.interrupted);
    for step in [&outcome.results.tests[0].steps[1], &outcome.results.tests[1].steps[0]] {
        assert!(step.skipped.as_ref().unwrap().contains("the target is no longer available"));
    }
    assert_eq!(call.executor.applied.len(), 1);
}

#[test]
fn failed_operations_and_lost_connections_are_failures_with_figures() {
    let mut figures = Figures::new(100.0, 1.0);
    (figures.errors, figures.lost) = (7, 1);
    let mut call = Call::new(Scripted::new(vec![Act::Give(figures)]));
    let (test, outcome) = call.test(&scenario(&["a"]));
    assert!(test.steps[0].summary.is_some());
    assert_eq!(outcome.failures.len(), 2, "{:?}", outcome.failures);
    assert!(test.steps[0].notes.iter().any(|note| note.contains("7 × NFS3ERR_IO")));
}

#[test]
fn operations_that_took_further_requests_are_noted_and_no_failure() {
    let figures = Figures { continued: 3, ..Figures::new(100.0, 1.0) };
    let mut call = Call::new(Scripted::new(vec![Act::Give(figures)]));
    let (test, outcome) = call.test(&scenario(&["a", "b"]));
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    let told = |step: usize| {
        test.steps[step].notes.iter().any(|note| note.contains("took further requests"))
    };
    assert!(test.steps[0].notes.iter().any(|note| note.starts_with("3 operations took further")));
    assert!(told(0) && !told(1));
}

#[test]
fn a_lost_worker_makes_the_results_incomplete_and_the_call_fail() {
    let figures = Figures { worker_lost: true, ..Figures::new(100.0, 1.0) };
    let mut call = Call::new(Scripted::new(vec![Act::Give(figures)]));
    let (test, outcome) = call.test(&scenario(&["a", "b"]));
    assert!(outcome.results.interrupted);
    assert_eq!(
        outcome.failures,
        ["test, step a: worker w1 was lost 3.0 s after the start: the connection was closed"]
    );
    assert_eq!(test.steps.len(), 2, "the others go on");
    let mut call = Call::default();
    assert!(!call.run(&[scenario(&["a"])]).results.interrupted);
}

#[test]
fn files_that_steps_share_are_laid_out_once_and_removed_once() {
    let mut scenario = scenario(&["a", "b", "c"]);
    let mut call = Call::default();
    call.run(&[scenario.clone()]);
    assert_eq!(call.layouts(), [true, true, true]);
    assert_eq!(call.ground.log.len(), 6);
    for step in &mut scenario.steps {
        step.shares_files = true;
    }
    let mut call = Call::default();
    call.run(&[scenario.clone()]);
    assert_eq!(call.layouts(), [true, false, false]);
    assert_eq!(call.ground.log, ["+weir-bench", "-weir-bench"]);
    assert!(call.executor.applied.iter().all(|loads| loads[0].keep), "the suite removes them");
    // A step that wants larger ones has them laid out.
    scenario.steps[1].loads[0].file_bytes *= 2;
    let mut call = Call::default();
    call.run(&[scenario]);
    assert_eq!(call.layouts(), [true, true, false]);
}

#[test]
fn files_that_were_removed_are_laid_out_again() {
    let mut scenario = scenario(&["delete", "read"]);
    scenario.steps[0].loads[0].operation = Operation::Remove;
    scenario.steps.iter_mut().for_each(|step| step.shares_files = true);
    let mut call = Call::default();
    call.options.repeats = 2;
    call.run(&[scenario]);
    assert_eq!(call.layouts(), [true, true, true, false]);
}

#[test]
fn files_are_kept_or_used_again_when_asked() {
    let mut call = Call::default();
    call.options.keep = true;
    let outcome = call.run(&[scenario(&["a", "b"]), scenario(&["c"])]);
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert!(call.ground.there.contains("weir-bench"));
    assert_eq!(call.ground.log, ["+weir-bench"], "it is claimed once, and then one's own");
    assert_eq!(call.layouts(), [true, false, true]);
    let mut call = Call::default();
    call.options.reuse = true;
    call.ground.occupied.insert("weir-bench".to_owned());
    let outcome = call.run(&[scenario(&["a"])]);
    assert!(outcome.failures.is_empty() && call.ground.log.is_empty());
    assert_eq!(call.layouts(), [false]);
}

#[test]
fn a_directory_that_was_there_stays_and_is_empty() {
    let mut call = Call::default();
    call.ground.there.insert("weir-bench".to_owned());
    call.run(&[scenario(&["a"])]);
    assert!(call.ground.there.contains("weir-bench"));
    assert_eq!(call.ground.log, ["+weir-bench", "-weir-bench"]);
}

#[test]
fn a_scenario_that_waits_is_listed_and_not_run() {
    let mut waiting = scenario(&["a"]);
    waiting.waiting = Some("SMB is not there yet".to_owned());
    let mut call = Call::default();
    let (test, outcome) = call.test(&waiting);
    assert_eq!(test.waiting, waiting.waiting);
    assert!(test.steps.is_empty() && call.executor.applied.is_empty());
    assert!(outcome.failures.is_empty());
}

#[test]
fn a_rate_is_given_longer_to_settle_within_a_bound() {
    let mut rising = Figures::new(1000.0, 1.0);
    rising.shape = vec![0.1, 0.2, 0.4, 1.0];
    let mut call = Call::new(Scripted::new(vec![Act::Give(rising.clone())]));
    call.options.steady_within = Some(Duration::from_secs(60));
    let (test, _) = call.test(&scenario(&["a"]));
    let warmups = |call: &Call| -> Vec<f64> {
        call.executor.applied.iter().map(|loads| loads[0].warmup_s).collect()
    };
    assert_eq!(warmups(&call), [2.0, 4.0, 4.0]);
    assert_eq!(test.steps[0].runs.len(), 1);
    assert!(test.steps[0].notes.contains(&"steady after 4 s of warm-up".to_owned()));
    // A load that never settles is measured all the same.
    let mut jagged = Figures::new(1000.0, 1.0);
    jagged.shape = vec![0.1, 2.0, 0.1, 2.0, 0.1, 2.0, 0.1, 2.0, 0.1, 2.0];
    let script = (0..9).map(|_| Act::Give(jagged.clone())).collect();
    let mut call = Call::new(Scripted::new(script));
    call.options.steady_within = Some(Duration::from_secs(15));
    let (test, _) = call.test(&scenario(&["a"]));
    assert_eq!(warmups(&call), [2.0, 10.0, 15.0, 15.0]);
    assert!(
        test.steps[0]
            .notes
            .iter()
            .any(|note| note.contains("not steady after the maximum warm-up of 15 s"))
    );
}

#[test]
fn caches_that_are_to_be_full_are_filled_by_reading_everything() {
    let mut scenario = scenario(&["a"]);
    scenario.steps[0].cache = Cache::Included;
    let mut call = Call::default();
    let (test, _) = call.test(&scenario);
    let pass = &call.executor.applied[0][0];
    assert_eq!(pass.length, Length::Bytes { per_job: 1 << 20, at_most_s: None });
    let sequential = Operation::Data { pattern: Pattern::Sequential, read_percent: 100 };
    assert_eq!(pass.operation, sequential);
    assert_eq!(call.layouts(), [true, false]);
    assert_eq!(test.steps[0].runs.len(), 1);
    assert_eq!(test.steps[0].cache.done, ["all data was read once in advance"]);
}

#[test]
fn caches_that_are_to_be_empty_are_emptied_before_each_run_by_what_was_named() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    let mut scenario = scenario(&["a"]);
    scenario.steps[0].cache = Cache::Excluded;
    let mut call = Call::default();
    call.options.repeats = 2;
    call.options.cache.command = Some(format!("echo x >> {}", log.display()));
    call.options.cache.read_bytes = Some(8 << 20);
    let (test, _) = call.test(&scenario);
    assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 2);
    // Laid out; then other data, the load; other data, the load.
    let directories: Vec<&str> =
        call.executor.applied.iter().map(|loads| loads[0].directory.as_str()).collect();
    let (own, other) = ("weir-bench", "weir-bench-flush");
    assert_eq!(directories, [own, other, own, other, own]);
    assert_eq!(call.layouts(), [true, true, false, false, false]);
    assert!(call.ground.there.is_empty(), "{:?}", call.ground.log);
    let proof = &test.steps[0].cache;
    assert!(proof.done.iter().any(|done| done.contains("other data")), "{proof:?}");
    assert!(proof.open.iter().any(|open| open.contains("--server-memory")), "{proof:?}");
    assert!(test.steps[0].notes.iter().any(|note| note.starts_with("caches: ")));
}

#[test]
fn published_rates_that_the_machine_cannot_apply_are_told_with_the_step() {
    let mut scenario = scenario(&["a", "b", "c"]);
    for (step, iops) in scenario.steps.iter_mut().zip([5e6, 1000.0]) {
        step.published = Some(Published { iops: Some(iops), ..Published::default() });
    }
    let mut call = Call::default();
    let links = [("eth0".to_owned(), 1000)];
    call.options.machine = Some(Machine::new(links.clone().into(), 4));
    let (test, outcome) = call.test(&scenario);
    let told = &test.steps[0].out_of_reach;
    assert!(told.len() == 2 && told.iter().all(|told| told.contains("--worker")), "{told:?}");
    assert!(told.iter().all(|told| test.steps[0].notes.contains(told)), "{test:?}");
    assert!(test.steps[1..].iter().all(|step| step.out_of_reach.is_empty()), "{test:?}");
    assert_eq!(outcome.results.environment.links, links.into());
    let page = weir_results::pages::terminal(&outcome.results).to_string();
    assert!(page.contains("In 1 of 3 steps the published rate is more than"), "{page}");
}

#[test]
fn an_executor_that_lays_out_and_loads_in_one_go_can_t_have_caches_emptied() {
    let mut scenario = scenario(&["a"]);
    scenario.steps[0].cache = Cache::Excluded;
    let mut call = Call::default();
    call.executor.never_ready = true;
    let (test, _) = call.test(&scenario);
    assert!(test.steps[0].cache.open.iter().any(|open| open.contains("between laying out")));
}

#[test]
fn preflight_refuses_sizes_that_the_server_does_not_take_whatever_the_step() {
    let mut all = [scenario(&["a"]), scenario(&["b", "c"])];
    all[1].steps[1].loads[0].block_bytes = 1 << 20;
    let limits = Limits { read: Limit::new("rtmax", 64 << 10), ..Limits::default() };
    let mut ground = Ground { limits, ..Ground::default() };
    let mut options = Options::default();
    for reuse in [false, true] {
        options.reuse = reuse;
        let told = preflight(&mut ground, &all, &options).unwrap_err().to_string();
        assert!(told.contains("test, step c: the server supports reads of at most 64 KiB (rtmax)"));
        assert!(ground.log.is_empty());
    }
    all[1].waiting = Some("for another protocol".to_owned());
    assert_eq!(preflight(&mut ground, &all, &options).unwrap(), [""; 0], "it is not run");
}

#[test]
fn preflight_refuses_before_anything_is_laid_out_and_leaves_nothing() {
    let mut ground = Ground { room: Some(1 << 19), ..Ground::default() };
    let scenarios = [scenario(&["a"])];
    let options = Options::default();
    let refused = |ground: &mut Ground, scenarios: &[Scenario]| {
        preflight(ground, scenarios, &options).unwrap_err().to_string()
    };
    let told = refused(&mut ground, &scenarios);
    assert!(told.contains("1 MiB") && told.contains("512 KiB"), "{told}");
    assert!(ground.log.is_empty());
    ground.room = None;
    ground.occupied.insert("weir-bench".to_owned());
    assert!(refused(&mut ground, &scenarios).contains("not empty"));
    ground.occupied.clear();
    ground.gone = true;
    assert!(refused(&mut ground, &scenarios).contains("does not answer"));
    ground.gone = false;
    assert_eq!(preflight(&mut ground, &scenarios, &options).unwrap(), [""; 0]);
    assert!(ground.there.is_empty());
    ground.abandoned.insert("weir-bench".to_owned(), 77);
    let remarks = preflight(&mut ground, &scenarios, &options).unwrap();
    assert!(remarks[0].contains("killed run (process 77)"), "{remarks:?}");
}

#[test]
fn preflight_refuses_a_command_that_does_not_empty_caches() {
    let mut one = scenario(&["a"]);
    let mut options = Options::default();
    options.cache.command = Some("echo not allowed >&2; exit 3".to_owned());
    let mut ground = Ground::default();
    preflight(&mut ground, std::slice::from_ref(&one), &options).expect("it is not needed");
    one.steps[0].cache = Cache::Excluded;
    for reuse in [false, true] {
        options.reuse = reuse;
        let told = preflight(&mut ground, std::slice::from_ref(&one), &options).unwrap_err();
        let told = told.to_string();
        assert!(told.contains("--invalidate-command") && told.contains("3 not allowed"), "{told}");
        assert!(ground.there.is_empty(), "{:?}", ground.log);
    }
    options.cache.command = Some("true".to_owned());
    preflight(&mut ground, &[one], &options).expect("it succeeds");
}

#[test]
fn targets_of_one_file_system_need_room_for_all_of_them() {
    let mut one = scenario(&["a"]);
    let mut turns = scenario(&["a", "b", "c"]);
    for (step, target) in turns.steps.iter_mut().zip(["x", "y", "z"]) {
        step.loads[0].target = target.to_owned();
    }
    let on = |target: &str| Workload { target: target.to_owned(), ..one.steps[0].loads[0].clone() };
    one.steps[0].loads = vec![on("x"), on("y"), on("z")];
    // Each of the three needs 1 MiB.
    let mut ground = Ground { room: Some(2 << 20), ..Ground::default() };
    preflight(&mut ground, std::slice::from_ref(&one), &Options::default()).unwrap();
    ground.one_file_system = true;
    preflight(&mut ground, &[turns], &Options::default()).expect("one after the other");
    let refused = preflight(&mut ground, &[one], &Options::default()).unwrap_err().to_string();
    let told = "need 3 MiB, but the file system of the targets x, y, z has only 2 MiB free";
    assert!(refused.contains(told), "{refused}");
}
