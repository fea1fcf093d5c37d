//! Scenarios: series of workloads, the languages they are written in (TOML, fio, vdbench,
//! DiskSpd), and the catalogue of published ones.
//!
//! Not here: carrying a scenario out. A scenario is data; [`weir_load`] applies each workload.

#![forbid(unsafe_code)]

pub mod catalogue;
pub mod lang;
pub mod scenario;
