//! Performance contracts: what a volume may use ([`contract`]), whether a request may go now
//! ([`Meters`]), in which order those go that must wait ([`Queue`]), whether the contract is kept
//! ([`verdict`]), and whether hardware is committed to more than it holds ([`admission`]).
//!
//! All of it is arithmetic over a [`Mono`](weir_core::Mono) handed in by the caller. What is *not*
//! here: a clock, a sleep, a lock, a thread, and anything that knows what a request says. The
//! crate answers "now", "not before" or "refused, because"; the server does the waiting.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod admission;
pub mod burst;
pub mod contract;
pub mod files;
mod history;
pub mod limits;
pub mod line;
pub mod meter;
pub mod meters;
pub mod observed;
pub mod queue;
pub mod rate;
mod round;
pub mod shares;
pub mod verdict;

pub use admission::Admission;
pub use contract::{Bought, Change, Demand, Floors, Infeasible, Level, Model, Pool, Qos};
pub use files::{FileCharge, Files};
pub use limits::{Burst, Ceiling, Limits};
pub use line::{Asks, Charged, Line};
pub use meter::{Meter, NEVER, RateSlice};
pub use meters::{Cost, Meters};
pub use observed::Observed;
pub use queue::{ClientKey, Departure, Queue, Step};
pub use rate::{BytesPerSecond, Iops};
pub use shares::{Share, Shares};
