//! Times as Windows has them, and the changes that a request asks for.

use weir_core::Timestamp;

/// A time in units of 100 ns since 1601-01-01 UTC (MS-DTYP §2.3.3, FILETIME). As a value of a file
/// never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NtTime(pub i64);

/// Units in a second.
const UNITS: i64 = 10_000_000;
/// Seconds from 1601 to 1970.
const EPOCH_SECS: i64 = 11_644_473_600;

impl From<Timestamp> for NtTime {
    /// Rounded towards the past; before 1601 the beginning of 1601, and after 30828 the last time
    /// there is.
    fn from(time: Timestamp) -> Self {
        let units = time.secs.saturating_add(EPOCH_SECS).max(0).saturating_mul(UNITS);
        let before = time.secs < EPOCH_SECS.saturating_neg();
        let part = if before { 0 } else { i64::from(time.nanos / 100) };
        Self(units.saturating_add(part))
    }
}

impl From<NtTime> for Timestamp {
    fn from(time: NtTime) -> Self {
        let part = u32::try_from(time.0.rem_euclid(UNITS)).unwrap_or(0);
        Self {
            secs: time.0.div_euclid(UNITS).saturating_sub(EPOCH_SECS),
            nanos: part.saturating_mul(100),
        }
    }
}

/// The change of one time that a request asks for (MS-FSCC §2.4.7, FileBasicInformation).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeChange {
    /// Leave it (0).
    #[default]
    Keep,
    /// Set it.
    To(NtTime),
    /// Leave it, and let no operation through this open change it (-1).
    Stop,
    /// Let operations through this open change it again (-2).
    Resume,
}

impl TimeChange {
    /// The change for a number of the wire, or `None` for one without a meaning.
    #[must_use]
    pub const fn from_wire(value: i64) -> Option<Self> {
        match value {
            0 => Some(Self::Keep),
            -1 => Some(Self::Stop),
            -2 => Some(Self::Resume),
            1.. => Some(Self::To(NtTime(value))),
            _ => None,
        }
    }

    /// The number on the wire.
    #[must_use]
    pub const fn to_wire(self) -> i64 {
        match self {
            Self::Keep => 0,
            Self::To(NtTime(value)) => value,
            Self::Stop => -1,
            Self::Resume => -2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_epochs_are_369_years_apart() {
        let unix = Timestamp { secs: 0, nanos: 0 };
        assert_eq!(NtTime::from(unix), NtTime(116_444_736_000_000_000));
        let time = Timestamp { secs: 1_700_000_000, nanos: 123_456_789 };
        assert_eq!(NtTime::from(time), NtTime(133_444_736_001_234_567));
        assert_eq!(Timestamp::from(NtTime(133_444_736_001_234_567)).nanos, 123_456_700);
        let before = Timestamp { secs: -1, nanos: 999_999_999 };
        assert_eq!(NtTime::from(before), NtTime(116_444_735_999_999_999));
    }

    #[test]
    fn times_out_of_range_become_the_nearest() {
        for secs in [i64::MIN, -EPOCH_SECS - 1] {
            assert_eq!(NtTime::from(Timestamp { secs, nanos: 999_999_999 }), NtTime(0));
        }
        assert_eq!(NtTime::from(Timestamp { secs: i64::MAX, nanos: 0 }), NtTime(i64::MAX));
    }

    #[test]
    fn special_numbers_are_changes() {
        assert_eq!(TimeChange::from_wire(0), Some(TimeChange::Keep));
        assert_eq!(TimeChange::from_wire(-1), Some(TimeChange::Stop));
        assert_eq!(TimeChange::from_wire(-2), Some(TimeChange::Resume));
        assert_eq!(TimeChange::from_wire(-3), None);
        assert_eq!(TimeChange::from_wire(i64::MIN), None);
    }

    proptest! {
        #[test]
        fn every_time_survives(units in 0..=i64::MAX, secs: i64, nanos in 0..1_000_000_000_u32) {
            prop_assert_eq!(NtTime::from(Timestamp::from(NtTime(units))), NtTime(units));
            let (a, b) = (Timestamp { secs, nanos }, Timestamp { secs, nanos: 0 });
            prop_assert!(NtTime::from(b) <= NtTime::from(a) && NtTime::from(b).0 >= 0);
        }

        #[test]
        fn every_change_survives(value in -2..=i64::MAX) {
            prop_assert_eq!(TimeChange::from_wire(value).map(TimeChange::to_wire), Some(value));
        }
    }
}
