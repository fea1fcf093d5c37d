//! The programs that suites run: built once, together with all that the workspace's tests need.
//!
//! A build of one package alone would choose fewer features of its dependencies than the
//! workspace has, and so build most of them once more.

use crate::process;
use anyhow::{Context, Result, bail};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Features that a build of a fresh clone does without: they need packages of Debian.
pub(super) const FEATURES: &str = "--features=weir-etcd/client";

/// Where the programs are kept: a build beside a suite replaces those in Cargo's directory.
const KEPT: &str = "target/suites";

/// Paths of the programs.
#[derive(Default)]
pub(crate) struct Programs {
    pub(crate) weir: PathBuf,
    pub(super) lab: PathBuf,
    /// Makes the reports that are looked at in a browser.
    pub(super) reports: PathBuf,
}

/// Builds the workspace's programs in the profile of tests.
pub(crate) fn build() -> Result<Programs> {
    let mut build = Command::new("cargo");
    build.args(["build", "--workspace", "--bins", "--examples", "--profile=test"]);
    if !process::succeeds(build.args(["--locked", "--quiet", FEATURES]))? {
        bail!("the programs do not build");
    }
    fs::create_dir_all(KEPT).with_context(|| format!("making {KEPT}"))?;
    Ok(Programs { weir: kept("weir")?, lab: kept("weir-lab")?, reports: kept("examples/reports")? })
}

/// Copies a file that was built in the profile of tests.
fn kept(file: &str) -> Result<PathBuf> {
    let target = env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let built = Path::new(&target).join("debug").join(file);
    let name = built.file_name().context("a program without a name")?;
    let kept = Path::new(KEPT).join(name);
    // A program that still runs cannot be written to, but its name can be given away.
    let fresh = kept.with_extension("new");
    fs::copy(&built, &fresh).with_context(|| format!("copying {}", built.display()))?;
    fs::rename(&fresh, &kept).with_context(|| format!("replacing {}", kept.display()))?;
    kept.canonicalize().with_context(|| format!("finding {file}"))
}
