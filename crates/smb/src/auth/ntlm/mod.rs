//! NTLMv2 (MS-NLMP): the three messages, the proof of a password and the keys that follow from it.
//!
//! A login is an [`Exchange`]: NEGOTIATE, to which the server answers CHALLENGE, and AUTHENTICATE,
//! which proves the password. [`Exchange::judge`] is the whole decision over them, without state.

mod authenticate;
mod av;
mod exchange;
mod flags;
mod keys;
mod names;
mod signature;

#[cfg(any(test, feature = "client"))]
pub(super) mod client;

pub use exchange::{Exchange, Verdict};
pub use flags::Flags;
pub use names::ServerNames;
pub use signature::Signatures;

use crate::le::{u16_at, u32_at};

/// The signature that every message begins with.
pub(super) const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";
/// Types of messages.
pub(super) const NEGOTIATE: u32 = 1;
const CHALLENGE: u32 = 2;
const AUTHENTICATE: u32 = 3;

/// Is it a message of `kind`?
pub(super) fn is_message(bytes: &[u8], kind: u32) -> bool {
    bytes.strip_prefix(SIGNATURE).is_some_and(|rest| rest.starts_with(&kind.to_le_bytes()))
}

/// The bytes of the payload to which the field at `at` points: a length, a length again and an
/// offset (MS-NLMP §2.2.1). `None`: it leaves the message or reaches in front of `payload_at`.
fn payload(message: &[u8], at: usize, payload_at: usize) -> Option<&[u8]> {
    let length = usize::from(u16_at(message, at)?);
    let start = usize::try_from(u32_at(message, at.checked_add(4)?)?).ok()?;
    if length == 0 {
        return Some(&[]);
    }
    if start < payload_at {
        return None;
    }
    message.get(start..start.checked_add(length)?)
}
