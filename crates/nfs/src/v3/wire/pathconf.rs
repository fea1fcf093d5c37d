//! PATHCONF (RFC 1813 §3.3.20).

use super::{Fattr3, FileHandle3, Res};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `PATHCONF3args`.
    pub struct PathconfArgs<'a> {
        /// An object in the file system.
        pub object: FileHandle3<'a>,
    }
}

xdr_struct! {
    /// `PATHCONF3resok`.
    pub struct PathconfOk {
        /// The object's attributes.
        pub attributes: Option<Fattr3>,
        /// Most hard links of an object.
        pub linkmax: u32,
        /// Longest name, in bytes.
        pub name_max: u32,
        /// Are names that are too long refused, not cut?
        pub no_trunc: bool,
        /// May only the superuser change an owner?
        pub chown_restricted: bool,
        /// Are names compared without regard to case?
        pub case_insensitive: bool,
        /// Is the case of names kept?
        pub case_preserving: bool,
    }
}

/// `PATHCONF3res`; a failure gives the object's attributes.
pub type PathconfRes = Res<PathconfOk, Option<Fattr3>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(PathconfArgs { object: fh() }, theirs::PATHCONF3args { object: other::fh() }, [FH]);
    }

    #[test]
    fn results() {
        check!(
            PathconfRes::Ok(PathconfOk {
                attributes: None,
                linkmax: 1,
                name_max: 255,
                no_trunc: true,
                chown_restricted: false,
                case_insensitive: false,
                case_preserving: true
            }),
            theirs::PATHCONF3res::Ok(theirs::PATHCONF3resok {
                obj_attributes: theirs::Nfs3Option::None,
                linkmax: 1,
                name_max: 255,
                no_trunc: true,
                chown_restricted: false,
                case_insensitive: false,
                case_preserving: true
            }),
            ["00000000", NONE, "00000001 000000ff 00000001 00000000 00000000 00000001"]
        );
        check!(
            PathconfRes::Ok(PathconfOk {
                attributes: None,
                linkmax: 1,
                name_max: 2,
                no_trunc: false,
                chown_restricted: true,
                case_insensitive: true,
                case_preserving: false
            }),
            theirs::PATHCONF3res::Ok(theirs::PATHCONF3resok {
                obj_attributes: theirs::Nfs3Option::None,
                linkmax: 1,
                name_max: 2,
                no_trunc: false,
                chown_restricted: true,
                case_insensitive: true,
                case_preserving: false
            }),
            ["00000000", NONE, "00000001 00000002 00000000 00000001 00000001 00000000"]
        );
        check!(
            PathconfRes::Fail(Status::STALE, Some(fattr())),
            theirs::PATHCONF3res::Err((
                theirs::nfsstat3::NFS3ERR_STALE,
                theirs::PATHCONF3resfail { obj_attributes: other::post_op() }
            )),
            ["00000046", SOME, FATTR]
        );
    }
}
