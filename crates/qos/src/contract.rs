//! The contract models that a pool can have: what each volume may use, under which ceiling, and
//! what a pool can carry.
//!
//! | model | the pool's budget | a volume's limit |
//! |---|---|---|
//! | auto | size × level rate | quota × level rate |
//! | manual | size × level rate | what it is given |
//! | flexible | MiB/s bought apart from size | what it is given |
//! | custom | MiB/s and IOPS bought apart from size | what it is given of both |
//! | shared | size × level rate | all of it, shared with the others ([`Shares`](crate::Shares)), and what it is given for certain |
//! | provisioned-v1 | none: its size alone | what its quota provisions ([`burst::v1`]), with bursts |
//! | provisioned-v2 | none: its size alone | the MiB/s and IOPS it provisions ([`burst::v2`]), with bursts |
//!
//! Exact integer arithmetic; not here: names, persistence, and when a change takes place.

use core::fmt;
use core::str::FromStr;

use crate::burst;
use crate::limits::Limits;
use crate::rate::{BytesPerSecond, Iops};

/// Bytes in one TiB, as an exponent of two.
const TIB_SHIFT: u32 = 40;

/// Bytes in one MiB, as an exponent of two.
const MIB_SHIFT: u32 = 20;

/// The service level of a pool: how much throughput each TiB of it buys. Never nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level {
    rate_per_tib: BytesPerSecond,
}

impl Level {
    /// 16 MiB/s per TiB.
    pub const STANDARD: Self = Self { rate_per_tib: BytesPerSecond::from_mib(16) };
    /// 64 MiB/s per TiB.
    pub const PREMIUM: Self = Self { rate_per_tib: BytesPerSecond::from_mib(64) };
    /// 128 MiB/s per TiB: the name that Azure NetApp Files has for it.
    pub const ULTRA: Self = Self { rate_per_tib: BytesPerSecond::from_mib(128) };
    /// 128 MiB/s per TiB: the name that Google Cloud NetApp Volumes has for it.
    pub const EXTREME: Self = Self { rate_per_tib: BytesPerSecond::from_mib(128) };

    /// The published levels by name, slowest first. Beside them an operator may have others.
    pub const PUBLISHED: [(&str, Self); 4] = [
        ("standard", Self::STANDARD),
        ("premium", Self::PREMIUM),
        ("ultra", Self::ULTRA),
        ("extreme", Self::EXTREME),
    ];

    /// A level at which one TiB buys `rate_per_tib`; `None` if that is nothing.
    #[must_use]
    pub fn new(rate_per_tib: BytesPerSecond) -> Option<Self> {
        (rate_per_tib > BytesPerSecond::ZERO).then_some(Self { rate_per_tib })
    }

    /// The rate that one TiB buys.
    #[must_use]
    pub const fn rate_per_tib(self) -> BytesPerSecond {
        self.rate_per_tib
    }

    /// The rate that `bytes` of provisioned size buy, rounded down to a whole byte per second.
    #[must_use]
    pub fn rate_for(self, bytes: u64) -> BytesPerSecond {
        let product = u128::from(bytes) * u128::from(self.rate_per_tib.0);
        BytesPerSecond(narrow(product >> TIB_SHIFT))
    }

    /// The other way round: the least size that buys `rate`, in bytes; `u64::MAX` if no size
    /// that can be stated does.
    #[must_use]
    pub fn size_for(self, rate: BytesPerSecond) -> u64 {
        narrow((u128::from(rate.0) << TIB_SHIFT).div_ceil(self.rate_per_tib.0.into()))
    }

    /// The slowest level at which `bytes` of provisioned size buy `rate`; the fastest that can be
    /// stated if none does.
    #[must_use]
    pub fn least(rate: BytesPerSecond, bytes: u64) -> Self {
        let per_tib = (u128::from(rate.0) << TIB_SHIFT).div_ceil(u128::from(bytes).max(1));
        Self { rate_per_tib: BytesPerSecond(narrow(per_tib).max(1)) }
    }
}

