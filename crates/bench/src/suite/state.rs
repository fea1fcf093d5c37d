//! The steps of one test, one after the other: their files, caches, warm-up and repeats.

use super::cache;
use super::data::{self, Laid};
use super::doubts::doubts;
use super::event::{Act, Event};
use super::executor::Context;
use super::meter::Meter;
use super::plan::{applications, step_seconds};
use super::run::{Suite, Whole};
use super::shares;
use super::stall;
use super::steady::steady;
use std::cell::RefCell;
use std::collections::BTreeMap;
use weir_core::rng::mix;
use weir_load::engine::StepRecord;
use weir_load::error::BenchError;
use weir_load::workload::{Length, Location, Workload};
use weir_results::{CacheProof, StepResult, StepRun, Summary, WorkerResult, counted};
use weir_scenario::scenario::{Cache, Step};

/// The state that steps leave for those after them.
pub(super) struct SuiteState {
    /// The test's name, for messages.
    test: String,
    /// Directories made or found empty; true: made.
    claimed: BTreeMap<Location, bool>,
    laid: Laid,
    /// Operations a second of the steps so far.
    reached: BTreeMap<String, f64>,
    /// Why the rest of a group is left out.
    over: BTreeMap<String, String>,
    /// Seed of the orders of steps that exclude caches.
    seed: u64,
    /// Steps that were begun.
    applied: u32,
}

/// One application of a step.
struct Go<'a> {
    step: &'a Step,
    act: Act,
    repeat: u32,
    of: u32,
}

/// Why a step has not all its runs.
enum Stop {
    /// The failure is to be told, and the next step may do better.
    Failed(String),
    /// Somebody asked for it.
    Interrupted,
}

impl From<BenchError> for Stop {
    fn from(error: BenchError) -> Self {
        Self::Failed(error.in_full())
    }
}

const INTERRUPTED: &str = "interrupted";

impl SuiteState {
    /// Before the first step of `test`, whose steps that exclude caches follow `seed`.
    pub(super) fn new(test: &str, seed: u64) -> Self {
        Self {
            test: test.to_owned(),
            seed,
            applied: 0,
            claimed: BTreeMap::new(),
            laid: Laid::default(),
            reached: BTreeMap::new(),
            over: BTreeMap::new(),
        }
    }

    /// Runs `step`, or says why not.
    pub(super) fn step(
        &mut self,
        suite: &mut Suite<'_>,
        whole: &mut Whole,
        step: &Step,
    ) -> StepResult {
        let mut result = blank(step);
        self.applied = self.applied.wrapping_add(1);
        let left_out = self.left_out(suite, whole, step);
        if left_out.is_some() {
            result.skipped = left_out;
            pass_over(whole, step, applications(step, suite.options));
            return result;
        }
        match self.apply_all(suite, whole, step, &mut result) {
            Ok(()) => {}
            Err(Stop::Interrupted) => result.skipped = Some(INTERRUPTED.to_owned()),
            Err(Stop::Failed(why)) => {
                whole.failures.push(format!("{}, step {}: {why}", self.test, step.name));
                result.skipped = Some(why);
                self.forget(step);
                self.look_for_target(suite, whole);
            }
        }
        if result.runs.iter().any(|run| run.total.connections.lost > 0) {
            self.look_for_target(suite, whole);
        }
        if !result.runs.is_empty()
            && let Some(machine) = &suite.options.machine
        {
            result.out_of_reach = machine.falls_short_in(step);
        }
        for said in doubts(&result, suite.options.cache.server_is_here) {
            note(&mut result.notes, said);
        }
        self.conclude(whole, step, &mut result);
        if !step.shares_files {
            self.clear(suite, whole, &data::directories(&step.loads).into_iter().collect());
        }
        result
    }

    /// Removes what is left, unless it is to be kept.
    pub(super) fn finish(&mut self, suite: &mut Suite<'_>, whole: &mut Whole) {
        let all = self.claimed.keys().cloned().collect();
        self.clear(suite, whole, &all);
    }

