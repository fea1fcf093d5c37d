//! The bookkeeping of deficit round robin (Shreedhar and Varghese, 1995): what a turn has left,
//! and how large a turn must be. Not here: the rounds themselves.

use weir_core::limits::IO_BYTES_MAX;

/// Powers of two up to [`IO_BYTES_MAX`], from 1.
const CLASSES: usize = IO_BYTES_MAX.ilog2() as usize + 1;

const _: () = assert!(IO_BYTES_MAX.is_power_of_two() && CLASSES <= u32::BITS as usize);

/// What a request counts for in a turn: its cost, but at least one byte, so that every turn
/// ends, and at most the largest I/O there is.
pub(super) fn fair_cost(cost: u64) -> u64 {
    cost.clamp(1, IO_BYTES_MAX.into())
}

/// The smallest power of two that covers a request, as its exponent.
fn class(cost: u64) -> usize {
    fair_cost(cost).next_power_of_two().ilog2() as usize
}

/// How many requests of each size wait, to know the largest in O(1).
#[derive(Debug)]
pub(super) struct Sizes {
    waiting: [u32; CLASSES],
    /// Bit `n` is set while any request of class `n` waits.
    present: u32,
}

impl Sizes {
    pub(super) const NONE: Self = Self { waiting: [0; CLASSES], present: 0 };

    pub(super) fn add(&mut self, cost: u64) {
        let class = class(cost);
        self.waiting[class] = self.waiting[class].saturating_add(1);
        self.present |= 1 << class;
    }

    pub(super) fn remove(&mut self, cost: u64) {
        let class = class(cost);
        self.waiting[class] = self.waiting[class].saturating_sub(1);
        if self.waiting[class] == 0 {
            self.present &= !(1 << class);
        }
    }

    /// What a turn is worth: it covers every request that waits.
    pub(super) fn quantum(&self) -> u64 {
        self.present.checked_ilog2().map_or(1, |class| 1 << class)
    }
}

/// What one party may still send in its turn.
#[derive(Debug)]
pub(super) struct Deficit {
    left: u64,
    /// Whether the quantum of the present turn is already in `left`.
    begun: bool,
}

impl Deficit {
    pub(super) const NONE: Self = Self { left: 0, begun: false };

    /// Whether the turn, begun now if it hasn't been, covers a request of `cost`.
    pub(super) fn covers(&mut self, cost: u64, quantum: u64) -> bool {
        if !self.begun {
            self.begun = true;
            self.left += quantum;
        }
        self.left >= fair_cost(cost)
    }

    /// Takes a request that the turn covered off it.
    pub(super) fn spend(&mut self, cost: u64) {
        self.left = self.left.saturating_sub(fair_cost(cost));
    }

    pub(super) fn end_turn(&mut self) {
        self.begun = false;
    }
}
