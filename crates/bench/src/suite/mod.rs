//! Running scenarios: step after step, with repeats, on one executor, into one document of
//! results.

mod executor;
pub mod fio;

pub use executor::{Applied, Context, Executor, Local};
