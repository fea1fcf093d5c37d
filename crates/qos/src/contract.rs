//! The contract models of pools: the limits of each volume, and what a pool can carry.
//!
//! | model | budget of the pool | limit of a volume |
//! |---|---|---|
//! | auto | size × level rate | quota × level rate |
//! | manual | size × level rate | the assigned rate |
//! | flexible | purchased MiB/s | the assigned rate |
//! | custom | purchased MiB/s and IOPS | the assigned rate and IOPS |
//! | shared | size × level rate | the budget, shared by [`Shares`](crate::Shares); the assigned rate is guaranteed |
//! | provisioned-v1 | none, only the size | by quota ([`burst::v1`]), with bursts |
//! | provisioned-v2 | none, only the size | the provisioned rate and IOPS ([`burst::v2`]), with bursts |
//!
//! A level may have a ceiling for each volume: in auto, manual and shared pools no volume has more,
//! whatever its quota or its assigned rate.
//!
//! Exact integer arithmetic. Names, persistence and the time of a change are not here.

mod level;

pub use level::Level;

use core::fmt;
use core::str::FromStr;

use crate::burst;
use crate::limits::{Ceiling, Limits};
use crate::rate::{BytesPerSecond, Iops};

/// Bytes in one MiB, as an exponent of two.
const MIB_SHIFT: u32 = 20;

/// The name of a contract model, as in a request for one. [`Model`] adds the figures of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Qos {
    /// The limit is quota × level rate, linear, without steps.
    #[default]
    Auto,
    /// Each volume is assigned a rate, whatever its quota.
    Manual,
    /// Each volume is assigned a rate, out of a rate that the pool purchases separately from its
    /// size, as in Azure NetApp Files.
    Flexible,
    /// Each volume is assigned a rate and operations, which the pool purchases separately from its
    /// size and from each other, as in Google Cloud NetApp Volumes.
    Custom,
    /// All volumes share size × level rate according to demand, as in Azure NetApp Files Elastic
    /// and Google Cloud NetApp Volumes Flex. A volume may be guaranteed a part of it.
    Shared,
    /// Limits follow from the quota, with burst credits: Azure Files, provisioned v1.
    ProvisionedV1,
    /// Each volume provisions MiB/s and IOPS, with burst credits: Azure Files, provisioned v2.
    ProvisionedV2,
}

impl Qos {
    /// All models.
    pub const ALL: [Self; 7] = [
        Self::Auto,
        Self::Manual,
        Self::Flexible,
        Self::Custom,
        Self::Shared,
        Self::ProvisionedV1,
        Self::ProvisionedV2,
    ];

    /// The name, as typed and as shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
            Self::Flexible => "flexible",
            Self::Custom => "custom",
            Self::Shared => "shared",
            Self::ProvisionedV1 => "provisioned-v1",
            Self::ProvisionedV2 => "provisioned-v2",
        }
    }
}

/// A word that names no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what}: use one of {allowed}")]
pub struct UnknownName {
    /// The kind of thing that the word should name.
    pub what: &'static str,
    /// The names there are.
    pub allowed: &'static str,
}

impl fmt::Display for Qos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Qos {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let unknown = UnknownName {
            what: "contract model",
            allowed: "auto, manual, flexible, custom, shared, provisioned-v1, provisioned-v2",
        };
        Self::ALL.into_iter().find(|qos| qos.name() == name).ok_or(unknown)
    }
}

/// A volume's demands on its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The provisioned size, in bytes.
    pub quota_bytes: u64,
    /// The rate assigned to the volume. Manual, flexible and custom pools require one; in a shared
    /// pool it is the guaranteed minimum, under provisioned-v2 the provisioned rate.
    pub rate: Option<BytesPerSecond>,
    /// The operations assigned to the volume, in custom and provisioned-v2 pools.
    pub iops: Option<Iops>,
}

