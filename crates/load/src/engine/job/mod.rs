//! A job: one stream of requests, decided one at a time. Nothing here does I/O or asks for the
//! time: what a job does follows from its workload, its number and the times it is told.

mod draw;
mod keep;
mod made;
mod meta;
mod order;
mod pace;
mod place;
mod regulate;
mod request;
mod size;

pub(super) use made::{Leftovers, Made, created_name, directory_name};
pub(super) use place::Cursors;
pub(super) use regulate::FlowGroup;
pub(super) use request::{After, Answer, Next, Op, Request};

use crate::verify::{FileLedger, Ledger};
use crate::workload::{Length, MixOp, Operation, Pattern, Positions, Workload};
use keep::{Keeper, Then};
use made::Makings;
use meta::Mix;
use pace::{Leave, Pace, Pause};
use place::{JobOffsets, Spot};
use regulate::{Floor, Part};
use request::Follow;
use size::Sizes;
use std::sync::Arc;
use weir_core::rng::{Rng, mix};

/// Time (ns) that a job waits if every block that it could write is being written.
const CROWDED_NS: u64 = 100_000;

/// The state that the jobs of a load share.
#[derive(Clone, Default)]
pub(super) struct Common {
    /// Makes the names unique that jobs create.
    pub run: u64,
    /// Start of the load, in nanoseconds since the start of its step.
    pub begin_ns: u64,
    pub ledger: Option<Arc<Ledger>>,
    pub cursors: Cursors,
    /// The group of the load's [`Flow`](crate::workload::Flow).
    pub flow: Option<Arc<FlowGroup>>,
    pub leftovers: Leftovers,
}

/// Decides what a job does next.
pub(super) struct Job {
    index: u32,
    operation: Operation,
    rng: Rng,
    place: JobOffsets,
    /// The places of writes, where these have positions of their own.
    write_place: Option<JobOffsets>,
    read_sizes: Sizes,
    write_sizes: Sizes,
    block_bytes: u32,
    file_bytes: u64,
    mix: Mix,
    makings: Makings,
    /// Laid-out files removed.
    removed: u32,
    pace: Option<Pace>,
    pause: Option<Pause>,
    part: Option<Part>,
    floor: Option<Floor>,
    keeper: Option<Keeper>,
    last_written: u32,
    commit_every: Option<u32>,
    writes_since_commit: u32,
    left: u64,
    left_bytes: u64,
    ledger: Option<Arc<Ledger>>,
    /// The last decision came to nothing, because every block was being written.
    crowded: bool,
}

impl Job {
    /// Job number `index` of `workload`.
    pub(super) fn new(workload: &Workload, index: u32, common: &Common) -> Self {
        let jobs = u64::from(workload.jobs);
        let read_sizes = Sizes::new(&workload.read_sizes, workload.block_bytes);
        let write_sizes = Sizes::new(&workload.write_sizes, workload.block_bytes);
        let sizes = match (workload.reads(), workload.writes()) {
            (true, false) => [&read_sizes, &read_sizes],
            (false, true) => [&write_sizes, &write_sizes],
            _ => [&read_sizes, &write_sizes],
        };
        let places = || JobOffsets::new(workload, index, common.cursors.clone(), sizes);
        let place = places();
        let apart = workload.positions == Positions::ByDirection
            || workload.mix.iter().any(|share| share.op == MixOp::WriteSequential);
        let write_place = apart.then(places);
        let left = match workload.length {
            Length::Seconds(_) | Length::Bytes { .. } => u64::MAX,
            Length::Operations(total) => total / jobs + u64::from(u64::from(index) < total % jobs),
        };
        let left_bytes = match workload.length {
            Length::Bytes { per_job: 0, .. } if place.is_shared() => u64::MAX,
            Length::Bytes { per_job: 0, .. } => place.total(),
            Length::Bytes { per_job, .. } => per_job,
            Length::Seconds(_) | Length::Operations(_) => u64::MAX,
        };
        Self {
            index,
            operation: workload.operation,
            rng: Rng::new(mix(workload.seed ^ mix(u64::from(index)))),
            place,
            write_place,
            read_sizes,
            write_sizes,
            block_bytes: workload.block_bytes,
            file_bytes: workload.file_bytes,
            mix: Mix::new(&workload.mix),
            makings: Makings::new(index, mix(common.run) << 32, common.leftovers.clone()),
            removed: 0,
            pace: Pace::new(workload, index, common.begin_ns),
            pause: workload.think.map(Pause::new),
            part: workload
                .flow
                .zip(common.flow.clone())
                .map(|(flow, group)| Part::new(flow, group, common.begin_ns)),
            keeper: workload
                .latency_target
                .map(|target| Keeper::new(target, workload.depth, common.begin_ns)),
            floor: workload.min_rate.map(|min| Floor::new(min, common.begin_ns)),
            last_written: index % workload.files,
            commit_every: workload.commit_every,
            writes_since_commit: 0,
            left,
            left_bytes,
            ledger: common.ledger.clone(),
            crowded: false,
        }
    }

