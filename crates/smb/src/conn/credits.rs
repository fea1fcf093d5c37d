//! The message ids that a client may use, and the credits that it is granted (MS-SMB2 §3.3.1.1,
//! §3.3.5.2.3).
//!
//! Each credit is one message id. A request uses as many as its CreditCharge says, and each
//! response grants new ones. Credits are the first back-pressure on a client: where requests wait
//! in memory, fewer are granted, but never so few that the client could not send another request.

use alloc::collections::VecDeque;

/// The most message ids that a client may have unused at a time, as the largest window of other
/// servers. Beyond: responses grant none.
pub const CREDITS_MAX: u64 = 8192;

/// The most message ids between the lowest unused one and the highest granted one. Beyond:
/// responses grant none until the client has used the lowest.
const SPAN_MAX: u64 = 2 * CREDITS_MAX;

const WORD: u64 = u64::BITS as u64;

/// The client used a message id that it was not granted, or used one twice: the connection is to be
/// closed (MS-SMB2 §3.3.5.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message id {0} was not granted, or is used twice")]
pub struct NotGranted(pub u64);

/// The window of message ids of one connection.
#[derive(Debug)]
pub struct Credits {
    /// The least message id that may be unused; a multiple of the bits of a word.
    low: u64,
    /// The first message id that was not granted yet.
    high: u64,
    /// Used ids from `low` on, one bit each.
    used: VecDeque<u64>,
    /// Granted ids that are not used.
    unused: u64,
}

impl Default for Credits {
    /// The window of a new connection: the message id 0 for its NEGOTIATE.
    fn default() -> Self {
        Self { low: 0, high: 1, used: VecDeque::new(), unused: 1 }
    }
}

impl Credits {
    /// Uses `charge` ids from `first` on; a charge of 0 counts as 1 (MS-SMB2 §3.3.5.2.3).
    ///
    /// # Errors
    /// [`NotGranted`] if one of them may not be used; none is used then.
    pub fn take(&mut self, first: u64, charge: u16) -> Result<(), NotGranted> {
        let charge = u64::from(charge.max(1));
        let refused = NotGranted(first);
        let end = first.checked_add(charge).filter(|end| *end <= self.high).ok_or(refused)?;
        if first < self.low || (first..end).any(|id| self.is_used(id)) {
            return Err(refused);
        }
        for id in first..end {
            self.note_used(id);
        }
        self.unused = self.unused.saturating_sub(charge);
        self.advance();
        Ok(())
    }

    /// Grants up to `requested` ids, so that the client has no more than `most` unused; but at
    /// least one where it would have none. Gives the number to send in the response.
    pub fn grant(&mut self, requested: u16, most: u64) -> u16 {
        let span = SPAN_MAX.saturating_sub(self.high.saturating_sub(self.low));
        let room = most.min(CREDITS_MAX).saturating_sub(self.unused).min(span);
        let least = u64::from(self.unused == 0);
        let granted = u64::from(requested).min(room).max(least);
        self.high = self.high.saturating_add(granted);
        self.unused = self.unused.saturating_add(granted);
        u16::try_from(granted).unwrap_or(u16::MAX)
    }

    /// Message ids that the client may use.
    #[must_use]
    pub fn unused(&self) -> u64 {
        self.unused
    }

    fn place(&self, id: u64) -> Option<(usize, u64)> {
        let at = id.checked_sub(self.low)?;
        let (word, bit) = (at.checked_div(WORD)?, at.checked_rem(WORD)?);
        Some((usize::try_from(word).ok()?, 1_u64.checked_shl(u32::try_from(bit).ok()?)?))
    }

    fn is_used(&self, id: u64) -> bool {
        let used = |(word, bit): (usize, u64)| self.used.get(word).is_some_and(|w| w & bit != 0);
        self.place(id).is_none_or(used)
    }

