//! The catalogue: capacity pools, volumes and export rules, their feasibility, their persistence
//! in SQLite, and the immutable [`Snapshot`]s that the rest of the server reads without a lock.
//!
//! What is *not* here: HTTP, sockets, and the files of the volumes. The catalogue decides and
//! remembers; the data plane is told the outcome as a snapshot.
#![forbid(unsafe_code)]

mod model;
mod network;

pub use model::{ANONYMOUS_ID, Access, ExportRule, Pool, Snapshot, Squash, UnknownWord, Volume};
pub use network::{IpNetwork, NetworkError};
pub use weir_qos::contract::{Level, Qos};
