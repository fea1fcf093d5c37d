//! The limit of a step, as far as its results tell.

use super::contract::Reached;
use super::{Environment, MIBPS_PER_MBITPS, MachineBusy, StepResult, StepRun, counted, median};
use std::fmt;
use weir_load::stats::result::RunResult;
use weir_load::workload::Rate;

/// The part of a link's speed from which on it is full. Frames take at least 1.6 % of it that the
/// counters of the device do not have (IEEE 802.3: preamble, check sequence and gap).
const FULL: f64 = 0.95;
/// The part of a rate from which on a load reached the rate that it asked for.
const REACHED: f64 = 0.95;

/// The limit of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// The contract of a volume.
    Contract {
        /// Name of the volume.
        volume: String,
        /// The limit in words.
        limit: String,
    },
    /// The rate for which the loads ask.
    AskedRate,
    /// The load generator.
    Generator,
    /// The link of this machine to the server.
    Link {
        /// MiB/s in the direction with more, headers included.
        used_mibps: f64,
        /// MiB/s in each direction.
        speed_mibps: f64,
    },
    /// The processors of a machine that applied the loads.
    Processors(MachineBusy),
    /// None of these: the server, or too few requests in flight.
    ServerOrLoad {
        /// The number of requests that the loads keep in flight.
        in_flight: u64,
    },
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contract { volume, limit } => {
                write!(f, "the contract of volume {volume} ({limit})")
            }
            Self::AskedRate => f.write_str("the requested rate"),
            Self::Generator => f.write_str("the load generator"),
            Self::Link { used_mibps, speed_mibps } => write!(
                f,
                "this machine's link to the server ({used_mibps:.0} of {speed_mibps:.0} MiB/s)"
            ),
            Self::Processors(busy) => {
                write!(f, "the processors of the client's machine ({busy} busy)")
            }
            Self::ServerOrLoad { in_flight } => {
                write!(f, "the server, or too few requests in flight ({in_flight})")
            }
        }
    }
}

impl StepResult {
    /// The limit of the step; `None` if nothing was measured, or if the step is a preparation. A
    /// contract or a requested rate comes before the limits of the machine: a load that reached it
    /// is held back by it, however busy the machine is.
    #[must_use]
    pub fn limit(&self, environment: &Environment) -> Option<Limit> {
        let runs = counted(&self.runs);
        let first = runs.first().filter(|_| !self.preparation)?;
        let reached = runs.iter().flat_map(|run| run.limits_reached(&environment.contracts)).next();
        if let Some(Reached { volume, limit }) = reached {
            return Some(Limit::Contract { volume, limit });
        }
        if runs.iter().all(|run| loads(run).iter().all(has_its_rate)) {
            return Some(Limit::AskedRate);
        }
        if runs.iter().any(|run| run.total.generator.saturated) {
            return Some(Limit::Generator);
        }
        let busy = || runs.iter().find_map(|run| run.machine_busy()).map(Limit::Processors);
        let known = link(&runs, environment).or_else(busy);
        Some(known.unwrap_or_else(|| Limit::ServerOrLoad { in_flight: first.in_flight() }))
    }
}

/// The loads of a run, each by itself.
fn loads(run: &StepRun) -> &[RunResult] {
    if run.loads.is_empty() { std::slice::from_ref(&run.total) } else { &run.loads }
}

/// Did a load reach the rate for which it asked?
fn has_its_rate(load: &RunResult) -> bool {
    match load.workload.rate {
        Rate::Operations(rate) => load.total.iops >= rate * REACHED,
        Rate::Bytes(rate) => load.total.mibps * 1_048_576.0 >= rate * REACHED,
        Rate::Unlimited | Rate::Share { .. } => false,
    }
}

