//! Leaving out steps that scaling made the same as others: the same load under two names would be
//! shown as two results of one test.

use super::Changes;
use crate::scenario::select::{retain, with_preparations};
use crate::scenario::{Scenario, Step};
use std::collections::BTreeMap;
use weir_load::workload::{Layout, Rate, Workload};

/// Leaves out the steps of `scaled` that are the same as one before, and were not in `original`.
/// Rates that are parts of theirs become parts of those of the steps that stay. A preparation goes
/// with all that it prepares.
pub(super) fn leave_out(scaled: &mut Scenario, original: &Scenario, changes: &mut Changes) {
    let same = repeats(&scaled.steps, &original.steps);
    if same.is_empty() {
        return;
    }
    let told: Vec<String> = scaled
        .steps
        .iter()
        .filter_map(|step| Some(format!("{} (as {})", step.name, same.get(&step.name)?)))
        .collect();
    changes.say(format!("left out, for being the same as another now: {}", told.join(", ")));
    for load in scaled.steps.iter_mut().flat_map(|step| &mut step.loads) {
        if let Rate::Share { of, .. } = &mut load.rate
            && let Some(other) = same.get(of)
        {
            of.clone_from(other);
        }
    }
    let stay = with_preparations(&scaled.steps, &|step| !same.contains_key(&step.name), true);
    retain(&mut scaled.steps, &stay);
}

/// Steps by name that are the same as an earlier one, with its name.
fn repeats(scaled: &[Step], original: &[Step]) -> BTreeMap<String, String> {
    let mut same = BTreeMap::new();
    for (number, step) in scaled.iter().enumerate().filter(|(_, step)| !step.preparation) {
        let were_alike = |earlier: usize| match (original.get(earlier), original.get(number)) {
            (Some(one), Some(other)) => alike(one, other, &BTreeMap::new()),
            _ => false,
        };
        let earlier = scaled.iter().take(number).enumerate().find(|(at, earlier)| {
            !earlier.preparation
                && !same.contains_key(&earlier.name)
                && alike(earlier, step, &same)
                && !were_alike(*at)
        });
        if let Some((_, earlier)) = earlier {
            same.insert(step.name.clone(), earlier.name.clone());
        }
    }
    same
}

/// Do two steps apply the same loads, in the same state of caches? Their names, the order of their
/// blocks by chance, and who lays out and removes the files do not matter. Connections do, however
/// few requests are in flight: the engine sends them over all connections in turn.
fn alike(one: &Step, other: &Step, same: &BTreeMap<String, String>) -> bool {
    let bare = |load: &Workload, layout: Layout| Workload {
        name: String::new(),
        seed: 0,
        keep: false,
        layout,
        rate: match &load.rate {
            Rate::Share { of, percent } => {
                let of = same.get(of).unwrap_or(of).clone();
                Rate::Share { of, percent: *percent }
            }
            rate => rate.clone(),
        },
        ..load.clone()
    };
    one.cache == other.cache
        && one.loads.len() == other.loads.len()
        && one.loads.iter().zip(&other.loads).all(|(one, other)| {
            // Files that are there were laid out by an earlier step.
            let laid_out = one.layout == Layout::Existing || other.layout == Layout::Existing;
            let layout = if laid_out { Layout::Existing } else { other.layout };
            let first = if laid_out { Layout::Existing } else { one.layout };
            (one.jobs, one.depth, one.file_bytes) == (other.jobs, other.depth, other.file_bytes)
                && bare(one, first) == bare(other, layout)
        })
}
