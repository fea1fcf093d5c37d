//! The contract models that a pool can have, *auto* and *manual*: what each volume may use, what
//! a pool can carry, and what a change from one model to the other does. Exact integer
//! arithmetic; not here: names, persistence, and when a change takes place.

use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::rate::BytesPerSecond;

/// Bytes in one TiB, as an exponent of two.
const TIB_SHIFT: u32 = 40;

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

    /// What one TiB buys.
    #[must_use]
    pub const fn rate_per_tib(self) -> BytesPerSecond {
        self.rate_per_tib
    }

    /// What `bytes` of provisioned size buy, rounded down to a whole byte per second.
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

/// How the volumes of a pool get their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Qos {
    /// Quota × level rate, linear, without steps.
    Auto,
    /// Each volume is given its own rate, whatever its quota.
    Manual,
}

impl Qos {
    /// Both models.
    pub const ALL: [Self; 2] = [Self::Auto, Self::Manual];

    /// The name, as typed and as shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
        }
    }
}

/// A word that names no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what}: use one of {allowed}")]
pub struct UnknownName {
    /// What was to be named.
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
        let unknown = UnknownName { what: "QoS model", allowed: "auto, manual" };
        Self::ALL.into_iter().find(|qos| qos.name() == name).ok_or(unknown)
    }
}

/// What a volume asks of its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The provisioned size, in bytes.
    pub quota_bytes: u64,
    /// The rate that a manual pool gives it; without meaning in an auto pool.
    pub manual_rate: BytesPerSecond,
}

/// What a pool has to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The service level.
    pub level: Level,
    /// The contract model.
    pub qos: Qos,
    /// The provisioned size, in bytes.
    pub size_bytes: u64,
}

/// Why the volumes can't be had, with what was asked and what would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Infeasible {
    /// A volume's quota is more than its pool has left.
    #[error(
        "a quota of {asked_bytes} bytes is more than the pool has left: ask for at most \
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
    #[error(
        "{asked} is more than the pool has left of its throughput: ask for at most {free}, or \
         enlarge the pool to {size_needed_bytes} bytes"
    )]
    Throughput {
        /// The rate asked for.
        asked: BytesPerSecond,
        /// The largest rate that fits.
        free: BytesPerSecond,
        /// The pool size with which the rate asked for would fit.
        size_needed_bytes: u64,
    },
    /// A pool would be smaller than the quotas of its volumes together.
    #[error(
        "{asked_bytes} bytes are less than the quotas of the pool's volumes: the least possible \
         size is {needed_bytes} bytes"
    )]
    PoolSize {
        /// The pool size asked for.
        asked_bytes: u64,
        /// The sum of the quotas.
        needed_bytes: u64,
    },
    /// A pool's budget would be below the manual rates of its volumes together.
    #[error(
        "a throughput of {budget} is less than the {needed} given to the pool's volumes: it needs \
         at least {size_needed_bytes} bytes at this level"
    )]
    PoolThroughput {
        /// The budget that the pool asked for would have.
        budget: BytesPerSecond,
        /// The sum of the rates.
        needed: BytesPerSecond,
        /// The least pool size at this level that carries them.
        size_needed_bytes: u64,
    },
    /// An auto volume so small that its limit rounds down to nothing.
    #[error(
        "a quota of {asked_bytes} bytes buys no throughput: ask for at least {least_bytes} bytes"
    )]
    QuotaWithoutRate {
        /// The quota asked for.
        asked_bytes: u64,
        /// The least quota with a limit of 1 B/s.
        least_bytes: u64,
    },
    /// A manual volume without a rate could never do any I/O.
    #[error("a throughput of zero would stop all I/O: ask for at least 1 B/s")]
    ZeroRate,
}

impl Pool {
    /// All the throughput that the pool can give: size × level rate.
    #[must_use]
    pub fn budget(&self) -> BytesPerSecond {
        self.level.rate_for(self.size_bytes)
    }

    /// The limit of a volume under the pool's model.
    #[must_use]
    pub fn limit(&self, volume: Terms) -> BytesPerSecond {
        match self.qos {
            Qos::Auto => self.level.rate_for(volume.quota_bytes),
            Qos::Manual => volume.manual_rate,
        }
    }

