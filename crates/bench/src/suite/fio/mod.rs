//! The real fio as executor: the loads of a step become a job file, fio applies them to a mounted
//! path, and its JSON becomes records as of our own engine. What fio can't say is refused by name.
//!
//! Files are laid out by our own engine, so that both generators meet the same ones. Latencies are
//! fio's total ones, from submission to completion, as it keeps them: in classes of at most 0.8 %.

pub mod jobs;
mod output;
mod process;

use super::{Applied, Context, Executor, mounted};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use weir_load::engine::{StepRecord, prepare_step};
use weir_load::error::BenchError;
use weir_load::target::{PathTarget, Target, Targets};
use weir_load::workload::Workload;

/// The oldest version whose JSON is understood.
const VERSION_LEAST: (u32, u32) = (3, 16);

/// Applies loads to a mounted path by running fio.
pub struct FioExecutor {
    path: PathBuf,
    program: PathBuf,
    version: String,
}

impl FioExecutor {
    /// On `target`, which must be a path of one mount.
    ///
    /// # Errors
    /// [`BenchError::Target`] if the target is no path or has several mounts;
    /// [`BenchError::Workload`] if fio is not installed or too old.
    pub fn new(target: &Target) -> Result<Self, BenchError> {
        let Target::Path(PathTarget { root: path, more }) = target else {
            return Err(BenchError::Target(format!(
                "fio supports only mounted paths: mount {target} and give the path, or omit \
                 --engine fio"
            )));
        };
        if !more.is_empty() {
            return Err(BenchError::Target(
                "fio supports only one mount: omit --mounts or --engine fio".to_owned(),
            ));
        }
        let Some(program) = crate::program::find("fio") else {
            return Err(BenchError::Workload(
                "fio is not installed: apt-get install fio, or omit --engine fio".to_owned(),
            ));
        };
        let output = Command::new(&program)
            .arg("--version")
            .output()
            .map_err(|source| BenchError::Local { what: "starting fio", source })?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let (major, minor) = VERSION_LEAST;
        if version(&said).is_none_or(|version| version < VERSION_LEAST) {
            return Err(BenchError::Workload(format!(
                "{} reports version {said:?}; version {major}.{minor} or newer is required",
                program.display()
            )));
        }
        let path = std::path::absolute(path).map_err(|source| BenchError::Local {
            what: "finding the current directory",
            source,
        })?;
        Ok(Self { path, program, version: said.replace('-', " ") })
    }
}

/// The version in `fio-3.33` or `fio-3.33-9-gabcd`.
fn version(said: &str) -> Option<(u32, u32)> {
    let mut parts = said.strip_prefix("fio-")?.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

impl Executor for FioExecutor {
    fn name(&self) -> String {
        self.version.clone()
    }

    fn apply(
        &mut self,
        loads: &[Workload],
        context: &mut Context<'_>,
    ) -> Result<Applied, BenchError> {
        let text = jobs::job_file(loads, &self.path)?;
        let scratch = Scratch::make()?;
        let targets = Targets::from(Target::Path(self.path.clone().into()));
        let files = prepare_step(&targets, loads, context.control, context.layout)?;
        (context.ready)();
        let ran = process::run(&self.program, &text, &scratch.path, loads, context);
        let removed = files.discard();
        let ran = ran?;
        let mut records = output::records(&targets.to_string(), loads, &ran, &scratch.path)?;
        let mut marks = context.control.take_marks();
        if let (Err(error), Some(first)) = (removed, records.first_mut()) {
            *first.faults.entry(format!("clean-up: {}", error.in_full())).or_default() += 1;
        }
        let each = records.into_iter().map(|record| record.record(std::mem::take(&mut marks)));
        let record = StepRecord { loads: each.collect() };
        let mut notes = jobs::notes(loads);
        notes.extend(mounted::notes(&targets, loads));
        Ok(Applied { record, workers: Vec::new(), notes })
    }
}

/// A directory for fio's files; it goes when this does.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn make() -> Result<Self, BenchError> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-fio-{}-{serial}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|source| at(&path, source))?;
        Ok(Self { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove fio's files");
        }
    }
}

fn at(path: &Path, source: std::io::Error) -> BenchError {
    BenchError::Path { path: path.to_owned(), source, hint: "" }
}

#[cfg(test)]
mod tests;
