//! The duration of a scenario.

use crate::scenario::{Cache, Scenario, Step};
use std::time::Duration;
use weir_load::workload::{Layout, Length, Workload};

/// The assumed speed of laying files out and of passes over them, in bytes a second.
pub const PASS_BYTES_PER_S: f64 = 300.0 * 1024.0 * 1024.0;
/// Files that are assumed to be made in a second.
const FILES_PER_S: f64 = 2000.0;
/// Operations that are assumed to be answered in a second, where a count ends the run.
const OPERATIONS_PER_S: f64 = 20_000.0;
/// Longest time (s) for connecting, the last answers and clearing away in ordinary circumstances.
const AROUND_S: f64 = 1.0;

/// About how long `repeats` runs of `scenario` take: laying out at 300 MiB/s, passes that fill
/// caches at the same speed, warm-ups, measured times and cool-downs, and a second for each step
/// around them. Steps on a throttled volume, which waits with its answers, take longer.
#[must_use]
pub fn estimate(scenario: &Scenario, repeats: u32) -> Duration {
    let mut kept: Vec<(&str, u64)> = Vec::new();
    let mut seconds = 0.0;
    for step in &scenario.steps {
        for load in &step.loads {
            if !kept.contains(&(load.directory.as_str(), load.file_bytes)) {
                seconds += layout_s(load);
            }
        }
        if step.shares_files {
            kept.extend(step.loads.iter().map(|load| (load.directory.as_str(), load.file_bytes)));
        } else {
            kept.clear();
        }
        seconds += step_s(step);
        if step.cache == Cache::Included {
            seconds += pass_s(step);
        }
    }
    let all = seconds * f64::from(repeats.max(1));
    Duration::try_from_secs_f64(all).unwrap_or(Duration::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn layout_s(load: &Workload) -> f64 {
    if !load.needs_files() {
        return 0.0;
    }
    let files = f64::from(load.files);
    match load.layout {
        Layout::Existing => 0.0,
        Layout::Sparse => files / FILES_PER_S,
        Layout::Written { .. } => {
            files / FILES_PER_S + files * load.file_bytes as f64 / PASS_BYTES_PER_S
        }
    }
}

/// A pass over all data that a step moves.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn pass_s(step: &Step) -> f64 {
    let loads = step.loads.iter().filter(|load| load.moves_data());
    loads.map(|load| f64::from(load.files) * load.file_bytes as f64 / PASS_BYTES_PER_S).sum()
}

/// The longest of a step's loads.
fn step_s(step: &Step) -> f64 {
    step.loads.iter().map(load_s).fold(0.0, f64::max) + AROUND_S
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn load_s(load: &Workload) -> f64 {
    let measured = match load.length {
        Length::Seconds(seconds) => seconds + load.cooldown_s,
        Length::Operations(count) => count as f64 / OPERATIONS_PER_S,
        Length::Bytes { per_job, at_most_s } => {
            let all = per_job as f64 * f64::from(load.jobs) / PASS_BYTES_PER_S;
            at_most_s.map_or(all, |most| all.min(most))
        }
    };
    load.start_delay_s + load.warmup().as_secs_f64() + measured
}
