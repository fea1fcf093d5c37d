//! Which blocks of which files a load visits, and in which order.

use serde::{Deserialize, Serialize};

/// The order in which blocks of a file are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Every block equally likely each time.
    Random,
    /// One after the other, starting over at the end. Where jobs that share a file start, says
    /// [`Workload::starts`](super::Workload::starts).
    Sequential,
    /// A number of a hundred requests at a random place, the others right behind the one before
    /// them, wherever that was.
    Mixed {
        /// 1 to 99.
        random_percent: u8,
    },
}

/// Which blocks come up in random order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Draw {
    /// Each time every block equally likely (fio's `norandommap`).
    #[default]
    Independent,
    /// Every block of the job's files once, in an order of chance, before any comes again (fio's
    /// random map). Each pass has an order of its own. With several sizes a block is as long as
    /// the alignment, or as the smallest size without one.
    Permuted,
    /// Few blocks often and many seldom: the k-th most wanted with a weight of k^-theta, the
    /// wanted ones strewn over the file. They are the same for every job. With several sizes a
    /// block is what it is for [`Draw::Permuted`].
    Zipf {
        /// Over 0, not 1, at most 5.
        theta: f64,
    },
    /// As [`Draw::Zipf`], by Pareto's law: a part of `h` of the blocks has the part of `1 - h` of
    /// the requests, and so again within that part.
    Pareto {
        /// Over 0 and below 1.
        h: f64,
    },
    /// As [`Draw::Zipf`], by a distribution that is close to the normal one: the mean of twelve
    /// even numbers over all blocks, moved by at most half the deviation.
    Normal {
        /// Percent of the blocks, 0 to 100; fio's `normal`.
        deviation_percent: f64,
    },
    /// Each zone of a file has its part of the requests, and every block of a zone is equally
    /// likely each time.
    Zoned {
        /// In the order in which they lie in the file; at most 256.
        zones: Vec<Zone>,
    },
}

/// A zone of a file, and its part of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Zone {
    /// The zone's part of the requests, in percent; those of all zones add up to 100.
    pub requests_percent: u8,
    /// The zone's part of the region, in percent; those of all zones add up to 100 at most.
    pub size_percent: f64,
}

/// Several requests from each random place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// Requests from one place, at least 2.
    pub requests: u32,
    /// All of them are for the same block; otherwise each is for the block behind the one before,
    /// up to the end of the region.
    pub again: bool,
}

/// The order in which a job visits its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileOrder {
    /// Data in order: one file after the other. Everything else: a random file each time.
    #[default]
    ByOperation,
    /// The next file with each request, and the first again after the last. Each file has its own
    /// position for data in order.
    InTurn,
}

/// The start of sequential jobs that share a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Starts {
    /// Spread evenly over the region.
    #[default]
    Apart,
    /// All at its beginning, each with a cursor of its own.
    Together,
    /// All of one file share one cursor: together they visit each block once a pass.
    Interlocked,
    /// The k-th job of a file k times so many bytes behind its beginning, going round at the end
    /// of the region.
    Stride {
        /// A multiple of the block size is not needed; offsets keep their alignment to the start.
        bytes: u64,
    },
}

/// The part of each file that is visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// The region's offset, in bytes.
    pub offset: u64,
    /// The region's length, in bytes; the rest of the file without.
    pub bytes: Option<u64>,
    /// The job with number k (of all jobs of the load) begins k times this further on (fio's
    /// `offset_increment`).
    pub job_increment: u64,
}

/// The positions of sequential reads and writes of one load in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Positions {
    /// One for both: each block is read or written.
    #[default]
    Shared,
    /// One for reads and one for writes, both from the beginning on.
    ByDirection,
}