impl Demand {
    /// The provisioned rate and operations under v2: the assigned ones, or those recommended for
    /// the size.
    fn provisioned(&self) -> (BytesPerSecond, Iops) {
        let (rate, iops) = burst::v2_recommended(self.quota_bytes);
        (self.rate.unwrap_or(rate), self.iops.unwrap_or(iops))
    }

    /// The assigned rate; without one, the volume may transfer nothing.
    fn assigned_rate(&self) -> BytesPerSecond {
        self.rate.unwrap_or_default()
    }
}

/// A contract model, with the figures from which a pool of that model gets its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Each volume gets quota × level rate.
    Auto(Level),
    /// Each volume is assigned a part of size × level rate.
    Manual(Level),
    /// All volumes share size × level rate.
    Shared(Level),
    /// Each volume is assigned a part of the purchased rate.
    Flexible {
        /// The purchased rate.
        rate: BytesPerSecond,
    },
    /// Each volume is assigned a part of the purchased rate and operations.
    Custom {
        /// The purchased rate.
        rate: BytesPerSecond,
        /// The purchased operations a second.
        iops: Iops,
    },
    /// The limits of each volume follow from its quota; there is no budget.
    ProvisionedV1,
    /// Each volume provisions its own limits; there is no budget.
    ProvisionedV2,
}

/// Figures that a pool purchases separately from its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bought {
    /// The rate, in flexible and custom pools.
    pub rate: Option<BytesPerSecond>,
    /// The operations a second, in custom pools.
    pub iops: Option<Iops>,
}

impl Model {
    /// The model `qos` at `level` with the purchased figures. A figure that the model requires and
    /// `bought` lacks is zero.
    #[must_use]
    pub fn new(qos: Qos, level: Level, bought: Bought) -> Self {
        let (rate, iops) = (bought.rate.unwrap_or_default(), bought.iops.unwrap_or_default());
        match qos {
            Qos::Auto => Self::Auto(level),
            Qos::Manual => Self::Manual(level),
            Qos::Shared => Self::Shared(level),
            Qos::Flexible => Self::Flexible { rate },
            Qos::Custom => Self::Custom { rate, iops },
            Qos::ProvisionedV1 => Self::ProvisionedV1,
            Qos::ProvisionedV2 => Self::ProvisionedV2,
        }
    }

    /// The name of the model.
    #[must_use]
    pub const fn qos(&self) -> Qos {
        match self {
            Self::Auto(_) => Qos::Auto,
            Self::Manual(_) => Qos::Manual,
            Self::Shared(_) => Qos::Shared,
            Self::Flexible { .. } => Qos::Flexible,
            Self::Custom { .. } => Qos::Custom,
            Self::ProvisionedV1 => Qos::ProvisionedV1,
            Self::ProvisionedV2 => Qos::ProvisionedV2,
        }
    }

    /// The figures that the pool purchases.
    #[must_use]
    pub const fn bought(&self) -> Bought {
        match *self {
            Self::Flexible { rate } => Bought { rate: Some(rate), iops: None },
            Self::Custom { rate, iops } => Bought { rate: Some(rate), iops: Some(iops) },
            Self::Auto(_)
            | Self::Manual(_)
            | Self::Shared(_)
            | Self::ProvisionedV1
            | Self::ProvisionedV2 => Bought { rate: None, iops: None },
        }
    }

    /// The most that a volume may have by the service level, where the level matters.
    #[must_use]
    pub const fn volume_ceiling(&self) -> Ceiling {
        match self {
            Self::Auto(level) | Self::Manual(level) | Self::Shared(level) => level.ceiling(),
            Self::Flexible { .. }
            | Self::Custom { .. }
            | Self::ProvisionedV1
            | Self::ProvisionedV2 => Ceiling { rate: None, iops: None },
        }
    }

