//! The errors in XDR input.

/// Why bytes are not the XDR value they should be. It names the rule the peer broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XdrError {
    /// The input ends within a value.
    #[error("input ends early: {needed} bytes needed, {left} left")]
    Truncated {
        /// Bytes the value takes.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// A variable-length value is over its bound; nothing of it was read.
    #[error("{what} has {len} elements or bytes; the maximum is {max}")]
    TooLong {
        /// The value.
        what: &'static str,
        /// The length as sent.
        len: usize,
        /// The bound.
        max: usize,
    },
    /// An enumeration or union has a value the protocol does not define.
    #[error("{what} has the invalid value {value}")]
    BadDiscriminant {
        /// The type.
        what: &'static str,
        /// The value as sent.
        value: u32,
    },
    /// Bytes are left after the last value.
    #[error("{left} bytes follow the last value")]
    Trailing {
        /// The number of bytes left.
        left: usize,
    },
}
