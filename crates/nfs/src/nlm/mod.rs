//! NLM version 4, the lock manager beside NFSv3 (X/Open XNFS, C702, chapters 10 and 14;
//! RFC 1813 §6), over the tables of locks that all protocols share.
//!
//! The way of a call: [`Request::parse`], then the server proves the handle in [`Request::target`]
//! and finds the file, makes sure that the host in [`Request::monitors`] will be told of a restart,
//! and asks [`LockManager::serve`]. That gives the reply, and the locks that others got. A waiter
//! of NLM is told by a [`Callback`]; [`LockManager::delivered`] takes what came of that.
//!
//! Not here: sockets, the clock, export rules, and whether a file exists. Versions 1 and 3 of the
//! protocol, with 32-bit offsets, belong to NFSv2 and are refused.

mod callback;
mod host;
mod manager;
mod ops;
mod request;
mod states;
mod status;
pub mod wire;

pub use callback::{Callback, Delivery, Next};
pub use host::{Host, process, same_name};
pub use manager::{LockManager, Peer, Served, Waiting};
pub use request::{Need, Request, Target};
pub use wire::{Procedure, Status};

/// The version number of the protocol (RFC 1813 §6.2, `NLM4_VERS`).
pub const VERSION: u32 = 4;
