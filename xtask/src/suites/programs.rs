//! The programs that suites run: built once, together with all that the workspace's tests need.
//!
//! A build of one package alone would choose fewer features of its dependencies than the
//! workspace has, and so build most of them once more.

use crate::process;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Features that a build of a fresh clone does without: they need packages of Debian, or bring the
/// store on CephFS into the server.
pub(super) const FEATURES: &str =
    "--features=weir-weir/cluster,weir-etcd/client,weir-cluster-lab/peers";

/// Where the programs are kept: a build beside a suite replaces those in Cargo's directory.
const KEPT: &str = "target/suites";

/// Paths of the programs.
#[derive(Default)]
pub(crate) struct Programs {
    pub(crate) weir: PathBuf,
    pub(super) lab: PathBuf,
    /// The campaigns of clusters.
    pub(super) cluster_lab: PathBuf,
    /// Makes the reports that are looked at in a browser.
    pub(super) reports: PathBuf,
    /// The tests of the store on CephFS, and of a gateway with volumes on it.
    pub(super) on_ceph: [PathBuf; 2],
}

/// Builds the workspace's programs, and the tests that run beside others, in the profile of tests.
pub(crate) fn build() -> Result<Programs> {
    let mut build = Command::new("cargo");
    build.args(["build", "--workspace", "--bins", "--examples", "--profile=test"]);
    if !process::succeeds(build.args(["--locked", "--quiet", FEATURES]))? {
        bail!("the programs do not build");
    }
    fs::create_dir_all(KEPT).with_context(|| format!("making {KEPT}"))?;
    Ok(Programs {
        weir: kept("weir")?,
        lab: kept("weir-lab")?,
        cluster_lab: kept("weir-cluster-lab")?,
        reports: kept("examples/reports")?,
        on_ceph: [test("store", "ceph")?, test("server", "ceph")?],
    })
}

/// The program of the integration test `name` of `package`, built as the workspace's tests are.
fn test(package: &str, name: &str) -> Result<PathBuf> {
    let mut build = Command::new("cargo");
    build.args(["test", "--workspace", "--test", name, "--no-run", FEATURES]);
    build.args(["--locked", "--quiet", "--message-format=json"]);
    let built = build.output().context("running cargo")?;
    if !built.status.success() {
        bail!("the test {name} does not build:\n{}", String::from_utf8_lossy(&built.stderr));
    }
    let source = format!("crates/{package}/tests/{name}/main.rs");
    let text = String::from_utf8_lossy(&built.stdout);
    let made = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |made: Value| {
        let is_it = made.pointer("/target/src_path")?.as_str()?.ends_with(&source);
        is_it.then(|| made.get("executable")?.as_str().map(PathBuf::from)).flatten()
    };
    made.filter_map(program).next().with_context(|| format!("there is no test {source}"))
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
