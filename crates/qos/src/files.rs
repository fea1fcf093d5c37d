//! Ceilings of files: what each file of a volume may use at most, whatever the volume may. Plain data, like
//! [`Queue`]: the caller holds the lock and the clock.
//!
//! # The rule
//!
//! A READ or WRITE is charged to its file as it is to its volume, and goes when both let it. Each file has
//! [`Meters`] of its own, so what they guarantee holds for every file.
//!
//! # The order
//!
//! Whose turn it is the [queue](Queue) of the volume says. When the turn of a request has come and its file is
//! used up, it is set aside and waits for its file, in a fair queue of those that wait for the same, and the volume
//! goes on with the others. So a file at its ceiling holds nobody up who wants another.
//!
//! As soon as the file would let some of them go, those come back to the volume's queue, before all of their connections that
//! came later and where their clients stood, so that they are next as a rule; and more of them when none of those is left there. They are charged to the file when they go, so that
//! a file can't save up while its volume holds it back. Where a file binds, its clients have less than their
//! share of the volume, and who has is next there.
//!
//! # What it costs
//!
//! O(log files) for each request. A file is remembered until its meters are as new ones, 50 ms after all that it was
//! charged is paid for, and forgotten when others need the room or [somebody looks](Files::forget). At most [`FILES_MAX`]
//! are: those beyond share one ceiling until there is room. With small requests at 1 MiB/s for each that takes 300,000
//! files a second, with requests that the ceiling pays for in a second some 16,000.

use alloc::collections::{BTreeMap, BTreeSet};

use weir_core::Mono;

use crate::contract::{Ceiling, Limits};
use crate::meter::CATCH_UP_NANOS;
use crate::meters::{Cost, Meters};
use crate::queue::{ClientKey, Departure, Order, Queue};
use crate::rate::BytesPerSecond;

/// The most files of one volume that are remembered at once.
pub const FILES_MAX: usize = 16_384;

/// With fewer than this nothing is forgotten to make room.
const FILES_FEW: usize = 64;

/// The files of one volume: those that owe something, and what waits for them. `K` names a file, `T` is the
/// caller's token for a parked request.
#[derive(Debug)]
pub struct Files<K, T> {
    ceiling: Ceiling,
    /// By name; those that found no room are one, without a name.
    files: BTreeMap<Option<K>, File<T>>,
    /// Those that somebody waits for, by the moment to ask again.
    due: BTreeSet<(Mono, Option<K>)>,
    /// How many may be there before the next look for some to forget, and no look before that moment.
    room: usize,
    looks: Mono,
    waiting: usize,
}

#[derive(Debug)]
struct File<T> {
    meters: Meters,
    queue: Queue<T>,
    /// When to ask again, if somebody waits and none is [let back](Files::poll).
    due: Option<Mono>,
    /// How many are let back and have neither gone nor been refused.
    back: usize,
}

/// A file that a request waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName<K>(Option<K>);

/// What a file was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileCharge<K> {
    /// None for one without room of its own.
    file: Option<K>,
    cost: Cost,
    /// When.
    at: Mono,
}

impl<K: Copy> FileCharge<K> {
    /// What is to be given back of it when the request has moved so many bytes, or failed.
    #[must_use]
    pub fn unused(&self, moved: u64, failed: bool) -> Option<Self> {
        let Cost { bytes, operations } = self.cost;
        let operations = if failed { operations } else { 0 };
        let cost = Cost { bytes: bytes.saturating_sub(moved), operations };
        (cost != Cost::ZERO).then_some(Self { cost, ..*self })
    }
}

impl<K: Ord + Copy, T> Files<K, T> {
    /// Files that nobody has used.
    #[must_use]
    pub fn new(ceiling: Ceiling) -> Self {
        Self {
            ceiling,
            files: BTreeMap::new(),
            due: BTreeSet::new(),
            room: FILES_FEW,
            looks: Mono(0),
            waiting: 0,
        }
    }

    /// The ceiling of each.
    #[must_use]
    pub fn ceiling(&self) -> Ceiling {
        self.ceiling
    }

    /// Puts another ceiling in force for the next decision; see [`Meters::set`]. [Ask](Self::poll) afterwards.
    pub fn set(&mut self, ceiling: Ceiling, now: Mono) {
        self.ceiling = ceiling;
        for (name, file) in &mut self.files {
            file.meters.set(limits(ceiling), now);
            file.queue.reweigh(&file.meters);
            file.ask(&mut self.due, *name, now);
        }
    }

