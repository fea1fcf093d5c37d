//! The checks of the targets before anything is laid out.

use super::data;
use super::options::Options;
use super::place::Place;
use super::plan::Plan;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use weir_core::units::Bytes;
use weir_load::engine::Limits;
use weir_load::error::BenchError;
use weir_load::workload::{Location, Workload};
use weir_scenario::scenario::{Scenario, Step};

/// Checks that the targets are there and take requests and files of these sizes, that their
/// directories can be made and are free, and that there is room for the files. Files of killed runs
/// are removed, and nothing is left behind. Gives remarks, a sentence each.
///
/// # Errors
/// [`BenchError`] says what to do.
pub fn preflight(
    place: &mut dyn Place,
    scenarios: &[Scenario],
    options: &Options,
) -> Result<Vec<String>, BenchError> {
    let runnable = || scenarios.iter().filter(|scenario| scenario.waiting.is_none());
    place.reach()?;
    check_sizes(place, runnable())?;
    if options.reuse {
        return Ok(Vec::new());
    }
    for (target, wanted) in Plan::of(scenarios, options).peak_of {
        if let Some(room) = place.room(&target)?
            && room < wanted
        {
            let named = if target.is_empty() { target } else { format!(" {target}") };
            return Err(BenchError::Workload(format!(
                "the files need {}, but the target{named} has only {} free: reduce the data with \
                 --max-data or --scale, or make room",
                Bytes(wanted),
                Bytes(room)
            )));
        }
    }
    let steps = runnable().flat_map(|scenario| &scenario.steps);
    let directories: BTreeSet<Location> =
        steps.flat_map(|step| data::directories(&step.loads)).collect();
    let mut remarks = Vec::new();
    for directory in directories {
        let claim = place.claim(&directory)?;
        place.clear(&directory, claim.made)?;
        remarks.extend(claim.abandoned.map(|process| {
            format!(
                "the directory {} was that of a killed run (process {process}): its files were \
                 removed",
                directory.directory
            )
        }));
    }
    Ok(remarks)
}

/// Checks the sizes of every load against the limits of its target.
fn check_sizes<'a>(
    place: &mut dyn Place,
    scenarios: impl Iterator<Item = &'a Scenario>,
) -> Result<(), BenchError> {
    let mut known: BTreeMap<&str, Limits> = BTreeMap::new();
    for scenario in scenarios {
        for (step, load) in loads(scenario) {
            let limits = match known.entry(&load.target) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(place.limits(&load.target)?),
            };
            limits.check(load).map_err(|error| {
                let (test, step) = (&scenario.name, &step.name);
                BenchError::Workload(format!("{test}, step {step}: {error}"))
            })?;
        }
    }
    Ok(())
}

fn loads(scenario: &Scenario) -> impl Iterator<Item = (&Step, &Workload)> {
    scenario.steps.iter().flat_map(|step| step.loads.iter().map(move |load| (step, load)))
}
