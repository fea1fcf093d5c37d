//! The NT hash of a password.

#[cfg(any(test, feature = "client"))]
use crate::crypto::Crypto;
#[cfg(any(test, feature = "client"))]
use crate::utf16::to_utf16;

/// The NT hash of a password. It is as good as the password, so it has no `Debug`.
#[derive(Clone, Copy)]
pub struct NtHash(pub [u8; 16]);

/// The NT hash: MD4 of the password in UTF-16 (MS-NLMP §3.3.1, `NTOWFv1`). For clients: a server
/// gets the hash from its directory of users.
#[cfg(any(test, feature = "client"))]
pub fn nt_hash<C: Crypto>(crypto: &C, password: &str) -> NtHash {
    NtHash(crypto.md4(&to_utf16(password)))
}
