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
        /// The request was carried out; for TEST, it could be.
        GRANTED = 0,
        /// Another owner holds a conflicting lock; or, in answer to GRANTED, nobody waits for the
        /// lock.
        DENIED = 1,
        /// A bound of the server is reached.
        DENIED_NOLOCKS = 2,
        /// The request waits, and GRANTED will be called.
        BLOCKED = 3,
        /// The server restarted, and locks from before come first.
        DENIED_GRACE_PERIOD = 4,
        /// The request would wait for itself.
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
    /// The holder of a lock, and the lock (RFC 1813 §6.1.4, `nlm4_holder`).
    pub struct Holder<'a> {
        /// Alone?
        pub exclusive: bool,
        /// The process.
        pub svid: u32,
        /// The owner in the words of its host.
        pub oh: NetObj<'a>,
        /// The first byte.
        pub offset: u64,
        /// The number of bytes; 0 for all to the end of the file.
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
        /// The number of bytes; 0 for all to the end of the file.
        pub length: u64,
    }
}

xdr_struct! {
    /// The arguments of TEST and of GRANTED (RFC 1813 §6.1.4, `nlm4_testargs`).
    pub struct TestArgs<'a> {
        /// A value sent back with the answer.
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
        /// A value sent back with the answer.
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
        /// A value sent back with the answer.
        pub cookie: NetObj<'a>,
        /// The flag of the LOCK that is over.
        pub block: bool,
        /// The flag of the LOCK that is over.
        pub exclusive: bool,
        /// The lock.
        pub lock: Lock<'a>,
    }
}

xdr_struct! {
    /// The arguments of UNLOCK (RFC 1813 §6.1.4, `nlm4_unlockargs`).
    pub struct UnlockArgs<'a> {
        /// A value sent back with the answer.
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

/// The result of TEST (RFC 1813 §6.1.4, `nlm4_testrply`).
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
        /// The result.
        pub reply: TestReply<'a>,
    }
}

xdr_newtype! {
    /// An owner's access to a file (XNFS chapter 10, `fsh_access`), or the access it denies to
    /// others (`fsh_mode`). Unknown values survive.
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
        /// The access denied to others.
        pub deny: ShareBits,
        /// The owner's access.
        pub access: ShareBits,
    }
}

