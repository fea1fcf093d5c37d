//! The NEGOTIATE of SMB1 as far as it asks for SMB2 (MS-SMB2 §3.3.5.3, MS-CIFS §2.2.4.52.1). Not
//! here: any other message of SMB1, and its answers; the answer to this one is of SMB2.

use super::WireError;
use super::codec::Cursor;
use crate::le::Truncated;
use crate::limits::SMB1_NEGOTIATE_BYTES_MAX;

const SMB_COM_NEGOTIATE: u8 = 0x72;
const SMB_FLAGS_REPLY: u8 = 0x80;
/// The format of a dialect: text up to a zero byte follows.
const DIALECT: u8 = 2;

/// An SMB1 NEGOTIATE, by the dialects of SMB2 in its list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Smb1Negotiate {
    /// Is `SMB 2.???` in the list? Its answer is the dialect revision 0x02ff, after which the
    /// client sends a NEGOTIATE of SMB2.
    pub offers_smb2_any: bool,
}

impl Smb1Negotiate {
    /// Reads the frame of an SMB1 NEGOTIATE.
    ///
    /// # Errors
    /// [`WireError`] if it is another message, malformed, or over [`SMB1_NEGOTIATE_BYTES_MAX`].
    pub fn decode(frame: &[u8]) -> Result<Self, WireError> {
        if frame.len() > SMB1_NEGOTIATE_BYTES_MAX {
            let max = SMB1_NEGOTIATE_BYTES_MAX;
            return Err(WireError::TooLong { what: "SMB1 NEGOTIATE", len: frame.len(), max });
        }
        let mut input = Cursor::new(frame, 0);
        match input.array()? {
            [0xff, b'S', b'M', b'B'] => {}
            found => return Err(WireError::Protocol { found }),
        }
        expect("SMB1 command", input.get()?, |command| command == SMB_COM_NEGOTIATE)?;
        input.skip(4)?;
        expect("SMB1 flags", input.get()?, |flags| flags & SMB_FLAGS_REPLY == 0)?;
        input.skip(22)?;
        expect("SMB1 word count", input.get()?, |words| words == 0)?;
        let len: u16 = input.get()?;
        let mut found = Self::default();
        let mut rest = input.bytes(len.into())?;
        while let Some((format, text)) = rest.split_first() {
            expect("format of a dialect", *format, |format| format == DIALECT)?;
            let mut parts = text.splitn(2, |byte| *byte == 0);
            let name = parts.next().unwrap_or_default();
            rest = parts.next().ok_or(Truncated { needed: 1, left: 0 })?;
            found.offers_smb2_any |= name == b"SMB 2.???";
        }
        Ok(found)
    }
}

fn expect(what: &'static str, value: u8, is_right: fn(u8) -> bool) -> Result<(), WireError> {
    if is_right(value) { Ok(()) } else { Err(WireError::BadValue { what, value: value.into() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples::{self, hex};
    use alloc::vec::Vec;

    fn negotiate(dialects: &[u8]) -> Vec<u8> {
        let mut frame = hex("ff534d42 72 00000000 18 53c8 0000 0000000000000000 0000 ffff fffe
             0000 0000 00");
        frame.extend_from_slice(&u16::try_from(dialects.len()).unwrap().to_le_bytes());
        frame.extend_from_slice(dialects);
        frame
    }

    #[test]
    fn dialects_of_smb2_are_found_in_the_list() {
        let any = Smb1Negotiate { offers_smb2_any: true };
        let decode = |dialects: &[u8]| Smb1Negotiate::decode(&negotiate(dialects));
        assert_eq!(decode(b"\x02NT LM 0.12\0\x02SMB 2.002\0\x02SMB 2.???\0"), Ok(any));
        assert_eq!(decode(b"\x02SMB 2.???\0"), Ok(any));
        assert_eq!(decode(b"\x02SMB 2.????\0\x02SMB 2.00\0"), Ok(Smb1Negotiate::default()));
        assert_eq!(decode(b""), Ok(Smb1Negotiate::default()));
        assert_eq!(Smb1Negotiate::decode(&hex(samples::SMB1_NEGOTIATE)), Ok(any));
    }

    #[test]
    fn malformed_lists_are_refused() {
        for dialects in [&b"\x02SMB 2.???"[..], b"\x03SMB 2.???\0", b"\x02SMB 2.???\0x"] {
            assert!(Smb1Negotiate::decode(&negotiate(dialects)).is_err(), "{dialects:?}");
        }
        let frame = negotiate(b"\x02SMB 2.???\0");
        for (at, value) in [(0, 0xfe), (4, 0x73), (9, 0x98), (32, 1), (33, 200)] {
            let mut frame = frame.clone();
            frame[at] = value;
            assert!(Smb1Negotiate::decode(&frame).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_long_list_is_refused() {
        let dialects = b"\x02SMB 2.???\0".repeat(400);
        assert!(matches!(
            Smb1Negotiate::decode(&negotiate(&dialects)),
            Err(WireError::TooLong { .. })
        ));
    }
}
