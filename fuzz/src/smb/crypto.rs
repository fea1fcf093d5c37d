//! The provider with random bytes that are always the same, so that an input does the same each
//! time and a corpus can hold logins and sealed frames that are right.

use weir_crypto::{Ccm, Cmac, Gcm, Gmac, HmacSha256, Provider};
use weir_smb::crypto::{AesKey, Crypto, NoRandom};

/// The provider.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed;

impl Crypto for Fixed {
    type HmacSha256 = HmacSha256;
    type AesCmac = Cmac;
    type AesGmac = Gmac;
    type AesGcm = Gcm;
    type AesCcm = Ccm;

    fn hmac_sha256(&self, key: &[u8]) -> HmacSha256 {
        Provider.hmac_sha256(key)
    }

    fn aes_cmac(&self, key: &[u8; 16]) -> Cmac {
        Provider.aes_cmac(key)
    }

    fn aes_gmac(&self, key: &[u8; 16]) -> Gmac {
        Provider.aes_gmac(key)
    }

    fn aes_gcm(&self, key: &AesKey) -> Gcm {
        Provider.aes_gcm(key)
    }

    fn aes_ccm(&self, key: &AesKey) -> Ccm {
        Provider.aes_ccm(key)
    }

    fn sha512(&self, parts: &[&[u8]]) -> [u8; 64] {
        Provider.sha512(parts)
    }

    fn hmac_md5(&self, key: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
        Provider.hmac_md5(key, parts)
    }

    fn md4(&self, data: &[u8]) -> [u8; 16] {
        Provider.md4(data)
    }

    fn md5(&self, parts: &[&[u8]]) -> [u8; 16] {
        Provider.md5(parts)
    }

    fn rc4(&self, key: &[u8; 16], data: &mut [u8]) {
        Provider.rc4(key, data);
    }

    fn random(&self, out: &mut [u8]) -> Result<(), NoRandom> {
        out.fill(0x5a);
        Ok(())
    }

    fn equal(&self, a: &[u8; 16], b: &[u8; 16]) -> bool {
        Provider.equal(a, b)
    }
}
