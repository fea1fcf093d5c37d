//! Running scenarios: step after step, with repeats, on one executor, into one document of
//! results.

mod executor;
mod workers;

pub use executor::{Applied, Context, Executor, Local};
pub use workers::Workers;
