//! Amounts of locks, waiters, shares and opens. Not here: the holders, and the bounds.

use crate::error::Counted;

/// Amounts of what can be held: in use, or at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Held ranges.
    pub locks: usize,
    /// Requests that wait.
    pub waiters: usize,
    /// Share reservations.
    pub shares: usize,
    /// Opens.
    pub opens: usize,
    /// Bytes in the names of owners, each owner counted once.
    pub owner_bytes: usize,
}

impl Use {
    /// The resource that would pass its bound if `more` were added.
    pub(crate) fn passes(&self, more: &Self, most: &Self) -> Option<Counted> {
        let over =
            |used: usize, more: usize, most: usize| more > 0 && used.saturating_add(more) > most;
        if over(self.locks, more.locks, most.locks) {
            Some(Counted::Locks)
        } else if over(self.waiters, more.waiters, most.waiters) {
            Some(Counted::Waiters)
        } else if over(self.shares, more.shares, most.shares) {
            Some(Counted::Shares)
        } else if over(self.opens, more.opens, most.opens) {
            Some(Counted::Opens)
        } else if over(self.owner_bytes, more.owner_bytes, most.owner_bytes) {
            Some(Counted::OwnerBytes)
        } else {
            None
        }
    }

    /// Adds `more`.
    pub(crate) fn add(&mut self, more: &Self) {
        self.locks += more.locks;
        self.waiters += more.waiters;
        self.shares += more.shares;
        self.opens += more.opens;
        self.owner_bytes += more.owner_bytes;
    }

    /// Takes `fewer` away, which it includes.
    pub(crate) fn sub(&mut self, fewer: &Self) {
        self.locks -= fewer.locks;
        self.waiters -= fewer.waiters;
        self.shares -= fewer.shares;
        self.opens -= fewer.opens;
        self.owner_bytes -= fewer.owner_bytes;
    }

    /// Whether nothing is held.
    pub(crate) fn is_none(&self) -> bool {
        self.things() == 0
    }

    /// The use that is left without `fewer`.
    pub(crate) fn without(&self, fewer: &Self) -> Self {
        let mut left = *self;
        left.sub(fewer);
        left
    }

    /// Held and waited for, whatever it is.
    pub(crate) fn things(&self) -> usize {
        self.locks + self.waiters + self.shares + self.opens
    }
}
