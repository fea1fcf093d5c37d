//! The data plane over a disk that fails: what clients are told, and what goes on undisturbed.
//!
//! Everything is real but the disk: sockets, workers, gates and the local store, over a kernel
//! that obeys the test (see [`weir_store::testing`]).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod data;
mod names;
mod power;
mod slow;
mod syncs;
mod watch;
mod world;
