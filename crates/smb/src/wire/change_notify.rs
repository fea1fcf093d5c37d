//! CHANGE_NOTIFY (MS-SMB2 §2.2.35). The response is [`super::OutputReply`].

use super::FileId;
use super::codec::{bits, layout};

bits! {
    /// The flags of CHANGE_NOTIFY.
    pub struct ChangeNotifyFlags: u16 {
        /// Everything below the directory is watched too.
        const WATCH_TREE = 1;
    }

    /// The changes to report (MS-SMB2 §2.2.35).
    pub struct CompletionFilter: u32 {
        /// Names of files.
        const FILE_NAME = 0x001;
        /// Names of directories.
        const DIR_NAME = 0x002;
        /// Attributes.
        const ATTRIBUTES = 0x004;
        /// Sizes.
        const SIZE = 0x008;
        /// Times of the last write.
        const LAST_WRITE = 0x010;
        /// Times of the last access.
        const LAST_ACCESS = 0x020;
        /// Times of creation.
        const CREATION = 0x040;
        /// Extended attributes.
        const EA = 0x080;
        /// Security descriptors.
        const SECURITY = 0x100;
        /// Names of streams.
        const STREAM_NAME = 0x200;
        /// Sizes of streams.
        const STREAM_SIZE = 0x400;
        /// Data of streams.
        const STREAM_WRITE = 0x800;
    }
}

/// CHANGE_NOTIFY request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeNotifyRequest {
    /// The flags.
    pub flags: ChangeNotifyFlags,
    /// The most bytes of changes to come back.
    pub max_output: u32,
    /// The directory's open.
    pub file: FileId,
    /// The changes to report (MS-SMB2 §2.2.35).
    pub filter: CompletionFilter,
}

layout!(request ChangeNotifyRequest = 32: flags, max_output, file, filter; 4);

impl ChangeNotifyRequest {
    /// The larger payload of request and response, in bytes, by which the request is charged.
    #[must_use]
    pub const fn payload_bytes(&self) -> u32 {
        self.max_output
    }
}
