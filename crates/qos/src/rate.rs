//! The units of throughput. Not here: parsing what people type, which is the command line's.

use core::fmt;
use core::iter::Sum;

/// Bytes in one MiB.
const MIB: u64 = 1 << 20;

/// A throughput in whole bytes per second, reads and writes together.
///
/// `Display` gives MiB/s with at most four decimals ("1.5625 MiB/s"), and plain B/s below
/// 0.001 MiB/s, where four decimals would hide the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BytesPerSecond(pub u64);

impl BytesPerSecond {
    /// Nothing at all.
    pub const ZERO: Self = Self(0);

    /// `mib` MiB/s (1 MiB = 1,048,576 bytes), capped at the largest representable rate.
    #[must_use]
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(MIB))
    }

    /// `mib` MiB/s rounded to the nearest byte per second, or `None` if it is negative, not a
    /// number, or too large to represent.
    #[must_use]
    pub fn from_mib_f64(mib: f64) -> Option<Self> {
        let bytes = mib * 1_048_576.0 + 0.5;
        // 2^64 as a float is exact, so every value below it fits.
        let fits = mib >= 0.0 && bytes < 18_446_744_073_709_551_616.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked, and dropping the fraction after adding half rounds"
        )]
        fits.then_some(Self(bytes as u64))
    }

    /// The rate in MiB/s, exact for every rate below 8 PiB/s.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53, which the doc states")]
    pub fn mib(self) -> f64 {
        self.0 as f64 / 1_048_576.0
    }
}

/// READs and WRITEs in a second, together, of whatever size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Iops(pub u64);

impl fmt::Display for Iops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} IOPS", self.0)
    }
}

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 <= MIB / 1000 {
            return write!(f, "{} B/s", self.0);
        }
        let ten_thousandths = (u128::from(self.0) * 10_000 + u128::from(MIB / 2)) / u128::from(MIB);
        write!(f, "{}", ten_thousandths / 10_000)?;
        let mut fraction = ten_thousandths % 10_000;
        if fraction > 0 {
            let mut digits = 4;
            while fraction.is_multiple_of(10) {
                fraction /= 10;
                digits -= 1;
            }
            write!(f, ".{fraction:0digits$}")?;
        }
        f.write_str(" MiB/s")
    }
}

impl Sum for BytesPerSecond {
    /// The total, capped at the largest representable rate.
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        Self(rates.fold(0, |total, rate| total.saturating_add(rate.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mib_both_ways() {
        assert_eq!(BytesPerSecond::from_mib(1), BytesPerSecond(1_048_576));
        assert_eq!(BytesPerSecond::from_mib_f64(1.5625), Some(BytesPerSecond(1_638_400)));
        assert_eq!(BytesPerSecond(1_638_400).mib(), 1.5625);
        assert_eq!(BytesPerSecond::from_mib(u64::MAX), BytesPerSecond(u64::MAX));
        assert_eq!(BytesPerSecond::from_mib_f64(0.0), Some(BytesPerSecond::ZERO));
        for bad in [f64::NAN, -1.0, f64::INFINITY, 1.8e13] {
            assert_eq!(BytesPerSecond::from_mib_f64(bad), None, "{bad}");
        }
    }

    #[test]
    fn shown_as_people_write_it() {
        let shown = [
            (1_638_400, "1.5625 MiB/s"),
            (16 << 20, "16 MiB/s"),
            ((4500 << 20) + (1 << 19), "4500.5 MiB/s"),
            (1_048_576 + 1_049, "1.001 MiB/s"),
            (1_049, "0.001 MiB/s"),
            (1_048, "1048 B/s"),
            (0, "0 B/s"),
            (u64::MAX, "17592186044416 MiB/s"),
        ];
        for (bytes, text) in shown {
            assert_eq!(BytesPerSecond(bytes).to_string(), text);
        }
        assert_eq!(Iops(1600).to_string(), "1600 IOPS");
    }

    #[test]
    fn a_sum_never_wraps() {
        let rates = [BytesPerSecond(u64::MAX), BytesPerSecond(1)];
        assert_eq!(rates.into_iter().sum::<BytesPerSecond>(), BytesPerSecond(u64::MAX));
    }
}
