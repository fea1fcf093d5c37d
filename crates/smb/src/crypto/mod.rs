//! Cryptography of SMB 3.1.1 (MS-SMB2 §3.1.4, §3.1.5): the [provider](Crypto)'s trait, the hash of
//! the messages before authentication, key derivation, signing and sealing.
//!
//! Not here: any algorithm (a provider has them), the decision which message must be signed or
//! sealed, or the check for replay. A signature or seal that is sent twice is valid twice: a
//! receiver keeps no nonces (MS-SMB2 §3.3.5.2.1.1), and a repeated message is refused by its
//! message id, which signature and seal cover.
//!
//! Everything takes and returns raw bytes. Key types have no `Debug`, so no log can show a key.

mod derive;
mod error;
mod header;
mod nonce;
mod preauth;
mod provider;
mod sealing;
mod signing;

pub use derive::Derivation;
pub use error::CryptoError;
pub use preauth::Preauth;
pub use provider::{Aead, AesKey, Crypto, Gmac, Mac, NoRandom};
pub use sealing::{Cipher, SealKeys, TRANSFORM_BYTES, Transform};
pub use signing::{SigningAlgorithm, SigningKey};

/// The side of a connection that holds a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that sends requests.
    Client,
    /// The side that answers.
    Server,
}

impl Role {
    /// The other side.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}