    /// Whether `asked` fits in beside the `others` (the pool's volumes without the one that is
    /// being made or changed).
    ///
    /// # Errors
    /// The rule broken and what would be allowed, by quota first, then by throughput.
    pub fn check_volume(
        &self,
        others: impl IntoIterator<Item = Terms>,
        asked: Terms,
    ) -> Result<(), Infeasible> {
        let others = Totals::of(others);
        self.check_usable(asked)?;
        let quotas = others.quotas + u128::from(asked.quota_bytes);
        if quotas > self.size_bytes.into() {
            return Err(Infeasible::Quota {
                asked_bytes: asked.quota_bytes,
                free_bytes: narrow(u128::from(self.size_bytes).saturating_sub(others.quotas)),
                size_needed_bytes: narrow(quotas),
            });
        }
        let rates = others.rates + u128::from(asked.manual_rate.0);
        let budget = self.budget();
        if self.qos == Qos::Manual && rates > budget.0.into() {
            let free = u128::from(budget.0).saturating_sub(others.rates);
            return Err(Infeasible::Throughput {
                asked: asked.manual_rate,
                free: BytesPerSecond(narrow(free)),
                size_needed_bytes: self.level.size_for(BytesPerSecond(narrow(rates))),
            });
        }
        Ok(())
    }

    /// Whether the pool, as it is to be (another size, level or model), carries its `volumes`.
    ///
    /// # Errors
    /// The rule broken and what would be allowed.
    pub fn check(&self, volumes: impl IntoIterator<Item = Terms>) -> Result<(), Infeasible> {
        let mut usable = Ok(());
        let totals = Totals::of(volumes.into_iter().inspect(|&volume| {
            usable = usable.and_then(|()| self.check_usable(volume));
        }));
        usable?;
        if totals.quotas > self.size_bytes.into() {
            return Err(Infeasible::PoolSize {
                asked_bytes: self.size_bytes,
                needed_bytes: narrow(totals.quotas),
            });
        }
        let budget = self.budget();
        if self.qos == Qos::Manual && totals.rates > budget.0.into() {
            let needed = BytesPerSecond(narrow(totals.rates));
            let size_needed_bytes = self.level.size_for(needed);
            return Err(Infeasible::PoolThroughput { budget, needed, size_needed_bytes });
        }
        Ok(())
    }

    /// The slowest level at which the pool would carry its `volumes`, whatever level it has.
    #[must_use]
    pub fn least_level(&self, volumes: impl IntoIterator<Item = Terms>) -> Level {
        match self.qos {
            Qos::Auto => {
                let least = volumes.into_iter().map(|volume| volume.quota_bytes).min();
                Level::least(BytesPerSecond(1), least.unwrap_or(u64::MAX))
            }
            Qos::Manual => {
                let needed = BytesPerSecond(narrow(Totals::of(volumes).rates));
                Level::least(needed, self.size_bytes)
            }
        }
    }

    /// Whether the volume could do any I/O at all.
    fn check_usable(&self, volume: Terms) -> Result<(), Infeasible> {
        match self.qos {
            _ if self.limit(volume) > BytesPerSecond::ZERO => Ok(()),
            Qos::Manual => Err(Infeasible::ZeroRate),
            Qos::Auto => Err(Infeasible::QuotaWithoutRate {
                asked_bytes: volume.quota_bytes,
                least_bytes: self.level.size_for(BytesPerSecond(1)),
            }),
        }
    }
}

/// Sums that can't overflow: 2^64 volumes of 2^64 bytes fit.
struct Totals {
    quotas: u128,
    rates: u128,
}

impl Totals {
    fn of(volumes: impl IntoIterator<Item = Terms>) -> Self {
        volumes.into_iter().fold(Self { quotas: 0, rates: 0 }, |sum, volume| Self {
            quotas: sum.quotas + u128::from(volume.quota_bytes),
            rates: sum.rates + u128::from(volume.manual_rate.0),
        })
    }
}

/// What a change of model does to one volume; `V` is however the caller names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<V> {
    /// The volume.
    pub volume: V,
    /// Its limit now.
    pub before: BytesPerSecond,
    /// Its limit after the change.
    pub after: BytesPerSecond,
}

/// What turning `pool` into the model `to` does to each volume, in the order given. Nothing is
/// changed by asking.
///
/// Auto → manual: each volume keeps the rate it has. Manual → auto: each gets quota × level rate.
/// To carry the plan out, store `after` as the volume's manual rate (for manual) and the model.
///
/// # Errors
/// The pool can't carry its volumes under the model `to`.
pub fn plan<V>(
    pool: Pool,
    to: Qos,
    volumes: impl IntoIterator<Item = (V, Terms)>,
) -> Result<Vec<Change<V>>, Infeasible> {
    let target = Pool { qos: to, ..pool };
    let mut terms = Vec::new();
    let mut changes = Vec::new();
    for (volume, now) in volumes {
        let before = pool.limit(now);
        let then = Terms { manual_rate: before, ..now };
        terms.push(then);
        changes.push(Change { volume, before, after: target.limit(then) });
    }
    target.check(terms)?;
    Ok(changes)
}

fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
