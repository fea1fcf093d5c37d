//! One limit, and the fast path of the gate: may this request go now? One atomic word answers,
//! without a lock. What is counted is called bytes here; a meter of operations counts those
//! instead.
//!
//! # The rule
//!
//! The meter keeps a *virtual time* `v`: the moment at which everything admitted so far has been
//! paid for at the contract's rate `r`. A request of `c` bytes goes when `v ≤ now`, and then
//!
//! ```text
//! v := max(v, now − 50 ms) + c / r
//! ```
//!
//! # What it guarantees
//!
//! Let `L` be the largest request. In any window `(a, b]` the first admission finds
//! `v ≥ a − 50 ms` after the `max`, the last one finds `v ≤ b` before its own charge, and each
//! admission moves `v` on by exactly its cost. So at most `r · (b − a) + r · 50 ms + L` bytes go:
//! 5 % of one second plus one largest request, 0.5 % of ten seconds plus one largest request. That
//! holds from idle and under load alike, with nothing assumed about arrivals.
//!
//! While a request waits, no capacity is lost as long as the caller retries within 50 ms of the
//! time that the meter named: lateness leaves `v` behind `now`, and the next charges start from
//! `v`, not from `now`.
//!
//! # Refunds
//!
//! A request that transferred less than it was charged for is refunded the rest. A refund lowers
//! `v`, but never below its value without that charge: see `history.rs`. So the bound holds for all
//! charges that are not refunded, in any order of charges and refunds.
//!
//! # Why the credit is 50 ms, and not one largest request where that is more
//!
//! A request goes when `v` has been reached, whatever its size, so an idle volume already passes
//! at least one largest request at once on top of its 50 ms. A lag of `L / r` as well would let
//! *two* of them pass: at 1.5625 MiB/s with 1 MiB requests, 3 MiB in the first second where the
//! rule permits 1.5625 · 1.05 + 1. The 50 ms are what the rule leaves for late wake-ups.
//!
//! # Precision and range
//!
//! Time is kept in eighths of a nanosecond, 61 bits: 9.1 years. Charges are rounded up, so a meter
//! never grants more than its rate; its error is at most 1/8 ns per request (0.03 % for 4 KiB at
//! 10 GiB/s, 0.0002 % for 8 KiB at 128 MiB/s). Virtual time begins `ORIGIN_NANOS` before the
//! caller's clock does, so that a new meter starts with its full savings.
//!
//! A clock that jumps back leaves `v` ahead, so the volume waits for the clock to catch up; one
//! that jumps ahead yields the 50 ms and no more.
//!
//! # Assertions
//!
//! `debug_assert!` checks that a charge never moves `v` back and that a refund never moves it
//! forward.

use core::fmt;

use weir_core::Mono;

use crate::history::{BUCKET_NANOS, History, bucket_of, start_of};
use crate::rate::BytesPerSecond;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, spin_loop};

/// The time of the next poll if only a new slice can help: the present one has expired or its rate
/// is zero.
pub const NEVER: Mono = Mono(u64::MAX);

/// The lag that the virtual time of an idle volume may have, in nanoseconds: 50 ms. Credits for
/// bursts lag further (see [`Meters`](crate::Meters)).
pub const CATCH_UP_NANOS: u64 = 50_000_000;

/// The distance from the origin of virtual time to that of the caller's clock, in nanoseconds: 11
/// days. It is more than any slice saves: credits for an hour of bursts take at most 2.4 hours to
/// earn.
const ORIGIN_NANOS: u64 = 1_000_000_000_000_000;

/// The end of the range of the caller's clock, in nanoseconds.
const NOW_MAX: u64 = Word::TICKS_MAX / TICKS_PER_NANO - ORIGIN_NANOS;

const TICKS_PER_NANO: u64 = 8;
const TICKS_PER_SECOND: u64 = 1_000_000_000 * TICKS_PER_NANO;
const CATCH_UP_TICKS: u64 = CATCH_UP_NANOS * TICKS_PER_NANO;

