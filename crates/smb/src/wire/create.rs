//! CREATE (MS-SMB2 §2.2.13, §2.2.14). Not here: its contexts, and what it does.

#[cfg(any(test, feature = "client"))]
use super::codec::offset_in;
use super::codec::{Cursor, Field, bits, named, zeros};
use super::{
    AccessMask, CreateContexts, FileAttributes, FileId, NetworkOpenInfo, ResponseContext,
    ShareAccess, WireError, create_context,
};
#[cfg(any(test, feature = "client"))]
use crate::le::align;
use crate::le::{length, patch};
use alloc::vec::Vec;

named! {
    /// The caching of one open.
    pub struct OplockLevel: u8 {
        /// None.
        NONE = 0x00,
        /// Of data read, shared.
        LEVEL_II = 0x01,
        /// Of data, alone.
        EXCLUSIVE = 0x08,
        /// Of data and of the open, alone.
        BATCH = 0x09,
        /// By a lease.
        LEASE = 0xff,
    }

    /// How far the server may act as the user; it grants nothing.
    pub struct ImpersonationLevel: u32 {
        /// Not at all.
        ANONYMOUS = 0,
        /// The server may know who the user is.
        IDENTIFICATION = 1,
        /// The server may act as the user.
        IMPERSONATION = 2,
        /// The server may act as the user elsewhere.
        DELEGATE = 3,
    }

    /// The outcome of an open, by what was there before.
    pub struct CreateAction: u32 {
        /// The file was replaced.
        SUPERSEDED = 0,
        /// The file was opened.
        OPENED = 1,
        /// The file was made.
        CREATED = 2,
        /// The file was emptied.
        OVERWRITTEN = 3,
    }
}

bits! {
    /// The options of an open.
    pub struct CreateOptions: u32 {
        /// The object must be a directory.
        const DIRECTORY_FILE = 0x0000_0001;
        /// Data and name are stable before each answer.
        const WRITE_THROUGH = 0x0000_0002;
        /// Access is going to be sequential.
        const SEQUENTIAL_ONLY = 0x0000_0004;
        /// Data is not to stay in a cache.
        const NO_INTERMEDIATE_BUFFERING = 0x0000_0008;
        /// Operations are synchronous; the client's matter.
        const SYNCHRONOUS_IO_ALERT = 0x0000_0010;
        /// Operations are synchronous; the client's matter.
        const SYNCHRONOUS_IO_NONALERT = 0x0000_0020;
        /// The object must not be a directory.
        const NON_DIRECTORY_FILE = 0x0000_0040;
        /// The open completes if an oplock is being broken.
        const COMPLETE_IF_OPLOCKED = 0x0000_0100;
        /// The caller knows no extended attributes.
        const NO_EA_KNOWLEDGE = 0x0000_0200;
        /// The file is opened over a network; reserved.
        const OPEN_REMOTE_INSTANCE = 0x0000_0400;
        /// Access is going to be random.
        const RANDOM_ACCESS = 0x0000_0800;
        /// The object is removed when its last open closes.
        const DELETE_ON_CLOSE = 0x0000_1000;
        /// The name is a number of a file.
        const OPEN_BY_FILE_ID = 0x0000_2000;
        /// The privilege to back up is used.
        const OPEN_FOR_BACKUP_INTENT = 0x0000_4000;
        /// The file is not compressed.
        const NO_COMPRESSION = 0x0000_8000;
        /// An oplock is asked for at once.
        const OPEN_REQUIRING_OPLOCK = 0x0001_0000;
        /// Other opens may not have exclusive access; reserved.
        const DISALLOW_EXCLUSIVE = 0x0002_0000;
        /// An oplock with a filter is reserved.
        const RESERVE_OPFILTER = 0x0010_0000;
        /// A reparse point is opened itself.
        const OPEN_REPARSE_POINT = 0x0020_0000;
        /// Data that is elsewhere stays there.
        const OPEN_NO_RECALL = 0x0040_0000;
        /// Free space is asked for.
        const OPEN_FOR_FREE_SPACE_QUERY = 0x0080_0000;
    }

    /// The flags of a CREATE response.
    pub struct CreateResponseFlags: u8 {
        /// The last part of the path is a reparse point.
        const REPARSE_POINT = 1;
    }
}

/// The behaviour of an open where the name exists and where it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CreateDisposition {
    /// Replace, or make.
    Supersede = 0,
    /// Open, or fail.
    Open = 1,
    /// Fail, or make.
    Create = 2,
    /// Open, or make.
    OpenIf = 3,
    /// Open and empty, or fail.
    Overwrite = 4,
    /// Open and empty, or make.
    OverwriteIf = 5,
}

