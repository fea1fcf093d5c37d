//! The line of connections that wait for memory to receive a large record.
//!
//! A connection that would hold more than the bounds of its origin and of the worker allow is not
//! read until others have given memory back. The first in line may exceed the bounds by its record,
//! one connection at a time, so that records which wait for each other's memory still end.
//! A small buffer is always there: a record that fits it never waits. Not here: the bounds, which
//! [`super::load`] compares.

use std::collections::VecDeque;

/// Connections of one worker that wait for memory, by their tokens.
#[derive(Debug, Default)]
pub(super) struct MemoryLine {
    waiting: VecDeque<u64>,
    /// The connection that may exceed the bounds until its record is whole.
    exempt: Option<u64>,
}

impl MemoryLine {
    /// Does no connection wait?
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// May the connection exceed the bounds?
    pub(super) fn is_exempt(&self, token: u64) -> bool {
        self.exempt == Some(token)
    }

    /// Puts a connection in line.
    pub(super) fn wait(&mut self, token: u64) {
        self.waiting.push_back(token);
    }

    /// A record of the connection is whole.
    pub(super) fn ended(&mut self, token: u64) {
        self.exempt = self.exempt.filter(|exempt| *exempt != token);
    }

    /// Takes the connections out of the line that may go on: those whose record fits, and the
    /// first one if no connection exceeds the bounds. `fits` gives the bytes that a connection
    /// takes if it may, beside those that are promised to others already; `None` if the
    /// connection is gone.
    pub(super) fn released(
        &mut self,
        fits: impl Fn(u64, usize) -> Option<Option<usize>>,
    ) -> Vec<u64> {
        self.exempt = self.exempt.filter(|token| fits(*token, 0).is_some());
        let (mut released, mut promised) = (Vec::new(), 0);
        self.waiting.retain(|token| match fits(*token, promised) {
            Some(Some(bytes)) => {
                promised += bytes;
                released.push(*token);
                false
            }
            Some(None) => true,
            None => false,
        });
        if released.is_empty() && self.exempt.is_none() {
            self.exempt = self.waiting.pop_front();
            released.extend(self.exempt);
        }
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_goes_although_nothing_fits_and_others_when_there_is_memory() {
        let mut line = MemoryLine::default();
        (1..=4).for_each(|token| line.wait(token));
        assert_eq!(line.released(|_, _| Some(None)), [1]);
        assert!(line.is_exempt(1) && !line.is_exempt(2));
        assert!(line.released(|_, _| Some(None)).is_empty(), "one at a time");
        let room_for_one = |token, promised| Some((token >= 3 && promised == 0).then_some(7));
        assert_eq!(line.released(room_for_one), [3]);
        line.ended(3);
        assert!(line.is_exempt(1));
        line.ended(1);
        assert_eq!(line.released(|token, _| (token != 2).then_some(None)), [4], "2 is gone");
        assert!(line.is_empty() && line.is_exempt(4) && !line.is_exempt(1));
    }
}
