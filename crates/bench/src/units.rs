//! Sizes, times and rates as people write them.

use std::time::Duration;

/// Suffixes of sizes and their factors; the decimal ones for those who mean them.
const SIZES: [(&str, u64); 13] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
    ("B", 1),
];

/// Reads a size such as `8KiB`, `1.5GiB`, `4k` or `512`.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, suffix) = split(text);
    let factor = if suffix.is_empty() {
        Some(1)
    } else {
        SIZES.iter().find(|(name, _)| name.eq_ignore_ascii_case(suffix)).map(|(_, factor)| *factor)
    };
    let refused = || format!("{text:?} is no size; write it as 4096, 8KiB, 1.5GiB or 2TiB");
    let factor = factor.ok_or_else(refused)?;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(refused);
    }
    fraction(number, factor).ok_or_else(refused)
}

/// A decimal fraction times `factor`, if the product is whole: exact, with no floating point.
fn fraction(number: &str, factor: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.')?;
    if part.is_empty() || part.len() > 9 {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(part.len()).ok()?);
    let digits = format!("{whole}{part}").parse::<u128>().ok()?;
    let product = digits.checked_mul(u128::from(factor))?;
    (product % scale == 0).then(|| u64::try_from(product / scale).ok()).flatten()
}

/// Reads a time such as `30s`, `500ms`, `2m`, `1h` or `10` (seconds).
///
/// # Errors
/// A sentence that says what is accepted.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let (number, suffix) = split(text);
    let refused = || format!("{text:?} is no time; write it as 30s, 500ms, 2m or 1h");
    let factor = match suffix {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(refused()),
    };
    let number: f64 = number.parse().map_err(|_| refused())?;
    Duration::try_from_secs_f64(number * factor).map_err(|_| refused())
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    (number, suffix.trim_start())
}

/// Writes a size with the largest binary unit that divides it: `8 KiB`, `1 GiB`, `1000 B`.
#[must_use]
pub fn size(bytes: u64) -> String {
    for (name, factor) in
        [("TiB", 1_u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
    {
        if bytes >= factor && bytes % factor == 0 {
            return format!("{} {name}", bytes / factor);
        }
    }
    format!("{bytes} B")
}

/// Writes a latency given in milliseconds: `850 ns`, `12.3 µs`, `4.56 ms`, `5.41 s`.
#[must_use]
pub fn latency(ms: f64) -> String {
    let (value, unit) = if ms < 0.001 {
        return format!("{:.0} ns", ms * 1e6);
    } else if ms < 1.0 {
        (ms * 1e3, "µs")
    } else if ms < 1000.0 {
        (ms, "ms")
    } else {
        (ms / 1e3, "s")
    };
    format!("{} {unit}", three_digits(value))
}

/// Writes a number with about three significant digits: `1.23`, `12.3`, `1234`.
#[must_use]
pub fn three_digits(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2}")
    } else if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_exactly() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("4k", 4096),
            ("8KiB", 8192),
            ("8 KiB", 8192),
            ("1.5GiB", 3 << 29),
            ("1.5625MiB", 1_638_400),
            ("2TiB", 2 << 40),
            ("1MB", 1_000_000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_that_mean_nothing_are_refused() {
        for text in ["", "KiB", "-1", "1.2.3KiB", "1XiB", "0.3", "99999999TiB", "1.KiB", "1e3"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read() {
        assert_eq!(parse_time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_time("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_time("1.5m"), Ok(Duration::from_secs(90)));
        for text in ["", "s", "3 days", "-1s", "1e9h"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn figures_read_well() {
        assert_eq!(
            (size(8192), size(1000), size(3 << 30)),
            ("8 KiB".into(), "1000 B".into(), "3 GiB".into())
        );
        assert_eq!(latency(0.000_85), "850 ns");
        assert_eq!(latency(0.0123), "12.3 µs");
        assert_eq!(latency(614.2), "614 ms");
        assert_eq!(latency(5410.0), "5.41 s");
    }
}
