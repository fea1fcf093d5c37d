//! The kinds of loads: rules over plain counts of some seconds, each with a threshold and its
//! reason. A kind says what limits a load, or what would make it faster, beside the
//! contract.
//!
//! # The rules
//!
//! A load of fewer than [`OPERATIONS_MIN`] operations per second has no kind: shares of a handful
//! of requests say nothing, and nobody waits for them.
//!
//! | kind | rule | reason of the threshold |
//! |---|---|---|
//! | metadata-heavy | at least [`METADATA_PERCENT`] % of the operations are no READ, WRITE, COMMIT or FLUSH | from one such operation for each transfer on, the time per file counts and not the rate of data; a small file over NFS or SMB takes three of them, a large one less than one in a hundred |
//! | one connection | one connection has at least [`ONE_CONNECTION_PERCENT`] % of the operations | one worker thread and one TCP stream serve a connection; what the others have, at most a tenth, changes the rate by less than that |
//! | one file | at least [`ONE_FILE_PERCENT`] % of READs and WRITEs are certainly for one file | file systems take the writes of a file one after another, so a share of 80 % bounds the gain of more clients to a quarter; of a share p that is mixed with requests for other files, the majority vote certifies 2 p − 1, which are 60 % of 80 % |
//! | small requests | READs and WRITEs move less on average than the size at which both limits of the contract are reached together (of bursts, the base); without a limit of IOPS, at most [`SMALL_REQUEST_BYTES`] | below it operations and not bytes are what the limits, or the processor, count; 16 KiB is the size up to which Azure Files publishes no gain of more connections |
//!
//! A load can have several kinds. One that is metadata-heavy is not named by its few transfers: it
//! has neither of the last two kinds.
//!
//! Not here: counting, the period, and advice.

use alloc::vec::Vec;
use core::ops::Add;

use crate::limits::Limits;
use crate::meters::Cost;
use crate::rate::Iops;

/// Operations per second from which on a load has a kind.
pub const OPERATIONS_MIN: u64 = 10;

/// Percentage of metadata operations from which on a load is metadata-heavy.
pub const METADATA_PERCENT: u64 = 50;

/// Percentage of operations on one connection.
pub const ONE_CONNECTION_PERCENT: u64 = 90;

/// Percentage of READs and WRITEs that are certainly for one file.
pub const ONE_FILE_PERCENT: u64 = 60;

/// Mean size in bytes up to which READs and WRITEs are small, without a limit of IOPS.
pub const SMALL_REQUEST_BYTES: u64 = 16 << 10;

const SECOND: u64 = 1_000_000_000;

/// The kind of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// Most operations are on names and attributes.
    MetadataHeavy,
    /// One connection carries the load.
    OneConnection,
    /// One file is read and written.
    OneFile,
    /// The transfers are small.
    SmallRequests,
}

impl LoadKind {
    /// All kinds.
    pub const ALL: [Self; 4] =
        [Self::MetadataHeavy, Self::OneConnection, Self::OneFile, Self::SmallRequests];
}

/// The counts of a volume over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadFacts {
    /// Length of the time, in nanoseconds.
    pub nanos: u64,
    /// READs and WRITEs answered, and the bytes that they moved.
    pub data: Cost,
    /// COMMITs and FLUSHes answered.
    pub commits: u64,
    /// All other operations answered.
    pub metadata: u64,
    /// Operations on the connection with the most of them.
    pub busiest_connection: u64,
    /// The file that most READs and WRITEs are for.
    pub file: FileShare,
}

/// The READs and WRITEs that are certainly for one file. Two of them add up to one that is correct
/// for both, whatever the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileShare {
    /// The file: equal numbers are equal files. Of no meaning if none is certain.
    pub file: u64,
    /// Its READs and WRITEs: at least so many.
    pub at_least: u64,
    /// The READs and WRITEs of all files.
    pub of: u64,
}

impl Add for FileShare {
    type Output = Self;

    /// The vote over both: different files cancel each other out.
    fn add(self, other: Self) -> Self {
        let of = self.of.saturating_add(other.of);
        if self.file == other.file {
            return Self { of, at_least: self.at_least.saturating_add(other.at_least), ..self };
        }
        let (more, less) =
            if self.at_least < other.at_least { (other, self) } else { (self, other) };
        Self { file: more.file, at_least: more.at_least - less.at_least, of }
    }
}

