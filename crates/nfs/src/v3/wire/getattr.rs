//! GETATTR (RFC 1813 §3.3.1).

use super::{Fattr3, FileHandle3, Res};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `GETATTR3args`.
    pub struct GetattrArgs<'a> {
        /// The object.
        pub object: FileHandle3<'a>,
    }
}

xdr_struct! {
    /// `GETATTR3resok`.
    pub struct GetattrOk {
        /// The object's attributes.
        pub attributes: Fattr3,
    }
}

/// `GETATTR3res`.
pub type GetattrRes = Res<GetattrOk, ()>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(GetattrArgs { object: fh() }, theirs::GETATTR3args { object: other::fh() }, [FH]);
    }

    #[test]
    fn results() {
        check!(
            GetattrRes::Ok(GetattrOk { attributes: fattr() }),
            theirs::GETATTR3res::Ok(theirs::GETATTR3resok { obj_attributes: other::fattr() }),
            ["00000000", FATTR]
        );
        check!(
            GetattrRes::Fail(Status::STALE, ()),
            theirs::GETATTR3res::Err((
                theirs::nfsstat3::NFS3ERR_STALE,
                nfs3_types::xdr_codec::Void
            )),
            ["00000046"]
        );
    }
}
