//! The identity of one call of one client: a protocol recognizes a repeated call by it, and a store
//! keeps it on record with the call's change.

use crate::handle::ObjectKey;

/// One call of one client, however often the client sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    /// The client's address: IPv4 as its IPv6-mapped form.
    pub client: u128,
    /// The number that the client gave the call.
    pub xid: u32,
    /// The number of the procedure.
    pub procedure: u32,
    /// A checksum of the caller and of the arguments, under a secret that outlives the process.
    pub print: u64,
}

/// A call that succeeded, in this process or an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The call.
    pub call: CallId,
    /// The object that the call made, if its procedure makes objects.
    pub made: Option<ObjectKey>,
}
