//! Sealing and opening messages (MS-SMB2 §3.1.4.3, §3.3.5.2.1.1).

use super::nonce::Nonces;
use super::{Aead as _, AesKey, Crypto, CryptoError, NoRandom};
use crate::le::{array_at, u16_at, u32_at, u64_at};
use crate::wire::SEALED;

/// A cipher of sealed messages (MS-SMB2 §2.2.3.1.2). The values are those of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Cipher {
    /// AES-128-CCM.
    Aes128Ccm = 1,
    /// AES-128-GCM.
    Aes128Gcm = 2,
    /// AES-256-CCM.
    Aes256Ccm = 3,
    /// AES-256-GCM.
    Aes256Gcm = 4,
}

impl Cipher {
    /// The cipher of a value of the wire, if it is a known one.
    #[must_use]
    pub const fn from_wire(value: u16) -> Option<Self> {
        match value {
            1 => Some(Self::Aes128Ccm),
            2 => Some(Self::Aes128Gcm),
            3 => Some(Self::Aes256Ccm),
            4 => Some(Self::Aes256Gcm),
            _ => None,
        }
    }

    /// Its name in the specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Ccm => "AES-128-CCM",
            Self::Aes128Gcm => "AES-128-GCM",
            Self::Aes256Ccm => "AES-256-CCM",
            Self::Aes256Gcm => "AES-256-GCM",
        }
    }
}

/// Length of the transform header in front of a sealed message (MS-SMB2 §2.2.41).
pub const TRANSFORM_BYTES: usize = 52;
/// The protocol id and the tag; the rest of the header is authenticated.
const TAG_AT: usize = 4;
const NONCE_AT: usize = 20;
const AAD_BYTES: usize = TRANSFORM_BYTES - NONCE_AT;
/// Offsets in the authenticated part: a nonce of 16 bytes, size, two bytes reserved, flags, session
/// id.
const SIZE_AT: usize = 16;
const FLAGS_AT: usize = 22;
const SESSION_AT: usize = 24;

/// In dialect 3.1.1: the message is sealed with the cipher that was negotiated.
const ENCRYPTED: u16 = 1;

/// The transform header of a sealed message, parsed before the session is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transform {
    /// The session with the keys.
    pub session_id: u64,
    /// The length of the message, in bytes; never 0.
    pub message_bytes: usize,
}

impl Transform {
    /// Parses the header of a frame, which must be one sealed message and nothing else.
    ///
    /// # Errors
    /// [`CryptoError::BadTransform`]; the connection must end (MS-SMB2 §3.3.5.2.1.1).
    pub fn parse(frame: &[u8]) -> Result<Self, CryptoError> {
        let (header, message) =
            frame.split_first_chunk::<TRANSFORM_BYTES>().ok_or(CryptoError::BadTransform)?;
        let (_, aad) = header.split_last_chunk::<AAD_BYTES>().ok_or(CryptoError::BadTransform)?;
        let size = u32_at(aad, SIZE_AT).and_then(|size| usize::try_from(size).ok());
        let is_sound = header.starts_with(&SEALED)
            && u16_at(aad, FLAGS_AT) == Some(ENCRYPTED)
            && size == Some(message.len())
            && !message.is_empty();
        if !is_sound {
            return Err(CryptoError::BadTransform);
        }
        let session_id = u64_at(aad, SESSION_AT).ok_or(CryptoError::BadTransform)?;
        Ok(Self { session_id, message_bytes: message.len() })
    }
}

/// A session's keys of sealed messages, as one side holds them. Threads may share it.
pub struct SealKeys<C: Crypto> {
    own: Prepared<C>,
    peers: Prepared<C>,
    nonces: Nonces,
}

enum Prepared<C: Crypto> {
    Gcm(C::AesGcm),
    Ccm(C::AesCcm),
}

impl<C: Crypto> SealKeys<C> {
    /// Prepares the key of this side's messages and that of the other side's. The nonces begin
    /// here, so a key may be prepared as `own` only once.
    ///
    /// # Errors
    /// [`NoRandom`] if the system gives no random bytes for the nonces.
    pub fn new(crypto: &C, cipher: Cipher, own: &AesKey, peers: &AesKey) -> Result<Self, NoRandom> {
        let mut salt = [0; 4];
        crypto.random(&mut salt)?;
        let prepare = |key| match cipher {
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => Prepared::Gcm(crypto.aes_gcm(key)),
            Cipher::Aes128Ccm | Cipher::Aes256Ccm => Prepared::Ccm(crypto.aes_ccm(key)),
        };
        Ok(Self { own: prepare(own), peers: prepare(peers), nonces: Nonces::new(salt) })
    }

