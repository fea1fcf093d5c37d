//! MKDIR (RFC 1813 §3.3.9).

use super::{DirOpArgs3, NewObject, Res, Sattr3, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `MKDIR3args`.
    pub struct MkdirArgs<'a> {
        /// The name to create.
        pub location: DirOpArgs3<'a>,
        /// The new directory's attributes.
        pub attributes: Sattr3,
    }
}

/// `MKDIR3res`; a failure gives the directory around the operation.
pub type MkdirRes<'a> = Res<NewObject<'a>, WccData>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            MkdirArgs { location: dir_op(), attributes: sattr() },
            theirs::MKDIR3args { where_: other::dir_op(), attributes: other::sattr() },
            [FH, NAME, SATTR]
        );
    }

    #[test]
    fn results() {
        check!(
            MkdirRes::Ok(NewObject {
                object: Some(fh()),
                attributes: Some(fattr()),
                dir_wcc: wcc()
            }),
            theirs::MKDIR3res::Ok(theirs::MKDIR3resok {
                obj: theirs::Nfs3Option::Some(other::fh()),
                obj_attributes: other::post_op(),
                dir_wcc: other::wcc()
            }),
            ["00000000", SOME, FH, SOME, FATTR, WCC]
        );
        check!(
            MkdirRes::Fail(Status::NOSPC, wcc()),
            theirs::MKDIR3res::Err((
                theirs::nfsstat3::NFS3ERR_NOSPC,
                theirs::MKDIR3resfail { dir_wcc: other::wcc() }
            )),
            ["0000001c", WCC]
        );
    }
}
