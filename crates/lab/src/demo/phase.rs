//! One part of the demo: several volumes loaded at the same time.

use super::board::Board;
use super::cases::{CASES, Case, LoadKind, OWN, PUBLISHED, RESIZES};
use super::judge::Change;
use super::processors::{Second, Watch};
use crate::operator::Operator;
use crate::server::TestServer;
use crate::stop::Stop;
use anyhow::{Context, Result, bail};
use std::time::Duration;
use weir_load::stats::result::RunResult;
use weir_load::workload::{Layout, Length, Operation, Pattern, Stability, VerifyScope, Workload};
use weir_load::{Control, NfsTarget, RunHandle, Target, prepare};

const JOBS: u32 = 40;
const DEPTH: u32 = 32;
const BLOCK_BYTES: u32 = 8192;
/// Each job's own file: small, for the quota is what the contract follows from.
const FILE_BYTES: u64 = 2 << 20;
/// Times at which the quota is changed, in seconds since the load began.
const RESIZE_AT_S: [f64; 3] = [4.0, 8.0, 12.0];

/// A part of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The seven rows of the published table.
    Published,
    /// One address with forty connections, and a quota that changes.
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
            Self::Own => "one address with 40 connections; a quota changed three times under load",
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

    fn workload(self, case: &Case, number: u32) -> Workload {
        let (warmup_s, measured_s) = self.seconds();
        let (clients, connections) = match case.kind {
            LoadKind::OneClient => (1, JOBS),
            LoadKind::FortyClients | LoadKind::Resized => (JOBS, 1),
        };
        Workload {
            name: case.name.to_owned(),
            operation: Operation::Data { pattern: Pattern::Random, read_percent: 0 },
            block_bytes: BLOCK_BYTES,
            depth: DEPTH,
            jobs: JOBS,
            clients,
            connections,
            files: JOBS,
            file_bytes: FILE_BYTES,
            stability: Stability::Unstable,
            length: Length::Seconds(measured_s),
            warmup_s,
            layout: Layout::Sparse,
            verify: Some(VerifyScope::Sample(sample(case.contract_mibps))),
            directory: "demo".to_owned(),
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
        let mut board = Board::new(cases, warmup_s + measured_s);
        let mut ready = Vec::new();
        for (number, case) in (0u32..).zip(cases) {
            let target = Target::Nfs(NfsTarget::new(server.address(), format!("/{}", case.volume)));
            let prepared = prepare(&target, &self.workload(case, number))
                .with_context(|| format!("preparing {}", case.name))?;
            ready.push(prepared);
        }
        let mut runs = Vec::new();
        for (number, prepared) in ready.into_iter().enumerate() {
            let handle = prepared.spawn(Control::new(), board.observer(number))?;
            runs.push(Run { case: &cases[number], handle, changes: Vec::new() });
        }
        let mut processors = Watch::of(server.pid()?);
        while !runs.iter().all(|run| run.handle.is_finished()) {
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
        let cases = runs.into_iter().map(|run| {
            let result = run.handle.wait().with_context(|| format!("loading {}", run.case.name))?;
            Ok((result, run.changes))
        });
        Ok(Loaded { cases: cases.collect::<Result<_>>()?, seconds: processors.seconds(), warmup_s })
    }
}

/// The result of a part of the demo.
pub(super) struct Loaded {
    /// For each case what was measured, and when its contract was changed.
    pub(super) cases: Vec<(RunResult, Vec<Change>)>,
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

/// Blocks to read back: a thousand, or what two seconds of the contract allow.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive and far below 2^52"
)]
fn sample(contract_mibps: f64) -> u64 {
    let two_seconds = contract_mibps * 2.0 * 1_048_576.0 / f64::from(BLOCK_BYTES);
    (two_seconds as u64).min(1000)
}

/// A case under load.
struct Run {
    case: &'static Case,
    handle: RunHandle,
    changes: Vec<Change>,
}

impl Run {
    /// Stops the run if asked to, and changes the quota when it is time.
    fn attend(&mut self, operator: &Operator, stop: &Stop) -> Result<()> {
        let control = self.handle.control();
        if stop.asked() {
            control.stop();
        }
        let number = self.changes.len();
        let due = RESIZE_AT_S.get(number).zip(RESIZES.get(number));
        let (LoadKind::Resized, Some((&due_s, &(gibibytes, to_mibps)))) = (self.case.kind, due)
        else {
            return Ok(());
        };
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
            let outstanding = f64::from(JOBS * DEPTH * BLOCK_BYTES);
            for case in phase.cases() {
                let turnover_s = outstanding / (case.contract_mibps * 1_048_576.0);
                assert!(warmup_s >= 2.0 * turnover_s, "{}", case.name);
            }
            assert!(warmup_s >= RESIZE_AT_S[2] + 2.0);
            assert!(measured_s >= 20.0, "two windows of 10 s at least");
        }
    }

    #[test]
    fn every_workload_is_sound() {
        for phase in Phase::ALL {
            for (number, case) in (0..).zip(phase.cases()) {
                phase.workload(case, number).check().unwrap();
            }
        }
    }

    #[test]
    fn the_sample_is_read_back_within_two_seconds_of_the_contract() {
        assert_eq!(sample(1.5625), 400);
        assert_eq!(sample(64.0), 1000);
    }
}
