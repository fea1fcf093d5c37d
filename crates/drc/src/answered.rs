//! A cached reply as plain data, with which it moves to another server. The fingerprint means the
//! same there, because all servers of a cluster have one secret. Not here: its encoding.

use crate::key::CallKey;
use std::time::Duration;
use weir_qos::ClientKey;

/// The reply to a call that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The client's address: IPv4 as its IPv6-mapped form.
    pub client: u128,
    /// The number that the client gave the call.
    pub xid: u32,
    /// The number of the program.
    pub program: u32,
    /// The number of the procedure.
    pub procedure: u32,
    /// The fingerprint of the caller and of the arguments.
    pub print: u64,
    /// Time since the call was answered.
    pub age: Duration,
    /// The reply, with its record mark.
    pub reply: Vec<u8>,
}

impl Answered {
    pub(super) fn new(client: ClientKey, key: CallKey, (age, reply): (Duration, Vec<u8>)) -> Self {
        let CallKey { xid, program, procedure, print } = key;
        Self { client: client.0, xid, program, procedure, print, age, reply }
    }

    pub(super) fn call(&self) -> (ClientKey, CallKey) {
        let Self { client, xid, program, procedure, print, .. } = *self;
        (ClientKey(client), CallKey { xid, program, procedure, print })
    }
}
