//! Load generators, statistics and reports: measures any NAS from outside.
//!
//! A measurement has four steps, each a value that leads to the next:
//! [`Target`] and [`Workload`] say what to do, [`prepare`] connects and lays the files out,
//! [`Prepared::run`] (or [`Prepared::spawn`], to load several volumes at the same time) applies
//! the load, and [`RunResult`] says what came of it. A [`Control`] stops a run early and notes
//! when something happened outside.
//!
//! Not here: anything of the server. The generator reaches what it measures through sockets and
//! mounted paths alone, so that another NAS is measured by the same road.

pub mod calibrate;
pub mod catalogue;
pub mod cli;
pub mod cluster;
pub mod compare;
mod control;
pub mod crash;
pub mod demo;
mod disk;
mod engine;
mod error;
pub mod lang;
pub mod live;
pub mod many;
mod payload;
pub mod peers;
pub mod progress;
pub mod replay;
pub mod report;
pub mod results;
mod rng;
mod sandbox;
pub mod scenario;
pub mod stats;
pub mod suite;
mod target;
pub mod terminal;
pub mod text;
pub mod units;
mod verify;
mod workload;

pub use control::Control;
pub use engine::{
    Phase, Prepared, PreparedStep, Record, RunHandle, StepRecord, Window, prepare, prepare_step,
    prepare_with,
};
pub use error::BenchError;
pub use stats::result::{
    Connections, Generator, Interval, JobResult, Latency, Mark, OpResult, Point, RESULT_VERSION,
    RunResult, ServerCpu, VerifyResult, mibps,
};
pub use target::{NfsTarget, Target};
pub use workload::{
    Draw, Layout, Length, MixOp, OpShare, Operation, Pacing, Part, Pattern, Rate, Region,
    SizeShare, Stability, Starts, Think, VerifyScope, Workload,
};
