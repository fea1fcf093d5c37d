//! Parsers for values on the command line.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_core::units::{parse_bytes, parse_rate};

/// A size, such as `1.5TiB`, in bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

/// A ceiling in bytes per second, or `none`.
pub(crate) fn ceiling_rate(text: &str) -> Result<Ceiling, String> {
    if text == "none" { Ok(Ceiling(None)) } else { rate(text).map(|most| Ceiling(Some(most))) }
}

/// A ceiling in operations per second, or `none`.
pub(crate) fn ceiling_iops(text: &str) -> Result<Ceiling, String> {
    if text == "none" { Ok(Ceiling(None)) } else { iops(text).map(|most| Ceiling(Some(most))) }
}

/// A ceiling that is set or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ceiling(pub(crate) Option<u64>);

/// Operations per second of a volume, or `auto`.
pub(crate) fn own_iops(text: &str) -> Result<Own, String> {
    if text == "auto" { Ok(Own(None)) } else { iops(text).map(|own| Own(Some(own))) }
}

/// A value set for a volume; `None` for the derived default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Own(pub(crate) Option<u64>);

/// Operations per second, such as `1600`.
pub(crate) fn iops(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number of operations per second, such as 1600"))
}

/// `on` or `off`.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("{text:?} is neither on nor off")),
    }
}

/// `on`, `off`, or `auto`.
pub(crate) fn own_switch(text: &str) -> Result<OwnSwitch, String> {
    match text {
        "auto" => Ok(OwnSwitch(None)),
        _ => {
            switch(text).map(|on| OwnSwitch(Some(on))).map_err(|error| format!("{error} nor auto"))
        }
    }
}

/// A switch of a volume; `None` for the configuration of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnSwitch(pub(crate) Option<bool>);

/// A rate, such as `48MiB/s`, in bytes per second.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    parse_rate(text).map_err(|error| error.to_string())
}

/// A time in the future, as RFC 3339 in UTC: a duration from now such as `90d`, or a time such as
/// `2027-01-31T00:00:00Z`.
pub(crate) fn end(text: &str) -> Result<String, String> {
    moment(text, SystemTime::checked_add)
}

/// A time in the past, in the same forms.
pub(crate) fn beginning(text: &str) -> Result<String, String> {
    moment(text, SystemTime::checked_sub)
}

fn moment(
    text: &str,
    away: fn(&SystemTime, Duration) -> Option<SystemTime>,
) -> Result<String, String> {
    let no_time = || format!("{text:?} is not a time such as 90d, 12h or 2027-01-31T00:00:00Z");
    let at = match humantime::parse_duration(text) {
        Ok(duration) => away(&SystemTime::now(), duration).ok_or_else(no_time)?,
        Err(_) => humantime::parse_rfc3339(text).map_err(|_| no_time())?,
    };
    // The calendar of the form ends with the year 9999.
    let last = UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    if at < UNIX_EPOCH || at > last {
        return Err(no_time());
    }
    Ok(humantime::format_rfc3339_seconds(at).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_durations_or_moments() {
        assert_eq!(end("2027-01-31T00:00:00Z").unwrap(), "2027-01-31T00:00:00Z");
        assert!(beginning("1h").unwrap() < end("0s").unwrap());
        assert!(end("90d").unwrap() > end("89d").unwrap());
        for wrong in ["", "soon", "2027-01-31", "9999999y"] {
            assert!(end(wrong).unwrap_err().contains("is not a time"), "{wrong}");
        }
    }

    #[test]
    fn a_ceiling_is_a_value_or_none() {
        assert_eq!(ceiling_rate("none"), Ok(Ceiling(None)));
        assert_eq!(ceiling_rate("1MiB/s"), Ok(Ceiling(Some(1 << 20))));
        assert_eq!(ceiling_iops("none"), Ok(Ceiling(None)));
        assert_eq!(ceiling_iops("1600"), Ok(Ceiling(Some(1600))));
        assert_eq!((own_iops("auto"), own_iops("16")), (Ok(Own(None)), Ok(Own(Some(16)))));
        assert_eq!(
            (own_switch("off"), own_switch("auto")),
            (Ok(OwnSwitch(Some(false))), Ok(OwnSwitch(None)))
        );
        assert!(own_switch("no").unwrap_err().contains("auto"));
        assert!(ceiling_iops("16k").unwrap_err().contains("such as 1600"));
        assert!(ceiling_rate("10").unwrap_err().contains("no unit"));
    }
}
