//! Prepared keys.

use aes::{Aes128, Aes256};
use ccm::aead::AeadInOut as _;
use ccm::consts::{U11, U16};
use cmac::{KeyInit as _, Mac as _};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::hmac;
use weir_smb::crypto::{Aead, AesKey, Mac};

/// A key of HMAC-SHA-256.
pub struct HmacSha256(hmac::Key);

impl HmacSha256 {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }
}

impl Mac<32> for HmacSha256 {
    fn tag(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0);
        parts.iter().for_each(|part| context.update(part));
        let mut out = [0; 32];
        out.copy_from_slice(context.sign().as_ref());
        out
    }
}

/// A key of AES-128-CMAC.
pub struct Cmac(cmac::Cmac<Aes128>);

impl Cmac {
    pub(crate) fn new(key: &[u8; 16]) -> Self {
        Self(cmac::Cmac::new(key.into()))
    }
}

impl Mac<16> for Cmac {
    fn tag(&self, parts: &[&[u8]]) -> [u8; 16] {
        // The copy has the expanded key; nothing is expanded again.
        let mut mac = self.0.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }
}

/// A key of AES-GCM. It is there: `ring` refuses a key for its length alone, and neither length of
/// [`AesKey`] is wrong.
pub struct Gcm(Option<LessSafeKey>);

impl Gcm {
    pub(crate) fn new(key: &AesKey) -> Self {
        let key = match key {
            AesKey::Aes128(key) => UnboundKey::new(&AES_128_GCM, key),
            AesKey::Aes256(key) => UnboundKey::new(&AES_256_GCM, key),
        };
        Self(key.ok().map(LessSafeKey::new))
    }
}

impl Aead<12> for Gcm {
    fn seal(&self, nonce: &[u8; 12], aad: &[u8], data: &mut [u8]) -> Option<[u8; 16]> {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = self.0.as_ref()?.seal_in_place_separate_tag(nonce, Aad::from(aad), data).ok()?;
        tag.as_ref().try_into().ok()
    }

    fn open(&self, nonce: &[u8; 12], aad: &[u8], data: &mut [u8], tag: &[u8; 16]) -> bool {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = Tag::from(*tag);
        self.0.as_ref().is_some_and(|key| {
            key.open_in_place_separate_tag(nonce, Aad::from(aad), tag, data, 0..).is_ok()
        })
    }
}

/// A key of AES-CCM with nonces of 11 bytes.
pub struct Ccm(Sized);

enum Sized {
    Aes128(ccm::Ccm<Aes128, U16, U11>),
    Aes256(ccm::Ccm<Aes256, U16, U11>),
}

impl Ccm {
    pub(crate) fn new(key: &AesKey) -> Self {
        Self(match key {
            AesKey::Aes128(key) => Sized::Aes128(ccm::Ccm::new(key.into())),
            AesKey::Aes256(key) => Sized::Aes256(ccm::Ccm::new(key.into())),
        })
    }
}

impl Aead<11> for Ccm {
    fn seal(&self, nonce: &[u8; 11], aad: &[u8], data: &mut [u8]) -> Option<[u8; 16]> {
        let (nonce, data) = (nonce.into(), data.into());
        let tag = match &self.0 {
            Sized::Aes128(key) => key.encrypt_inout_detached(nonce, aad, data),
            Sized::Aes256(key) => key.encrypt_inout_detached(nonce, aad, data),
        };
        Some(tag.ok()?.into())
    }

    fn open(&self, nonce: &[u8; 11], aad: &[u8], data: &mut [u8], tag: &[u8; 16]) -> bool {
        let (nonce, data, tag) = (nonce.into(), data.into(), tag.into());
        match &self.0 {
            Sized::Aes128(key) => key.decrypt_inout_detached(nonce, aad, data, tag),
            Sized::Aes256(key) => key.decrypt_inout_detached(nonce, aad, data, tag),
        }
        .is_ok()
    }
}
