//! Jobs of the engines `filecreate`, `filestat` and `filedelete`: one operation on the name of each
//! file, none on its data.

use super::bag::Bag;
use super::files::{FilesOfJob, files};
use super::flow::flow;
use super::load::{rated, start_delay};
use super::shape::{self, Direction};
use crate::lang::LangError;
use crate::lang::paths::Places;
use weir_load::workload::{FileOrder, Layout, Length, Operation, Workload};

/// The loads of a job of such an engine.
pub(super) fn loads(
    bag: &Bag,
    (name, clones): (String, u32),
    operation: Operation,
    seed: u64,
    places: &mut Places<'_>,
) -> Result<Vec<Workload>, LangError> {
    let FilesOfJob { groups, per_clone } = files(bag, &name, clones, places)?;
    let file_bytes = match (bag.bytes("filesize")?, bag.bytes("size")?) {
        (Some(bytes), _) => bytes,
        (None, Some(size)) => size / u64::from(per_clone.max(1)),
        (None, None) => u64::from(Workload::default().block_bytes),
    };
    let mut all = Vec::with_capacity(groups.len());
    for (index, group) in (0..).zip(groups) {
        let operations = u64::from(per_clone) * u64::from(group.jobs);
        let load = Workload {
            name: if index == 0 { name.clone() } else { format!("{name}.{}", group.first) },
            operation,
            depth: 1,
            jobs: group.jobs,
            files: u32::try_from(group.names.len()).unwrap_or(u32::MAX),
            file_bytes: file_bytes.max(1),
            length: length(bag, operation, operations)?,
            warmup_s: bag.seconds("ramp_time")?.unwrap_or(0.0),
            start_delay_s: start_delay(bag)?,
            layout: Layout::Written { block_bytes: 1 << 20 },
            file_order: FileOrder::InTurn,
            flow: flow(bag)?,
            directory: group.at.directory,
            target: group.at.target,
            names: group.names,
            seed: seed.wrapping_add(index),
            ..Workload::default()
        };
        // Created files have names of their own.
        let load = match operation {
            Operation::Create => Workload { files: load.jobs, names: Vec::new(), ..load },
            _ => load,
        };
        // Operations count as reads, as in fio.
        let direction = Direction { random: false, read_percent: 100 };
        for load in rated(bag, direction, load)? {
            load.check()
                .map_err(|error| bag.at.error(&format!("[{}]", bag.section), error.to_string()))?;
            all.push(load);
        }
    }
    Ok(all)
}

/// An operation for each file, or a time for those that can be repeated.
fn length(bag: &Bag, operation: Operation, operations: u64) -> Result<Length, LangError> {
    let repeats = operation == Operation::Lookup;
    let loops = bag.count("loops", 1)?.unwrap_or(1);
    let is_timed = bag.truth("time_based")? == Some(true);
    if is_timed && repeats {
        return Ok(shape::length(bag, 0)?.0);
    }
    if is_timed || (loops > 1 && !repeats) {
        let option = if is_timed { "time_based" } else { "loops" };
        let why = "cannot be applied: each file is created or removed once; set nrfiles";
        return Err(bag.error(option, why));
    }
    if bag.seconds("ramp_time")?.is_some_and(|seconds| seconds > 0.0) {
        return Err(bag.error("ramp_time", "needs time_based"));
    }
    Ok(Length::Operations(operations.saturating_mul(u64::from(loops))))
}
