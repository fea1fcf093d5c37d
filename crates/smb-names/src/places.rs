//! Sets of places in a pattern, on which every step is a few operations on whole words
//! (Shift-And: R. Baeza-Yates, G. Gonnet, "A new approach to text searching", CACM 1992).

use super::limits::PATTERN_UNITS_MAX;
use core::array::from_fn;
use core::ops::{BitAnd, BitOr, BitOrAssign};

const WORDS: usize = PATTERN_UNITS_MAX / 64 + 1;
// Each element has a place, and the end has one.
const _: () = assert!(PATTERN_UNITS_MAX < WORDS * 64);

/// A set of places, the end of the pattern among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places([u64; WORDS]);

impl Places {
    /// The set of one place.
    pub(super) fn only(at: usize) -> Self {
        let mut places = Self::default();
        if let Some(word) = places.0.get_mut(at / 64) {
            *word = 1 << (at % 64);
        }
        places
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// The place behind each of these. There is none behind the last.
    pub(super) fn behind(self) -> Self {
        let mut carry = 0;
        Self(self.0.map(|word| {
            let moved = word << 1 | carry;
            carry = word >> 63;
            moved
        }))
    }

    /// These places, and those to which the ones in `open`, which may be passed over, lead.
    pub(super) fn through(self, open: Self) -> Self {
        // In each run of open places the sum carries from the first one that is reached to the
        // place behind the run. All bits that it changes, and those of its own, are reached.
        let reached = self & open;
        let mut carry = false;
        let mut sum = [0; WORDS];
        for ((sum, open), reached) in sum.iter_mut().zip(open.0).zip(reached.0) {
            let (half, first) = open.overflowing_add(reached);
            let (whole, second) = half.overflowing_add(carry.into());
            (*sum, carry) = (whole, first || second);
        }
        let mut changed = sum.into_iter().zip(open.0).map(|(sum, open)| sum ^ open);
        self | Self(from_fn(|_| changed.next().unwrap_or(0)))
    }
}

impl BitAnd for Places {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        let mut words = self.0.into_iter().zip(other.0).map(|(own, other)| own & other);
        Self(from_fn(|_| words.next().unwrap_or(0)))
    }
}

impl BitOr for Places {
    type Output = Self;

    fn bitor(mut self, other: Self) -> Self {
        self |= other;
        self
    }
}

impl BitOrAssign for Places {
    fn bitor_assign(&mut self, other: Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own |= other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(places: &BTreeSet<usize>) -> Places {
        places.iter().fold(Places::default(), |all, at| all | Places::only(*at))
    }

    proptest! {
        #[test]
        fn sets_of_places_agree_with_sets_of_numbers(
            own in proptest::collection::btree_set(0..255_usize, 0..60),
            open in proptest::collection::btree_set(0..255_usize, 0..250),
        ) {
            let behind = own.iter().map(|at| at + 1).collect();
            prop_assert_eq!(set(&own).behind(), set(&behind));
            let mut reached = own.clone();
            for at in 0..255 {
                if reached.contains(&at) && open.contains(&at) {
                    reached.insert(at + 1);
                }
            }
            prop_assert_eq!(set(&own).through(set(&open)), set(&reached));
            prop_assert_eq!(set(&own) & set(&open), set(&(&own & &open)));
            prop_assert_eq!(set(&own).is_empty(), own.is_empty());
        }
    }

    #[test]
    fn a_way_leads_through_all_words() {
        let open = (0..255).map(Places::only).fold(Places::default(), |all, one| all | one);
        assert_eq!(Places::only(0).through(open), open | Places::only(255));
    }
}
