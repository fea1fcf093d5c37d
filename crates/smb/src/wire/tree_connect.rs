//! TREE_CONNECT (MS-SMB2 §2.2.9, §2.2.10). Not here: which shares there are.

#[cfg(any(test, feature = "client"))]
use super::codec::Field;
use super::codec::{Cursor, bits, layout, named};
use super::{AccessMask, WireError};
#[cfg(any(test, feature = "client"))]
use crate::le::length;
#[cfg(any(test, feature = "client"))]
use alloc::vec::Vec;

bits! {
    /// The flags of a TREE_CONNECT request.
    pub struct TreeConnectFlags: u16 {
        /// The client connects again to a clustered server.
        const CLUSTER_RECONNECT = 1;
        /// The client can go to the owner of the share.
        const REDIRECT_TO_OWNER = 2;
        /// An extension stands before the path (§2.2.9.1). Its contexts are passed over.
        const EXTENSION_PRESENT = 4;
    }

    /// The flags of a share. The second half byte is the policy of caching offline.
    pub struct ShareFlags: u32 {
        /// Files are cached offline without being asked for.
        const AUTO_CACHING = 0x0000_0010;
        /// Programs are cached offline too.
        const VDO_CACHING = 0x0000_0020;
        /// Nothing is cached offline.
        const NO_CACHING = 0x0000_0030;
        /// The share is in a DFS tree.
        const DFS = 0x0000_0001;
        /// The share is a root of DFS.
        const DFS_ROOT = 0x0000_0002;
        /// Opens without any sharing are not allowed.
        const RESTRICT_EXCLUSIVE_OPENS = 0x0000_0100;
        /// Opens may always be removed.
        const FORCE_SHARED_DELETE = 0x0000_0200;
        /// Clients may cache listings.
        const ALLOW_NAMESPACE_CACHING = 0x0000_0400;
        /// Listings leave out objects that the user may not read.
        const ACCESS_BASED_DIRECTORY_ENUM = 0x0000_0800;
        /// Oplocks go down to level II at most.
        const FORCE_LEVELII_OPLOCK = 0x0000_1000;
        /// Hashes of data can be asked for.
        const ENABLE_HASH_V1 = 0x0000_2000;
        /// Hashes of data can be asked for, in version 2.
        const ENABLE_HASH_V2 = 0x0000_4000;
        /// Messages about the share must be sealed.
        const ENCRYPT_DATA = 0x0000_8000;
        /// Identities may be sent on.
        const IDENTITY_REMOTING = 0x0004_0000;
        /// Messages may be compressed.
        const COMPRESS_DATA = 0x0010_0000;
    }

    /// The capabilities of a share.
    pub struct ShareCapabilities: u32 {
        /// The share is in a DFS tree.
        const DFS = 0x0000_0008;
        /// Opens can outlive the server.
        const CONTINUOUS_AVAILABILITY = 0x0000_0010;
        /// The share is served by several nodes at once.
        const SCALEOUT = 0x0000_0020;
        /// The share is served by a cluster.
        const CLUSTER = 0x0000_0040;
        /// The share can be moved to another node.
        const ASYMMETRIC = 0x0000_0080;
        /// The share redirects to its owner.
        const REDIRECT_TO_OWNER = 0x0000_0100;
    }
}

named! {
    /// The type of a share.
    pub struct ShareType: u8 {
        /// Files and directories.
        DISK = 1,
        /// Named pipes.
        PIPE = 2,
        /// A printer.
        PRINT = 3,
    }
}

/// TREE_CONNECT request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeConnectRequest<'a> {
    /// The flags.
    pub flags: TreeConnectFlags,
    /// The path `\\server\share`, in UTF-16.
    pub path: &'a [u8],
}

const REQUEST: u16 = 9;

impl<'a> TreeConnectRequest<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, REQUEST)?;
        let flags = body.get()?;
        let (offset, len) = (body.get()?, body.get()?);
        Ok(Self { flags, path: body.name("path of a share", offset, len)? })
    }

    /// Appends the body, without an extension.
    #[cfg(any(test, feature = "client"))]
    pub fn encode(&self, out: &mut Vec<u8>) {
        REQUEST.put(out);
        self.flags.put(out);
        72u16.put(out);
        length::<u16>(self.path.len()).put(out);
        out.extend_from_slice(self.path);
    }
}

/// TREE_CONNECT response. The id of the tree connect is in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeConnectResponse {
    /// The type of the share.
    pub share_type: ShareType,
    /// The flags of the share.
    pub share_flags: ShareFlags,
    /// The capabilities of the share.
    pub capabilities: ShareCapabilities,
    /// The most access that the user has to the share.
    pub maximal_access: AccessMask,
}

layout!(response TreeConnectResponse = 16: share_type, 1 share_flags, capabilities, maximal_access);