    /// The same model at another level, where the level matters.
    #[must_use]
    pub const fn at(self, level: Level) -> Self {
        match self {
            Self::Auto(_) => Self::Auto(level),
            Self::Manual(_) => Self::Manual(level),
            Self::Shared(_) => Self::Shared(level),
            Self::Flexible { .. }
            | Self::Custom { .. }
            | Self::ProvisionedV1
            | Self::ProvisionedV2 => self,
        }
    }

    /// Flexible, the least: 128 MiB/s come with a pool of any size.
    pub const FLEXIBLE_RATE_MIN: BytesPerSecond = BytesPerSecond::from_mib(128);
    /// Flexible, the most for each TiB: five times 128 MiB/s.
    pub const FLEXIBLE_PER_TIB_MAX: Level = Level::of_mib(5 * 128);
    /// Custom, the highest rate.
    pub const CUSTOM_RATE_MAX: BytesPerSecond = BytesPerSecond::from_mib(5120);
    /// Custom, the most operations.
    pub const CUSTOM_IOPS_MAX: Iops = Iops(160_000);
    /// Custom, the default for each MiB/s.
    pub const CUSTOM_IOPS_PER_MIB: u64 = 16;

    /// The operations that come with `rate` in a custom pool.
    #[must_use]
    pub fn iops_with(rate: BytesPerSecond) -> Iops {
        let iops = (u128::from(rate.0) * u128::from(Self::CUSTOM_IOPS_PER_MIB)) >> MIB_SHIFT;
        Iops(narrow(iops)).clamp(Iops(1), Self::CUSTOM_IOPS_MAX)
    }
}

/// The minimums that custom pools must purchase, which the operator may configure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floors {
    /// In bytes.
    pub rate: BytesPerSecond,
    /// In operations.
    pub iops: Iops,
}

impl Default for Floors {
    /// 64 MiB/s and 1,024 IOPS.
    fn default() -> Self {
        Self { rate: BytesPerSecond::from_mib(64), iops: Iops(1024) }
    }
}

/// A pool, as far as its contract is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The provisioned size, in bytes.
    pub size_bytes: u64,
    /// The contract model.
    pub model: Model,
}

/// A change that would make room for a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A pool of this many bytes.
    Size(u64),
    /// A pool that buys this rate.
    Buy(BytesPerSecond),
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(bytes) => write!(f, "enlarge the pool to {bytes} bytes"),
            Self::Buy(rate) => write!(f, "raise the pool's throughput to {rate}"),
        }
    }
}

