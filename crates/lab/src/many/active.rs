//! A part of the volumes at work, each loaded beyond its contract.

use super::servers::{CONTRACT, ManyVolumes, name};
use super::{CONTRACT_ERROR_MAX, Many};
use crate::process::resident_mib;
use crate::stop::Stop;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use weir_load::stats::result::RunResult;
use weir_load::workload::{Layout, Length, Operation, Pattern, Workload};
use weir_load::{Control, NfsTarget, RunHandle, Target, prepare};

const BLOCK_BYTES: u32 = 4096;
const DEPTH: u32 = 8;
const FILE_BYTES: u64 = 1 << 20;
/// Two turnovers of a queue: 8 requests of 4 KiB at 16 KiB/s take 2 s.
const WARMUP_S: f64 = 4.0;
const LOOK: Duration = Duration::from_millis(100);

/// The result.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Figures {
    /// The most memory that the server held, in MiB.
    pub(super) memory_mib: f64,
    /// Operations per second, all together.
    pub(super) iops: f64,
    /// Volumes whose contract was kept.
    pub(super) kept: u32,
    /// The greatest error of a contract, with its sign: 0.01 is 1 % too much.
    pub(super) worst_error: f64,
}

/// Loads volumes spread evenly over all.
pub(super) fn load(many: &ManyVolumes, options: &Many, stop: &Stop) -> Result<Figures> {
    let step = options.volumes / options.active.max(1);
    let mut ready = Vec::new();
    for number in 0..options.active {
        let mut target = NfsTarget::new(many.address(), format!("/{}", name(number * step)));
        let [.., high, low] = (number + 257).to_be_bytes();
        target.sources = vec![IpAddr::V4(Ipv4Addr::new(127, 2, high, low))];
        let load = workload(number, options.seconds);
        let prepared = prepare(&Target::Nfs(target), &load)
            .with_context(|| format!("preparing {}", name(number * step)))?;
        ready.push(prepared);
    }
    weir_report::outln!(
        "# {} volumes at their limits for {:.0} s",
        options.active,
        options.seconds
    );
    let runs: Vec<RunHandle> = ready
        .into_iter()
        .map(|prepared| prepared.spawn(Control::new(), |_| {}))
        .collect::<Result<_, _>>()?;
    let mut memory_mib: f64 = 0.0;
    while !runs.iter().all(RunHandle::is_finished) {
        memory_mib = memory_mib.max(resident_mib(many.pid()?)?);
        if stop.asked() {
            runs.iter().for_each(|run| run.control().stop());
            bail!("interrupted");
        }
        std::thread::sleep(LOOK);
    }
    let results = runs.into_iter().map(RunHandle::wait).collect::<Result<Vec<_>, _>>()?;
    if let Some(unclean) = results.iter().find(|result| !result.is_clean()) {
        bail!("{} had errors: {:?}", unclean.name, unclean.errors);
    }
    let errors: Vec<_> = results.iter().map(error).collect();
    let kept = errors.iter().filter(|error| error.abs() <= allowed(options.seconds)).count();
    Ok(Figures {
        memory_mib,
        iops: results.iter().map(|result| result.total.iops).sum(),
        kept: u32::try_from(kept)?,
        worst_error: errors.into_iter().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0),
    })
}

fn workload(number: u32, seconds: f64) -> Workload {
    Workload {
        name: name(number),
        operation: Operation::Data { pattern: Pattern::Random, read_percent: 50 },
        block_bytes: BLOCK_BYTES,
        depth: DEPTH,
        file_bytes: FILE_BYTES,
        length: Length::Seconds(seconds),
        warmup_s: WARMUP_S,
        layout: Layout::Sparse,
        // All are removed with the data directory.
        keep: true,
        directory: "many".to_owned(),
        seed: 1 + u64::from(number),
        ..Workload::default()
    }
}

/// The excess of a volume over its contract, in parts of the contract.
#[expect(clippy::cast_precision_loss, reason = "bytes of seconds")]
fn error(result: &RunResult) -> f64 {
    result.total.bytes as f64 / (CONTRACT as f64 * result.measured.seconds()) - 1.0
}

/// The allowed excess: the rule's part, and one request.
#[expect(clippy::cast_precision_loss, reason = "a few KiB")]
fn allowed(seconds: f64) -> f64 {
    CONTRACT_ERROR_MAX + f64::from(BLOCK_BYTES) / (CONTRACT as f64 * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_sound_and_the_warm_up_two_turnovers() {
        let load = workload(7, 10.0);
        load.check().unwrap();
        let queue = f64::from(DEPTH * BLOCK_BYTES);
        assert!(WARMUP_S >= 2.0 * queue / CONTRACT as f64);
    }

    #[test]
    fn one_request_may_be_missing_or_too_many() {
        assert!((allowed(10.0) - 0.035).abs() < 1e-9, "one of forty, and 1 %");
    }
}
