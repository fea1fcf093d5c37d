//! NFS as bytes and rules: XDR, ONC RPC, rpcbind, MOUNT v3, NFSv3 and NFSACL over a
//! [`Store`](weir_core::Store).
//!
//! Not here: sockets, clocks, threads, a runtime, export rules and performance contracts. Bytes
//! come in as slices, replies go out as `Vec<u8>`; the crate is `no_std` + `alloc`, so the compiler
//! holds that line.
//!
//! Everything a peer sends is hostile: lengths are checked against what is left and against a
//! named bound ([`limits`]) before anything is allocated, and nothing here panics on input.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

extern crate alloc;

mod access;
pub mod acl;
#[cfg(any(test, feature = "client"))]
pub mod client;
pub mod limits;
pub mod mount;
pub mod nlm;
pub mod nsm;
pub mod rpc;
pub mod rpcbind;
pub mod v3;
mod view;
pub mod xdr;

pub use view::VolumeView;

/// RPC program number of the portmapper and of rpcbind (RFC 1833 §2.1, `RPCBPROG`).
pub const PROGRAM_RPCBIND: u32 = 100_000;

/// RPC program number of NFS (RFC 1813 §3, `NFS_PROGRAM`).
pub const PROGRAM_NFS: u32 = 100_003;

/// RPC program number of NLM (XNFS chapter 10, `NLM_PROG`).
pub const PROGRAM_NLM: u32 = 100_021;

/// RPC program number of NSM (XNFS chapter 11, `SM_PROG`).
pub const PROGRAM_NSM: u32 = 100_024;

/// RPC program number of MOUNT (RFC 1813 §5.1, `MOUNT_PROGRAM`).
pub const PROGRAM_MOUNT: u32 = 100_005;

/// RPC program number of NFSACL (`NFS_ACL_PROGRAM`).
pub const PROGRAM_NFSACL: u32 = 100_227;