/// The model by which the volumes of a pool get their limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Qos {
    /// Quota × level rate, linear, without steps.
    #[default]
    Auto,
    /// Each volume is given its own rate, whatever its quota.
    Manual,
    /// Each volume is given its own rate, out of a rate that the pool buys apart from its size, as
    /// Azure NetApp Files has it.
    Flexible,
    /// Each volume is given its own rate and operations, out of those that the pool buys apart from
    /// its size and from each other, as Google Cloud NetApp Volumes has it.
    Custom,
    /// All share the pool's rate, size × level, by what each wants: Azure NetApp Files Elastic and
    /// Google Cloud NetApp Volumes Flex. A volume may be given some of it for certain.
    Shared,
    /// Everything follows from the quota, with credits for bursts: Azure Files, provisioned v1.
    ProvisionedV1,
    /// Each volume provisions MiB/s and IOPS, with credits for bursts: Azure Files, provisioned v2.
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

    /// Whether each volume is given its own rate, out of the pool's.
    #[must_use]
    pub const fn gives_rates(self) -> bool {
        matches!(self, Self::Manual | Self::Flexible | Self::Custom)
    }

    /// Whether all volumes share the pool's rate, of which each may be given some for certain.
    #[must_use]
    pub const fn shares(self) -> bool {
        matches!(self, Self::Shared)
    }

    /// Whether each volume may provision its own rate and operations, out of nothing that the pool
    /// has.
    #[must_use]
    pub const fn provisions(self) -> bool {
        matches!(self, Self::ProvisionedV2)
    }

    /// Whether the level of a pool has a part in what its volumes may use.
    #[must_use]
    pub const fn has_level(self) -> bool {
        matches!(self, Self::Auto | Self::Manual | Self::Shared)
    }

    /// Whether the pool buys its rate apart from its size, so that its level has no part in it.
    #[must_use]
    pub const fn buys_rate(self) -> bool {
        matches!(self, Self::Flexible | Self::Custom)
    }

    /// Whether the pool buys operations, of which each volume is given its own.
    #[must_use]
    pub const fn buys_iops(self) -> bool {
        matches!(self, Self::Custom)
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

impl Terms {
    /// The volume's provision under v2: the given one, or the one recommended for its size.
    fn provisions(&self) -> (BytesPerSecond, Iops) {
        let (rate, iops) = burst::v2_recommended(self.quota_bytes);
        let given = self.manual_rate > BytesPerSecond::ZERO;
        (if given { self.manual_rate } else { rate }, self.manual_iops.unwrap_or(iops))
    }
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
pub struct Terms {
    /// The provisioned size, in bytes.
    pub quota_bytes: u64,
    /// The rate that its pool gives it; in a shared pool what it has for certain, or zero; without
    /// meaning in an auto pool.
    pub manual_rate: BytesPerSecond,
    /// The operations that a custom pool gives it. Where that is not said it is the part of the
    /// pool's that its rate is of the pool's rate.
    pub manual_iops: Option<Iops>,
}

/// The figures that a pool buys apart from its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bought {
    /// The rate, in flexible and custom pools.
    pub rate: BytesPerSecond,
    /// The operations a second, in custom pools.
    pub iops: Iops,
}

impl Bought {
    /// Flexible, the least: 128 MiB/s come with a pool of any size.
    pub const FLEXIBLE_RATE_MIN: BytesPerSecond = BytesPerSecond::from_mib(128);
    /// Flexible, the most for each TiB: five times 128 MiB/s.
    pub const FLEXIBLE_PER_TIB_MAX: Level =
        Level { rate_per_tib: BytesPerSecond::from_mib(5 * 128) };
    /// Custom, the most.
    pub const CUSTOM_RATE_MAX: BytesPerSecond = BytesPerSecond::from_mib(5120);
    /// Custom, the most.
    pub const CUSTOM_IOPS_MAX: Iops = Iops(160_000);
    /// Custom, for each MiB/s unless something else is asked for.
    pub const CUSTOM_IOPS_PER_MIB: u64 = 16;

    /// The operations that come with `rate` in a custom pool.
    #[must_use]
    pub fn iops_with(rate: BytesPerSecond) -> Iops {
        let iops = (u128::from(rate.0) * u128::from(Self::CUSTOM_IOPS_PER_MIB)) >> MIB_SHIFT;
        Iops(narrow(iops)).clamp(Iops(1), Self::CUSTOM_IOPS_MAX)
    }
}

/// The least that custom pools buy, which an operator may choose.
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

/// The figures that a pool has to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The service level.
    pub level: Level,
    /// The contract model.
    pub qos: Qos,
    /// The provisioned size, in bytes.
    pub size_bytes: u64,
    /// The figures bought apart from the size; without meaning in models that buy nothing.
    pub bought: Bought,
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
    /// All that the pool can give; `None` where volumes provision for themselves, and its size is
    /// all that they share.
    #[must_use]
    pub fn budget(&self) -> Option<Limits> {
        Some(match self.qos {
            Qos::ProvisionedV1 | Qos::ProvisionedV2 => return None,
            Qos::Auto | Qos::Manual | Qos::Shared => {
                Limits::of(self.level.rate_for(self.size_bytes))
            }
            Qos::Flexible => Limits::of(self.bought.rate),
            Qos::Custom => Limits { iops: Some(self.bought.iops), ..Limits::of(self.bought.rate) },
        })
    }

    /// The limits of a volume under the pool's model.
    #[must_use]
    pub fn limits(&self, volume: Terms) -> Limits {
        match self.qos {
            Qos::Auto => Limits::of(self.level.rate_for(volume.quota_bytes)),
            Qos::Shared => Limits::of(self.level.rate_for(self.size_bytes)),
            Qos::Manual | Qos::Flexible => Limits::of(volume.manual_rate),
            Qos::Custom => {
                let iops = volume.manual_iops.unwrap_or_else(|| self.share(volume.manual_rate));
                Limits { iops: Some(iops), ..Limits::of(volume.manual_rate) }
            }
            Qos::ProvisionedV1 => burst::v1(volume.quota_bytes),
            Qos::ProvisionedV2 => {
                let (rate, iops) = volume.provisions();
                burst::v2(rate, iops)
            }
        }
    }

    /// A volume's part of the pool's budget: its limits, or in a shared pool the part it has for
    /// certain.
    #[must_use]
    pub fn given(&self, volume: Terms) -> Limits {
        match self.qos.shares() {
            true => Limits::of(volume.manual_rate),
            false => self.limits(volume),
        }
    }

    /// The budget out of which volumes are given something, if they are.
    fn divided(&self) -> Option<Limits> {
        self.budget().filter(|_| self.qos.gives_rates() || self.qos.shares())
    }

    /// The part of the pool's operations that `rate` is of its rate, rounded down, so that the
    /// parts together are never more than the whole.
    fn share(&self, rate: BytesPerSecond) -> Iops {
        let part = u128::from(self.bought.iops.0) * u128::from(rate.0);
        Iops(narrow(part / u128::from(self.bought.rate.0).max(1)))
    }

    /// Whether the pool buys what its model allows at its size.
    ///
    /// # Errors
    /// `BoughtRate`, `BoughtIops`.
    pub fn check_bought(&self, floors: Floors) -> Result<(), Infeasible> {
        let (least, most) = match self.qos {
            Qos::Auto | Qos::Manual | Qos::Shared | Qos::ProvisionedV1 | Qos::ProvisionedV2 => {
                return Ok(());
            }
            Qos::Flexible => {
                let least = Bought::FLEXIBLE_RATE_MIN;
                (least, Bought::FLEXIBLE_PER_TIB_MAX.rate_for(self.size_bytes).max(least))
            }
            Qos::Custom => (floors.rate, Bought::CUSTOM_RATE_MAX.max(floors.rate)),
        };
        let Bought { rate, iops } = self.bought;
        if !(least..=most).contains(&rate) {
            return Err(Infeasible::BoughtRate { asked: rate, least, most });
        }
        let (least, most) = (floors.iops, Bought::CUSTOM_IOPS_MAX.max(floors.iops));
        if self.qos.buys_iops() && !(least..=most).contains(&iops) {
            return Err(Infeasible::BoughtIops { asked: iops, least, most });
        }
        Ok(())
    }

    /// Whether `asked` fits in beside the `others` (the pool's volumes without the one that is
    /// being made or changed).
    ///
    /// # Errors
    /// The rule broken and what would be allowed, by quota first, then by throughput, then by IOPS.
    pub fn check_volume(
        &self,
        others: impl IntoIterator<Item = Terms>,
        asked: Terms,
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
    pub fn check(&self, volumes: impl IntoIterator<Item = Terms>) -> Result<(), Infeasible> {
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
    pub fn least_level(&self, volumes: impl IntoIterator<Item = Terms>) -> Level {
        match self.qos {
            Qos::Auto => {
                let least = volumes.into_iter().map(|volume| volume.quota_bytes).min();
                Level::least(BytesPerSecond(1), least.unwrap_or(u64::MAX))
            }
            Qos::Manual | Qos::Shared => {
                let needed = BytesPerSecond(narrow(self.totals(volumes).rates).max(1));
                Level::least(needed, self.size_bytes)
            }
            Qos::Flexible | Qos::Custom | Qos::ProvisionedV1 | Qos::ProvisionedV2 => {
                Level::least(BytesPerSecond::ZERO, self.size_bytes)
            }
        }
    }

    /// The change that would give the pool this rate.
    fn remedy(&self, rate: BytesPerSecond) -> Remedy {
        match self.qos.buys_rate() {
            true => Remedy::Buy(rate),
            false => Remedy::Size(self.level.size_for(rate)),
        }
    }

    /// Whether the volume could do any I/O at all.
    fn check_usable(&self, volume: Terms) -> Result<(), Infeasible> {
        if self.qos.provisions() {
            let (rate, iops) = volume.provisions();
            let (rates, operations) = (burst::V2_RATE, burst::V2_IOPS);
            if !rates.contains(&rate) {
                let (least, most) = rates.into_inner();
                return Err(Infeasible::ProvisionedRate { asked: rate, least, most });
            }
            if !operations.contains(&iops) {
                let (least, most) = operations.into_inner();
                return Err(Infeasible::ProvisionedIops { asked: iops, least, most });
            }
        }
        let Limits { rate, iops, .. } = self.limits(volume);
        if rate == BytesPerSecond::ZERO {
            return Err(match self.qos.gives_rates() {
                true => Infeasible::ZeroRate,
                false => Infeasible::QuotaWithoutRate {
                    asked_bytes: volume.quota_bytes,
                    least_bytes: self.level.size_for(BytesPerSecond(1)),
                },
            });
        }
        if iops == Some(Iops(0)) {
            let least = u128::from(self.bought.rate.0).div_ceil(self.bought.iops.0.max(1).into());
            return Err(match volume.manual_iops {
                Some(_) => Infeasible::ZeroIops,
                None => Infeasible::RateWithoutIops {
                    asked: rate,
                    least: BytesPerSecond(narrow(least)),
                },
            });
        }
        Ok(())
    }

    /// The sums over `volumes`.
    fn totals(&self, volumes: impl IntoIterator<Item = Terms>) -> Totals {
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
