//! One measurement: one workload on one side, and its cost to the side and to the daemons of Ceph.

use super::plan::{Times, Work};
use crate::bed::{CLIENTS, Engines};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use weir_lab::comparison::{Probe, Reading, Threads};
use weir_load::engine::prepare;
use weir_load::{Control, Target};

/// A generator thread that computed this part of the time was the limit.
const SATURATED: f64 = 0.95;

/// The daemons of Ceph whose time counts.
#[derive(Clone, Debug)]
pub(super) struct Daemons {
    metadata_server: u32,
    osds: Vec<u32>,
}

/// Clocks of a side and of the daemons at one time.
#[derive(Debug)]
pub(super) struct Clocks {
    own: Reading,
    metadata_server: Reading,
    metadata_threads: Threads,
    osds: Vec<Reading>,
}

/// The result of one measurement. Times are processor time for one operation, in µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Sample {
    /// Operations per second.
    pub(super) iops: f64,
    /// By all threads of the side's process.
    pub(super) cpu_us: f64,
    /// By the metadata server that serves.
    pub(super) metadata_us: f64,
    /// By the busiest of its threads.
    pub(super) metadata_thread_us: f64,
    /// By all OSDs together.
    pub(super) osds_us: f64,
    /// Was the load generator the limit? Never for a side without one.
    pub(super) generator_saturated: bool,
}

impl Daemons {
    /// The daemons of the cluster.
    ///
    /// # Errors
    /// If no metadata server serves.
    pub(super) fn of(engines: &Engines) -> Result<Self> {
        let serving = engines.active_metadata_server()?;
        let metadata_server = engines.ceph_pids(&format!("{serving}."))?;
        let metadata_server = *metadata_server.first().context("no metadata server serves")?;
        Ok(Self { metadata_server, osds: engines.ceph_pids("osd.")? })
    }

    /// Reads the clocks of process `own` and of the daemons.
    ///
    /// # Errors
    /// If one of them has ended.
    pub(super) fn read(&self, own: u32) -> Result<Clocks> {
        Ok(Clocks {
            own: Reading::take(own)?,
            metadata_server: Reading::take(self.metadata_server)?,
            metadata_threads: Threads::take(self.metadata_server)?,
            osds: self.osds.iter().map(|pid| Reading::take(*pid)).collect::<Result<_>>()?,
        })
    }
}

impl Clocks {
    /// The costs of so many operations from `earlier` to this reading, at this rate.
    pub(super) fn since(&self, earlier: &Self, operations: f64, iops: f64) -> Sample {
        let us = |seconds: f64| seconds * 1e6 / operations;
        let used = |later: &Reading, earlier: &Reading| later.since(earlier).process_s;
        let osds = self.osds.iter().zip(&earlier.osds).map(|(later, earlier)| used(later, earlier));
        Sample {
            iops,
            cpu_us: us(used(&self.own, &earlier.own)),
            metadata_us: us(used(&self.metadata_server, &earlier.metadata_server)),
            metadata_thread_us: us(self.metadata_threads.busiest_since(&earlier.metadata_threads)),
            osds_us: us(osds.sum()),
            generator_saturated: false,
        }
    }
}

/// Applies `work` to the server with process `pid`, from the machine of the clients. The files are
/// in this directory of its export.
///
/// # Errors
/// If an operation fails, or a process has ended.
pub(super) fn server(
    (target, directory, pid): (&Target, &str, u32),
    work: &Work,
    (times, seed): (&Times, u64),
    daemons: &Daemons,
) -> Result<Sample> {
    let load = work.load(times, directory, seed);
    CLIENTS.within(|| {
        let mut probe = Probe::new(|| daemons.read(pid));
        let prepared = prepare(target, &load)?;
        let result = prepared.run(&Control::new(), |window| probe.observe(window))?;
        ensure!(
            result.is_clean() && !result.interrupted,
            "{:?}, {} connections lost",
            result.errors,
            result.connections.lost
        );
        let (first, last, operations) = probe.finish()?;
        let busy = result.generator.cpu_s / result.measured.seconds() / f64::from(load.threads);
        let sample = last.since(&first, operations, result.total.iops);
        Ok(Sample { generator_saturated: busy >= SATURATED, ..sample })
    })
}

/// Lays out the files of all loads in this directory of the server's export.
///
/// # Errors
/// If an operation fails.
pub(super) fn lay_out(target: &Target, directory: &str, times: &Times) -> Result<()> {
    let load = Work::layout(directory, times);
    CLIENTS.within(|| {
        let result = prepare(target, &load)?.run(&Control::new(), |_| {})?;
        ensure!(result.is_clean(), "reading new files back: {:?}", result.errors);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_for_one_operation() {
        let own = std::process::id();
        let daemons = Daemons { metadata_server: own, osds: vec![own, own] };
        let first = daemons.read(own).unwrap();
        let mut last = daemons.read(own).unwrap();
        let mut sum = 0u64;
        while last.own.since(&first.own).process_s < 0.2 {
            sum = std::hint::black_box((0..1_000_000u64).fold(sum, u64::wrapping_add));
            last = daemons.read(own).unwrap();
        }
        let (two, four) = (last.since(&first, 2.0, 9.0), last.since(&first, 4.0, 9.0));
        // A tick of the clock may come between two readings of the same process: 10 ms.
        let tick_us = 5000.0;
        assert!(two.cpu_us >= 100_000.0 - tick_us, "{two:?}");
        assert!((two.cpu_us - 2.0 * four.cpu_us).abs() < 1e-6 && two.iops == 9.0);
        assert!(two.osds_us >= 2.0 * two.cpu_us - 4.0 * tick_us, "{two:?}");
        assert!(two.metadata_us >= two.metadata_thread_us - 2.0 * tick_us, "{two:?}");
        assert!(daemons.read(u32::MAX).is_err());
    }
}
