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
    /// The result of CREATE, MKDIR, SYMLINK and MKNOD when they succeed (RFC 1813 §3.3.8 to
    /// §3.3.11, `CREATE3resok` and its equals).
    pub struct NewObject<'a> {
        /// The new object's handle.
        pub object: Option<FileHandle3<'a>>,
        /// The object's attributes.
        pub attributes: Option<Fattr3>,
        /// The directory around the operation.
        pub dir_wcc: super::attributes::WccData,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::samples::{FH, NAME, check, dir_op, fh, other};
    use crate::xdr::decode;

    #[test]
    fn handles_and_names() {
        check!(fh(), other::fh(), [FH]);
        check!(dir_op(), other::dir_op(), [FH, NAME]);
    }

    #[test]
    fn a_handle_has_at_most_64_bytes() {
        for len in [0, 63, 64, 65] {
            let bytes = alloc::vec![0xaa; len];
            let mut out = Writer::default();
            out.opaque(&bytes);
            let error = XdrError::TooLong { what: "nfs_fh3", len, max: 64 };
            let expected = if len > 64 { Err(error) } else { Ok(FileHandle3(&bytes)) };
            assert_eq!(decode(out.as_bytes()), expected);
        }
    }
}
