//! The measured capacity of disks, and the promises on it, for people: `weir calibrate show` and
//! `weir capacity`.

use super::report::nanos_text;
use super::{Global, Output, connect, print};
use anyhow::Result;
use weir_api::{Calibration, CalibrationCell, Capacity, Client, Filesystem};
use weir_core::units::{Bytes, Rate};

/// Shows what file systems hold, and what is promised of it.
pub(crate) async fn capacity(global: &Global) -> Result<()> {
    let capacity = connect::client(global)?.capacity().await?;
    if global.output == Output::Json {
        return print::json(&capacity);
    }
    let header = ["file system", "pools", "committed", "holds", "allowed", "calibrated"];
    print::table(&header, capacity.filesystems.iter().map(row))?;
    print::line("")?;
    print::lines(rules(&capacity))?;
    print::lines(capacity.filesystems.iter().flat_map(|there| missing(&capacity, there)))
}

fn row(there: &Filesystem) -> Vec<String> {
    vec![
        there.directory.clone(),
        there.pools.join(", "),
        committed(there),
        both(there.holds_bytes_per_second, there.holds_iops),
        both(there.allowed_bytes_per_second, there.allowed_iops),
        there.calibrated.clone().unwrap_or_else(|| "no".to_owned()),
    ]
}

/// The committed figures, and whether they are more than may be.
fn committed(there: &Filesystem) -> String {
    let (rate, iops) = (there.committed_bytes_per_second, there.committed_iops);
    let mark = if there.overcommitted { " (too much)" } else { "" };
    both(Some(rate), Some(iops)) + mark
}

fn both(rate: Option<u64>, iops: Option<u64>) -> String {
    let rate = rate.map(|rate| format!("{:.2}", Rate(rate)));
    let iops = iops.map(|iops| format!("{iops} IOPS"));
    let known: Vec<_> = rate.into_iter().chain(iops).collect();
    if known.is_empty() { "not known".to_owned() } else { known.join(", ") }
}

/// The resources of a calibrated file system that are not limited, because no figure is there for
/// them; in lines.
fn missing(capacity: &Capacity, there: &Filesystem) -> Vec<String> {
    let line = |what: &str, bound: &str, block: u32| {
        let (directory, block) = (&there.directory, Bytes(block.into()));
        format!(
            "{directory}: {what} not limited, because there is no usable result for blocks of {block} or {bound}."
        )
    };
    let rate = || line("throughput is", "less", capacity.block_bytes);
    let iops = || line("IOPS are", "more", capacity.iops_block_bytes);
    let rate = there.holds_bytes_per_second.is_none().then(rate);
    let iops = there.holds_iops.is_none().then(iops);
    let known = there.calibrated.iter();
    known.flat_map(|_| rate.iter().chain(&iops).cloned()).collect()
}

/// By which figures it is judged what may be committed, and what is done beyond.
fn rules(capacity: &Capacity) -> [String; 2] {
    let mix = match capacity.mix.as_str() {
        "worst" => "at the worst measured mix".to_owned(),
        percent => format!("at {percent} % reads"),
    };
    let done = match capacity.policy {
        weir_api::Policy::Refuse => "refused, unless --overcommit is given",
        weir_api::Policy::Warn => "made with a warning",
        weir_api::Policy::Off => "made",
    };
    let judged = format!(
        "Checked {mix}, with blocks of {} for throughput and of {} for IOPS.",
        Bytes(capacity.block_bytes.into()),
        Bytes(capacity.iops_block_bytes.into())
    );
    let allowed = format!(
        "{} % of the measured capacity may be committed; a change beyond that is {done}.",
        capacity.overcommit_percent
    );
    [judged, allowed]
}

/// The capacity and commitment of a pool's file system, in a line.
pub(crate) fn of_pool(capacity: &Capacity, pool: &str) -> Option<String> {
    let there =
        capacity.filesystems.iter().find(|there| there.pools.iter().any(|it| it == pool))?;
    let committed = committed(there);
    Some(match there.calibrated {
        Some(_) => {
            let allowed = both(there.allowed_bytes_per_second, there.allowed_iops);
            let open = match (there.allowed_bytes_per_second, there.allowed_iops) {
                (None, Some(_)) => ", throughput not limited",
                (Some(_), None) => ", IOPS not limited",
                _ => "",
            };
            format!("{committed} committed, {allowed} allowed{open}")
        }
        None => format!("{committed} committed, not calibrated"),
    })
}

/// Shows what was measured, in `directory` or everywhere.
pub(crate) async fn show(client: &Client, output: Output, directory: Option<&str>) -> Result<()> {
    let all = match directory {
        Some(directory) => vec![client.calibration(directory).await?],
        None => client.calibrations().await?,
    };
    if output == Output::Json {
        return match (directory, &all[..]) {
            (Some(_), [one]) => print::json(one),
            _ => print::json(&all),
        };
    }
    if all.is_empty() {
        return print::line("There is no calibration: run `weir calibrate`.");
    }
    for (place, one) in all.iter().enumerate() {
        if place > 0 {
            print::line("")?;
        }
        print_one(one)?;
    }
    Ok(())
}

