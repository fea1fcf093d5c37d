//! Sizes and rates as people write them: `100GiB`, `1.5TiB`, `48MiB/s`. Binary units only, because
//! contracts are binary; anything that two people may read differently is refused.

mod time;

pub use time::{latency, parse_time, span, three_digits};

use alloc::string::{String, ToString};
use core::fmt;

/// The units, smallest first, each 1,024 of the one before.
const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Digits kept after the point.
const DECIMALS_MAX: usize = 9;

/// Why a text is no size or rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// No number at the start, or too many decimals.
    #[error("{0:?} is not a {1}: use a number and a unit, such as {2}")]
    Malformed(String, &'static str, &'static str),
    /// A number alone.
    #[error("{0:?} has no unit: use {0}MiB{1}, {0}GiB{1} or {0}B{1}")]
    NoUnit(String, &'static str),
    /// `G`, `GB`, `gb`: thousand-based for some, 1,024-based for others.
    #[error("{0:?} is ambiguous: use {1}{2}{3} (powers of 1,024)")]
    Ambiguous(String, String, &'static str, &'static str),
    /// Over 2^64 − 1 bytes.
    #[error("{0:?} exceeds 16 EiB")]
    TooLarge(String),
}

/// Reads a size in bytes. A fraction of a byte is dropped.
///
/// # Errors
/// [`UnitError`]; it says what to write instead.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    parse(text, "", "size", "100GiB or 1.5TiB")
}

/// Reads a rate in bytes per second. A fraction of a byte is dropped.
///
/// # Errors
/// [`UnitError`]; it says what to write instead.
pub fn parse_rate(text: &str) -> Result<u64, UnitError> {
    parse(text, "/s", "rate", "48MiB/s or 1.5625MiB/s")
}

fn parse(
    text: &str,
    suffix: &'static str,
    what: &'static str,
    example: &'static str,
) -> Result<u64, UnitError> {
    let shown: String = text.chars().take(64).collect();
    let malformed = || UnitError::Malformed(shown.clone(), what, example);
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim_start();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty()
        || fraction.len() > DECIMALS_MAX
        || (fraction.is_empty() && number.contains('.'))
    {
        return Err(malformed());
    }
    if unit.is_empty() {
        return Err(UnitError::NoUnit(shown, suffix));
    }
    let unit = unit.strip_suffix(suffix).ok_or_else(malformed)?;
    let Some(power) = UNITS.iter().position(|known| *known == unit) else {
        let meant = UNITS.iter().find(|known| abbreviates(unit, known));
        return Err(meant.map_or_else(malformed, |meant| {
            UnitError::Ambiguous(shown.clone(), number.to_string(), meant, suffix)
        }));
    };
    let too_large = || UnitError::TooLarge(shown.clone());
    let mut digits = whole.to_string() + fraction;
    if digits.len() > 30 {
        digits = digits.trim_start_matches('0').to_string();
    }
    let scaled: u128 = match digits.as_str() {
        "" => 0,
        digits if digits.len() > 30 => return Err(too_large()),
        digits => digits.parse().map_err(|_| malformed())?,
    };
    let decimals = u32::try_from(fraction.len()).map_err(|_| malformed())?;
    let bytes = scaled.checked_mul(1 << (10 * power)).ok_or_else(too_large)? / 10u128.pow(decimals);
    u64::try_from(bytes).map_err(|_| too_large())
}

/// Is `unit` a sloppy way to write `known` (`g`, `G`, `gb`, `GB`, `gib` for `GiB`)?
fn abbreviates(unit: &str, known: &str) -> bool {
    let letter = known.get(..1).unwrap_or_default();
    unit.eq_ignore_ascii_case(known)
        || unit.eq_ignore_ascii_case(letter)
        || (known.len() > 1
            && unit.len() == 2
            && unit.eq_ignore_ascii_case(&(letter.to_string() + "B")))
}

