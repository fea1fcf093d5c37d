//! Dates and times in UTC: reports are read in other time zones than they are made in.

use std::time::{Duration, UNIX_EPOCH};

/// The last second that has a date of four digits for the year.
const LAST: u64 = 253_402_300_799;

/// Seconds since 1970 as a date and time.
pub(crate) fn utc(seconds: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_secs(seconds.min(LAST));
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.replace('T', " ").replace('Z', " UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let known = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_700_000_000, "2023-11-14 22:13:20 UTC"),
            (1_709_164_800, "2024-02-29 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
            (u64::MAX, "9999-12-31 23:59:59 UTC"),
        ];
        for (seconds, text) in known {
            assert_eq!(utc(seconds), text);
        }
    }
}
