//! The procedures of NSM (XNFS chapter 11).

use super::VERSION;
use super::wire::{
    MonArgs, MonId, MyId, NotifyArgs, Outcome, Procedure, StatArgs, StatRes, StateRes,
};
use crate::rpc::{AcceptError, Call, reply};
use crate::xdr::{Encode, Writer, XdrError, decode};
use alloc::vec::Vec;

/// A host says that it restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice<'a> {
    /// What it calls itself.
    pub name: &'a [u8],
    /// Its new state number.
    pub state: u32,
}

/// A call that was carried out.
#[derive(Debug)]
pub struct Served<'a> {
    /// The complete reply record, with its mark.
    pub reply: Vec<u8>,
    /// What is to be acted on: [`Locks::rebooted`](crate::nlm::Locks::rebooted).
    pub notice: Option<Notice<'a>>,
    /// Did a program want hosts monitored for it, or a crash played? That is refused, and worth a
    /// line in the log.
    pub refused: Option<Procedure>,
}

/// Carries out `call` to the program NSM. `state` is our own state number; `reply` is a pooled
/// buffer.
///
/// Another version is PROG_MISMATCH, an unknown procedure PROC_UNAVAIL, and arguments that can't be
/// decoded GARBAGE_ARGS. STAT and MON fail for every host, whoever asks; UNMON, UNMON_ALL and
/// SIMU_CRASH have no way to fail, and do nothing.
#[must_use]
pub fn serve(call: &Call, state: u32, room: Vec<u8>) -> Served<'_> {
    let failed = |room, error| {
        let reply = reply::error(room, call.xid, error);
        Served { reply, notice: None, refused: None }
    };
    if call.version != VERSION {
        let mismatch = AcceptError::ProgramMismatch { low: VERSION, high: VERSION };
        return failed(room, mismatch);
    }
    let Some(procedure) = Procedure::of(call.procedure) else {
        return failed(room, AcceptError::ProcedureUnavailable);
    };
    let mut out = reply::begin(room, call.xid);
    match carry_out(procedure, &call.args, state, &mut out) {
        Ok(notice) => {
            let refused = !matches!(procedure, Procedure::Null | Procedure::Notify);
            Served { reply: reply::finish(out), notice, refused: refused.then_some(procedure) }
        }
        Err(_) => failed(out.into_vec(), AcceptError::GarbageArgs),
    }
}

/// Decodes the arguments and appends the results.
fn carry_out<'a>(
    procedure: Procedure,
    args: &'a [u8],
    state: u32,
    out: &mut Writer,
) -> Result<Option<Notice<'a>>, XdrError> {
    let not_monitored = StatRes { outcome: Outcome::FAIL, state };
    match procedure {
        Procedure::Null | Procedure::SimuCrash => {}
        Procedure::Stat => {
            decode::<StatArgs<'_>>(args)?;
            not_monitored.encode(out);
        }
        Procedure::Mon => {
            decode::<MonArgs<'_>>(args)?;
            not_monitored.encode(out);
        }
        Procedure::Unmon => {
            decode::<MonId<'_>>(args)?;
            StateRes { state }.encode(out);
        }
        Procedure::UnmonAll => {
            decode::<MyId<'_>>(args)?;
            StateRes { state }.encode(out);
        }
        Procedure::Notify => {
            let args: NotifyArgs<'a> = decode(args)?;
            return Ok(Some(Notice { name: args.name.0, state: args.state }));
        }
    }
    Ok(None)
}
