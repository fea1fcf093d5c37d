//! Values as fio writes them: numbers with units, times, lists, arithmetic in parentheses.

/// Deepest nesting of parentheses.
const NESTING_MAX: u32 = 32;

/// The base of a unit without further letters: 1,024 (fio's default) or 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KbBase {
    /// `k` is 1,024 and `kib` is 1,000.
    Binary,
    /// `k` is 1,000 and `kib` is 1,024.
    Decimal,
}

/// In what a time without unit is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Microseconds.
    Microseconds,
}

/// A whole number with an optional unit of data.
pub(super) fn number(text: &str, base: KbBase) -> Result<u64, String> {
    let text = text.trim();
    if text.starts_with('(') || text.contains(['+', '*', '/', '%', '^']) {
        return Arithmetic { rest: text, unit: Unit::Data(base) }.whole(text);
    }
    let (digits, suffix) = split(text);
    let value = digits_value(digits).ok_or_else(|| no_number(text))?;
    let factor = data_unit(suffix, base).ok_or_else(|| no_number(text))?;
    value.checked_mul(factor).ok_or_else(|| format!("{text:?} is over 2^64"))
}

/// A time in microseconds.
pub(super) fn time_us(text: &str, unit: TimeUnit) -> Result<u64, String> {
    let text = text.trim();
    if text.starts_with('(') {
        return Arithmetic { rest: text, unit: Unit::Time }.whole(text);
    }
    let (digits, suffix) = split(text);
    let refused = || format!("{text:?} is not a time; write it as 30s, 500ms, 2m or 1h");
    let value = digits_value(digits).ok_or_else(refused)?;
    let factor = match (suffix.trim(), unit) {
        ("", TimeUnit::Seconds) => 1_000_000,
        ("", TimeUnit::Microseconds) => 1,
        (suffix, _) => time_unit(suffix).ok_or_else(refused)?,
    };
    value.checked_mul(factor).ok_or_else(|| format!("{text:?} is over 500,000 years"))
}

/// A number of at most 32 bits.
pub(super) fn count(text: &str, base: KbBase) -> Result<u32, String> {
    u32::try_from(number(text, base)?).map_err(|_| format!("{text:?} is over 2^32"))
}

/// The parts for reads and for writes of a list `reads,writes,trims`; one that is left out or
/// empty is `None`, and the last one counts for those after it.
pub(super) fn parts(text: &str) -> [Option<&str>; 2] {
    let pieces: Vec<&str> = text.split(',').map(str::trim).collect();
    let at = |index: usize| pieces.get(index).or(pieces.last()).copied();
    [at(0), at(1)].map(|piece| piece.filter(|piece| !piece.is_empty()))
}

fn no_number(text: &str) -> String {
    if text.contains('.') {
        return format!(
            "{text:?} is not a whole number; fio has no fractions, write 1536k for 1.5m"
        );
    }
    format!("{text:?} is not a number; write it as 4096, 4k, 1m or 0x1000")
}

fn split(text: &str) -> (&str, &str) {
    let digits = |text: &str, hex: bool| {
        text.find(|c: char| !(c.is_ascii_digit() || (hex && c.is_ascii_hexdigit())))
            .unwrap_or(text.len())
    };
    match text.strip_prefix("0x") {
        Some(rest) => text.split_at(2 + digits(rest, true)),
        None => text.split_at(digits(text, false)),
    }
}

fn digits_value(digits: &str) -> Option<u64> {
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}

/// Checked against the program: with a base of 1,024 `kib` is 1,000 and `ki` is 1,024.
fn data_unit(suffix: &str, base: KbBase) -> Option<u64> {
    let suffix = suffix.trim().to_ascii_lowercase();
    if matches!(suffix.as_str(), "" | "b") {
        return Some(1);
    }
    let letter = suffix.chars().next()?;
    let power = u32::try_from("kmgtp".find(letter)?).ok()? + 1;
    let unit: u64 = match (suffix.get(1..)?, base) {
        ("" | "b", KbBase::Binary) | ("ib", KbBase::Decimal) | ("i", _) => 1024,
        ("" | "b", KbBase::Decimal) | ("ib", KbBase::Binary) => 1000,
        _ => return None,
    };
    unit.checked_pow(power)
}

fn time_unit(suffix: &str) -> Option<u64> {
    Some(match suffix.to_ascii_lowercase().as_str() {
        "us" | "usec" => 1,
        "ms" | "msec" => 1000,
        "s" | "sec" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    })
}

#[derive(Clone, Copy)]
enum Unit {
    Data(KbBase),
    Time,
}

/// Arithmetic: `+ - * / % ^` and parentheses, numbers with units.
struct Arithmetic<'a> {
    rest: &'a str,
    unit: Unit,
}

