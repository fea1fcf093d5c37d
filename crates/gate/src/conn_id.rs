//! The name of a connection: how replies and messages find it from any thread. Not here: its state,
//! which its worker owns.

/// A connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnId {
    /// The worker that owns it.
    pub worker: usize,
    /// Its number, unlike that of any other of the last four billion connections.
    pub token: u64,
}

impl ConnId {
    /// The number that tells the connection from others, for people.
    pub const fn serial(self) -> u64 {
        self.token >> 32
    }
}