    fn left_out(&self, suite: &Suite<'_>, whole: &Whole, step: &Step) -> Option<String> {
        if suite.control.stopped() {
            return Some(INTERRUPTED.to_owned());
        }
        whole.over.clone().or_else(|| self.over.get(&step.group).cloned())
    }

    fn apply_all(
        &mut self,
        suite: &mut Suite<'_>,
        whole: &mut Whole,
        step: &Step,
        result: &mut StepResult,
    ) -> Result<(), Stop> {
        let options = suite.options;
        let mut loads = shares::resolve(&step.loads, &self.reached).map_err(Stop::Failed)?;
        for load in &mut loads {
            cache::without_caches(load, step.cache, &options.cache);
        }
        result.cache = cache::proof(step.cache, &loads, &options.cache);
        self.claim(suite, whole, &loads)?;
        self.fill(suite, whole, step, &loads, result)?;
        if !step.preparation {
            self.settle(suite, whole, step, &mut loads, result)?;
        }
        let of = applications(step, options);
        for repeat in 1..=of {
            let discard = options.discard_first && repeat == 1 && of > 1;
            let act = if discard { Act::Discard } else { Act::Measure };
            self.flush(suite, whole, step, result)?;
            let go = Go { step, act, repeat, of };
            let mut own = loads.clone();
            for load in &mut own {
                load.seed = self.seed_of(step, load.seed, repeat);
            }
            let run = self.apply(suite, whole, &go, &own, result)?;
            let stopped = suite.control.stopped();
            let nothing = stopped && run.total.total.operations == 0;
            if !(discard || nothing) {
                for said in run.reached(&options.contracts) {
                    note(&mut result.notes, said);
                }
                result.runs.push(run);
            }
            if stopped {
                return Err(Stop::Interrupted);
            }
        }
        if options.discard_first && !step.preparation {
            note(&mut result.notes, "a first run was not counted".to_owned());
        }
        Ok(())
    }

    /// The seed of a load in the repeat of this number: repeats of the same blocks in the same
    /// order would measure caches. Where caches are excluded, steps don't visit the blocks of those
    /// before them in the same order either (fio's `randrepeat=0`).
    fn seed_of(&self, step: &Step, own: u64, repeat: u32) -> u64 {
        let repeat = u64::from(repeat - 1);
        if step.cache != Cache::Excluded {
            return own.wrapping_add(repeat);
        }
        let number = u64::from(self.applied);
        // JSON has no whole numbers beyond 2^53.
        mix(self.seed ^ mix(own ^ mix(number << 32 | repeat))) >> 11
    }

    /// Makes the step's directories, those that are not made yet.
    fn claim(
        &mut self,
        suite: &mut Suite<'_>,
        whole: &Whole,
        loads: &[Workload],
    ) -> Result<(), Stop> {
        if suite.options.reuse {
            return Ok(());
        }
        for directory in data::directories(loads) {
            let known = self.claimed.contains_key(&directory) || whole.kept.contains(&directory);
            if !known {
                let claim = suite.place.claim(&directory)?;
                self.claimed.insert(directory, claim.made);
            }
        }
        Ok(())
    }

    /// Caches that are to be full are filled by a pass over all data, which lays it out too; where
    /// other data is to push it out afterwards, it has to be there before.
    fn fill(
        &mut self,
        suite: &mut Suite<'_>,
        whole: &mut Whole,
        step: &Step,
        loads: &[Workload],
        result: &mut StepResult,
    ) -> Result<(), Stop> {
        let form: fn(&Workload) -> Workload = match step.cache {
            Cache::Included => cache::pass,
            Cache::Excluded if suite.options.cache.read_bytes.is_some() => cache::lay_out,
            Cache::Excluded | Cache::Any => return Ok(()),
        };
        let moved = loads.iter().filter(|load| load.moves_data());
        let passes: Vec<Workload> =
            moved.map(|load| cache::as_mounted(form(load), &suite.options.cache)).collect();
        if passes.is_empty() {
            return Ok(());
        }
        let go = Go { step, act: Act::Fill, repeat: 1, of: 1 };
        self.pass(suite, whole, &go, &passes, result)?;
        if step.cache == Cache::Included {
            result.cache.done.push("all data was read once in advance".to_owned());
        }
        self.unless_stopped(suite)
    }

