//! READLINK (RFC 1813 §3.3.5).

use super::{Fattr3, FileHandle3, Res};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `READLINK3args`.
    pub struct ReadlinkArgs<'a> {
        /// The symbolic link.
        pub symlink: FileHandle3<'a>,
    }
}

xdr_struct! {
    /// `READLINK3resok`.
    pub struct ReadlinkOk<'a> {
        /// The link's attributes.
        pub attributes: Option<Fattr3>,
        /// The link's target.
        pub data: &'a [u8],
    }
}

/// `READLINK3res`; a failure gives the object's attributes.
pub type ReadlinkRes<'a> = Res<ReadlinkOk<'a>, Option<Fattr3>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            ReadlinkArgs { symlink: fh() },
            theirs::READLINK3args { symlink: other::fh() },
            [FH]
        );
    }

    #[test]
    fn results() {
        check!(
            ReadlinkRes::Ok(ReadlinkOk { attributes: None, data: b"../a" }),
            theirs::READLINK3res::Ok(theirs::READLINK3resok {
                symlink_attributes: theirs::Nfs3Option::None,
                data: (&b"../a"[..]).into()
            }),
            ["00000000", NONE, "00000004 2e2e2f61"]
        );
        check!(
            ReadlinkRes::Fail(Status::INVAL, Some(fattr())),
            theirs::READLINK3res::Err((
                theirs::nfsstat3::NFS3ERR_INVAL,
                theirs::READLINK3resfail { symlink_attributes: other::post_op() }
            )),
            ["00000016", SOME, FATTR]
        );
    }
}
