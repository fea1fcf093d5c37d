//! Requests on a share, with what they cost.

use alloc::vec::Vec;
use weir_smb::le::patch;
use weir_smb::wire::{
    AccessMask, Channel, CloseFlags, CloseRequest, Command, CreateContexts, CreateDisposition,
    CreateOptions, CreateRequest, EchoRequest, FileAttributes, FileId, FlushRequest,
    ImpersonationLevel, InfoType, LockRange, LockRequest, OplockLevel, Payload,
    QueryDirectoryRequest, QueryInfoFlags, QueryInfoRequest, ReadFlags, ReadRequest,
    SecurityInformation, SetInfoRequest, ShareAccess, TreeConnectFlags, TreeConnectRequest,
    WriteFlags, WriteRequest, charge_for,
};

/// The data of a WRITE: `here` goes into the message, and so many bytes follow the frame, from the
/// caller's own memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Data<'a> {
    /// The first bytes, in two pieces.
    pub here: [&'a [u8]; 2],
    /// The number of the bytes after them.
    pub behind: u32,
}

impl Data<'_> {
    fn bytes(&self) -> u32 {
        let here = self.here.iter().map(|part| u32::try_from(part.len()).unwrap_or(u32::MAX));
        here.fold(self.behind, u32::saturating_add)
    }
}

/// WRITE.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The open.
    pub file: FileId,
    /// The offset, in bytes.
    pub offset: u64,
    /// Is the data on stable storage before the response?
    pub through: bool,
    /// The data.
    pub data: Data<'a>,
}

/// CREATE, as a load needs it: without caching, and sharing everything.
#[derive(Clone, Copy, Debug)]
pub struct Open<'a> {
    /// The path from the root of the share, in UTF-16.
    pub name: &'a [u8],
    /// The access.
    pub access: AccessMask,
    /// The behaviour by whether the name exists.
    pub disposition: CreateDisposition,
    /// The options.
    pub options: CreateOptions,
    /// The contexts.
    pub contexts: CreateContexts<'a>,
}

/// A request on a share.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// TREE_CONNECT to a path `\\server\share`, in UTF-16.
    TreeConnect(&'a [u8]),
    /// ECHO.
    Echo,
    /// CREATE.
    Create(Open<'a>),
    /// CLOSE.
    Close(FileId),
    /// READ of so many bytes at an offset, all of them.
    Read {
        /// The open.
        file: FileId,
        /// The offset, in bytes.
        offset: u64,
        /// The number of bytes.
        length: u32,
    },
    /// WRITE.
    Write(Write<'a>),
    /// FLUSH.
    Flush(FileId),
    /// LOCK and unlock of these ranges.
    Lock {
        /// The open.
        file: FileId,
        /// The ranges, at least one.
        ranges: &'a [LockRange],
    },
    /// QUERY_INFO of this kind and class, with an answer of at most so many bytes.
    QueryInfo {
        /// The open.
        file: FileId,
        /// Of the file or of its file system.
        info_type: InfoType,
        /// The class, by its number (MS-FSCC §2.4, §2.5).
        class: u8,
        /// The most bytes of an answer.
        max_output: u32,
    },
    /// SET_INFO of a file, by the number of the class (MS-FSCC §2.4).
    SetInfo {
        /// The open.
        file: FileId,
        /// The class.
        class: u8,
        /// The information.
        info: &'a [u8],
    },
    /// QUERY_DIRECTORY.
    QueryDirectory(QueryDirectoryRequest<'a>),
}

impl Request<'_> {
    /// The command.
    #[must_use]
    pub const fn command(&self) -> Command {
        match self {
            Self::TreeConnect(_) => Command::TreeConnect,
            Self::Echo => Command::Echo,
            Self::Create(_) => Command::Create,
            Self::Close(_) => Command::Close,
            Self::Read { .. } => Command::Read,
            Self::Write(_) => Command::Write,
            Self::Flush(_) => Command::Flush,
            Self::Lock { .. } => Command::Lock,
            Self::QueryInfo { .. } => Command::QueryInfo,
            Self::SetInfo { .. } => Command::SetInfo,
            Self::QueryDirectory(_) => Command::QueryDirectory,
        }
    }

    /// The credits that it costs.
    #[inline]
    #[must_use]
    pub fn charge(&self) -> u16 {
        match self {
            Self::Read { length, .. } => charge_for(*length),
            Self::Write(write) => charge_for(write.data.bytes()),
            Self::QueryInfo { max_output, .. } => charge_for(*max_output),
            Self::SetInfo { info, .. } => charge_for(u32::try_from(info.len()).unwrap_or(u32::MAX)),
            Self::QueryDirectory(request) => charge_for(request.max_output),
            _ => 1,
        }
    }

    /// Bytes that follow the frame.
    pub(crate) const fn behind(&self) -> u32 {
        match self {
            Self::Write(write) => write.data.behind,
            _ => 0,
        }
    }

    /// Appends the body.
    #[inline]
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::TreeConnect(path) => {
                TreeConnectRequest { flags: TreeConnectFlags::empty(), path }.encode(out);
            }
            Self::Echo => EchoRequest {}.encode(out),
            Self::Create(open) => open.encode(out),
            Self::Close(file) => CloseRequest { flags: CloseFlags::empty(), file }.encode(out),
            Self::Read { file, offset, length } => read(file, offset, length).encode(out),
            Self::Write(write) => write.encode(out),
            Self::Flush(file) => FlushRequest { file }.encode(out),
            Self::Lock { file, ranges } => LockRequest::encode(0, file, ranges, out),
            Self::QueryInfo { file, info_type, class, max_output } => {
                let (security, flags) = (SecurityInformation::empty(), QueryInfoFlags::empty());
                let input = part(&[]);
                QueryInfoRequest { info_type, class, max_output, input, security, flags, file }
                    .encode(out);
            }
            Self::SetInfo { file, class, info } => {
                let (info_type, info) = (InfoType::FILE, part(info));
                let security = SecurityInformation::empty();
                SetInfoRequest { info_type, class, info, security, file }.encode(out);
            }
            Self::QueryDirectory(request) => request.encode(out),
        }
    }
}

