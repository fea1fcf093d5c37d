//! One part of the demo: several volumes loaded at the same time.

use super::board::Board;
use super::cases::{CASES, Case, Load, OWN, PUBLISHED, RESIZES};
use super::judge::Change;
use super::processors::{Second, Watch};
use super::target::target;
use crate::operator::Operator;
use crate::server::TestServer;
use crate::stop::Stop;
use anyhow::{Context, Result, bail};
use std::time::{Duration, Instant};
use weir_load::stats::result::RunResult;
use weir_load::workload::{Layout, Length, Operation, Pattern, Stability, VerifyScope, Workload};
use weir_load::{Control, Prepared, RunHandle, prepare};

const DEPTH: u32 = 32;
/// Blocks of each job's own file: small, for the quota is what the contract follows from.
const FILE_BLOCKS: u64 = 256;
/// Time in which all connections are made before the loads begin together.
const START_IN: Duration = Duration::from_millis(500);
/// Times at which the quota is changed, in seconds since the load began.
const RESIZE_AT_S: [f64; 3] = [4.0, 8.0, 12.0];

/// A part of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The seven rows of the published table.
    Published,
    /// One address with forty connections, a quota that changes, and volumes over two protocols.
    Own,
    /// The other contract models, ceilings, and a burst.
    Models,
}

impl Phase {
    /// In the order they are run.
    pub(super) const ALL: [Self; 3] = [Self::Published, Self::Own, Self::Models];

    /// The cases loaded in it.
    pub(super) fn cases(self) -> &'static [Case] {
        let (published, rest) = CASES.split_at(PUBLISHED);
        let (own, models) = rest.split_at(OWN);
        match self {
            Self::Published => published,
            Self::Own => own,
            Self::Models => models,
        }
    }

    /// The announcement of the phase, in words.
    pub(super) fn announcement(self) -> String {
        let (warmup, measured) = self.seconds();
        let what = match self {
            Self::Published => "seven volumes at once, 40 jobs from 40 addresses × depth 32 each",
            Self::Own => {
                "one address with 40 connections; a quota changed three times under load; two \
                 volumes, each with a client over NFS and a client over SMB"
            }
            Self::Models => {
                "ceilings, also of files, flexible, custom, shared by weight, and a burst, at once"
            }
        };
        format!("Loading {what}: {warmup:.0} s of warm-up, {measured:.0} s measured.")
    }

    /// Warm-up and measured time. The slowest contract turns its queue over in 6.4 s, and the
    /// warm-up of its phase lasts two turnovers; the other's ends after the last change of quota.
    const fn seconds(self) -> (f64, f64) {
        match self {
            Self::Published => (15.0, 40.0),
            Self::Own | Self::Models => (15.0, 20.0),
        }
    }

    /// The load number `number` of `case`.
    fn workload(self, case: &Case, (number, load): (u32, &Load)) -> Workload {
        let (warmup_s, measured_s) = self.seconds();
        let Load { block_bytes, jobs, clients, connections, .. } = *load;
        Workload {
            name: case.label(load),
            operation: Operation::Data { pattern: Pattern::Random, read_percent: 0 },
            block_bytes,
            depth: DEPTH,
            jobs,
            clients,
            connections,
            files: jobs,
            file_bytes: FILE_BLOCKS * u64::from(block_bytes),
            stability: Stability::Unstable,
            length: Length::Seconds(measured_s),
            warmup_s,
            layout: Layout::Sparse,
            verify: Some(VerifyScope::Sample(sample(case.due_mibps(load), block_bytes))),
            directory: format!("demo-{number}"),
            seed: 1 + u64::from(number),
            ..Workload::default()
        }
    }

    /// Loads all cases at once. Returns the result and the contract changes of each, and the
    /// machine's state meanwhile.
    pub(super) fn run(
        self,
        server: &TestServer,
        operator: &Operator,
        stop: &Stop,
    ) -> Result<Loaded> {
        let cases = self.cases();
        let (warmup_s, measured_s) = self.seconds();
        let names = cases.iter().flat_map(|case| case.loads.iter().map(|load| case.label(load)));
        let mut board = Board::new(names, warmup_s + measured_s);
        let ready: Vec<Vec<Prepared>> =
            cases.iter().map(|case| self.prepare(case, server)).collect::<Result<_>>()?;
        let start = Instant::now() + START_IN;
        let (mut runs, mut row) = (Vec::new(), 0);
        for (case, loads) in cases.iter().zip(ready) {
            let mut handles = Vec::new();
            for prepared in loads {
                handles.push(prepared.spawn_from(start, Control::new(), board.observer(row))?);
                row += 1;
            }
            runs.push(Run { case, handles, changes: Vec::new() });
        }
        std::thread::sleep(start.saturating_duration_since(Instant::now()));
        let mut processors = Watch::of(server.pid()?);
        while !runs.iter().all(Run::is_finished) {
            for run in &mut runs {
                run.attend(operator, stop)?;
            }
            board.tick();
            processors.look();
            std::thread::sleep(Duration::from_millis(5));
        }
        if stop.asked() {
            bail!("interrupted; the server and its data are removed");
        }
        let cases = runs.into_iter().map(Run::wait).collect::<Result<_>>()?;
        Ok(Loaded { cases, seconds: processors.seconds(), warmup_s })
    }

    /// Connects the loads of a case, and lays out their files.
    fn prepare(self, case: &Case, server: &TestServer) -> Result<Vec<Prepared>> {
        let prepare = |(number, load)| {
            prepare(&target(server, case, load), &self.workload(case, (number, load)))
                .with_context(|| format!("preparing {}", case.label(load)))
        };
        (0..).zip(case.loads).map(prepare).collect()
    }
}

