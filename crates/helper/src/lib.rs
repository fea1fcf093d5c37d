//! The helper of a gateway's machine: a process that outlives the server's, owns the addresses of
//! the machine, and tells other gateways when the server's process has ended.
//!
//! [`serve`] is the helper. It has a socket for the server, to which it answers as long as the
//! process that made the link lives; [`Client`] is the server's end. A server announces its life;
//! the helper holds a descriptor of its process. When that ends, the helper removes the addresses,
//! and only then says that the life has ended, to all gateways that it knows, and to those that
//! ask. Then the next process may come. A helper that was started after a life knows nothing of it,
//! and says nothing.
//!
//! The words to other gateways are those of the protocol of several gateways
//! ([`weir_cluster::HelperWord`]). They go over links that prove that it is the helper of this
//! gateway that speaks ([`weir_links::Role`]).
//!
//! Not here: addresses in the kernel (`weir-address`), links (`weir-links`), and what a helper's
//! word means (`weir-cluster`).
#![forbid(unsafe_code)]

mod client;
mod daemon;
mod knowledge;
mod seat;
mod session;
mod stream;
mod wire;

pub use client::{Attached, Client, ClientError, REPORTS_MAX, Reports};
pub use daemon::{Options, ServeError, SocketMode, serve};
pub use weir_address::Hook;
