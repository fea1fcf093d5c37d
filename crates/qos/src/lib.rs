//! Performance contracts: what a volume may use ([`contract`]), whether a request is admitted now
//! ([`Meters`]), the order of waiting requests ([`Queue`]), whether the contract is kept
//! ([`verdict`]), what kind of load a volume has ([`load`]), which size a wanted rate needs
//! ([`sizing`]), and whether hardware is committed to more than it provides ([`admission`]).
//!
//! The crate computes everything from a [`Mono`](weir_core::Mono) of the caller. What is *not*
//! here: a clock, a sleep, a lock, a thread, and anything that knows the content of a request. The
//! crate answers "now", "not before" or "refused, because"; the server does the waiting.
//!
//! Invariants are checked by `debug_assert!`; each module lists its own under *Assertions*.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod admission;
pub mod burst;
pub mod contract;
mod fair_queue;
pub mod file_limiter;
mod history;
pub mod limits;
pub mod load;
pub mod meter;
pub mod meters;
pub mod observed;
pub mod queue;
pub mod rate;
pub mod shares;
pub mod sizing;
mod sync;
mod two_limits;
pub mod verdict;
pub mod wait_queue;

pub use admission::Admission;
pub use contract::{Bought, Change, Floors, Infeasible, Level, Model, Pool, Qos};
pub use file_limiter::{FileCharge, FileLimiter};
pub use limits::{Burst, Ceiling, Limits};
pub use load::{FileShare, LoadFacts, LoadKind};
pub use meter::{Meter, NEVER, RateSlice};
pub use meters::{Cost, Meters};
pub use observed::Observed;
pub use queue::{ClientKey, Departure, Entry, Queue, Step};
pub use rate::{BytesPerSecond, Iops};
pub use shares::{Share, Shares};
pub use wait_queue::{Charged, Demand, RequestId, WaitQueue};