/// The result of a part of the demo.
pub(super) struct Loaded {
    /// For each case the results of its loads, and when its contract was changed.
    pub(super) cases: Vec<(Vec<RunResult>, Vec<Change>)>,
    /// The machine's processor load, pressure and stalls, warm-up included.
    pub(super) seconds: Vec<Second>,
    /// Duration of the warm-up (s).
    warmup_s: f64,
}

impl Loaded {
    /// The seconds of the measured part.
    pub(super) fn measured_seconds(&self) -> Vec<Second> {
        let measured = self.seconds.iter().filter(|second| second.at_s >= self.warmup_s);
        measured.cloned().collect()
    }
}

/// Blocks to read back: a thousand, or what two seconds of a rate allow.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive and far below 2^52"
)]
fn sample(mibps: f64, block_bytes: u32) -> u64 {
    let two_seconds = mibps * 2.0 * 1_048_576.0 / f64::from(block_bytes);
    (two_seconds as u64).min(1000)
}

/// A case under load.
struct Run {
    case: &'static Case,
    /// One for each load.
    handles: Vec<RunHandle>,
    changes: Vec<Change>,
}

impl Run {
    fn is_finished(&self) -> bool {
        self.handles.iter().all(RunHandle::is_finished)
    }

    /// The results, when all loads are done.
    fn wait(self) -> Result<(Vec<RunResult>, Vec<Change>)> {
        let results = self.handles.into_iter().map(RunHandle::wait).collect::<Result<_, _>>();
        let results = results.with_context(|| format!("loading {}", self.case.name))?;
        Ok((results, self.changes))
    }

    /// Stops the loads if asked to, and changes the quota when it is time.
    fn attend(&mut self, operator: &Operator, stop: &Stop) -> Result<()> {
        if stop.asked() {
            self.handles.iter().for_each(|handle| handle.control().stop());
        }
        let number = self.changes.len();
        let due = RESIZE_AT_S.get(number).zip(RESIZES.get(number));
        let (true, Some((&due_s, &(gibibytes, to_mibps))), [handle, ..]) =
            (self.case.resized, due, self.handles.as_slice())
        else {
            return Ok(());
        };
        let control = handle.control();
        let Some(at_s) = control.elapsed_s().filter(|&now| now >= due_s) else { return Ok(()) };
        operator.resize(self.case.volume, gibibytes)?;
        let answered_s = control.elapsed_s().unwrap_or(at_s);
        control.mark(format!("quota {gibibytes} GiB"));
        let from_mibps = self.changes.last().map_or(16.0, |change| change.to_mibps);
        let answered_after_s = answered_s - at_s;
        self.changes.push(Change { at_s, answered_after_s, from_mibps, to_mibps });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warm_up_lasts_two_turnovers_of_the_slowest_queue_and_past_the_last_change() {
        for phase in Phase::ALL {
            let (warmup_s, measured_s) = phase.seconds();
            let loads = phase.cases().iter().flat_map(|case| {
                case.loads.iter().map(move |load| (case.label(load), case.due_mibps(load), load))
            });
            for (name, mibps, load) in loads {
                let outstanding = f64::from(load.jobs * DEPTH * load.block_bytes);
                let turnover_s = outstanding / (mibps * 1_048_576.0);
                assert!(warmup_s >= 2.0 * turnover_s, "{name}");
            }
            assert!(warmup_s >= RESIZE_AT_S[2] + 2.0);
            assert!(measured_s >= 20.0, "two windows of 10 s at least");
        }
    }

    #[test]
    fn every_workload_is_sound() {
        for phase in Phase::ALL {
            for case in phase.cases() {
                for load in (0..).zip(case.loads) {
                    phase.workload(case, load).check().unwrap();
                }
            }
        }
    }

    #[test]
    fn the_sample_is_read_back_within_two_seconds_of_the_contract() {
        assert_eq!(sample(1.5625, 8192), 400);
        assert_eq!(sample(64.0, 8192), 1000);
        assert_eq!(sample(16.0, 65_536), 512);
    }
}
