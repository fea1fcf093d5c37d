//! Signatures of messages after a login (MS-NLMP §3.4.4.2, §3.4.5), as far as SPNEGO needs them:
//! the first message of either side. SMB signs by its own keys.

use super::Flags;
use crate::crypto::{Crypto, Role};

/// Magic constants, each with its final zero.
const CLIENT_SIGNING: &[u8] = b"session key to client-to-server signing key magic constant\0";
const SERVER_SIGNING: &[u8] = b"session key to server-to-client signing key magic constant\0";
const CLIENT_SEALING: &[u8] = b"session key to client-to-server sealing key magic constant\0";
const SERVER_SEALING: &[u8] = b"session key to server-to-client sealing key magic constant\0";

const VERSION: [u8; 4] = [1, 0, 0, 0];

/// The signatures that follow a login.
pub struct Signatures<'a, C: Crypto> {
    crypto: &'a C,
    session_key: &'a [u8; 16],
    flags: Flags,
}

impl<'a, C: Crypto> Signatures<'a, C> {
    /// Takes the session key and the flags of both sides.
    pub const fn new(crypto: &'a C, session_key: &'a [u8; 16], flags: Flags) -> Self {
        Self { crypto, session_key, flags }
    }

    /// The signature of the first message that `sender` signs.
    #[must_use]
    pub fn first(&self, sender: Role, message: &[u8]) -> [u8; 16] {
        let (signing, sealing) = match sender {
            Role::Client => (CLIENT_SIGNING, CLIENT_SEALING),
            Role::Server => (SERVER_SIGNING, SERVER_SEALING),
        };
        let sequence = [0; 4];
        let signing_key = self.crypto.md5(&[self.session_key, signing]);
        let hash = self.crypto.hmac_md5(&signing_key, &[&sequence, message]);
        let mut checksum = hash;
        if self.flags.contains(Flags::KEY_EXCHANGE) {
            // Keys have 128 bits, which every login must negotiate.
            let sealing_key = self.crypto.md5(&[self.session_key, sealing]);
            self.crypto.rc4(&sealing_key, &mut checksum);
        }
        let fields = VERSION.into_iter().chain(checksum.into_iter().take(8)).chain(sequence);
        let mut signature = [0; 16];
        for (to, from) in signature.iter_mut().zip(fields) {
            *to = from;
        }
        signature
    }
}
