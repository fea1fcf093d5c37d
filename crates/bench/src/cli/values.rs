//! Parsers for option values other than numbers.

use std::time::Duration;
use weir_core::units::parse_rate;
use weir_core::units::parse_time;
use weir_load::workload::Rate;

/// A rate: operations a second as a number, or bytes a second with a unit.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    let refused = || {
        format!(
            "{text:?} is not a rate: use operations per second such as 5000, or bytes per second such as 64MiB/s"
        )
    };
    if let Ok(operations) = text.parse::<f64>() {
        let sound = operations.is_finite() && operations > 0.0;
        return sound.then_some(Rate::Operations(operations)).ok_or_else(refused);
    }
    let bytes = parse_rate(text).map_err(|_| refused())?;
    let bytes = u32::try_from(bytes >> 10).map(|kibibytes| f64::from(kibibytes) * 1024.0);
    match bytes {
        Ok(bytes) if bytes > 0.0 => Ok(Rate::Bytes(bytes)),
        _ => Err(refused()),
    }
}

/// A time with its unit: `30s`, `5min`; zero needs none. A number alone is refused as it is for
/// sizes, although only one unit is likely.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let bare = text.trim();
    let is_number = bare.parse::<f64>().is_ok_and(|number| number > 0.0 && number.is_finite());
    if is_number {
        return Err(format!("{bare:?} has no unit: use {bare}s, {bare}min or {bare}h"));
    }
    parse_time(text)
}

/// A network distance in microseconds: `200us`, `2ms`.
pub(super) fn client_delay(text: &str) -> Result<u64, String> {
    let refused = || format!("{text:?} is not a network round-trip time such as 200us or 2ms");
    let us = match text.strip_suffix("us").or_else(|| text.strip_suffix("µs")) {
        Some(number) => number.trim().parse().map_err(|_| refused())?,
        None if text.ends_with('s') => {
            let time = parse_time(text).map_err(|_| refused())?;
            u64::try_from(time.as_micros()).map_err(|_| refused())?
        }
        None if text == "0" => 0,
        None => return Err(refused()),
    };
    if us > 10_000_000 { Err(format!("{text:?} is over 10s")) } else { Ok(us) }
}

/// A fraction: `1/100`, `0.01` or `1%`.
pub(super) fn part(text: &str) -> Result<f64, String> {
    let number = |word: &str| word.trim().parse::<f64>().ok();
    let part = if let Some((above, below)) = text.split_once('/') {
        number(above).zip(number(below)).map(|(above, below)| above / below)
    } else if let Some(percent) = text.strip_suffix('%') {
        number(percent).map(|percent| percent / 100.0)
    } else {
        number(text)
    };
    part.filter(|part| *part > 0.0 && *part <= 1.0)
        .ok_or_else(|| format!("{text:?} is not a fraction: use 1/100, 1% or 0.01, or auto"))
}

/// A setting of the server: `metadata-cache=off`.
pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    let sound = |word: &&str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        !word.is_empty() && word.len() <= 64 && word.chars().all(plain)
    };
    let parts = text.split_once('=');
    let parts = parts.filter(|(name, value)| sound(name) && sound(value));
    parts.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| {
        format!("{text:?} is not a setting: use NAME=VALUE in letters, digits, -, _ and .")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_a_name_and_a_value() {
        let cache = ("metadata-cache".to_owned(), "off".to_owned());
        assert_eq!(setting("metadata-cache=off"), Ok(cache));
        for text in ["metadata-cache", "=off", "cache=", "a=b=c", "a b=c"] {
            assert!(setting(text).unwrap_err().contains("NAME=VALUE"), "{text}");
        }
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(time("2min"), Ok(Duration::from_secs(120)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert_eq!(time(" 2 "), Err("\"2\" has no unit: use 2s, 2min or 2h".to_owned()));
        assert!(!time("inf").unwrap_err().contains("infs"));
        assert!(time("1.5").is_err() && time("soon").unwrap_err().contains("is not a time"));
    }

    #[test]
    fn parts_are_over_nothing_and_at_most_all() {
        assert_eq!(part("1/100"), Ok(0.01));
        assert_eq!(part("50%"), Ok(0.5));
        assert_eq!(part("1"), Ok(1.0));
        for text in ["0", "2", "1/0", "x", "-1/2", "101%"] {
            assert!(part(text).is_err(), "{text}");
        }
    }
}
