//! The commands that a change must pass before its tests are worth running.

use crate::preflight::{CARGO_DENY, install_cargo_deny};
use crate::process;
use crate::tidy;
use anyhow::Result;
use std::process::Command;

/// A check that is a command: what to call it, the program, its arguments.
type Step = (&'static str, &'static str, &'static [&'static str]);

// The `test` profile everywhere, so that dependencies are built once for checks and tests.
const STEPS: [Step; 6] = [
    ("formatting", "cargo", &["fmt", "--all", "--check"]),
    (
        "lints",
        "cargo",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--profile=test",
            "--locked",
            "--quiet",
            "--",
            "-Dwarnings",
        ],
    ),
    // `--all-targets` leaves out tests with `test = false`.
    (
        "lints of the tests on a cluster",
        "cargo",
        &[
            "clippy",
            "--workspace",
            "--test=ceph",
            "--test=cluster",
            "--all-features",
            "--profile=test",
            "--locked",
            "--quiet",
            "--",
            "-Dwarnings",
        ],
    ),
    (
        "formatting of the fuzz targets",
        "cargo",
        &["fmt", "--manifest-path=fuzz/Cargo.toml", "--check"],
    ),
    (
        "documentation",
        "cargo",
        &[
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
            "--profile=test",
            "--locked",
            "--quiet",
        ],
    ),
    (
        "licences, bans, sources",
        CARGO_DENY,
        &["--log-level=error", "check", "licenses", "bans", "sources"],
    ),
];

/// The number of passed and of failed checks.
pub(crate) struct Outcome {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

pub(crate) fn run() -> Result<bool> {
    Ok(all()?.failed == 0)
}

/// Runs every check, also after one has failed.
pub(crate) fn all() -> Result<Outcome> {
    install_cargo_deny()?;
    let mut outcome = Outcome { passed: 0, failed: 0 };
    let mut count = |name: &str, passed: bool| {
        println!("check {name}: {}", if passed { "ok" } else { "FAILED" });
        if passed { outcome.passed += 1 } else { outcome.failed += 1 }
    };
    count("house rules", tidy::run()?);
    for (name, program, args) in STEPS {
        let mut command = Command::new(program);
        command.args(args).env("RUSTDOCFLAGS", "-Dwarnings");
        count(name, process::succeeds(&mut command)?);
    }
    Ok(outcome)
}