    fn unless_stopped(&self, suite: &Suite<'_>) -> Result<(), Stop> {
        if suite.control.stopped() { Err(Stop::Interrupted) } else { Ok(()) }
    }

    /// Applies the step with ever longer warm-ups until its rate is steady.
    fn settle(
        &mut self,
        suite: &mut Suite<'_>,
        whole: &mut Whole,
        step: &Step,
        loads: &mut [Workload],
        result: &mut StepResult,
    ) -> Result<(), Stop> {
        let Some(within) = suite.options.steady_within else { return Ok(()) };
        let by_time = |load: &Workload| matches!(load.length, Length::Seconds(_));
        if !loads.iter().all(by_time) {
            return Ok(());
        }
        let most_s = within.as_secs_f64();
        loop {
            let go = Go { step, act: Act::Settle, repeat: 1, of: 1 };
            let run = self.apply(suite, whole, &go, loads, result)?;
            self.unless_stopped(suite)?;
            let warmup_s = loads.iter().map(|load| load.warmup_s).fold(0.0, f64::max);
            match run.steady {
                None => return Ok(()),
                Some(found) if found.steady => {
                    note(&mut result.notes, format!("steady after {warmup_s:.0} s of warm-up"));
                    return Ok(());
                }
                Some(_) if warmup_s >= most_s => {
                    let said = format!("not steady after the maximum warm-up of {warmup_s:.0} s");
                    note(&mut result.notes, said);
                    return Ok(());
                }
                Some(found) => {
                    let next = found.warmup_s.max(warmup_s * 2.0).max(1.0).ceil().min(most_s);
                    for load in &mut *loads {
                        load.warmup_s = next;
                    }
                }
            }
        }
    }

    /// Reads other data, so that the step's is not in caches.
    fn flush(
        &mut self,
        suite: &mut Suite<'_>,
        whole: &mut Whole,
        step: &Step,
        result: &mut StepResult,
    ) -> Result<(), Stop> {
        let Some(bytes) = suite.options.cache.read_bytes else { return Ok(()) };
        if step.cache != Cache::Excluded {
            return Ok(());
        }
        let flushes = cache::flushes(&step.loads, bytes).into_iter();
        let loads: Vec<Workload> =
            flushes.map(|load| cache::as_mounted(load, &suite.options.cache)).collect();
        self.claim(suite, whole, &loads)?;
        let go = Go { step, act: Act::Flush, repeat: 1, of: 1 };
        self.pass(suite, whole, &go, &loads, result)?;
        let said = format!("{} of other data was read before", weir_core::units::Bytes(bytes));
        note(&mut result.cache.done, said);
        self.unless_stopped(suite)
    }

    /// Applies a pass over data. An interrupted one does not leave the caches as the step needs
    /// them.
    fn pass(
        &mut self,
        suite: &mut Suite<'_>,
        whole: &mut Whole,
        go: &Go<'_>,
        loads: &[Workload],
        result: &mut StepResult,
    ) -> Result<(), Stop> {
        let run = self.apply(suite, whole, go, loads, result)?;
        self.unless_stopped(suite)?;
        if run.total.interrupted {
            let said = "the pass that prepares its caches was interrupted";
            return Err(Stop::Failed(said.to_owned()));
        }
        Ok(())
    }

