//! LOOKUP (RFC 1813 §3.3.3).

use super::{DirOpArgs3, Fattr3, FileHandle3, Res};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `LOOKUP3args`.
    pub struct LookupArgs<'a> {
        /// The name to look up.
        pub what: DirOpArgs3<'a>,
    }
}

xdr_struct! {
    /// `LOOKUP3resok`.
    pub struct LookupOk<'a> {
        /// The object found.
        pub object: FileHandle3<'a>,
        /// The object's attributes.
        pub attributes: Option<Fattr3>,
        /// The directory's attributes.
        pub dir_attributes: Option<Fattr3>,
    }
}

/// `LOOKUP3res`; a failure gives the directory's attributes.
pub type LookupRes<'a> = Res<LookupOk<'a>, Option<Fattr3>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            LookupArgs { what: dir_op() },
            theirs::LOOKUP3args { what: other::dir_op() },
            [FH, NAME]
        );
    }

    #[test]
    fn results() {
        check!(
            LookupRes::Ok(LookupOk {
                object: fh(),
                attributes: Some(fattr()),
                dir_attributes: None
            }),
            theirs::LOOKUP3res::Ok(theirs::LOOKUP3resok {
                object: other::fh(),
                obj_attributes: other::post_op(),
                dir_attributes: theirs::Nfs3Option::None
            }),
            ["00000000", FH, SOME, FATTR, NONE]
        );
        check!(
            LookupRes::Fail(Status::NOENT, Some(fattr())),
            theirs::LOOKUP3res::Err((
                theirs::nfsstat3::NFS3ERR_NOENT,
                theirs::LOOKUP3resfail { dir_attributes: other::post_op() }
            )),
            ["00000002", SOME, FATTR]
        );
    }
}
