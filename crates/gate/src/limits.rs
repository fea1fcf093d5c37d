//! The bounds of gates, with what happens when one is reached. Not here: the bound on the memory of
//! all requests that wait, which is configured (`parked_total_mib`).

use weir_core::limits::IO_BYTES_MAX;

/// Bytes that the requests in flight and the unsent replies of one connection hold. Beyond: it is
/// not read, and its requests stay at their gates.
pub const REPLY_BYTES_MAX: usize = 4 << 20;

/// Parked memory of one volume: at least this, whatever its rate.
pub(crate) const PARKED_VOLUME_MIN: u64 = 16 << 20;

/// Upper bound on the parked memory of one volume, whatever its rate. Beyond: connections of
/// clients that have an equal part of it or more are not read; a client with less goes on up to
/// that part.
pub(crate) const PARKED_VOLUME_MAX: u64 = 64 << 20;

/// Parked memory of one volume is otherwise what its tightest limit moves in this many seconds.
pub(crate) const PARKED_SECONDS: u64 = 20;

/// Bytes that a limit of operations counts for each operation: as much as custom pools have for
/// one.
pub(crate) const PARKED_OPERATION_BYTES: u64 = 64 << 10;

/// Parked memory that each client of a volume may have while all volumes together have more than
/// they may (`parked_total_mib`). Beyond: its connections are not read.
pub(crate) const PARKED_CLIENT_MIN: u64 = 1 << 20;

/// Memory of one waiting request beside its record, in bytes.
pub(crate) const PARKED_OVERHEAD: usize = 512;

const _: () = assert!(PARKED_VOLUME_MIN >= 16 * IO_BYTES_MAX as u64);
const _: () = assert!(REPLY_BYTES_MAX > 2 * IO_BYTES_MAX as usize);
