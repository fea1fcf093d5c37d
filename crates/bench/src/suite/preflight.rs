//! The checks before anything is laid out.

use super::data;
use super::options::Options;
use super::place::Place;
use super::plan::Plan;
use std::collections::BTreeSet;
use weir_core::units::Bytes;
use weir_load::error::BenchError;
use weir_load::workload::{Rate, Workload};
use weir_scenario::scenario::Scenario;

/// Checks that the loads make sense, that the target is there, that its directories can be made and
/// are free, and that there is room for the files. Nothing is left behind.
///
/// # Errors
/// [`BenchError`] says what to do.
pub fn preflight(
    place: &mut dyn Place,
    scenarios: &[Scenario],
    options: &Options,
) -> Result<(), BenchError> {
    let runnable = || scenarios.iter().filter(|scenario| scenario.waiting.is_none());
    for scenario in runnable() {
        for step in &scenario.steps {
            for load in &step.loads {
                check(load).map_err(|error| {
                    BenchError::Workload(format!("{}, step {}: {error}", scenario.name, step.name))
                })?;
            }
        }
    }
    place.reach()?;
    if options.reuse {
        return Ok(());
    }
    let wanted = Plan::of(scenarios, options).peak_bytes;
    if let Some(room) = place.room()?
        && room < wanted
    {
        return Err(BenchError::Workload(format!(
            "the files need {}, but the target has only {} free: reduce the data with --max-data \
             or --scale, or make room",
            Bytes(wanted),
            Bytes(room)
        )));
    }
    let steps = runnable().flat_map(|scenario| &scenario.steps);
    let directories: BTreeSet<String> =
        steps.flat_map(|step| data::directories(&step.loads)).collect();
    for directory in directories {
        let made = place.claim(&directory)?;
        place.clear(&directory, made)?;
    }
    Ok(())
}

/// A rate that is a share gets its number later.
fn check(load: &Workload) -> Result<(), BenchError> {
    if matches!(load.rate, Rate::Share { .. }) {
        return Workload { rate: Rate::Operations(1.0), ..load.clone() }.check();
    }
    load.check()
}