impl Open<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let request = CreateRequest {
            oplock: OplockLevel::NONE,
            impersonation: ImpersonationLevel::IMPERSONATION,
            desired_access: self.access,
            attributes: FileAttributes::empty(),
            share_access: ShareAccess::all(),
            disposition: self.disposition,
            options: self.options,
            name: self.name,
            contexts: self.contexts,
        };
        request.encode(out);
    }
}

impl Write<'_> {
    /// The place of the data's length in the body (MS-SMB2 §2.2.21).
    const LENGTH_AT: usize = 4;

    fn encode(&self, out: &mut Vec<u8>) {
        let body = out.len();
        let flags = if self.through { WriteFlags::WRITE_THROUGH } else { WriteFlags::empty() };
        let request = WriteRequest {
            offset: self.offset,
            file: self.file,
            channel: Channel::NONE,
            remaining_bytes: 0,
            flags,
            data: part(&[]),
        };
        request.encode(out);
        patch(out, body.saturating_add(Self::LENGTH_AT), &self.data.bytes().to_le_bytes());
        for here in self.data.here {
            out.extend_from_slice(here);
        }
    }
}

const fn read(file: FileId, offset: u64, length: u32) -> ReadRequest {
    ReadRequest {
        flags: ReadFlags::empty(),
        length,
        offset,
        file,
        minimum_count: 0,
        channel: Channel::NONE,
        remaining_bytes: 0,
    }
}

const fn part(bytes: &[u8]) -> Payload<'_> {
    Payload { bytes, at: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_smb::utf16::to_utf16;
    use weir_smb::wire::{HEADER_BYTES, Header};

    fn message(request: &Request<'_>) -> Vec<u8> {
        let mut out = alloc::vec![0; HEADER_BYTES];
        request.encode(&mut out);
        out
    }

    #[test]
    fn data_of_a_write_is_announced_whole_and_may_come_in_pieces() {
        let file = FileId { persistent: 1, volatile: 2 };
        let data = Data { here: [b"front", b"middle"], behind: 70_000 };
        let request = Request::Write(Write { file, offset: 9, through: true, data });
        assert_eq!(request.charge(), 2);
        let mut bytes = message(&request);
        bytes.resize(bytes.len() + 70_000, 7);
        let decoded = WriteRequest::decode(&bytes).unwrap();
        assert_eq!((decoded.file, decoded.offset), (file, 9));
        assert_eq!(decoded.flags, WriteFlags::WRITE_THROUGH);
        assert_eq!(decoded.data.bytes.len(), 70_011);
        assert!(decoded.data.bytes.starts_with(b"frontmiddle\x07"));
    }

    #[test]
    fn an_open_asks_for_no_caching_and_shares_everything() {
        let name = to_utf16("dir\\ä");
        let open = Open {
            name: &name,
            access: AccessMask::READ_DATA,
            disposition: CreateDisposition::OpenIf,
            options: CreateOptions::NON_DIRECTORY_FILE,
            contexts: CreateContexts::default(),
        };
        let bytes = message(&Request::Create(open));
        let decoded = CreateRequest::decode(&bytes).unwrap();
        assert_eq!((decoded.name, decoded.oplock), (&name[..], OplockLevel::NONE));
        assert_eq!(
            decoded.share_access,
            ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE
        );
        assert!(Header::decode(&bytes).is_err(), "the header is the channel's");
    }
}