/// Why the volumes can't be had, with what was asked and what would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Infeasible {
    /// A volume's quota is more than its pool has left.
    #[error(
        "a quota of {asked_bytes} bytes exceeds the free size of the pool: request at most \
         {free_bytes} bytes, or enlarge the pool to {size_needed_bytes} bytes"
    )]
    Quota {
        /// The quota asked for.
        asked_bytes: u64,
        /// The largest quota that fits.
        free_bytes: u64,
        /// The pool size with which the quota asked for would fit.
        size_needed_bytes: u64,
    },
    /// A volume's manual rate is more than the pool's budget has left.
    #[error("{asked} exceeds the free throughput of the pool: request at most {free}, or {remedy}")]
    Throughput {
        /// The rate asked for.
        asked: BytesPerSecond,
        /// The largest rate that fits.
        free: BytesPerSecond,
        /// The pool with which the rate asked for would fit.
        remedy: Remedy,
    },
    /// A pool would be smaller than the quotas of its volumes together.
    #[error(
        "{asked_bytes} bytes are less than the sum of the volumes' quotas: the minimum size is \
         {needed_bytes} bytes"
    )]
    PoolSize {
        /// The pool size asked for.
        asked_bytes: u64,
        /// The sum of the quotas.
        needed_bytes: u64,
    },
    /// A pool's budget would be below the manual rates of its volumes together.
    #[error(
        "a throughput of {budget} is less than the {needed} assigned to the pool's volumes: {remedy}"
    )]
    PoolThroughput {
        /// The budget that the pool asked for would have.
        budget: BytesPerSecond,
        /// The sum of the rates.
        needed: BytesPerSecond,
        /// The least pool, at this level, that carries them.
        remedy: Remedy,
    },
    /// A volume's operations are more than the pool's budget has left.
    #[error(
        "{asked} exceeds the free IOPS of the pool: request at most {free}, or raise the pool's IOPS to {needed}"
    )]
    Iops {
        /// The operations asked for.
        asked: Iops,
        /// The most that fit.
        free: Iops,
        /// The pool's with which those asked for would fit.
        needed: Iops,
    },
    /// A pool's operations would be below those of its volumes together.
    #[error("{budget} are less than the {needed} assigned to the pool's volumes")]
    PoolIops {
        /// The budget of operations that the pool would have.
        budget: Iops,
        /// The sum of the volumes'.
        needed: Iops,
    },
    /// A pool buys less or more than its model allows.
    #[error("a pool throughput of {asked} is out of range: the range is {least} to {most}")]
    BoughtRate {
        /// The rate asked for.
        asked: BytesPerSecond,
        /// The least allowed.
        least: BytesPerSecond,
        /// The most allowed at this size.
        most: BytesPerSecond,
    },
    /// A pool buys fewer or more operations than its model allows.
    #[error("{asked} are out of range for a pool: the range is {least} to {most}")]
    BoughtIops {
        /// The operations asked for.
        asked: Iops,
        /// The least allowed.
        least: Iops,
        /// The most allowed.
        most: Iops,
    },
    /// A volume provisions less or more than its model allows.
    #[error("a throughput of {asked} cannot be provisioned: the range is {least} to {most}")]
    ProvisionedRate {
        /// The rate asked for.
        asked: BytesPerSecond,
        /// The least allowed.
        least: BytesPerSecond,
        /// The most allowed.
        most: BytesPerSecond,
    },
    /// A volume is assigned more than the service level of its pool allows a volume.
    #[error("{asked} exceeds the volume ceiling of the service level: request at most {most}")]
    LevelCeiling {
        /// The rate asked for.
        asked: BytesPerSecond,
        /// The volume ceiling.
        most: BytesPerSecond,
    },
    /// A volume provisions fewer or more operations than its model allows.
    #[error("{asked} cannot be provisioned: the range is {least} to {most}")]
    ProvisionedIops {
        /// The operations asked for.
        asked: Iops,
        /// The least allowed.
        least: Iops,
        /// The most allowed.
        most: Iops,
    },
    /// A custom volume with so small a part of its pool's rate that no operation is left for it.
    #[error(
        "{asked} is too small a share of the pool's throughput for any operation: request {least}"
    )]
    RateWithoutIops {
        /// The rate asked for.
        asked: BytesPerSecond,
        /// The least rate with one operation a second.
        least: BytesPerSecond,
    },
    /// An auto volume so small that its limit rounds down to nothing.
    #[error(
        "a quota of {asked_bytes} bytes provides no throughput: request at least {least_bytes} bytes"
    )]
    QuotaWithoutRate {
        /// The quota asked for.
        asked_bytes: u64,
        /// The least quota with a limit of 1 B/s.
        least_bytes: u64,
    },
    /// A manual volume without a rate could never do any I/O.
    #[error("a throughput of zero would stop all I/O: request at least 1 B/s")]
    ZeroRate,
    /// A custom volume without operations could never do any I/O.
    #[error("a limit of zero operations would stop all I/O: request at least 1 IOPS")]
    ZeroIops,
}

