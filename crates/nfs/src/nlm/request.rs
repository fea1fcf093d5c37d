//! A call to NLM that is understood: what it asks, which file it is about, and what must be seen to
//! before it is carried out.

use super::VERSION;
use super::host::Host;
use super::manager::{Peer, Waiting};
use super::wire::{
    CancelArgs, FreeAllArgs, LockArgs, Procedure, Res, ShareArgs, ShareBits, Status, TestArgs,
    UnlockArgs,
};
use crate::access::{may_read, may_write};
use crate::rpc::{AcceptError, Call};
use crate::xdr::decode;
use weir_core::{Acl, Attr, FileKind, Rights};

/// The content of a call. It borrows from the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    pub(super) xid: u32,
    pub(super) procedure: Procedure,
    pub(super) body: Body<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// NULL, and everything that is said to a client only.
    Nothing,
    Test(TestArgs<'a>),
    Lock(LockArgs<'a>),
    Cancel(CancelArgs<'a>),
    Unlock(UnlockArgs<'a>),
    /// GRANTED, by which somebody takes us for a client.
    Granted(TestArgs<'a>),
    GrantedRes(Res<'a>),
    Share(ShareArgs<'a>),
    Unshare(ShareArgs<'a>),
    FreeAll(FreeAllArgs<'a>),
}

/// The file a call is about, and what its caller must be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The handle, still sealed.
    pub handle: &'a [u8],
    /// The caller's need.
    pub need: Need,
}

/// The right that the caller of a procedure needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A handle of ours. It lets go of what it holds itself: the file may be gone, and its rights
    /// may be too.
    Handle,
    /// A regular file that it may read or write.
    Use,
    /// The right to write, on an export that is not read-only: the lock keeps others from the file.
    Change,
}

impl Need {
    /// Are they met for a file with these attributes and this access control list?
    ///
    /// POSIX has the rule that the right to read is enough for an exclusive lock, for `flock`.
    ///
    /// # Errors
    /// [`Status::ROFS`], or [`Status::FAILED`] for other files and callers.
    pub fn check(self, attr: &Attr, acl: Option<&Acl>, rights: &Rights) -> Result<(), Status> {
        let cred = &rights.cred;
        if self == Self::Handle {
            return Ok(());
        }
        let allowed = may_read(attr, acl, cred) || may_write(attr, acl, cred);
        if attr.kind != FileKind::Regular || !allowed {
            return Err(Status::FAILED);
        }
        if self == Self::Change && rights.read_only {
            return Err(Status::ROFS);
        }
        Ok(())
    }
}

impl<'a> Request<'a> {
    /// Understands `call`, which is to the program NLM.
    ///
    /// # Errors
    /// PROG_MISMATCH for other versions than 4, PROC_UNAVAIL for what is no procedure, GARBAGE_ARGS
    /// for what can't be decoded.
    pub fn parse(call: &'a Call) -> Result<Self, AcceptError> {
        if call.version != VERSION {
            return Err(AcceptError::ProgramMismatch { low: VERSION, high: VERSION });
        }
        let procedure = Procedure::of(call.procedure).ok_or(AcceptError::ProcedureUnavailable)?;
        let args = &*call.args;
        let body = match procedure {
            Procedure::Null => Ok(Body::Nothing),
            Procedure::Test | Procedure::TestMsg => decode(args).map(Body::Test),
            Procedure::Lock | Procedure::LockMsg | Procedure::NmLock => {
                decode(args).map(Body::Lock)
            }
            Procedure::Cancel | Procedure::CancelMsg => decode(args).map(Body::Cancel),
            Procedure::Unlock | Procedure::UnlockMsg => decode(args).map(Body::Unlock),
            Procedure::Granted | Procedure::GrantedMsg => decode(args).map(Body::Granted),
            Procedure::GrantedRes => decode(args).map(Body::GrantedRes),
            Procedure::Share => decode(args).map(Body::Share),
            Procedure::Unshare => decode(args).map(Body::Unshare),
            Procedure::FreeAll => decode(args).map(Body::FreeAll),
            // Answers to calls that we never make.
            Procedure::TestRes
            | Procedure::LockRes
            | Procedure::CancelRes
            | Procedure::UnlockRes => Ok(Body::Nothing),
        };
        let body = body.map_err(|_| AcceptError::GarbageArgs)?;
        Ok(Self { xid: call.xid, procedure, body })
    }

    /// The procedure.
    #[must_use]
    pub fn procedure(&self) -> Procedure {
        self.procedure
    }

    /// The file it is about. Without one, [`LockManager::serve`](super::LockManager::serve)
    /// looks at no file.
    #[must_use]
    pub fn target(&self) -> Option<Target<'a>> {
        let (handle, need) = match &self.body {
            Body::Nothing | Body::Granted(_) | Body::GrantedRes(_) | Body::FreeAll(_) => {
                return None;
            }
            Body::Test(TestArgs { lock, .. }) => (lock.fh, Need::Use),
            Body::Lock(args) if args.exclusive => (args.lock.fh, Need::Change),
            Body::Lock(LockArgs { lock, .. }) => (lock.fh, Need::Use),
            Body::Cancel(CancelArgs { lock, .. }) | Body::Unlock(UnlockArgs { lock, .. }) => {
                (lock.fh, Need::Handle)
            }
            Body::Share(args) if args.share.access.0 & ShareBits::WRITE.0 != 0 => {
                (args.share.fh, Need::Change)
            }
            Body::Share(ShareArgs { share, .. }) => (share.fh, Need::Use),
            Body::Unshare(ShareArgs { share, .. }) => (share.fh, Need::Handle),
        };
        Some(Target { handle: handle.0, need })
    }

    /// The host that must be told, should the server restart. It must be remembered on stable
    /// storage before the call is carried out; otherwise a lock could be lost without its holder
    /// hearing of it. If it can't be, the call is carried out with [`Status::DENIED_NOLOCKS`] for a
    /// file.
    ///
    /// Shares are monitored too (XNFS, NLM_SHARE, leaves it to the server): their owners reclaim as
    /// those of locks do. NM_LOCK says itself that it is not to be.
    #[must_use]
    pub fn monitors(&self, peer: &Peer) -> Option<Host> {
        let name = match &self.body {
            Body::Lock(args) if self.procedure != Procedure::NmLock => args.lock.caller_name,
            Body::Share(args) => args.share.caller_name,
            _ => return None,
        };
        Some(Host::new(peer.address, name.0))
    }

    /// The data for telling the client of its lock, if the request may wait for it.
    #[must_use]
    pub fn waiting(&self, peer: &Peer) -> Option<Waiting> {
        let Body::Lock(args) = &self.body else { return None };
        let by_message = self.answered_by().is_some();
        let handle = args.lock.fh.0;
        args.block.then(|| Waiting { local: peer.local, handle: handle.into(), by_message })
    }

    /// Does the request reclaim a lock or share from before a restart?
    #[must_use]
    pub fn reclaims(&self) -> bool {
        match &self.body {
            Body::Lock(args) => args.reclaim,
            Body::Share(args) => args.reclaim,
            _ => false,
        }
    }

    /// Is the answer a call of its own, rather than the reply?
    pub(super) fn answered_by(&self) -> Option<Procedure> {
        match self.procedure {
            Procedure::TestMsg => Some(Procedure::TestRes),
            Procedure::LockMsg => Some(Procedure::LockRes),
            Procedure::CancelMsg => Some(Procedure::CancelRes),
            Procedure::UnlockMsg => Some(Procedure::UnlockRes),
            Procedure::GrantedMsg => Some(Procedure::GrantedRes),
            _ => None,
        }
    }
}