    /// The job's number.
    pub(super) const fn index(&self) -> u32 {
        self.index
    }

    /// The work of a free slot at `now_ns`.
    #[inline]
    pub(super) fn next(&mut self, now_ns: u64) -> Next {
        if self.is_done() {
            self.leave();
            return Next::Done;
        }
        if let Some(until_ns) = self.part.as_mut().and_then(|part| part.held_until(now_ns)) {
            return Next::Wait(until_ns);
        }
        if self.keeper.as_ref().is_some_and(|keeper| !keeper.may_send()) {
            return Next::Held;
        }
        if let Some(pause) = &mut self.pause {
            match pause.ask(now_ns) {
                Leave::Now => pause.sent(),
                Leave::At(until_ns) => return Next::Wait(until_ns),
                Leave::Held => return Next::Held,
            }
        }
        let Some(op) = self.decide() else {
            if std::mem::take(&mut self.crowded) {
                if let Some(pause) = &mut self.pause {
                    pause.unsent();
                }
                return Next::Wait(now_ns.saturating_add(CROWDED_NS));
            }
            self.left = 0;
            self.leave();
            return Next::Done;
        };
        if let Some(part) = &mut self.part {
            part.sent();
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.sent();
        }
        self.left -= 1;
        let due = self.due(&op);
        Next::Op(op, due)
    }

    /// The work after `op`, whose request has succeeded.
    #[inline]
    pub(super) fn after(&mut self, op: &Op) -> After {
        self.settle(op);
        if op.follow == Follow::Nothing {
            return After::Whole;
        }
        self.follow(op)
    }

    /// The work after `op`, of whose request the first `moved` bytes are moved, and not all: the
    /// rest, as a part of the same operation.
    pub(super) fn rest(&self, op: &Op, moved: u32) -> After {
        if let (Request::Write { file, offset, generation: 1.., .. }, Some(ledger)) =
            (op.request, &self.ledger)
        {
            ledger.done_in_part(file, ledger.block(offset));
        }
        After::Part(op.rest(moved))
    }

    /// The request of `op` was answered with a failure; `absent` says that there is no such name.
    pub(super) fn failed(&mut self, op: &Op, absent: bool) {
        match op.request {
            Request::Create { serial } => self.makings.gone(serial, false),
            Request::Mkdir { serial } => self.makings.gone(serial, true),
            Request::Remove { serial } if absent => self.makings.gone(serial, false),
            Request::Rmdir { serial } if absent => self.makings.gone(serial, true),
            Request::Write { file, offset, generation: 1.., .. } => {
                if let Some(ledger) = &self.ledger {
                    ledger.failed(file, ledger.block(offset));
                }
            }
            _ => {}
        }
    }

    /// Is there anything left to do, as far as it was to end by a count?
    pub(super) const fn is_done(&self) -> bool {
        self.left == 0 || self.left_bytes == 0
    }

    /// The request of `op` was never sent, and will not be.
    pub(super) fn dropped(&mut self, op: &Op) {
        if let (Request::Write { file, offset, generation: 1.., .. }, Some(ledger)) =
            (op.request, &self.ledger)
        {
            let block = ledger.block(offset);
            if ledger.begins(offset) {
                ledger.cancel(file, block);
            } else {
                // The front of the block is written.
                ledger.failed(file, block);
            }
        }
    }

    /// A slot is free again after this answer. `true` if slots that were held may ask again.
    #[inline]
    pub(super) fn freed(&mut self, answer: &Answer) -> bool {
        let mut frees = false;
        if let Some(floor) = &mut self.floor
            && answer.queued_ns.is_some()
            && !floor.answered(answer.now_ns, answer.bytes)
        {
            self.left = 0;
        }
        if let Some(keeper) = &mut self.keeper {
            if keeper.answered(answer) == Then::End {
                self.left = 0;
            }
            // Slots that are held also have to learn that the job has ended.
            frees = keeper.may_send() || self.left == 0;
        }
        frees | self.pause.as_mut().is_some_and(|pause| pause.answered(answer.now_ns))
    }

    /// The largest number of requests in flight that kept the latency, where there is one to keep.
    pub(super) fn kept_depth(&self) -> Option<u32> {
        self.keeper.as_ref().map(Keeper::kept)
    }

    /// Why the job has ended before its time, once.
    #[inline]
    pub(super) fn complaint(&mut self) -> Option<String> {
        self.floor.as_mut().and_then(Floor::complaint)
    }