    fn note_used(&mut self, id: u64) {
        let Some((word, bit)) = self.place(id) else { return };
        while self.used.len() <= word {
            self.used.push_back(0);
        }
        if let Some(word) = self.used.get_mut(word) {
            *word |= bit;
        }
    }

    /// Removes the words at the front of which all ids are used.
    fn advance(&mut self) {
        while self.used.pop_front_if(|word| *word == u64::MAX).is_some() {
            self.low = self.low.saturating_add(WORD);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_new_connection_has_the_id_of_its_negotiate_alone() {
        let mut credits = Credits::default();
        assert_eq!(credits.take(1, 1), Err(NotGranted(1)));
        assert_eq!(credits.take(0, 2), Err(NotGranted(0)));
        assert_eq!(credits.take(0, 0), Ok(()));
        assert_eq!(credits.take(0, 1), Err(NotGranted(0)), "twice");
        assert_eq!(credits.grant(0, CREDITS_MAX), 1, "it could not go on");
        assert_eq!(credits.grant(0, CREDITS_MAX), 0);
        assert_eq!(credits.take(1, 1), Ok(()));
    }

    #[test]
    fn grants_end_at_the_bound_and_go_on_with_one_under_pressure() {
        let mut credits = Credits::default();
        assert_eq!(u64::from(credits.grant(u16::MAX, CREDITS_MAX)), CREDITS_MAX - 1);
        assert_eq!(credits.grant(1, CREDITS_MAX), 0);
        for id in 0..CREDITS_MAX {
            assert_eq!(credits.take(id, 1), Ok(()));
            let granted = credits.grant(10, 0);
            assert_eq!(granted, u16::from(id == CREDITS_MAX - 1));
        }
    }

    #[test]
    fn an_id_left_behind_ends_the_grants() {
        let mut credits = Credits::default();
        credits.grant(u16::MAX, CREDITS_MAX);
        let (mut next, mut high) = (1, CREDITS_MAX);
        while credits.unused() > 1 {
            assert_eq!(credits.take(next, 1), Ok(()));
            next += 1;
            high += u64::from(credits.grant(1, CREDITS_MAX));
        }
        assert_eq!(high, SPAN_MAX);
        assert!(credits.used.len() as u64 <= SPAN_MAX / WORD + 1);
        assert_eq!(credits.take(0, 1), Ok(()));
        assert!(credits.grant(1, CREDITS_MAX) > 0);
        assert_eq!(credits.low, SPAN_MAX, "all that was granted before is used");
    }

    #[test]
    fn the_last_ids_of_all_do_not_overflow() {
        let mut credits = Credits { low: 0, high: u64::MAX, used: VecDeque::new(), unused: 5 };
        assert_eq!(credits.take(u64::MAX, 1), Err(NotGranted(u64::MAX)));
        assert_eq!(credits.take(u64::MAX - 1, 2), Err(NotGranted(u64::MAX - 1)));
    }

    proptest! {
        /// The window agrees with a set of the ids that may be used.
        #[test]
        fn the_window_agrees_with_a_set(
            steps in proptest::collection::vec((0..400u64, 0..20u16, 0..100u16, 0..300u64), 1..200),
        ) {
            let mut credits = Credits::default();
            let (mut may, mut high) = (BTreeSet::from([0u64]), 1u64);
            for (first, charge, requested, most) in steps {
                let ids = first..first + u64::from(charge.max(1));
                let expected = ids.clone().all(|id| may.contains(&id));
                prop_assert_eq!(credits.take(first, charge).is_ok(), expected);
                if expected {
                    may.retain(|id| !ids.contains(id));
                }
                let granted = u64::from(credits.grant(requested, most));
                prop_assert!(granted <= u64::from(requested).max(1));
                may.extend(high..high + granted);
                high += granted;
                prop_assert_eq!(credits.unused(), may.len() as u64);
                prop_assert!(!may.is_empty());
            }
        }
    }
}
