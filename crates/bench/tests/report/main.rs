//! Reports, comparisons and the documented form of results, over made-up results that have
//! everything in them. How pages look is checked in a browser (`tests/clients/report-browser.sh`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compared;
mod documented;
mod example;
mod rendered;
