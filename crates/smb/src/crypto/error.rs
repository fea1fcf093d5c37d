//! The errors of signing and sealing.

use super::NoRandom;

/// Why a message could not be signed, verified, sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CryptoError {
    /// There is no room for the header that a signature or a seal belongs in.
    #[error("the message is shorter than its header")]
    TooShort,
    /// The message is over the bound of the algorithm.
    #[error("the message is too long for the algorithm")]
    TooLong,
    /// The signature or seal is not that of the message under this key.
    #[error("the signature or seal does not match")]
    Forged,
    /// The frame is not one sealed message with a well-formed transform header.
    #[error("the transform header is malformed")]
    BadTransform,
    /// The message is of a kind that is never signed: an interim response or a notification.
    #[error("an interim response or a notification is never signed")]
    NeverSigned,
    /// The key has sealed as many messages as it may.
    #[error("the nonces of this key are exhausted")]
    NoncesExhausted,
    /// The system gives no random bytes.
    #[error(transparent)]
    NoRandom(#[from] NoRandom),
}
