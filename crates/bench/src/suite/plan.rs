//! The duration of scenarios, as far as it is known beforehand.

use super::cache;
use super::data::{self, Laid};
use super::options::Options;
use std::collections::BTreeMap;
use weir_load::workload::{Layout, Workload};
use weir_scenario::scenario::scale::PASS_BYTES_PER_S;
use weir_scenario::scenario::{Cache, Scenario, Step};

/// The demands of running scenarios.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Steps that are applied.
    pub steps: usize,
    /// Seconds of load whose length is set by time.
    pub seconds: f64,
    /// Applications that end by a count, of which nobody knows how long they take.
    pub open_ended: usize,
    /// The most that the files hold at one time, in bytes.
    pub peak_bytes: u64,
    /// The same of each place, by name: each target, or each of their file systems.
    pub peak_of: BTreeMap<String, u64>,
    /// The bytes written to lay files out; none for files that begin as holes.
    pub layout_bytes: u64,
    /// The bytes read to fill caches before steps that include them.
    pub fill_bytes: u64,
    /// The bytes of other data read to push data out of caches before steps that exclude them.
    pub flush_bytes: u64,
}

/// Seconds that one application of `step` takes; `None` if a load of it ends by a count.
#[must_use]
pub fn step_seconds(step: &Step) -> Option<f64> {
    let seconds = |load: &Workload| {
        let measured = load.measured_time()?;
        Some(load.start_delay_s + (load.warmup() + measured).as_secs_f64() + load.cooldown_s)
    };
    step.loads.iter().map(seconds).try_fold(0.0, |most: f64, one| one.map(|one| most.max(one)))
}

/// Applications of `step`.
pub(super) fn applications(step: &Step, options: &Options) -> u32 {
    if step.preparation { 1 } else { options.repeats.max(1) + u32::from(options.discard_first) }
}

impl Plan {
    /// About how many seconds files and passes over them take, at
    /// [`PASS_BYTES_PER_S`]; they come on top of [`Plan::seconds`].
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn pass_seconds(&self) -> f64 {
        let passes = [self.layout_bytes, self.fill_bytes, self.flush_bytes];
        passes.into_iter().fold(0, u64::saturating_add) as f64 / PASS_BYTES_PER_S
    }

    /// The demands of running `scenarios`; those that wait for something demand nothing.
    #[must_use]
    pub fn of(scenarios: &[Scenario], options: &Options) -> Self {
        Self::at(scenarios, options, &|target| target.to_owned())
    }

    /// The same, with the peak of each place; `place_of` gives that of a target.
    pub(super) fn at(
        scenarios: &[Scenario],
        options: &Options,
        place_of: &dyn Fn(&str) -> String,
    ) -> Self {
        let mut plan = Self::default();
        for scenario in scenarios.iter().filter(|scenario| scenario.waiting.is_none()) {
            let mut laid = Laid::default();
            for step in &scenario.steps {
                plan.add(step, options, &mut laid, place_of);
            }
        }
        plan
    }

    fn add(
        &mut self,
        step: &Step,
        options: &Options,
        laid: &mut Laid,
        place_of: &dyn Fn(&str) -> String,
    ) {
        self.steps += 1;
        let times = applications(step, options);
        match step_seconds(step) {
            Some(seconds) => self.seconds += seconds * f64::from(times),
            None => self.open_ended += usize::try_from(times).unwrap_or(usize::MAX),
        }
        self.pass(step, times, options, laid);
        if options.reuse {
            return;
        }
        for _ in 0..times {
            self.lay_out(&step.loads, laid);
            self.peak(laid, place_of);
            // Files that a load removes are laid out again for its next repeat.
            laid.applied(&step.loads);
        }
        if !step.shares_files && !options.keep {
            for directory in data::directories(&step.loads) {
                laid.forget(&directory);
            }
        }
    }

    /// Notes the bytes that files hold now.
    fn peak(&mut self, laid: &Laid, place_of: &dyn Fn(&str) -> String) {
        self.peak_bytes = self.peak_bytes.max(laid.bytes());
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (target, bytes) in laid.by_target() {
            let sum = sums.entry(place_of(target)).or_default();
            *sum = sum.saturating_add(bytes);
        }
        for (place, bytes) in sums {
            let peak = self.peak_of.entry(place).or_default();
            *peak = bytes.max(*peak);
        }
    }

    /// The passes over data before the applications of `step`.
    fn pass(&mut self, step: &Step, times: u32, options: &Options, laid: &mut Laid) {
        match (step.cache, options.cache.read_bytes) {
            (Cache::Included, _) => {
                let moved = step.loads.iter().filter(|load| load.moves_data());
                let bytes = moved.map(|load| u64::from(load.files).saturating_mul(load.file_bytes));
                self.fill_bytes = bytes.fold(self.fill_bytes, u64::saturating_add);
            }
            (Cache::Excluded, Some(bytes)) => {
                let targets = data::targets(&step.loads).len() as u64;
                let all = bytes.saturating_mul(u64::from(times)).saturating_mul(targets);
                self.flush_bytes = self.flush_bytes.saturating_add(all);
                if !options.reuse {
                    self.lay_out(&cache::flushes(&step.loads, bytes), laid);
                }
            }
            (Cache::Excluded, None) | (Cache::Any, _) => {}
        }
    }

