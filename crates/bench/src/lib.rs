//! The benchmark suite: carries scenarios out on any NAS, alone or with workers on other hosts.
//!
//! Not here: the load generator ([`weir_load`]), the languages of scenarios ([`weir_scenario`]),
//! the form, comparisons and pages of results ([`weir_results`]), charts and tables
//! ([`weir_report`]), and anything of the server.

#![forbid(unsafe_code)]

pub mod calibrate;
pub mod cli;
pub mod cluster;
pub mod machine;
pub mod program;
pub mod progress;
pub mod suite;
