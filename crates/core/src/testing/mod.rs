//! Test support for every crate: an in-memory [`MemStore`] that is right by inspection, a clock
//! that moves only when told, and a minimal executor.
//!
//! Not part of any product binary: it exists only under `cfg(test)` or the feature `testing`.

mod clock;
mod executor;
mod interrupt;
mod mem;

pub use clock::ManualClock;
pub use executor::block_on;
pub use interrupt::interrupt_after;
pub use mem::{MemObject, MemStore};
