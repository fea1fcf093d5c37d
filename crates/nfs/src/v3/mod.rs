//! NFS version 3 (RFC 1813): wire types and operations over a [`Store`](weir_core::Store).
//!
//! The program knows no export rule and no performance contract; the caller's identity and rights
//! are decided before.

pub(crate) mod ops;
mod route;
mod serve;
mod status;
mod uses;
pub mod wire;

pub use route::{Route, changes_names};
pub use serve::{Served, again, null, refuse, serve};
pub use uses::Uses;

/// The version number of the protocol (RFC 1813 §3, `NFS_V3`).
pub const VERSION: u32 = 3;