/// Prints bytes for people, with four decimals and a `≈` where these are not all of it; `{:.2}`
/// prints two decimals, say, and no `≈`. `{:#}` prints the exact number, in the largest unit that
/// holds it, and reads back as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

/// Prints bytes per second as [`Bytes`] prints bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub u64);

impl Bytes {
    /// For people, a size that reads back as this or a little more: a lower bound that can be
    /// given back.
    #[must_use]
    pub fn at_least(self) -> String {
        rounded(self.0, BOUND_DECIMALS, Rounding::Up).0
    }

    /// For people, a size that reads back as this or a little less: an upper bound that can be
    /// given back.
    #[must_use]
    pub fn at_most(self) -> String {
        rounded(self.0, BOUND_DECIMALS, Rounding::Down).0
    }
}

impl Rate {
    /// For people, a rate that reads back as this or a little more ([`Bytes::at_least`]).
    #[must_use]
    pub fn at_least(self) -> String {
        Bytes(self.0).at_least() + "/s"
    }

    /// For people, a rate that reads back as this or a little less ([`Bytes::at_most`]).
    #[must_use]
    pub fn at_most(self) -> String {
        Bytes(self.0).at_most() + "/s"
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.0, "", f)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.0, "/s", f)
    }
}

/// Decimals shown unless told otherwise.
const DECIMALS: usize = 4;

/// Decimals of a bound: at worst a MiB beside it where TiB are spoken of.
const BOUND_DECIMALS: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Down,
    Nearest,
    Up,
}

fn show(bytes: u64, suffix: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if f.alternate() {
        return f.pad(&(exact(bytes) + suffix));
    }
    if let Some(decimals) = f.precision() {
        // To `pad`, the precision would be a length to cut at.
        let (text, _) = rounded(bytes, decimals.min(DECIMALS_MAX), Rounding::Nearest);
        return f.write_str(&(text + suffix));
    }
    let (text, is_exact) = rounded(bytes, DECIMALS, Rounding::Nearest);
    let mark = if is_exact { "" } else { "≈" };
    f.pad(&(mark.to_string() + &text + suffix))
}

/// `bytes` in units of 1,024^`power` times 10^`decimals`, and the remainder lost.
fn in_unit(bytes: u64, power: usize, decimals: usize) -> (u128, u128) {
    let scaled = (0..decimals).fold(u128::from(bytes), |value, _| value * 10);
    (scaled >> (10 * power), scaled & ((1 << (10 * power)) - 1))
}

/// `bytes` in the largest unit with at most so many decimals, and whether these are all of it.
fn rounded(bytes: u64, decimals: usize, rounding: Rounding) -> (String, bool) {
    let power = largest_unit(bytes);
    let (value, lost) = in_unit(bytes, power, decimals);
    let up = match rounding {
        Rounding::Down => false,
        Rounding::Nearest => lost << 1 >= 1 << (10 * power),
        Rounding::Up => lost > 0,
    };
    (print(value + u128::from(up), power, decimals), lost == 0)
}

fn exact(bytes: u64) -> String {
    let fits = |power: &usize| in_unit(bytes, *power, DECIMALS).1 == 0;
    let power = (0..=largest_unit(bytes)).rev().find(fits).unwrap_or(0);
    print(in_unit(bytes, power, DECIMALS).0, power, DECIMALS)
}

/// The largest unit of which `bytes` is at least one.
fn largest_unit(bytes: u64) -> usize {
    (1..UNITS.len()).rev().find(|power| bytes >> (10 * power) > 0).unwrap_or(0)
}

