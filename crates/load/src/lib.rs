//! Load generation: applies a workload to any NAS over NFS, SMB or a mounted path, verifies the
//! data, and records what came of it.
//!
//! A measurement has four steps, each a value that leads to the next: [`Target`] and [`Workload`]
//! describe the load, [`prepare`] connects and lays the files out, [`Prepared::run`] (or
//! [`Prepared::spawn`], to load several volumes at the same time) applies the load, and
//! [`RunResult`] is the measurement. A [`Control`] stops a run early and records when something
//! happened outside.
//!
//! Not here: languages of workloads, series of measurements, reports, and anything of the server.
//! The generator reaches the server through sockets and mounted paths alone, so that another NAS is
//! measured in the same way.

#![forbid(unsafe_code)]

pub mod control;
pub mod engine;
pub mod error;
pub mod payload;
pub mod stats;
pub mod target;
pub mod verify;
pub mod workload;

pub use control::Control;
pub use engine::{
    Phase, Prepared, PreparedStep, Record, RunHandle, StepRecord, Window, check_sources,
    check_step, prepare, prepare_step, prepare_with,
};
pub use error::BenchError;
pub use stats::result::{
    Connections, Generator, Interval, JobResult, Latency, Mark, OpResult, Point, RESULT_VERSION,
    RunResult, ServerCpu, VerifyResult, mibps,
};
pub use target::{NfsTarget, Password, PathTarget, SmbSecurity, SmbTarget, Target, Targets};
pub use workload::{
    Draw, Layout, Length, Location, MixOp, OpShare, Operation, Pacing, Part, Pattern, Rate, Region,
    SizeShare, Stability, Starts, Think, VerifyScope, Workload,
};
