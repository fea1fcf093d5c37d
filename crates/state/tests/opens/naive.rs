//! Opens and both disciplines of locks as plain lists, with nothing clever in them: what the tables
//! must agree with.

use weir_core::Access;
use weir_state::{Io, Mode, OpenMode, Presence, Share, Sharing};

/// Bytes of a file.
pub(crate) const BYTES: u64 = 10;
pub(crate) const FILES: usize = 2;
pub(crate) const SESSIONS: usize = 2;
/// Owners with names, each of a client of its own.
pub(crate) const OWNERS: usize = 2;

/// An owner of locks: a process, or an open by its place among all that ever were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Owner(usize),
    Open(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) file: usize,
    pub(crate) who: Who,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) mode: Mode,
}

impl Lock {
    /// Has one a byte of the other, or bytes on both sides of where the other has none?
    fn meets(&self, other: &Self) -> bool {
        let ends = |lock: &Self| (lock.offset, lock.offset + lock.length);
        let ((from, to), (other_from, other_to)) = (ends(self), ends(other));
        match (self.length, other.length) {
            (0, 0) => false,
            (0, _) => other_from < from && from < other_to,
            (_, 0) => from < other_from && other_from < to,
            _ => self.file == other.file && (from..to).any(|b| (other_from..other_to).contains(&b)),
        }
    }

    /// Does this held lock conflict with that `new` one?
    fn against(&self, new: &Self) -> bool {
        let modes = match (self.mode, new.mode) {
            (Mode::Shared, Mode::Shared) => false,
            (Mode::Exclusive, Mode::Shared) => self.who != new.who,
            _ => self.who != new.who || matches!(new.who, Who::Open(_)),
        };
        modes && self.file == new.file && self.meets(new)
    }

    /// Must a later request for the other not overtake this one?
    fn before(&self, later: &Self) -> bool {
        let exclusive = [self.mode, later.mode].contains(&Mode::Exclusive);
        let others = self.who != later.who || matches!(later.who, Who::Open(_));
        exclusive && others && self.file == later.file && self.meets(later)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) file: usize,
    pub(crate) session: usize,
    pub(crate) mode: OpenMode,
    pub(crate) delete_on_close: bool,
    pub(crate) closed: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted,
    Waits,
    Held,
    Deadlock,
    Closed,
}

#[derive(Debug, Default)]
pub(crate) struct Naive {
    pub(crate) opens: Vec<Open>,
    /// The open that had each file deleted.
    pub(crate) delete: [Option<usize>; FILES],
    pub(crate) shares: Vec<(usize, usize, Share)>,
    /// All locks of opens, and those of owners byte by byte.
    pub(crate) held: Vec<Lock>,
    /// The requests in the order of arrival, with the token of each.
    pub(crate) queue: Vec<(Lock, usize)>,
    /// The grants not yet fetched.
    pub(crate) grants: Vec<(Lock, usize)>,
}

impl Naive {
    pub(crate) fn live(&self, file: usize) -> impl Iterator<Item = (usize, &Open)> {
        let opens = self.opens.iter().enumerate();
        opens.filter(move |(_, open)| !open.closed && open.file == file)
    }

    /// The access that an open in this mode lets nobody else have.
    fn denies(mode: OpenMode) -> Sharing {
        if mode.access.is_empty() { Sharing::empty() } else { Sharing::all() - mode.share }
    }

    pub(crate) fn denied(&self, file: usize) -> Sharing {
        self.live(file).map(|(_, open)| Self::denies(open.mode)).collect()
    }

    /// `None` if it is refused because of how the file is shared.
    pub(crate) fn open(&mut self, open: Open) -> Option<usize> {
        let stands = |access: Sharing, denied: Sharing| {
            access.intersects(Self::denies(open.mode)) || denied.intersects(open.mode.access)
        };
        let opens = self.live(open.file).any(|(_, o)| stands(o.mode.access, Self::denies(o.mode)));
        let mut shares = self.shares.iter().filter(|(file, ..)| *file == open.file);
        if opens || shares.any(|(.., share)| stands(of(share.access), of(share.deny))) {
            return None;
        }
        self.opens.push(open);
        Some(self.opens.len() - 1)
    }

    /// Gives whether it was the last, the open that had the file deleted, and the tokens of waits.
    pub(crate) fn close(&mut self, at: usize) -> Option<(bool, Option<usize>, Vec<usize>)> {
        let open = self.opens.get_mut(at).filter(|open| !open.closed)?;
        open.closed = true;
        let Open { file, delete_on_close, .. } = *open;
        let own = |lock: &Lock| lock.who == Who::Open(at);
        let left = self.queue.extract_if(.., |(lock, _)| own(lock));
        let left: Vec<_> = left.map(|(_, token)| token).collect();
        let locks = self.held.len();
        self.held.retain(|lock| !own(lock));
        if locks != self.held.len() || !left.is_empty() {
            self.wake(file, None);
        }
        if delete_on_close && self.delete[file].is_none() {
            self.delete[file] = Some(at);
        }
        let last = self.live(file).next().is_none();
        Some((last, if last { self.delete[file].take() } else { None }, left))
    }

