//! The operations of NLM, one file each.

mod cancel;
mod free_all;
mod granted_res;
mod lock;
mod share;
mod test;
mod unlock;
mod unshare;

use super::host::{Host, process};
use super::manager::Peer;
use super::request::{Body, Request};
use super::states::States;
use super::wire::{Holder, Lock, NetObj, Res, ShareRes, Status, TestReply, TestRes};
use crate::nlm::callback::wire_range;
use crate::xdr::{Encode, Writer};
use alloc::vec::Vec;
use weir_core::Mono;
use weir_core::limits::FILE_BYTES_MAX;
use weir_state::{Ask, File, Grant, Mode, Range, Tables};

/// The environment of an operation.
pub(super) struct Context<'a, W> {
    pub(super) tables: &'a mut Tables<W>,
    pub(super) states: &'a mut States,
    pub(super) now: Mono,
    pub(super) peer: &'a Peer,
    /// The file the call is about, if it is about one.
    pub(super) file: Result<File, Status>,
    /// The grants of locks that became free.
    pub(super) grants: Vec<Grant<W>>,
}

/// The answer of an operation.
#[derive(Debug)]
pub(super) enum Answer {
    /// A status.
    Status(Status),
    /// DENIED, and the holder of a conflicting lock.
    Held(weir_state::Holder),
    /// Nothing: the procedure has no results.
    Nothing,
}

/// Carries out what `request` asks.
pub(super) fn carry_out<W>(
    cx: &mut Context<'_, W>,
    request: &Request<'_>,
    waiter: Option<W>,
) -> Answer {
    match &request.body {
        Body::Nothing => Answer::Nothing,
        Body::Test(args) => test::test(cx, args),
        Body::Lock(args) => lock::lock(cx, args, waiter),
        Body::Cancel(args) => cancel::cancel(cx, args),
        Body::Unlock(args) => unlock::unlock(cx, args),
        // We wait for nothing.
        Body::Granted(_) => Answer::Status(Status::DENIED),
        Body::GrantedRes(args) => granted_res::granted_res(cx, args),
        Body::Share(args) => share::share(cx, args),
        Body::Unshare(args) => unshare::unshare(cx, args),
        Body::FreeAll(args) => free_all::free_all(cx, args),
    }
}

/// Does the operation take only a short time, whatever others hold and ask? Those that concern
/// hosts as a whole, or grants, do not.
pub(super) fn is_quick<W>(
    request: &Request<'_>,
    states: &States,
    tables: &Tables<W>,
    peer: &Peer,
    file: &File,
) -> bool {
    let on_range = |lock: &Lock<'_>, exclusive, may_wait| {
        ask(peer, file, lock, exclusive).map_or(true, |ask| tables.is_quick(&ask, may_wait))
    };
    match &request.body {
        Body::Test(args) => on_range(&args.lock, args.exclusive, false),
        Body::Cancel(args) => on_range(&args.lock, args.exclusive, false),
        Body::Unlock(args) => on_range(&args.lock, false, false),
        Body::Lock(args) => {
            // A new life of a host ends all that it held, and the first one may end what is known
            // of others.
            let client = Host::new(peer.address, args.lock.caller_name.0).client();
            let is_known = args.state == 0 || states.is_known(&client);
            is_known
                && !states.is_new(&client, args.state)
                && on_range(&args.lock, args.exclusive, args.block)
        }
        Body::Share(_) | Body::Unshare(_) => true,
        Body::Nothing | Body::Granted(_) | Body::GrantedRes(_) | Body::FreeAll(_) => false,
    }
}

/// The request that `lock` of `peer` makes.
fn ask(peer: &Peer, file: &File, lock: &Lock<'_>, exclusive: bool) -> Result<Ask, Status> {
    let host = Host::new(peer.address, lock.caller_name.0);
    let mode = if exclusive { Mode::Exclusive } else { Mode::Shared };
    let range = range(lock.offset, lock.length)?;
    Ok(Ask { file: *file, owner: host.owner(lock.svid, lock.oh.0), range, mode })
}

impl<W> Context<'_, W> {
    fn ask(&self, lock: &Lock<'_>, exclusive: bool) -> Result<Ask, Status> {
        ask(self.peer, &self.file?, lock, exclusive)
    }
}

/// The range that offset and length mean: a length of 0 reaches to the end of the file (XNFS
/// chapter 10, `nlm_lock`), and so does what reaches the largest offset there is.
fn range(offset: u64, length: u64) -> Result<Range, Status> {
    let Some(most) = FILE_BYTES_MAX.checked_sub(offset) else { return Err(Status::FBIG) };
    match length.checked_sub(1) {
        Some(more) if more > most => Err(Status::FBIG),
        Some(more) if more < most => Range::new(offset, length).ok_or(Status::FBIG),
        _ => Ok(Range::to_eof(offset)),
    }
}

impl Answer {
    /// The outcome, GRANTED where there is none to tell.
    pub(super) fn status(&self) -> Status {
        match self {
            Self::Status(status) => *status,
            Self::Held(_) => Status::DENIED,
            Self::Nothing => Status::GRANTED,
        }
    }

    /// Appends the results of the procedure, with the cookie of the call.
    pub(super) fn encode(&self, request: &Request<'_>, out: &mut Writer) {
        let status = self.status();
        match &request.body {
            Body::Nothing | Body::GrantedRes(_) | Body::FreeAll(_) => {}
            Body::Test(args) => {
                TestRes { cookie: args.cookie, reply: self.test_reply() }.encode(out);
            }
            Body::Lock(args) => Res { cookie: args.cookie, status }.encode(out),
            Body::Cancel(args) => Res { cookie: args.cookie, status }.encode(out),
            Body::Unlock(args) => Res { cookie: args.cookie, status }.encode(out),
            Body::Granted(args) => Res { cookie: args.cookie, status }.encode(out),
            Body::Share(args) | Body::Unshare(args) => {
                ShareRes { cookie: args.cookie, status, sequence: 0 }.encode(out);
            }
        }
    }

    fn test_reply(&self) -> TestReply<'_> {
        let Self::Held(holder) = self else { return TestReply::Other(self.status()) };
        // An owner of another protocol's is no process.
        let (svid, oh) = process(&holder.owner).unwrap_or_default();
        let (offset, length) = wire_range(holder.range);
        let exclusive = holder.mode == Mode::Exclusive;
        TestReply::Denied(Holder { exclusive, svid, oh: NetObj(oh), offset, length })
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_zero_reaches_to_the_end() {
        assert_eq!(range(5, 0), Ok(Range::to_eof(5)));
        assert_eq!(range(FILE_BYTES_MAX, 0), Ok(Range::to_eof(FILE_BYTES_MAX)));
        assert_eq!(range(5, 10), Ok(Range::new(5, 10).unwrap()));
    }

    #[test]
    fn to_the_largest_offset_is_to_the_end() {
        assert_eq!(range(0, FILE_BYTES_MAX + 1), Ok(Range::ALL));
        assert_eq!(range(FILE_BYTES_MAX, 1), Ok(Range::to_eof(FILE_BYTES_MAX)));
        assert_eq!(range(0, FILE_BYTES_MAX), Ok(Range::new(0, FILE_BYTES_MAX).unwrap()));
    }

    #[test]
    fn beyond_what_a_file_can_have_is_too_big() {
        for (offset, length) in [(FILE_BYTES_MAX + 1, 0), (0, u64::MAX), (FILE_BYTES_MAX, 2)] {
            assert_eq!(range(offset, length), Err(Status::FBIG));
        }
    }
}
