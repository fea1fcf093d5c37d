//! The duration of scenarios, as far as it is known beforehand.

use super::data::{self, Laid};
use super::options::Options;
use std::collections::BTreeMap;
use weir_load::workload::Workload;
use weir_scenario::scenario::{Scenario, Step};

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
    /// The same of each target, by name.
    pub peak_of: BTreeMap<String, u64>,
    /// The bytes written to lay files out.
    pub layout_bytes: u64,
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
    /// The demands of running `scenarios`; those that wait for something demand nothing.
    #[must_use]
    pub fn of(scenarios: &[Scenario], options: &Options) -> Self {
        let mut plan = Self::default();
        for scenario in scenarios.iter().filter(|scenario| scenario.waiting.is_none()) {
            let mut laid = Laid::default();
            for step in &scenario.steps {
                plan.add(step, options, &mut laid);
            }
        }
        plan
    }

    fn add(&mut self, step: &Step, options: &Options, laid: &mut Laid) {
        self.steps += 1;
        let times = applications(step, options);
        match step_seconds(step) {
            Some(seconds) => self.seconds += seconds * f64::from(times),
            None => self.open_ended += usize::try_from(times).unwrap_or(usize::MAX),
        }
        if options.reuse {
            return;
        }
        let missing: Vec<Workload> =
            step.loads.iter().filter(|load| !laid.covers(load)).cloned().collect();
        self.layout_bytes = self.layout_bytes.saturating_add(data::bytes(&missing));
        laid.add(&step.loads);
        self.peak_bytes = self.peak_bytes.max(laid.bytes());
        for (target, bytes) in laid.by_target() {
            let peak = self.peak_of.entry(target.to_owned()).or_default();
            *peak = bytes.max(*peak);
        }
        if !step.shares_files && !options.keep {
            for directory in data::directories(&step.loads) {
                laid.forget(&directory);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{scenario, step};
    use super::*;
    use weir_load::workload::Length;

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
}
