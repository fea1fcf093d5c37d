//! The types of NSM version 1 (XNFS chapter 11): arguments and results of every procedure, both
//! directions.

use crate::limits::NSM_NAME_BYTES_MAX;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_newtype, xdr_opaque, xdr_struct};

/// The procedures of NSM by their numbers (XNFS chapter 11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
#[expect(missing_docs, reason = "the names are those of XNFS chapter 11")]
pub enum Procedure {
    Null = 0,
    Stat = 1,
    Mon = 2,
    Unmon = 3,
    UnmonAll = 4,
    SimuCrash = 5,
    Notify = 6,
}

impl Procedure {
    /// Every procedure, at the index that is its number.
    pub const ALL: [Self; 7] = [
        Self::Null,
        Self::Stat,
        Self::Mon,
        Self::Unmon,
        Self::UnmonAll,
        Self::SimuCrash,
        Self::Notify,
    ];

    /// The procedure with this number, if there is one.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

xdr_newtype! {
    /// Can a host be monitored (XNFS chapter 11, `res`)? Unknown values survive.
    pub struct Outcome {
        /// The host can be monitored.
        SUCC = 0,
        /// The host can't be monitored.
        FAIL = 1,
    }
}

xdr_opaque! {
    /// The name of a host (XNFS chapter 11, `SM_MAXSTRLEN`): at most 1,024 bytes; more are cut off
    /// when it is written.
    HostName, "host name", NSM_NAME_BYTES_MAX
}

xdr_struct! {
    /// The argument of STAT (XNFS chapter 11, `sm_name`).
    pub struct StatArgs<'a> {
        /// The host asked about.
        pub name: HostName<'a>,
    }
}

xdr_struct! {
    /// The result of STAT and of MON (XNFS chapter 11, `sm_stat_res`).
    pub struct StatRes {
        /// The outcome.
        pub outcome: Outcome,
        /// The state number of the host that answers.
        pub state: u32,
    }
}

xdr_struct! {
    /// The program to call when a host restarts, and the argument of UNMON_ALL (XNFS chapter 11,
    /// `my_id`).
    pub struct MyId<'a> {
        /// The host of the caller.
        pub name: HostName<'a>,
        /// The program to be called.
        pub program: u32,
        /// The program's version.
        pub version: u32,
        /// The procedure.
        pub procedure: u32,
    }
}

xdr_struct! {
    /// The monitored host and the program to call, and the argument of UNMON (XNFS chapter 11,
    /// `mon_id`).
    pub struct MonId<'a> {
        /// The host to monitor.
        pub name: HostName<'a>,
        /// The caller.
        pub my_id: MyId<'a>,
    }
}

/// Bytes sent back with the news, for the caller's own use (XNFS chapter 11, `priv`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Private(pub [u8; 16]);

impl Decode<'_> for Private {
    fn decode(input: &mut Reader<'_>) -> Result<Self, XdrError> {
        input.array().copied().map(Self)
    }
}

impl Encode for Private {
    fn encode(&self, out: &mut Writer) {
        out.bytes(&self.0);
    }
}

xdr_struct! {
    /// The argument of MON (XNFS chapter 11, `mon`).
    pub struct MonArgs<'a> {
        /// The monitored host and the program to call.
        pub mon_id: MonId<'a>,
        /// Bytes sent back with the news.
        pub private: Private,
    }
}

xdr_struct! {
    /// The result of UNMON and of UNMON_ALL (XNFS chapter 11, `sm_stat`).
    pub struct StateRes {
        /// The state number of the host that answers.
        pub state: u32,
    }
}

xdr_struct! {
    /// The argument of NOTIFY (XNFS chapter 11, `stat_chge`).
    pub struct NotifyArgs<'a> {
        /// The host that restarted.
        pub name: HostName<'a>,
        /// The host's new state number; odd while it is up.
        pub state: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::samples::{encoded, hex};
    use crate::xdr::decode;

    const HOST: &str = "00000005 686f737431 000000";
    const MINE: &str = "00000002 6d65 0000 000186b5 00000004 00000010";

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

    #[test]
    fn arguments() {
        let name = HostName(b"host1");
        check(&StatArgs { name }, &hex(&[HOST]));
        let my_id = MyId { name: HostName(b"me"), program: 100_021, version: 4, procedure: 16 };
        check(&my_id, &hex(&[MINE]));
        let mon_id = MonId { name, my_id };
        check(&mon_id, &hex(&[HOST, MINE]));
        let private = Private(*b"0123456789abcdef");
        let bytes = [HOST, MINE, "30313233 34353637 38396162 63646566"];
        check(&MonArgs { mon_id, private }, &hex(&bytes));
        check(&NotifyArgs { name, state: 0x55 }, &hex(&[HOST, "00000055"]));
    }

    #[test]
    fn results() {
        let (outcome, state) = (Outcome::FAIL, 0x55);
        check(&StatRes { outcome, state }, &hex(&["00000001 00000055"]));
        check(&StateRes { state }, &hex(&["00000055"]));
    }

    #[test]
    fn numbers_are_those_of_the_standard() {
        for (number, procedure) in (0..).zip(Procedure::ALL) {
            assert_eq!((procedure as u32, Procedure::of(number)), (number, Some(procedure)));
        }
        assert_eq!(Procedure::of(7), None);
    }

    #[test]
    fn names_are_bounded() {
        let mut out = Writer::default();
        out.opaque(&[b'x'; 1025]);
        let error = XdrError::TooLong { what: "host name", len: 1025, max: 1024 };
        assert_eq!(decode::<HostName<'_>>(out.as_bytes()), Err(error));
    }
}
