//! RENAME (RFC 1813 §3.3.14).

use super::{DirOpArgs3, Res, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `RENAME3args`.
    pub struct RenameArgs<'a> {
        /// The present name.
        pub from: DirOpArgs3<'a>,
        /// The name to be.
        pub to: DirOpArgs3<'a>,
    }
}

xdr_struct! {
    /// `RENAME3resok` and `RENAME3resfail`, which are the same.
    pub struct RenameWcc {
        /// The directory of the old name around the operation.
        pub from_dir_wcc: WccData,
        /// The directory of the new name around the operation.
        pub to_dir_wcc: WccData,
    }
}

/// `RENAME3res`: both directories around the operation, either way.
pub type RenameRes = Res<RenameWcc, RenameWcc>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            RenameArgs { from: dir_op(), to: dir_op_b() },
            theirs::RENAME3args { from: other::dir_op(), to: other::dir_op_b() },
            [FH, NAME, FH_B, NAME_B]
        );
    }

    #[test]
    fn results() {
        check!(
            RenameRes::Ok(RenameWcc { from_dir_wcc: wcc(), to_dir_wcc: WccData::NONE }),
            theirs::RENAME3res::Ok(theirs::RENAME3resok {
                fromdir_wcc: other::wcc(),
                todir_wcc: theirs::wcc_data::default()
            }),
            ["00000000", WCC, NONE, NONE]
        );
        check!(
            RenameRes::Fail(
                Status::XDEV,
                RenameWcc { from_dir_wcc: WccData::NONE, to_dir_wcc: wcc() }
            ),
            theirs::RENAME3res::Err((
                theirs::nfsstat3::NFS3ERR_XDEV,
                theirs::RENAME3resfail {
                    fromdir_wcc: theirs::wcc_data::default(),
                    todir_wcc: other::wcc()
                }
            )),
            ["00000012", NONE, NONE, WCC]
        );
    }
}