impl Pool {
    /// The limits that all volumes together have; `None` in the provisioned models, where volumes
    /// have only the size in common.
    #[must_use]
    pub fn budget(&self) -> Option<Limits> {
        match self.model {
            Model::ProvisionedV1 | Model::ProvisionedV2 => None,
            Model::Auto(level) | Model::Manual(level) | Model::Shared(level) => {
                Some(Limits::of(level.rate_for(self.size_bytes)))
            }
            Model::Flexible { rate } => Some(Limits::of(rate)),
            Model::Custom { rate, iops } => Some(Limits { iops: Some(iops), ..Limits::of(rate) }),
        }
    }

    /// The limits of a volume under the pool's model.
    #[must_use]
    pub fn limits(&self, volume: Demand) -> Limits {
        match self.model {
            Model::Auto(level) => {
                Limits::of(level.rate_for(volume.quota_bytes)).under(level.ceiling())
            }
            Model::Shared(level) => {
                Limits::of(level.rate_for(self.size_bytes)).under(level.ceiling())
            }
            Model::Manual(level) => Limits::of(volume.assigned_rate()).under(level.ceiling()),
            Model::Flexible { .. } => Limits::of(volume.assigned_rate()),
            Model::Custom { rate, iops } => {
                let assigned = volume.assigned_rate();
                let iops = volume.iops.unwrap_or_else(|| share(iops, assigned, rate));
                Limits { iops: Some(iops), ..Limits::of(assigned) }
            }
            Model::ProvisionedV1 => burst::v1(volume.quota_bytes),
            Model::ProvisionedV2 => {
                let (rate, iops) = volume.provisioned();
                burst::v2(rate, iops)
            }
        }
    }

    /// A volume's part of the pool's budget: its limits, in a manual pool also beyond the volume
    /// ceiling of the level, or in a shared pool its guaranteed minimum.
    #[must_use]
    pub fn given(&self, volume: Demand) -> Limits {
        match self.model {
            Model::Manual(_) | Model::Shared(_) => Limits::of(volume.assigned_rate()),
            _ => self.limits(volume),
        }
    }

    /// The budget that is divided among the volumes. In an auto pool the quotas divide it, so
    /// that a pool with room for the quotas has enough.
    fn divided(&self) -> Option<Limits> {
        match self.model {
            Model::Auto(_) | Model::ProvisionedV1 | Model::ProvisionedV2 => None,
            Model::Manual(_) | Model::Shared(_) | Model::Flexible { .. } | Model::Custom { .. } => {
                self.budget()
            }
        }
    }

    /// Whether the pool purchases what its model allows at its size.
    ///
    /// # Errors
    /// `BoughtRate`, `BoughtIops`.
    pub fn check_bought(&self, floors: Floors) -> Result<(), Infeasible> {
        let check_rate = |asked, least: BytesPerSecond, most: BytesPerSecond| {
            let most = most.max(least);
            match (least..=most).contains(&asked) {
                true => Ok(()),
                false => Err(Infeasible::BoughtRate { asked, least, most }),
            }
        };
        match self.model {
            Model::Auto(_)
            | Model::Manual(_)
            | Model::Shared(_)
            | Model::ProvisionedV1
            | Model::ProvisionedV2 => Ok(()),
            Model::Flexible { rate } => {
                let most = Model::FLEXIBLE_PER_TIB_MAX.rate_for(self.size_bytes);
                check_rate(rate, Model::FLEXIBLE_RATE_MIN, most)
            }
            Model::Custom { rate, iops: asked } => {
                check_rate(rate, floors.rate, Model::CUSTOM_RATE_MAX)?;
                let (least, most) = (floors.iops, Model::CUSTOM_IOPS_MAX.max(floors.iops));
                match (least..=most).contains(&asked) {
                    true => Ok(()),
                    false => Err(Infeasible::BoughtIops { asked, least, most }),
                }
            }
        }
    }

