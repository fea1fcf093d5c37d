//! The file server as a library: workers that own connections, the gate that waits, the control
//! plane and its metrics. `crates/weir` is a thin `main` over [`serve`](serve::serve).
//!
//! Not here: parsing of a protocol (`weir-nfs`), system calls on files (`weir-store`), and the
//! arithmetic of a contract (`weir-qos`).
#![forbid(unsafe_code)]

mod acceptor;
mod admission;
mod bound;
mod check;
mod clock;
pub mod config;
mod confine;
mod conn_id;
pub mod control;
mod credits;
mod engine;
pub mod error;
mod gate;
mod groups;
mod inbox;
mod limits;
mod locks;
pub mod log;
mod metrics;
mod notify;
mod op_name;
pub mod plane;
pub mod serve;
mod session;
mod stop;
mod sync;
mod watch;
mod worker;

pub use check::check;
pub use config::ServerConfig;
pub use confine::ConfineError;
pub use error::ServeError;
pub use op_name::OpName;
pub use plane::{OperationCount, Plane, PlaneError, Totals, VolumeLive};
pub use serve::{Server, serve};
pub use session::rpc::rpcbind;
