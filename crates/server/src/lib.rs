//! The data plane as a library, and the start and stop of the whole server: workers that own
//! connections, sessions of protocols, and the gates where requests wait for their contract.
//! `crates/weir` is a thin `main` over [`serve`](serve::serve).
//!
//! Not here: parsing of a protocol (`weir-nfs`), system calls on files (`weir-store`), the
//! arithmetic of a contract (`weir-qos`), and the API, metrics and configuration
//! (`weir-control`).
#![forbid(unsafe_code)]

mod acceptor;
mod admission;
mod bound;
pub mod ceph;
mod check;
mod clock;
mod engine;
pub mod error;
pub mod groups;
mod inbox;
mod limits;
mod op_name;
mod right;
pub mod serve;
mod session;
mod stop;
mod sync;
mod worker;

pub use bound::Bound;
pub use ceph::CephSessions;
pub use check::check;
pub use error::ServeError;
pub use serve::{Server, Supervision, serve};
pub use weir_process::{ConfineError, confine_around};
