//! The response to a request that failed (MS-SMB2 §2.2.2). In dialect 3.1.1 its data is a list of
//! contexts (§2.2.2.1), here of one at most.

#[cfg(any(test, feature = "client"))]
use super::codec::Cursor;
use super::codec::{Field, zeros};
#[cfg(any(test, feature = "client"))]
use super::{Header, Status, WireError};
use crate::le::length;
use alloc::vec::Vec;

/// The data of a failure, besides the status in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorResponse<'a> {
    /// None.
    Plain,
    /// The size of the buffer that would do, with [`super::Status::BUFFER_TOO_SMALL`].
    BufferTooSmall {
        /// The size, in bytes.
        needed: u32,
    },
    /// The symbolic link on the path, with [`super::Status::STOPPED_ON_SYMLINK`].
    Symlink(SymlinkError<'a>),
}

/// A symbolic link on a path (MS-SMB2 §2.2.2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymlinkError<'a> {
    /// Bytes at the end of the path that come after the link.
    pub unparsed_len: u16,
    /// The target, in UTF-16.
    pub substitute: &'a [u8],
    /// The target for people, in UTF-16.
    pub print: &'a [u8],
    /// Is the target relative to the link's directory?
    pub is_relative: bool,
}

const RESPONSE: u16 = 9;

/// The identifier of contexts that have none of their own.
const DEFAULT_ID: u32 = 0;
const SYMLINK_ERROR_TAG: u32 = 0x4c4d_5953;
/// IO_REPARSE_TAG_SYMLINK (MS-FSCC §2.1.2.1).
pub const REPARSE_TAG_SYMLINK: u32 = 0xa000_000c;
/// Bytes of a symbolic link before its names, without its own length.
const SYMLINK_BYTES: usize = 24;
/// The part of them that the length of the reparse data counts.
const REPARSE_BYTES: usize = 12;

impl<'a> ErrorResponse<'a> {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let len = match self {
            Self::Plain => 0,
            Self::BufferTooSmall { .. } => 4,
            Self::Symlink(link) => link.len().saturating_add(4),
        };
        RESPONSE.put(out);
        u8::from(len > 0).put(out);
        0u8.put(out);
        if len == 0 {
            // No data is still one byte (§2.2.2).
            zeros(out, 4 + 1);
            return;
        }
        length::<u32>(len.saturating_add(8)).put(out);
        length::<u32>(len).put(out);
        DEFAULT_ID.put(out);
        match self {
            Self::Plain => {}
            Self::BufferTooSmall { needed } => needed.put(out),
            Self::Symlink(link) => link.put(out),
        }
    }

    /// Reads the message, which begins at its header. The status in the header determines the
    /// form of the data; data of other failures is skipped. Some servers send it without a context.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    #[cfg(any(test, feature = "client"))]
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let status = Header::decode(message)?.status;
        let mut body = Cursor::body(message, RESPONSE)?;
        let contexts: u8 = body.get()?;
        body.skip(1)?;
        let mut len: u32 = body.get()?;
        if contexts > 0 {
            len = body.get()?;
            body.skip(4)?;
        }
        let data = body.bytes(len as usize)?;
        match status {
            Status::BUFFER_TOO_SMALL if !data.is_empty() => {
                Ok(Self::BufferTooSmall { needed: Cursor::new(data, 0).get()? })
            }
            Status::STOPPED_ON_SYMLINK if !data.is_empty() => {
                SymlinkError::of(data).map(Self::Symlink)
            }
            _ => Ok(Self::Plain),
        }
    }
}

impl<'a> SymlinkError<'a> {
    const fn names_len(&self) -> usize {
        self.substitute.len().saturating_add(self.print.len())
    }

    const fn len(&self) -> usize {
        self.names_len().saturating_add(SYMLINK_BYTES)
    }

    fn put(&self, out: &mut Vec<u8>) {
        let substitute_len: u16 = length(self.substitute.len());
        length::<u32>(self.len()).put(out);
        SYMLINK_ERROR_TAG.put(out);
        REPARSE_TAG_SYMLINK.put(out);
        length::<u16>(self.names_len().saturating_add(REPARSE_BYTES)).put(out);
        self.unparsed_len.put(out);
        0u16.put(out);
        substitute_len.put(out);
        substitute_len.put(out);
        length::<u16>(self.print.len()).put(out);
        u32::from(self.is_relative).put(out);
        out.extend_from_slice(self.substitute);
        out.extend_from_slice(self.print);
    }

    #[cfg(any(test, feature = "client"))]
    fn of(data: &'a [u8]) -> Result<Self, WireError> {
        let mut input = Cursor::new(data, 0);
        input.skip(4)?;
        for (what, tag) in
            [("symbolic link tag", SYMLINK_ERROR_TAG), ("reparse tag", REPARSE_TAG_SYMLINK)]
        {
            match input.get::<u32>()? {
                found if found == tag => {}
                found => return Err(WireError::BadValue { what, value: found.into() }),
            }
        }
        input.skip(2)?;
        let unparsed_len = input.get()?;
        let (substitute_at, substitute_len) = (input.get()?, input.get()?);
        let (print_at, print_len) = (input.get()?, input.get()?);
        let flags: u32 = input.get()?;
        let names = Cursor::new(input.bytes(input.left())?, 0);
        Ok(Self {
            unparsed_len,
            substitute: names.name("target", substitute_at, substitute_len)?,
            print: names.name("target for people", print_at, print_len)?,
            is_relative: flags & 1 != 0,
        })
    }
}