/// The part of a volume's rate that this server may use, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSlice {
    /// The rate. Zero admits nothing.
    pub rate: BytesPerSecond,
    /// The end of the slice; from that moment it admits nothing until it is renewed. `None` is a
    /// slice that this server owns for good.
    pub expires: Option<Mono>,
    /// Time for which the unused rate is saved up, in nanoseconds.
    pub saved_nanos: u64,
}

impl RateSlice {
    /// The whole of `rate`, without an end.
    #[must_use]
    pub const fn owned(rate: BytesPerSecond) -> Self {
        Self { rate, expires: None, saved_nanos: CATCH_UP_NANOS }
    }
}

/// The meter of one limit, shared by all threads. See the [module](self) for its rule.
///
/// All that an admission reads fills one cache line of its own, so meters never disturb each other.
/// `N` is data of the meter's owner that an admission reads too; it takes what is left of the line,
/// which is at most three bytes.
#[repr(C, align(64))]
pub struct Meter<N = ()> {
    /// A [`Word`].
    word: AtomicU64,
    /// The slice in force is the one that the word's generation selects; the other is written to
    /// prepare a change.
    slices: [Slot; 2],
    /// The newest bucket of the history, as far as 32 bits go: an admission in the same one has
    /// nothing to note.
    bucket: AtomicU32,
    /// Held while the slice or the history changes, so that changes come one after another.
    changing: AtomicBool,
    neighbour: N,
    history: History,
}

/// A slice as the admission reads it.
#[derive(Debug)]
struct Slot {
    /// The rate in which charges are counted; never zero.
    rate: AtomicU64,
    /// End of the slice, in nanoseconds; zero for a slice of rate zero, `u64::MAX` for one without
    /// an end.
    expires: AtomicU64,
    /// The lag that the virtual time may have.
    saved_ticks: AtomicU64,
}

impl Slot {
    fn rate(&self) -> u64 {
        self.rate.load(Ordering::Relaxed)
    }

    /// The slice of rate zero keeps the rate it follows, because what is still owed is counted
    /// in it.
    fn set(&self, slice: RateSlice, follows: u64) {
        let (rate, expires) = match slice.rate.0 {
            0 => (follows, 0),
            rate => (rate, slice.expires.map_or(u64::MAX, |at| at.0)),
        };
        self.rate.store(rate, Ordering::Relaxed);
        self.expires.store(expires, Ordering::Relaxed);
        let saved = slice.saved_nanos.saturating_mul(TICKS_PER_NANO);
        self.saved_ticks.store(saved, Ordering::Relaxed);
    }

    fn saved_ticks(&self) -> u64 {
        self.saved_ticks.load(Ordering::Relaxed)
    }
}

/// Virtual time in ticks, the generation of the slice it is counted in (two bits), and whether a
/// request waits (one bit), in one word so that an admission can't miss a change of any of them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(u64);

impl Word {
    const WAITING: u64 = 1;
    const GENERATION_SHIFT: u32 = 1;
    const GENERATION: u64 = 0b11 << Self::GENERATION_SHIFT;
    const TICKS_SHIFT: u32 = 3;
    const TICKS_MAX: u64 = u64::MAX >> Self::TICKS_SHIFT;

    const fn waiting(self) -> bool {
        self.0 & Self::WAITING != 0
    }

    const fn ticks(self) -> u64 {
        self.0 >> Self::TICKS_SHIFT
    }

    fn at(self, ticks: u64) -> Self {
        let flags = self.0 & (Self::WAITING | Self::GENERATION);
        Self(ticks.min(Self::TICKS_MAX) << Self::TICKS_SHIFT | flags)
    }

    const fn slot(self) -> usize {
        (self.0 >> Self::GENERATION_SHIFT & 1) as usize
    }

    const fn next_generation(self) -> Self {
        let next = self.0.wrapping_add(1 << Self::GENERATION_SHIFT) & Self::GENERATION;
        Self(self.0 & !Self::GENERATION | next)
    }
}

impl Meter {
    /// A meter that starts with all that its slice saves.
    #[must_use]
    pub fn new(slice: RateSlice) -> Self {
        Self::beside(slice, ())
    }
}

