//! The errors of a client.

use weir_smb::auth::InitiatorError;
use weir_smb::crypto::{CryptoError, NoRandom};
use weir_smb::wire::netbios::FrameError;
use weir_smb::wire::{Status, WireError};

/// Why a connection can't be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// A message is malformed.
    #[error("a malformed response: {0}")]
    Wire(#[from] WireError),
    /// A frame is too long, or its prefix is wrong.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A message can't be signed, verified, sealed or opened.
    #[error(transparent)]
    Crypto(#[from] CryptoError),
    /// A response answers no request in flight, or one of another command.
    #[error("a response without a request (message id {0})")]
    Unasked(u64),
    /// A message is no response, or one of another session.
    #[error("a message that is no response of this session")]
    Foreign,
    /// A response that must be signed is not.
    #[error("a response without a signature on a signed session")]
    NotSigned,
    /// A response is not sealed and must be, or the other way round.
    #[error("a response that is sealed or not, contrary to its session")]
    NotSealed,
    /// A frame is longer than the bytes that are looked at, and is not one message.
    #[error("a response that is longer than any to such a request")]
    TooLong,
    /// Data was to follow a message that is signed, sealed or not the last of its frame.
    #[error("data behind a frame that must be whole")]
    DataBehind,
}

/// Why there is no connection to a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The connection can't be used.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server's side of the login breaks a rule.
    #[error("the login failed: {0}")]
    Login(#[from] InitiatorError),
    /// The system gives no random bytes.
    #[error(transparent)]
    NoRandom(#[from] NoRandom),
    /// The server refuses a step.
    #[error("the server refused {step}: {status}")]
    Refused {
        /// The step.
        step: &'static str,
        /// The server's answer.
        status: Status,
    },
    /// The server does not speak SMB 3.1.1 with SHA-512.
    #[error("the server does not speak SMB 3.1.1")]
    Dialect,
    /// The server chose an algorithm that was not offered.
    #[error("the server chose {what} number {number}, which was not offered")]
    Algorithm {
        /// Its kind.
        what: &'static str,
        /// Its number on the wire.
        number: u16,
    },
    /// Sealing is wanted and the server can't, or there is no common cipher.
    #[error("the server does not encrypt")]
    NoCipher,
    /// The server wants signatures.
    #[error("the server requires signing")]
    SigningRequired,
    /// The server wants everything sealed.
    #[error("the server or the share requires encryption")]
    SealingRequired,
    /// The server let the user in as nobody in particular: such a session has no keys.
    #[error("the server admits the user as a guest only")]
    Guest,
    /// The share is a printer or a set of pipes.
    #[error("the share has no files")]
    NoFiles,
}

impl From<WireError> for SetupError {
    fn from(error: WireError) -> Self {
        Self::Client(error.into())
    }
}

impl From<CryptoError> for SetupError {
    fn from(error: CryptoError) -> Self {
        Self::Client(error.into())
    }
}