impl LoadFacts {
    /// Operations of all kinds.
    #[must_use]
    pub const fn operations(&self) -> u64 {
        self.data.operations.saturating_add(self.commits).saturating_add(self.metadata)
    }

    /// The mean size of READs and WRITEs in bytes; `None` if there were none.
    #[must_use]
    pub const fn mean_bytes(&self) -> Option<u64> {
        self.data.bytes.checked_div(self.data.operations)
    }

    /// The kinds of the load of a volume with these limits, by the rules of this [module](self).
    #[must_use]
    pub fn kinds(&self, limits: &Limits) -> Vec<LoadKind> {
        if !self.is_often(self.operations()) {
            return Vec::new();
        }
        LoadKind::ALL.into_iter().filter(|kind| self.is(*kind, limits)).collect()
    }

    fn is(&self, kind: LoadKind, limits: &Limits) -> bool {
        let metadata_heavy = is_share(self.metadata, self.operations(), METADATA_PERCENT);
        let moves_data = !metadata_heavy && self.is_often(self.data.operations);
        match kind {
            LoadKind::MetadataHeavy => metadata_heavy,
            LoadKind::OneConnection => {
                is_share(self.busiest_connection, self.operations(), ONE_CONNECTION_PERCENT)
            }
            LoadKind::OneFile => {
                moves_data && is_share(self.file.at_least, self.file.of, ONE_FILE_PERCENT)
            }
            LoadKind::SmallRequests => {
                moves_data && self.mean_bytes().is_some_and(|mean| mean < small_below(limits))
            }
        }
    }

    fn is_often(&self, operations: u64) -> bool {
        let wanted = u128::from(OPERATIONS_MIN) * u128::from(self.nanos);
        operations > 0 && u128::from(operations) * u128::from(SECOND) >= wanted
    }
}

/// The mean size in bytes below which READs and WRITEs are small, under these limits. Where there
/// are bursts, the base is what a volume has for good, and not the burst.
#[must_use]
pub fn small_below(limits: &Limits) -> u64 {
    let base = |iops: Iops| limits.burst.map_or(iops, |burst| iops.min(burst.base));
    let iops = limits.iops.map(base);
    let together = iops.and_then(|iops| limits.rate.0.checked_div(iops.0));
    together.unwrap_or(SMALL_REQUEST_BYTES + 1)
}

