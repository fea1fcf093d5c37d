//! Counters of one volume: a block a worker, so that counting costs no shared cache line. A block
//! is made when its worker first serves the volume: of many volumes, few are in use.
//!
//! READs, WRITEs and COMMITs are followed through their stages behind the gate, because their
//! contract is judged by where they spend their time ([`weir_qos::verdict`]): *inside*, from the
//! gate to the end of the operation, then *unsent*, until the socket takes the reply. How many are
//! in each stage is summed over time, so that a request which never ends is seen while it doesn't.

use super::histograms::Histograms;
use crate::op_name::OpName;
use crate::sync::{AtomicU64, OnceLock, Ordering, fence};
use std::time::Duration;
use weir_control::plane::{OperationCount, VolumeHistograms, VolumeLive};
use weir_core::{Mono, OpClass};
use weir_gate::{ConnId, FileMark, Use, Uses};
use weir_qos::Cost;
use weir_qos::load::FileShare;
use weir_qos::verdict::Reading;

/// Looks at a block that its worker is changing. Beyond: what is there is taken, and the next look
/// sets it right.
const LOOKS_MAX: usize = 1000;

/// Requests count as the largest for up to two stretches of this many nanoseconds, as an exponent
/// of two: about a second each.
const LARGEST_SHIFT: u32 = 30;

/// One worker's counters. Only that worker writes them; anyone reads.
#[repr(align(128))]
#[derive(Default)]
struct Block {
    /// Odd while the worker is changing several that belong together.
    turn: AtomicU64,
    /// The histograms, if the operator asked for them.
    histograms: Option<Box<Histograms>>,
    read_ops: AtomicU64,
    read_bytes: AtomicU64,
    write_ops: AtomicU64,
    write_bytes: AtomicU64,
    /// Every operation that was answered, by its index.
    operations: Operations,
    /// The connections that the volume is used on, and the file that is used most.
    uses: Uses,
    delayed_ops: AtomicU64,
    wait_nanos: AtomicU64,
    latency_nanos: AtomicU64,
    /// READs and WRITEs that the gate let through as they came.
    direct_ops: AtomicU64,
    direct_bytes: AtomicU64,
    /// Refunds of READs and WRITEs: failed operations, and bytes not moved.
    returned_ops: AtomicU64,
    returned_bytes: AtomicU64,
    /// COMMITs, and other operations that were charged for; and those alone.
    commits: AtomicU64,
    charged_ops: AtomicU64,
    /// Requests in the two stages, as of `at`.
    inside: AtomicU64,
    unsent: AtomicU64,
    at: AtomicU64,
    inside_nanos: AtomicU64,
    unsent_nanos: AtomicU64,
    busy_nanos: AtomicU64,
    /// From the store's word to the worker's, and before the gate let anything begin.
    late_nanos: AtomicU64,
    queued_nanos: AtomicU64,
    /// Time in the store of what is done: unlike `inside_nanos` less the others it only grows.
    store_nanos: AtomicU64,
    /// The largest request since the last multiple of 2^[`LARGEST_SHIFT`] ns, and before that.
    largest: AtomicU64,
    largest_before: AtomicU64,
}

/// The counters of every operation, by its index.
struct Operations([Operation; OpName::COUNT]);

impl Default for Operations {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Operation::default()))
    }
}

/// The requests of one operation that were answered, and those of them with an error status.
#[derive(Default)]
struct Operation {
    answered: AtomicU64,
    failed: AtomicU64,
}

/// The times at which an operation reached each stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stages {
    /// Time of arrival.
    pub(crate) arrived: Mono,
    /// Time of the start.
    pub(crate) started: Mono,
    /// Time at which the store woke its worker, if the operation had to wait.
    pub(crate) woken: Option<Mono>,
}

