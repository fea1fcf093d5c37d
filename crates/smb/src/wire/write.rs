//! WRITE (MS-SMB2 §2.2.21, §2.2.22).

use super::codec::{Cursor, Payload, bits, layout};
#[cfg(any(test, feature = "client"))]
use super::codec::{Field, zeros};
use super::{Channel, FileId, WireError};
#[cfg(any(test, feature = "client"))]
use crate::le::length;
#[cfg(any(test, feature = "client"))]
use alloc::vec::Vec;

bits! {
    /// The flags of a WRITE request.
    pub struct WriteFlags: u32 {
        /// The data is on stable storage before the response.
        const WRITE_THROUGH = 1;
        /// The data is not to stay in a cache.
        const UNBUFFERED = 2;
    }
}

/// WRITE request. The description of a channel is passed over: no transport here has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRequest<'a> {
    /// The offset, in bytes.
    pub offset: u64,
    /// The open.
    pub file: FileId,
    /// The way by which the data comes.
    pub channel: Channel,
    /// Bytes that the client is going to write after these.
    pub remaining_bytes: u32,
    /// The flags.
    pub flags: WriteFlags,
    /// The data.
    pub data: Payload<'a>,
}

#[cfg(any(test, feature = "client"))]
const DATA_AT: u16 = 112;
const REQUEST: u16 = 49;

impl<'a> WriteRequest<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    #[inline]
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, REQUEST)?;
        let data_at: u16 = body.get()?;
        let len: u32 = body.get()?;
        let offset = body.get()?;
        let file = body.get()?;
        let channel = body.get()?;
        let remaining_bytes = body.get()?;
        body.skip(4)?;
        let flags = body.get()?;
        let data = body.part("data to write", data_at.into(), len as usize)?;
        Ok(Self { offset, file, channel, remaining_bytes, flags, data })
    }

    /// Appends the body. The place in `data` is not used.
    #[cfg(any(test, feature = "client"))]
    pub fn encode(&self, out: &mut Vec<u8>) {
        REQUEST.put(out);
        DATA_AT.put(out);
        length::<u32>(self.data.bytes.len()).put(out);
        self.offset.put(out);
        self.file.put(out);
        self.channel.put(out);
        self.remaining_bytes.put(out);
        zeros(out, 4);
        self.flags.put(out);
        out.extend_from_slice(self.data.bytes);
    }

    /// The larger payload of request and response, in bytes, by which the request is charged.
    #[must_use]
    pub fn payload_bytes(&self) -> u32 {
        u32::try_from(self.data.bytes.len()).unwrap_or(u32::MAX)
    }
}

/// WRITE response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteResponse {
    /// Bytes written.
    pub count: u32,
}

layout!(response WriteResponse = 17: 2 count; 8);
