//! The time of day, for tokens and the audit log. Nothing in the data plane goes by it.

use super::failure::Failure;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since 1970; none before that.
pub(super) fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Now, to the millisecond: RFC 3339, UTC. All have the same length, so that they sort as text.
pub(super) fn text() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// A time that the API was given: RFC 3339, UTC, in the form of [`text`].
pub(super) fn precise(given: &str) -> Result<String, Failure> {
    parse(given).map(|time| humantime::format_rfc3339_millis(time).to_string())
}

/// A given time as seconds since 1970.
pub(super) fn seconds_of(given: &str) -> Result<u64, Failure> {
    let since = parse(given)?.duration_since(UNIX_EPOCH);
    Ok(since.map_or(0, |since| since.as_secs()))
}

fn parse(given: &str) -> Result<SystemTime, Failure> {
    humantime::parse_rfc3339(given).map_err(|_| {
        let given: String = given.chars().take(64).collect();
        Failure::bad_request(format!("{given:?} is not a time in UTC such as 2027-01-31T00:00:00Z"))
    })
}

/// Seconds since 1970 as text: RFC 3339, UTC.
pub(super) fn text_of(seconds: u64) -> String {
    // Further than the calendar of the format goes is as good as its end.
    let at = UNIX_EPOCH.checked_add(Duration::from_secs(seconds.min(253_402_300_799)));
    humantime::format_rfc3339_seconds(at.unwrap_or(UNIX_EPOCH)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_alike_and_sort_as_text() {
        assert_eq!(seconds_of("2027-01-31T00:00:00Z").unwrap(), 1_801_353_600);
        assert_eq!(text_of(1_801_353_600), "2027-01-31T00:00:00Z");
        assert_eq!(precise("2027-01-31T00:00:00Z").unwrap(), "2027-01-31T00:00:00.000Z");
        assert_eq!(text_of(u64::MAX), "9999-12-31T23:59:59Z");
        assert_eq!(text().len(), precise("2027-01-31T00:00:00Z").unwrap().len());
        for wrong in ["", "tomorrow", "2027-01-31", "2027-13-31T00:00:00Z"] {
            assert!(seconds_of(wrong).is_err(), "{wrong}");
        }
    }
}