impl<N> Meter<N> {
    /// A [new](Meter::new) meter whose owner keeps `neighbour` beside it.
    pub(crate) fn beside(slice: RateSlice, neighbour: N) -> Self {
        let slots = [(); 2].map(|()| Slot {
            rate: AtomicU64::new(1),
            expires: AtomicU64::new(0),
            saved_ticks: AtomicU64::new(0),
        });
        slots[0].set(slice, 1);
        Self {
            word: AtomicU64::new(0),
            slices: slots,
            bucket: AtomicU32::new(u32::MAX),
            changing: AtomicBool::new(false),
            neighbour,
            history: History::default(),
        }
    }

    /// The data of the meter's owner.
    pub(crate) const fn neighbour(&self) -> &N {
        &self.neighbour
    }

    /// Admits a request of `cost` bytes and charges it, if no request waits and the rate allows it
    /// now. On `false` nothing was charged: put the request into the volume's [`Queue`].
    ///
    /// Any number of threads may call at once; together they never get more than one would.
    ///
    /// [`Queue`]: crate::Queue
    #[must_use]
    pub fn try_take(&self, cost: u64, now: Mono) -> bool {
        self.try_take_held(cost, now, 0)
    }

    /// Like [`try_take`](Self::try_take), but the virtual time may lag by `held_nanos` more.
    pub(crate) fn try_take_held(&self, cost: u64, now: Mono, held_nanos: u64) -> bool {
        let held = held_nanos.saturating_mul(TICKS_PER_NANO);
        self.note(now, held);
        let mut word = self.load();
        while !word.waiting() {
            let Ok(next) = self.charged(word, cost, now, held) else { return false };
            match self.replace(word, next) {
                Ok(()) => return true,
                Err(found) => word = found,
            }
        }
        false
    }

    /// Like [`try_take`](Self::try_take) for the waiting request whose turn it is; a refusal names
    /// the time to retry. The virtual time may lag by `held_nanos` more.
    pub(crate) fn take_waiting(&self, cost: u64, now: Mono, held_nanos: u64) -> Result<(), Mono> {
        let held = held_nanos.saturating_mul(TICKS_PER_NANO);
        self.note(now, held);
        let mut word = self.load();
        loop {
            let next = self.charged(word, cost, now, held)?;
            match self.replace(word, next) {
                Ok(()) => return Ok(()),
                Err(found) => word = found,
            }
        }
    }

    /// Refunds at `now` `cost` bytes of a charge that was made at `charged_at`: the request
    /// transferred less than it was charged for (a failed operation, a READ past the end of the
    /// file).
    ///
    /// The refund never leaves the meter better off than without the charge, so a client gains
    /// nothing by holding charges and returning them late or together. A charge that is refunded
    /// within 131 µs is refunded whole, an older one as far as its time has not expired; of either,
    /// 131 µs of the rate may be withheld, unless the charge was made at `now`. Poll the queue
    /// afterwards: a waiting request may be admitted earlier now.
    pub fn refund(&self, cost: u64, charged_at: Mono, now: Mono) {
        let _changing = self.lock();
        let (bucket, mut word) = (bucket_of(charged_at), self.load());
        let ticks = ticks_of(cost, self.slices[word.slot()].rate());
        let length = BUCKET_NANOS * TICKS_PER_NANO;
        let ticks = self.history.refund(bucket, ticks, length, charged_at == now);
        loop {
            let next = word.at(word.ticks().saturating_sub(ticks));
            debug_assert!(next.ticks() <= word.ticks(), "a refund lowers the virtual time");
            match self.replace(word, next) {
                Ok(()) => return,
                Err(found) => word = found,
            }
        }
    }

    /// Puts another rate in force, or renews a lease: the next decision is made by `slice`.
    ///
    /// An admitted charge that isn't paid for yet stays owed **in bytes**, and is paid at the new
    /// rate: 1 MiB taken at 1 MiB/s and changed at once to 100 MiB/s is paid for after 10 ms, not
    /// after a second. Likewise an unused credit keeps its bytes (at most 50 ms at the old rate,
    /// and never more than 50 ms at the new).
    ///
    /// Poll the queue afterwards: the time it named belongs to the old rate. A slice of rate zero
    /// admits nothing; the debt is kept in bytes for the next slice.
    pub fn set_slice(&self, slice: RateSlice, now: Mono) {
        let _changing = self.lock();
        let mut word = self.load();
        let old = &self.slices[word.slot()];
        let (follows, saved) = (old.rate(), old.saved_ticks());
        let slot = &self.slices[word.next_generation().slot()];
        slot.set(slice, follows);
        let rate = slot.rate();
        loop {
            let ticks = rescaled(word.ticks(), ticks_at(now), saved, follows, rate);
            match self.replace(word, word.at(ticks).next_generation()) {
                Ok(()) => break,
                Err(found) => word = found,
            }
        }
        let scale = |slack| u128::from(slack) * u128::from(follows) / u128::from(rate);
        self.history.rescale(|slack| narrow(scale(slack)));
    }