    /// Charges a request to its file if that lets it go now and nobody waits for it.
    #[must_use]
    pub fn try_take(&mut self, name: K, cost: Cost, now: Mono) -> Option<FileCharge<K>> {
        let name = self.name(name, now);
        let file = entry(&mut self.files, name, self.ceiling);
        let cost = file.meters.try_take(cost, now)?;
        Some(FileCharge { file: name, cost, at: now })
    }

    /// Charges a request whose turn it is at its volume, whoever waits for the file: those are let back as soon as it
    /// lets any go.
    ///
    /// # Errors
    /// The file is used up until then.
    pub fn take(&mut self, name: K, cost: Cost, now: Mono) -> Result<FileCharge<K>, Mono> {
        let name = self.name(name, now);
        let file = entry(&mut self.files, name, self.ceiling);
        let cost = file.queue.take_turn(&file.meters, cost, now)?;
        Ok(FileCharge { file: name, cost, at: now })
    }

    /// Gives back what was charged. True if somebody waits who may go sooner now: [ask](Self::poll).
    pub fn refund(&mut self, charge: FileCharge<K>, now: Mono) -> bool {
        let Some(file) = self.files.get_mut(&charge.file) else { return false };
        file.meters.refund(charge.cost, charge.at);
        file.ask(&mut self.due, charge.file, now)
    }

    /// Lets a request wait for its file, which refused it when its turn had come `until` then, by its `serial` among those of
    /// its connection.
    pub fn hold(
        &mut self,
        name: K,
        (client, connection): (ClientKey, u64),
        cost: Cost,
        token: T,
        until: Mono,
        serial: u64,
    ) {
        let name = self.name(name, until);
        let file = entry(&mut self.files, name, self.ceiling);
        self.waiting += 1;
        let (queue, meters) = (&mut file.queue, &file.meters);
        let order = Order { serial, had_turn: false };
        let asks = queue.push_in_order(meters, client, connection, cost, token, order);
        if asks || file.due.is_none() {
            file.ask(&mut self.due, name, until);
        }
    }

    /// Hands those that their files would let go at `now` to `release`. They are to take their turn at once, [in their
    /// order](Queue::push_in_order) among those of their connections, and when they go or don't [that is to be said](Self::left).
    pub fn poll(&mut self, now: Mono, release: &mut impl FnMut(T, FileName<K>)) {
        while let Some(&(_, name)) = self.due.first().filter(|(at, _)| *at <= now) {
            let Some(file) = self.files.get_mut(&name) else { return };
            let (waiting, back) = (&mut self.waiting, &mut file.back);
            let mut charged = Cost::ZERO;
            let again = file.queue.poll(&file.meters, now, &mut |token, cost| {
                *waiting -= 1;
                *back += 1;
                charged.bytes = charged.bytes.saturating_add(cost.bytes);
                charged.operations = charged.operations.saturating_add(cost.operations);
                release(token, FileName(name));
                Departure::Went
            });
            file.meters.refund(charged, now);
            // It names no moment that has come, but the file asks never twice at one.
            let again = again.map(|at| at.max(Mono(now.0.saturating_add(1))));
            due(&mut self.due, name, file, again.filter(|_| file.back == 0));
        }
    }

    /// One that was let back has gone, or is gone, or [waits](Self::hold) again: where it was the last, the file is to be asked.
    pub fn left(&mut self, FileName(name): FileName<K>, now: Mono) {
        let Some(file) = self.files.get_mut(&name) else { return };
        file.back = file.back.saturating_sub(1);
        file.ask(&mut self.due, name, now);
    }

    /// When to ask again: `None` if nobody waits.
    #[must_use]
    pub fn next(&self) -> Option<Mono> {
        self.due.first().map(|&(at, _)| at)
    }

    /// Takes out what waits on `connection`, and hands it to `cancelled`. Nothing of it was charged.
    pub fn cancel_connection(&mut self, connection: u64, cancelled: &mut impl FnMut(T)) {
        let waiting = &mut self.waiting;
        let mut cancelled = |token| {
            *waiting -= 1;
            cancelled(token);
        };
        for (name, file) in self.files.iter_mut().filter(|(_, file)| !file.queue.is_empty()) {
            file.queue.cancel_connection(&file.meters, connection, &mut cancelled);
            if file.queue.is_empty() {
                due(&mut self.due, *name, file, None);
            }
        }
    }

    /// All that waits, because files have no ceiling any more.
    pub fn open(self) -> impl Iterator<Item = T> {
        self.files.into_values().flat_map(|file| file.queue.into_waiters())
    }