    /// Whether the service level allows a volume the rate that is `asked` for it. Not a rule for a
    /// rate that a volume already has: after the volume ceiling was lowered, the volume keeps its
    /// assigned rate, and its limit is the ceiling.
    ///
    /// # Errors
    /// `LevelCeiling`.
    pub fn check_ceiling(&self, asked: Demand) -> Result<(), Infeasible> {
        match (self.model.volume_ceiling().rate, asked.rate) {
            (Some(most), Some(asked)) if asked > most => {
                Err(Infeasible::LevelCeiling { asked, most })
            }
            _ => Ok(()),
        }
    }

    /// Whether `asked` fits beside the `others` (the volumes of the pool without the one that is
    /// created or changed).
    ///
    /// # Errors
    /// The rule broken and what would be allowed, by quota first, then by throughput, then by IOPS.
    pub fn check_volume(
        &self,
        others: impl IntoIterator<Item = Demand>,
        asked: Demand,
    ) -> Result<(), Infeasible> {
        let others = self.totals(others);
        self.check_usable(asked)?;
        let quotas = others.quotas + u128::from(asked.quota_bytes);
        if quotas > self.size_bytes.into() {
            return Err(Infeasible::Quota {
                asked_bytes: asked.quota_bytes,
                free_bytes: narrow(u128::from(self.size_bytes).saturating_sub(others.quotas)),
                size_needed_bytes: narrow(quotas),
            });
        }
        let Some(budget) = self.divided() else { return Ok(()) };
        let limits = self.given(asked);
        let rates = others.rates + u128::from(limits.rate.0);
        if rates > budget.rate.0.into() {
            let free = u128::from(budget.rate.0).saturating_sub(others.rates);
            return Err(Infeasible::Throughput {
                asked: limits.rate,
                free: BytesPerSecond(narrow(free)),
                remedy: self.remedy(BytesPerSecond(narrow(rates))),
            });
        }
        let (Some(asked), Some(budget)) = (limits.iops, budget.iops) else { return Ok(()) };
        let operations = others.iops + u128::from(asked.0);
        if operations > budget.0.into() {
            let free = Iops(narrow(u128::from(budget.0).saturating_sub(others.iops)));
            return Err(Infeasible::Iops { asked, free, needed: Iops(narrow(operations)) });
        }
        Ok(())
    }

    /// Whether the pool, as it is to be (another size, level or model), carries its `volumes`.
    ///
    /// # Errors
    /// The rule broken and what would be allowed.
    pub fn check(&self, volumes: impl IntoIterator<Item = Demand>) -> Result<(), Infeasible> {
        let mut usable = Ok(());
        let totals = self.totals(volumes.into_iter().inspect(|&volume| {
            usable = usable.and_then(|()| self.check_usable(volume));
        }));
        usable?;
        if totals.quotas > self.size_bytes.into() {
            return Err(Infeasible::PoolSize {
                asked_bytes: self.size_bytes,
                needed_bytes: narrow(totals.quotas),
            });
        }
        let Some(budget) = self.divided() else { return Ok(()) };
        if totals.rates > budget.rate.0.into() {
            let needed = BytesPerSecond(narrow(totals.rates));
            let remedy = self.remedy(needed);
            return Err(Infeasible::PoolThroughput { budget: budget.rate, needed, remedy });
        }
        match budget.iops {
            Some(budget) if totals.iops > budget.0.into() => {
                Err(Infeasible::PoolIops { budget, needed: Iops(narrow(totals.iops)) })
            }
            _ => Ok(()),
        }
    }

    /// The slowest level at which the pool would carry its `volumes`, whatever level it has.
    #[must_use]
    pub fn least_level(&self, volumes: impl IntoIterator<Item = Demand>) -> Level {
        match self.model {
            Model::Auto(_) => {
                let least = volumes.into_iter().map(|volume| volume.quota_bytes).min();
                Level::least(BytesPerSecond(1), least.unwrap_or(u64::MAX))
            }
            Model::Manual(_) | Model::Shared(_) => {
                let needed = BytesPerSecond(narrow(self.totals(volumes).rates).max(1));
                Level::least(needed, self.size_bytes)
            }
            Model::Flexible { .. }
            | Model::Custom { .. }
            | Model::ProvisionedV1
            | Model::ProvisionedV2 => Level::least(BytesPerSecond::ZERO, self.size_bytes),
        }
    }