xdr_struct! {
    /// The arguments of SHARE and of UNSHARE (RFC 1813 §6.1.4, `nlm4_shareargs`).
    pub struct ShareArgs<'a> {
        /// A value sent back with the answer.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::samples::{encoded, hex};
    use crate::xdr::decode;

    const COOKIE: &str = "00000003 636b65 00";
    const NAME: &str = "00000006 636c69656e74 0000";
    const FH: &str = "00000005 66682d3031 000000";
    const OH: &str = "00000004 37404e4e";
    const REST: &str = "00000007 0000000000000500 0000000000000010";

    /// Bytes written by hand from RFC 1813 §6.1.4 are the value, both ways, and every shorter input
    /// is refused.
    fn check<'a, T: Decode<'a> + Encode + PartialEq + core::fmt::Debug>(
        value: &T,
        bytes: &'a [u8],
    ) {
        assert_eq!(encoded(value), bytes);
        assert_eq!(decode::<T>(bytes).as_ref(), Ok(value));
        for end in 0..bytes.len() {
            assert!(decode::<T>(&bytes[..end]).is_err(), "cut to {end} bytes");
        }
    }

    const fn cookie() -> NetObj<'static> {
        NetObj(b"cke")
    }

    const fn lock() -> Lock<'static> {
        let (caller_name, fh, oh) = (CallerName(b"client"), NetObj(b"fh-01"), NetObj(b"7@NN"));
        Lock { caller_name, fh, oh, svid: 7, offset: 0x500, length: 0x10 }
    }

    #[test]
    fn arguments_of_locks() {
        let (cookie, lock) = (cookie(), lock());
        let test = TestArgs { cookie, exclusive: true, lock };
        check(&test, &hex(&[COOKIE, "00000001", NAME, FH, OH, REST]));
        let ask =
            LockArgs { cookie, block: true, exclusive: false, lock, reclaim: true, state: 0x33 };
        let bytes = [COOKIE, "00000001 00000000", NAME, FH, OH, REST, "00000001 00000033"];
        check(&ask, &hex(&bytes));
        let cancel = CancelArgs { cookie, block: false, exclusive: true, lock };
        check(&cancel, &hex(&[COOKIE, "00000000 00000001", NAME, FH, OH, REST]));
        check(&UnlockArgs { cookie, lock }, &hex(&[COOKIE, NAME, FH, OH, REST]));
    }

    #[test]
    fn results_of_locks() {
        let cookie = cookie();
        let res = Res { cookie, status: Status::DENIED_GRACE_PERIOD };
        check(&res, &hex(&[COOKIE, "00000004"]));
        let free = TestRes { cookie, reply: TestReply::Other(Status::GRANTED) };
        check(&free, &hex(&[COOKIE, "00000000"]));
        let oh = NetObj(b"7@NN");
        let holder = Holder { exclusive: true, svid: 7, oh, offset: 0x500, length: 0x10 };
        let held = TestRes { cookie, reply: TestReply::Denied(holder) };
        let bytes = [COOKIE, "00000001 00000001 00000007", OH, "0000000000000500 0000000000000010"];
        check(&held, &hex(&bytes));
    }

    #[test]
    fn shares_and_free_all() {
        let cookie = cookie();
        let (caller_name, fh, oh) = (CallerName(b"client"), NetObj(b"fh-01"), NetObj(b"7@NN"));
        let (deny, access) = (ShareBits::WRITE, ShareBits::READ);
        let share = Share { caller_name, fh, oh, deny, access };
        let args = ShareArgs { cookie, share, reclaim: true };
        check(&args, &hex(&[COOKIE, NAME, FH, OH, "00000002 00000001 00000001"]));
        let res = ShareRes { cookie, status: Status::DENIED, sequence: 9 };
        check(&res, &hex(&[COOKIE, "00000001 00000009"]));
        let free = FreeAllArgs { name: CallerName(b"client"), state: 0x33 };
        check(&free, &hex(&[NAME, "00000033"]));
    }

    #[test]
    fn numbers_are_those_of_the_standard() {
        let numbers = Procedure::ALL.map(|procedure| procedure as u32);
        assert!((0..16).eq(numbers[..16].iter().copied()));
        assert_eq!(numbers[16..], [20, 21, 22, 23]);
        for number in 0..30 {
            let named = Procedure::of(number).map(|procedure| procedure as u32);
            assert_eq!(named, numbers.contains(&number).then_some(number));
        }
        let statuses = [
            Status::GRANTED,
            Status::DENIED,
            Status::DENIED_NOLOCKS,
            Status::BLOCKED,
            Status::DENIED_GRACE_PERIOD,
            Status::DEADLCK,
            Status::ROFS,
            Status::STALE_FH,
            Status::FBIG,
            Status::FAILED,
        ];
        assert_eq!(statuses.map(|status| status.0), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(decode(&77u32.to_be_bytes()), Ok(Status(77)));
    }

    #[test]
    fn names_and_objects_are_bounded_in_both_directions() {
        let long = [b'x'; 1025];
        let mut out = Writer::default();
        NetObj(&long).encode(&mut out);
        assert_eq!(decode::<NetObj<'_>>(out.as_bytes()), Ok(NetObj(&long[..1024])));
        let mut out = Writer::default();
        out.opaque(&long);
        let error = XdrError::TooLong { what: "netobj", len: 1025, max: 1024 };
        assert_eq!(decode::<NetObj<'_>>(out.as_bytes()), Err(error));
        let error = XdrError::TooLong { what: "caller_name", len: 1025, max: 1024 };
        assert_eq!(decode::<CallerName<'_>>(out.as_bytes()), Err(error));
    }
}
