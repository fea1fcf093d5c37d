//! Admission: whether a change commits hardware to more than it was measured to hold.
//!
//! The committed figures are the ones that volumes may use for good ([`Committed`]). The hardware
//! was measured for several mixes of READs and WRITEs and several block sizes ([`Cell`]); a
//! [`Plan`] says by which of these figures promises are made. A change that only lets committed
//! figures shrink or stay is never beyond.
//!
//! Exact integer arithmetic; not here: the measuring, which pools share a disk, and what is told to
//! whom.

use core::fmt;
use core::str::FromStr;

use crate::contract::UnknownName;
use crate::limits::{Ceiling, Limits};
use crate::rate::{BytesPerSecond, Iops};

/// The measured performance of the hardware with one mix and one block size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The number of READs in a hundred requests; the rest were WRITEs.
    pub read_percent: u8,
    /// Bytes of one request.
    pub block_bytes: u32,
    /// The bytes moved per second.
    pub rate: BytesPerSecond,
    /// READs and WRITEs.
    pub iops: Iops,
}

/// The mix of READs and WRITEs by which promises are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// The measured mix at which the hardware holds least.
    #[default]
    Worst,
    /// This number of READs in a hundred requests; like [`Mix::Worst`] if that mix was not
    /// measured.
    Reads(u8),
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worst => f.pad("worst"),
            Self::Reads(percent) => percent.fmt(f),
        }
    }
}

impl FromStr for Mix {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let unknown = UnknownName {
            what: "mix",
            allowed: "expected `worst`, or a percentage of READs from 0 to 100",
        };
        match text {
            "worst" => Ok(Self::Worst),
            _ => match text.parse() {
                Ok(percent @ 0..=100) => Ok(Self::Reads(percent)),
                _ => Err(unknown),
            },
        }
    }
}

/// The choice of the measured figures by which promises are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The mix.
    pub mix: Mix,
    /// The block size by which throughput is promised, in bytes.
    pub block_bytes: u32,
    /// The block size by which operations are promised, in bytes.
    pub iops_block_bytes: u32,
}

impl Default for Plan {
    /// The worst mix, at 64 KiB for throughput and at 8 KiB for operations.
    fn default() -> Self {
        Self { mix: Mix::Worst, block_bytes: 64 << 10, iops_block_bytes: 8 << 10 }
    }
}

/// The capacity of hardware, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    /// The throughput.
    pub rate: Option<BytesPerSecond>,
    /// The operations a second.
    pub iops: Option<Iops>,
}

impl Plan {
    /// The part of the measured `cells` that may be promised.
    ///
    /// If the planned block size was not measured with a mix, the nearest size is taken at which
    /// the hardware does no better: for throughput the largest below it, for operations the
    /// smallest above it. A mix without such a figure does at most what it did at the nearest size
    /// on the other side, and counts with that, so that a mix that was measured in part never drops
    /// out. If no mix has a figure, nothing is known.
    #[must_use]
    pub fn holds(&self, cells: &[Cell]) -> Holds {
        let of_mix = |cell: &Cell| self.mix == Mix::Reads(cell.read_percent);
        let measured = cells.iter().any(of_mix);
        let cells = || cells.iter().filter(|cell| !measured || of_mix(cell));
        let rate = least(cells(), |mix| {
            let cells = || cells().filter(|cell| cell.read_percent == mix);
            let below = cells().filter(|cell| cell.block_bytes <= self.block_bytes);
            let sure = below.max_by_key(|cell| cell.block_bytes).map(|cell| cell.rate.0);
            let bound = cells().min_by_key(|cell| cell.block_bytes).map(|cell| cell.rate.0);
            (sure, bound)
        });
        let iops = least(cells(), |mix| {
            let cells = || cells().filter(|cell| cell.read_percent == mix);
            let above = cells().filter(|cell| cell.block_bytes >= self.iops_block_bytes);
            let sure = above.min_by_key(|cell| cell.block_bytes).map(|cell| cell.iops.0);
            let bound = cells().max_by_key(|cell| cell.block_bytes).map(|cell| cell.iops.0);
            (sure, bound)
        });
        Holds { rate: rate.map(BytesPerSecond), iops: iops.map(Iops) }
    }
}

/// The least of what the mixes among `cells` do: a `figure` is what is sure of a mix, or else what
/// bounds it. Nothing where nothing is sure of any.
fn least<'a>(
    cells: impl Iterator<Item = &'a Cell> + Clone,
    figure: impl Fn(u8) -> (Option<u64>, Option<u64>),
) -> Option<u64> {
    let figures = cells.map(|cell| figure(cell.read_percent));
    figures.clone().find_map(|(sure, _)| sure)?;
    figures.filter_map(|(sure, bound)| sure.or(bound)).min()
}

