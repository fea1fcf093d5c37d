//! The key of a cluster and the secrets that it seals: the shared store holds none that can be read
//! without it. The key comes from the key file that each gateway has (`weir_links::KeyFile`), which
//! is not read here.
//!
//! AES-256-GCM binds each secret to its key in the store, so that a secret that is moved to another
//! place, or to another cluster, opens nothing. Password hashes are sealed by `smb.key` for one
//! user (`sealer`), and `smb.key` is such a secret.

use super::document::{hex, unhex};
use crate::directory;
use crate::error::{CatalogError, ClusterError, Result};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use std::fmt;
use std::io;

/// The version of a sealed secret, its first byte: nonce, encrypted secret and tag follow.
const SEALED: u8 = 1;
const KEY_BYTES: usize = 32;
/// Longest secret, in bytes: the tokens of the API.
const SECRET_BYTES_MAX: usize = 256 << 10;

/// The secrets that a cluster shares, by the names of the files that they are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secret {
    /// The secret that seals file handles.
    Handles,
    /// The secret that signs reports.
    Reports,
    /// The key that seals password hashes.
    Passwords,
    /// The tokens of the API, as hashes.
    Tokens,
}

impl Secret {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Handles, Self::Reports, Self::Passwords, Self::Tokens];

    /// The name of its file in a data directory.
    pub(crate) const fn file(self) -> &'static str {
        match self {
            Self::Handles => "handle.key",
            Self::Reports => "report.key",
            Self::Passwords => "smb.key",
            Self::Tokens => "api.tokens",
        }
    }

    /// The key in the shared store, without the prefix of the catalogue.
    pub(crate) fn path(self) -> String {
        format!("secrets/{}", self.file())
    }
}

/// The key of a cluster that seals its secrets.
#[derive(Clone)]
pub struct ClusterKey([u8; KEY_BYTES]);

/// The text omits the key, so that no log contains it.
impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey")
    }
}

impl ClusterKey {
    /// The key with these bytes. They are for this use alone.
    #[must_use]
    pub const fn new(key: [u8; KEY_BYTES]) -> Self {
        Self(key)
    }

    fn cipher(&self) -> Option<LessSafeKey> {
        UnboundKey::new(&AES_256_GCM, &self.0).ok().map(LessSafeKey::new)
    }

    /// `secret` in the form that is stored under `key`.
    pub(crate) fn seal(&self, key: &str, secret: &[u8]) -> Result<String> {
        let random = directory::random::<NONCE_LEN>()?;
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&random);
        let mut text = secret.to_vec();
        let place = Aad::from(bound_to(key));
        let unique = Nonce::assume_unique_for_key(nonce);
        let sealed = self
            .cipher()
            .and_then(|cipher| cipher.seal_in_place_append_tag(unique, place, &mut text).ok());
        sealed.ok_or_else(|| CatalogError::Io {
            path: key.into(),
            source: io::Error::other("the secret cannot be sealed"),
        })?;
        Ok(hex(&[&[SEALED][..], &nonce, &text].concat()))
    }

    /// The secret that was stored under `key`.
    ///
    /// # Errors
    /// `WrongKey` if it was sealed by another key or for another place, or is damaged.
    pub(crate) fn open(&self, key: &str, sealed: &str) -> Result<Vec<u8>> {
        let opened = || {
            let cipher = self.cipher()?;
            let bytes = unhex(sealed).filter(|bytes| bytes.len() <= SECRET_BYTES_MAX)?;
            let (version, rest) = bytes.split_first()?;
            let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>()?;
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let mut text = text.to_vec();
            let place = Aad::from(bound_to(key));
            let opened = cipher.open_in_place(nonce, place, &mut text).ok()?;
            (*version == SEALED).then(|| opened.to_vec())
        };
        Ok(opened().ok_or_else(|| ClusterError::WrongKey { key: key.to_owned() })?)
    }
}

/// The circumstances that a sealed secret belongs to: version and place.
fn bound_to(key: &str) -> Vec<u8> {
    [&[SEALED][..], b"weir cluster secret\0", key.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_opened_in_its_place_by_its_key_alone() {
        let (ours, theirs) = (ClusterKey::new([1; KEY_BYTES]), ClusterKey::new([2; KEY_BYTES]));
        let sealed = ours.seal("/weir/a/secrets/x", b"secret").unwrap();
        assert_eq!(ours.open("/weir/a/secrets/x", &sealed).unwrap(), b"secret");
        assert_ne!(ours.seal("/weir/a/secrets/x", b"secret").unwrap(), sealed);
        assert!(!sealed.contains(&hex(b"secret")));
        for refused in [
            ours.open("/weir/a/secrets/y", &sealed),
            theirs.open("/weir/a/secrets/x", &sealed),
            ours.open("/weir/a/secrets/x", &sealed[2..]),
            ours.open("/weir/a/secrets/x", &sealed.replace(&sealed[..2], "02")),
            ours.open("/weir/a/secrets/x", "x"),
            ours.open("/weir/a/secrets/x", ""),
        ] {
            assert_eq!(refused.unwrap_err().code(), "wrong_cluster_key");
        }
    }

    #[test]
    fn no_text_has_the_key() {
        assert_eq!(format!("{:?}", ClusterKey::new([7; KEY_BYTES])), "ClusterKey");
    }
}
