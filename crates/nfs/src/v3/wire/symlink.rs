//! SYMLINK (RFC 1813 §3.3.10).

use super::{DirOpArgs3, NewObject, Res, Sattr3, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `SYMLINK3args`, with `symlinkdata3` in place.
    pub struct SymlinkArgs<'a> {
        /// The name to create.
        pub location: DirOpArgs3<'a>,
        /// The new link's attributes.
        pub attributes: Sattr3,
        /// The target.
        pub data: &'a [u8],
    }
}

/// `SYMLINK3res`; a failure gives the directory around the operation.
pub type SymlinkRes<'a> = Res<NewObject<'a>, WccData>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            SymlinkArgs { location: dir_op(), attributes: sattr(), data: b"to" },
            theirs::SYMLINK3args {
                where_: other::dir_op(),
                symlink: theirs::symlinkdata3 {
                    symlink_attributes: other::sattr(),
                    symlink_data: (&b"to"[..]).into()
                }
            },
            [FH, NAME, SATTR, "00000002 746f 0000"]
        );
    }

    #[test]
    fn results() {
        check!(
            SymlinkRes::Ok(NewObject {
                object: Some(fh()),
                attributes: Some(fattr()),
                dir_wcc: wcc()
            }),
            theirs::SYMLINK3res::Ok(theirs::SYMLINK3resok {
                obj: theirs::Nfs3Option::Some(other::fh()),
                obj_attributes: other::post_op(),
                dir_wcc: other::wcc()
            }),
            ["00000000", SOME, FH, SOME, FATTR, WCC]
        );
        check!(
            SymlinkRes::Fail(Status::ROFS, wcc()),
            theirs::SYMLINK3res::Err((
                theirs::nfsstat3::NFS3ERR_ROFS,
                theirs::SYMLINK3resfail { dir_wcc: other::wcc() }
            )),
            ["0000001e", WCC]
        );
    }
}
