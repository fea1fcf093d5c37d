//! `nfs_fh3` and what is built from it.

use super::attributes::Fattr3;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};
use weir_core::handle::Sealed;
use weir_core::limits::HANDLE_BYTES_MAX;

/// A file handle: at most 64 bytes that mean something to the server alone (RFC 1813 §2.6,
/// `nfs_fh3`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileHandle3<'a>(pub &'a [u8]);

impl<'a> Decode<'a> for FileHandle3<'a> {
    #[inline]
    fn decode(input: &mut Reader<'a>) -> Result<Self, XdrError> {
        input.opaque("nfs_fh3", HANDLE_BYTES_MAX).map(Self)
    }
}

impl Encode for FileHandle3<'_> {
    #[inline]
    fn encode(&self, out: &mut Writer) {
        out.opaque(self.0);
    }
}

impl<'a> From<&'a Sealed> for FileHandle3<'a> {
    #[inline]
    fn from(sealed: &'a Sealed) -> Self {
        Self(sealed.as_bytes())
    }
}

xdr_struct! {
    /// A name in a directory (RFC 1813 §2.6, `diropargs3`).
    pub struct DirOpArgs3<'a> {
        /// The directory.
        pub dir: FileHandle3<'a>,
        /// The name, not checked yet.
        pub name: &'a [u8],
    }
}

xdr_struct! {
    /// What CREATE, MKDIR, SYMLINK and MKNOD give when they succeed (RFC 1813 §3.3.8 to §3.3.11,
    /// `CREATE3resok` and its equals).
    pub struct NewObject<'a> {
        /// The new object's handle.
        pub object: Option<FileHandle3<'a>>,
        /// Its attributes.
        pub attributes: Option<Fattr3>,
        /// The directory around the operation.
        pub dir_wcc: super::attributes::WccData,
    }
}