    /// The files of `loads` that are not there yet.
    fn lay_out(&mut self, loads: &[Workload], laid: &mut Laid) {
        let written =
            |load: &&Workload| matches!(load.layout, Layout::Written { .. }) && !laid.covers(load);
        let missing: Vec<Workload> = loads.iter().filter(written).cloned().collect();
        self.layout_bytes = self.layout_bytes.saturating_add(data::bytes(&missing));
        laid.add(loads);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{scenario, step};
    use super::*;
    use weir_load::workload::{Length, Operation};

    #[test]
    fn a_step_lasts_as_long_as_its_longest_load() {
        let mut one = step("a");
        one.loads.push(Workload {
            start_delay_s: 10.0,
            warmup_s: 1.0,
            length: Length::Seconds(40.0),
            ..Workload::default()
        });
        assert_eq!(step_seconds(&one), Some(51.0));
        one.loads.push(Workload { length: Length::Operations(5), ..Workload::default() });
        assert_eq!(step_seconds(&one), None);
    }

    #[test]
    fn files_that_steps_share_are_laid_out_once() {
        let mut scenario = scenario(&["a", "b", "c"]);
        let size = data::bytes(&scenario.steps[0].loads);
        let options = Options { repeats: 3, discard_first: true, ..Options::default() };
        let plan = Plan::of(&[scenario.clone()], &options);
        assert_eq!((plan.layout_bytes, plan.peak_bytes), (3 * size, size));
        assert_eq!(plan.steps, 3);
        assert!((plan.seconds - 12.0 * step_seconds(&scenario.steps[0]).unwrap()).abs() < 1e-9);
        for step in &mut scenario.steps {
            step.shares_files = true;
        }
        let plan = Plan::of(&[scenario], &options);
        assert_eq!((plan.layout_bytes, plan.peak_bytes), (size, size));
    }

    #[test]
    fn files_that_begin_as_holes_are_not_written() {
        let mut scenario = scenario(&["a"]);
        let size = data::bytes(&scenario.steps[0].loads);
        scenario.steps[0].loads[0].layout = Layout::Sparse;
        let plan = Plan::of(&[scenario], &Options::default());
        assert_eq!((plan.layout_bytes, plan.peak_bytes), (0, size));
    }

    #[test]
    fn passes_over_data_are_counted() {
        let mut scenario = scenario(&["a", "b", "c"]);
        let size = data::bytes(&scenario.steps[0].loads);
        scenario.steps[0].cache = Cache::Included;
        scenario.steps[1].cache = Cache::Excluded;
        let mut options = Options { repeats: 3, ..Options::default() };
        let plan = Plan::of(&[scenario.clone()], &options);
        assert_eq!((plan.fill_bytes, plan.flush_bytes), (size, 0), "one pass, whatever repeats");
        options.cache.read_bytes = Some(1 << 30);
        let plan = Plan::of(&[scenario], &options);
        assert_eq!((plan.fill_bytes, plan.flush_bytes), (size, 3 << 30));
        assert_eq!(plan.layout_bytes, 3 * size + (1 << 30), "the other data is written once");
        let passes = (4 * size + (4 << 30)) as f64;
        assert!((plan.pass_seconds() - passes / PASS_BYTES_PER_S).abs() < 1e-9);
    }

    #[test]
    fn other_data_is_on_the_targets_of_the_step() {
        let mut scenario = scenario(&["a"]);
        let step = &mut scenario.steps[0];
        step.cache = Cache::Excluded;
        let on = |target: &str| Workload { target: target.to_owned(), ..step.loads[0].clone() };
        step.loads = vec![on("x"), on("y")];
        let size = data::bytes(&step.loads[..1]);
        let mut options = Options::default();
        options.cache.read_bytes = Some(1 << 30);
        let plan = Plan::of(&[scenario], &options);
        let each = size + (1 << 30);
        assert_eq!(plan.peak_of, [("x", each), ("y", each)].map(|(to, it)| (to.into(), it)).into());
        assert_eq!((plan.layout_bytes, plan.flush_bytes), (2 * each, 2 << 30));
    }

    #[test]
    fn files_that_are_removed_are_laid_out_for_each_repeat() {
        let mut scenario = scenario(&["a"]);
        scenario.steps[0].loads[0].operation = Operation::Remove;
        let size = data::bytes(&scenario.steps[0].loads);
        let options = Options { repeats: 3, ..Options::default() };
        let plan = Plan::of(&[scenario], &options);
        assert_eq!((plan.layout_bytes, plan.peak_bytes), (3 * size, size));
    }
}
