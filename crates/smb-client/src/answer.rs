//! A response that answers a request.

use alloc::vec::Vec;
use weir_smb::le::Reader;
use weir_smb::wire::{
    CreateResponse, HEADER_BYTES, ResponseContext, Status, WireError, WriteResponse, output,
};

/// A response.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The caller's number of the request.
    pub token: u32,
    /// The place of the request in its compound.
    pub element: usize,
    /// The outcome.
    pub status: Status,
    /// The tree connect that the response names.
    pub(crate) tree: u32,
    /// The message from its header on, as far as it is there.
    pub(crate) message: &'a [u8],
    /// The length of the whole message, in bytes.
    pub(crate) bytes: usize,
}

/// The data of a READ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadData<'a> {
    /// The data, as far as it is there.
    pub data: &'a [u8],
    /// The number of bytes that were read; all of them are in the response.
    pub length: u32,
}

/// The size of the fixed part of a READ response, as its structure says it (MS-SMB2 §2.2.20).
const READ: u16 = 17;

impl<'a> Answer<'a> {
    /// The message, from its header on, as far as it is there.
    #[must_use]
    pub const fn message(&self) -> &'a [u8] {
        self.message
    }

    /// The answer to a CREATE that succeeded, with its contexts.
    ///
    /// # Errors
    /// [`WireError`] if it is none.
    pub fn created(&self) -> Result<(CreateResponse, Vec<ResponseContext>), WireError> {
        CreateResponse::decode(self.message)
    }

    /// The bytes written by a WRITE that succeeded.
    ///
    /// # Errors
    /// [`WireError`] if it is no answer to one.
    #[inline]
    pub fn written(&self) -> Result<u32, WireError> {
        WriteResponse::decode(self.message).map(|response| response.count)
    }

    /// The buffer that a QUERY_INFO or QUERY_DIRECTORY which succeeded brought.
    ///
    /// # Errors
    /// [`WireError`] if it is no answer to one.
    pub fn output(&self) -> Result<&'a [u8], WireError> {
        output(self.message)
    }

    /// The data of a READ that succeeded, of which the message may have only the front.
    ///
    /// # Errors
    /// [`WireError`] if it is no answer to one, or announces more data than the response has.
    #[inline]
    pub fn data(&self) -> Result<ReadData<'a>, WireError> {
        let body = self.message.get(HEADER_BYTES..).unwrap_or_default();
        let mut body = Reader::new(body);
        let found = body.u16()?;
        if found != READ {
            return Err(WireError::StructureSize { expected: READ, found });
        }
        let offset = usize::from(body.u8()?);
        body.u8()?;
        let length = body.u32()?;
        let len = length as usize;
        let end = offset.saturating_add(len);
        let fixed = HEADER_BYTES.saturating_add(16);
        if len > 0 && (offset < fixed || end > self.bytes) {
            return Err(WireError::OutOfPlace { what: "data read", offset, len });
        }
        let end = end.min(self.message.len());
        Ok(ReadData { data: self.message.get(offset..end).unwrap_or_default(), length })
    }
}
