//! The reasons for which a call of etcd fails, by what is known of its outcome.

use std::error::Error as _;
use std::io;

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdError {
    /// No member was reached, or those that were did not begin to carry the call out: nothing was
    /// done.
    #[error("etcd can't be reached: {0}")]
    Unreachable(String),
    /// There is no answer: the call may have been carried out, or may still be.
    #[error("etcd did not answer: {0}")]
    Unanswered(String),
    /// etcd refuses the call, and nothing was done. Repeating it makes no sense.
    #[error("etcd refuses a request: {0}")]
    Refused(String),
    /// The events or rows of a revision are no longer known.
    #[error("etcd has compacted the revision")]
    Compacted,
    /// An answer was longer than this program accepts.
    #[error("an answer of etcd is too long")]
    TooLong,
}

/// The codes of gRPC that are told apart here.
mod code {
    pub(super) const INVALID_ARGUMENT: i32 = 3;
    pub(super) const NOT_FOUND: i32 = 5;
    pub(super) const PERMISSION_DENIED: i32 = 7;
    pub(super) const RESOURCE_EXHAUSTED: i32 = 8;
    pub(super) const FAILED_PRECONDITION: i32 = 9;
    pub(super) const OUT_OF_RANGE: i32 = 11;
    pub(super) const UNIMPLEMENTED: i32 = 12;
    pub(super) const UNAUTHENTICATED: i32 = 16;
}

impl From<etcd_client::Error> for EtcdError {
    fn from(error: etcd_client::Error) -> Self {
        let words = match &error {
            etcd_client::Error::GRpcStatus(status) => status.message().to_owned(),
            error => error.to_string(),
        };
        if was_not_connected(&error) {
            return Self::Unreachable(words);
        }
        match (code_of(&error), words.as_str()) {
            (Some(code::OUT_OF_RANGE), words) if words.contains("compacted") => Self::Compacted,
            (Some(code::OUT_OF_RANGE), words) if words.contains("message length too large") => {
                Self::TooLong
            }
            // The member knows no leader, and has not proposed anything.
            (_, "etcdserver: no leader" | "etcdserver: too many requests") => {
                Self::Unreachable(words)
            }
            // The member lags behind the revision that another one told.
            (Some(code::OUT_OF_RANGE), words) if words.contains("future revision") => {
                Self::Unreachable(words.to_owned())
            }
            (
                Some(
                    code::INVALID_ARGUMENT
                    | code::NOT_FOUND
                    | code::PERMISSION_DENIED
                    | code::RESOURCE_EXHAUSTED
                    | code::FAILED_PRECONDITION
                    | code::OUT_OF_RANGE
                    | code::UNIMPLEMENTED
                    | code::UNAUTHENTICATED,
                ),
                _,
            ) => Self::Refused(words),
            _ => match error {
                etcd_client::Error::InvalidArgs(_)
                | etcd_client::Error::InvalidUri(_)
                | etcd_client::Error::InvalidMetadataValue(_) => Self::Refused(words),
                _ => Self::Unanswered(words),
            },
        }
    }
}

/// Is this etcd's answer that there is no such lease?
pub(super) fn is_no_lease(error: &etcd_client::Error) -> bool {
    matches!(error, etcd_client::Error::LeaseKeepAliveError(_))
        || code_of(error) == Some(code::NOT_FOUND)
}

/// Is this etcd's answer that there is a lease of this number already?
pub(super) fn is_lease_there(error: &etcd_client::Error) -> bool {
    code_of(error) == Some(code::FAILED_PRECONDITION)
}

fn code_of(error: &etcd_client::Error) -> Option<i32> {
    match error {
        etcd_client::Error::GRpcStatus(status) => Some(status.code().into()),
        _ => None,
    }
}

/// Did the call fail before there was a connection? Only connecting ends in a refused connection.
fn was_not_connected(error: &etcd_client::Error) -> bool {
    let mut source = match error {
        etcd_client::Error::GRpcStatus(status) => status.source(),
        etcd_client::Error::TransportError(error) => error.source(),
        _ => None,
    };
    while let Some(error) = source {
        let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if error.downcast_ref::<io::Error>().is_some_and(refused) {
            return true;
        }
        source = error.source();
    }
    false
}
