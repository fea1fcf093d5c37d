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
    check_room(place, scenarios, options)?;
    let steps = runnable().flat_map(|scenario| &scenario.steps);
    let directories: BTreeSet<Location> =
        steps.flat_map(|step| data::directories(&step.loads)).collect();
    let mut claimed = Vec::new();
    let mut outcome = claim_all(place, directories, &mut claimed);
    for (directory, made) in claimed {
        let cleared = place.clear(&directory, made);
        outcome = outcome.and_then(|remarks| cleared.map(|()| remarks));
    }
    outcome
}

/// Claims all of `directories` at the same time, as a step of several loads does; `claimed` has
/// those that were, and whether they were made.
fn claim_all(
    place: &mut dyn Place,
    directories: BTreeSet<Location>,
    claimed: &mut Vec<(Location, bool)>,
) -> Result<Vec<String>, BenchError> {
    let mut remarks = Vec::new();
    for directory in directories {
        let claim = place.claim(&directory)?;
        remarks.extend(claim.abandoned.map(|process| {
            format!(
                "the directory {} was that of a killed run (process {process}): its files were \
                 removed",
                directory.directory
            )
        }));
        claimed.push((directory, claim.made));
    }
    Ok(remarks)
}

/// The targets on one file system.
#[derive(Default)]
struct Shared {
    targets: Vec<String>,
    wanted: u64,
    /// The least room that one of them tells.
    room: Option<u64>,
}

/// Checks that the files of all targets on one file system have room there together.
fn check_room(
    place: &mut dyn Place,
    scenarios: &[Scenario],
    options: &Options,
) -> Result<(), BenchError> {
    let mut all: BTreeMap<String, Shared> = BTreeMap::new();
    for (target, wanted) in Plan::of(scenarios, options).peak_of {
        let room = place.room(&target)?;
        let shared = all.entry(place.file_system(&target)?).or_default();
        shared.wanted = shared.wanted.saturating_add(wanted);
        shared.room = shared.room.into_iter().chain(room).min();
        shared.targets.extend((!target.is_empty()).then_some(target));
    }
    let lacks = |shared: &&Shared| shared.room.is_some_and(|room| room < shared.wanted);
    let Some(Shared { targets, wanted, room: Some(room) }) = all.values().find(lacks) else {
        return Ok(());
    };
    let on = match targets.as_slice() {
        [] => "the target has".to_owned(),
        [one] => format!("the target {one} has"),
        several => format!("the file system of the targets {} has", several.join(", ")),
    };
    Err(BenchError::Workload(format!(
        "the files need {}, but {on} only {} free: reduce the data with --max-data or --scale, or \
         make room",
        Bytes(*wanted),
        Bytes(*room)
    )))
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
