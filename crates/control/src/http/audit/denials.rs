//! The rate at which denied requests are recorded: a number a minute, and a count of the rest.
//! Plain data, with time as an argument.

/// Most records of denied requests in a minute, by which a stranger could fill the disk: some
/// 20 MB a day.
const A_MINUTE_MAX: u32 = 30;

/// The denied requests of this minute.
#[derive(Debug, Default)]
pub(super) struct Denials {
    minute: u64,
    recorded: u32,
    suppressed: u64,
}

impl Denials {
    /// Is one at `now` (seconds) to be recorded? If not, it is counted.
    pub(super) const fn take(&mut self, now: u64) -> bool {
        if self.minute != now / 60 {
            self.minute = now / 60;
            self.recorded = 0;
        }
        if self.recorded >= A_MINUTE_MAX {
            self.suppressed += 1;
            return false;
        }
        self.recorded += 1;
        true
    }

    /// The number left out since the last call, for the next record.
    pub(super) const fn take_suppressed(&mut self) -> Option<u64> {
        match std::mem::replace(&mut self.suppressed, 0) {
            0 => None,
            count => Some(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_recorded() {
        let mut denials = Denials::default();
        let recorded = (0..1000).filter(|_| denials.take(600)).count();
        assert_eq!(recorded, 30);
        assert_eq!(denials.take_suppressed(), Some(970));
        assert_eq!(denials.take_suppressed(), None);
        assert!(!denials.take(659) && denials.take(660));
        assert_eq!(denials.take_suppressed(), Some(1));
    }
}