    /// Applies `loads` once, and takes what is to be said of it into `result`.
    fn apply(
        &mut self,
        suite: &mut Suite<'_>,
        whole: &mut Whole,
        go: &Go<'_>,
        loads: &[Workload],
        result: &mut StepResult,
    ) -> Result<StepRun, Stop> {
        if matches!(go.act, Act::Measure | Act::Discard) {
            pass_over(whole, go.step, 1);
        }
        (suite.observer)(&Event::Run {
            act: go.act,
            repeat: go.repeat,
            of: go.of,
            after_s: whole.left_s,
        });
        let loads = data::with_files(loads, &self.laid, suite.options.reuse);
        let machine = suite.options.machine.as_ref();
        let devices = machine.into_iter().flat_map(|machine| machine.links().keys().cloned());
        let mut meter = Meter::new(suite.options.server_pid, devices.collect())
            .map_err(|error| Stop::Failed(error.to_string()))?;
        let (mut readied, counts) = (false, matches!(go.act, Act::Measure | Act::Discard));
        let caches = &suite.options.cache;
        let applied = {
            let observer = RefCell::new(&mut *suite.observer);
            let mut context = Context {
                control: suite.control,
                layout: &mut |done, total| {
                    (observer.borrow_mut())(&Event::Layout { done, total });
                },
                ready: &mut || {
                    readied = true;
                    if counts {
                        cache::empty(&mut result.cache, caches);
                    }
                },
                observe: &mut |window| {
                    meter.window(window);
                    (observer.borrow_mut())(&Event::Window(window));
                },
            };
            suite.executor.apply(&loads, &mut context)
        };
        let applied = match applied {
            Ok(applied) => applied,
            Err(_) if suite.control.stopped() => return Err(Stop::Interrupted),
            Err(error) => return Err(error.into()),
        };
        self.laid.applied(&loads);
        if counts && !readied && result.cache.wanted == Cache::Excluded {
            let said = "caches could not be emptied between laying out and the load";
            note(&mut result.cache.open, said.to_owned());
        }
        // Remarks about the connections of a pass do not concern the step.
        for said in applied.notes.into_iter().filter(|_| counts) {
            note(&mut result.notes, said);
        }
        let run = finished(applied.record, &go.step.name, applied.workers, &meter);
        let run = run.ok_or_else(|| Stop::from(BenchError::Worker))?;
        self.judge(whole, go, &run, result);
        Ok(run)
    }

    /// Notes the remarks on `run`, and whether anything failed in it.
    fn judge(&self, whole: &mut Whole, go: &Go<'_>, run: &StepRun, result: &mut StepResult) {
        let total = &run.total;
        let mut failed = Vec::new();
        let lost: Vec<&WorkerResult> =
            run.workers.iter().filter(|worker| worker.lost.is_some()).collect();
        whole.incomplete |= total.interrupted || !lost.is_empty();
        for worker in lost {
            let why = worker.lost.as_deref().unwrap_or_default();
            failed.push(format!("worker {} was lost {why}", worker.name));
        }
        for (what, count) in &total.errors {
            failed.push(format!("failed: {count} × {what}"));
        }
        if total.connections.lost > 0 {
            failed.push(format!("{} connections were lost", total.connections.lost));
        }
        if let Some(verify) = &total.verify {
            if verify.mismatches > 0 {
                let first = verify.details.first().map_or("", String::as_str);
                failed.push(format!(
                    "{} blocks did not contain the written data: {first}",
                    verify.mismatches
                ));
            }
            if verify.unread > 0 {
                failed.push(format!("{} blocks were not read back", verify.unread));
            }
        }
        for said in &failed {
            whole.failures.push(format!("{}, step {}: {said}", self.test, go.step.name));
        }
        if !matches!(go.act, Act::Measure) {
            return;
        }
        for said in failed {
            note(&mut result.notes, said);
        }
        if total.generator.saturated {
            note(
                &mut result.notes,
                "the generator was the limit, the target can do more: use more --threads or workers"
                    .to_owned(),
            );
        }
        if total.connections.unanswered > 0 {
            let count = total.connections.unanswered;
            note(&mut result.notes, format!("{count} requests had no answer after the drain"));
        }
        if total.connections.continued > 0 {
            let count = total.connections.continued;
            let said = "operations took further requests, because the target moved less than \
                        requested";
            note(&mut result.notes, format!("{count} {said}"));
        }
    }