/// An operation that came to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) connection: ConnId,
    pub(crate) op: OpName,
    pub(crate) class: OpClass,
    /// The operation's charge.
    pub(crate) cost: Cost,
    /// Bytes that it moved.
    pub(crate) moved: u64,
    /// The file of a READ or WRITE.
    pub(crate) file: Option<FileMark>,
    /// Did it succeed?
    pub(crate) ok: bool,
    /// Has it a connection that its reply goes to?
    pub(crate) replied: bool,
    /// Was it inside until now? Otherwise it was [set aside](Stats::set_aside).
    pub(crate) inside: bool,
    pub(crate) stages: Stages,
}

/// The counters of one volume.
pub(crate) struct Stats {
    /// Are there histograms too?
    histograms: bool,
    blocks: Box<[OnceLock<Box<Block>>]>,
}

/// Does an operation that ended like this count as one? It does if it moved anything: a client
/// that has its READs fail uses the store like any other.
pub(super) const fn counts(moved: u64, ok: bool) -> bool {
    ok || moved > 0
}

/// Is the operation one that its contract is judged by: a READ, WRITE or COMMIT, or another that
/// was charged for?
pub(crate) const fn is_judged(class: OpClass, charged: Cost) -> bool {
    matches!(class, OpClass::Read | OpClass::Write | OpClass::Commit) || charged.operations > 0
}

impl Stats {
    /// All zero, for `workers` workers, with `histograms` or without.
    pub(crate) fn new(workers: usize, histograms: bool) -> Self {
        Self { histograms, blocks: (0..workers).map(|_| OnceLock::new()).collect() }
    }

    fn block(&self, worker: usize) -> Option<&Block> {
        let made = || {
            let histograms = self.histograms.then(Box::default);
            Box::new(Block { histograms, ..Block::default() })
        };
        Some(self.blocks.get(worker)?.get_or_init(made))
    }

    /// An operation that is judged, and that the gate let through, is taken up: `direct`ly if it
    /// had not to wait for its contract. Since it came, or since the gate let it go, the worker was
    /// busy for `queued`.
    pub(crate) fn passed(
        &self,
        worker: usize,
        cost: Cost,
        direct: bool,
        queued: Duration,
        now: Mono,
    ) {
        let Some(block) = self.block(worker) else { return };
        block.change(now, || {
            bump(&block.inside, 1);
            bump(&block.queued_nanos, nanos(queued));
            if direct {
                bump(&block.direct_ops, cost.operations);
                bump(&block.direct_bytes, cost.bytes);
            }
            if cost.bytes > get(&block.largest) {
                block.largest.store(cost.bytes, Ordering::Relaxed);
            }
        });
        if let Some(histograms) = block.histograms.as_ref().filter(|_| direct) {
            histograms.waited(Duration::ZERO);
        }
    }

    /// An operation that is judged, and was inside for so long, waits for others than the store
    /// from now on.
    pub(crate) fn set_aside(&self, worker: usize, inside: Duration, now: Mono) {
        let Some(block) = self.block(worker) else { return };
        block.change(now, || {
            drop_by(&block.inside, 1);
            bump(&block.store_nanos, nanos(inside));
        });
    }

    /// A request that the gate had let through is not carried out after all.
    pub(crate) fn dropped(&self, worker: usize, cost: Cost, now: Mono) {
        let Some(block) = self.block(worker) else { return };
        block.change(now, || {
            drop_by(&block.inside, 1);
            bump(&block.returned_ops, cost.operations);
            bump(&block.returned_bytes, cost.bytes);
        });
    }

    /// Counts a request that the gate had let through and that is not carried out, because its
    /// connection is gone.
    pub(crate) fn returned(&self, worker: usize, cost: Cost, now: Mono) {
        let Some(block) = self.block(worker) else { return };
        block.change(now, || {
            bump(&block.returned_ops, cost.operations);
            bump(&block.returned_bytes, cost.bytes);
        });
    }

    /// Counts an operation that ended `now`.
    pub(crate) fn done(&self, done: &Done, now: Mono) {
        let Some(block) = self.block(done.connection.worker) else { return };
        if is_judged(done.class, done.cost) {
            block.change(now, || block.done_data(done, now));
        }
        block.answered(done.op, done.ok);
        block.uses.count(done.connection.token, 1, done.moved, now);
        block.took(done.class, 1, now.since(done.stages.arrived));
    }