    /// How many requests wait for files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether none does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// How many files are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.files.len()
    }

    /// Forgets the files that owe nothing any more.
    pub fn forget(&mut self, now: Mono) {
        self.files.retain(|_, file| {
            file.back > 0 || !file.queue.is_empty() || !file.meters.is_settled(now)
        });
        self.room = self.files.len().saturating_mul(2).clamp(FILES_FEW, FILES_MAX);
        self.looks = Mono(now.0.saturating_add(CATCH_UP_NANOS));
    }

    /// The name by which a file is remembered.
    fn name(&mut self, name: K, now: Mono) -> Option<K> {
        if self.files.contains_key(&Some(name)) {
            return Some(name);
        }
        if self.files.len() >= self.room && (self.room < FILES_MAX || now >= self.looks) {
            self.forget(now);
        }
        (self.files.len() < FILES_MAX).then_some(name)
    }
}

/// The file of that name, made if it is new.
fn entry<K: Ord, T>(
    files: &mut BTreeMap<Option<K>, File<T>>,
    name: Option<K>,
    ceiling: Ceiling,
) -> &mut File<T> {
    files.entry(name).or_insert_with(|| File {
        meters: Meters::new(limits(ceiling)),
        queue: Queue::new(),
        due: None,
        back: 0,
    })
}

impl<T> File<T> {
    /// Has the file asked `at` that moment, if anybody waits and none is let back; says whether it is.
    fn ask<K: Ord + Copy>(
        &mut self,
        all: &mut BTreeSet<(Mono, Option<K>)>,
        name: Option<K>,
        at: Mono,
    ) -> bool {
        let asks = !self.queue.is_empty() && self.back == 0;
        if asks {
            due(all, name, self, Some(at));
        }
        asks
    }
}

/// Changes when a file is to be asked.
fn due<K: Ord + Copy, T>(
    all: &mut BTreeSet<(Mono, Option<K>)>,
    name: Option<K>,
    file: &mut File<T>,
    at: Option<Mono>,
) {
    if let Some(at) = core::mem::replace(&mut file.due, at) {
        all.remove(&(at, name));
    }
    if let Some(at) = at {
        all.insert((at, name));
    }
}

