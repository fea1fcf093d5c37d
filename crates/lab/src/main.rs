//! The program `weir-lab`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    weir_lab::main()
}