    /// The savings at `now` beyond the 50 ms of every meter, in bytes, rounded down.
    pub(crate) fn saved(&self, now: Mono) -> u64 {
        let word = self.load();
        let slot = &self.slices[word.slot()];
        let lag = ticks_at(now).saturating_sub(word.ticks()).min(slot.saved_ticks());
        let beyond = lag.saturating_sub(CATCH_UP_TICKS);
        narrow(u128::from(beyond) * u128::from(slot.rate()) / u128::from(TICKS_PER_SECOND))
    }

    /// Sets the savings at `now` beyond the 50 ms, in bytes. Savings above the maximum of the slice
    /// in force do not count.
    pub(crate) fn save(&self, bytes: u64, now: Mono) {
        let _changing = self.lock();
        self.history.clear();
        let mut word = self.load();
        loop {
            let lag = ticks_of(bytes, self.slices[word.slot()].rate());
            let lag = lag.saturating_add(CATCH_UP_TICKS);
            let next = word.at(ticks_at(now).saturating_sub(lag));
            match self.replace(word, next) {
                Ok(()) => return,
                Err(found) => word = found,
            }
        }
    }

    /// Bytes admitted by `now` that the slice in force has not paid for yet, rounded up.
    pub(crate) fn owed(&self, now: Mono) -> u64 {
        let word = self.load();
        let ahead = word.ticks().saturating_sub(ticks_at(now));
        let rate = self.slices[word.slot()].rate();
        let owed = u128::from(ahead) * u128::from(rate);
        narrow(owed.div_ceil(u128::from(TICKS_PER_SECOND)))
    }

    /// The yield of the slice in force in `nanos`, in bytes.
    pub(crate) fn yields(&self, nanos: u64) -> u64 {
        let rate = self.slices[self.load().slot()].rate();
        narrow(u128::from(rate) * u128::from(nanos) / 1_000_000_000)
    }

    /// Time that the slice in force takes for `bytes`, in nanoseconds.
    pub(crate) fn takes(&self, bytes: u64) -> u64 {
        ticks_of(bytes, self.slices[self.load().slot()].rate()) / TICKS_PER_NANO
    }

    /// Whether this is at `now` as a new one would be: its full catch-up credit is unused.
    pub(crate) fn is_settled(&self, now: Mono) -> bool {
        let word = self.load();
        let saved = self.slices[word.slot()].saved_ticks();
        word.ticks().saturating_add(saved) <= ticks_at(now)
    }

