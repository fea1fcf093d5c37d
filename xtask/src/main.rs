//! The house rules and the test run as code: `cargo xtask
//! check|tidy|preflight|test|deb|conformance|fuzz`.
//!
//! Not here: anything the server or its clients need. Nothing of Weir may depend on it.

#![forbid(unsafe_code)]

mod check;
mod conformance;
mod fuzz;
mod package;
mod preflight;
mod process;
mod suites;
mod tidy;

use anyhow::{Result, bail};
use std::env;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND
  check                                 formatting, lints, doc warnings, licences and the house rules
  tidy                                  check the house rules (layers, module docs, file sizes, links, promises)
  preflight [peers|cluster|cluster-peers|smb-cephfs]
                                        check what the tests (or that campaign) need, and install what is missing
  test                                  every suite, then one line of totals; WEIR_SKIP names suites to leave out
  deb [--weir FILE] [--revision TEXT]   the Debian package of the release, or of that program, in target/debian
  conformance                           pjdfstest on Weir, NFS-Ganesha and the file systems alone, compared
  fuzz [--seconds N] [--target NAME]... [--jobs N] [--out FILE]
                                        the committed corpus of each target, then N seconds of fuzzing (default 3600),
                                        so many targets at the same time (default 1), and a report";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Carries out the command line; `false` means that something was found wrong and printed.
fn run() -> Result<bool> {
    // Cargo sets it to this package's folder, whatever the working directory is.
    let Some(root) = Path::new(env!("CARGO_MANIFEST_DIR")).parent() else {
        bail!("the xtask package has no parent folder");
    };
    env::set_current_dir(root)?;
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check"] => check::run(),
        ["tidy"] => tidy::run(),
        ["preflight"] => preflight::tests().map(|()| true),
        ["preflight", "peers"] => preflight::peers().map(|()| true),
        ["preflight", "cluster"] => preflight::cluster().map(|()| true),
        ["preflight", "smb-cephfs"] => preflight::smb_cephfs().map(|()| true),
        ["preflight", "cluster-peers"] => preflight::cluster_peers().map(|()| true),
        ["test"] => suites::run(),
        ["deb", options @ ..] => package::run(&package::Options::parse(options)?),
        ["conformance"] => conformance::run(),
        ["fuzz", options @ ..] => fuzz::run(&fuzz::Options::parse(options)?),
        _ => bail!("{USAGE}"),
    }
}
