//! Derivation of a session's keys (MS-SMB2 §3.1.4.2): the KDF in counter mode of SP 800-108 with
//! HMAC-SHA-256, a counter and a length of 32 bits, and one round, as no key is longer than it.

use super::{
    AesKey, Cipher, Crypto, Mac as _, NoRandom, Preauth, Role, SealKeys, SigningAlgorithm,
    SigningKey,
};
use alloc::vec::Vec;

/// Labels of dialect 3.1.1, each with its final zero (MS-SMB2 §3.3.5.5.3).
const SIGNING: &[u8] = b"SMBSigningKey\0";
const CLIENT_TO_SERVER: &[u8] = b"SMBC2SCipherKey\0";
const SERVER_TO_CLIENT: &[u8] = b"SMBS2CCipherKey\0";
const APPLICATION: &[u8] = b"SMBAppKey\0";

/// The source of a session's keys: the key that authentication left, and the hash of the messages
/// up to its last request.
pub struct Derivation<'a, C: Crypto> {
    crypto: &'a C,
    /// Of the whole key of authentication, for ciphers with keys of 256 bits.
    full: C::HmacSha256,
    /// Of its first 16 bytes.
    session: C::HmacSha256,
    preauth: &'a Preauth,
}

impl<'a, C: Crypto> Derivation<'a, C> {
    /// Begins with the key of authentication. A key of less than 16 bytes counts as filled up with
    /// zeros (MS-SMB2 §3.3.5.5.3), as HMAC does by itself; NTLM leaves 16 bytes, Kerberos up to 32.
    pub fn new(crypto: &'a C, session_key: &[u8], preauth: &'a Preauth) -> Self {
        let first = session_key.get(..16).unwrap_or(session_key);
        let (full, session) = (crypto.hmac_sha256(session_key), crypto.hmac_sha256(first));
        Self { crypto, full, session, preauth }
    }

    /// The key by which `role` signs and its peer's signatures are verified.
    #[must_use]
    pub fn signing(&self, algorithm: SigningAlgorithm, role: Role) -> SigningKey<C> {
        SigningKey::new(self.crypto, algorithm, &self.key_128(SIGNING), role)
    }

    /// The keys by which `role` seals and opens. Call it once for a session: a second set of keys
    /// would begin with the nonces again.
    ///
    /// # Errors
    /// [`NoRandom`] if the system gives no random bytes for the nonces.
    pub fn sealing(&self, cipher: Cipher, role: Role) -> Result<SealKeys<C>, NoRandom> {
        let (own, peers) = match role {
            Role::Client => (CLIENT_TO_SERVER, SERVER_TO_CLIENT),
            Role::Server => (SERVER_TO_CLIENT, CLIENT_TO_SERVER),
        };
        let key = |label| match cipher {
            Cipher::Aes128Ccm | Cipher::Aes128Gcm => AesKey::Aes128(self.key_128(label)),
            Cipher::Aes256Ccm | Cipher::Aes256Gcm => AesKey::Aes256(self.key_256(label)),
        };
        SealKeys::new(self.crypto, cipher, &key(own), &key(peers))
    }

    /// The key that an application above SMB asks for (MS-SMB2 §3.3.4.6).
    #[must_use]
    pub fn application(&self) -> [u8; 16] {
        self.key_128(APPLICATION)
    }

    fn key_128(&self, label: &[u8]) -> [u8; 16] {
        let round = self.session.tag(&[&self.input(label, 128)]);
        let (first, _) = round.split_first_chunk().unwrap_or((&[0; 16], &[]));
        *first
    }

    fn key_256(&self, label: &[u8]) -> [u8; 32] {
        self.full.tag(&[&self.input(label, 256)])
    }

    /// Round 1, the label, a zero, the context and the length of the key in bits.
    fn input(&self, label: &[u8], bits: u32) -> Vec<u8> {
        [&1u32.to_be_bytes(), label, &[0], self.preauth.value(), &bits.to_be_bytes()].concat()
    }
}
