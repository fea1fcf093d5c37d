//! Operations that consist of several requests, or that make what others work on: the mixture of
//! data and metadata.

use super::request::Follow;
use super::{After, Job, Op, Request, read};
use crate::stats::OpKind;
use crate::workload::{MixOp, OpShare};
use weir_core::rng::Rng;

/// The mixture.
pub(super) struct Mix {
    /// Each kind with a bound: the numbers below it that are not below the one before.
    bounds: Vec<(u64, MixOp)>,
}

impl Mix {
    /// The operations in these `shares`.
    pub(super) fn new(shares: &[OpShare]) -> Self {
        let mut bound = 0;
        let add = |share: &OpShare| {
            bound += u64::from(share.percent);
            (bound, share.op)
        };
        Self { bounds: shares.iter().map(add).collect() }
    }

    fn draw(&self, rng: &mut Rng) -> Option<MixOp> {
        let number = rng.below(100);
        let drawn = self.bounds.iter().find(|(bound, _)| number < *bound);
        drawn.or(self.bounds.last()).map(|(_, op)| *op)
    }
}

impl Job {
    /// The next operation of the mixture.
    pub(super) fn mixed(&mut self) -> Option<Op> {
        let drawn = self.mix.draw(&mut self.rng)?;
        Some(match drawn {
            MixOp::Stat => Op::alone(Request::Getattr { file: self.any_file() }),
            MixOp::Access => Op::alone(Request::Access { file: self.any_file() }),
            MixOp::Lookup => Op::alone(Request::Lookup { file: self.any_file() }),
            MixOp::Chmod => Op::alone(Request::Setattr { file: self.any_file() }),
            MixOp::ReadRandom => {
                let bytes = self.read_sizes.draw(&mut self.rng);
                read(self.place.random(bytes, &mut self.rng))
            }
            MixOp::ReadSequential => {
                let bytes = self.read_sizes.draw(&mut self.rng);
                read(self.place.sequential(bytes)?)
            }
            MixOp::WriteRandom => {
                let bytes = self.write_sizes.draw(&mut self.rng);
                let spot = self.place.random(bytes, &mut self.rng);
                self.write(spot)?
            }
            MixOp::WriteSequential => {
                let bytes = self.write_sizes.draw(&mut self.rng);
                let place = self.write_place.as_mut().unwrap_or(&mut self.place);
                let spot = place.sequential(bytes)?;
                self.write(spot)?
            }
            MixOp::ReadFile => {
                let file = self.any_file();
                let follow = Follow::ReadOn;
                Op { request: Request::Lookup { file }, kind: OpKind::ReadFile, follow }
            }
            MixOp::WriteFile => {
                let file = self.any_file();
                self.write_on(file, 0)
            }
            MixOp::Create => self.make(false),
            MixOp::Mkdir => self.make(true),
            MixOp::Unlink => self.unmake(false),
            MixOp::Rmdir => self.unmake(true),
            MixOp::Unlink2 => {
                let serial = self.makings.begin(false);
                Op::then(Request::Create { serial }, Follow::Fill)
            }
        })
    }

    /// Makes a file or directory, after it has made room for it.
    fn make(&mut self, directory: bool) -> Op {
        let oldest =
            if self.makings.is_full(directory) { self.makings.oldest(directory) } else { None };
        match (oldest, directory) {
            (None, false) => self.create(Follow::Nothing),
            (None, true) => self.mkdir(Follow::Nothing),
            (Some(serial), false) => Op::then(Request::Remove { serial }, Follow::Create),
            (Some(serial), true) => Op::then(Request::Rmdir { serial }, Follow::Mkdir),
        }
    }

    /// Removes the oldest file or directory; makes one for it if there is none.
    fn unmake(&mut self, directory: bool) -> Op {
        match (self.makings.oldest(directory), directory) {
            (Some(serial), false) => Op::alone(Request::Remove { serial }),
            (Some(serial), true) => Op::alone(Request::Rmdir { serial }),
            (None, false) => {
                let serial = self.makings.begin(false);
                Op::then(Request::Create { serial }, Follow::Remove)
            }
            (None, true) => {
                let serial = self.makings.begin(true);
                Op::then(Request::Mkdir { serial }, Follow::Rmdir)
            }
        }
    }

    fn create(&mut self, follow: Follow) -> Op {
        Op::then(Request::Create { serial: self.makings.begin(false) }, follow)
    }

    fn mkdir(&mut self, follow: Follow) -> Op {
        Op::then(Request::Mkdir { serial: self.makings.begin(true) }, follow)
    }

    /// The request that follows one that is not the last of its operation, or not the last
    /// operation.
    pub(super) fn follow(&mut self, op: &Op) -> After {
        let next = match (op.follow, op.request) {
            (Follow::ReadOn, Request::Lookup { file }) => return self.read_on(file, 0),
            (Follow::ReadOn, Request::Read { file, offset, bytes }) => {
                return self.read_on(file, offset + u64::from(bytes));
            }
            (Follow::WriteOn, Request::Write { file, offset, bytes, .. }) => {
                return After::Part(self.write_on(file, offset + u64::from(bytes)));
            }
            (Follow::Fill, Request::Create { serial }) => {
                let request = Request::Fill { serial, offset: 0, bytes: self.block_bytes };
                Op::then(request, Follow::Remove)
            }
            (Follow::Remove, Request::Create { serial } | Request::Fill { serial, .. }) => {
                Op::alone(Request::Remove { serial })
            }
            (Follow::Rmdir, Request::Mkdir { serial }) => Op::alone(Request::Rmdir { serial }),
            (Follow::Create, _) => self.create(Follow::Nothing),
            (Follow::Mkdir, _) => self.mkdir(Follow::Nothing),
            _ => return After::Whole,
        };
        self.left = self.left.saturating_sub(1);
        let due = self.due(&next);
        After::Then(next, due)
    }

    /// The block at `offset` as part of reading all of `file`.
    fn read_on(&self, file: u32, offset: u64) -> After {
        let bytes = self.block_at(offset);
        if bytes == 0 {
            return After::Whole;
        }
        let is_last = offset + u64::from(bytes) >= self.file_bytes;
        let follow = if is_last { Follow::Nothing } else { Follow::ReadOn };
        let request = Request::Read { file, offset, bytes };
        After::Part(Op { request, kind: OpKind::ReadFile, follow })
    }

    /// The block at `offset`, or the first one behind it that nobody writes just now, as part of
    /// writing all of `file`; the COMMIT at the end of it.
    fn write_on(&mut self, file: u32, mut offset: u64) -> Op {
        let kind = OpKind::WriteFile;
        loop {
            let bytes = self.block_at(offset);
            if bytes == 0 {
                let request = super::commit(self.ledger.as_deref(), file);
                return Op { request, kind, follow: Follow::Nothing };
            }
            let claimed = match &self.ledger {
                None => Some(0),
                Some(ledger) => ledger.begin_this(file, ledger.block(offset)),
            };
            if let Some(generation) = claimed {
                let request = Request::Write { file, offset, bytes, generation };
                return Op { request, kind, follow: Follow::WriteOn };
            }
            offset += u64::from(bytes);
        }
    }

    /// The length of the block at `offset` of a file; zero at its end, and before an incomplete
    /// block that can't be verified.
    fn block_at(&self, offset: u64) -> u32 {
        let left = self.file_bytes.saturating_sub(offset);
        let bytes = self.block_bytes.min(u32::try_from(left).unwrap_or(u32::MAX));
        if self.ledger.is_some() && bytes < self.block_bytes { 0 } else { bytes }
    }
}
