//! Locks as an array of bytes, with nothing clever in it: what the table must agree with.

use weir_state::Mode;

/// Bytes of a file; the last one stands for everything up to the end of the largest file.
pub(crate) const BYTES: usize = 20;
pub(crate) const FILES: usize = 2;
/// The owners 0 and 1 belong to one client, 2 and 3 to the next, and so on.
pub(crate) const OWNERS: usize = 6;

/// Bytes of a file, from and to, both included.
pub(crate) type Span = (usize, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) file: usize,
    pub(crate) owner: usize,
    pub(crate) span: Span,
    pub(crate) mode: Mode,
}

impl Want {
    fn against(&self, other: &Self) -> bool {
        self.file == other.file
            && self.owner != other.owner
            && overlap(self.span, other.span)
            && (self.mode == Mode::Exclusive || other.mode == Mode::Exclusive)
    }
}

pub(crate) fn overlap(a: Span, b: Span) -> bool {
    (a.0..=a.1).any(|byte| (b.0..=b.1).contains(&byte))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted,
    Waits,
    Held,
    Deadlock,
}

type Bytes = [Option<Mode>; BYTES];

#[derive(Debug)]
struct Unsettled {
    number: usize,
    want: Want,
    before: Bytes,
}

#[derive(Debug, Default)]
pub(crate) struct Naive {
    /// The held bytes, by file and owner.
    held: [[Bytes; OWNERS]; FILES],
    /// The requests in the order of arrival, with the token of each.
    pub(crate) queue: Vec<(Want, usize)>,
    unsettled: Vec<Unsettled>,
    /// The grants to waiters not yet fetched: the requests, and their tokens.
    pub(crate) grants: Vec<(Want, usize)>,
    granted: usize,
}

impl Naive {
    pub(crate) fn held(&self, file: usize, owner: usize, byte: usize) -> Option<Mode> {
        self.held[file][owner][byte]
    }

    fn conflicts(&self, want: &Want) -> Vec<usize> {
        let conflicts = |owner: usize| {
            (want.span.0..=want.span.1).any(|byte| {
                self.held[want.file][owner][byte]
                    .is_some_and(|mode| mode == Mode::Exclusive || want.mode == Mode::Exclusive)
            })
        };
        (0..OWNERS).filter(|owner| *owner != want.owner && conflicts(*owner)).collect()
    }

    fn holds(&self, owner: usize) -> bool {
        self.held.iter().any(|file| file[owner].iter().any(Option::is_some))
    }

    /// Does `owner` hold anything, or wait?
    pub(crate) fn has(&self, owner: usize) -> bool {
        self.holds(owner) || self.queue.iter().any(|(want, _)| want.owner == owner)
    }

    pub(crate) fn test(&self, want: &Want) -> bool {
        self.conflicts(want).is_empty()
    }

    pub(crate) fn lock(&mut self, want: Want, wait: Option<usize>) -> Answer {
        let at = self.queue.iter().position(|(waits, _)| *waits == want);
        let held = !self.test(&want);
        let earlier = at.unwrap_or(self.queue.len());
        let behind = wait.is_some()
            && !self.holds(want.owner)
            && self.queue[..earlier].iter().any(|(waits, _)| waits.against(&want));
        if !held && !behind {
            at.map(|at| self.queue.remove(at));
            let before = self.held[want.file][want.owner];
            self.set(&want, Some(want.mode));
            self.settle_within(want.file, want.owner, want.span);
            self.wake_if_weaker(want.file, want.owner, before, want.span);
            return Answer::Granted;
        }
        let Some(token) = wait else { return Answer::Held };
        match at {
            Some(at) => self.queue[at].1 = token,
            None if self.waits_for(&want, want.owner, &mut Vec::new()) => return Answer::Deadlock,
            None => self.queue.push((want, token)),
        }
        Answer::Waits
    }

    /// Does `want` wait, however indirectly, for something that `owner` holds?
    fn waits_for(&self, want: &Want, owner: usize, seen: &mut Vec<usize>) -> bool {
        self.conflicts(want).into_iter().any(|holder| {
            if holder == owner {
                return true;
            }
            if seen.contains(&holder) {
                return false;
            }
            seen.push(holder);
            let mut waits = self.queue.iter().filter(|(waits, _)| waits.owner == holder);
            waits.any(|(waits, _)| self.waits_for(waits, owner, seen))
        })
    }

