//! Sizing: the size of a volume and its pool for a wanted rate, the rate of a size, the requests in
//! flight for a rate by Little's law, and the TCP window for a round trip. Exact integer
//! arithmetic, rounded up.
//!
//! Not here: the capacity of the disks, which is [`admission`](crate::admission)'s, and what is
//! free in a pool that exists.

use crate::burst;
use crate::contract::{Bought, Demand, Floors, Level, Model, Pool, Qos};
use crate::limits::Limits;
use crate::rate::{BytesPerSecond, Iops};
use weir_core::units::{Bytes, Rate};

const SECOND: u128 = 1_000_000_000;

/// The limits that a volume is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A throughput.
    Rate {
        /// Reads and writes together.
        rate: BytesPerSecond,
        /// Operations a second, if they matter. Models without a limit of them always have enough.
        iops: Option<Iops>,
    },
    /// Operations alone. Models that limit them have these and the least throughput of the model;
    /// the others need the throughput that these operations move.
    Operations {
        /// Operations a second.
        iops: Iops,
        /// Size of each READ and WRITE, in bytes.
        request_bytes: u64,
    },
}

impl Wanted {
    /// The throughput and the operations that the model must have for it.
    fn of(self, qos: Qos, bounds: &Bounds) -> (BytesPerSecond, Option<Iops>) {
        match self {
            Self::Rate { rate, iops } => (rate, iops),
            Self::Operations { iops, request_bytes } => {
                let rate = match qos {
                    Qos::Auto | Qos::Manual | Qos::Shared | Qos::Flexible => {
                        rate_of(iops, request_bytes)
                    }
                    Qos::Custom => bounds.custom.rate,
                    // The least volume has more.
                    Qos::ProvisionedV1 => BytesPerSecond::ZERO,
                    Qos::ProvisionedV2 => *burst::V2_RATE.start(),
                };
                (rate, Some(iops))
            }
        }
    }
}

/// The sizes and rates that can be provisioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The smallest volume, in bytes.
    pub volume_bytes_min: u64,
    /// The smallest pool, in bytes.
    pub pool_bytes_min: u64,
    /// The largest volume and the largest pool, in bytes.
    pub bytes_max: u64,
    /// The highest rate of a volume.
    pub rate_max: BytesPerSecond,
    /// The least that custom pools purchase.
    pub custom: Floors,
}

/// The figures to provision for the limits that were [`Wanted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The least quota of the volume; `None` if the limits do not depend on it.
    pub quota_bytes: Option<u64>,
    /// The least size of the pool; `None` if it only has to hold the quotas.
    pub pool_bytes: Option<u64>,
    /// The figures that the pool purchases.
    pub bought: Bought,
    /// The figures that are assigned to the volume.
    pub assigned: Bought,
    /// The limits of the volume.
    pub limits: Limits,
}

/// Why a model does not have the limits that were [`Wanted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// The volume ceiling of the service level.
    #[error("the volume ceiling of the level is {}", shown(.0))]
    Ceiling(BytesPerSecond),
    /// The highest rate of the model.
    #[error("the model has at most {} for a volume", shown(.0))]
    Rate(BytesPerSecond),
    /// The most operations of the model.
    #[error("the model has at most {0} for a volume")]
    Iops(Iops),
    /// The largest size of a volume or pool, in bytes.
    #[error("needs a volume or pool of more than {}, the largest size", Bytes(*.0))]
    Size(u64),
}

/// A rate in its largest unit.
const fn shown(rate: &BytesPerSecond) -> Rate {
    Rate(rate.0)
}

