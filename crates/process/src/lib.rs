//! The server's process towards the system: the privileges that it gives up ([`confine()`]), its
//! descriptors ([`ensure_descriptors`]), its notices to the service manager ([`ServiceManager`]),
//! the processor time that its threads may spend on polling ([`spin`]), and the groups of users
//! according to the machine ([`GroupDirectory`]).
//!
//! Not here: the work that the process does, and under which identity it accesses files.
#![forbid(unsafe_code)]

mod confine;
mod descriptors;
mod groups;
mod limits;
mod notify;
pub mod spin;
mod sync;

pub use confine::{ConfineError, confine, confine_around};
pub use descriptors::ensure_descriptors;
pub use groups::{GroupDirectory, LookUp};
pub use notify::ServiceManager;