    /// Counts an operation that was answered and by which no contract is judged; its connection is
    /// left to [`used`](Self::used), its latency to [`took_others`](Self::took_others).
    pub(crate) fn answered(&self, worker: usize, op: OpName, ok: bool) {
        if let Some(block) = self.block(worker) {
            block.answered(op, ok);
        }
    }

    /// Counts so many operations by which no contract is judged, answered on `connection` at about
    /// `now`.
    pub(crate) fn used(&self, connection: ConnId, operations: u64, now: Mono) {
        if let Some(block) = self.block(connection.worker) {
            block.uses.count(connection.token, operations, 0, now);
        }
    }

    /// Counts the latency of so many operations that are neither READs nor WRITEs.
    pub(crate) fn took_others(&self, worker: usize, operations: u64, each: Duration) {
        if let Some(block) = self.block(worker) {
            block.took(OpClass::Metadata, operations, each);
        }
    }

    /// The socket took the replies to so many READs, WRITEs and COMMITs, or never will.
    pub(crate) fn sent(&self, worker: usize, replies: u64, now: Mono) {
        let Some(block) = self.block(worker) else { return };
        block.change(now, || drop_by(&block.unsent, replies));
    }

    /// Counts a request that waited at the gate for so long.
    pub(crate) fn delayed(&self, worker: usize, waited: Duration) {
        let Some(block) = self.block(worker) else { return };
        bump(&block.delayed_ops, 1);
        bump(&block.wait_nanos, nanos(waited));
        if let Some(histograms) = &block.histograms {
            histograms.waited(waited);
        }
    }

    /// The histograms over all workers, where they were asked for.
    pub(crate) fn histograms(&self) -> Option<Box<VolumeHistograms>> {
        self.histograms.then(|| {
            let mut sum = Box::default();
            let blocks = self.blocks.iter().filter_map(OnceLock::get);
            blocks
                .filter_map(|block| block.histograms.as_ref())
                .for_each(|one| one.add_to(&mut sum));
            sum
        })
    }

    /// The sums over all workers; the gauges are the caller's to fill.
    pub(crate) fn sum(&self) -> VolumeLive {
        let mut live = VolumeLive::default();
        for block in self.blocks.iter().filter_map(OnceLock::get) {
            live.read_ops += get(&block.read_ops);
            live.read_bytes += get(&block.read_bytes);
            live.write_ops += get(&block.write_ops);
            live.write_bytes += get(&block.write_bytes);
            live.delayed_ops += get(&block.delayed_ops);
            live.wait_nanos += get(&block.wait_nanos);
            live.latency_nanos += get(&block.latency_nanos);
            live.store_nanos += get(&block.store_nanos);
            live.network_nanos += get(&block.unsent_nanos);
            live.processing_nanos += get(&block.late_nanos) + get(&block.queued_nanos);
        }
        for op in OpName::all() {
            let count = self.count_of(op);
            live.failed_ops += count.failed;
            if !matches!(op.class(), OpClass::Read | OpClass::Write) {
                live.other_ops += count.answered;
            }
            if count.answered > 0 {
                live.operations.push(count);
            }
        }
        live
    }

    /// The connections that the volume was used on, as far as they are counted one by one. Some may
    /// be closed.
    pub(crate) fn uses(&self) -> impl Iterator<Item = Use> {
        let blocks = self.blocks.iter().filter_map(OnceLock::get);
        blocks.flat_map(|block| block.uses.each())
    }

    /// The file that most READs and WRITEs are for at `now`.
    pub(super) fn file(&self, now: Mono) -> FileShare {
        let blocks = self.blocks.iter().filter_map(OnceLock::get);
        blocks
            .map(|block| block.whole(|| block.uses.file(now)))
            .fold(FileShare::default(), |a, b| a + b)
    }

