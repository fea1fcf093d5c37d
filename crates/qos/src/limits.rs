//! The limits of a volume: its contract as rates, whatever model they come from. Not here: how a
//! model yields them, and how they are enforced.

use crate::rate::{BytesPerSecond, Iops};

/// All that limits a volume at once: the tightest binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Reads and writes together. Zero admits nothing.
    pub rate: BytesPerSecond,
    /// Reads and writes together, if they are counted.
    pub iops: Option<Iops>,
    /// Whether those can be had only as long as there are credits.
    pub burst: Option<Burst>,
}

impl Limits {
    /// A rate alone.
    #[must_use]
    pub const fn of(rate: BytesPerSecond) -> Self {
        Self { rate, iops: None, burst: None }
    }

    /// These limits under a ceiling: of each kind the lower.
    #[must_use]
    pub fn under(self, ceiling: Ceiling) -> Self {
        let iops = [self.iops, ceiling.iops].into_iter().flatten().min();
        let rate = ceiling.rate.map_or(self.rate, |most| most.min(self.rate));
        Self { rate, iops, burst: self.burst }
    }
}

/// The most that a volume may use, whatever its contract comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ceiling {
    /// The most bytes a second.
    pub rate: Option<BytesPerSecond>,
    /// The most operations a second.
    pub iops: Option<Iops>,
}

/// Credits for operations beyond a base rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The rate of operations for good, and the rate at which unused operations earn credits.
    pub base: Iops,
    /// The most credits that are kept; one is an operation beyond the base.
    pub credits: u64,
}
