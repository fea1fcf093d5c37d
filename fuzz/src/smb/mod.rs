//! The common part of the targets for SMB: cryptography without chance, messages around bodies, and
//! scripts.

pub mod connection;
pub mod crypto;
mod der;
pub mod kinds;
pub mod login;
pub mod server;

pub use weir_smb::utf16::to_utf16 as utf16;
use weir_smb::wire::{Command, Header, HeaderFlags, Status, TreeOrAsync};

/// The header of a request for `command` of the session 1 and the tree connect 1, which pays for
/// one mebibyte.
#[must_use]
pub fn header(command: Command) -> Header {
    Header {
        credit_charge: 16,
        status: Status::SUCCESS,
        command: Ok(command),
        credits: 1,
        flags: HeaderFlags::empty(),
        next_command: 0,
        message_id: 1,
        tree: TreeOrAsync::Tree(1),
        session_id: 1,
        signature: [0; 16],
    }
}

/// A message of this header and the body that `encode` appends.
pub fn message(header: &Header, encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut message = header.to_bytes().to_vec();
    encode(&mut message);
    message
}

/// A script of steps: for each, a selector (one byte), the length of its bytes (two bytes,
/// big-endian), and the bytes.
pub fn steps(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    // The form is that of scripts of calls.
    crate::script(bytes).map(|(selector, bytes)| (u8::try_from(selector).unwrap_or(0), bytes))
}

/// Appends one step to a script.
pub fn append_step(script: &mut Vec<u8>, selector: u8, bytes: &[u8]) {
    crate::append_call(script, selector.into(), bytes);
}
