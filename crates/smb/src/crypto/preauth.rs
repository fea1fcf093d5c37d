//! The hash of the messages before authentication (MS-SMB2 §3.3.5.4, §3.3.5.5).

use super::Crypto;

/// The running SHA-512 over the messages before authentication. A connection begins one with its
/// first NEGOTIATE; each session setup continues a copy of it. Keys derived from it differ if a
/// message was changed on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preauth([u8; 64]);

impl Preauth {
    /// The hash before the first message.
    #[must_use]
    pub const fn new() -> Self {
        Self([0; 64])
    }

    /// Takes in a message, from its SMB2 header to its end. These are the messages of a
    /// connection: NEGOTIATE and its response; and those of a session: each SESSION_SETUP request
    /// and each response but the last, which is already signed with the keys.
    pub fn update<C: Crypto>(&mut self, crypto: &C, message: &[u8]) {
        self.0 = crypto.sha512(&[&self.0, message]);
    }

    /// The hash of the messages so far.
    #[must_use]
    pub const fn value(&self) -> &[u8; 64] {
        &self.0
    }
}

impl Default for Preauth {
    fn default() -> Self {
        Self::new()
    }
}
