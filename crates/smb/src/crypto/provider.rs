//! The trait behind which a provider of cryptography is. Not a provider: `weir-crypto` is one.
//!
//! A key is prepared once for a session, so that a message costs neither a key schedule nor an
//! allocation. Dispatch is static: signing and sealing are a large part of a request's cost.

/// The system gives no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandom;

/// A key of AES, of either size that SMB uses.
#[derive(Clone, Copy)]
pub enum AesKey {
    /// AES-128.
    Aes128([u8; 16]),
    /// AES-256.
    Aes256([u8; 32]),
}

/// A prepared key of a message authentication code with `N` bytes of output.
pub trait Mac<const N: usize> {
    /// The code of the message that is `parts` in a row.
    fn tag(&self, parts: &[&[u8]]) -> [u8; N];
}

/// A prepared key of GMAC (SP 800-38D): a message authentication code with a nonce, with which a
/// key must never be used twice.
pub trait Gmac {
    /// The code of `message`, which may be changed meanwhile and is as it was afterwards. `None`:
    /// the message is over the bound of the algorithm.
    fn tag(&self, nonce: &[u8; 12], message: &mut [u8]) -> Option<[u8; 16]>;

    /// Is `tag` the code of the message that is `parts` in a row? It takes the same time wherever
    /// they differ.
    #[must_use]
    fn verify(&self, nonce: &[u8; 12], parts: &[&[u8]], tag: &[u8; 16]) -> bool;
}

/// A prepared key of an authenticated cipher with a tag of 16 bytes and a nonce of `NONCE` bytes.
pub trait Aead<const NONCE: usize> {
    /// Encrypts `data` in place and gives the tag over it and `aad`. A nonce must never be used
    /// twice with one key. `None`: the data is over the bound of the algorithm, and as it was.
    fn seal(&self, nonce: &[u8; NONCE], aad: &[u8], data: &mut [u8]) -> Option<[u8; 16]>;

    /// Decrypts `data` in place if `tag` is that of the data and `aad`. `false`: it is not, and
    /// `data` is worthless.
    #[must_use]
    fn open(&self, nonce: &[u8; NONCE], aad: &[u8], data: &mut [u8], tag: &[u8; 16]) -> bool;
}

/// A provider of cryptography: the algorithms that SMB 3.1.1 and NTLMv2 name. Secrets do not
/// influence the time that any of them takes, except for [`Crypto::rc4`], whose keys are used once.
pub trait Crypto {
    /// A prepared key of HMAC-SHA-256 (FIPS 198-1).
    type HmacSha256: Mac<32> + Send + Sync;
    /// A prepared key of AES-128-CMAC (RFC 4493).
    type AesCmac: Mac<16> + Send + Sync;
    /// A prepared key of AES-128-GMAC.
    type AesGmac: Gmac + Send + Sync;
    /// A prepared key of AES-GCM (SP 800-38D).
    type AesGcm: Aead<12> + Send + Sync;
    /// A prepared key of AES-CCM (SP 800-38C) with nonces of 11 bytes.
    type AesCcm: Aead<11> + Send + Sync;

    /// Prepares a key of HMAC-SHA-256, of any length.
    fn hmac_sha256(&self, key: &[u8]) -> Self::HmacSha256;

    /// Prepares a key of AES-128-CMAC.
    fn aes_cmac(&self, key: &[u8; 16]) -> Self::AesCmac;

    /// Prepares a key of AES-128-GMAC.
    fn aes_gmac(&self, key: &[u8; 16]) -> Self::AesGmac;

    /// Prepares a key of AES-GCM.
    fn aes_gcm(&self, key: &AesKey) -> Self::AesGcm;

    /// Prepares a key of AES-CCM.
    fn aes_ccm(&self, key: &AesKey) -> Self::AesCcm;

    /// SHA-512 of `parts` in a row (FIPS 180-4).
    fn sha512(&self, parts: &[&[u8]]) -> [u8; 64];

    /// HMAC-MD5 of `parts` in a row (RFC 2104).
    fn hmac_md5(&self, key: &[u8; 16], parts: &[&[u8]]) -> [u8; 16];

    /// MD4 (RFC 1320).
    fn md4(&self, data: &[u8]) -> [u8; 16];

    /// MD5 of `parts` in a row (RFC 1321).
    fn md5(&self, parts: &[&[u8]]) -> [u8; 16];

    /// Encrypts or decrypts `data` with a fresh RC4 keystream of `key`.
    fn rc4(&self, key: &[u8; 16], data: &mut [u8]);

    /// Fills `out` with random bytes that are not predictable.
    ///
    /// # Errors
    /// [`NoRandom`] if the system has none.
    fn random(&self, out: &mut [u8]) -> Result<(), NoRandom>;

    /// Are `a` and `b` equal? It takes the same time wherever they differ.
    fn equal(&self, a: &[u8; 16], b: &[u8; 16]) -> bool;
}
