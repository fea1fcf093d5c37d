//! The side of the server that operators see: its configuration, its API over HTTP, its metrics,
//! the watch over contracts, and its log.
//!
//! The data plane is reached through the trait [`Plane`] alone, which `weir-server` implements, and
//! the records of a cluster through the trait [`Cluster`]. Not here: requests of clients, and
//! decisions about pools and volumes, which are the catalogue's.
#![forbid(unsafe_code)]

mod clock;
pub mod cluster;
pub mod config;
pub mod http;
mod limits;
pub mod log;
pub mod logins;
mod metrics;
mod per_minute;
pub mod plane;
mod sync;
mod watch;

pub use clock::SystemClock;
pub use cluster::Cluster;
pub use config::ServerConfig;
pub use limits::ASKS_GATEWAY_MAX;
pub use plane::Plane;
