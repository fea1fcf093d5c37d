//! READ (MS-SMB2 §2.2.19, §2.2.20).

#[cfg(any(test, feature = "client"))]
use super::codec::Field;
use super::codec::{Cursor, bits, named, zeros};
use super::header::HEADER_BYTES;
use super::{FileId, WireError};
use crate::le::patch;
use alloc::vec::Vec;

bits! {
    /// The flags of a READ request.
    pub struct ReadFlags: u8 {
        /// The data is to come from storage, not from a cache.
        const UNBUFFERED = 1;
        /// The response may be compressed.
        const REQUEST_COMPRESSED = 2;
    }
}

named! {
    /// The way by which data comes beside the message, in READ and WRITE.
    pub struct Channel: u32 {
        /// None: the data is in the message.
        NONE = 0,
        /// RDMA.
        RDMA_V1 = 1,
        /// RDMA, with invalidation.
        RDMA_V1_INVALIDATE = 2,
        /// RDMA, transformed.
        RDMA_TRANSFORM = 3,
    }
}

/// READ request. The description of a channel is passed over: no transport here has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// The flags.
    pub flags: ReadFlags,
    /// The most bytes to read.
    pub length: u32,
    /// The offset, in bytes.
    pub offset: u64,
    /// The open.
    pub file: FileId,
    /// The fewest bytes whose reading is a success.
    pub minimum_count: u32,
    /// The way by which the data comes.
    pub channel: Channel,
    /// Bytes that the client is going to read after these.
    pub remaining_bytes: u32,
}

const REQUEST: u16 = 49;
const RESPONSE: u16 = 17;

impl ReadRequest {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    #[inline]
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, REQUEST)?;
        body.skip(1)?;
        Ok(Self {
            flags: body.get()?,
            length: body.get()?,
            offset: body.get()?,
            file: body.get()?,
            minimum_count: body.get()?,
            channel: body.get()?,
            remaining_bytes: body.get()?,
        })
    }

    /// Appends the body. It ends in one byte of the variable part, which may not be missing.
    #[cfg(any(test, feature = "client"))]
    pub fn encode(&self, out: &mut Vec<u8>) {
        const PADDING: u8 = 80;
        REQUEST.put(out);
        PADDING.put(out);
        self.flags.put(out);
        self.length.put(out);
        self.offset.put(out);
        self.file.put(out);
        self.minimum_count.put(out);
        self.channel.put(out);
        self.remaining_bytes.put(out);
        zeros(out, 4 + 1);
    }

    /// The larger payload of request and response, in bytes, by which the request is charged.
    #[must_use]
    pub const fn payload_bytes(&self) -> u32 {
        self.length
    }
}

/// Bytes of the fixed part of a response.
const HEAD_BYTES: usize = 16;

/// The offset of the data in a response, from its header on.
const DATA_AT: u8 = 80;
const _: () = assert!(HEADER_BYTES + HEAD_BYTES == DATA_AT as usize);

/// A READ response whose data the store appends to the reply itself: room for the fixed part is
/// made first and filled in when the store has said how much there was.
#[derive(Clone, Copy, Debug)]
#[must_use = "the fixed part is blank until `finish`"]
pub struct ReadReply {
    body: usize,
}

impl ReadReply {
    /// Bytes of the fixed part.
    pub const HEAD_BYTES: usize = HEAD_BYTES;

    /// Makes room for the fixed part. Data belongs right after it.
    #[inline]
    pub fn begin(out: &mut Vec<u8>) -> Self {
        let body = out.len();
        zeros(out, HEAD_BYTES);
        Self { body }
    }

    /// Fills the fixed part in for the data, which is everything that was appended since
    /// [`ReadReply::begin`]. Gives the number of bytes of it.
    #[inline]
    pub fn finish(self, out: &mut [u8]) -> u32 {
        let data = out.len().saturating_sub(self.body).saturating_sub(HEAD_BYTES);
        let count = u32::try_from(data).unwrap_or(u32::MAX);
        let mut head = [0; HEAD_BYTES];
        head[0..2].copy_from_slice(&RESPONSE.to_le_bytes());
        head[2] = DATA_AT;
        head[4..8].copy_from_slice(&count.to_le_bytes());
        patch(out, self.body, &head);
        count
    }
}

/// READ response.
#[cfg(any(test, feature = "client"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadResponse<'a> {
    /// The data.
    pub data: &'a [u8],
    /// Bytes that came by a channel.
    pub remaining: u32,
}

#[cfg(any(test, feature = "client"))]
impl<'a> ReadResponse<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, RESPONSE)?;
        let offset: u8 = body.get()?;
        body.skip(1)?;
        let len: u32 = body.get()?;
        let remaining = body.get()?;
        let data = body.part("data read", offset.into(), len as usize)?.bytes;
        Ok(Self { data, remaining })
    }
}
