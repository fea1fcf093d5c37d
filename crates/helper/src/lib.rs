//! The helper of a gateway's machine: a process that outlives the server's, owns the addresses of
//! the machine, and tells other gateways when the server's process has ended.
//!
//! [`Client`] is the server's end of the link to it. A server announces its life; the helper then
//! holds a descriptor of its process. When that ends, the helper removes the addresses, and only
//! then says that the life has ended. The messages to other gateways are those of the protocol of
//! several gateways ([`weir_cluster::HelperWord`]).
//!
//! Not here: addresses in the kernel (`weir-address`), links (`weir-links`), and what a helper's
//! word means (`weir-cluster`).
#![forbid(unsafe_code)]

mod client;
mod wire;

pub use client::{Attached, Client, ClientError, REPORTS_MAX, Reports};
