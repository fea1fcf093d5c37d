//! Running scenarios: step after step, with repeats, on one executor, into one document of
//! results.
//!
//! [`Suite`] is the runner. It owns the order of things, the files, the caches and the repeats;
//! applying a load is the [`Executor`]'s, what is at the target the [`Place`]'s, and showing what
//! happens the observer's, who is told of every [`Event`]. [`search`] decides what to apply next
//! where that depends on what came of the last load.

mod cache;
mod check;
mod contract;
mod data;
mod doubts;
mod event;
mod executor;
pub mod fio;
mod meter;
mod mounted;
mod needs;
mod options;
mod place;
mod plan;
mod preflight;
mod run;
pub mod search;
mod shares;
mod stall;
mod state;
mod steady;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod wanted;
mod workers;

pub use cache::cache_remarks;
pub use check::check;
pub use contract::above_contracts;
pub use event::{Act, Event};
pub use executor::{Applied, Context, Executor, Local};
pub use needs::Machine;
pub use options::{CacheOptions, Options};
pub use place::{Claim, Place, TargetPlace};
pub use plan::{Plan, step_seconds};
pub use preflight::preflight;
pub use run::{Suite, SuiteOutcome, chance_seed};
pub use steady::steady;
pub use workers::Workers;