/// The sum of the figures that contracts promise for good. Sums that can't overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    rate: u128,
    iops: u128,
}

impl Committed {
    /// With one more contract, of a volume under this ceiling: its rate, and the operations that
    /// can be had without credits, if it counts operations. A ceiling promises nothing: it only
    /// lowers what is.
    #[must_use]
    pub fn with(self, contract: Limits, ceiling: Ceiling) -> Self {
        let base = contract.burst.map(|burst| burst.base);
        let iops = contract.iops.map(|iops| base.map_or(iops, |base| base.min(iops)));
        let iops = iops.map(|iops| ceiling.iops.map_or(iops, |most| most.min(iops)));
        let rate = ceiling.rate.map_or(contract.rate, |most| most.min(contract.rate));
        Self {
            rate: self.rate + u128::from(rate.0),
            iops: self.iops + iops.map_or(0, |iops| u128::from(iops.0)),
        }
    }

    /// The rates, or the largest that can be stated.
    #[must_use]
    pub fn rate(&self) -> BytesPerSecond {
        BytesPerSecond(u64::try_from(self.rate).unwrap_or(u64::MAX))
    }

    /// The operations that are counted, or the most that can be stated.
    #[must_use]
    pub fn iops(&self) -> Iops {
        Iops(u64::try_from(self.iops).unwrap_or(u64::MAX))
    }
}

/// The treatment of a change that commits hardware to more than it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The change is refused, unless the caller says that it is meant.
    #[default]
    Refuse,
    /// The change is made, with a warning.
    Warn,
    /// The change is made.
    Off,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Refuse, Self::Warn, Self::Off];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Warn => "warn",
            Self::Off => "off",
        }
    }
}

/// A resource of which more would be committed than may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond<T> {
    /// The committed figure before the change.
    pub before: T,
    /// The committed figure after the change.
    pub after: T,
    /// The hardware's capacity.
    pub holds: T,
    /// The figure that may be committed.
    pub allowed: T,
}

/// The way in which a change goes beyond the figures that may be committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excess {
    /// The excess in throughput.
    pub rate: Option<Beyond<BytesPerSecond>>,
    /// The excess in operations a second.
    pub iops: Option<Beyond<Iops>>,
}

impl Excess {
    /// Does it go beyond in nothing?
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.rate.is_none() && self.iops.is_none()
    }
}

/// The figures that may be promised, and the treatment of changes beyond them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The treatment of a change beyond the plan.
    pub policy: Policy,
    /// The plan for the capacity.
    pub plan: Plan,
    /// The part of the hardware's capacity that may be committed, in percent.
    pub overcommit_percent: u32,
}

impl Default for Admission {
    /// All that the hardware holds and no more.
    fn default() -> Self {
        Self { policy: Policy::Refuse, plan: Plan::default(), overcommit_percent: 100 }
    }
}

impl Admission {
    /// The figures that may be committed of hardware with this capacity.
    #[must_use]
    pub fn allows(&self, holds: Holds) -> Holds {
        let part = |whole: u64| {
            let part = u128::from(whole) * u128::from(self.overcommit_percent) / 100;
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        Holds {
            rate: holds.rate.map(|rate| BytesPerSecond(part(rate.0))),
            iops: holds.iops.map(|iops| Iops(part(iops.0))),
        }
    }

    /// Whether a change from `before` to `after` lets grow what is committed of something, and that
    /// beyond what may be. The policy has no part in it.
    #[must_use]
    pub fn judge(&self, before: Committed, after: Committed, holds: Holds) -> Excess {
        let allows = self.allows(holds);
        let beyond = |before, after, allowed: u64| after > before && after > u128::from(allowed);
        let rate = holds.rate.zip(allows.rate).map(|(holds, allowed)| {
            let told = Beyond { before: before.rate(), after: after.rate(), holds, allowed };
            beyond(before.rate, after.rate, allowed.0).then_some(told)
        });
        let iops = holds.iops.zip(allows.iops).map(|(holds, allowed)| {
            let told = Beyond { before: before.iops(), after: after.iops(), holds, allowed };
            beyond(before.iops, after.iops, allowed.0).then_some(told)
        });
        Excess { rate: rate.flatten(), iops: iops.flatten() }
    }
}

#[cfg(test)]
mod tests;
