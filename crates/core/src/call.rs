//! What tells one call of one client from every other: as a protocol recognizes a call that comes
//! again, and as a store keeps it on record with what the call changed.

use crate::handle::ObjectKey;

/// One call of one client, however often it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    /// The client's address: IPv4 as its IPv6-mapped form.
    pub client: u128,
    /// The number that the client gave the call.
    pub xid: u32,
    /// What it calls.
    pub procedure: u32,
    /// A checksum of the caller and of the arguments, under a secret that outlives the process.
    pub print: u64,
}

/// A call that succeeded, in this process or an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The call.
    pub call: CallId,
    /// The object that it made, if it is one that makes objects.
    pub made: Option<ObjectKey>,
}
