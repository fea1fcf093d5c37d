//! A cheap look at a call's arguments: which volume it is for and what it will cost, before
//! anything else is decoded. It accepts arguments that decoding will refuse later.

use super::wire::Procedure;
use crate::xdr::{Reader, XdrError};
use weir_core::OpClass;
use weir_core::limits::{HANDLE_BYTES_MAX, IO_BYTES_MAX};

/// The destination of a call, and its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// The first file handle among the arguments, still sealed; none for [`OpClass::Null`].
    pub handle: Option<&'a [u8]>,
    /// The call's kind.
    pub class: OpClass,
    /// Payload in bytes, at most [`IO_BYTES_MAX`]: what a READ asks for, what a WRITE brings.
    pub bytes: u32,
    /// A second execution would have another result, or undo a change in between (RFC 1813 §4.4).
    /// WRITE is idempotent in this sense: the client waits for the reply before it writes other
    /// data to the same place.
    pub non_idempotent: bool,
}

impl<'a> Route<'a> {
    /// Looks at the arguments `args` of `procedure`.
    ///
    /// # Errors
    /// [`XdrError`] if the arguments end before what is looked at, or the handle is oversize: to
    /// be answered GARBAGE_ARGS.
    #[inline]
    pub fn of(procedure: u32, args: &'a [u8]) -> Result<Self, XdrError> {
        let (class, non_idempotent) = match Procedure::of(procedure) {
            None | Some(Procedure::Null) => {
                return Ok(Self {
                    handle: None,
                    class: OpClass::Null,
                    bytes: 0,
                    non_idempotent: false,
                });
            }
            Some(Procedure::Read) => (OpClass::Read, false),
            Some(Procedure::Write) => (OpClass::Write, false),
            Some(Procedure::Commit) => (OpClass::Commit, false),
            Some(
                Procedure::Setattr
                | Procedure::Create
                | Procedure::Mkdir
                | Procedure::Symlink
                | Procedure::Mknod
                | Procedure::Remove
                | Procedure::Rmdir
                | Procedure::Rename
                | Procedure::Link,
            ) => (OpClass::Metadata, true),
            Some(
                Procedure::Getattr
                | Procedure::Lookup
                | Procedure::Access
                | Procedure::Readlink
                | Procedure::Readdir
                | Procedure::Readdirplus
                | Procedure::Fsstat
                | Procedure::Fsinfo
                | Procedure::Pathconf,
            ) => (OpClass::Metadata, false),
        };
        let mut args = Reader::new(args);
        let handle = Some(args.opaque("file handle", HANDLE_BYTES_MAX)?);
        let bytes = match class {
            OpClass::Read => {
                args.u64()?;
                args.u32()?
            }
            OpClass::Write => {
                let (_offset, _count, _stable) = (args.u64()?, args.u32()?, args.u32()?);
                args.u32()?
            }
            OpClass::Null | OpClass::Metadata | OpClass::Commit => 0,
        };
        Ok(Self { handle, class, bytes: bytes.min(IO_BYTES_MAX), non_idempotent })
    }
}

/// Does `procedure` change names? These are the [non-idempotent](Route::non_idempotent) procedures
/// without SETATTR.
#[must_use]
pub fn changes_names(procedure: u32) -> bool {
    matches!(
        Procedure::of(procedure),
        Some(
            Procedure::Create
                | Procedure::Mkdir
                | Procedure::Symlink
                | Procedure::Mknod
                | Procedure::Remove
                | Procedure::Rmdir
                | Procedure::Rename
                | Procedure::Link
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::Writer;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn args(handle: &[u8], words: &[u32]) -> Vec<u8> {
        let mut out = Writer::default();
        out.opaque(handle);
        words.iter().for_each(|word| out.u32(*word));
        out.into_vec()
    }

    #[test]
    fn read_and_write_tell_their_payload() {
        let read = args(b"handle", &[0, 4096, 8192]);
        let handle = Some(&b"handle"[..]);
        let route = Route { handle, class: OpClass::Read, bytes: 8192, non_idempotent: false };
        assert_eq!(Route::of(Procedure::Read as u32, &read), Ok(route));
        let write = args(b"handle", &[0, 0, 5, 2, 4096]);
        let route = Route { handle, class: OpClass::Write, bytes: 4096, non_idempotent: false };
        assert_eq!(Route::of(Procedure::Write as u32, &write), Ok(route));
        let huge = args(b"handle", &[0, 0, u32::MAX]);
        assert_eq!(Route::of(Procedure::Read as u32, &huge).unwrap().bytes, IO_BYTES_MAX);
    }

    #[test]
    fn every_other_procedure_has_a_handle_and_no_payload() {
        let bytes = args(b"h", &[]);
        for procedure in Procedure::ALL {
            let class = match procedure {
                Procedure::Null | Procedure::Read | Procedure::Write => continue,
                Procedure::Commit => OpClass::Commit,
                _ => OpClass::Metadata,
            };
            let non_idempotent = matches!(procedure as u32, 2 | 8..=15);
            let route = Route { handle: Some(b"h"), class, bytes: 0, non_idempotent };
            assert_eq!(Route::of(procedure as u32, &bytes), Ok(route));
        }
    }

    #[test]
    fn null_and_unknown_procedures_have_nothing_to_route() {
        for number in [0, 22, u32::MAX] {
            let route =
                Route { handle: None, class: OpClass::Null, bytes: 0, non_idempotent: false };
            assert_eq!(Route::of(number, &[]), Ok(route));
        }
    }

    #[test]
    fn oversize_and_cut_off_arguments_are_refused() {
        assert!(Route::of(Procedure::Getattr as u32, &args(&[0; 65], &[])).is_err());
        assert!(Route::of(Procedure::Read as u32, &args(b"handle", &[0, 0])).is_err());
        assert!(Route::of(Procedure::Write as u32, &args(b"handle", &[0, 0, 5, 2])).is_err());
    }

    proptest! {
        #[test]
        fn never_panics(number in 0u32..24, bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            if let Ok(route) = Route::of(number, &bytes) {
                prop_assert_eq!(route.handle.is_none(), route.class == OpClass::Null);
                prop_assert!(route.bytes <= IO_BYTES_MAX);
            }
        }
    }
}
