//! A bound on records by the minute, and a count of those left out. Plain data, with time as an
//! argument.

/// The records of this minute.
#[derive(Debug)]
pub(crate) struct PerMinute {
    most: u32,
    minute: u64,
    recorded: u32,
    suppressed: u64,
}

impl PerMinute {
    /// At most `most` records in a minute.
    pub(crate) const fn new(most: u32) -> Self {
        Self { most, minute: 0, recorded: 0, suppressed: 0 }
    }

    /// Is one at `now` (seconds) to be recorded? If not, it is counted.
    pub(crate) const fn take(&mut self, now: u64) -> bool {
        if self.minute != now / 60 {
            self.minute = now / 60;
            self.recorded = 0;
        }
        if self.recorded >= self.most {
            self.suppress();
            return false;
        }
        self.recorded += 1;
        true
    }

    /// Counts one that is not recorded for another reason.
    pub(crate) const fn suppress(&mut self) {
        self.suppressed += 1;
    }

    /// The number left out since the last call, for the next record.
    pub(crate) const fn take_suppressed(&mut self) -> Option<u64> {
        match std::mem::replace(&mut self.suppressed, 0) {
            0 => None,
            count => Some(count),
        }
    }

    /// The number left out in minutes that are over, for which no record has come since.
    pub(crate) const fn take_overdue(&mut self, now: u64) -> Option<u64> {
        if self.minute == now / 60 { None } else { self.take_suppressed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_recorded() {
        let mut denials = PerMinute::new(30);
        let recorded = (0..1000).filter(|_| denials.take(600)).count();
        assert_eq!(recorded, 30);
        assert_eq!(denials.take_suppressed(), Some(970));
        assert_eq!(denials.take_suppressed(), None);
        assert!(!denials.take(659) && denials.take(660));
        assert_eq!(denials.take_suppressed(), Some(1));
    }

    #[test]
    fn a_count_is_due_when_its_minute_is_over() {
        let mut logins = PerMinute::new(1);
        assert!(logins.take(60) && !logins.take(60));
        assert_eq!((logins.take_overdue(119), logins.take_overdue(120)), (None, Some(1)));
        assert_eq!(logins.take_overdue(180), None);
    }
}