/// `scaled`, which is 10^`decimals` times what it stands for, in its unit.
fn print(scaled: u128, power: usize, decimals: usize) -> String {
    let digits = alloc::format!("{scaled:0width$}", width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let unit = UNITS.get(power).copied().unwrap_or("B");
    alloc::format!("{whole}{point}{fraction} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!(parse_bytes("100GiB"), Ok(100 << 30));
        assert_eq!(parse_bytes(" 1.5 TiB "), Ok(3 << 39));
        assert_eq!(parse_bytes("512B"), Ok(512));
        assert_eq!(parse_bytes("0.3B"), Ok(0));
        assert_eq!(parse_rate("1.5625MiB/s"), Ok(1_638_400));
        assert_eq!(parse_bytes("16EiB"), Err(UnitError::TooLarge("16EiB".into())));
        assert_eq!(parse_bytes("15.999999999EiB").map(|bytes| bytes >> 54), Ok(1023));
    }

    #[test]
    fn refuses_what_is_ambiguous_and_says_what_to_write() {
        let message = |text: &str| parse_bytes(text).unwrap_err().to_string();
        assert_eq!(message("100G"), "\"100G\" is ambiguous: use 100GiB (powers of 1,024)");
        assert_eq!(message("1.5tb"), "\"1.5tb\" is ambiguous: use 1.5TiB (powers of 1,024)");
        assert!(message("100").contains("no unit"));
        assert!(message("12 parsecs").contains("is not a size"));
        assert!(message("-1GiB").contains("is not a size"));
        assert!(message("1.GiB").contains("is not a size"));
        assert!(message("1.0000000001GiB").contains("is not a size"));
        assert!(message(&"9".repeat(400)).len() < 300);
        assert!(matches!(parse_rate("48MiB"), Err(UnitError::Malformed(..))));
        let rate = parse_rate("48M/s").unwrap_err().to_string();
        assert_eq!(rate, "\"48M/s\" is ambiguous: use 48MiB/s (powers of 1,024)");
    }

    #[test]
    fn prints_four_decimals_for_people() {
        assert_eq!(Rate(1_638_400).to_string(), "1.5625 MiB/s");
        assert_eq!(Bytes(100 << 30).to_string(), "100 GiB");
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(alloc::format!("{:>8}", Bytes(5)), "     5 B");
        assert_eq!(alloc::format!("{:#}", Bytes(123_456_789)), "123456789 B");
    }

    #[test]
    fn what_is_not_all_of_it_is_marked() {
        assert_eq!(Bytes(123_456_789).to_string(), "≈117.7376 MiB");
        assert_eq!(Bytes(parse_bytes("1.0000001GiB").unwrap()).to_string(), "≈1 GiB");
        assert_eq!(Rate((1 << 40) - 1).to_string(), "≈1024 GiB/s");
        assert_eq!(alloc::format!("{:.2}", Bytes(123_456_789)), "117.74 MiB");
    }

    #[test]
    fn bounds_are_rounded_to_their_side() {
        assert_eq!(Bytes(1_100_585_369_707).at_least(), "1.000977 TiB");
        assert_eq!(Bytes(1_100_585_369_707).at_most(), "1.000976 TiB");
        assert_eq!(Bytes(3 << 40).at_most(), "3 TiB");
        assert_eq!(Rate(1_638_400).at_most(), "1.5625 MiB/s");
        assert_eq!(Bytes(0).at_most(), "0 B");
    }

    proptest! {
        #[test]
        fn the_exact_form_reads_back(bytes: u64) {
            prop_assert_eq!(parse_bytes(&alloc::format!("{:#}", Bytes(bytes))), Ok(bytes));
            prop_assert_eq!(parse_rate(&alloc::format!("{:#}", Rate(bytes))), Ok(bytes));
        }

        #[test]
        fn bounds_can_be_given_back(bytes in 0..=u64::MAX >> 1) {
            prop_assert!(parse_bytes(&Bytes(bytes).at_least()).unwrap() >= bytes);
            prop_assert!(parse_bytes(&Bytes(bytes).at_most()).unwrap() <= bytes);
            prop_assert!(parse_rate(&Rate(bytes).at_most()).unwrap() <= bytes);
            prop_assert!(parse_rate(&Rate(bytes).at_least()).unwrap() >= bytes);
        }

        #[test]
        fn never_panics(text in "\\PC{0,40}") {
            let _ = parse_bytes(&text);
            let _ = parse_rate(&text);
        }
    }
}