    /// Whether a request waits, so that the rate limits the volume at present.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.load().waiting()
    }

    /// Closes (`true`) or opens the fast path. The queue does it, under its caller's mutex.
    pub(crate) fn set_waiting(&self, waiting: bool) {
        if waiting {
            self.word.fetch_or(Word::WAITING, Ordering::AcqRel);
        } else {
            self.word.fetch_and(!Word::WAITING, Ordering::AcqRel);
        }
    }

    /// Whether the admitted charges of this meter are paid for later than those of `other`.
    pub(crate) fn is_ahead_of<M>(&self, other: &Meter<M>) -> bool {
        self.load().ticks() > other.load().ticks()
    }

    /// The word after charging `cost`, with a virtual time that may lag by `held` ticks more than
    /// the slice saves, or the time to retry.
    fn charged(&self, word: Word, cost: u64, now: Mono, held: u64) -> Result<Word, Mono> {
        let slot = &self.slices[word.slot()];
        if now.0 >= slot.expires.load(Ordering::Relaxed) {
            return Err(NEVER);
        }
        let now_ticks = ticks_at(now);
        if word.ticks() > now_ticks {
            return Err(mono_at(word.ticks()));
        }
        let lag = slot.saved_ticks().saturating_add(held);
        let from = word.ticks().max(now_ticks.saturating_sub(lag));
        let next = word.at(from.saturating_add(ticks_of(cost, slot.rate())));
        debug_assert!(next.ticks() >= word.ticks(), "a charge moves the virtual time forward");
        Ok(next)
    }

    /// Notes in the history that a bucket begins, if `now` is in another bucket than the last
    /// admission.
    fn note(&self, now: Mono, held: u64) {
        let bucket = bucket_of(now);
        if low(bucket) != self.bucket.load(Ordering::Relaxed) {
            self.open(bucket, now, held);
        }
    }

    #[cold]
    fn open(&self, bucket: u64, now: Mono, held: u64) {
        let _changing = self.lock();
        if self.history.newest().is_some_and(|newest| newest >= bucket) {
            return;
        }
        let word = self.load();
        let lag = self.slices[word.slot()].saved_ticks().saturating_add(held);
        let ticks = word.ticks().max(ticks_at(now).saturating_sub(lag));
        let slack = ticks.saturating_add(lag).saturating_sub(ticks_at(Mono(start_of(bucket))));
        self.history.open(bucket, slack);
        self.bucket.store(low(bucket), Ordering::Relaxed);
    }

    /// Serializes changes of the slice and the history.
    fn lock(&self) -> Changing<'_> {
        while self.changing.swap(true, Ordering::Acquire) {
            spin_loop();
        }
        Changing(&self.changing)
    }

    fn load(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    /// Replaces the word if it is still `from`.
    ///
    /// Acquire and release on both sides order the slot accesses around it: a thread that replaces
    /// a word of generation `g` has read the slot of `g` and nothing later, because that slot is
    /// written again only after the word has moved to `g + 1`. A wrap of the two generation bits
    /// would take four changes of contract between the load and this exchange, with the virtual
    /// time unmoved, and would charge that one request at an older rate.
    fn replace(&self, from: Word, to: Word) -> Result<(), Word> {
        self.word
            .compare_exchange_weak(from.0, to.0, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(Word)
    }
}

/// The right to change the slice and the history; given up when dropped.
struct Changing<'a>(&'a AtomicBool);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<N> fmt::Debug for Meter<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.load();
        f.debug_struct("Meter")
            .field("virtual_time", &mono_at(word.ticks()))
            .field("waiting", &word.waiting())
            .field("slice", &self.slices[word.slot()])
            .finish_non_exhaustive()
    }
}

/// The virtual time at `now`, capped at the end of the range.
fn ticks_at(now: Mono) -> u64 {
    (now.0.min(NOW_MAX) + ORIGIN_NANOS) * TICKS_PER_NANO
}

/// The moment of a virtual time, rounded up.
fn mono_at(ticks: u64) -> Mono {
    Mono(ticks.div_ceil(TICKS_PER_NANO).saturating_sub(ORIGIN_NANOS))
}

/// The time that `cost` bytes take at `rate`, in ticks, rounded up.
fn ticks_of(cost: u64, rate: u64) -> u64 {
    match cost.checked_mul(TICKS_PER_SECOND) {
        Some(product) => product.div_ceil(rate),
        None => narrow((u128::from(cost) * u128::from(TICKS_PER_SECOND)).div_ceil(rate.into())),
    }
}

/// The virtual time that, at rate `new`, is as many bytes away from `now` as `ticks` is at `old`,
/// of which at most `saved` ticks count.
fn rescaled(ticks: u64, now: u64, saved: u64, old: u64, new: u64) -> u64 {
    let (old, new) = (u128::from(old), u128::from(new));
    match ticks.checked_sub(now) {
        Some(owed) => now.saturating_add(narrow((u128::from(owed) * old).div_ceil(new))),
        None => {
            let unused = (now - ticks).min(saved);
            now.saturating_sub(narrow(u128::from(unused) * old / new))
        }
    }
}

/// The low half of a bucket's number.
const fn low(bucket: u64) -> u32 {
    (bucket & 0xffff_ffff) as u32
}

fn narrow(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