/// The least that has to be provisioned in a pool of this model and level.
///
/// # Errors
/// [`Unreachable`] with the most there is.
pub fn size_for(
    qos: Qos,
    level: Level,
    wanted: Wanted,
    bounds: &Bounds,
) -> Result<Size, Unreachable> {
    let (rate, iops) = wanted.of(qos, bounds);
    if rate > bounds.rate_max {
        return Err(Unreachable::Rate(bounds.rate_max));
    }
    let model = Model::new(qos, level, Bought::default());
    if let Some(most) = model.volume_ceiling().rate.filter(|most| rate > *most) {
        return Err(Unreachable::Ceiling(most));
    }
    let plain = Size {
        quota_bytes: None,
        pool_bytes: None,
        bought: Bought::default(),
        assigned: Bought::default(),
        limits: Limits::of(rate),
    };
    let assigned = Bought { rate: Some(rate), iops: None };
    let size = match qos {
        Qos::Auto => {
            let quota = Some(level.size_for(rate));
            Size { quota_bytes: quota, pool_bytes: quota, ..plain }
        }
        Qos::Manual | Qos::Shared => {
            Size { pool_bytes: Some(level.size_for(rate)), assigned, ..plain }
        }
        Qos::Flexible => {
            let bought = rate.max(Model::FLEXIBLE_RATE_MIN);
            let beyond = (rate > Model::FLEXIBLE_RATE_MIN).then_some(bought);
            let pool_bytes = beyond.map(|rate| Model::FLEXIBLE_PER_TIB_MAX.size_for(rate));
            let bought = Bought { rate: Some(bought), iops: None };
            Size { pool_bytes, bought, assigned, ..plain }
        }
        Qos::Custom => custom((rate, iops), bounds.custom, plain)?,
        Qos::ProvisionedV1 => provisioned_v1((rate, iops), bounds.bytes_max, plain)?,
        Qos::ProvisionedV2 => {
            most(rate, *burst::V2_RATE.end(), iops, *burst::V2_IOPS.end())?;
            let rate = rate.max(*burst::V2_RATE.start());
            let iops = iops.unwrap_or_default().max(*burst::V2_IOPS.start());
            let assigned = Bought { rate: Some(rate), iops: Some(iops) };
            Size { assigned, limits: burst::v2(rate, iops), ..plain }
        }
    };
    size.within(qos, level, bounds)
}

impl Size {
    /// The size, raised to the least sizes, with the limits that a volume then has.
    fn within(self, qos: Qos, level: Level, bounds: &Bounds) -> Result<Self, Unreachable> {
        let quota_bytes = self.quota_bytes.map(|bytes| bytes.max(bounds.volume_bytes_min));
        let least = bounds.pool_bytes_min.max(quota_bytes.unwrap_or(0));
        let pool_bytes = self.pool_bytes.map(|bytes| bytes.max(least));
        if pool_bytes.is_some_and(|bytes| bytes > bounds.bytes_max) {
            return Err(Unreachable::Size(bounds.bytes_max));
        }
        let limits = match (qos, quota_bytes, pool_bytes) {
            (Qos::Auto | Qos::ProvisionedV1, Some(quota), Some(pool)) => {
                limits_of(qos, level, quota, pool)
            }
            (Qos::Shared, _, Some(pool)) => limits_of(qos, level, pool, pool),
            _ => self.limits,
        };
        Ok(Self { quota_bytes, pool_bytes, limits, ..self })
    }
}

fn custom(
    (rate, iops): (BytesPerSecond, Option<Iops>),
    floors: Floors,
    plain: Size,
) -> Result<Size, Unreachable> {
    most(rate, Model::CUSTOM_RATE_MAX, iops, Model::CUSTOM_IOPS_MAX)?;
    let iops = iops.unwrap_or_else(|| Model::iops_with(rate));
    let bought = Bought { rate: Some(rate.max(floors.rate)), iops: Some(iops.max(floors.iops)) };
    let assigned = Bought { rate: Some(rate), iops: Some(iops) };
    let limits = Limits { iops: Some(iops), ..Limits::of(rate) };
    Ok(Size { bought, assigned, limits, ..plain })
}

/// The base and not the burst is what a volume has for good, so it must be enough.
fn provisioned_v1(
    (rate, iops): (BytesPerSecond, Option<Iops>),
    bytes_max: u64,
    plain: Size,
) -> Result<Size, Unreachable> {
    let largest = burst::v1(bytes_max).rate;
    most(rate, largest, iops, burst::IOPS_MAX)?;
    let is_enough = |bytes: u64| {
        let limits = burst::v1(bytes);
        let base = limits.burst.map(|burst| burst.base);
        limits.rate >= rate && base >= iops
    };
    // Both grow with the size.
    let (mut low, mut high) = (1, bytes_max);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(Size { quota_bytes: Some(low), pool_bytes: Some(low), ..plain })
}

