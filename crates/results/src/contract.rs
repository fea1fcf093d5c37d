//! The contract of a Weir volume, beside the figures that were measured on it.

use super::StepRun;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_core::units::Rate;
use weir_load::stats::result::RunResult;

/// The part of a limit from which on a load has reached the limit. Contracts are kept within 1 %
/// over 10 s; a load that is held back for another reason seldom ends this close to the limit.
const REACHED: f64 = 0.97;
/// The kinds of operations that an IOPS limit counts.
const LIMITED_KINDS: [&str; 4] = ["read", "write", "read-file", "write-file"];

/// The limits of a Weir volume, as its API gave them at the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Contract {
    /// Name of the volume.
    pub volume: String,
    /// Throughput limit for reads and writes together, bytes per second.
    pub bytes_per_second: u64,
    /// Limit of READs and WRITEs a second, bursts included; absent if they are not limited.
    pub iops: Option<u64>,
    /// Limit of READs and WRITEs a second without burst credits.
    pub base_iops: Option<u64>,
}

impl Contract {
    /// The limits in words: `128 MiB/s, 4000 IOPS (1000 without burst credits)`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut words = Rate(self.bytes_per_second).to_string();
        if let Some(iops) = self.iops {
            words.push_str(&format!(", {iops} IOPS"));
            if let Some(base) = self.base_iops.filter(|base| *base != iops) {
                words.push_str(&format!(" ({base} without burst credits)"));
            }
        }
        words
    }

    /// The limit that the rates on the volume reached, if they reached one.
    fn reached(&self, rates: Rates) -> Option<Reached> {
        let of = |limit: f64, rate: f64| limit > 0.0 && rate >= limit * REACHED;
        let limit = if of(as_rate(self.bytes_per_second), rates.mibps * 1_048_576.0) {
            Rate(self.bytes_per_second).to_string()
        } else if let Some(limit) = self.iops.filter(|limit| of(as_rate(*limit), rates.iops)) {
            format!("{limit} IOPS")
        } else {
            return None;
        };
        Some(Reached { volume: self.volume.clone(), limit })
    }
}

/// A limit of a contract that a load reached.
pub(super) struct Reached {
    /// Name of the volume.
    pub(super) volume: String,
    /// The limit in words.
    pub(super) limit: String,
}

/// The rates that limits count.
#[derive(Clone, Copy, Default)]
struct Rates {
    mibps: f64,
    /// READs and WRITEs a second.
    iops: f64,
}

impl Rates {
    /// These rates and those of `run`.
    fn with(self, run: &RunResult) -> Self {
        let limited = LIMITED_KINDS.iter().filter_map(|kind| run.by_operation.get(*kind));
        let iops: f64 = limited.map(|kind| kind.iops).sum();
        Self { mibps: self.mibps + run.total.mibps, iops: self.iops + iops }
    }
}

#[expect(clippy::cast_precision_loss, reason = "limits are far below 2^53")]
fn as_rate(limit: u64) -> f64 {
    limit as f64
}

impl StepRun {
    /// Sentences about the volumes whose contract was the limit of this run; `contracts` are by the
    /// name of the target. Targets on one volume share its contract.
    #[must_use]
    pub fn reached(&self, contracts: &BTreeMap<String, Contract>) -> Vec<String> {
        let sentence = |Reached { volume, limit }| {
            format!(
                "the contract of volume {volume} was the limit ({limit}): the server can do more"
            )
        };
        self.limits_reached(contracts).into_iter().map(sentence).collect()
    }

    /// The limits that this run reached, of each volume one at most.
    pub(super) fn limits_reached(&self, contracts: &BTreeMap<String, Contract>) -> Vec<Reached> {
        let single = (self.total.workload.target.as_str(), &self.total);
        let runs: Vec<(&str, &RunResult)> = match self.targets.as_slice() {
            [] => vec![single],
            targets => targets.iter().map(|run| (run.name.as_str(), run)).collect(),
        };
        let mut volumes: BTreeMap<&str, (&Contract, Rates)> = BTreeMap::new();
        for (target, run) in runs {
            let Some(contract) = contracts.get(target) else { continue };
            let volume = volumes.entry(&contract.volume).or_insert((contract, Rates::default()));
            volume.1 = volume.1.with(run);
        }
        volumes.values().filter_map(|(contract, rates)| contract.reached(*rates)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::result;
    use weir_load::stats::result::OpResult;

    /// A run with 16 KiB blocks, at `iops` operations of `kind` a second.
    fn run(name: &str, kind: &str, iops: f64) -> RunResult {
        let op = OpResult { iops, mibps: iops / 64.0, ..OpResult::default() };
        let by_operation = [(kind.to_owned(), op)].into();
        RunResult { name: name.to_owned(), total: op, by_operation, ..result(iops, 1.0) }
    }

    fn step(total: RunResult, targets: Vec<RunResult>) -> StepRun {
        let mut steps = crate::testing::step_result(1.0, 1.0).runs;
        StepRun { total, targets, ..steps.remove(0) }
    }

    fn contract(volume: &str, mib: u64, iops: Option<u64>) -> Contract {
        let volume = volume.to_owned();
        Contract { volume, bytes_per_second: mib << 20, iops, base_iops: iops.map(|it| it / 4) }
    }

    #[test]
    fn a_run_at_its_limit_names_the_limit() {
        let told = |kind: &str, iops: f64, contract: Contract| {
            let contracts = [(String::new(), contract)].into();
            step(run("s", kind, iops), Vec::new()).reached(&contracts).join("")
        };
        let limited = |iops| contract("vol", 128, iops);
        assert!(told("read", 8100.0, limited(None)).contains("vol was the limit (128 MiB/s)"));
        assert_eq!(told("read", 7900.0, limited(None)), "", "96 % of the limit");
        assert!(told("write", 990.0, limited(Some(1000))).contains("(1000 IOPS)"));
        assert_eq!(told("write", 960.0, limited(Some(1000))), "");
        assert_eq!(told("getattr", 1000.0, limited(Some(1000))), "", "not counted by the limit");
        assert_eq!(told("read", 990.0, contract("vol", 0, None)), "", "no limit is known");
    }

    #[test]
    fn each_target_is_held_against_its_own_contract() {
        let contracts = [("a", "va"), ("b", "vb")]
            .map(|(target, volume)| (target.to_owned(), contract(volume, 64, None)))
            .into();
        let runs = vec![run("a", "read", 4096.0), run("b", "read", 2048.0)];
        let told = step(run("s", "read", 6144.0), runs).reached(&contracts);
        assert!(told.len() == 1 && told[0].contains("volume va"), "{told:?}");
    }

    #[test]
    fn targets_on_one_volume_reach_its_contract_together() {
        let contracts = ["a", "b"].map(|to| (to.to_owned(), contract("vol", 64, None))).into();
        let runs = |iops| vec![run("a", "read", iops), run("b", "read", iops)];
        let told = |iops| step(run("s", "read", 2.0 * iops), runs(iops)).reached(&contracts);
        assert_eq!(told(1900.0), [""; 0], "59 MiB/s");
        assert!(told(2000.0)[0].contains("volume vol was the limit (64 MiB/s)"));
        assert_eq!(told(2000.0).len(), 1, "once for the volume");
    }

    #[test]
    fn limits_are_told_in_words() {
        assert_eq!(contract("v", 128, None).in_words(), "128 MiB/s");
        let words = contract("v", 128, Some(4000)).in_words();
        assert_eq!(words, "128 MiB/s, 4000 IOPS (1000 without burst credits)");
    }
}
