//! Reading back what was written, many READs at a time.

use super::Files;
use super::calls::Handles;
use super::session::{Session, malformed};
use super::status::name;
use crate::control::Control;
use crate::error::BenchError;
use crate::verify::Checker;
use std::collections::HashMap;
use std::time::Duration;
use weir_nfs::v3::wire::{ReadArgs, Res, Status};

/// READs sent ahead.
const WINDOW: usize = 32;
/// Waits for a server that asks to come back later, in all; then its blocks are unreadable.
const WAITS_MAX: u32 = 300;
const WAIT: Duration = Duration::from_millis(100);

/// A block to be read, and what of it is there already: a server may give less than was asked for
/// (RFC 1813 §3.3.6).
struct Wanted {
    file: u32,
    block: u64,
    got: Vec<u8>,
}

/// What became of a READ.
enum Answer {
    /// The block was compared, or can't be read.
    Judged,
    /// The rest is to be read.
    More(Wanted),
    /// The server wants to be asked later.
    Later(Wanted),
}

impl Files {
    /// Reads `blocks` (file and block number) back and has them compared, until all are, the run
    /// is stopped, or the server can't be reached.
    pub(in crate::engine) fn verify(
        &self,
        checker: &mut Checker<'_>,
        blocks: Vec<(u32, u64)>,
        control: &Control,
    ) -> Result<(), BenchError> {
        let mut session = self.session()?;
        let mut pending = HashMap::with_capacity(WINDOW);
        let mut left = blocks.into_iter();
        let (mut later, mut waits) = (Vec::new(), 0);
        loop {
            while pending.len() < WINDOW
                && later.is_empty()
                && !control.stopped()
                && let Some((file, block)) = left.next()
            {
                let wanted = Wanted { file, block, got: Vec::new() };
                ask(&mut session, &mut pending, &self.handles, checker, wanted);
            }
            if pending.is_empty() && (later.is_empty() || control.stopped()) {
                return Ok(());
            }
            if pending.is_empty() {
                std::thread::sleep(WAIT);
                waits += 1;
                for wanted in later.drain(..) {
                    ask(&mut session, &mut pending, &self.handles, checker, wanted);
                }
            }
            match judge(&mut session, &mut pending, checker, waits < WAITS_MAX)? {
                Answer::Judged => {}
                Answer::More(wanted) => {
                    ask(&mut session, &mut pending, &self.handles, checker, wanted);
                }
                Answer::Later(wanted) => later.push(wanted),
            }
        }
    }
}

/// Asks for what is not there yet of a block.
fn ask(
    session: &mut Session,
    pending: &mut HashMap<u32, Wanted>,
    handles: &Handles,
    checker: &Checker<'_>,
    wanted: Wanted,
) {
    let got = u32::try_from(wanted.got.len()).unwrap_or(u32::MAX);
    let args = ReadArgs {
        file: handles.file(wanted.file),
        offset: checker.offset(wanted.block) + u64::from(got),
        count: checker.block_bytes().saturating_sub(got),
    };
    let xid = session.queue(|caller, out, xid| caller.call(out, xid, &args));
    pending.insert(xid, wanted);
}

fn judge(
    session: &mut Session,
    pending: &mut HashMap<u32, Wanted>,
    checker: &mut Checker<'_>,
    patient: bool,
) -> Result<Answer, BenchError> {
    let address = session.address();
    let length = usize::try_from(checker.block_bytes()).unwrap_or(usize::MAX);
    session.answer(|reply| {
        let Some(mut wanted) = pending.remove(&reply.xid) else {
            let detail = format!("a reply to nothing that was asked (xid {:#010x})", reply.xid);
            return Err(BenchError::Protocol { address, detail });
        };
        let Wanted { file, block, .. } = wanted;
        match reply.results::<ReadArgs<'_>>().map_err(|error| malformed(address, &error))? {
            Res::Ok(ok) => {
                let there = wanted.got.len() + ok.data.len();
                if there < length && !ok.eof && !ok.data.is_empty() {
                    wanted.got.extend_from_slice(ok.data);
                    return Ok(Answer::More(wanted));
                }
                if wanted.got.is_empty() {
                    checker.compare(file, block, ok.data);
                } else {
                    wanted.got.extend_from_slice(ok.data);
                    checker.compare(file, block, &wanted.got);
                }
            }
            Res::Fail(Status::JUKEBOX, _) if patient => return Ok(Answer::Later(wanted)),
            Res::Fail(status, _) => checker.unreadable(file, block, &name(status)),
        }
        Ok(Answer::Judged)
    })
}
