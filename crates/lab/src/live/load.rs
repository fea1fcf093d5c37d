//! Clients that load a volume beyond its contract, and their progress.

use crate::stop::Stop;
use anyhow::{Context, Result, ensure};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_load::stats::result::RunResult;
use weir_load::workload::{Layout, Length, Operation, Pattern, Workload};
use weir_load::{Control, NfsTarget, Prepared, RunHandle, Target, prepare};

/// Streams of requests on a volume, each from a source address of its own.
const JOBS: u32 = 4;
/// Size of the file of each stream: small, because the contract is measured and not the disk.
const FILE_BYTES: u64 = 2 << 20;
/// Time between two printed lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// A load on one volume: READs and WRITEs at random places, half and half.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) volume: String,
    /// For its files, a name that no other load of the volume has.
    pub(super) directory: &'static str,
    pub(super) block_bytes: u32,
    /// Requests that each stream keeps in flight.
    pub(super) depth: u32,
    pub(super) warmup_s: f64,
    pub(super) seconds: f64,
}

impl Load {
    fn workload(&self) -> Workload {
        Workload {
            name: self.volume.clone(),
            operation: Operation::Data { pattern: Pattern::Random, read_percent: 50 },
            block_bytes: self.block_bytes,
            depth: self.depth,
            jobs: JOBS,
            clients: JOBS,
            files: JOBS,
            file_bytes: FILE_BYTES,
            length: Length::Seconds(self.seconds),
            warmup_s: self.warmup_s,
            layout: Layout::Sparse,
            // All go with the data directory.
            keep: true,
            directory: self.directory.to_owned(),
            ..Workload::default()
        }
    }

    /// Connects and lays out its files.
    pub(super) fn prepare(&self, address: SocketAddr) -> Result<Ready> {
        let target = Target::Nfs(NfsTarget::new(address, format!("/{}", self.volume)));
        let prepared = prepare(&target, &self.workload())
            .with_context(|| format!("preparing the load on {}", self.volume))?;
        Ok(Ready { volume: self.volume.clone(), prepared })
    }
}

/// A load that can begin at once.
pub(super) struct Ready {
    volume: String,
    prepared: Prepared,
}

impl Ready {
    /// Begins.
    pub(super) fn begin(self) -> Result<Running> {
        let completed = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&completed);
        let handle = self.prepared.spawn(Control::new(), move |window| {
            counted.fetch_add(window.operations, Ordering::Relaxed);
        })?;
        Ok(Running { volume: self.volume, handle, completed })
    }
}

/// A load under way.
pub(super) struct Running {
    volume: String,
    handle: RunHandle,
    /// Operations.
    completed: Arc<AtomicU64>,
}

impl Running {
    pub(super) fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Ends before its time.
    pub(super) fn stop(&self) {
        self.handle.control().stop();
    }

    /// The result of the load.
    ///
    /// # Errors
    /// If a client had errors, or the load ended early: then there is nothing to judge.
    pub(super) fn end(self) -> Result<RunResult> {
        let result = self.handle.wait()?;
        let clean = result.is_clean() && !result.interrupted && result.connections.unanswered == 0;
        ensure!(clean, "the clients of {} had errors: {:?}", self.volume, result.errors);
        if result.generator.saturated {
            weir_report::outln!("# the load generator was the limit on {}", self.volume);
        }
        Ok(result)
    }
}

/// Progress lines.
pub(super) struct Lines {
    begun: Instant,
    printed: Instant,
    before: Vec<u64>,
}

impl Lines {
    pub(super) fn begin() -> Self {
        Self { begun: Instant::now(), printed: Instant::now(), before: Vec::new() }
    }

    /// Prints the operations a second of each since the last line, and `more`, if it is time.
    #[expect(clippy::cast_precision_loss, reason = "operations of seconds")]
    pub(super) fn tick(&mut self, running: &[&Running], more: &str) {
        let since = self.printed.elapsed();
        if since < LINE_EVERY {
            return;
        }
        let now: Vec<u64> =
            running.iter().map(|one| one.completed.load(Ordering::Relaxed)).collect();
        self.before.resize(now.len(), 0);
        let both = running.iter().zip(now.iter().zip(&self.before));
        let rates = both.filter(|(one, _)| !one.is_finished()).map(|(one, (now, before))| {
            let rate = now.saturating_sub(*before) as f64 / since.as_secs_f64();
            format!("{} {rate:.0}", one.volume)
        });
        let rates: Vec<String> = rates.collect();
        weir_report::outln!(
            "# {:5.0} s  operations a second: {}{more}",
            self.begun.elapsed().as_secs_f64(),
            rates.join(" | ")
        );
        self.before = now;
        self.printed = Instant::now();
    }
}

/// Stops all loads, with an error, if the campaign was asked to stop.
pub(super) fn stop_all_if_asked(stop: &Stop, running: &[&Running]) -> Result<()> {
    if stop.asked() {
        running.iter().for_each(|one| one.stop());
    }
    stop.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_sound() {
        let load = Load {
            volume: "v".to_owned(),
            directory: "d",
            block_bytes: 4096,
            depth: 256,
            warmup_s: 0.0,
            seconds: 1.0,
        };
        load.workload().check().unwrap();
    }
}
