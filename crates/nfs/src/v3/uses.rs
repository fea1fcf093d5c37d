//! The use that a call makes of a file's data, about which mandatory locks and deny modes of other
//! protocols decide. Not here: the decision.

use super::wire::{CreateArgs, CreateHow3, Procedure, ReadArgs, SetattrArgs, WriteArgs};
use crate::rpc::Call;
use crate::xdr::decode;

/// The use of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uses<'a> {
    /// READ: these bytes of the file.
    Read {
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        count: u32,
    },
    /// WRITE: these bytes of the file.
    Write {
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        count: u32,
    },
    /// SETATTR of the size: the bytes from the new size on.
    Resize {
        /// The new size, in bytes.
        size: u64,
    },
    /// CREATE that truncates a file which is there already.
    Truncate {
        /// The name of the file in the directory that the call is for.
        name: &'a [u8],
    },
}

impl<'a> Uses<'a> {
    /// The use that `call` makes, if it makes any. A call whose arguments can't be decoded makes
    /// none, because it is refused.
    #[must_use]
    pub fn of(call: &'a Call) -> Option<Self> {
        let args = &*call.args;
        Some(match Procedure::of(call.procedure)? {
            Procedure::Read => {
                let ReadArgs { offset, count, .. } = decode(args).ok()?;
                Self::Read { offset, count }
            }
            Procedure::Write => {
                let WriteArgs { offset, count, .. } = decode(args).ok()?;
                Self::Write { offset, count }
            }
            Procedure::Setattr => {
                let SetattrArgs { new_attributes, .. } = decode(args).ok()?;
                Self::Resize { size: new_attributes.size? }
            }
            Procedure::Create => {
                let CreateArgs { location, how } = decode(args).ok()?;
                let CreateHow3::Unchecked(set) = how else { return None };
                set.size?;
                Self::Truncate { name: location.name }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::Credential;
    use crate::v3::wire::{
        DirOpArgs3, FileHandle3, GetattrArgs, Sattr3, SetTime3, StableHow, samples::encoded,
    };
    use crate::xdr::Encode;
    use weir_core::Shared;

    const FILE: FileHandle3<'_> = FileHandle3(b"file");

    fn call(procedure: Procedure, args: &impl Encode) -> Call {
        let (xid, program, version) = (1, crate::PROGRAM_NFS, crate::v3::VERSION);
        let (credential, args) = (Credential::None, Shared::from(encoded(args)));
        Call { xid, program, version, procedure: procedure as u32, credential, args }
    }

    fn sized(size: Option<u64>) -> Sattr3 {
        let (atime, mtime) = (SetTime3::DontChange, SetTime3::DontChange);
        Sattr3 { mode: Some(0o600), uid: None, gid: None, size, atime, mtime }
    }

    fn create(how: CreateHow3) -> Call {
        let location = DirOpArgs3 { dir: FILE, name: b"name" };
        call(Procedure::Create, &CreateArgs { location, how })
    }

    #[test]
    fn calls_that_move_data_or_set_a_size_use_data() {
        let read = call(Procedure::Read, &ReadArgs { file: FILE, offset: 5, count: 7 });
        assert_eq!(Uses::of(&read), Some(Uses::Read { offset: 5, count: 7 }));
        let (offset, count, stable, data) = (9, 2, StableHow::Unstable, &b"ab"[..]);
        let write = WriteArgs { file: FILE, offset, count, stable, data };
        let write = call(Procedure::Write, &write);
        assert_eq!(Uses::of(&write), Some(Uses::Write { offset: 9, count: 2 }));
        let setattr = |size| {
            let args = SetattrArgs { object: FILE, new_attributes: sized(size), guard: None };
            call(Procedure::Setattr, &args)
        };
        assert_eq!(Uses::of(&setattr(Some(3))), Some(Uses::Resize { size: 3 }));
        assert_eq!(Uses::of(&setattr(None)), None);
        let truncating = create(CreateHow3::Unchecked(sized(Some(0))));
        assert_eq!(Uses::of(&truncating), Some(Uses::Truncate { name: b"name" }));
    }

    #[test]
    fn other_calls_use_none() {
        assert_eq!(Uses::of(&create(CreateHow3::Unchecked(sized(None)))), None);
        assert_eq!(Uses::of(&create(CreateHow3::Guarded(sized(Some(0))))), None);
        assert_eq!(Uses::of(&create(CreateHow3::Exclusive([1; 8]))), None);
        assert_eq!(Uses::of(&call(Procedure::Getattr, &GetattrArgs { object: FILE })), None);
        let mut cut = call(Procedure::Read, &ReadArgs { file: FILE, offset: 5, count: 7 });
        cut.args = cut.args.slice(0..10);
        assert_eq!(Uses::of(&cut), None);
        cut.procedure = 99;
        assert_eq!(Uses::of(&cut), None);
    }
}
