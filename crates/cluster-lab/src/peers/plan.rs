//! The workloads, their bars, and the cluster that they are measured on.

use super::model::Payload;
use crate::stage::Plan;
use std::ops::RangeInclusive;
use std::time::Duration;
use weir_load::workload::{Layout, Length, Operation, Pattern, Stability, Workload};

/// Requests in flight: threads of the library and of the store, jobs of the load on a server.
pub(super) const IN_FLIGHT: u32 = 16;
/// Connections that the jobs of a load on a server share.
const CONNECTIONS: u32 = 4;
/// Files of each side, one for each thread or job, and their size.
pub(super) const FILE_BYTES: u64 = 16 << 20;
/// The files are laid out by writes of this size.
pub(super) const LAYOUT_BYTES: u32 = 1 << 20;
/// Copies of the data that Ceph keeps here.
pub(super) const COPIES_HERE: f64 = 2.0;

/// Lowest throughput of the store, as a part of the library's.
pub(super) const STORE_MIN: f64 = 0.9;
/// Lowest rate of operations of the gateway, as a part of Ganesha's.
pub(super) const GANESHA_MIN: f64 = 1.0;
/// Most processor time of the gateway for an operation beyond that of the library alone, in µs.
pub(super) const OVER_LIBRARY_US: f64 = 15.0;

/// The machines of the sides that are no gateway, which has number 1.
pub(super) const GANESHA: u8 = 2;
/// The machine of the library with its object cache off; those of further clients follow it.
pub(super) const LIBRARY: u8 = 3;

/// The cluster: one gateway with a volume whose contract never binds.
pub(super) const PLAN: Plan = Plan {
    gateways: 1,
    volumes: 1,
    pools: &[("peers", "/peers")],
    mibps: 4000,
    others: 4,
    // Three of them have room in the memory for everything (`requirements::FILES_GIB`).
    osd_gib: 4,
    // A thirtieth of the files: hardly any read is answered by a cache.
    clients: "client_oc_size = 8388608\n",
    // As Ganesha: names are stable once the metadata server has them.
    serve: &["--namespace-durability", "process"],
    ..Plan::EMPTY
};
/// The options of the gateway whose names are on disk before it answers, its default.
pub(super) const STABLE_NAMES: &[&str] = &["--namespace-durability", "power"];

/// An operation, as each side carries it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The attributes of a file.
    Getattr,
    /// A file by its name.
    Lookup,
    /// A read at a random place.
    Read,
    /// A write at a random place, stable when it is answered.
    Write,
    /// A new file, and its removal: two operations.
    CreateRemove,
}

/// A workload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Shown in tables.
    pub(super) name: &'static str,
    /// Its name on command lines.
    pub(super) key: &'static str,
    /// The operation.
    pub(super) kind: Kind,
    /// Bytes of a read or write.
    pub(super) block_bytes: u32,
}

const fn work(name: &'static str, key: &'static str, kind: Kind, block_bytes: u32) -> Work {
    Work { name, key, kind, block_bytes }
}

/// The workload of metadata that changes.
pub(super) const CREATE_REMOVE: Work = work("CREATE + REMOVE", "create", Kind::CreateRemove, 4096);

/// All workloads.
pub(super) const WORKS: [Work; 7] = [
    work("GETATTR", "getattr", Kind::Getattr, 4096),
    work("LOOKUP", "lookup", Kind::Lookup, 4096),
    work("READ 4 KiB", "read-4k", Kind::Read, 4 << 10),
    work("READ 64 KiB", "read-64k", Kind::Read, 64 << 10),
    work("WRITE 4 KiB", "write-4k", Kind::Write, 4 << 10),
    work("WRITE 64 KiB", "write-64k", Kind::Write, 64 << 10),
    CREATE_REMOVE,
];

/// The threads of the library for which one mount and two are compared.
pub(super) const SCALES: [(u32, u32); 7] =
    [(1, 1), (2, 1), (4, 1), (8, 1), (16, 1), (2, 2), (16, 2)];
