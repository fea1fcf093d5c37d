//! LINK (RFC 1813 §3.3.15).

use super::{DirOpArgs3, Fattr3, FileHandle3, Res, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `LINK3args`.
    pub struct LinkArgs<'a> {
        /// The object.
        pub file: FileHandle3<'a>,
        /// The file's additional name.
        pub link: DirOpArgs3<'a>,
    }
}

xdr_struct! {
    /// `LINK3resok` and `LINK3resfail`, which are the same.
    pub struct LinkAttributes {
        /// The object's attributes.
        pub file_attributes: Option<Fattr3>,
        /// The directory around the operation.
        pub link_dir_wcc: WccData,
    }
}

/// `LINK3res`: the object and the directory around the operation, either way.
pub type LinkRes = Res<LinkAttributes, LinkAttributes>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            LinkArgs { file: FileHandle3(b"fh-2"), link: dir_op() },
            theirs::LINK3args { file: other::dir_op_b().dir, link: other::dir_op() },
            [FH_B, FH, NAME]
        );
    }

    #[test]
    fn results() {
        check!(
            LinkRes::Ok(LinkAttributes { file_attributes: Some(fattr()), link_dir_wcc: wcc() }),
            theirs::LINK3res::Ok(theirs::LINK3resok {
                file_attributes: other::post_op(),
                linkdir_wcc: other::wcc()
            }),
            ["00000000", SOME, FATTR, WCC]
        );
        check!(
            LinkRes::Fail(
                Status::MLINK,
                LinkAttributes { file_attributes: None, link_dir_wcc: wcc() }
            ),
            theirs::LINK3res::Err((
                theirs::nfsstat3::NFS3ERR_MLINK,
                theirs::LINK3resfail {
                    file_attributes: theirs::Nfs3Option::None,
                    linkdir_wcc: other::wcc()
                }
            )),
            ["0000001f", NONE, WCC]
        );
    }
}
