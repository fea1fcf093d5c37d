//! Fuzzing on the stable toolchain: libFuzzer with the coverage flags that `cargo fuzz` would
//! pass, less the sanitizer, which needs nightly (see `docs/decisions`).

mod report;

use crate::process;
use anyhow::{Context, Result, anyhow, bail};
use report::{Row, Stats};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::ScopedJoinHandle;

/// Each has a program `fuzz/targets/NAME.rs` and a committed corpus `fuzz/corpus/NAME/`.
pub(crate) const TARGETS: [&str; 17] = [
    "address",
    "record",
    "rpc",
    "mount",
    "rpcbind",
    "nfs3",
    "locks",
    "wire",
    "handle",
    "link",
    "helper",
    "handover",
    "smb_frame",
    "smb_message",
    "smb_sequence",
    "smb_spnego",
    "smb_ntlm",
];

const SECONDS_DEFAULT: u32 = 3600;

/// Memory one target may take before libFuzzer calls it a leak or an unbounded allocation.
const MEMORY_MIB_MAX: u32 = 1024;

/// Time that one input may take before libFuzzer calls it a hang. It is that of the clock on the
/// wall, and a campaign of the lowest priority may not get a processor for long.
const INPUT_SECONDS_MAX: u32 = 300;

const COVERAGE: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1 --cfg fuzzing";

pub(crate) struct Options {
    pub(crate) seconds: u32,
    pub(crate) targets: Vec<&'static str>,
    /// Targets that are fuzzed at the same time.
    pub(crate) jobs: usize,
    /// The file for the report.
    pub(crate) out: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let (seconds, targets) = (SECONDS_DEFAULT, Vec::new());
        let mut options = Self { seconds, targets, jobs: 1, out: None };
        for pair in words.chunks(2) {
            match pair {
                ["--seconds", seconds] => options.seconds = seconds.parse()?,
                ["--target", name] => match TARGETS.iter().find(|target| *target == name) {
                    Some(target) => options.targets.push(target),
                    None => bail!("there is no such target; there are: {}", TARGETS.join(", ")),
                },
                ["--jobs", jobs] => options.jobs = jobs.parse()?,
                ["--out", file] => options.out = Some(PathBuf::from(file)),
                other => bail!("fuzz does not know {other:?}"),
            }
        }
        if options.targets.is_empty() {
            options.targets = TARGETS.to_vec();
        }
        Ok(options)
    }
}

/// Fuzzes each target; `true` if none found anything.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let host = host()?;
    build(&host)?;
    let mut rows = Vec::new();
    for some in options.targets.chunks(options.jobs.max(1)) {
        rows.extend(run_together(&host, some, options.seconds)?);
    }
    if let Some(out) = &options.out {
        report::write(out, options, &rows)?;
    }
    Ok(rows.iter().all(|row| row.is_clean))
}

/// Fuzzes some targets at the same time.
pub(crate) fn run_together(host: &str, targets: &[&'static str], seconds: u32) -> Result<Vec<Row>> {
    std::thread::scope(|scope| {
        let run = |target: &&'static str| {
            let target = *target;
            scope.spawn(move || run_target(host, target, seconds))
        };
        let running: Vec<_> = targets.iter().map(run).collect();
        let end = |one: ScopedJoinHandle<'_, Result<Row>>| {
            one.join().map_err(|_| anyhow!("a fuzzer's output was not read to its end"))?
        };
        running.into_iter().map(end).collect()
    })
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

/// Runs the corpus of `target`, then fuzzes it for `seconds`.
fn run_target(host: &str, target: &'static str, seconds: u32) -> Result<Row> {
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
        format!("-timeout={INPUT_SECONDS_MAX}"),
        "-print_final_stats=1".to_owned(),
        "-verbosity=0".to_owned(),
    ]);
    println!("fuzz {target}: {seconds} s");
    let mut running = fuzzer.stderr(Stdio::piped()).spawn().context("starting the fuzzer")?;
    let mut stats = Stats::default();
    if let Some(told) = running.stderr.take() {
        for line in BufReader::new(told).lines() {
            let line = line?;
            stats.take(&line);
            eprintln!("{line}");
        }
    }
    let seeds = fs::read_dir(&corpus)?.count();
    Ok(Row { target, seeds, stats, is_clean: running.wait()?.success() })
}

/// The target triple of this machine.
pub(crate) fn host() -> Result<String> {
    let version = process::output("rustc", &["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not tell its host")?.to_owned())
}
