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
    /// The host's name for itself.
    pub name: &'a [u8],
    /// The host's new state number.
    pub state: u32,
}

/// A call that was carried out.
#[derive(Debug)]
pub struct Served<'a> {
    /// The complete reply record, with its mark.
    pub reply: Vec<u8>,
    /// The notice to act on: [`LockManager::rebooted`](crate::nlm::LockManager::rebooted).
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Caller, Refused, RemoteCall, Reply};
    use crate::nsm::wire::{HostName, Private};
    use crate::rpc::Credential;
    use weir_core::Shared;

    const STATE: u32 = 0x55;

    fn call<A: RemoteCall>(args: &A) -> Call {
        let mut out = Vec::new();
        Caller::none().call(&mut out, 5, args);
        Call::parse(Shared::from(out).skip(4)).unwrap()
    }

    fn raw(version: u32, procedure: u32, args: &[u8]) -> Call {
        let args = Shared::from(args.to_vec());
        let (program, credential) = (crate::PROGRAM_NSM, Credential::None);
        Call { xid: 5, program, version, procedure, credential, args }
    }

    fn body(served: &Served<'_>) -> Result<Vec<u8>, Refused> {
        Reply::parse(&served.reply[4..]).unwrap().body.map(<[u8]>::to_vec)
    }

    #[test]
    fn a_notice_is_handed_on_and_answered_with_nothing() {
        let call = call(&NotifyArgs { name: HostName(b"host1"), state: 7 });
        let served = serve(&call, STATE, b"left from before".to_vec());
        assert_eq!(served.notice, Some(Notice { name: b"host1", state: 7 }));
        assert_eq!(served.refused, None);
        assert_eq!(body(&served), Ok(Vec::new()));
    }

    #[test]
    fn nothing_is_monitored_for_others() {
        let name = HostName(b"host1");
        let my_id = MyId { name: HostName(b"me"), program: 1, version: 2, procedure: 3 };
        let mon_id = MonId { name, my_id };
        let private = Private([0; 16]);
        let failed = Ok([1u32.to_be_bytes(), STATE.to_be_bytes()].concat());
        let done = Ok(STATE.to_be_bytes().to_vec());
        for (call, expected, procedure) in [
            (call(&StatArgs { name }), &failed, Procedure::Stat),
            (call(&MonArgs { mon_id, private }), &failed, Procedure::Mon),
            (call(&mon_id), &done, Procedure::Unmon),
            (call(&my_id), &done, Procedure::UnmonAll),
            (raw(VERSION, 5, &[]), &Ok(Vec::new()), Procedure::SimuCrash),
        ] {
            let served = serve(&call, STATE, Vec::new());
            assert_eq!(&body(&served), expected, "{procedure:?}");
            assert_eq!((served.notice, served.refused), (None, Some(procedure)));
        }
    }

    #[test]
    fn null_does_nothing_and_what_is_not_spoken_is_refused() {
        let answer = |version, procedure, args: &[u8]| {
            let call = raw(version, procedure, args);
            let served = serve(&call, STATE, Vec::new());
            assert_eq!((served.notice, served.refused), (None, None));
            body(&served)
        };
        assert_eq!(answer(1, 0, &[]), Ok(Vec::new()));
        let mismatch = AcceptError::ProgramMismatch { low: 1, high: 1 };
        assert_eq!(answer(2, 0, &[]), Err(Refused::Failed(mismatch)));
        let unavailable = AcceptError::ProcedureUnavailable;
        assert_eq!(answer(1, 7, &[]), Err(Refused::Failed(unavailable)));
        for procedure in [1, 2, 3, 4, 6] {
            let garbage = Err(Refused::Failed(AcceptError::GarbageArgs));
            assert_eq!(answer(1, procedure, &[0, 0, 4, 1]), garbage);
        }
    }
}
