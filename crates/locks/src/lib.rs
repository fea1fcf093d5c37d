//! The locks of all volumes, for all protocols: the tables of locks over shared books, under one
//! mutex, and the order of the calls about them.
//!
//! Every thread reaches them through a [`LockDoor`]. A worker never waits for the mutex: it tries
//! it when the call's turn has come, and hands the call to a thread that may wait if the mutex is
//! in use or the call takes long. READ and WRITE do not come here.
//!
//! The meaning of a lock is decided in `weir_state`. Not here: protocols, their waiters `W`, and
//! who may lock a file, which are those of the server's sessions.

#![forbid(unsafe_code)]

mod aside;
mod calls;
mod door;
mod filter;
mod limits;
mod sync;

pub use door::{LockCall, LockDoor, LockedTables};
pub use filter::{FileFilter, VolumeFilters};
pub use limits::LOCK_CALLS_MAX;
