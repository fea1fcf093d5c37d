//! Failures of SMB in words, and what they suggest to the user.

use crate::error::BenchError;
use crate::target::SmbTarget;
use std::net::SocketAddr;
use weir_smb::wire::Status;
use weir_smb_client::SetupError;

/// Is there no such name?
pub(super) const fn is_absent(status: Status) -> bool {
    matches!(status, Status::OBJECT_NAME_NOT_FOUND | Status::OBJECT_PATH_NOT_FOUND)
}

/// An operation of the preparation or clean-up failed.
pub(super) fn refused(action: &str, status: Status) -> BenchError {
    let status_text = status.to_string();
    BenchError::Refused { action: action.to_owned(), status: status_text, hint: hint(status) }
}

/// The advice for `status` met in preparation, with a leading separator; empty if nothing is known
/// to help.
const fn hint(status: Status) -> &'static str {
    match status {
        Status::ACCESS_DENIED => {
            "; log in as a user that may write there, or check the share's rules"
        }
        Status::MEDIA_WRITE_PROTECTED => {
            "; the share is read-only: change its rule, or measure reads with --reuse"
        }
        Status::DISK_FULL | Status::QUOTA_EXCEEDED | Status::DISK_QUOTA_EXCEEDED => {
            "; choose a smaller --size or fewer --files"
        }
        Status::OBJECT_NAME_NOT_FOUND => "; omit --reuse to create the files",
        Status::OBJECT_PATH_NOT_FOUND => "; the directory in the URL must exist",
        Status::TOO_MANY_OPENED_FILES | Status::INSUFF_SERVER_RESOURCES => {
            "; each connection opens the files of its jobs: use fewer files or connections"
        }
        _ => "",
    }
}

/// There is no connection to the share.
pub(super) fn login_failed(
    target: &SmbTarget,
    address: SocketAddr,
    error: &SetupError,
) -> BenchError {
    let advice = match error {
        SetupError::SigningRequired => {
            "; use --smb-security sign, or have the server offer signing only (`weir serve \
             --smb-signing offered`)"
        }
        SetupError::SealingRequired => "; use --smb-security seal",
        SetupError::NoCipher => "; use --smb-security sign",
        SetupError::Refused { status: Status::LOGON_FAILURE, .. } => {
            "; check the name of the user and the password"
        }
        SetupError::Refused { status: Status::BAD_NETWORK_NAME, .. } => {
            "; the share does not exist, or this user may not connect to it"
        }
        _ => "",
    };
    BenchError::Mount(format!("cannot connect to {target} at {address}: {error}{advice}"))
}
