//! REMOVE (RFC 1813 §3.3.12).

use super::{DirOpArgs3, Res, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `REMOVE3args`.
    pub struct RemoveArgs<'a> {
        /// The name to remove.
        pub object: DirOpArgs3<'a>,
    }
}

/// `REMOVE3res`: the directory around the operation, either way.
pub type RemoveRes = Res<WccData, WccData>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            RemoveArgs { object: dir_op() },
            theirs::REMOVE3args { object: other::dir_op() },
            [FH, NAME]
        );
    }

    #[test]
    fn results() {
        check!(
            RemoveRes::Ok(wcc()),
            theirs::REMOVE3res::Ok(theirs::REMOVE3resok { dir_wcc: other::wcc() }),
            ["00000000", WCC]
        );
        check!(
            RemoveRes::Fail(Status::ACCES, wcc()),
            theirs::REMOVE3res::Err((
                theirs::nfsstat3::NFS3ERR_ACCES,
                theirs::REMOVE3resfail { dir_wcc: other::wcc() }
            )),
            ["0000000d", WCC]
        );
    }
}
