//! Responses that are one buffer: QUERY_DIRECTORY (MS-SMB2 §2.2.34), CHANGE_NOTIFY (§2.2.36) and
//! QUERY_INFO (§2.2.38) have the same form. Not here: the information in it.

#[cfg(any(test, feature = "client"))]
use super::WireError;
#[cfg(any(test, feature = "client"))]
use super::codec::Cursor;
use super::codec::zeros;
use super::header::HEADER_BYTES;
use crate::le::patch;
use alloc::vec::Vec;

const RESPONSE: u16 = 9;

/// Bytes of the fixed part.
const HEAD_BYTES: usize = 8;

/// The offset of the buffer, from the header on.
const BUFFER_AT: u16 = 72;
const _: () = assert!(HEADER_BYTES + HEAD_BYTES == BUFFER_AT as usize);

/// A response whose buffer is appended to the reply in place: room for the fixed part is made first
/// and filled in when the buffer is there. Entries that align to eight bytes align to the position
/// [`OutputReply::buffer`].
#[derive(Clone, Copy, Debug)]
#[must_use = "the fixed part is blank until `finish`"]
pub struct OutputReply {
    body: usize,
}

impl OutputReply {
    /// Bytes of the fixed part.
    pub const HEAD_BYTES: usize = HEAD_BYTES;

    /// Makes room for the fixed part. The buffer belongs right after it.
    pub fn begin(out: &mut Vec<u8>) -> Self {
        let body = out.len();
        zeros(out, HEAD_BYTES);
        Self { body }
    }

    /// The position in `out` at which the buffer begins.
    #[must_use]
    pub const fn buffer(&self) -> usize {
        self.body.saturating_add(HEAD_BYTES)
    }

    /// Fills the fixed part in for the buffer, which is everything that was appended since
    /// [`OutputReply::begin`]. Gives the number of bytes of it.
    pub fn finish(self, out: &mut [u8]) -> u32 {
        let len = u32::try_from(out.len().saturating_sub(self.buffer())).unwrap_or(u32::MAX);
        // The offset of a buffer that is not there is zero.
        let at = if len == 0 { 0 } else { BUFFER_AT };
        let mut head = [0; HEAD_BYTES];
        head[0..2].copy_from_slice(&RESPONSE.to_le_bytes());
        head[2..4].copy_from_slice(&at.to_le_bytes());
        head[4..8].copy_from_slice(&len.to_le_bytes());
        patch(out, self.body, &head);
        len
    }
}

/// The buffer of the response `message`, which begins at its header.
///
/// # Errors
/// [`WireError`] if the bytes are no such message.
#[cfg(any(test, feature = "client"))]
pub fn output(message: &[u8]) -> Result<&[u8], WireError> {
    let mut body = Cursor::body(message, RESPONSE)?;
    let (offset, len): (u16, u32) = (body.get()?, body.get()?);
    body.part("output buffer", offset.into(), len as usize).map(|part| part.bytes)
}
