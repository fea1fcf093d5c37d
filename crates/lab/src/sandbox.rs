//! A network and a mount namespace of a program's own: its servers meet nobody else's, and its
//! mounts go when it does.

use crate::disk::run;
use anyhow::{Context, Result};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Becomes this very program again, inside namespaces of its own, with `--inside` added.
///
/// # Errors
/// Returns only if that fails.
pub(crate) fn enter() -> Result<()> {
    let own = crate::this_program()?;
    let error = Command::new("unshare")
        .args(["--net", "--mount", "--propagation", "private", "--"])
        .arg(own)
        .args(std::env::args_os().skip(1))
        .arg("--inside")
        .exec();
    Err(error).context("cannot run unshare")
}

/// Brings the loopback interface of a fresh network namespace up.
pub(crate) fn loopback_up() -> Result<()> {
    run(Command::new("ip").args(["link", "set", "lo", "up"]))
}