    /// Seals a message of this side in place. `frame` is [`TRANSFORM_BYTES`] of room, in which the
    /// header is written, and the message or compound after it.
    ///
    /// # Errors
    /// [`CryptoError::TooShort`] without room for the header or without a message,
    /// [`CryptoError::TooLong`], [`CryptoError::NoncesExhausted`] when the session must end. The
    /// frame must not be sent then.
    pub fn seal(&self, session_id: u64, frame: &mut [u8]) -> Result<(), CryptoError> {
        let (header, message) =
            frame.split_first_chunk_mut::<TRANSFORM_BYTES>().ok_or(CryptoError::TooShort)?;
        if message.is_empty() {
            return Err(CryptoError::TooShort);
        }
        let size = u32::try_from(message.len()).map_err(|_| CryptoError::TooLong)?;
        let nonce = self.own.fit(self.nonces.next()?);
        let aad = aad(&nonce, size, session_id);
        let tag = self.own.seal(&nonce, &aad, message).ok_or(CryptoError::TooLong)?;
        let (front, back) = header.split_at_mut(NONCE_AT);
        back.copy_from_slice(&aad);
        let (id, tag_field) = front.split_at_mut(TAG_AT);
        id.copy_from_slice(&SEALED);
        tag_field.copy_from_slice(&tag);
        Ok(())
    }

    /// Opens a message of the other side in place and gives it. The caller took the session from
    /// [`Transform::parse`].
    ///
    /// # Errors
    /// [`CryptoError::BadTransform`] as in [`Transform::parse`], [`CryptoError::Forged`] if the
    /// seal is not that of the frame; the frame is worthless then.
    pub fn open<'a>(&self, frame: &'a mut [u8]) -> Result<&'a mut [u8], CryptoError> {
        Transform::parse(frame)?;
        let (header, message) =
            frame.split_first_chunk_mut::<TRANSFORM_BYTES>().ok_or(CryptoError::BadTransform)?;
        let tag = field(header, TAG_AT);
        let aad: [u8; AAD_BYTES] = field(header, NONCE_AT);
        let nonce = field(&aad, 0);
        if self.peers.open(&nonce, &aad, message, &tag) {
            Ok(message)
        } else {
            Err(CryptoError::Forged)
        }
    }
}

impl<C: Crypto> Prepared<C> {
    /// The nonce as the cipher uses it: CCM takes 11 bytes, and the 12th is sent as zero.
    fn fit(&self, [nonce @ .., last]: [u8; 12]) -> [u8; 12] {
        let last = match self {
            Self::Gcm(_) => last,
            Self::Ccm(_) => 0,
        };
        let mut fit = [0; 12];
        for (to, from) in fit.iter_mut().zip(nonce.into_iter().chain([last])) {
            *to = from;
        }
        fit
    }

    fn seal(&self, nonce: &[u8; 12], aad: &[u8], data: &mut [u8]) -> Option<[u8; 16]> {
        match self {
            Self::Gcm(key) => key.seal(nonce, aad, data),
            Self::Ccm(key) => key.seal(&field(nonce, 0), aad, data),
        }
    }

    fn open(&self, nonce: &[u8; 12], aad: &[u8], data: &mut [u8], tag: &[u8; 16]) -> bool {
        match self {
            Self::Gcm(key) => key.open(nonce, aad, data, tag),
            Self::Ccm(key) => key.open(&field(nonce, 0), aad, data, tag),
        }
    }
}

/// The authenticated part of the header.
fn aad(nonce: &[u8; 12], size: u32, session_id: u64) -> [u8; AAD_BYTES] {
    let fields = [
        nonce.as_slice(),
        &[0; 4],
        &size.to_le_bytes(),
        &[0; 2],
        &ENCRYPTED.to_le_bytes(),
        &session_id.to_le_bytes(),
    ];
    let mut aad = [0; AAD_BYTES];
    for (to, from) in aad.iter_mut().zip(fields.into_iter().flatten()) {
        *to = *from;
    }
    aad
}

/// `N` bytes at `at`, which are there in every use here: the offsets are constants.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    array_at(bytes, at).unwrap_or([0; N])
}
