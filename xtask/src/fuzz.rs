//! Fuzzing on the stable toolchain: libFuzzer with the coverage flags that `cargo fuzz` would
//! pass, less the sanitizer, which needs nightly (see `docs/decisions`).

use crate::process;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Each has a program `fuzz/targets/NAME.rs` and a committed corpus `fuzz/corpus/NAME/`.
pub(crate) const TARGETS: [&str; 8] =
    ["record", "rpc", "mount", "rpcbind", "nfs3", "locks", "wire", "handle"];

const SECONDS_DEFAULT: u32 = 3600;

/// Memory one target may take before libFuzzer calls it a leak or an unbounded allocation.
const MEMORY_MIB_MAX: u32 = 1024;

const COVERAGE: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1 --cfg fuzzing";

pub(crate) struct Options {
    pub(crate) seconds: u32,
    pub(crate) targets: Vec<&'static str>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self { seconds: SECONDS_DEFAULT, targets: TARGETS.to_vec() };
        for pair in words.chunks(2) {
            match pair {
                ["--seconds", seconds] => options.seconds = seconds.parse()?,
                ["--target", name] => options.targets.retain(|target| target == name),
                other => bail!("fuzz does not know {other:?}"),
            }
        }
        if options.targets.is_empty() {
            bail!("there is no such target; there are: {}", TARGETS.join(", "));
        }
        Ok(options)
    }
}

/// Fuzzes each target; `true` if none found anything.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let host = host()?;
    build(&host)?;
    let mut clean = true;
    for target in &options.targets {
        clean &= run_target(&host, target, options.seconds)?;
    }
    Ok(clean)
}

/// Builds all targets. The explicit `--target` keeps the flags off build scripts.
pub(crate) fn build(host: &str) -> Result<()> {
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--locked", "--quiet", "--manifest-path=fuzz/Cargo.toml"]);
    build.args(["--target", host, "--target-dir=target/fuzz"]).env("RUSTFLAGS", COVERAGE);
    if !process::succeeds(&mut build)? {
        bail!("the fuzz targets do not build");
    }
    Ok(())
}

/// Runs the corpus of `target`, then fuzzes it for `seconds`; `true` if nothing was found.
pub(crate) fn run_target(host: &str, target: &str, seconds: u32) -> Result<bool> {
    let found = format!("target/fuzz/found/{target}");
    let artifacts = format!("fuzz/artifacts/{target}");
    for folder in [&found, &artifacts] {
        fs::create_dir_all(folder).with_context(|| format!("making {folder}"))?;
    }
    let corpus = format!("fuzz/corpus/{target}");
    if !Path::new(&corpus).is_dir() {
        bail!("{corpus} is missing");
    }
    // New inputs go to the first folder, so that the committed corpus grows only on purpose.
    let mut fuzzer = Command::new(format!("target/fuzz/{host}/release/{target}"));
    fuzzer.args([&found, &corpus]).args([
        format!("-max_total_time={seconds}"),
        format!("-artifact_prefix={artifacts}/"),
        format!("-rss_limit_mb={MEMORY_MIB_MAX}"),
        "-timeout=10".to_owned(),
        "-print_final_stats=1".to_owned(),
        "-verbosity=0".to_owned(),
    ]);
    println!("fuzz {target}: {seconds} s");
    process::succeeds(&mut fuzzer)
}

/// The target triple of this machine.
pub(crate) fn host() -> Result<String> {
    let version = process::output("rustc", &["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not tell its host")?.to_owned())
}
