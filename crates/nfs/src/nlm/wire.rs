//! The types of NLM version 4 (XNFS chapter 14, RFC 1813 §6): arguments and results of
//! every procedure, both directions. Everything borrows from the input.

use crate::limits::{NLM_NAME_BYTES_MAX, NLM_OBJECT_BYTES_MAX};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_newtype, xdr_opaque, xdr_struct};

/// The procedures of NLM by their numbers (RFC 1813 §6.2). What is called `…Msg` is answered not by
/// its reply but by a call of `…Res` the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
#[expect(missing_docs, reason = "the names are those of RFC 1813 §6.2")]
pub enum Procedure {
    Null = 0,
    Test = 1,
    Lock = 2,
    Cancel = 3,
    Unlock = 4,
    Granted = 5,
    TestMsg = 6,
    LockMsg = 7,
    CancelMsg = 8,
    UnlockMsg = 9,
    GrantedMsg = 10,
    TestRes = 11,
    LockRes = 12,
    CancelRes = 13,
    UnlockRes = 14,
    GrantedRes = 15,
    Share = 20,
    Unshare = 21,
    NmLock = 22,
    FreeAll = 23,
}

impl Procedure {
    /// Every procedure, in the order of their numbers.
    pub const ALL: [Self; 20] = [
        Self::Null,
        Self::Test,
        Self::Lock,
        Self::Cancel,
        Self::Unlock,
        Self::Granted,
        Self::TestMsg,
        Self::LockMsg,
        Self::CancelMsg,
        Self::UnlockMsg,
        Self::GrantedMsg,
        Self::TestRes,
        Self::LockRes,
        Self::CancelRes,
        Self::UnlockRes,
        Self::GrantedRes,
        Self::Share,
        Self::Unshare,
        Self::NmLock,
        Self::FreeAll,
    ];

    /// The procedure with this number, if there is one.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|procedure| *procedure as u32 == number)
    }
}

xdr_newtype! {
    /// The outcome of a procedure (RFC 1813 §6.1.4, `nlm4_stats`). Unknown values survive.
    pub struct Status {
        /// It was done; for TEST, it could be.
        GRANTED = 0,
        /// Somebody else holds what was asked for; or, in answer to GRANTED, nobody waits for it.
        DENIED = 1,
        /// A bound of the server is reached.
        DENIED_NOLOCKS = 2,
        /// It waits, and GRANTED will be called.
        BLOCKED = 3,
        /// The server restarted, and locks from before come first.
        DENIED_GRACE_PERIOD = 4,
        /// It would wait for itself.
        DEADLCK = 5,
        /// The file system is read-only.
        ROFS = 6,
        /// The handle names nothing (any more).
        STALE_FH = 7,
        /// The offset or length is beyond what a file can have.
        FBIG = 8,
        /// Any other failure.
        FAILED = 9,
    }
}

xdr_opaque! {
    /// An opaque object (XNFS chapter 10, `netobj`): at most 1,024 bytes; more are cut off when it
    /// is written.
    NetObj, "netobj", NLM_OBJECT_BYTES_MAX
}
xdr_opaque! {
    /// The name of a host (XNFS chapter 10, `caller_name`): at most 1,024 bytes; more are cut off
    /// when it is written.
    CallerName, "caller_name", NLM_NAME_BYTES_MAX
}

xdr_struct! {
    /// Who holds a lock, and what (RFC 1813 §6.1.4, `nlm4_holder`).
    pub struct Holder<'a> {
        /// Alone?
        pub exclusive: bool,
        /// The process.
        pub svid: u32,
        /// The owner in the words of its host.
        pub oh: NetObj<'a>,
        /// The first byte.
        pub offset: u64,
        /// How many bytes; 0 for all to the end of the file.
        pub length: u64,
    }
}

xdr_struct! {
    /// A lock (RFC 1813 §6.1.4, `nlm4_lock`).
    pub struct Lock<'a> {
        /// The host that asks.
        pub caller_name: CallerName<'a>,
        /// The file.
        pub fh: NetObj<'a>,
        /// The owner in the words of its host.
        pub oh: NetObj<'a>,
        /// The process.
        pub svid: u32,
        /// The first byte.
        pub offset: u64,
        /// How many bytes; 0 for all to the end of the file.
        pub length: u64,
    }
}

xdr_struct! {
    /// The arguments of TEST and of GRANTED (RFC 1813 §6.1.4, `nlm4_testargs`).
    pub struct TestArgs<'a> {
        /// To be sent back with the answer.
        pub cookie: NetObj<'a>,
        /// Alone?
        pub exclusive: bool,
        /// The lock.
        pub lock: Lock<'a>,
    }
}

