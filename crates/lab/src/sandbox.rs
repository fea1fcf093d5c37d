//! The requirements of campaigns: programs, root, and namespaces of their own, so that their
//! servers and mounts are separate from all others and are removed with the campaign.

use crate::campaign::this_program;
use crate::process::run;
use anyhow::{Context, Result, bail};
use std::os::unix::process::CommandExt;
use std::process::Command;
use weir_bench::program::find;

/// Is this process root?
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Checks that programs are installed; each comes with the Debian package that contains it.
///
/// # Errors
/// Names all that are missing, and how to install them.
pub fn programs(purpose: &str, programs: &[(&str, &str)]) -> Result<()> {
    let missing = programs.iter().filter(|(program, _)| find(program).is_none());
    let (missing, packages): (Vec<&str>, Vec<&str>) = missing.copied().unzip();
    if !missing.is_empty() {
        let (missing, packages) = (missing.join(", "), packages.join(" "));
        bail!("{purpose} need {missing}: apt-get install {packages}");
    }
    Ok(())
}

/// Executes this program again in a new network namespace and mount namespace, with `--inside`.
///
/// # Errors
/// Returns only if that fails.
pub fn enter() -> Result<()> {
    let own = this_program()?;
    let error = Command::new("unshare")
        .args(["--net", "--mount", "--propagation", "private", "--"])
        .arg(own)
        .args(std::env::args_os().skip(1))
        .arg("--inside")
        .exec();
    Err(error).context("cannot run unshare")
}

/// Brings the loopback interface of a new network namespace up.
pub fn loopback_up() -> Result<()> {
    run(Command::new("ip").args(["link", "set", "lo", "up"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_named_with_their_packages() {
        programs("tests", &[("sh", "dash")]).unwrap();
        let needed = [("sh", "dash"), ("no-such-one", "one"), ("no-such-two", "two")];
        let error = programs("tests", &needed).unwrap_err().to_string();
        assert_eq!(error, "tests need no-such-one, no-such-two: apt-get install one two");
    }
}