    /// The job sends nothing more.
    fn leave(&mut self) {
        if let Some(part) = &mut self.part {
            part.leave();
        }
    }

    fn due(&mut self, op: &Op) -> Option<u64> {
        self.pace.as_mut().map(|pace| pace.due(op.request.bytes()))
    }

    fn decide(&mut self) -> Option<Op> {
        if let Some(every) = self.commit_every
            && self.writes_since_commit >= every
        {
            self.writes_since_commit = 0;
            return Some(Op::alone(commit(self.ledger.as_deref(), self.last_written)));
        }
        match self.operation {
            Operation::Data { pattern, read_percent } => self.data(pattern, read_percent),
            Operation::Null => Some(Op::alone(Request::Null)),
            Operation::Getattr => Some(Op::alone(Request::Getattr { file: self.any_file() })),
            Operation::Access => Some(Op::alone(Request::Access { file: self.any_file() })),
            Operation::Lookup => Some(Op::alone(Request::Lookup { file: self.any_file() })),
            Operation::Mix => self.mixed(),
            Operation::Create => {
                let serial = self.makings.begin(false);
                Some(Op::alone(Request::Create { serial }))
            }
            Operation::Remove => {
                let file = self.place.nth_file(self.removed)?;
                self.removed += 1;
                Some(Op::alone(Request::Unlink { file }))
            }
            Operation::CreateRemove => {
                let serial = self.makings.begin(false);
                Some(Op::then(Request::Create { serial }, Follow::Remove))
            }
        }
    }

    fn data(&mut self, pattern: Pattern, read_percent: u8) -> Option<Op> {
        let reads = match read_percent {
            0 => false,
            100 => true,
            percent => self.rng.below(100) < u64::from(percent),
        };
        let sizes = if reads { &self.read_sizes } else { &self.write_sizes };
        let bytes = sizes.draw(&mut self.rng);
        let bytes = bytes.min(u32::try_from(self.left_bytes).unwrap_or(u32::MAX));
        let place = match &mut self.write_place {
            Some(writes) if !reads => writes,
            _ => &mut self.place,
        };
        let spot = place.next(pattern, bytes, &mut self.rng)?;
        let op = if reads { read(spot) } else { self.write(spot)? };
        self.left_bytes -= u64::from(spot.bytes);
        Some(op)
    }

    /// A write at `spot`, or at the next free block of the job's files if data is verified and the
    /// block is being written. `None` if all of them are.
    fn write(&mut self, spot: Spot) -> Option<Op> {
        let Spot { mut file, mut offset, bytes } = spot;
        let mut generation = 0;
        if let Some(ledger) = &self.ledger {
            let within = self.place.blocks(self.block_bytes);
            let claim = |file| {
                let claimed = ledger.begin(file, ledger.block(offset), within)?;
                Some((file, claimed))
            };
            let Some((free, (block, claimed))) = self.place.files_from(file).find_map(claim) else {
                self.crowded = true;
                return None;
            };
            (file, offset, generation) = (free, ledger.offset(block), claimed);
        }
        self.writes_since_commit += 1;
        self.last_written = file;
        Some(Op::alone(Request::Write { file, offset, bytes, generation }))
    }

    fn any_file(&mut self) -> u32 {
        self.place.any_file(&mut self.rng)
    }

    /// Notes what a successful request changed.
    #[inline]
    fn settle(&mut self, op: &Op) {
        match op.request {
            Request::Write { file, offset, generation: 1.., .. } => {
                if let Some(ledger) = &self.ledger {
                    let block = ledger.block(offset);
                    if ledger.begins(offset) {
                        ledger.done(file, block);
                    } else {
                        ledger.done_rest(file, block);
                    }
                }
            }
            Request::Commit { file, covers } => {
                if let Some(file) = self.ledger.as_ref().and_then(|ledger| ledger.file(file)) {
                    file.committed(covers);
                }
            }
            Request::Create { serial } if op.follow == Follow::Nothing => {
                self.makings.keep(serial, false);
            }
            Request::Mkdir { serial } if op.follow == Follow::Nothing => {
                self.makings.keep(serial, true);
            }
            Request::Remove { serial } => self.makings.gone(serial, false),
            Request::Rmdir { serial } => self.makings.gone(serial, true),
            _ => {}
        }
    }
}

/// A COMMIT of `file`, and what it covers.
fn commit(ledger: Option<&Ledger>, file: u32) -> Request {
    let covers = ledger.and_then(|ledger| ledger.file(file)).map_or(0, FileLedger::answered);
    Request::Commit { file, covers }
}

const fn read(spot: Spot) -> Op {
    let Spot { file, offset, bytes } = spot;
    Op::alone(Request::Read { file, offset, bytes })
}

#[cfg(test)]
mod tests;
