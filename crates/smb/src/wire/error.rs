//! The errors in messages.

use crate::le::Truncated;

/// Why bytes are not the message they should be. It names the rule the peer broke. A server answers
/// a malformed body with `STATUS_INVALID_PARAMETER`, and ends the connection for a malformed header
/// or chain (MS-SMB2 §3.3.5.2.6, §3.3.5.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The input ends within a value.
    #[error(transparent)]
    Truncated(#[from] Truncated),
    /// The first bytes name no protocol that is understood here.
    #[error("the protocol identifier is {found:02x?}")]
    Protocol {
        /// The bytes as sent.
        found: [u8; 4],
    },
    /// The size of the fixed part is not the one of this message.
    #[error("the structure size is {found} instead of {expected}")]
    StructureSize {
        /// The size of this message.
        expected: u16,
        /// The size as sent.
        found: u16,
    },
    /// The command has no number that MS-SMB2 §2.2.1 defines.
    #[error(transparent)]
    UnknownCommand(#[from] super::UnknownCommand),
    /// A part lies outside of its message, or within the fixed part.
    #[error("{what}: {len} bytes at offset {offset} are not in the variable part of the message")]
    OutOfPlace {
        /// The part.
        what: &'static str,
        /// The offset as sent.
        offset: usize,
        /// The length as sent.
        len: usize,
    },
    /// An offset is not a multiple of eight.
    #[error("{what} is at offset {offset}, which is not a multiple of 8")]
    Misaligned {
        /// The part.
        what: &'static str,
        /// The offset as sent.
        offset: usize,
    },
    /// A count or length is over its bound; nothing of it was read.
    #[error("{what} has {len} elements or bytes; the maximum is {max}")]
    TooLong {
        /// The value.
        what: &'static str,
        /// The count or length as sent.
        len: usize,
        /// The bound.
        max: usize,
    },
    /// A length is not one that the value can have.
    #[error("{what} cannot have {len} bytes")]
    BadLength {
        /// The value.
        what: &'static str,
        /// The length as sent.
        len: usize,
    },
    /// A value is none that the protocol defines for its place.
    #[error("{what} has the invalid value {value:#x}")]
    BadValue {
        /// The field.
        what: &'static str,
        /// The value as sent.
        value: u64,
    },
}