/// The limits of each file.
fn limits(ceiling: Ceiling) -> Limits {
    Limits::of(BytesPerSecond(u64::MAX)).under(ceiling)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::rate::Iops;

    const MILLI: u64 = 1_000_000;

    fn at(milli: u64) -> Mono {
        Mono(1_000_000_000 + milli * MILLI)
    }

    /// 100 operations a second for each file.
    fn files() -> Files<u64, char> {
        Files::new(Ceiling { rate: None, iops: Some(Iops(100)) })
    }

    fn hold(files: &mut Files<u64, char>, name: u64, token: char, now: Mono) {
        files.hold(name, (ClientKey(1), 1), Cost::of(1), token, now, u64::MAX);
    }

    /// Those that go now.
    fn polled(files: &mut Files<u64, char>, now: Mono) -> Vec<char> {
        let mut back = Vec::new();
        files.poll(now, &mut |token, name| back.push((token, name)));
        for (_, name) in &back {
            assert!(files.take(name.0.unwrap_or(u64::MAX), Cost::of(1), now).is_ok());
            files.left(*name, now);
        }
        back.into_iter().map(|(token, _)| token).collect()
    }

    /// Requests that go at once.
    fn at_once(files: &mut Files<u64, char>, name: u64, now: Mono) -> usize {
        (0..100).take_while(|_| files.try_take(name, Cost::of(1), now).is_some()).count()
    }

    #[test]
    fn each_file_has_the_ceiling_to_itself() {
        let mut files = files();
        assert_eq!([1, 2, 1].map(|name| at_once(&mut files, name, at(0))), [6, 6, 0]);
        assert_eq!(at_once(&mut files, 1, at(9)), 0, "60 ms were taken, 50 were there");
        assert_eq!(at_once(&mut files, 1, at(20)), 2);
    }

    #[test]
    fn who_waits_for_a_file_goes_when_that_lets_it_and_nobody_overtakes() {
        let mut files = files();
        at_once(&mut files, 1, at(0));
        hold(&mut files, 1, 'a', at(0));
        hold(&mut files, 1, 'b', at(0));
        assert_eq!((files.len(), files.next()), (2, Some(at(0))), "nobody has asked yet");
        assert_eq!(polled(&mut files, at(0)), []);
        assert_eq!(files.next(), Some(at(10)));
        assert_eq!(at_once(&mut files, 1, at(10)), 0, "somebody waits");
        assert_eq!(polled(&mut files, at(10)), ['a']);
        assert_eq!(polled(&mut files, at(20)), ['b']);
        assert!(files.is_empty() && files.next().is_none());
    }

    #[test]
    fn what_is_given_back_lets_the_next_go_sooner() {
        let mut files = files();
        let charge = files.try_take(1, Cost::of(5), at(0)).unwrap();
        assert_eq!(charge.unused(5, false), None, "all was moved");
        let failed = charge.unused(0, true).unwrap();
        assert!(!files.refund(failed, at(0)), "nobody waits");
        at_once(&mut files, 1, at(0));
        hold(&mut files, 1, 'a', at(0));
        assert_eq!(polled(&mut files, at(0)), []);
        assert!(files.refund(failed, at(1)));
        assert_eq!(polled(&mut files, at(1)), ['a']);
    }

    #[test]
    fn a_change_is_in_force_for_the_next_decision_and_none_frees_all() {
        let mut files = files();
        at_once(&mut files, 1, at(0));
        "abc".chars().for_each(|token| hold(&mut files, 1, token, at(0)));
        polled(&mut files, at(0));
        files.set(Ceiling { rate: None, iops: Some(Iops(10_000)) }, at(0));
        assert_eq!(polled(&mut files, at(1)), ['a', 'b', 'c']);
        files.set(Ceiling { rate: None, iops: Some(Iops(1)) }, at(1));
        "defgh".chars().for_each(|token| hold(&mut files, 1, token, at(1)));
        assert_eq!(Vec::from_iter(files.open()), ['d', 'e', 'f', 'g', 'h']);
    }

    #[test]
    fn those_let_back_are_charged_when_they_go_and_more_come_when_none_is_left() {
        let mut files = files();
        at_once(&mut files, 1, at(0));
        "abcdef".chars().for_each(|token| hold(&mut files, 1, token, at(0)));
        let mut back = Vec::new();
        files.poll(at(30), &mut |token, name| back.push((token, name)));
        assert_eq!(Vec::from_iter(back.iter().map(|(token, _)| *token)), ['a', 'b', 'c']);
        assert_eq!((files.next(), files.len()), (None, 3));
        let takes = |files: &mut Files<u64, char>, milli| {
            files.take(1, Cost::of(1), at(milli)).map(|charge| charge.cost)
        };
        // Their volume held them back for a second: they have 50 ms and one, as any other.
        let went = (0..10).take_while(|_| takes(&mut files, 1000).is_ok()).count();
        assert_eq!(went, 6);
        assert_eq!(takes(&mut files, 1000), Err(at(1010)));
        files.left(back[0].1, at(1000));
        files.left(back[1].1, at(1000));
        hold(&mut files, 1, 'c', at(1010));
        assert_eq!(files.next(), None, "one is still back");
        files.left(back[2].1, at(1000));
        assert_eq!(files.next(), Some(at(1000)));
        assert_eq!(polled(&mut files, at(1000)), []);
        assert_eq!(files.next(), Some(at(1010)));
    }

    #[test]
    fn what_waits_on_a_connection_that_is_gone_is_forgotten() {
        let mut files = files();
        at_once(&mut files, 1, at(0));
        hold(&mut files, 1, 'a', at(0));
        files.hold(1, (ClientKey(1), 2), Cost::of(1), 'b', at(0), 0);
        at_once(&mut files, 2, at(0));
        hold(&mut files, 2, 'c', at(0));
        let mut gone = Vec::new();
        files.cancel_connection(1, &mut |token| gone.push(token));
        assert_eq!((gone, files.len()), (Vec::from(['a', 'c']), 1));
        assert_eq!(polled(&mut files, at(10)), ['b']);
    }

    #[test]
    fn files_that_owe_nothing_are_forgotten() {
        let mut files = files();
        for name in 0..1000 {
            assert!(files.try_take(name, Cost::of(1), at(name)).is_some());
        }
        assert!(files.remembered() <= 3 * FILES_FEW, "{}", files.remembered());
        at_once(&mut files, 7, at(1000));
        hold(&mut files, 7, 'a', at(1000));
        files.forget(at(1100));
        assert_eq!(files.remembered(), 1, "somebody waits");
        polled(&mut files, at(1100));
        files.forget(at(1160));
        assert_eq!(files.remembered(), 0);
    }

    #[test]
    fn files_beyond_the_most_share_one_ceiling() {
        let mut files = files();
        let all = FILES_MAX as u64;
        for name in 0..all {
            at_once(&mut files, name, at(0));
        }
        assert_eq!(files.remembered(), FILES_MAX);
        let beyond = [all, all + 1].map(|name| at_once(&mut files, name, at(0)));
        assert_eq!(beyond, [6, 0]);
        hold(&mut files, all + 2, 'a', at(0));
        assert_eq!(polled(&mut files, at(10)), ['a']);
        assert_eq!(files.remembered(), FILES_MAX + 1);
        // There is room again once some owe nothing.
        assert_eq!(at_once(&mut files, all, at(200)), 6);
        assert!(files.remembered() <= 3, "{}", files.remembered());
    }
}