impl Arithmetic<'_> {
    fn whole(mut self, text: &str) -> Result<u64, String> {
        let refused = |why: &str| format!("{text:?} cannot be worked out: {why}");
        let value = self.sum(0).map_err(refused)?;
        if !self.rest.trim().is_empty() {
            return Err(refused("something follows its end"));
        }
        u64::try_from(value).map_err(|_| refused("it is negative or over 2^64"))
    }

    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let rest = self.rest.trim_start();
        let first = rest.chars().next().filter(|c| wanted.contains(c))?;
        self.rest = rest.get(first.len_utf8()..)?;
        Some(first)
    }

    fn sum(&mut self, depth: u32) -> Result<i128, &'static str> {
        let mut value = self.product(depth)?;
        while let Some(sign) = self.take(&['+', '-']) {
            let next = self.product(depth)?;
            let next = if sign == '+' { value.checked_add(next) } else { value.checked_sub(next) };
            value = next.ok_or("it is too large")?;
        }
        Ok(value)
    }

    fn product(&mut self, depth: u32) -> Result<i128, &'static str> {
        let mut value = self.power(depth)?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let next = self.power(depth)?;
            let next = match sign {
                '*' => value.checked_mul(next).ok_or("it is too large"),
                '/' => value.checked_div(next).ok_or("it divides by zero"),
                _ => value.checked_rem(next).ok_or("it divides by zero"),
            };
            value = next?;
        }
        Ok(value)
    }

    fn power(&mut self, depth: u32) -> Result<i128, &'static str> {
        let value = self.atom(depth)?;
        if self.take(&['^']).is_none() {
            return Ok(value);
        }
        if depth >= NESTING_MAX {
            return Err("it is nested too deeply");
        }
        let power = u32::try_from(self.power(depth + 1)?).map_err(|_| "its power is no power")?;
        value.checked_pow(power).ok_or("it is too large")
    }

    fn atom(&mut self, depth: u32) -> Result<i128, &'static str> {
        if self.take(&['(']).is_some() {
            if depth >= NESTING_MAX {
                return Err("it is nested too deeply");
            }
            let value = self.sum(depth + 1)?;
            return self.take(&[')']).map(|_| value).ok_or("a parenthesis is left open");
        }
        let rest = self.rest.trim_start();
        let (digits, after) = split(rest);
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (suffix, after) = after.split_at(end);
        let value = digits_value(digits).ok_or("a number is missing")?;
        let factor = match self.unit {
            Unit::Data(base) => data_unit(suffix, base),
            Unit::Time if suffix.is_empty() => Some(1),
            Unit::Time => time_unit(suffix),
        };
        self.rest = after;
        let factor = factor.ok_or("a unit is unknown")?;
        i128::from(value).checked_mul(i128::from(factor)).ok_or("it is too large")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Result<u64, String> {
        number(text, KbBase::Binary)
    }

    #[test]
    fn numbers_have_fio_s_units() {
        for (text, wanted) in [
            ("4096", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("4KB", 4096),
            ("4ki", 4096),
            ("8KiB", 8000),
            ("1mib", 1_000_000),
            ("2g", 2 << 30),
            ("1t", 1 << 40),
            ("0x1000", 4096),
            ("512b", 512),
        ] {
            assert_eq!(bytes(text), Ok(wanted), "{text}");
        }
        assert_eq!(number("8k", KbBase::Decimal), Ok(8000));
        assert_eq!(number("8KiB", KbBase::Decimal), Ok(8192));
        for wrong in
            ["", "k", "1.5m", "-1", "4kk", "4kibb", "99999999999999999999", "20000000p", "1z"]
        {
            bytes(wrong).unwrap_err();
        }
        assert!(bytes("1.5m").unwrap_err().contains("1536k"));
    }

    #[test]
    fn arithmetic_is_worked_out() {
        for (text, wanted) in [
            ("(4*1k)", 4096),
            ("(1m-4k)", (1 << 20) - 4096),
            ("(2^10)", 1024),
            ("(2^3^2)", 512),
            ("(7%4+6/3)", 5),
            ("8*4", 32),
            ("(1 + 2) * 3", 9),
        ] {
            assert_eq!(bytes(text), Ok(wanted), "{text}");
        }
        for wrong in ["(1", "(1-2)", "(1/0)", "(1%0)", "(2^200)", "()", "(1)2", "(1 parsec)"] {
            bytes(wrong).unwrap_err();
        }
        assert!(bytes(&"(".repeat(100_000)).unwrap_err().contains("nested"));
        assert!(bytes(&format!("(2{})", "^1".repeat(100_000))).unwrap_err().contains("nested"));
    }

    #[test]
    fn times_have_fio_s_units() {
        let seconds = |text| time_us(text, TimeUnit::Seconds);
        assert_eq!(seconds("600"), Ok(600_000_000));
        assert_eq!(seconds("10m"), Ok(600_000_000));
        assert_eq!(seconds("2H"), Ok(7_200_000_000));
        assert_eq!(seconds("1d"), Ok(86_400_000_000));
        assert_eq!(seconds("500ms"), Ok(500_000));
        assert_eq!(seconds("7us"), Ok(7));
        assert_eq!(seconds("(2s+500ms)"), Ok(2_500_000));
        assert_eq!(time_us("500", TimeUnit::Microseconds), Ok(500));
        for wrong in ["", "1.5s", "3 days", "-1"] {
            seconds(wrong).unwrap_err();
        }
    }

    #[test]
    fn parts_are_for_reads_and_writes() {
        assert_eq!(parts("8k"), [Some("8k"), Some("8k")]);
        assert_eq!(parts("8k,32k"), [Some("8k"), Some("32k")]);
        assert_eq!(parts("8k,"), [Some("8k"), None]);
        assert_eq!(parts(",8k"), [None, Some("8k")]);
        assert_eq!(parts("8k,32k,"), [Some("8k"), Some("32k")]);
    }
}
