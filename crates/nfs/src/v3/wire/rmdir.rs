//! RMDIR (RFC 1813 §3.3.13).

use super::{DirOpArgs3, Res, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `RMDIR3args`.
    pub struct RmdirArgs<'a> {
        /// The name to remove.
        pub object: DirOpArgs3<'a>,
    }
}

/// `RMDIR3res`: the directory around the operation, either way.
pub type RmdirRes = Res<WccData, WccData>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            RmdirArgs { object: dir_op() },
            theirs::RMDIR3args { object: other::dir_op() },
            [FH, NAME]
        );
    }

    #[test]
    fn results() {
        check!(
            RmdirRes::Ok(wcc()),
            theirs::RMDIR3res::Ok(theirs::RMDIR3resok { dir_wcc: other::wcc() }),
            ["00000000", WCC]
        );
        check!(
            RmdirRes::Fail(Status::NOTEMPTY, wcc()),
            theirs::RMDIR3res::Err((
                theirs::nfsstat3::NFS3ERR_NOTEMPTY,
                theirs::RMDIR3resfail { dir_wcc: other::wcc() }
            )),
            ["00000042", WCC]
        );
    }
}
