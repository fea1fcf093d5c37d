//! A model of larger clusters: the rates at which each part of them would be used up, if operations
//! cost there what was measured here. Nothing here measures; the assumptions are in
//! [`ASSUMPTIONS`], and the arithmetic is in [`Load::limits`].

use super::measure::Sample;
use serde::Serialize;

/// Numbers of gateways.
pub(super) const GATEWAYS: [u32; 3] = [3, 6, 12];
/// Processors of each gateway, and of each machine with OSDs.
const CORES: f64 = 16.0;
/// Mounts of CephFS in each gateway.
const MOUNTS: f64 = 4.0;
/// Copies of the data that Ceph keeps.
const COPIES: f64 = 3.0;
/// Bytes a second that a network card moves in each direction: 25 Gbit/s.
const NETWORK: f64 = 25e9 / 8.0;
/// The part of a processor below which a daemon counts as not asked: it had work of its own, and
/// the clocks that are read have ticks of 10 ms.
const NOT_ASKED: f64 = 0.03;

/// The assumptions in words.
pub(super) const ASSUMPTIONS: [&str; 8] = [
    "An operation costs a processor there as much as it does here, also with 16 of them.",
    "Each gateway has 16 processors, 4 mounts of CephFS, as the program has, and a network card of \
     25 Gbit/s in each direction, for its clients and for Ceph together.",
    "There are as many machines with OSDs as gateways, each with 16 processors and such a card. \
     Their disks are not a limit.",
    "There are three copies of the data. A write costs the OSDs three halves of what it does here, \
     where there are two.",
    "A mount does as much as one processor can, because of its lock: one over the processor time \
     of libcephfs for an operation, or the highest rate that was measured on one mount if that is \
     more.",
    "One metadata server serves. It is used up when its busiest thread is.",
    "A daemon that took less than 3 % of a processor during a workload is not asked by it.",
    "The load is spread evenly over the gateways, and over at least as many volumes as there are \
     mounts: a single volume has no more than one mount.",
];

/// The payload of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) enum Payload {
    /// None.
    Nothing,
    /// Bytes that are read.
    Read(u32),
    /// Bytes that are written.
    Written(u32),
}

/// The costs of a workload, as they were measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Load {
    /// The workload.
    pub(super) name: &'static str,
    /// The gateway's processor time, and that of Ceph's daemons meanwhile.
    pub(super) gateway: Sample,
    /// Processor time of libcephfs alone, with its object cache, in µs.
    pub(super) library_us: f64,
    /// The highest rate that was measured on one mount.
    pub(super) mount_rate: f64,
    /// The payload.
    pub(super) payload: Payload,
    /// Copies of the data that were written for these figures.
    pub(super) copies_here: f64,
}

/// A part of a cluster that is used up at some rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Part {
    /// The processors of the gateways.
    Gateways,
    /// The mounts of the gateways, each with one lock.
    Mounts,
    /// The busiest thread of the metadata server.
    MetadataServer,
    /// The processors of the OSDs.
    Osds,
    /// The network cards.
    Network,
}

impl Part {
    /// In words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Gateways => "processors of the gateways",
            Self::Mounts => "mounts of the gateways",
            Self::MetadataServer => "metadata server",
            Self::Osds => "processors of the OSDs",
            Self::Network => "network",
        }
    }
}

/// The rate at which a part is used up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Limit {
    /// The part.
    pub(super) part: Part,
    /// Operations per second.
    pub(super) rate: f64,
}

impl Load {
    /// The limits of a cluster of so many gateways, of the parts that the workload uses; the lowest
    /// first.
    pub(super) fn limits(&self, gateways: u32) -> Vec<Limit> {
        let machines = f64::from(gateways);
        let one_mount = (1e6 / self.library_us).max(self.mount_rate);
        let more_copies = match self.payload {
            Payload::Written(_) => COPIES / self.copies_here,
            Payload::Nothing | Payload::Read(_) => 1.0,
        };
        let asked = |us: f64| (us * self.gateway.iops / 1e6 >= NOT_ASKED).then_some(us);
        let network = match self.payload {
            Payload::Nothing => None,
            // In from an OSD, and out to the client, which are two directions.
            Payload::Read(bytes) => Some(machines * NETWORK / f64::from(bytes)),
            // Each copy comes in at a machine with OSDs.
            Payload::Written(bytes) => Some(machines * NETWORK / f64::from(bytes) / COPIES),
        };
        let processors = machines * CORES * 1e6;
        let limit = |part, rate: Option<f64>| rate.map(|rate| Limit { part, rate });
        let limits = [
            limit(Part::Gateways, Some(processors / self.gateway.cpu_us)),
            limit(Part::Mounts, Some(machines * MOUNTS * one_mount)),
            limit(Part::MetadataServer, asked(self.gateway.metadata_thread_us).map(|us| 1e6 / us)),
            limit(
                Part::Osds,
                asked(self.gateway.osds_us).map(|us| processors / (us * more_copies)),
            ),
            limit(Part::Network, network),
        ];
        let mut limits: Vec<Limit> = limits.into_iter().flatten().collect();
        limits.sort_by(|one, other| one.rate.total_cmp(&other.rate));
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(payload: Payload) -> Load {
        let gateway = Sample {
            iops: 1000.0,
            cpu_us: 200.0,
            metadata_thread_us: 20.0,
            osds_us: 100.0,
            ..Sample::default()
        };
        Load {
            name: "load",
            gateway,
            library_us: 100.0,
            mount_rate: 0.0,
            payload,
            copies_here: 2.0,
        }
    }

    fn rate(load: &Load, gateways: u32, part: Part) -> Option<f64> {
        load.limits(gateways).iter().find(|limit| limit.part == part).map(|limit| limit.rate)
    }

    #[test]
    fn limits_follow_from_costs_and_the_lowest_is_first() {
        let read = load(Payload::Read(64 << 10));
        assert_eq!(rate(&read, 3, Part::Gateways), Some(240_000.0));
        assert_eq!(rate(&read, 3, Part::Mounts), Some(120_000.0));
        assert_eq!(rate(&read, 3, Part::Osds), Some(480_000.0));
        assert_eq!(rate(&read, 6, Part::Gateways), Some(480_000.0));
        assert_eq!(rate(&read, 3, Part::MetadataServer), None, "it has 2 % of a processor");
        assert_eq!(rate(&read, 3, Part::Network), Some(3.0 * 3.125e9 / 65536.0));
        assert_eq!(read.limits(3)[0].part, Part::Mounts);
    }

    #[test]
    fn a_write_is_carried_to_three_osds() {
        let write = load(Payload::Written(64 << 10));
        assert_eq!(rate(&write, 3, Part::Osds), Some(320_000.0));
        assert_eq!(rate(&write, 3, Part::Network), Some(3.125e9 / 65536.0));
        assert_eq!(rate(&load(Payload::Nothing), 3, Part::Network), None);
    }

    #[test]
    fn more_gateways_do_not_raise_the_limit_of_the_metadata_server() {
        let mut create = load(Payload::Nothing);
        create.gateway.metadata_thread_us = 50.0;
        assert_eq!(rate(&create, 3, Part::MetadataServer), Some(20_000.0));
        assert_eq!(rate(&create, 12, Part::MetadataServer), Some(20_000.0));
        assert_eq!(create.limits(3)[0].part, Part::MetadataServer);
    }

    #[test]
    fn a_measured_rate_of_a_mount_counts_if_it_is_higher() {
        let mut cached = load(Payload::Nothing);
        cached.mount_rate = 500_000.0;
        assert_eq!(rate(&cached, 3, Part::Mounts), Some(6_000_000.0));
    }
}
