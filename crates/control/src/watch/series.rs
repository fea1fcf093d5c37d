//! A series of entries in few bytes: most of the numbers of a second or a minute are small, and
//! there are thousands of volumes.
//!
//! Each number takes seven bits a byte, the lowest first (LEB128). Nothing of this leaves the
//! process.

use super::volume::Period;
use std::collections::VecDeque;
use std::marker::PhantomData;
use weir_qos::Cost;
use weir_qos::verdict::{Course, Tally};

/// Bits of a number in one byte; the next says that more follow.
const BITS: u32 = 7;

/// An entry that consists of numbers.
pub(super) trait Entry: Sized {
    /// Gives its numbers to `put`, in an order that stays.
    fn put(&self, put: &mut impl FnMut(u64));
    /// The entry that gave these numbers.
    fn take(next: &mut impl FnMut() -> u64) -> Self;
}

/// The newest of a series.
pub(super) struct Series<T> {
    bytes: VecDeque<u8>,
    len: usize,
    of: PhantomData<T>,
}

impl<T> Default for Series<T> {
    fn default() -> Self {
        Self { bytes: VecDeque::new(), len: 0, of: PhantomData }
    }
}

impl<T: Entry> Series<T> {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds the newest, and drops the oldest beyond `most`.
    pub(super) fn push(&mut self, newest: &T, most: usize) {
        while self.len >= most.max(1) {
            self.drop_first();
        }
        let mut count = 0;
        newest.put(&mut |number| count += bytes_of(number));
        if self.bytes.capacity() - self.bytes.len() < count {
            // Not twice as much: that would be half empty for as long as the volume is busy.
            self.bytes.reserve_exact(count.max(self.bytes.len() / 4));
        }
        newest.put(&mut |number| write(&mut self.bytes, number));
        self.len += 1;
    }

    /// Drops the oldest.
    pub(super) fn drop_first(&mut self) {
        if self.len == 0 {
            return;
        }
        let mut count = 0;
        {
            let mut bytes = self.bytes.iter();
            T::take(&mut || {
                let number = read(&mut bytes);
                count += bytes_of(number);
                number
            });
        }
        self.bytes.drain(..count.min(self.bytes.len()));
        self.len -= 1;
    }

    /// The oldest.
    pub(super) fn first(&self) -> Option<T> {
        self.iter().next()
    }

    /// All of them, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = T> {
        let mut bytes = self.bytes.iter();
        (0..self.len).map(move |_| T::take(&mut || read(&mut bytes)))
    }

    /// The last so many, oldest first.
    pub(super) fn newest(&self, most: usize) -> impl Iterator<Item = T> {
        self.iter().skip(self.len.saturating_sub(most))
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

fn bytes_of(number: u64) -> usize {
    let bits = u64::BITS - (number | 1).leading_zeros();
    bits.div_ceil(BITS) as usize
}

fn write(bytes: &mut VecDeque<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= BITS;
        if number == 0 {
            return bytes.push_back(low);
        }
        bytes.push_back(low | 1 << BITS);
    }
}

fn read<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> u64 {
    let (mut number, mut shift) = (0, 0);
    for byte in bytes {
        number |= u64::from(byte & !(1 << BITS)) << shift;
        shift += BITS;
        if byte >> BITS == 0 {
            break;
        }
    }
    number
}

fn put_cost(cost: Cost, put: &mut impl FnMut(u64)) {
    put(cost.bytes);
    put(cost.operations);
}

fn take_cost(next: &mut impl FnMut() -> u64) -> Cost {
    Cost { bytes: next(), operations: next() }
}

impl Entry for Course {
    fn put(&self, put: &mut impl FnMut(u64)) {
        put(self.nanos);
        [self.offered, self.delivered, self.due].into_iter().for_each(|cost| put_cost(cost, put));
        for number in [
            self.requests,
            self.used_nanos,
            self.passed_nanos,
            self.used_certain_nanos,
            self.passed_certain_nanos,
            self.let_through_nanos,
            self.returned_nanos,
            self.reference_nanos,
            self.asked_nanos,
            self.busy_nanos,
            self.wait_nanos,
            self.store_nanos,
            self.network_nanos,
            self.processing_nanos,
            self.largest_nanos,
            self.largest_certain_nanos,
        ] {
            put(number);
        }
    }

    fn take(next: &mut impl FnMut() -> u64) -> Self {
        // Evaluated in the order in which they stand here.
        Self {
            nanos: next(),
            offered: take_cost(next),
            delivered: take_cost(next),
            due: take_cost(next),
            requests: next(),
            used_nanos: next(),
            passed_nanos: next(),
            used_certain_nanos: next(),
            passed_certain_nanos: next(),
            let_through_nanos: next(),
            returned_nanos: next(),
            reference_nanos: next(),
            asked_nanos: next(),
            busy_nanos: next(),
            wait_nanos: next(),
            store_nanos: next(),
            network_nanos: next(),
            processing_nanos: next(),
            largest_nanos: next(),
            largest_certain_nanos: next(),
        }
    }
}

impl Entry for Tally {
    fn put(&self, put: &mut impl FnMut(u64)) {
        let [gate, store, network, processing] = self.broken;
        let Self { kept, not_demanded, demanded_nanos, used_nanos, .. } = *self;
        [kept, not_demanded, gate, store, network, processing, demanded_nanos, used_nanos]
            .into_iter()
            .for_each(put);
    }

    fn take(next: &mut impl FnMut() -> u64) -> Self {
        Self {
            kept: next(),
            not_demanded: next(),
            broken: [next(), next(), next(), next()],
            demanded_nanos: next(),
            used_nanos: next(),
        }
    }
}

impl Entry for Period {
    fn put(&self, put: &mut impl FnMut(u64)) {
        put(self.start);
        put(self.nanos);
        self.course.put(put);
        self.tally.put(put);
    }

    fn take(next: &mut impl FnMut() -> u64) -> Self {
        let (start, nanos) = (next(), next());
        Self { start, nanos, course: Course::take(next), tally: Tally::take(next) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A period whose numbers all differ, around `scale`.
    fn period(scale: u64) -> Period {
        let mut number = 0u64;
        Period::take(&mut || {
            number += 1;
            scale.wrapping_mul(number).wrapping_add(number)
        })
    }

    #[test]
    fn what_was_pushed_comes_back_in_order_and_the_oldest_goes() {
        let scales = [0, 1, 127, 128, 1 << 20, 1_000_000_000, u64::MAX / 3, u64::MAX];
        let mut series = Series::default();
        let mut all = Vec::new();
        for (at, scale) in scales.into_iter().cycle().take(100).enumerate() {
            all.push(period(scale));
            series.push(&all[at], 13);
            let first = all.len().saturating_sub(13);
            assert_eq!(series.iter().collect::<Vec<_>>(), all[first..], "after {at}");
            assert_eq!(series.len(), all.len() - first);
            assert_eq!(series.newest(2).last(), Some(all[at]));
        }
        while !series.is_empty() {
            series.drop_first();
        }
        series.drop_first();
        assert_eq!((series.iter().count(), series.bytes.len()), (0, 0));
    }

    #[test]
    fn every_field_has_its_own_place() {
        let mut numbers = Vec::new();
        period(1 << 33).put(&mut |number| numbers.push(number));
        let mut distinct = numbers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        // Each number is a `u64` of the structure, which has nothing else.
        assert_eq!(distinct.len() * size_of::<u64>(), size_of::<Period>());
        let mut numbers = numbers.into_iter();
        assert_eq!(Period::take(&mut || numbers.next().unwrap()), period(1 << 33));
    }
}
