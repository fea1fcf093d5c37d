//! The portmapper: version 2 (RFC 1833 §3, earlier RFC 1057 appendix A) and rpcbind versions 3 and
//! 4 (RFC 1833 §2), by which clients find the port of a program.
//!
//! A [`Registry`] holds what is registered, [`serve`] answers calls from it. Left out, and answered
//! PROC_UNAVAIL: calls on behalf of others (CALLIT, BCAST, INDIRECT), which let strangers borrow
//! the server's address; and GETADDRLIST, GETSTAT and the two conversions of addresses, which no
//! client needs. What rests on sockets, such as who may register, comes as an argument.

mod address;
mod ops;
mod registry;
pub mod wire;

pub use address::{Netid, Universal, universal};
pub use ops::{Caller, serve};
pub use registry::{Entry, Registry};

/// The port that every portmapper listens on (RFC 1833 §3.1).
pub const PORT: u16 = 111;

/// The version of the portmapper protocol for IPv4 (RFC 1833 §3.1, `PMAP_VERS`).
pub const PORTMAP: u32 = 2;

/// The older version of rpcbind (RFC 1833 §2.1, `RPCBVERS`).
pub const RPCBIND_3: u32 = 3;

/// The newer version of rpcbind (RFC 1833 §2.1, `RPCBVERS4`).
pub const RPCBIND_4: u32 = 4;
