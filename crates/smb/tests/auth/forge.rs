//! A client made by hand, each rule of which can be broken. It shares nothing with the client of
//! the crate.

use super::{PASSWORD, Provider, USER, utf16};
use weir_smb::auth::nt_hash;
use weir_smb::crypto::Crypto as _;

/// Unicode, target, sign, NTLM, always sign, extended session security, target info, 128 bits, key
/// exchange.
pub(crate) const FLAGS: u32 = 0x6088_8215;

/// The message integrity code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mic {
    /// The right one, announced.
    Right,
    /// Announced, and zeros sent.
    Zeros,
    /// Not announced, without room for it, as the kernel client of Linux.
    None,
}

/// The client. What is not set is right.
#[derive(Clone)]
pub(crate) struct Forge {
    pub(crate) user: String,
    pub(crate) domain: String,
    /// In place of the domain, in the key of the response.
    pub(crate) key_domain: Option<String>,
    pub(crate) password: String,
    pub(crate) flags: u32,
    pub(crate) mic: Mic,
    /// In place of the right LM response.
    pub(crate) lm: Vec<u8>,
    /// In place of the right proof.
    pub(crate) proof: Option<[u8; 16]>,
    /// In place of the whole right response.
    pub(crate) response: Option<Vec<u8>>,
    /// In place of the pairs, after the proof was made over the right ones.
    pub(crate) pairs_after_proof: Option<Vec<u8>>,
}

impl Default for Forge {
    fn default() -> Self {
        Self {
            user: USER.into(),
            domain: String::new(),
            key_domain: None,
            password: PASSWORD.into(),
            flags: FLAGS,
            mic: Mic::Right,
            lm: vec![0; 24],
            proof: None,
            response: None,
            pairs_after_proof: None,
        }
    }
}

impl Forge {
    /// NEGOTIATE with the flags of this client.
    pub(crate) fn negotiate(&self) -> Vec<u8> {
        [b"NTLMSSP\0\x01\0\0\0", &self.flags.to_le_bytes()[..], &[0; 16]].concat()
    }

    /// AUTHENTICATE, and the session key of the client.
    pub(crate) fn authenticate(&self, negotiate: &[u8], challenge: &[u8]) -> (Vec<u8>, [u8; 16]) {
        let hash = nt_hash(&Provider, &self.password).0;
        let domain = self.key_domain.as_ref().unwrap_or(&self.domain);
        let names = [utf16(&self.user.to_uppercase()), utf16(domain)].concat();
        let key = Provider.hmac_md5(&hash, &[&names]);
        let pairs = pairs(challenge, self.mic != Mic::None);
        let head = [&[1, 1, 0, 0, 0, 0, 0, 0][..], &[9; 8], &[7; 8], &[0; 4]].concat();
        let proved = [&head, &pairs[..]].concat();
        let proof = Provider.hmac_md5(&key, &[&challenge[24..32], &proved]);
        let base_key = Provider.hmac_md5(&key, &[&proof]);
        let sent = self.pairs_after_proof.as_ref().map_or(&pairs, |pairs| pairs);
        let response = [&self.proof.unwrap_or(proof)[..], &head, sent].concat();
        let response = self.response.clone().unwrap_or(response);

        let mut session_key = [0x55; 16];
        let mut encrypted = session_key;
        Provider.rc4(&base_key, &mut encrypted);
        if self.flags & 0x4000_0000 == 0 {
            session_key = base_key;
        }
        let mut message = self.message(&response, &encrypted);
        if self.mic == Mic::Right {
            let mic = Provider.hmac_md5(&session_key, &[negotiate, challenge, &message]);
            message[72..88].copy_from_slice(&mic);
        }
        (message, session_key)
    }

    fn message(&self, response: &[u8], encrypted: &[u8]) -> Vec<u8> {
        let payload_at = if self.mic == Mic::None { 64 } else { 88 };
        let names = [utf16(&self.domain), utf16(&self.user), utf16("DESK")];
        let values = [&self.lm, response, &names[0], &names[1], &names[2], encrypted];
        let mut message = b"NTLMSSP\0\x03\0\0\0".to_vec();
        let mut at = payload_at;
        for value in values {
            message.extend(u16::try_from(value.len()).unwrap().to_le_bytes());
            message.extend(u16::try_from(value.len()).unwrap().to_le_bytes());
            message.extend(u32::try_from(at).unwrap().to_le_bytes());
            at += value.len();
        }
        message.extend(self.flags.to_le_bytes());
        message.resize(payload_at, 0);
        message.extend(values.concat());
        message
    }
}

/// The pairs of a CHALLENGE, with the announcement of a MIC in front if there is one, and four
/// zeros behind.
pub(crate) fn pairs(challenge: &[u8], has_mic: bool) -> Vec<u8> {
    let length = usize::from(u16::from_le_bytes(challenge[40..42].try_into().unwrap()));
    let at = usize::try_from(u32::from_le_bytes(challenge[44..48].try_into().unwrap())).unwrap();
    let flags: &[u8] = if has_mic { &[6, 0, 4, 0, 2, 0, 0, 0] } else { &[] };
    [flags, &challenge[at..at + length], &[0; 4]].concat()
}