    /// The number of times that `op` was answered.
    fn count_of(&self, op: OpName) -> OperationCount {
        let (protocol, operation, class) = (op.protocol(), op.name(), op.class());
        let mut count = OperationCount { protocol, operation, class, answered: 0, failed: 0 };
        let blocks = self.blocks.iter().filter_map(OnceLock::get);
        for operation in blocks.filter_map(|block| block.operations.0.get(op.index())) {
            count.answered += get(&operation.answered);
            count.failed += get(&operation.failed);
        }
        count
    }

    /// Operations that were answered.
    pub(crate) fn operations(&self) -> u64 {
        let blocks = self.blocks.iter().filter_map(OnceLock::get);
        let operations = blocks.flat_map(|block| &block.operations.0);
        operations.map(|operation| get(&operation.answered)).sum()
    }

    /// The sum of all workers' blocks `now`; nothing if no worker ever served the volume. The
    /// caller fills in the gate's part.
    pub(crate) fn read(&self, now: Mono) -> Option<Reading> {
        let mut blocks = self.blocks.iter().filter_map(OnceLock::get).peekable();
        blocks.peek()?;
        let mut reading = Reading { at: now, ..Reading::default() };
        for block in blocks {
            block.read(now, &mut reading);
        }
        Some(reading)
    }
}

