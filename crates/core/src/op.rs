//! The kinds of operations, as far as a performance contract tells them apart. Not here: the
//! operations of any protocol.

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpClass {
    /// It touches no volume.
    Null,
    /// Names or attributes.
    Metadata,
    /// Moves data to the client.
    Read,
    /// Moves data from the client.
    Write,
    /// Waits for stable storage.
    Commit,
}
