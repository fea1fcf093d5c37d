//! The MOUNT protocol, version 3 (RFC 1813 §5): how a client gets the first file handle.
//!
//! The program knows no export rule: an [`Exports`] says what may be mounted.

mod ops;
pub mod wire;

pub use ops::{Export, Exports, Mount, MountGrant, serve};
pub use wire::MountStatus;

/// The version number of the protocol (RFC 1813 §5.1, `MOUNT_V3`).
pub const VERSION: u32 = 3;