/// Prints a calibration with its conditions.
pub(crate) fn print_one(kept: &Calibration) -> Result<()> {
    let Calibration { load, machine, .. } = kept;
    let known = |text: &str| if text.is_empty() { "not known".to_owned() } else { text.to_owned() };
    let memory = Bytes(machine.memory_bytes);
    let data = match kept.in_memory {
        true => format!(
            "{}, which fits into memory ({memory:.2}): reads were served from memory, not from disk",
            Bytes(load.data_bytes)
        ),
        false => format!("{} (memory: {memory:.2})", Bytes(load.data_bytes)),
    };
    print::fields(&[
        ("measured in", kept.directory.clone()),
        ("at", kept.at.clone()),
        ("file system", known(&machine.file_system)),
        ("host", known(&machine.host)),
        ("processors", format!("{} × {}", machine.processors, known(&machine.processor))),
        ("kernel", known(&machine.kernel)),
        ("weir", format!("{}, namespace durability: {}", machine.version, machine.durability)),
        ("load", format!("{} jobs, {} in flight each", load.jobs, load.depth)),
        ("files", data),
        (
            "other volumes",
            format!("at most {:.2}, {} IOPS", Rate(load.others_bytes_per_second), load.others_iops),
        ),
    ])?;
    print::line("")?;
    let header = ["reads", "block", "throughput", "IOPS", "mean", "p99", "server CPU per request"];
    print::table(&header, kept.cells.iter().map(cell))?;
    if kept.cells.iter().any(|cell| cell.saturated) {
        print::line(
            "* The load generator was the bottleneck: the capacity of the server may be higher.",
        )?;
    }
    Ok(())
}

fn cell(cell: &CalibrationCell) -> Vec<String> {
    let mark = if cell.saturated { " *" } else { "" };
    vec![
        format!("{} %", cell.read_percent),
        Bytes(cell.block_bytes.into()).to_string(),
        format!("{:.2}{mark}", Rate(cell.bytes_per_second)),
        cell.iops.to_string(),
        nanos_text(cell.mean_nanos),
        nanos_text(cell.p99_nanos),
        cell.server_cpu_nanos.map_or_else(|| "not known".to_owned(), nanos_text),
    ]
}

/// Prints what a calibration comes to.
pub(crate) fn print_use(capacity: &Capacity, directory: &str) -> Result<()> {
    let Some(there) = capacity.filesystems.iter().find(|there| there.directory == directory) else {
        return Ok(());
    };
    let holds = both(there.holds_bytes_per_second, there.holds_iops);
    let committed = committed(there);
    print::line("")?;
    print::line(format_args!("Measured capacity: {holds}; committed: {committed}."))?;
    print::lines(rules(capacity))?;
    print::lines(missing(capacity, there))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_nothing() {
        assert_eq!(both(None, None), "not known");
        assert_eq!(both(Some(1 << 20), None), "1 MiB/s");
        assert_eq!(both(Some(0), Some(0)), "0 B/s, 0 IOPS");
    }

    #[test]
    fn a_pool_is_told_what_its_disks_are_committed_to() {
        let there = Filesystem {
            directory: "/srv".into(),
            pools: vec!["a".into(), "b".into()],
            committed_bytes_per_second: 5 << 20,
            committed_iops: 7,
            holds_bytes_per_second: Some(10 << 20),
            holds_iops: None,
            allowed_bytes_per_second: Some(8 << 20),
            allowed_iops: None,
            overcommitted: false,
            calibrated: Some("2026-11-22T10:20:00Z".into()),
        };
        let mut capacity = Capacity {
            policy: weir_api::Policy::Refuse,
            mix: "worst".into(),
            block_bytes: 65_536,
            iops_block_bytes: 8192,
            overcommit_percent: 80,
            filesystems: vec![there],
        };
        let told = |capacity: &Capacity| of_pool(capacity, "b").unwrap();
        assert_eq!(told(&capacity), "5 MiB/s, 7 IOPS committed, 8 MiB/s allowed, IOPS not limited");
        let open = missing(&capacity, &capacity.filesystems[0]);
        assert_eq!(open.len(), 1);
        assert!(
            open[0].contains("/srv: IOPS are not limited") && open[0].contains("8 KiB or more")
        );
        capacity.filesystems[0].allowed_iops = Some(6);
        capacity.filesystems[0].overcommitted = true;
        assert!(told(&capacity).starts_with("5 MiB/s, 7 IOPS (too much) committed"));
        let [judged, allowed] = rules(&capacity);
        assert!(judged.contains("64 KiB for throughput and of 8 KiB for IOPS."), "{judged}");
        assert!(allowed.contains("80 % of the measured capacity"), "{allowed}");
        assert!(of_pool(&capacity, "c").is_none());
        capacity.filesystems[0].allowed_iops = None;
        capacity.filesystems[0].calibrated = None;
        capacity.filesystems[0].overcommitted = false;
        assert!(missing(&capacity, &capacity.filesystems[0]).is_empty());
        assert_eq!(told(&capacity), "5 MiB/s, 7 IOPS committed, not calibrated");
    }
}
