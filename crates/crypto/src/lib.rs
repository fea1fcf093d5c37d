//! The provider of cryptography for SMB: [`Provider`] implements [`Crypto`]. `ring` has everything
//! on the way of a request under a modern cipher; the RustCrypto crates have the algorithms that
//! `ring` lacks: CMAC and CCM, and MD4, MD5 and RC4 of NTLM.
//!
//! Not here: a protocol. No key is made here and none is kept.
#![forbid(unsafe_code)]

mod gmac;
mod keys;

pub use gmac::Gmac;
pub use keys::{Ccm, Cmac, Gcm, HmacSha256};

use hmac::digest::CtOutput;
use hmac::{Hmac, KeyInit as _, Mac as _};
use md4::Md4;
use md5::{Digest as _, Md5};
use rc4::{Rc4, StreamCipher as _};
use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};
use weir_smb::crypto::{AesKey, Crypto, NoRandom};

/// The provider. It has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Provider;

impl Crypto for Provider {
    type HmacSha256 = HmacSha256;
    type AesCmac = Cmac;
    type AesGmac = Gmac;
    type AesGcm = Gcm;
    type AesCcm = Ccm;

    fn hmac_sha256(&self, key: &[u8]) -> HmacSha256 {
        HmacSha256::new(key)
    }

    fn aes_cmac(&self, key: &[u8; 16]) -> Cmac {
        Cmac::new(key)
    }

    fn aes_gmac(&self, key: &[u8; 16]) -> Gmac {
        Gmac::new(key)
    }

    fn aes_gcm(&self, key: &AesKey) -> Gcm {
        Gcm::new(key)
    }

    fn aes_ccm(&self, key: &AesKey) -> Ccm {
        Ccm::new(key)
    }

    fn sha512(&self, parts: &[&[u8]]) -> [u8; 64] {
        let mut context = digest::Context::new(&digest::SHA512);
        for part in parts {
            context.update(part);
        }
        let mut out = [0; 64];
        out.copy_from_slice(context.finish().as_ref());
        out
    }

    fn hmac_md5(&self, key: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
        // A key shorter than a block is one filled up with zeros (RFC 2104 §2).
        let mut block = [0; 64];
        block[..16].copy_from_slice(key);
        let mut mac = Hmac::<Md5>::new(&block.into());
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    fn md4(&self, data: &[u8]) -> [u8; 16] {
        Md4::digest(data).into()
    }

    fn md5(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut context = Md5::new();
        for part in parts {
            context.update(part);
        }
        context.finalize().into()
    }

    fn rc4(&self, key: &[u8; 16], data: &mut [u8]) {
        // The crate's type takes 32 bytes. RC4 repeats a short key, so this is the same key.
        let mut twice = [0; 32];
        for half in twice.chunks_exact_mut(key.len()) {
            half.copy_from_slice(key);
        }
        Rc4::new(&twice.into()).apply_keystream(data);
    }

    fn random(&self, out: &mut [u8]) -> Result<(), NoRandom> {
        SystemRandom::new().fill(out).map_err(|_| NoRandom)
    }

    fn equal(&self, a: &[u8; 16], b: &[u8; 16]) -> bool {
        CtOutput::<Md5>::new((*a).into()) == CtOutput::new((*b).into())
    }
}