    pub(crate) fn unlock(&mut self, file: usize, owner: usize, span: Span) {
        let before = self.held[file][owner];
        self.set(&Want { file, owner, span, mode: Mode::Shared }, None);
        self.settle_within(file, owner, span);
        self.wake_if_weaker(file, owner, before, span);
    }

    /// `None` is weaker than a shared lock, and that than an exclusive one.
    fn wake_if_weaker(&mut self, file: usize, owner: usize, before: Bytes, span: Span) {
        if (0..BYTES).any(|byte| self.held[file][owner][byte] < before[byte]) {
            self.wake(file, span);
        }
    }

    pub(crate) fn cancel(&mut self, want: &Want) -> bool {
        if let Some(at) = self.queue.iter().position(|(waits, _)| waits == want) {
            self.queue.remove(at);
            self.wake(want.file, want.span);
            return true;
        }
        let at = self.unsettled.iter().position(|unsettled| unsettled.want == *want);
        at.map(|at| self.take_back(at)).is_some()
    }

    /// The client did not want grant `number`, counted from 0.
    pub(crate) fn refused(&mut self, number: usize) {
        if let Some(at) = self.unsettled.iter().position(|grant| grant.number == number) {
            self.take_back(at);
        }
    }

    pub(crate) fn taken(&mut self, number: usize) {
        self.unsettled.retain(|grant| grant.number != number);
    }

    pub(crate) fn release(&mut self, owners: &[usize]) {
        for file in 0..FILES {
            let before = (self.held[file], self.queue.clone());
            self.queue.retain(|(want, _)| want.file != file || !owners.contains(&want.owner));
            self.unsettled
                .retain(|grant| grant.want.file != file || !owners.contains(&grant.want.owner));
            for owner in owners {
                self.held[file][*owner] = [None; BYTES];
            }
            if before != (self.held[file], self.queue.clone()) {
                self.wake(file, (0, BYTES - 1));
            }
        }
    }

    fn take_back(&mut self, at: usize) {
        let Unsettled { want, before, .. } = self.unsettled.remove(at);
        let span = want.span.0..=want.span.1;
        let held = &mut self.held[want.file][want.owner][span.clone()];
        for (held, before) in held.iter_mut().zip(&before[span]) {
            *held = before.map(|mode| mode.min(want.mode));
        }
        self.wake(want.file, want.span);
    }

    fn set(&mut self, want: &Want, mode: Option<Mode>) {
        for byte in want.span.0..=want.span.1 {
            self.held[want.file][want.owner][byte] = mode;
        }
    }

    fn settle_within(&mut self, file: usize, owner: usize, span: Span) {
        self.unsettled.retain(|grant| {
            (grant.want.file, grant.want.owner) != (file, owner) || !overlap(grant.want.span, span)
        });
    }

    /// `span` may be free: whoever is first in the queue and can have it gets it. What a grant
    /// weakens is free too, and the queue is asked from the front again.
    fn wake(&mut self, file: usize, span: Span) {
        let mut freed = vec![span];
        let mut at = 0;
        while at < self.queue.len() {
            let (want, token) = self.queue[at];
            let passed = &self.queue[..at];
            let behind = !self.holds(want.owner) && passed.iter().any(|(w, _)| w.against(&want));
            let concerned = want.file == file && freed.iter().any(|s| overlap(want.span, *s));
            if !concerned || behind || !self.test(&want) {
                at += 1;
                continue;
            }
            self.queue.remove(at);
            let before = self.held[file][want.owner];
            self.set(&want, Some(want.mode));
            self.settle_within(file, want.owner, want.span);
            self.unsettled.push(Unsettled { number: self.granted, want, before });
            self.granted += 1;
            self.grants.push((want, token));
            if (0..BYTES).any(|byte| self.held[file][want.owner][byte] < before[byte]) {
                freed.push(want.span);
                at = 0;
            }
        }
    }

    /// The number of ranges that an `fcntl` would show: runs of bytes of one owner in one mode.
    pub(crate) fn ranges(&self) -> usize {
        self.held
            .iter()
            .flatten()
            .map(|bytes| {
                let starts =
                    |at: &usize| bytes[*at].is_some() && (*at == 0 || bytes[*at - 1] != bytes[*at]);
                (0..BYTES).filter(starts).count()
            })
            .sum()
    }
}
