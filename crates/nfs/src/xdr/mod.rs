//! XDR (RFC 4506): reading from a borrowed slice, writing to a pooled vector, and the two traits
//! that every wire type has.
//!
//! Decoding allocates nothing: opaque data is a slice of the input. Pad bytes are skipped
//! whatever their value (RFC 4506 §3 wants zeros, peers in the field do not check) and written
//! as zeros.

mod error;
mod list;
mod message;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use error::XdrError;
pub use list::List;
pub use message::{Decode, Encode, decode};
pub(crate) use message::{xdr_bits, xdr_newtype, xdr_opaque, xdr_struct};
pub use reader::Reader;
pub use writer::Writer;

/// Bytes of padding after `len` bytes of opaque data (RFC 4506 §4.9).
#[inline]
pub(crate) const fn padding(len: usize) -> usize {
    len.wrapping_neg() & 3
}