/// The workloads of that comparison: one that the library answers from memory, and one that it asks
/// an OSD for.
pub(super) const SCALED: [Work; 2] = [WORKS[0], WORKS[2]];

/// The bounds of a duration on the command line, in seconds.
const SECONDS: RangeInclusive<f64> = 0.1..=3600.0;

/// Reads a duration of the command line, in seconds.
///
/// # Errors
/// If it is none, or out of bounds.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    let (least, most) = (SECONDS.start(), SECONDS.end());
    if SECONDS.contains(&seconds) { Ok(seconds) } else { Err(format!("give {least} to {most} s")) }
}

/// The durations of one measurement.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct Times {
    /// Load before the measurement, in seconds.
    pub(super) warmup_s: f64,
    /// The measurement, in seconds.
    pub(super) measured_s: f64,
    /// Turns of each side.
    pub(super) turns: u32,
}

impl Times {
    /// Longest time until a client of Ceph must have carried out an order.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.warmup_s + self.measured_s) + Duration::from_secs(60)
    }
}

impl Work {
    /// The workload with this key.
    pub(super) fn of(key: &str) -> Option<Self> {
        WORKS.into_iter().find(|work| work.key == key)
    }

    /// The payload of each operation.
    pub(super) const fn payload(&self) -> Payload {
        match self.kind {
            Kind::Getattr | Kind::Lookup | Kind::CreateRemove => Payload::Nothing,
            Kind::Read => Payload::Read(self.block_bytes),
            Kind::Write => Payload::Written(self.block_bytes),
        }
    }

    /// The load on a server, in this directory of its export.
    pub(super) fn load(&self, times: &Times, directory: &str, seed: u64) -> Workload {
        let data = |read_percent| Operation::Data { pattern: Pattern::Random, read_percent };
        Workload {
            name: self.name.to_owned(),
            operation: match self.kind {
                Kind::Getattr => Operation::Getattr,
                Kind::Lookup => Operation::Lookup,
                Kind::Read => data(100),
                Kind::Write => data(0),
                Kind::CreateRemove => Operation::CreateRemove,
            },
            block_bytes: self.block_bytes,
            depth: 1,
            jobs: IN_FLIGHT,
            clients: 1,
            connections: CONNECTIONS,
            files: IN_FLIGHT,
            file_bytes: FILE_BYTES,
            stability: Stability::FileSync,
            length: Length::Seconds(times.measured_s),
            warmup_s: times.warmup_s,
            layout: Layout::Existing,
            keep: true,
            directory: directory.to_owned(),
            threads: 1,
            seed,
            ..Workload::default()
        }
    }

    /// The load that lays out the files of all loads in a directory.
    pub(super) fn layout(directory: &str, times: &Times) -> Workload {
        Workload {
            length: Length::Operations(u64::from(IN_FLIGHT)),
            layout: Layout::Written { block_bytes: LAYOUT_BYTES },
            ..WORKS[2].load(times, directory, 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { warmup_s: 1.0, measured_s: 2.0, turns: 3 };

    #[test]
    fn every_load_is_sound() {
        for work in WORKS {
            work.load(&TIMES, "files", 1).check().unwrap();
        }
        Work::layout("files", &TIMES).check().unwrap();
    }

    #[test]
    fn keys_and_names_are_unique() {
        for (place, work) in WORKS.iter().enumerate() {
            assert_eq!(Work::of(work.key).unwrap().name, work.name);
            assert!(WORKS[..place].iter().all(|other| other.name != work.name));
        }
        assert!(Work::of("nothing").is_none());
    }

    #[test]
    fn durations_are_bounded() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        for bad in ["0", "-1", "nan", "inf", "3601", "one"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_scale_has_a_file_for_each_thread() {
        for (threads, mounts) in SCALES {
            assert!(threads.div_ceil(mounts) <= IN_FLIGHT && mounts <= 2);
        }
    }
}