    /// The change that would give the pool this rate.
    fn remedy(&self, rate: BytesPerSecond) -> Remedy {
        match self.model {
            Model::Auto(level) | Model::Manual(level) | Model::Shared(level) => {
                Remedy::Size(level.size_for(rate))
            }
            Model::Flexible { .. }
            | Model::Custom { .. }
            | Model::ProvisionedV1
            | Model::ProvisionedV2 => Remedy::Buy(rate),
        }
    }

    /// Whether the volume could do any I/O, and provisions no more than is allowed.
    fn check_usable(&self, volume: Demand) -> Result<(), Infeasible> {
        let Limits { rate, iops, .. } = self.limits(volume);
        let without_rate = rate == BytesPerSecond::ZERO;
        match self.model {
            Model::Auto(level) | Model::Shared(level) if without_rate => {
                Err(Infeasible::QuotaWithoutRate {
                    asked_bytes: volume.quota_bytes,
                    least_bytes: level.size_for(BytesPerSecond(1)),
                })
            }
            Model::Manual(_) | Model::Flexible { .. } | Model::Custom { .. } if without_rate => {
                Err(Infeasible::ZeroRate)
            }
            Model::Custom { rate: of, iops: all } if iops == Some(Iops(0)) => {
                let least = u128::from(of.0).div_ceil(all.0.max(1).into());
                let least = BytesPerSecond(narrow(least));
                Err(match volume.iops {
                    Some(_) => Infeasible::ZeroIops,
                    None => Infeasible::RateWithoutIops { asked: rate, least },
                })
            }
            Model::ProvisionedV2 => check_provisioned(volume),
            _ => Ok(()),
        }
    }

    /// The sums over `volumes`.
    fn totals(&self, volumes: impl IntoIterator<Item = Demand>) -> Totals {
        let none = Totals { quotas: 0, rates: 0, iops: 0 };
        volumes.into_iter().fold(none, |sum, volume| {
            let limits = self.given(volume);
            Totals {
                quotas: sum.quotas + u128::from(volume.quota_bytes),
                rates: sum.rates + u128::from(limits.rate.0),
                iops: sum.iops + limits.iops.map_or(0, |iops| u128::from(iops.0)),
            }
        })
    }
}

/// Whether what a volume provisions under v2 is within the published bounds.
fn check_provisioned(volume: Demand) -> Result<(), Infeasible> {
    let (asked, iops) = volume.provisioned();
    if !burst::V2_RATE.contains(&asked) {
        let (least, most) = burst::V2_RATE.into_inner();
        return Err(Infeasible::ProvisionedRate { asked, least, most });
    }
    if !burst::V2_IOPS.contains(&iops) {
        let (least, most) = burst::V2_IOPS.into_inner();
        return Err(Infeasible::ProvisionedIops { asked: iops, least, most });
    }
    Ok(())
}

/// The share of `iops` in the proportion of `rate` to the rate `of` the pool, rounded down, so that
/// the shares together are never more than the whole.
fn share(iops: Iops, rate: BytesPerSecond, of: BytesPerSecond) -> Iops {
    let part = u128::from(iops.0) * u128::from(rate.0);
    Iops(narrow(part / u128::from(of.0).max(1)))
}

/// Sums that can't overflow: 2^64 volumes of 2^64 bytes fit.
struct Totals {
    quotas: u128,
    rates: u128,
    iops: u128,
}

/// The effect of a change on one volume; `V` is the caller's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<V> {
    /// The volume.
    pub volume: V,
    /// The volume's limits now.
    pub before: Limits,
    /// The volume's limits after the change.
    pub after: Limits,
}

fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
