//! The `weir` program: reads the command line, does as it says, and ends with 0 (done), 1 (refused
//! or failed) or 2 (the command line makes no sense).

#![forbid(unsafe_code)]

mod cli;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "cluster")]
mod gateway;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::Cli::given() {
        Ok(cli) => cli::run(cli),
        Err(error) => cli::unread(&error),
    }
}