    /// The repeats together, and what they mean for the steps after.
    fn conclude(&mut self, whole: &Whole, step: &Step, result: &mut StepResult) {
        result.summary = Summary::of(counted(&result.runs));
        let proof: &CacheProof = &result.cache;
        for open in &proof.open {
            note(&mut result.notes, format!("caches: {open}"));
        }
        for sentence in &result.out_of_reach {
            note(&mut result.notes, sentence.clone());
        }
        // Later steps build on runs that were not interrupted.
        let is_whole = result.runs.iter().any(|run| !run.total.interrupted);
        let Some(summary) = result.summary.filter(|_| is_whole) else { return };
        self.reached.insert(step.name.clone(), summary.iops.median);
        if let Some(most) = step.stop_over_ms
            && summary.mean_ms.median > most
            && whole.over.is_none()
        {
            let mean = summary.mean_ms.median;
            let why = format!(
                "skipped, because the mean latency of step {} was {mean:.2} ms, above {most} ms",
                step.name
            );
            self.over.insert(step.group.clone(), why);
        }
    }

    /// Forgets the files of a step: their layout after a failure is unknown.
    fn forget(&mut self, step: &Step) {
        for directory in data::directories(&step.loads) {
            self.laid.forget(&directory);
        }
    }

    fn look_for_target(&self, suite: &mut Suite<'_>, whole: &mut Whole) {
        if whole.over.is_none()
            && !suite.control.stopped()
            && let Err(error) = suite.place.reach()
        {
            whole.over = Some(format!(
                "skipped, because the target is no longer available: {}",
                error.in_full()
            ));
        }
    }

    fn clear(&mut self, suite: &mut Suite<'_>, whole: &mut Whole, directories: &Vec<Location>) {
        for directory in directories {
            let Some(made) = self.claimed.remove(directory) else { continue };
            if suite.options.keep && directory.directory != cache::FLUSH_DIRECTORY {
                if let Err(error) = suite.place.release(directory) {
                    whole.failures.push(format!(
                        "{}: the mark of this run was not removed from {}: {}",
                        self.test,
                        directory.directory,
                        error.in_full()
                    ));
                }
                whole.kept.insert(directory.clone());
                continue;
            }
            self.laid.forget(directory);
            if let Err(error) = suite.place.clear(directory, made) {
                whole.failures.push(format!(
                    "{}: the directory {} was not removed: {}",
                    self.test,
                    directory.directory,
                    error.in_full()
                ));
            }
        }
    }
}

/// The figures with what was seen from outside; series finer than a second are left out, which
/// would make the document large.
fn finished(
    record: StepRecord,
    name: &str,
    workers: Vec<WorkerResult>,
    meter: &Meter,
) -> Option<StepRun> {
    let mut targets = record.by_target();
    let (mut total, mut loads) = record.results(name)?;
    let usage = meter.finish(&total);
    total.server = usage.server;
    let by_time = matches!(total.workload.length, Length::Seconds(_));
    let found = if by_time { steady(&total.series_1s, &total.measured) } else { None };
    let stall = stall::of(&total, &loads);
    for run in std::iter::once(&mut total).chain(&mut loads).chain(&mut targets) {
        run.series_10ms = Vec::new();
        run.series_100ms = Vec::new();
    }
    Some(StepRun {
        total,
        loads,
        targets,
        workers,
        steady: found,
        stall,
        network: usage.network,
        client_processors: usage.processors,
    })
}

/// Counts `times` applications of `step` as no longer ahead.
fn pass_over(whole: &mut Whole, step: &Step, times: u32) {
    let seconds = step_seconds(step).unwrap_or(0.0) * f64::from(times);
    whole.left_s = whole.left_s.map(|left| (left - seconds).max(0.0));
}

fn note(list: &mut Vec<String>, sentence: String) {
    if !list.contains(&sentence) {
        list.push(sentence);
    }
}

fn blank(step: &Step) -> StepResult {
    StepResult {
        name: step.name.clone(),
        group: step.group.clone(),
        axis: step.axis.clone(),
        preparation: step.preparation,
        published: step.published.clone(),
        written_in_flight: step.written_in_flight,
        runs: Vec::new(),
        summary: None,
        skipped: None,
        notes: Vec::new(),
        out_of_reach: Vec::new(),
        cache: CacheProof::default(),
    }
}
