//! CLOSE (MS-SMB2 §2.2.15, §2.2.16).

use super::codec::{bits, layout};
use super::{FileId, NetworkOpenInfo};

bits! {
    /// The flags of CLOSE.
    pub struct CloseFlags: u16 {
        /// The response has the attributes.
        const POSTQUERY_ATTRIB = 1;
    }
}

/// CLOSE request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseRequest {
    /// The flags.
    pub flags: CloseFlags,
    /// The open.
    pub file: FileId,
}

layout!(request CloseRequest = 24: flags, 4 file);

/// CLOSE response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseResponse {
    /// The flags: whether `info` was filled in.
    pub flags: CloseFlags,
    /// The file after the close; zeros without the flag.
    pub info: NetworkOpenInfo,
}

layout!(response CloseResponse = 60: flags, 4 info);