xdr_struct! {
    /// The arguments of LOCK and of NM_LOCK (RFC 1813 §6.1.4, `nlm4_lockargs`).
    pub struct LockArgs<'a> {
        /// To be sent back with the answer.
        pub cookie: NetObj<'a>,
        /// Wait for it?
        pub block: bool,
        /// Alone?
        pub exclusive: bool,
        /// The lock.
        pub lock: Lock<'a>,
        /// Is it a lock from before the server's restart?
        pub reclaim: bool,
        /// The state number of the host's status monitor.
        pub state: u32,
    }
}

xdr_struct! {
    /// The arguments of CANCEL (RFC 1813 §6.1.4, `nlm4_cancargs`).
    pub struct CancelArgs<'a> {
        /// To be sent back with the answer.
        pub cookie: NetObj<'a>,
        /// As in the LOCK that is over.
        pub block: bool,
        /// As in the LOCK that is over.
        pub exclusive: bool,
        /// The lock.
        pub lock: Lock<'a>,
    }
}

xdr_struct! {
    /// The arguments of UNLOCK (RFC 1813 §6.1.4, `nlm4_unlockargs`).
    pub struct UnlockArgs<'a> {
        /// To be sent back with the answer.
        pub cookie: NetObj<'a>,
        /// The lock.
        pub lock: Lock<'a>,
    }
}

xdr_struct! {
    /// The result of most procedures (RFC 1813 §6.1.4, `nlm4_res`).
    pub struct Res<'a> {
        /// The cookie of the call.
        pub cookie: NetObj<'a>,
        /// The outcome.
        pub status: Status,
    }
}

/// What TEST found (RFC 1813 §6.1.4, `nlm4_testrply`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestReply<'a> {
    /// [`Status::DENIED`], and somebody who holds it.
    Denied(Holder<'a>),
    /// Any other status.
    Other(Status),
}

impl<'a> Decode<'a> for TestReply<'a> {
    fn decode(input: &mut Reader<'a>) -> Result<Self, XdrError> {
        match Status::decode(input)? {
            Status::DENIED => Holder::decode(input).map(Self::Denied),
            status => Ok(Self::Other(status)),
        }
    }
}

impl Encode for TestReply<'_> {
    fn encode(&self, out: &mut Writer) {
        match self {
            Self::Denied(holder) => {
                Status::DENIED.encode(out);
                holder.encode(out);
            }
            Self::Other(status) => status.encode(out),
        }
    }
}

xdr_struct! {
    /// The result of TEST (RFC 1813 §6.1.4, `nlm4_testres`).
    pub struct TestRes<'a> {
        /// The cookie of the call.
        pub cookie: NetObj<'a>,
        /// What was found.
        pub reply: TestReply<'a>,
    }
}

xdr_newtype! {
    /// What an owner does with a file (XNFS chapter 10, `fsh_access`), or lets nobody else do
    /// (`fsh_mode`). Unknown values survive.
    pub struct ShareBits {
        /// Nothing.
        NONE = 0,
        /// Read.
        READ = 1,
        /// Write.
        WRITE = 2,
        /// Read and write.
        READ_WRITE = 3,
    }
}

xdr_struct! {
    /// A share reservation (RFC 1813 §6.1.4, `nlm4_share`).
    pub struct Share<'a> {
        /// The host that asks.
        pub caller_name: CallerName<'a>,
        /// The file.
        pub fh: NetObj<'a>,
        /// The owner in the words of its host.
        pub oh: NetObj<'a>,
        /// What others may not do.
        pub deny: ShareBits,
        /// What the owner does.
        pub access: ShareBits,
    }
}

xdr_struct! {
    /// The arguments of SHARE and of UNSHARE (RFC 1813 §6.1.4, `nlm4_shareargs`).
    pub struct ShareArgs<'a> {
        /// To be sent back with the answer.
        pub cookie: NetObj<'a>,
        /// The reservation.
        pub share: Share<'a>,
        /// Is it from before the server's restart?
        pub reclaim: bool,
    }
}

xdr_struct! {
    /// The result of SHARE and of UNSHARE (RFC 1813 §6.1.4, `nlm4_shareres`).
    pub struct ShareRes<'a> {
        /// The cookie of the call.
        pub cookie: NetObj<'a>,
        /// The outcome.
        pub status: Status,
        /// A number of no use.
        pub sequence: u32,
    }
}

xdr_struct! {
    /// The arguments of FREE_ALL (RFC 1813 §6.1.4, `nlm4_notify`).
    pub struct FreeAllArgs<'a> {
        /// The host that restarted.
        pub name: CallerName<'a>,
        /// A number of no use.
        pub state: u32,
    }
}