    pub(crate) fn share(&mut self, file: usize, owner: usize, share: Share) -> bool {
        let others = self.shares.iter().filter(|(at, who, _)| *at == file && *who != owner);
        let mut others = others.map(|(.., share)| (of(share.access), of(share.deny)));
        let opens = self.live(file).map(|(_, open)| (open.mode.access, Self::denies(open.mode)));
        let stands = |(access, denied): (Sharing, Sharing)| {
            access.intersects(of(share.deny)) || denied.intersects(of(share.access))
        };
        if others.any(stands) || opens.collect::<Vec<_>>().into_iter().any(stands) {
            return false;
        }
        self.unshare(file, owner);
        self.shares.push((file, owner, share));
        true
    }

    pub(crate) fn unshare(&mut self, file: usize, owner: usize) {
        self.shares.retain(|(at, who, _)| (*at, *who) != (file, owner));
    }

    /// The locks as ranges: those of opens, and the runs of bytes of each owner in one mode.
    pub(crate) fn ranges(&self) -> Vec<Lock> {
        let mut ranges = Vec::new();
        for lock in &self.held {
            let byte = |offset| self.held.contains(&Lock { offset, ..*lock });
            match lock.who {
                Who::Open(_) => ranges.push(*lock),
                // Not the first of its run.
                Who::Owner(_) if lock.offset.checked_sub(1).is_some_and(byte) => {}
                Who::Owner(_) => {
                    let end = (lock.offset..).find(|offset| !byte(*offset)).unwrap_or(BYTES);
                    ranges.push(Lock { length: end - lock.offset, ..*lock });
                }
            }
        }
        ranges
    }

    fn is_free(&self, lock: &Lock) -> bool {
        !self.ranges().iter().any(|held| held.against(lock))
    }

    fn holds(&self, who: Who) -> bool {
        self.held.iter().any(|held| held.who == who)
    }

    /// Asks for a lock. An owner that asks again for what it waits for waits once.
    pub(crate) fn lock(&mut self, lock: Lock, wait: Option<usize>) -> Answer {
        if let Who::Open(at) = lock.who
            && self.opens.get(at).is_none_or(|open| open.closed)
        {
            return Answer::Closed;
        }
        let again = |(waits, _): &(Lock, usize)| *waits == lock;
        let at = self.queue.iter().position(again).filter(|_| matches!(lock.who, Who::Owner(_)));
        let earlier = &self.queue[..at.unwrap_or(self.queue.len())];
        let behind = wait.is_some()
            && !self.holds(lock.who)
            && earlier.iter().any(|(waits, _)| waits.before(&lock));
        if self.is_free(&lock) && !behind {
            at.map(|at| self.queue.remove(at));
            if self.hold(&lock) {
                self.wake(lock.file, Some(&lock));
            }
            return Answer::Granted;
        }
        let Some(token) = wait else { return Answer::Held };
        match (at, lock.who) {
            (Some(at), _) => self.queue[at].1 = token,
            (None, Who::Owner(_)) if self.waits_for(&lock, lock.who, &mut Vec::new()) => {
                return Answer::Deadlock;
            }
            _ => self.queue.push((lock, token)),
        }
        Answer::Waits
    }

    /// Does `lock` wait, however indirectly, for something that `who` holds? Over owners alone.
    fn waits_for(&self, lock: &Lock, who: Who, seen: &mut Vec<Who>) -> bool {
        let held = self.ranges().into_iter().filter(|held| held.against(lock));
        held.map(|held| held.who).filter(|holder| matches!(holder, Who::Owner(_))).any(|holder| {
            if holder == who {
                return true;
            }
            if seen.contains(&holder) {
                return false;
            }
            seen.push(holder);
            let mut waits = self.queue.iter().filter(|(waits, _)| waits.who == holder);
            waits.any(|(waits, _)| self.waits_for(waits, who, seen))
        })
    }

    /// Holds a lock; `true` if that weakens what its owner held.
    fn hold(&mut self, lock: &Lock) -> bool {
        if let Who::Open(_) = lock.who {
            self.held.push(*lock);
            return false;
        }
        let weaker =
            lock.mode == Mode::Shared && self.own(lock).any(|held| held.mode == Mode::Exclusive);
        self.forget(lock);
        let bytes = lock.offset..lock.offset + lock.length;
        self.held.extend(bytes.map(|offset| Lock { offset, length: 1, ..*lock }));
        weaker
    }

    /// The bytes of `lock` that its owner holds.
    fn own(&self, lock: &Lock) -> impl Iterator<Item = &Lock> {
        self.held
            .iter()
            .filter(move |held| (held.who, held.file) == (lock.who, lock.file) && held.meets(lock))
    }