impl Block {
    /// Brings the sums over time up to `now`, then makes a change; readers see all of it or
    /// nothing.
    fn change(&self, now: Mono, change: impl FnOnce()) {
        let turn = get(&self.turn);
        self.turn.store(turn + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let at = get(&self.at);
        let since = now.0.saturating_sub(at);
        let (inside, unsent) = (get(&self.inside), get(&self.unsent));
        bump(&self.inside_nanos, inside.wrapping_mul(since));
        bump(&self.unsent_nanos, unsent.wrapping_mul(since));
        bump(&self.busy_nanos, if inside + unsent > 0 { since } else { 0 });
        self.forget_largest(at, at + since);
        self.at.store(at + since, Ordering::Relaxed);
        change();
        self.turn.store(turn + 2, Ordering::Release);
    }

    fn answered(&self, op: OpName, ok: bool) {
        if let Some(operation) = self.operations.0.get(op.index()) {
            bump(&operation.answered, 1);
            if !ok {
                bump(&operation.failed, 1);
            }
        }
    }

    fn took(&self, class: OpClass, operations: u64, each: Duration) {
        bump(&self.latency_nanos, operations.saturating_mul(nanos(each)));
        if let Some(histograms) = &self.histograms {
            histograms.took(class, operations, each);
        }
    }

    fn forget_largest(&self, at: u64, now: u64) {
        let (then, this) = (at >> LARGEST_SHIFT, now >> LARGEST_SHIFT);
        if then != this {
            let before = if then + 1 == this { get(&self.largest) } else { 0 };
            self.largest_before.store(before, Ordering::Relaxed);
            self.largest.store(0, Ordering::Relaxed);
        }
    }

    fn done_data(&self, done: &Done, now: Mono) {
        if let Some(file) = done.file {
            self.uses.vote(file, now);
        }
        match done.class {
            OpClass::Read => {
                bump(&self.read_ops, 1);
                bump(&self.read_bytes, done.moved);
            }
            OpClass::Write => {
                bump(&self.write_ops, 1);
                bump(&self.write_bytes, done.moved);
            }
            OpClass::Null | OpClass::Metadata | OpClass::Commit => {
                bump(&self.commits, 1);
                bump(&self.charged_ops, done.cost.operations);
            }
        }
        bump(&self.returned_bytes, done.cost.bytes.saturating_sub(done.moved));
        let counts = counts(done.moved, done.ok);
        bump(&self.returned_ops, if counts { 0 } else { done.cost.operations });
        let Stages { started, woken, .. } = done.stages;
        let ended = woken.map_or(now, |woken| woken.clamp(started, now.max(started)));
        bump(&self.store_nanos, nanos(ended.since(started)));
        bump(&self.late_nanos, nanos(now.since(ended)));
        drop_by(&self.inside, done.inside.into());
        bump(&self.unsent, u64::from(done.replied));
    }

    /// Adds what the block shows to `sum`.
    fn read(&self, now: Mono, sum: &mut Reading) {
        let (one, busy) = self.whole(|| self.look(now));
        for (sum, more) in [
            (&mut sum.offered, one.offered),
            (&mut sum.passed, one.passed),
            (&mut sum.returned, one.returned),
            (&mut sum.delivered, one.delivered),
        ] {
            sum.bytes = sum.bytes.wrapping_add(more.bytes);
            sum.operations = sum.operations.wrapping_add(more.operations);
        }
        for (sum, more) in [
            (&mut sum.requests, one.requests),
            (&mut sum.inside_nanos, one.inside_nanos),
            (&mut sum.late_nanos, one.late_nanos),
            (&mut sum.queued_nanos, one.queued_nanos),
            (&mut sum.unsent_nanos, one.unsent_nanos),
        ] {
            *sum = sum.wrapping_add(more);
        }
        sum.largest_bytes = sum.largest_bytes.max(one.largest_bytes);
        sum.busy_nanos = sum.busy_nanos.max(busy);
    }

    /// The result of `look` at counters that belong together, while none of them changes.
    fn whole<T>(&self, look: impl Fn() -> T) -> T {
        for _ in 0..LOOKS_MAX {
            let turn = self.turn.load(Ordering::Acquire);
            let seen = look();
            fence(Ordering::Acquire);
            if turn.is_multiple_of(2) && turn == get(&self.turn) {
                return seen;
            }
            std::hint::spin_loop();
        }
        look()
    }

    fn look(&self, now: Mono) -> (Reading, u64) {
        let at = get(&self.at);
        let since = now.0.saturating_sub(at);
        let (inside, unsent) = (get(&self.inside), get(&self.unsent));
        let direct = Cost { bytes: get(&self.direct_bytes), operations: get(&self.direct_ops) };
        let failed = get(&self.returned_ops);
        let (reads, writes) = (get(&self.read_ops), get(&self.write_ops));
        let largest = match (now.0 >> LARGEST_SHIFT).saturating_sub(at >> LARGEST_SHIFT) {
            0 => get(&self.largest).max(get(&self.largest_before)),
            1 => get(&self.largest),
            _ => 0,
        };
        let reading = Reading {
            offered: direct,
            passed: direct,
            returned: Cost { bytes: get(&self.returned_bytes), operations: failed },
            delivered: Cost {
                bytes: get(&self.read_bytes).wrapping_add(get(&self.write_bytes)),
                operations: reads
                    .wrapping_add(writes)
                    .wrapping_add(get(&self.charged_ops))
                    .wrapping_sub(failed),
            },
            requests: reads.wrapping_add(writes).wrapping_add(get(&self.commits)),
            inside_nanos: get(&self.inside_nanos).wrapping_add(inside.wrapping_mul(since)),
            unsent_nanos: get(&self.unsent_nanos).wrapping_add(unsent.wrapping_mul(since)),
            late_nanos: get(&self.late_nanos),
            queued_nanos: get(&self.queued_nanos),
            largest_bytes: largest,
            ..Reading::default()
        };
        let busy = get(&self.busy_nanos) + if inside + unsent > 0 { since } else { 0 };
        (reading, busy)
    }
}

fn get(cell: &AtomicU64) -> u64 {
    cell.load(Ordering::Relaxed)
}

/// Adds without a locked instruction: a block has one writer.
pub(super) fn bump(cell: &AtomicU64, by: u64) {
    cell.store(get(cell).wrapping_add(by), Ordering::Relaxed);
}

fn drop_by(cell: &AtomicU64, by: u64) {
    cell.store(get(cell).saturating_sub(by), Ordering::Relaxed);
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operation of NFSv3 of this class.
    fn op(class: OpClass) -> OpName {
        OpName::all().find(|op| op.class() == class).unwrap()
    }

    fn done(class: OpClass, moved: u64, ok: bool, [arrived, started]: [u64; 2]) -> Done {
        let (arrived, started) = (Mono(arrived), Mono(started));
        let stages = Stages { arrived, started, woken: None };
        Done {
            connection: ConnId { worker: 0, token: 1 },
            file: None,
            op: op(class),
            class,
            cost: Cost::of(moved),
            moved,
            ok,
            replied: true,
            inside: true,
            stages,
        }
    }

    fn done_by(stats: &Stats, worker: usize, done: &Done, now: Mono) {
        stats.done(&Done { connection: ConnId { worker, token: 1 }, ..*done }, now);
    }

    #[test]
    fn workers_add_up() {
        let stats = Stats::new(2, false);
        assert!(stats.read(Mono(1)).is_none(), "nothing is held for what was never used");
        done_by(&stats, 0, &done(OpClass::Read, 4096, true, [0, 0]), Mono(5));
        done_by(&stats, 1, &done(OpClass::Read, 100, false, [0, 0]), Mono(7));
        let nothing = Done { cost: Cost::of(7), ..done(OpClass::Read, 0, false, [0, 0]) };
        done_by(&stats, 1, &nothing, Mono(7));
        let uncharged = Done { cost: Cost::ZERO, ..done(OpClass::Metadata, 0, true, [9, 9]) };
        done_by(&stats, 1, &uncharged, Mono(9));
        stats.delayed(1, Duration::from_nanos(3));
        let live = stats.sum();
        assert_eq!((live.read_ops, live.read_bytes, live.other_ops), (3, 4196, 1));
        assert_eq!((live.failed_ops, live.latency_nanos), (2, 19));
        assert_eq!((live.delayed_ops, live.wait_nanos), (1, 3));
        let reading = stats.read(Mono(10)).unwrap();
        assert_eq!(reading.delivered, Cost { bytes: 4196, operations: 2 }, "one moved nothing");
        assert_eq!(reading.returned, Cost { bytes: 7, operations: 1 });
        assert_eq!(reading.requests, 3);
    }

    #[test]
    fn operations_are_counted_by_name() {
        let stats = Stats::new(2, false);
        let [getattr, lookup, read] = [1, 3, 6].map(|number| OpName::nfs3(number).unwrap());
        let getacl = OpName::nfsacl(1).unwrap();
        let metadata = Done { cost: Cost::ZERO, ..done(OpClass::Metadata, 0, true, [0, 0]) };
        for worker in [0, 1, 1] {
            done_by(&stats, worker, &Done { op: getattr, ..metadata }, Mono(5));
        }
        done_by(&stats, 0, &Done { op: lookup, ok: false, ..metadata }, Mono(5));
        done_by(&stats, 1, &Done { op: lookup, ..metadata }, Mono(5));
        done_by(&stats, 1, &Done { op: getacl, ..metadata }, Mono(5));
        done_by(&stats, 0, &done(OpClass::Read, 512, true, [0, 0]), Mono(5));
        let live = stats.sum();
        let count = |op: OpName, answered, failed| {
            let (protocol, operation, class) = (op.protocol(), op.name(), op.class());
            OperationCount { protocol, operation, class, answered, failed }
        };
        let expected =
            [count(getattr, 3, 0), count(lookup, 2, 1), count(read, 1, 0), count(getacl, 1, 0)];
        assert_eq!(live.operations, expected, "no other was answered");
        assert_eq!((live.read_ops, live.other_ops, live.failed_ops), (1, 6, 1));
        assert_eq!(stats.operations(), 7);
    }

    #[test]
    fn requests_are_followed_through_their_stages() {
        let stats = Stats::new(2, false);
        let cost = Cost::of(4096);
        let queued = Duration::from_nanos(20);
        stats.passed(0, cost, true, queued, Mono(100));
        stats.passed(1, cost, false, queued, Mono(150));
        // While they are under way, their time is seen already.
        let reading = stats.read(Mono(200)).unwrap();
        assert_eq!((reading.inside_nanos, reading.busy_nanos), (100 + 50, 100));
        assert_eq!(
            (reading.offered, reading.passed),
            (cost, cost),
            "the other is the gate's to tell"
        );
        assert_eq!(stats.sum().store_nanos, 0, "of what is done alone");
        let ended = Done { replied: false, ..done(OpClass::Write, 4096, true, [0, 160]) };
        done_by(&stats, 1, &ended, Mono(200));
        let mut ended = done(OpClass::Read, 1000, true, [80, 120]);
        (ended.cost, ended.stages.woken) = (cost, Some(Mono(290)));
        done_by(&stats, 0, &ended, Mono(300));
        let reading = stats.read(Mono(400)).unwrap();
        assert_eq!((reading.inside_nanos, reading.unsent_nanos), (200 + 50, 100));
        assert_eq!((reading.queued_nanos, reading.late_nanos), (40, 10));
        assert_eq!(stats.sum().store_nanos, 40 + 170);
        assert_eq!(stats.sum().processing_nanos, 50);
        assert_eq!(reading.returned, Cost { bytes: 3096, operations: 0 });
        assert_eq!(reading.busy_nanos, 300, "of the busiest worker");
        stats.sent(0, 1, Mono(500));
        let reading = stats.read(Mono(900)).unwrap();
        assert_eq!((reading.unsent_nanos, reading.busy_nanos), (200, 400));
    }

    #[test]
    fn what_is_dropped_is_given_back() {
        let stats = Stats::new(1, false);
        stats.passed(0, Cost::of(10), true, Duration::ZERO, Mono(0));
        stats.dropped(0, Cost::of(10), Mono(40));
        let reading = stats.read(Mono(90)).unwrap();
        assert_eq!(reading.inside_nanos, 40);
        assert_eq!(reading.returned, Cost::of(10));
    }

    #[test]
    fn the_largest_request_is_forgotten() {
        const STRETCH: u64 = 1 << LARGEST_SHIFT;
        let stats = Stats::new(1, false);
        let largest = |at: u64| stats.read(Mono(at)).unwrap().largest_bytes;
        stats.passed(0, Cost::of(1 << 20), true, Duration::ZERO, Mono(5));
        stats.passed(0, Cost::of(4096), true, Duration::ZERO, Mono(STRETCH + 1));
        assert_eq!(largest(STRETCH + 2), 1 << 20);
        assert_eq!(largest(2 * STRETCH + 2), 4096);
        assert_eq!(largest(3 * STRETCH + 2), 0);
        stats.passed(0, Cost::of(8), true, Duration::ZERO, Mono(2 * STRETCH + 3));
        assert_eq!(largest(2 * STRETCH + 4), 4096);
    }

    #[test]
    fn histograms_are_held_only_where_they_were_asked_for() {
        for asked in [false, true] {
            let stats = Stats::new(2, asked);
            let cost = Cost::of(4096);
            stats.passed(0, cost, true, Duration::ZERO, Mono(4));
            stats.passed(0, cost, true, Duration::ZERO, Mono(5));
            stats.delayed(1, Duration::from_millis(70));
            stats.passed(1, cost, false, Duration::ZERO, Mono(6));
            done_by(&stats, 0, &done(OpClass::Read, 4096, true, [0, 5]), Mono(60_000));
            done_by(&stats, 1, &done(OpClass::Write, 4096, true, [0, 6]), Mono(60_000));
            let Some(found) = stats.histograms() else {
                assert!(!asked && stats.block(0).unwrap().histograms.is_none());
                continue;
            };
            assert!(asked);
            assert_eq!((found.read.count(), found.write.count(), found.other.count()), (1, 1, 0));
            assert_eq!(found.read.counts[1], 1, "60 µs");
            assert_eq!((found.wait.count(), found.wait.counts[0]), (3, 2));
            assert_eq!(found.wait.nanos, 70_000_000);
            assert_eq!(found.wait.nanos, stats.sum().wait_nanos);
        }
    }
}
