//! The types of the portmapper and of rpcbind (RFC 1833 §2.1 and §3.1).

use crate::limits::RPCBIND_TEXT_BYTES_MAX;
use crate::xdr::{Decode, Encode, List, Reader, Writer, XdrError, xdr_struct};

/// The procedures of version 2 by their numbers (RFC 1833 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "the names are those of RFC 1833 §3.2")]
pub enum PortmapProcedure {
    Null = 0,
    Set = 1,
    Unset = 2,
    Getport = 3,
    Dump = 4,
    Callit = 5,
}

impl PortmapProcedure {
    /// Every procedure, at the index that is its number.
    pub const ALL: [Self; 6] =
        [Self::Null, Self::Set, Self::Unset, Self::Getport, Self::Dump, Self::Callit];

    /// The procedure with this number, if there is one.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

/// The procedures of versions 3 and 4 by their numbers (RFC 1833 §2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "the names are those of RFC 1833 §2.2.1")]
pub enum Procedure {
    Null = 0,
    Set = 1,
    Unset = 2,
    Getaddr = 3,
    Dump = 4,
    Bcast = 5,
    Gettime = 6,
    Uaddr2taddr = 7,
    Taddr2uaddr = 8,
    Getversaddr = 9,
    Indirect = 10,
    Getaddrlist = 11,
    Getstat = 12,
}

impl Procedure {
    /// Every procedure, at the index that is its number.
    pub const ALL: [Self; 13] = [
        Self::Null,
        Self::Set,
        Self::Unset,
        Self::Getaddr,
        Self::Dump,
        Self::Bcast,
        Self::Gettime,
        Self::Uaddr2taddr,
        Self::Taddr2uaddr,
        Self::Getversaddr,
        Self::Indirect,
        Self::Getaddrlist,
        Self::Getstat,
    ];

    /// The procedure with this number in `version`, if there is one: those from GETVERSADDR on came
    /// with version 4.
    #[must_use]
    pub fn of(version: u32, number: u32) -> Option<Self> {
        let known = if version == super::RPCBIND_3 { 9 } else { Self::ALL.len() };
        Self::ALL.get(..known)?.get(number as usize).copied()
    }
}

xdr_struct! {
    /// A registration of version 2 (RFC 1833 §3.1, `mapping`).
    pub struct Mapping {
        /// The program.
        pub program: u32,
        /// The program's version.
        pub version: u32,
        /// 6 for TCP, 17 for UDP.
        pub protocol: u32,
        /// The port, which fits 16 bits if it is one.
        pub port: u32,
    }
}

/// A text of rpcbind, which bounds none: at most [`RPCBIND_TEXT_BYTES_MAX`] bytes here; more are
/// cut off when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Decode<'a> for Text<'a> {
    fn decode(input: &mut Reader<'a>) -> Result<Self, XdrError> {
        input.opaque("rpcbind text", RPCBIND_TEXT_BYTES_MAX).map(Self)
    }
}

impl Encode for Text<'_> {
    fn encode(&self, out: &mut Writer) {
        out.opaque(self.0.get(..RPCBIND_TEXT_BYTES_MAX).unwrap_or(self.0));
    }
}

xdr_struct! {
    /// A registration of versions 3 and 4 (RFC 1833 §2.1, `rpcb`).
    pub struct Rpcb<'a> {
        /// The program.
        pub program: u32,
        /// The program's version.
        pub version: u32,
        /// The network identifier of its transport.
        pub netid: Text<'a>,
        /// The program's universal address.
        pub address: Text<'a>,
        /// The registration's owner.
        pub owner: Text<'a>,
    }
}

xdr_struct! {
    /// The results of DUMP in version 2 (RFC 1833 §3.1, `pmaplist`).
    pub struct Mappings<'a> {
        /// The registrations.
        pub list: List<'a, Mapping>,
    }
}

xdr_struct! {
    /// The results of DUMP in versions 3 and 4 (RFC 1833 §2.1, `rpcblist_ptr`).
    pub struct Registrations<'a> {
        /// The registrations.
        pub list: List<'a, Rpcb<'a>>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::samples::check;
    use crate::xdr::decode;
    use nfs3_types::portmap as theirs;

    #[test]
    fn a_mapping() {
        check!(
            Mapping { program: 100_021, version: 4, protocol: 6, port: 2049 },
            theirs::mapping { prog: 100_021, vers: 4, prot: 6, port: 2049 },
            ["000186b5 00000004 00000006 00000801"]
        );
    }

    #[test]
    fn a_list_of_mappings() {
        let list = ["00000001 000186b5 00000004 00000006 00000801 00000000"];
        let bytes = crate::v3::wire::samples::hex(&list);
        let mapping = theirs::mapping { prog: 100_021, vers: 4, prot: 6, port: 2049 };
        let other = nfs3_types::xdr_codec::List([mapping].into());
        check!(decode::<Mappings<'_>>(&bytes).unwrap(), other, list);
    }

    #[test]
    fn a_registration() {
        let bytes = crate::v3::wire::samples::hex(&[
            "000186b5 00000004 00000003 74637000",
            "0000000b 302e302e302e302e382e3100 00000000",
        ]);
        let rpcb: Rpcb<'_> = decode(&bytes).unwrap();
        let (netid, address) = (Text(b"tcp"), Text(b"0.0.0.0.8.1"));
        let owner = Text(b"");
        assert_eq!(rpcb, Rpcb { program: 100_021, version: 4, netid, address, owner });
        assert_eq!(crate::v3::wire::samples::encoded(&rpcb), bytes);
        for end in 0..bytes.len() {
            assert!(decode::<Rpcb<'_>>(&bytes[..end]).is_err(), "cut to {end} bytes");
        }
    }

    #[test]
    fn texts_are_bounded_in_both_directions() {
        let long = [b'x'; 256];
        let mut out = Writer::default();
        Text(&long).encode(&mut out);
        assert_eq!(decode::<Text<'_>>(out.as_bytes()), Ok(Text(&long[..255])));
        let mut out = Writer::default();
        out.opaque(&long);
        let error = XdrError::TooLong { what: "rpcbind text", len: 256, max: 255 };
        assert_eq!(decode::<Text<'_>>(out.as_bytes()), Err(error));
    }
}
