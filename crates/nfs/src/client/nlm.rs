//! The calls of NLM version 4 (RFC 1813 §6.2).

use super::call::RemoteCall;
use crate::nlm::wire::{
    CancelArgs, FreeAllArgs, LockArgs, Procedure, Res, ShareArgs, ShareRes, TestArgs, TestRes,
    UnlockArgs,
};
use crate::xdr::{Encode, Writer};
use crate::{PROGRAM_NLM, nlm};

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($args:ty) => $procedure:ident, $results:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name<'a>(pub $args);

            impl Encode for $name<'_> {
                fn encode(&self, out: &mut Writer) {
                    self.0.encode(out);
                }
            }

            impl RemoteCall for $name<'_> {
                const PROGRAM: u32 = PROGRAM_NLM;
                const VERSION: u32 = nlm::VERSION;
                const PROCEDURE: u32 = Procedure::$procedure as u32;
                type Results<'r> = $results;
            }
        )*
    };
}

calls! {
    /// TEST: could this lock be had?
    NlmTest(TestArgs<'a>) => Test, TestRes<'r>;
    /// LOCK: takes a lock.
    NlmLock(LockArgs<'a>) => Lock, Res<'r>;
    /// CANCEL: waits no more.
    NlmCancel(CancelArgs<'a>) => Cancel, Res<'r>;
    /// UNLOCK: gives a lock up.
    NlmUnlock(UnlockArgs<'a>) => Unlock, Res<'r>;
    /// GRANTED: tells a client that it has what it waits for.
    NlmGranted(TestArgs<'a>) => Granted, Res<'r>;
    /// TEST_MSG: as TEST, answered by TEST_RES.
    NlmTestMsg(TestArgs<'a>) => TestMsg, ();
    /// LOCK_MSG: as LOCK, answered by LOCK_RES.
    NlmLockMsg(LockArgs<'a>) => LockMsg, ();
    /// CANCEL_MSG: as CANCEL, answered by CANCEL_RES.
    NlmCancelMsg(CancelArgs<'a>) => CancelMsg, ();
    /// UNLOCK_MSG: as UNLOCK, answered by UNLOCK_RES.
    NlmUnlockMsg(UnlockArgs<'a>) => UnlockMsg, ();
    /// GRANTED_MSG: as GRANTED, answered by GRANTED_RES.
    NlmGrantedMsg(TestArgs<'a>) => GrantedMsg, ();
    /// TEST_RES: answers TEST_MSG.
    NlmTestRes(TestRes<'a>) => TestRes, ();
    /// LOCK_RES: answers LOCK_MSG.
    NlmLockRes(Res<'a>) => LockRes, ();
    /// CANCEL_RES: answers CANCEL_MSG.
    NlmCancelRes(Res<'a>) => CancelRes, ();
    /// UNLOCK_RES: answers UNLOCK_MSG.
    NlmUnlockRes(Res<'a>) => UnlockRes, ();
    /// GRANTED_RES: answers GRANTED_MSG.
    NlmGrantedRes(Res<'a>) => GrantedRes, ();
    /// SHARE: reserves a file.
    NlmShare(ShareArgs<'a>) => Share, ShareRes<'r>;
    /// UNSHARE: ends a reservation.
    NlmUnshare(ShareArgs<'a>) => Unshare, ShareRes<'r>;
    /// NM_LOCK: as LOCK, without monitoring.
    NlmNmLock(LockArgs<'a>) => NmLock, Res<'r>;
    /// FREE_ALL: the host restarted.
    NlmFreeAll(FreeAllArgs<'a>) => FreeAll, ();
}

/// NULL of NLM: does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NlmNull;

impl Encode for NlmNull {
    fn encode(&self, _: &mut Writer) {}
}

impl RemoteCall for NlmNull {
    const PROGRAM: u32 = PROGRAM_NLM;
    const VERSION: u32 = nlm::VERSION;
    const PROCEDURE: u32 = Procedure::Null as u32;
    type Results<'r> = ();
}
