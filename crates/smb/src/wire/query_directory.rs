//! QUERY_DIRECTORY (MS-SMB2 §2.2.33). The response is [`super::OutputReply`].

#[cfg(any(test, feature = "client"))]
use super::codec::Field;
use super::codec::{Cursor, bits};
use super::{FileId, WireError};
#[cfg(any(test, feature = "client"))]
use crate::le::length;
#[cfg(any(test, feature = "client"))]
use alloc::vec::Vec;

bits! {
    /// The flags of QUERY_DIRECTORY.
    pub struct QueryDirectoryFlags: u8 {
        /// The listing begins again.
        const RESTART_SCANS = 0x01;
        /// One entry is enough.
        const RETURN_SINGLE_ENTRY = 0x02;
        /// The listing goes on after `file_index`.
        const INDEX_SPECIFIED = 0x04;
        /// The listing begins again, with another pattern.
        const REOPEN = 0x10;
    }
}

/// QUERY_DIRECTORY request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryDirectoryRequest<'a> {
    /// The class of the entries, by its number (MS-FSCC §2.4).
    pub class: u8,
    /// The flags.
    pub flags: QueryDirectoryFlags,
    /// The index to go on after.
    pub file_index: u32,
    /// The directory's open.
    pub file: FileId,
    /// The pattern that names must match, in UTF-16.
    pub pattern: &'a [u8],
    /// The most bytes of entries to come back.
    pub max_output: u32,
}

const REQUEST: u16 = 33;

impl<'a> QueryDirectoryRequest<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, REQUEST)?;
        let class = body.get()?;
        let flags = body.get()?;
        let file_index = body.get()?;
        let file = body.get()?;
        let (at, len) = (body.get()?, body.get()?);
        let max_output = body.get()?;
        let pattern = body.name("pattern", at, len)?;
        Ok(Self { class, flags, file_index, file, pattern, max_output })
    }

    /// Appends the body.
    #[cfg(any(test, feature = "client"))]
    pub fn encode(&self, out: &mut Vec<u8>) {
        const PATTERN_AT: u16 = 96;
        REQUEST.put(out);
        self.class.put(out);
        self.flags.put(out);
        self.file_index.put(out);
        self.file.put(out);
        PATTERN_AT.put(out);
        length::<u16>(self.pattern.len()).put(out);
        self.max_output.put(out);
        out.extend_from_slice(self.pattern);
    }

    /// The larger payload of request and response, in bytes, by which the request is charged.
    #[must_use]
    pub const fn payload_bytes(&self) -> u32 {
        self.max_output
    }
}