impl Field for CreateDisposition {
    fn get(from: &mut Cursor<'_>) -> Result<Self, WireError> {
        Ok(match from.get::<u32>()? {
            0 => Self::Supersede,
            1 => Self::Open,
            2 => Self::Create,
            3 => Self::OpenIf,
            4 => Self::Overwrite,
            5 => Self::OverwriteIf,
            value => {
                return Err(WireError::BadValue { what: "disposition", value: value.into() });
            }
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        (*self as u32).put(out);
    }
}

/// CREATE request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateRequest<'a> {
    /// The caching asked for.
    pub oplock: OplockLevel,
    /// How far the server may act as the user.
    pub impersonation: ImpersonationLevel,
    /// The access asked for.
    pub desired_access: AccessMask,
    /// The attributes of a new file.
    pub attributes: FileAttributes,
    /// The access that other opens may have.
    pub share_access: ShareAccess,
    /// The behaviour by whether the name exists.
    pub disposition: CreateDisposition,
    /// The options.
    pub options: CreateOptions,
    /// The path from the root of the share, in UTF-16.
    pub name: &'a [u8],
    /// The contexts.
    pub contexts: CreateContexts<'a>,
}

const REQUEST: u16 = 57;
const RESPONSE: u16 = 89;

impl<'a> CreateRequest<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, REQUEST)?;
        body.skip(1)?;
        let oplock = body.get()?;
        let impersonation = body.get()?;
        body.skip(16)?;
        let desired_access = body.get()?;
        let attributes = body.get()?;
        let share_access = body.get()?;
        let disposition = body.get()?;
        let options = body.get()?;
        let (name_at, name_len) = (body.get()?, body.get()?);
        let (contexts_at, contexts_len): (u32, u32) = (body.get()?, body.get()?);
        let name = body.name("name of a file", name_at, name_len)?;
        let (at, len) = (contexts_at as usize, contexts_len as usize);
        let contexts = CreateContexts::decode(body.part("create contexts", at, len)?.bytes)?;
        Ok(Self {
            oplock,
            impersonation,
            desired_access,
            attributes,
            share_access,
            disposition,
            options,
            name,
            contexts,
        })
    }

    /// Appends the body.
    #[cfg(any(test, feature = "client"))]
    pub fn encode(&self, out: &mut Vec<u8>) {
        const NAME_AT: u16 = 120;
        let body = out.len();
        REQUEST.put(out);
        0u8.put(out);
        self.oplock.put(out);
        self.impersonation.put(out);
        zeros(out, 16);
        self.desired_access.put(out);
        self.attributes.put(out);
        self.share_access.put(out);
        self.disposition.put(out);
        self.options.put(out);
        NAME_AT.put(out);
        length::<u16>(self.name.len()).put(out);
        let contexts_at = out.len();
        zeros(out, 8);
        out.extend_from_slice(self.name);
        let contexts = self.contexts.as_bytes();
        if contexts.is_empty() {
            // The variable part may not be missing.
            zeros(out, usize::from(self.name.is_empty()));
        } else {
            align(out, body, 8);
            let at: u32 = length(offset_in(out, body));
            patch(out, contexts_at, &at.to_le_bytes());
            let len: u32 = length(contexts.len());
            patch(out, contexts_at.saturating_add(4), &len.to_le_bytes());
            out.extend_from_slice(contexts);
        }
    }
}

/// CREATE response, without its contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateResponse {
    /// The caching granted.
    pub oplock: OplockLevel,
    /// The flags.
    pub flags: CreateResponseFlags,
    /// The outcome.
    pub action: CreateAction,
    /// The file.
    pub info: NetworkOpenInfo,
    /// The open.
    pub file: FileId,
}

impl CreateResponse {
    /// Reads the message, which begins at its header, and gives its contexts too.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    #[cfg(any(test, feature = "client"))]
    pub fn decode(message: &[u8]) -> Result<(Self, Vec<ResponseContext>), WireError> {
        let mut body = Cursor::body(message, RESPONSE)?;
        let (oplock, flags, action) = (body.get()?, body.get()?, body.get()?);
        let info = body.get()?;
        body.skip(4)?;
        let file = body.get()?;
        let (at, len): (u32, u32) = (body.get()?, body.get()?);
        let contexts = body.part("create contexts", at as usize, len as usize)?;
        let contexts = create_context::response(contexts.bytes)?;
        Ok((Self { oplock, flags, action, info, file }, contexts))
    }

    /// Appends the body, with `contexts`.
    pub fn encode(&self, contexts: impl IntoIterator<Item = ResponseContext>, out: &mut Vec<u8>) {
        const CONTEXTS_AT: u32 = 152;
        RESPONSE.put(out);
        self.oplock.put(out);
        self.flags.put(out);
        self.action.put(out);
        self.info.put(out);
        zeros(out, 4);
        self.file.put(out);
        let place = out.len();
        zeros(out, 8);
        let len: u32 = length(create_context::append(out, contexts));
        if len > 0 {
            patch(out, place, &CONTEXTS_AT.to_le_bytes());
            patch(out, place.saturating_add(4), &len.to_le_bytes());
        }
    }
}
