//! Provisioned performance with credits for bursts, as Azure Files has it: a share does so many
//! operations a second for good, and more of them as long as it has credits. Exact integer
//! arithmetic; the credits themselves are kept by [`Meters`](crate::Meters).
//!
//! Source: "Understanding performance" of Azure Files, for SSD shares, provisioned v1 and v2.

use crate::limits::{Burst, Limits};
use crate::rate::{BytesPerSecond, Iops};

/// Bytes in one GiB, as an exponent of two.
const GIB_SHIFT: u32 = 30;

/// The most operations a second of any share, with bursts or without.
pub const IOPS_MAX: Iops = Iops(102_400);

/// Provisioned v2: what may be asked for.
pub const V2_IOPS: core::ops::RangeInclusive<Iops> = Iops(3_000)..=IOPS_MAX;

/// Provisioned v2: what may be asked for.
pub const V2_RATE: core::ops::RangeInclusive<BytesPerSecond> =
    BytesPerSecond::from_mib(100)..=BytesPerSecond::from_mib(10_340);

/// Duration of a burst at full speed from full credits on, in seconds.
const BURST_SECONDS: u64 = 3_600;

/// Provisioned v1: everything follows from the size.
#[must_use]
pub fn v1(size_bytes: u64) -> Limits {
    let gib = size_bytes >> GIB_SHIFT;
    let base = gib.saturating_add(3_000);
    let burst = gib.saturating_mul(3).max(10_000);
    let hundredths = |of: u64| {
        let product = u128::from(size_bytes) * u128::from(of);
        u64::try_from(product.div_ceil(100 << GIB_SHIFT)).unwrap_or(u64::MAX)
    };
    let mib = 100_u64.saturating_add(hundredths(4)).saturating_add(hundredths(6));
    bursting(BytesPerSecond::from_mib(mib), Iops(base), Iops(burst))
}

/// Provisioned v2: operations and throughput are asked for apart from the size.
#[must_use]
pub fn v2(rate: BytesPerSecond, iops: Iops) -> Limits {
    bursting(rate, iops, Iops(iops.0.saturating_mul(3).max(10_000)))
}

/// The limits recommended for a share of this size under provisioned v2, which it has unless others
/// are asked for.
#[must_use]
pub fn v2_recommended(size_bytes: u64) -> (BytesPerSecond, Iops) {
    let gib = size_bytes >> GIB_SHIFT;
    let tenths = size_bytes.div_ceil(10 << GIB_SHIFT);
    let rate = BytesPerSecond::from_mib(tenths.saturating_add(100));
    let iops = Iops(gib.saturating_add(3_000));
    (rate.min(*V2_RATE.end()), iops.min(IOPS_MAX))
}

fn bursting(rate: BytesPerSecond, base: Iops, burst: Iops) -> Limits {
    let (base, burst) = (base.min(IOPS_MAX), burst.min(IOPS_MAX));
    let credits = (burst.0 - base.0) * BURST_SECONDS;
    Limits { rate, iops: Some(burst), burst: Some(Burst { base, credits }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn shown(limits: Limits) -> (u64, u64, u64, u64) {
        let burst = limits.burst.unwrap();
        (burst.base.0, limits.iops.unwrap().0, burst.credits, limits.rate.0 >> 20)
    }

    #[test]
    fn the_published_vectors_of_v1() {
        assert_eq!(shown(v1(1_024 * GIB)), (4_024, 10_000, 21_513_600, 203));
        assert_eq!(shown(v1(10_240 * GIB)), (13_240, 30_720, 62_928_000, 1_125));
    }

    #[test]
    fn the_published_vectors_of_v2() {
        for (iops, burst, credits) in [
            (3_000, 10_000, 25_200_000),
            (25_000, 75_000, 180_000_000),
            (50_000, 102_400, 188_640_000),
        ] {
            let limits = v2(BytesPerSecond::from_mib(100), Iops(iops));
            assert_eq!(shown(limits), (iops, burst, credits, 100));
        }
    }

    #[test]
    fn nothing_is_beyond_the_most_there_is() {
        let (base, burst, credits, _) = shown(v1(200_000 * GIB));
        assert_eq!((base, burst, credits), (102_400, 102_400, 0));
        assert_eq!(shown(v1(u64::MAX)).0, 102_400);
        let all = v2(BytesPerSecond(u64::MAX), Iops(u64::MAX));
        assert_eq!((all.iops, all.burst.unwrap().credits), (Some(IOPS_MAX), 0));
    }

    #[test]
    fn the_throughput_of_v1_is_rounded_up_in_both_parts() {
        let mib = |bytes| shown(v1(bytes)).3;
        assert_eq!([mib(0), mib(1), mib(25 * GIB), mib(25 * GIB + 1)], [100, 102, 103, 104]);
        assert_eq!(mib(50 * GIB), 105);
    }

    #[test]
    fn what_is_recommended_for_v2() {
        let recommended = |gib: u64| {
            let (rate, iops) = v2_recommended(gib * GIB);
            (rate.0 >> 20, iops.0)
        };
        assert_eq!(recommended(32), (104, 3_032));
        assert_eq!(recommended(1_024), (203, 4_024));
        assert_eq!(recommended(262_144), (10_340, 102_400));
    }
}
