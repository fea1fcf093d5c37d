//! Service levels: throughput for each TiB, and the most that one volume has of it.

use super::narrow;
use crate::limits::Ceiling;
use crate::rate::BytesPerSecond;

/// Bytes in one TiB, as an exponent of two.
const TIB_SHIFT: u32 = 40;

/// The service level of a pool: the throughput for each TiB, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level {
    rate_per_tib: BytesPerSecond,
    /// The most that one volume has at this level.
    volume_ceiling: Option<BytesPerSecond>,
}

impl Level {
    /// 16 MiB/s per TiB.
    pub const STANDARD: Self = Self::of_mib(16);
    /// 64 MiB/s per TiB.
    pub const PREMIUM: Self = Self::of_mib(64);
    /// 128 MiB/s per TiB: the name that Azure NetApp Files has for it.
    pub const ULTRA: Self = Self::of_mib(128);
    /// 128 MiB/s per TiB: the name that Google Cloud NetApp Volumes has for it.
    pub const EXTREME: Self = Self::of_mib(128);

    /// The published levels by name, slowest first. Beside them an operator may have others.
    pub const PUBLISHED: [(&str, Self); 4] = [
        ("standard", Self::STANDARD),
        ("premium", Self::PREMIUM),
        ("ultra", Self::ULTRA),
        ("extreme", Self::EXTREME),
    ];

    /// A level of `rate_per_tib`; `None` if that is zero.
    #[must_use]
    pub fn new(rate_per_tib: BytesPerSecond) -> Option<Self> {
        (rate_per_tib > BytesPerSecond::ZERO).then_some(Self { rate_per_tib, volume_ceiling: None })
    }

    /// The level of so many MiB/s for each TiB.
    pub(super) const fn of_mib(mib_per_tib: u64) -> Self {
        Self { rate_per_tib: BytesPerSecond::from_mib(mib_per_tib), volume_ceiling: None }
    }

    /// This level with another ceiling for each volume.
    #[must_use]
    pub const fn with_volume_ceiling(self, volume_ceiling: Option<BytesPerSecond>) -> Self {
        Self { volume_ceiling, ..self }
    }

    /// The most that one volume has at this level: more quota gives it no more.
    #[must_use]
    pub const fn ceiling(self) -> Ceiling {
        Ceiling { rate: self.volume_ceiling, iops: None }
    }

    /// The rate for one TiB.
    #[must_use]
    pub const fn rate_per_tib(self) -> BytesPerSecond {
        self.rate_per_tib
    }

    /// The rate for `bytes` of provisioned size, rounded down to a whole byte per second.
    #[must_use]
    pub fn rate_for(self, bytes: u64) -> BytesPerSecond {
        let product = u128::from(bytes) * u128::from(self.rate_per_tib.0);
        BytesPerSecond(narrow(product >> TIB_SHIFT))
    }

    /// The inverse of [`rate_for`](Self::rate_for): the least size for `rate`, in bytes, saturated
    /// at `u64::MAX`.
    #[must_use]
    pub fn size_for(self, rate: BytesPerSecond) -> u64 {
        narrow((u128::from(rate.0) << TIB_SHIFT).div_ceil(self.rate_per_tib.0.into()))
    }

    /// The slowest level with at least `rate` for `bytes` of provisioned size, saturated at the
    /// fastest level.
    #[must_use]
    pub fn least(rate: BytesPerSecond, bytes: u64) -> Self {
        let per_tib = (u128::from(rate.0) << TIB_SHIFT).div_ceil(u128::from(bytes).max(1));
        Self { rate_per_tib: BytesPerSecond(narrow(per_tib).max(1)), volume_ceiling: None }
    }
}