/// The links, if they were full.
#[expect(clippy::cast_precision_loss, reason = "bytes of a run are far below 2^52")]
fn link(runs: &[&StepRun], environment: &Environment) -> Option<Limit> {
    let speed: f64 = environment.links.values().map(|mbit| f64::from(*mbit)).sum();
    let speed_mibps = speed * MIBPS_PER_MBITPS;
    let rates = runs.iter().filter_map(|run| {
        let network = run.network?;
        let bytes = network.received_bytes.max(network.sent_bytes);
        let seconds = run.total.measured.seconds();
        (seconds > 0.0).then(|| bytes as f64 / 1_048_576.0 / seconds)
    });
    let used_mibps = median(rates);
    let full = speed_mibps > 0.0 && used_mibps >= speed_mibps * FULL;
    full.then_some(Limit::Link { used_mibps, speed_mibps })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::step_result;
    use crate::{Contract, Machine, Network};

    fn environment() -> Environment {
        let machine = Machine { name: "here".to_owned(), processors: 2, ..Machine::default() };
        Environment { clients: vec![machine], ..Environment::default() }
    }

    /// A step of a thousand reads of 4 KiB a second for ten seconds.
    fn step() -> StepResult {
        step_result(1000.0, 1.0)
    }

    fn told(step: &StepResult, environment: &Environment) -> String {
        step.limit(environment).unwrap().to_string()
    }

    #[test]
    fn without_another_limit_it_is_the_server_or_the_load() {
        let told = told(&step(), &environment());
        assert_eq!(told, "the server, or too few requests in flight (16)");
        let mut several = step();
        let load = several.runs[0].total.clone();
        several.runs[0].loads = vec![load.clone(), load];
        let limit = several.limit(&environment());
        assert_eq!(limit, Some(Limit::ServerOrLoad { in_flight: 32 }), "of all loads");
    }

    #[test]
    fn nothing_that_was_not_measured_has_a_limit() {
        assert_eq!(StepResult::default().limit(&environment()), None);
        let preparation = StepResult { preparation: true, ..step() };
        assert_eq!(preparation.limit(&environment()), None);
    }

    #[test]
    fn busy_processors_are_told_with_their_number() {
        let mut step = step();
        step.runs[0].total.generator.machine_processors = 2;
        step.runs[0].total.generator.machine_busy_percent = 98.5;
        let busy = "the processors of the client's machine (1.97 of 2 busy)";
        assert_eq!(told(&step, &environment()), busy);
        step.runs[0].total.generator.machine_busy_percent = 95.0;
        assert!(told(&step, &environment()).starts_with("the server"));
    }

    #[test]
    fn a_full_link_is_told_before_busy_processors() {
        let mut step = step();
        step.runs[0].total.generator.machine_busy_percent = 100.0;
        let links = [("eth0".to_owned(), 1000)].into();
        let environment = Environment { links, ..environment() };
        let received = |bytes| Some(Network { received_bytes: bytes, sent_bytes: 1 });
        step.runs[0].network = received(1_200_000_000);
        let full = "this machine's link to the server (114 of 119 MiB/s)";
        assert_eq!(told(&step, &environment), full);
        step.runs[0].network = received(1_100_000_000);
        assert!(told(&step, &environment).contains("processors"));
        step.runs[0].network = received(1_200_000_000);
        assert!(told(&step, &self::environment()).contains("processors"), "the speed is unknown");
    }

    #[test]
    fn a_generator_that_is_the_limit_is_told_before_the_machine() {
        let mut step = step();
        step.runs[0].total.generator.machine_busy_percent = 100.0;
        step.runs[0].total.generator.saturated = true;
        assert_eq!(told(&step, &environment()), "the load generator");
    }

    #[test]
    fn a_rate_that_somebody_set_is_told_before_everything() {
        let mut step = step();
        step.runs[0].total.generator.saturated = true;
        step.runs[0].total.workload.rate = Rate::Operations(1040.0);
        assert_eq!(told(&step, &environment()), "the requested rate");
        step.runs[0].total.workload.rate = Rate::Bytes(4_300_000.0);
        assert_eq!(step.limit(&environment()), Some(Limit::AskedRate));
        step.runs[0].total.workload.rate = Rate::Operations(1100.0);
        assert_eq!(step.limit(&environment()), Some(Limit::Generator), "it was not reached");
        let volume = "vol".to_owned();
        let contract = Contract { volume, bytes_per_second: 4 << 20, ..Contract::default() };
        let contracts = [(String::new(), contract)].into();
        let environment = Environment { contracts, ..environment() };
        assert_eq!(told(&step, &environment), "the contract of volume vol (4 MiB/s)");
    }
}
