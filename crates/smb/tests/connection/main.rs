//! Negotiation and outgoing frames of a connection, with the provider of cryptography.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod frame;
mod negotiate;

use weir_crypto::Provider;
use weir_smb::wire::{Command, Header, HeaderFlags, Status, TreeOrAsync};

/// The header of a request.
fn request(command: Command, message_id: u64) -> Header {
    Header {
        credit_charge: 1,
        status: Status::SUCCESS,
        command: Ok(command),
        credits: 31,
        flags: HeaderFlags::empty(),
        next_command: 0,
        message_id,
        tree: TreeOrAsync::Tree(5),
        session_id: 0x1000_0000_0019,
        signature: [0; 16],
    }
}
