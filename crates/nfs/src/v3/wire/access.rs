//! ACCESS (RFC 1813 §3.3.4).

use super::{Fattr3, FileHandle3, Res};
use crate::xdr::{xdr_bits, xdr_struct};

bitflags::bitflags! {
    /// Rights asked for or granted, as a bit mask. Unknown bits survive.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct AccessBits: u32 {
        /// ACCESS3_READ: read a file's data or list a directory.
        const READ = 0x01;
        /// ACCESS3_LOOKUP: look a name up in a directory.
        const LOOKUP = 0x02;
        /// ACCESS3_MODIFY: rewrite a file's data or change a directory's entries.
        const MODIFY = 0x04;
        /// ACCESS3_EXTEND: add data or entries.
        const EXTEND = 0x08;
        /// ACCESS3_DELETE: delete an entry of a directory.
        const DELETE = 0x10;
        /// ACCESS3_EXECUTE: run a file.
        const EXECUTE = 0x20;
    }
}
xdr_bits!(AccessBits);

xdr_struct! {
    /// `ACCESS3args`.
    pub struct AccessArgs<'a> {
        /// The object.
        pub object: FileHandle3<'a>,
        /// The rights asked for.
        pub access: AccessBits,
    }
}

xdr_struct! {
    /// `ACCESS3resok`.
    pub struct AccessOk {
        /// The object's attributes.
        pub attributes: Option<Fattr3>,
        /// The rights granted of those asked for.
        pub access: AccessBits,
    }
}

/// `ACCESS3res`; a failure gives the object's attributes.
pub type AccessRes = Res<AccessOk, Option<Fattr3>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            AccessArgs { object: fh(), access: AccessBits::READ | AccessBits::EXECUTE },
            theirs::ACCESS3args {
                object: other::fh(),
                access: theirs::ACCESS3_READ | theirs::ACCESS3_EXECUTE
            },
            [FH, "00000021"]
        );
        check!(
            AccessArgs { object: fh(), access: AccessBits::from_bits_retain(0x8000_001f) },
            theirs::ACCESS3args { object: other::fh(), access: 0x8000_001f },
            [FH, "8000001f"]
        );
    }

    #[test]
    fn results() {
        check!(
            AccessRes::Ok(AccessOk { attributes: Some(fattr()), access: AccessBits::LOOKUP }),
            theirs::ACCESS3res::Ok(theirs::ACCESS3resok {
                obj_attributes: other::post_op(),
                access: theirs::ACCESS3_LOOKUP
            }),
            ["00000000", SOME, FATTR, "00000002"]
        );
        check!(
            AccessRes::Fail(Status::BADHANDLE, Some(fattr())),
            theirs::ACCESS3res::Err((
                theirs::nfsstat3::NFS3ERR_BADHANDLE,
                theirs::ACCESS3resfail { obj_attributes: other::post_op() }
            )),
            ["00002711", SOME, FATTR]
        );
    }
}
