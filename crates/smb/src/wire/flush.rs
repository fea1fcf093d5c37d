//! FLUSH (MS-SMB2 §2.2.17). The response is [`super::FlushResponse`].

use super::FileId;
use super::codec::layout;

/// FLUSH request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushRequest {
    /// The open.
    pub file: FileId,
}

layout!(request FlushRequest = 24: 6 file);
