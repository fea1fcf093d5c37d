//! The header of a sealed frame (MS-SMB2 §2.2.41). Not here: sealing.

use super::WireError;
use super::codec::{Cursor, Field};
use super::header::HEADER_BYTES;
use crate::limits::FRAME_BYTES_MAX;
use alloc::vec::Vec;
use core::ops::Range;

/// The first bytes.
const SEALED: [u8; 4] = *b"\xfdSMB";

/// The one value of `Flags` in dialect 3.1.1.
const ENCRYPTED: u16 = 1;

/// The header of a sealed frame. The sealed messages follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransformHeader {
    /// The authentication tag.
    pub signature: [u8; 16],
    /// The nonce: 12 bytes of it in GCM, 11 in CCM, then zeros.
    pub nonce: [u8; 16],
    /// Bytes of the messages before and after sealing.
    pub original_size: u32,
    /// The session whose keys seal.
    pub session_id: u64,
}

impl TransformHeader {
    /// Bytes of the header.
    pub const BYTES: usize = 52;

    /// The place of the authentication tag in the frame.
    pub const SIGNATURE_AT: Range<usize> = 4..20;

    /// The bytes of the header that the tag covers besides the messages.
    pub const AUTHENTICATED: Range<usize> = 20..52;

    /// Reads the header of `frame` and gives it with the sealed bytes, which are the rest.
    ///
    /// # Errors
    /// [`WireError`] if the frame has no such header, other flags (§3.3.5.2.1.1), or a rest of
    /// another size than the header says or any message can have.
    #[inline]
    pub fn decode(frame: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let mut input = Cursor::new(frame, 0);
        match input.array()? {
            SEALED => {}
            found => return Err(WireError::Protocol { found }),
        }
        let signature = input.get()?;
        let nonce = input.get()?;
        let original_size: u32 = input.get()?;
        input.skip(2)?;
        let flags: u16 = input.get()?;
        let session_id = input.get()?;
        if flags != ENCRYPTED {
            return Err(WireError::BadValue { what: "transform flags", value: flags.into() });
        }
        let len = original_size as usize;
        let sealed = input.bytes(len)?;
        if !(HEADER_BYTES..=FRAME_BYTES_MAX).contains(&len) {
            return Err(WireError::BadLength { what: "sealed message", len });
        }
        match input.bytes(1) {
            Err(_) => Ok((Self { signature, nonce, original_size, session_id }, sealed)),
            Ok(_) => Err(WireError::BadLength { what: "sealed message", len }),
        }
    }

    /// Appends the header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&SEALED);
        self.signature.put(out);
        self.nonce.put(out);
        self.original_size.put(out);
        0u16.put(out);
        ENCRYPTED.put(out);
        self.session_id.put(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples::hex;

    fn sealed() -> (TransformHeader, Vec<u8>) {
        let header = TransformHeader {
            signature: *b"tagtagtagtagtagt",
            nonce: *b"noncenonce12\0\0\0\0",
            original_size: 70,
            session_id: 0x8877_6655_4433_2211,
        };
        let mut frame = hex("fd534d42 74616774616774616774616774616774
             6e6f6e63656e6f6e6365313200000000 46000000 0000 0100 1122334455667788");
        frame.extend_from_slice(&[0xab; 70]);
        (header, frame)
    }

    #[test]
    fn a_sealed_frame_is_header_and_sealed_bytes() {
        let (header, frame) = sealed();
        assert_eq!(TransformHeader::decode(&frame), Ok((header, &[0xab; 70][..])));
        let mut out = Vec::new();
        header.encode(&mut out);
        assert_eq!(out, frame[..TransformHeader::BYTES]);
        assert_eq!(frame[TransformHeader::SIGNATURE_AT], header.signature);
        assert_eq!(frame[TransformHeader::AUTHENTICATED][..16], header.nonce);
    }

    #[test]
    fn flags_and_sizes_are_checked() {
        let (_, frame) = sealed();
        for (at, value) in [(0, 0xfe), (36, 69), (36, 71), (39, 1), (42, 0), (42, 3), (43, 1)] {
            let mut frame = frame.clone();
            frame[at] = value;
            assert!(TransformHeader::decode(&frame).is_err(), "byte {at}: {value}");
        }
        for len in 0..frame.len() {
            assert!(TransformHeader::decode(&frame[..len]).is_err(), "{len} bytes");
        }
        let mut short = frame;
        short.truncate(TransformHeader::BYTES + 63);
        short[36] = 63;
        assert!(TransformHeader::decode(&short).is_err(), "less than a header");
    }
}
