//! Signing and verifying messages (MS-SMB2 §3.1.4.1, §3.1.5.1).

use super::header::Header;
use super::{Crypto, CryptoError, Gmac as _, Mac as _, Role};
use crate::wire::HEADER_BYTES;

/// An algorithm of signatures (MS-SMB2 §2.2.3.1.7). The values are those of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum SigningAlgorithm {
    /// HMAC-SHA-256, cut off after 16 bytes.
    HmacSha256 = 0,
    /// AES-128-CMAC, which also applies where nothing was negotiated.
    AesCmac = 1,
    /// AES-128-GMAC.
    AesGmac = 2,
}

impl SigningAlgorithm {
    /// The algorithm of a value of the wire, if it is a known one.
    #[must_use]
    pub const fn from_wire(value: u16) -> Option<Self> {
        match value {
            0 => Some(Self::HmacSha256),
            1 => Some(Self::AesCmac),
            2 => Some(Self::AesGmac),
            _ => None,
        }
    }

    /// Its name in the specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "HMAC-SHA256",
            Self::AesCmac => "AES-CMAC",
            Self::AesGmac => "AES-GMAC",
        }
    }
}

/// A session's (or channel's) key of signatures, as one side holds it.
pub struct SigningKey<C: Crypto> {
    key: Prepared<C>,
    role: Role,
}

enum Prepared<C: Crypto> {
    HmacSha256(C::HmacSha256),
    AesCmac(C::AesCmac),
    AesGmac(C::AesGmac),
}

impl<C: Crypto> SigningKey<C> {
    /// Prepares the key for the side that holds it.
    pub fn new(crypto: &C, algorithm: SigningAlgorithm, key: &[u8; 16], role: Role) -> Self {
        let key = match algorithm {
            SigningAlgorithm::HmacSha256 => Prepared::HmacSha256(crypto.hmac_sha256(key)),
            SigningAlgorithm::AesCmac => Prepared::AesCmac(crypto.aes_cmac(key)),
            SigningAlgorithm::AesGmac => Prepared::AesGmac(crypto.aes_gmac(key)),
        };
        Self { key, role }
    }

    /// Signs a message of this side in place. `message` is one element of a compound: from its
    /// header to the next header, so with the padding between them, or to the end of the frame.
    ///
    /// A final response alone may be signed for a message id. With GMAC a second signature under
    /// the same id would reveal the key, so an interim response and a notification are refused
    /// here; the specification has neither signed (MS-SMB2 §3.3.4.1.1).
    ///
    /// # Errors
    /// [`CryptoError::TooShort`], [`CryptoError::TooLong`] or [`CryptoError::NeverSigned`].
    pub fn sign(&self, message: &mut [u8]) -> Result<(), CryptoError> {
        let mut header = Header::of(message)?;
        if header.is_never_signed() {
            return Err(CryptoError::NeverSigned);
        }
        header.set_signed();
        header.set_signature([0; 16]);
        let nonce = nonce(self.role, &header);
        let signature = self.signature(&nonce, message)?;
        Header::of(message)?.set_signature(signature);
        Ok(())
    }

    /// Verifies a message of the other side, one element as for [`SigningKey::sign`].
    ///
    /// Neither the flag of a signed message nor the session id is looked at.
    ///
    /// # Errors
    /// [`CryptoError::Forged`] if the signature is not that of the message,
    /// [`CryptoError::TooShort`].
    pub fn verify(&self, crypto: &C, message: &[u8]) -> Result<(), CryptoError> {
        // The signature is that of the message without it.
        let (head, rest) =
            message.split_first_chunk::<HEADER_BYTES>().ok_or(CryptoError::TooShort)?;
        let mut head = *head;
        let mut header = Header::of(&mut head)?;
        let claimed = header.signature();
        header.set_signature([0; 16]);
        let nonce = nonce(self.role.peer(), &header);
        let parts = [head.as_slice(), rest];
        let is_sound = match &self.key {
            Prepared::HmacSha256(key) => crypto.equal(&cut_off(key.tag(&parts)), &claimed),
            Prepared::AesCmac(key) => crypto.equal(&key.tag(&parts), &claimed),
            Prepared::AesGmac(key) => key.verify(&nonce, &parts, &claimed),
        };
        if is_sound { Ok(()) } else { Err(CryptoError::Forged) }
    }

    fn signature(&self, nonce: &[u8; 12], message: &mut [u8]) -> Result<[u8; 16], CryptoError> {
        match &self.key {
            Prepared::HmacSha256(key) => Ok(cut_off(key.tag(&[message]))),
            Prepared::AesCmac(key) => Ok(key.tag(&[message])),
            Prepared::AesGmac(key) => key.tag(nonce, message).ok_or(CryptoError::TooLong),
        }
    }
}

/// The first half of a code of HMAC-SHA-256, which is the signature.
fn cut_off(tag: [u8; 32]) -> [u8; 16] {
    let mut first = [0; 16];
    first.iter_mut().zip(tag).for_each(|(to, from)| *to = from);
    first
}

/// The nonce of GMAC: the message id, then 32 bits of which the lowest says that the sender is the
/// server, and the next that the message is a CANCEL, which has the id of the request it cancels.
fn nonce(sender: Role, header: &Header<'_>) -> [u8; 12] {
    let bits: u32 = match sender {
        Role::Server => 1,
        Role::Client if header.is_cancel() => 2,
        Role::Client => 0,
    };
    let mut nonce = [0; 12];
    let (id, rest) = nonce.split_at_mut(8);
    id.copy_from_slice(&header.message_id().to_le_bytes());
    rest.copy_from_slice(&bits.to_le_bytes());
    nonce
}
