//! The server's process towards the system: the privileges that it gives up ([`confine`]), and its
//! notices to the service manager ([`ServiceManager`]).
//!
//! Not here: the work that the process does, and under which identity it accesses files.
#![forbid(unsafe_code)]

mod confine;
mod notify;

pub use confine::{ConfineError, confine};
pub use notify::ServiceManager;
