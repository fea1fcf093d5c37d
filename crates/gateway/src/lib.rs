//! The driver of a gateway: it runs the rules of the cluster (`weir-cluster`) with real time, etcd,
//! links, the machine's helper, Ceph and the volumes of the server.
//!
//! One life of a gateway goes like this:
//!
//! 1. `LocalState::open` locks the gateway's directory, so that no other process is this gateway.
//! 2. `LocalState::begin` makes the next life, with a number that is
//!    synced before anybody hears of it.
//! 3. The caller opens its sessions with Ceph and binds its listener.
//! 4. `Gateway::start` runs the rules until the life ends (`Gateway::ended`). The process has
//!    to exit then; the gateway starts anew.
//!
//! The driver has no rule of its own. One task owns the rules. After each step it publishes the
//! right to reply (`Parts::right`), and then carries the actions out in their order; none of
//! them holds up the next step. What the rules need beyond etcd and links are three traits:
//! `Machine` (the helper on this machine, and addresses), `Fencing` (Ceph's blocklist) and
//! `Service` (the server's volumes).
//!
//! Not here: the rules, the bytes of links and rows, volumes, addresses of interfaces, and the
//! catalogue, which tells where the other gateways are (`Places`).
//!
//! All of it is behind the feature `cluster`.
#![forbid(unsafe_code)]
#![cfg(feature = "cluster")]

mod clock;
mod driver;
mod gateway;
mod groups;
mod limits;
mod parts;
mod queue;
mod state;
mod status;

pub use clock::now;
pub use gateway::{Gateway, Parts, Places, RecordedError, StartError};
pub use parts::{Failure, Fencing, Machine, Service};
pub use state::{LocalState, StateError};
pub use status::{End, Status};
