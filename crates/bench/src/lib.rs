//! The benchmark suite: carries scenarios out on any NAS, alone or with workers on other hosts,
//! and keeps, compares and presents the results.
//!
//! Not here: the load generator ([`weir_load`]), the languages of scenarios ([`weir_scenario`]),
//! charts and tables ([`weir_report`]), and anything of the server.

#![forbid(unsafe_code)]

pub mod calibrate;
pub mod cli;
pub mod cluster;
pub mod compare;
pub mod machine;
pub mod pages;
pub mod program;
pub mod progress;
pub mod results;
pub mod suite;
