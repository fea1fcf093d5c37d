//! `weir bench`: the load generator from the command line.

mod args;
pub mod compare;
pub mod report;
pub(crate) mod sampler;
mod table;

pub use args::{BenchArgs, Format};

use crate::control::Control;
use crate::engine::prepare_with;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::stats::result::RunResult;
use sampler::ServerSampler;
use std::io::Write as _;
use std::path::PathBuf;

/// Why `weir bench` failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The measurement could not be made.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// The process named by `--server-pid` is not there.
    #[error("can't read the processor time of --server-pid {pid}")]
    Server {
        /// The process id given.
        pid: u32,
        /// What the system said.
        source: std::io::Error,
    },
    /// The result could not be written.
    #[error("can't write the result to {path}", path = path.display())]
    Output {
        /// The file, or "standard output".
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Runs what the arguments say and prints the result in the form `format`. The caller stops it early through
/// `control`; what was measured until then is still printed.
///
/// Gives the result; [`RunResult::is_clean`] decides about the exit code.
///
/// # Errors
/// [`CliError`] says what to do.
pub fn run(args: &BenchArgs, format: Format, control: &Control) -> Result<RunResult, CliError> {
    let target = args.target()?;
    let workload = args.workload()?;
    let mut sampler = args.server_pid.map(ServerSampler::new).transpose()?;
    let mut progress = Progress::new(args.quiet);
    let prepared =
        prepare_with(&target, &workload, control, &mut |done, total| progress.layout(done, total));
    let outcome = prepared.and_then(|prepared| {
        prepared.run(control, |window| {
            if let Some(sampler) = &mut sampler {
                sampler.window(window);
            }
            progress.window(window);
        })
    });
    progress.finish();
    let mut result = outcome?;
    result.server = sampler.and_then(|sampler| sampler.finish(&result));
    print(args, format, &result)?;
    Ok(result)
}

fn print(args: &BenchArgs, format: Format, result: &RunResult) -> Result<(), CliError> {
    let json = || serde_json::to_string_pretty(result).map_err(std::io::Error::from);
    if let Some(path) = &args.json {
        json()
            .and_then(|json| std::fs::write(path, json + "\n"))
            .map_err(|source| CliError::Output { path: path.clone(), source })?;
    }
    let text = match format {
        Format::Table => Ok(table::render(result)),
        Format::Json => json().map(|json| json + "\n"),
    };
    text.and_then(|text| std::io::stdout().write_all(text.as_bytes()))
        .map_err(|source| CliError::Output { path: "standard output".into(), source })
}
