//! Bounds on what a peer may send through a named pipe.

/// Largest fragment, in bytes, both ways. The answer to a bind contains it; beyond it the pipe is
/// broken.
pub const FRAGMENT_BYTES_MAX: u16 = 4280;

/// The fragment that every implementation takes, in bytes (C706 §12.6.3.1, MustRecvFragSize).
pub const FRAGMENT_BYTES_LEAST: u16 = 1432;

/// Largest input of a call, in bytes, over all its fragments. Beyond: the pipe is broken. The calls
/// answered take a few names.
pub const CALL_BYTES_MAX: usize = 16 << 10;

/// Most contexts of one bind, and most accepted ones of a pipe. Beyond: the bind is refused.
pub const CONTEXTS_MAX: usize = 16;

/// Unread output of a pipe, in bytes, from which on it takes no further calls: a pipe holds one
/// answer. Beyond: the pipe is broken, as no client calls again before it has read.
pub const UNREAD_BYTES_MAX: usize = 4 << 10;

/// Most shares in one answer. The client may resume the listing for the rest.
pub const SHARES_MAX: usize = 4096;
