//! The name of a connection: how replies and messages find it from any thread. Not here: its state,
//! which its worker owns.

/// A connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnId {
    /// The worker that owns it.
    pub(crate) worker: usize,
    /// Its number, unlike that of any other of the last four billion connections.
    pub(crate) token: u64,
}
