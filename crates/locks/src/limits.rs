//! The bounds of this crate. Each says what happens when it is reached.

/// Calls to the lock manager that are not answered yet, all clients. Beyond: refused with a system
/// error, and clients ask again.
pub const LOCK_CALLS_MAX: usize = 4096;

/// Divisor for the unanswered lock manager calls of one origin: one in so many of the room that the
/// others leave, and at least [`LOCK_CALLS_ORIGIN_MIN`]. Beyond: refused like calls beyond
/// [`LOCK_CALLS_MAX`].
pub(crate) const LOCK_CALLS_ORIGIN_ONE_IN: usize = 4;

/// See [`LOCK_CALLS_ORIGIN_ONE_IN`].
pub(crate) const LOCK_CALLS_ORIGIN_MIN: usize = 16;