fn is_share(part: u64, of: u64, percent: u64) -> bool {
    of > 0 && u128::from(part) * 100 >= u128::from(of) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst;
    use crate::limits::Ceiling;
    use crate::rate::BytesPerSecond;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn unlimited() -> Limits {
        Limits::of(BytesPerSecond(1000 * MIB))
    }

    /// Ten seconds of a large load of every sort: 1 MiB READs on four connections, of many files.
    fn balanced() -> LoadFacts {
        LoadFacts {
            nanos: 10 * SECOND,
            data: Cost { bytes: 10_000 * MIB, operations: 10_000 },
            commits: 10,
            metadata: 100,
            busiest_connection: 2_600,
            file: FileShare { file: 7, at_least: 300, of: 10_000 },
        }
    }

    #[test]
    fn a_balanced_load_has_no_kind() {
        assert_eq!(balanced().kinds(&unlimited()), []);
        assert_eq!(LoadFacts::default().kinds(&unlimited()), []);
    }

    #[test]
    fn half_of_the_operations_on_names_and_attributes_are_metadata_heavy() {
        let load = |metadata| LoadFacts { metadata, busiest_connection: 0, ..balanced() };
        assert_eq!(load(10_009).kinds(&unlimited()), []);
        assert_eq!(load(10_010).kinds(&unlimited()), [LoadKind::MetadataHeavy]);
        let alone = LoadFacts {
            nanos: 10 * SECOND,
            metadata: 100,
            busiest_connection: 50,
            ..LoadFacts::default()
        };
        assert_eq!(alone.kinds(&unlimited()), [LoadKind::MetadataHeavy], "without any data");
    }

    #[test]
    fn nine_tenths_on_one_connection_are_one_connection() {
        let load = |busiest_connection| LoadFacts { busiest_connection, ..balanced() };
        assert_eq!(load(9_098).kinds(&unlimited()), []);
        assert_eq!(load(9_099).kinds(&unlimited()), [LoadKind::OneConnection]);
    }

    #[test]
    fn three_fifths_of_the_transfers_certainly_for_one_file_are_one_file() {
        let load = |at_least| {
            let file = FileShare { file: 7, at_least, of: 10_000 };
            LoadFacts { file, ..balanced() }
        };
        assert_eq!(load(5_999).kinds(&unlimited()), []);
        assert_eq!(load(6_000).kinds(&unlimited()), [LoadKind::OneFile]);
    }

    #[test]
    fn four_fifths_of_the_transfers_for_one_file_among_others_are_one_file() {
        // Of each 100 READs, so many are for file 1, spread evenly among other files.
        let vote = |percent: u64| {
            (0..10_000).fold(FileShare::default(), |sum, turn| {
                let before = turn * percent / 100;
                let file = if (turn + 1) * percent / 100 > before { 1 } else { turn + 2 };
                sum + FileShare { file, at_least: 1, of: 1 }
            })
        };
        let kinds = |percent| LoadFacts { file: vote(percent), ..balanced() }.kinds(&unlimited());
        assert_eq!(kinds(80), [LoadKind::OneFile]);
        assert_eq!(kinds(78), []);
    }

    #[test]
    fn requests_are_small_up_to_16_kib_or_where_the_limit_of_iops_is_reached_first() {
        let load = |mean: u64| {
            let data = Cost { bytes: 10_000 * mean, operations: 10_000 };
            LoadFacts { data, ..balanced() }
        };
        assert_eq!(load(16 << 10).kinds(&unlimited()), [LoadKind::SmallRequests]);
        assert_eq!(load((16 << 10) + 1).kinds(&unlimited()), []);
        let counted = Limits { iops: Some(Iops(4_024)), ..Limits::of(BytesPerSecond(203 * MIB)) };
        assert_eq!(small_below(&counted), 52_897);
        // 203 MiB/s, 4,024 IOPS for good, and 10,000 in bursts.
        let limits = burst::v1(1_024 << 30);
        assert_eq!(small_below(&limits), 52_897, "by the base");
        let capped = limits.under(Ceiling { rate: None, iops: Some(Iops(2_012)) });
        assert_eq!(small_below(&capped), 105_795, "by the ceiling of the volume");
        assert_eq!(load(52_896).kinds(&limits), [LoadKind::SmallRequests]);
        assert_eq!(load(52_897).kinds(&limits), []);
    }

    #[test]
    fn a_handful_of_operations_has_no_kind() {
        let load = |metadata| LoadFacts {
            nanos: 10 * SECOND,
            metadata,
            busiest_connection: metadata,
            ..LoadFacts::default()
        };
        assert_eq!(load(99).kinds(&unlimited()), []);
        let kinds = [LoadKind::MetadataHeavy, LoadKind::OneConnection];
        assert_eq!(load(100).kinds(&unlimited()), kinds);
        // The transfers of a metadata-heavy load give it no kind, however small they are.
        let small = Cost { bytes: 900, operations: 900 };
        let file = FileShare { file: 7, at_least: 900, of: 900 };
        let with_data = LoadFacts { data: small, file, busiest_connection: 0, ..load(1_000) };
        assert_eq!(with_data.kinds(&unlimited()), [LoadKind::MetadataHeavy]);
    }

    proptest! {
        /// A vote over parts never certifies more requests for a file than there were.
        #[test]
        fn votes_add_up_to_a_lower_bound(
            parts in prop::collection::vec(prop::collection::vec(0_u64..3, 0..60), 0..5),
        ) {
            let vote = |part: &Vec<u64>| part.iter().fold(FileShare::default(), |sum, file| {
                sum + FileShare { file: *file, at_least: 1, of: 1 }
            });
            let share = parts.iter().map(vote).fold(FileShare::default(), Add::add);
            let all: Vec<u64> = parts.concat();
            let of_file = |file| all.iter().filter(|one| **one == file).count() as u64;
            prop_assert_eq!(share.of, all.len() as u64);
            prop_assert!(share.at_least <= of_file(share.file));
            // A file with a majority is found.
            for file in 0..3 {
                if 2 * of_file(file) > share.of {
                    prop_assert_eq!(share.file, file);
                    prop_assert!(share.at_least >= 2 * of_file(file) - share.of);
                }
            }
        }
    }
}
