//! Names of NFSv3 status codes, and what they suggest to the user.

use weir_nfs::v3::wire::Status;

/// The name that RFC 1813 §2.6 gives to `status`.
pub fn name(status: Status) -> String {
    let known = match status {
        Status::OK => "NFS3_OK",
        Status::PERM => "NFS3ERR_PERM",
        Status::NOENT => "NFS3ERR_NOENT",
        Status::IO => "NFS3ERR_IO",
        Status::NXIO => "NFS3ERR_NXIO",
        Status::ACCES => "NFS3ERR_ACCES",
        Status::EXIST => "NFS3ERR_EXIST",
        Status::XDEV => "NFS3ERR_XDEV",
        Status::NODEV => "NFS3ERR_NODEV",
        Status::NOTDIR => "NFS3ERR_NOTDIR",
        Status::ISDIR => "NFS3ERR_ISDIR",
        Status::INVAL => "NFS3ERR_INVAL",
        Status::FBIG => "NFS3ERR_FBIG",
        Status::NOSPC => "NFS3ERR_NOSPC",
        Status::ROFS => "NFS3ERR_ROFS",
        Status::MLINK => "NFS3ERR_MLINK",
        Status::NAMETOOLONG => "NFS3ERR_NAMETOOLONG",
        Status::NOTEMPTY => "NFS3ERR_NOTEMPTY",
        Status::DQUOT => "NFS3ERR_DQUOT",
        Status::STALE => "NFS3ERR_STALE",
        Status::REMOTE => "NFS3ERR_REMOTE",
        Status::BADHANDLE => "NFS3ERR_BADHANDLE",
        Status::NOT_SYNC => "NFS3ERR_NOT_SYNC",
        Status::BAD_COOKIE => "NFS3ERR_BAD_COOKIE",
        Status::NOTSUPP => "NFS3ERR_NOTSUPP",
        Status::TOOSMALL => "NFS3ERR_TOOSMALL",
        Status::SERVERFAULT => "NFS3ERR_SERVERFAULT",
        Status::BADTYPE => "NFS3ERR_BADTYPE",
        Status::JUKEBOX => "NFS3ERR_JUKEBOX",
        Status(other) => return format!("status {other}"),
    };
    known.to_owned()
}

/// The advice for `status` met in preparation, with a leading separator; empty if nothing is known
/// to help.
pub(super) const fn hint(status: Status) -> &'static str {
    match status {
        Status::ACCES | Status::PERM => {
            "; ask as a user that may write there with --uid and --gid, or check the export's \
             squash rule"
        }
        Status::ROFS => "; the export is read-only: change its rule, or measure reads with --reuse",
        Status::NOSPC | Status::DQUOT => "; choose a smaller --size or fewer --files",
        Status::NOENT => "; omit --reuse to create the files",
        Status::STALE => "; the export changed meanwhile, start again",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_codes_have_their_names_and_others_their_number() {
        assert_eq!(name(Status::JUKEBOX), "NFS3ERR_JUKEBOX");
        assert_eq!(name(Status(4242)), "status 4242");
    }
}
