//! The calls to a client's own lock manager, and their possible outcomes.

use super::host::{Host, process};
use super::manager::{Peer, Waiting};
use super::wire::{CallerName, Lock, NetObj, Procedure, TestArgs};
use crate::xdr::{Encode, Writer};
use alloc::vec::Vec;
use weir_state::{Ask, GrantId, Mode, Range};

/// The number of times that a client is told of a grant before it is taken to know.
pub(super) const ATTEMPTS_MAX: u32 = 5;

/// A call to make of a client's NLM, version 4: at the client's address, at the port that its
/// portmapper tells, and from our address in `peer`, because clients compare.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "somebody waits for it"]
pub struct Callback {
    /// The two ends, as in the call that it goes back to.
    pub peer: Peer,
    /// The procedure to call. Only GRANTED has results.
    pub procedure: Procedure,
    /// The encoded arguments.
    pub args: Vec<u8>,
    /// The grant it tells of.
    pub(super) grant: Option<GrantId>,
    /// Attempts made so far.
    pub(super) attempts: u32,
    /// May the client have heard of it by one of them?
    pub(super) may_be_heard: bool,
}

/// The outcome of an attempt to make a [`Callback`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery<'a> {
    /// The call was carried out, with these results.
    Answered(&'a [u8]),
    /// The client can't have carried out the callback: there is no portmapper or no NLM, the
    /// connection was refused, or the call was.
    NotHeard,
    /// The callback was sent, and no answer came.
    Unknown,
}

/// The action after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing more.
    Done,
    /// To make the call again after a while; others wait for 10 s.
    Again(Callback),
}

impl Callback {
    /// Tells the `waiter` of NLM that it has the lock of grant `id`; `None` if the owner is no
    /// process of a client of NLM.
    #[must_use]
    pub fn granted(id: GrantId, ask: &Ask, waiter: &Waiting) -> Option<Self> {
        let host = Host::of(ask.owner.client())?;
        let (svid, oh) = process(&ask.owner)?;
        let (offset, length) = wire_range(ask.range);
        let lock = Lock {
            caller_name: CallerName(&host.name),
            fh: NetObj(&waiter.handle),
            oh: NetObj(oh),
            svid,
            offset,
            length,
        };
        let cookie = id.0.to_be_bytes();
        let exclusive = ask.mode == Mode::Exclusive;
        let mut args = Writer::default();
        TestArgs { cookie: NetObj(&cookie), exclusive, lock }.encode(&mut args);
        Some(Self {
            peer: Peer { address: host.address, local: waiter.local },
            procedure: if waiter.by_message { Procedure::GrantedMsg } else { Procedure::Granted },
            args: args.into_vec(),
            grant: Some(id),
            attempts: 0,
            may_be_heard: false,
        })
    }

    /// Answers a call that wants its answer as a call.
    pub(super) fn answer(peer: Peer, procedure: Procedure, args: Vec<u8>) -> Self {
        Self { peer, procedure, args, grant: None, attempts: 0, may_be_heard: false }
    }

    /// One more attempt, after one that the client `heard` of, perhaps.
    pub(super) fn again(self, heard: bool) -> Next {
        let (attempts, may_be_heard) =
            (self.attempts.saturating_add(1), self.may_be_heard || heard);
        Next::Again(Self { attempts, may_be_heard, ..self })
    }
}

/// Offset and length as the protocol writes them: a length of 0 reaches to the end of the file. A
/// lock of no bytes, which SMB has, is therefore told as one byte.
pub(super) fn wire_range(range: Range) -> (u64, u64) {
    (range.first(), range.length().map_or(0, |length| length.max(1)))
}