fn most(
    rate: BytesPerSecond,
    rate_most: BytesPerSecond,
    iops: Option<Iops>,
    iops_most: Iops,
) -> Result<(), Unreachable> {
    if rate > rate_most {
        return Err(Unreachable::Rate(rate_most));
    }
    match iops {
        Some(iops) if iops > iops_most => Err(Unreachable::Iops(iops_most)),
        _ => Ok(()),
    }
}

/// The limits of a volume of this quota that has a pool of `pool_bytes` to itself, and all that
/// such a pool may have.
#[must_use]
pub fn limits_of(qos: Qos, level: Level, quota_bytes: u64, pool_bytes: u64) -> Limits {
    let flexible = Model::FLEXIBLE_PER_TIB_MAX.rate_for(pool_bytes).max(Model::FLEXIBLE_RATE_MIN);
    let (rate, iops) = match qos {
        Qos::Flexible => (Some(flexible), None),
        Qos::Custom => (Some(Model::CUSTOM_RATE_MAX), Some(Model::CUSTOM_IOPS_MAX)),
        Qos::Manual => (Some(level.rate_for(pool_bytes)), None),
        Qos::Auto | Qos::Shared | Qos::ProvisionedV1 | Qos::ProvisionedV2 => (None, None),
    };
    let model = Model::new(qos, level, Bought { rate, iops });
    Pool { size_bytes: pool_bytes, model }.limits(Demand { quota_bytes, rate, iops })
}

/// The rate that `iops` requests of `request_bytes` each move.
#[must_use]
pub const fn rate_of(iops: Iops, request_bytes: u64) -> BytesPerSecond {
    BytesPerSecond(iops.0.saturating_mul(request_bytes))
}

/// Operations a second that move `rate` in requests of `request_bytes` each.
#[must_use]
pub fn operations_for(rate: BytesPerSecond, request_bytes: u64) -> Iops {
    Iops(rate.0.div_ceil(request_bytes.max(1)))
}

/// Requests that must be in flight so that `operations` a second are answered, each of them in
/// `latency_nanos` (Little's law). At least one.
#[must_use]
pub fn in_flight(operations: Iops, latency_nanos: u64) -> u64 {
    let product = u128::from(operations.0) * u128::from(latency_nanos);
    narrow(product.div_ceil(SECOND)).max(1)
}

/// The depth of each connection with which `clients`, of so many `connections` each, have
/// `outstanding` requests in flight.
#[must_use]
pub fn depth(outstanding: u64, clients: u64, connections: u64) -> u64 {
    outstanding.div_ceil(clients.saturating_mul(connections).max(1))
}

/// Bytes that are under way on a connection that carries `rate` over a round trip of `nanos`: the
/// bandwidth–delay product, which the TCP window must have.
#[must_use]
pub fn window(rate: BytesPerSecond, nanos: u64) -> u64 {
    narrow((u128::from(rate.0) * u128::from(nanos)).div_ceil(SECOND))
}

fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GIB: u64 = 1 << 30;
    const TIB: u64 = 1 << 40;

    const BOUNDS: Bounds = Bounds {
        volume_bytes_min: 1,
        pool_bytes_min: 1,
        bytes_max: 1 << 60,
        rate_max: BytesPerSecond(1 << 60),
        custom: Floors { rate: BytesPerSecond::from_mib(64), iops: Iops(1024) },
    };

    fn mib(rate: u64) -> BytesPerSecond {
        BytesPerSecond::from_mib(rate)
    }

    fn size(qos: Qos, rate: u64, iops: Option<u64>) -> Result<Size, Unreachable> {
        let wanted = Wanted::Rate { rate: mib(rate), iops: iops.map(Iops) };
        size_for(qos, Level::PREMIUM, wanted, &BOUNDS)
    }

    #[test]
    fn the_published_example_of_sizing_is_met() {
        // 4,500 MiB/s at premium: 70.3125 TiB.
        let found = size(Qos::Auto, 4500, None).unwrap();
        assert_eq!(found.quota_bytes, Some(70 * TIB + 320 * GIB));
        assert_eq!(found.limits, Limits::of(mib(4500)));
        let quota = 70 * TIB + 320 * GIB;
        assert_eq!(limits_of(Qos::Auto, Level::PREMIUM, quota, quota).rate, mib(4500));
        let manual = size(Qos::Manual, 4500, None).unwrap();
        assert_eq!((manual.quota_bytes, manual.pool_bytes), (None, found.quota_bytes));
        assert_eq!(manual.assigned.rate, Some(mib(4500)));
    }

    #[test]
    fn what_pools_purchase_is_within_their_bounds() {
        let flexible = size(Qos::Flexible, 640, None).unwrap();
        assert_eq!((flexible.bought.rate, flexible.pool_bytes), (Some(mib(640)), Some(TIB)));
        let little = size(Qos::Flexible, 20, None).unwrap();
        assert_eq!((little.bought.rate, little.pool_bytes), (Some(mib(128)), None));
        let custom = size(Qos::Custom, 20, None).unwrap();
        assert_eq!(custom.bought, Bought { rate: Some(mib(64)), iops: Some(Iops(1024)) });
        assert_eq!(custom.limits.iops, Some(Iops(320)));
        assert_eq!(size(Qos::Custom, 5121, None), Err(Unreachable::Rate(mib(5120))));
        let iops = Err(Unreachable::Iops(Iops(160_000)));
        assert_eq!(size(Qos::Custom, 20, Some(160_001)), iops);
        let v2 = size(Qos::ProvisionedV2, 20, Some(25_000)).unwrap();
        assert_eq!(v2.assigned, Bought { rate: Some(mib(100)), iops: Some(Iops(25_000)) });
        assert_eq!(size(Qos::ProvisionedV2, 10_341, None), Err(Unreachable::Rate(mib(10_340))));
    }

    #[test]
    fn operations_alone_need_a_throughput_only_where_they_follow_from_it() {
        let size = |qos, iops| {
            let wanted = Wanted::Operations { iops: Iops(iops), request_bytes: 64 << 10 };
            size_for(qos, Level::PREMIUM, wanted, &BOUNDS)
        };
        let custom = size(Qos::Custom, 100_000).unwrap();
        let both = Bought { rate: Some(mib(64)), iops: Some(Iops(100_000)) };
        assert_eq!((custom.bought, custom.assigned), (both, both));
        assert_eq!((custom.limits.rate, custom.limits.iops), (mib(64), Some(Iops(100_000))));
        let v2 = size(Qos::ProvisionedV2, 100_000).unwrap();
        assert_eq!(v2.assigned, Bought { rate: Some(mib(100)), ..both });
        let v1 = size(Qos::ProvisionedV1, 4024).unwrap();
        assert_eq!(v1.quota_bytes, Some(1024 * GIB), "for the operations");
        for (qos, most) in [(Qos::Custom, 160_000), (Qos::ProvisionedV1, 102_400)] {
            assert_eq!(size(qos, most + 1), Err(Unreachable::Iops(Iops(most))));
        }
        // 6,250 MiB/s at 64 MiB/s for each TiB.
        let auto = size(Qos::Auto, 100_000).unwrap();
        assert_eq!(auto.quota_bytes, Some(100_000 * GIB));
        let flexible = size(Qos::Flexible, 100_000).unwrap();
        assert_eq!(flexible.bought.rate, Some(mib(6250)));
    }

    #[test]
    fn provisioned_v1_has_the_rate_and_the_base_operations() {
        // 1,024 GiB: 203 MiB/s, as 41 + 62 are reached at the same byte.
        let found = size(Qos::ProvisionedV1, 203, None).unwrap();
        assert!(found.quota_bytes.unwrap() <= 1024 * GIB);
        assert_eq!(found.limits.rate, mib(203));
        let found = size(Qos::ProvisionedV1, 100, Some(4024)).unwrap();
        assert_eq!(found.quota_bytes, Some(1024 * GIB), "for the operations");
    }

    #[test]
    fn a_ceiling_of_the_level_is_never_exceeded_by_more_quota() {
        let level = Level::PREMIUM.with_volume_ceiling(Some(mib(1000)));
        let wanted = |rate| Wanted::Rate { rate: mib(rate), iops: None };
        for qos in [Qos::Auto, Qos::Manual, Qos::Shared] {
            assert!(size_for(qos, level, wanted(1000), &BOUNDS).is_ok());
            let refused = size_for(qos, level, wanted(1001), &BOUNDS);
            assert_eq!(refused, Err(Unreachable::Ceiling(mib(1000))));
            assert_eq!(limits_of(qos, level, 100 * TIB, 100 * TIB).rate, mib(1000));
        }
        assert!(size_for(Qos::Custom, level, wanted(1001), &BOUNDS).is_ok());
    }

    #[test]
    fn refusals_name_the_most_there_is_with_its_unit() {
        let said = [
            (Unreachable::Ceiling(mib(1000)), "the volume ceiling of the level is 1000 MiB/s"),
            (Unreachable::Rate(mib(5120)), "the model has at most 5 GiB/s for a volume"),
            (Unreachable::Iops(Iops(7)), "the model has at most 7 IOPS for a volume"),
            (
                Unreachable::Size(1 << 60),
                "needs a volume or pool of more than 1 EiB, the largest size",
            ),
        ];
        for (unreachable, words) in said {
            assert_eq!(unreachable.to_string(), words);
        }
    }

    #[test]
    fn sizes_are_within_what_can_be_provisioned() {
        let bounds = Bounds { volume_bytes_min: 50 * GIB, pool_bytes_min: TIB, ..BOUNDS };
        let size = |qos, rate| {
            let wanted = Wanted::Rate { rate, iops: None };
            size_for(qos, Level::STANDARD, wanted, &bounds)
        };
        // The limits are those of the least sizes, and not those that were wanted.
        let auto = size(Qos::Auto, BytesPerSecond(1)).unwrap();
        assert_eq!((auto.quota_bytes, auto.pool_bytes), (Some(50 * GIB), Some(TIB)));
        assert_eq!(auto.limits.rate, BytesPerSecond(819_200));
        let shared = size(Qos::Shared, BytesPerSecond(1)).unwrap();
        assert_eq!((shared.pool_bytes, shared.limits.rate), (Some(TIB), mib(16)));
        let v1 = size(Qos::ProvisionedV1, BytesPerSecond(1)).unwrap();
        assert_eq!((v1.quota_bytes, v1.limits), (Some(50 * GIB), burst::v1(50 * GIB)));
        for qos in [Qos::Auto, Qos::Manual, Qos::Shared, Qos::Flexible] {
            // 1 EiB at standard: 2^20 TiB of 16 MiB/s.
            let most = mib(640 << 20);
            let beyond = size(qos, BytesPerSecond(most.0 + 1));
            assert_eq!(beyond, Err(Unreachable::Size(1 << 60)), "{qos}");
            let beyond = size(qos, BytesPerSecond((1 << 60) + 1));
            assert_eq!(beyond, Err(Unreachable::Rate(BytesPerSecond(1 << 60))), "{qos}");
        }
        assert_eq!(size(Qos::Auto, mib(16 << 20)).unwrap().quota_bytes, Some(1 << 60));
    }

    #[test]
    fn requests_in_flight_follow_littles_law() {
        // The published rows of an enforced contract: 1,280 outstanding.
        assert_eq!(in_flight(Iops(2_053), 614_000_000), 1_261);
        assert_eq!(operations_for(mib(16), 8 << 10), Iops(2_048));
        assert_eq!(in_flight(Iops(0), 5), 1);
        assert_eq!((depth(1_280, 1, 1), depth(1_280, 4, 8), depth(1, 4, 8)), (1_280, 40, 1));
        // 1 GiB/s over 10 ms.
        assert_eq!(window(mib(1024), 10_000_000), 10_737_419);
        assert_eq!(window(BytesPerSecond(u64::MAX), u64::MAX), u64::MAX);
    }

    proptest! {
        /// A size that is found is enough, and a byte less is not.
        #[test]
        fn sizes_are_least(rate in 1_u64..20_000, iops in prop::option::of(1_u64..102_400)) {
            for qos in [Qos::Auto, Qos::ProvisionedV1] {
                let found = size(qos, rate, iops).unwrap();
                let enough = |bytes| {
                    let limits = limits_of(qos, Level::PREMIUM, bytes, bytes);
                    let base = limits.burst.map(|burst| burst.base.0);
                    limits.rate >= mib(rate) && (base.is_none() || base >= iops)
                };
                let quota = found.quota_bytes.unwrap();
                prop_assert!(enough(quota));
                prop_assert!(quota == 1 || !enough(quota - 1));
            }
        }
    }
}
