//! Times and figures as people write them. Sizes are in the parent module.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

/// Reads a time such as `30s`, `500ms`, `250us`, `2m`, `1h`, `14d` or `10` (seconds).
///
/// # Errors
/// A sentence that says what is accepted.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let (number, suffix) = split(text);
    let refused = || format!("{text:?} is not a time such as 30s, 500ms, 250us, 2m, 1h or 14d");
    let factor = match suffix {
        "us" | "µs" => 0.000_001,
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
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

/// Writes a length of time in seconds as one rounded figure: `45 s`, `12 min`, `3.5 h`.
#[must_use]
pub fn span(seconds: f64) -> String {
    if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else if seconds < 5400.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
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
    fn times_are_read() {
        assert_eq!(parse_time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_time("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_time("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_time("250µs"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("14d"), Ok(Duration::from_secs(14 * 86_400)));
        for text in ["", "s", "3 days", "-1s", "1e9h"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn figures_read_well() {
        assert_eq!(latency(0.000_85), "850 ns");
        assert_eq!(latency(0.0123), "12.3 µs");
        assert_eq!(latency(614.2), "614 ms");
        assert_eq!(latency(5410.0), "5.41 s");
        assert_eq!(
            (span(59.6), span(720.0), span(12_600.0)),
            ("60 s".into(), "12 min".into(), "3.5 h".into())
        );
    }
}