    fn forget(&mut self, lock: &Lock) {
        self.held
            .retain(|held| (held.who, held.file) != (lock.who, lock.file) || !held.meets(lock));
    }

    pub(crate) fn lock_all(&mut self, locks: &[Lock]) -> Answer {
        let before = self.held.clone();
        for lock in locks {
            let answer = self.lock(*lock, None);
            if answer != Answer::Granted {
                self.held = before;
                return answer;
            }
        }
        Answer::Granted
    }

    /// Gives up an owner's bytes.
    pub(crate) fn unlock(&mut self, lock: &Lock) {
        if self.own(lock).next().is_some() {
            self.forget(lock);
            self.wake(lock.file, Some(lock));
        }
    }

    /// Gives up one lock of an open; the mode of `lock` does not matter.
    pub(crate) fn unlock_open(&mut self, lock: &Lock) -> bool {
        let modes = [Mode::Exclusive, Mode::Shared];
        let exact = |mode| self.held.iter().position(|held| *held == Lock { mode, ..*lock });
        let Some(at) = modes.into_iter().find_map(exact) else { return false };
        self.held.remove(at);
        self.wake(lock.file, Some(lock));
        true
    }

    /// Gives up the lock of an open, however many times it holds it.
    pub(crate) fn unlock_every(&mut self, lock: &Lock) {
        self.held.retain(|held| held != lock);
        self.wake(lock.file, Some(lock));
    }

    /// Ends the wait at this place of the queue.
    pub(crate) fn cancel(&mut self, at: usize) -> usize {
        let (lock, token) = self.queue.remove(at);
        self.wake(lock.file, Some(&lock));
        token
    }

    /// Takes locks, waits and shares from a named owner.
    pub(crate) fn release(&mut self, owner: usize) {
        self.shares.retain(|(_, who, _)| *who != owner);
        for file in 0..FILES {
            let own = |lock: &Lock| (lock.file, lock.who) == (file, Who::Owner(owner));
            let before = (self.held.len(), self.queue.len());
            self.held.retain(|lock| !own(lock));
            self.queue.retain(|(lock, _)| !own(lock));
            if before != (self.held.len(), self.queue.len()) {
                self.wake(file, None);
            }
        }
    }

    /// Grants what can be granted where `freed` was, or anywhere on the file.
    fn wake(&mut self, file: usize, freed: Option<&Lock>) {
        let mut freed: Vec<Option<Lock>> = vec![freed.copied()];
        let mut at = 0;
        while let Some((lock, token)) = self.queue.get(at).copied() {
            let mut passed = self.queue[..at].iter();
            let behind = !self.holds(lock.who) && passed.any(|(waits, _)| waits.before(&lock));
            let mut freed_here = freed.iter();
            let concerned = lock.file == file
                && freed_here.any(|freed| freed.is_none_or(|freed| freed.meets(&lock)));
            if !concerned || behind || !self.is_free(&lock) {
                at += 1;
                continue;
            }
            self.queue.remove(at);
            self.grants.push((lock, token));
            if self.hold(&lock) {
                freed.push(Some(lock));
                at = 0;
            }
        }
    }

    /// May this byte be read or written, by an open or by somebody who has none?
    pub(crate) fn io(&self, file: usize, open: Option<usize>, byte: u64, io: Io) -> bool {
        let kind = if io == Io::Read { Sharing::READ } else { Sharing::WRITE };
        if open.is_none() && self.denied(file).contains(kind) {
            return false;
        }
        let here = |lock: &&Lock| {
            lock.file == file && (lock.offset..lock.offset + lock.length).contains(&byte)
        };
        !self.held.iter().filter(here).any(|lock| match (lock.mode, lock.who) {
            (_, Who::Owner(_)) if open.is_none() => false,
            (Mode::Exclusive, who) => open.is_none_or(|open| who != Who::Open(open)),
            (Mode::Shared, _) => io == Io::Write,
        })
    }

    pub(crate) fn presence(&self, file: usize) -> Presence {
        let mut presence = Presence::empty();
        presence.set(Presence::OPENS, self.live(file).next().is_some());
        let denied = self.denied(file).intersects(Sharing::READ | Sharing::WRITE);
        presence.set(Presence::DENIALS, denied);
        for lock in self.held.iter().filter(|lock| lock.file == file) {
            presence |= match lock.who {
                Who::Owner(_) => Presence::OWNER_LOCKS,
                Who::Open(_) => Presence::OPEN_LOCKS,
            };
        }
        presence
    }
}

/// The use that is meant by a share.
fn of(access: Access) -> Sharing {
    let kinds = [(Access::READ, Sharing::READ), (Access::WRITE, Sharing::WRITE)];
    kinds.into_iter().filter(|(kind, _)| access.contains(*kind)).map(|(_, kind)| kind).collect()
}
