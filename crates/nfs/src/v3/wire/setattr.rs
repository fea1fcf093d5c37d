//! SETATTR (RFC 1813 §3.3.2).

use super::{FileHandle3, NfsTime3, Res, Sattr3, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `SETATTR3args`.
    pub struct SetattrArgs<'a> {
        /// The object.
        pub object: FileHandle3<'a>,
        /// The attributes to set.
        pub new_attributes: Sattr3,
        /// `sattrguard3`: set only if the object's ctime is this.
        pub guard: Option<NfsTime3>,
    }
}

/// `SETATTR3res`: the object around the operation, either way.
pub type SetattrRes = Res<WccData, WccData>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            SetattrArgs {
                object: fh(),
                new_attributes: sattr(),
                guard: Some(NfsTime3 { seconds: 5, nseconds: 6 })
            },
            theirs::SETATTR3args {
                object: other::fh(),
                new_attributes: other::sattr(),
                guard: theirs::Nfs3Option::Some(theirs::nfstime3 { seconds: 5, nseconds: 6 })
            },
            [FH, SATTR, "00000001 00000005 00000006"]
        );
        check!(
            SetattrArgs { object: fh(), new_attributes: Sattr3::NONE, guard: None },
            theirs::SETATTR3args {
                object: other::fh(),
                new_attributes: theirs::sattr3::default(),
                guard: theirs::Nfs3Option::None
            },
            [FH, "00000000 00000000 00000000 00000000 00000000 00000000", NONE]
        );
    }

    #[test]
    fn results() {
        check!(
            SetattrRes::Ok(wcc()),
            theirs::SETATTR3res::Ok(theirs::SETATTR3resok { obj_wcc: other::wcc() }),
            ["00000000", WCC]
        );
        check!(
            SetattrRes::Fail(Status::NOT_SYNC, wcc()),
            theirs::SETATTR3res::Err((
                theirs::nfsstat3::NFS3ERR_NOT_SYNC,
                theirs::SETATTR3resfail { obj_wcc: other::wcc() }
            )),
            ["00002712", WCC]
        );
    }
}
