//! Observations: latency distributions, completions over time, processor time, and the result that
//! gathers them. Nothing here does I/O but the sampling of `/proc` in [`cpu`].

pub mod cpu;
mod recorder;
pub mod result;
mod series;
mod sparse;

pub use recorder::{JobCount, Notes, OpKind, Recorder, Span, WindowReport, histogram};
