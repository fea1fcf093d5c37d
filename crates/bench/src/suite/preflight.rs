//! The checks of the targets before anything is laid out.

use super::cache;
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
/// directories can be made and are free, that there is room for the files, and that the command
/// that is to empty caches succeeds. Files of killed runs are removed, and nothing is left behind.
/// Gives remarks, a sentence each.
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
    if !options.reuse {
        check_room(place, scenarios, options)?;
    }
    cache::try_command(scenarios, &options.cache)?;
    if options.reuse { Ok(Vec::new()) } else { claim_and_clear(place, runnable()) }
}

/// Claims the directories of `scenarios` and clears them again.
fn claim_and_clear<'a>(
    place: &mut dyn Place,
    scenarios: impl Iterator<Item = &'a Scenario>,
) -> Result<Vec<String>, BenchError> {
    let steps = scenarios.flat_map(|scenario| &scenario.steps);
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

/// A target as its file system has it.
struct On {
    file_system: String,
    room: Option<u64>,
}

/// Checks that the files of each target have room there, and those of all targets on one file
/// system have it together. Targets of one file system may have different room: quotas.
fn check_room(
    place: &mut dyn Place,
    scenarios: &[Scenario],
    options: &Options,
) -> Result<(), BenchError> {
    let each = Plan::of(scenarios, options).peak_of;
    let mut targets: BTreeMap<String, On> = BTreeMap::new();
    for (target, wanted) in &each {
        let on = On { file_system: place.file_system(target)?, room: place.room(target)? };
        if let Some(room) = on.room.filter(|room| room < wanted) {
            let named = if target.is_empty() { String::new() } else { format!(" {target}") };
            return Err(no_room(*wanted, &format!("target{named}"), room));
        }
        targets.insert(target.clone(), on);
    }
    let file_system =
        |target: &str| targets.get(target).map_or_else(String::new, |on| on.file_system.clone());
    for (name, wanted) in Plan::at(scenarios, options, &file_system).peak_of {
        let here: Vec<(&String, &On)> =
            targets.iter().filter(|(_, on)| on.file_system == name).collect();
        let room = here.iter().filter_map(|(_, on)| on.room).max();
        if let Some(room) = room.filter(|room| *room < wanted) {
            let names: Vec<&str> = here.iter().map(|(target, _)| target.as_str()).collect();
            let who = format!("file system of the targets {}", names.join(", "));
            return Err(no_room(wanted, &who, room));
        }
    }
    Ok(())
}

fn no_room(wanted: u64, who: &str, room: u64) -> BenchError {
    BenchError::Workload(format!(
        "the files need {}, but the {who} has only {} free: reduce the data with --max-data or \
         --scale, or make room",
        Bytes(wanted),
        Bytes(room)
    ))
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
