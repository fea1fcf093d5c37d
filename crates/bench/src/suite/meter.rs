//! The use of other resources while a load is measured: network devices and processors of this
//! machine, and the server's process where it is known. Samples are taken with the windows, so they
//! are exact to 100 ms at either end.

use crate::cli::CliError;
use crate::cli::sampler::ServerSampler;
use std::collections::BTreeSet;
use std::fs::read_to_string;
use weir_load::engine::{Phase, Window};
use weir_load::stats::result::{RunResult, ServerCpu};
use weir_results::Network;

/// Reads the counters through one application of a load.
pub(super) struct Meter {
    server: Option<ServerSampler>,
    /// The network devices that lead to the servers; all are counted if none is known.
    devices: BTreeSet<String>,
    first: Option<Sample>,
    last: Option<Sample>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    at_s: f64,
    network: Option<Network>,
    /// Processor time that was not idle, in clock ticks.
    busy: Option<u64>,
}

/// The observations of a [`Meter`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usage {
    pub(super) server: Option<ServerCpu>,
    pub(super) network: Option<Network>,
    pub(super) processors: Option<f64>,
}

impl Meter {
    /// A meter that also watches the process `server_pid`. It counts the bytes of `devices`, or of
    /// all network devices if there are none of these.
    pub(super) fn new(
        server_pid: Option<u32>,
        devices: BTreeSet<String>,
    ) -> Result<Self, CliError> {
        let server = server_pid.map(ServerSampler::new).transpose()?;
        Ok(Self { server, devices, first: None, last: None })
    }

    /// The next window: the last one of the warm-up begins the interval.
    pub(super) fn window(&mut self, window: &Window) {
        if let Some(server) = &mut self.server {
            server.window(window);
        }
        if matches!(window.phase, Phase::Warmup | Phase::Measure) {
            self.add(window.phase, Sample::take(window.at_s, &self.devices));
        }
    }

    fn add(&mut self, phase: Phase, sample: Sample) {
        if phase == Phase::Warmup || self.first.is_none() {
            self.first = Some(sample);
        } else {
            self.last = Some(sample);
        }
    }

    /// The figures of the measured interval; what was too short for two samples is absent.
    pub(super) fn finish(&self, result: &RunResult) -> Usage {
        let server = self.server.as_ref().and_then(|server| server.finish(result));
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return Usage { server, ..Usage::default() };
        };
        let seconds = last.at_s - first.at_s;
        let network = first.network.zip(last.network).map(|(first, last)| Network {
            received_bytes: last.received_bytes.saturating_sub(first.received_bytes),
            sent_bytes: last.sent_bytes.saturating_sub(first.sent_bytes),
        });
        let processors = first.busy.zip(last.busy).and_then(|(first, last)| {
            (seconds > 0.0).then(|| ticks_s(last.saturating_sub(first)) / seconds)
        });
        Usage { server, network, processors }
    }
}

impl Sample {
    fn take(at_s: f64, devices: &BTreeSet<String>) -> Self {
        let network = read_to_string("/proc/net/dev").ok().and_then(|text| bytes(&text, devices));
        let busy = read_to_string("/proc/stat").ok().and_then(|text| busy(&text));
        Self { at_s, network, busy }
    }
}

#[expect(clippy::cast_precision_loss, reason = "ticks of a run are far below 2^52")]
fn ticks_s(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64
}

/// Bytes of `devices` in `/proc/net/dev` (proc(5)), or of all if there are none of these: after the
/// name eight columns of what was received, then eight of what was sent, each beginning with the
/// bytes.
fn bytes(text: &str, devices: &BTreeSet<String>) -> Option<Network> {
    let mut sum = None;
    for line in text.lines() {
        let Some((name, columns)) = line.split_once(':') else { continue };
        if !devices.is_empty() && !devices.contains(name.trim()) {
            continue;
        }
        let mut numbers = columns.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
        let (Some(Some(received)), Some(Some(sent))) = (numbers.next(), numbers.nth(7)) else {
            continue;
        };
        let sum = sum.get_or_insert(Network::default());
        sum.received_bytes += received;
        sum.sent_bytes += sent;
    }
    sum
}

/// Ticks of the line `cpu` in `/proc/stat` (proc(5)) that were neither idle nor waiting for I/O:
/// user, nice, system, interrupts and soft interrupts. What guests use is in user already.
fn busy(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut ticks = line.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let (user, nice, system) = (ticks.next()??, ticks.next()??, ticks.next()??);
    let interrupts = ticks.nth(2)??;
    let soft = ticks.next()??;
    Some(user + nice + system + interrupts + soft)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo
    lo:    1000      10    0    0    0     0          0         0     1000      10    0    0    0
  eth0: 5 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0
";

    #[test]
    fn the_devices_to_the_servers_count_or_all() {
        let all = BTreeSet::new();
        let found = bytes(DEV, &all).unwrap();
        assert_eq!((found.received_bytes, found.sent_bytes), (1005, 1007));
        assert_eq!(bytes("nothing here\n", &all), None);
        let found = bytes(DEV, &["eth0".to_owned()].into()).unwrap();
        assert_eq!((found.received_bytes, found.sent_bytes), (5, 7));
        assert_eq!(bytes(DEV, &["eth1".to_owned()].into()), None);
    }

    #[test]
    fn idle_and_waiting_are_not_busy() {
        assert_eq!(busy("cpu  1 2 4 1000 1000 8 16 500 0 0\ncpu0 9 9\n"), Some(31));
        assert_eq!(busy("cpu  1 2\n"), None);
    }

    #[test]
    fn the_interval_begins_with_the_last_of_the_warm_up() {
        let sample = |at_s: f64, bytes: u64| Sample {
            at_s,
            network: Some(Network { received_bytes: bytes, sent_bytes: 2 * bytes }),
            busy: Some(bytes),
        };
        let mut meter = Meter::new(None, BTreeSet::new()).unwrap();
        meter.add(Phase::Warmup, sample(0.1, 5));
        meter.add(Phase::Warmup, sample(1.0, 100));
        meter.add(Phase::Measure, sample(1.1, 200));
        meter.add(Phase::Measure, sample(3.0, 700));
        let result = weir_results::testing::result(1000.0, 1.0);
        let usage = meter.finish(&result);
        let network = usage.network.unwrap();
        assert_eq!((network.received_bytes, network.sent_bytes), (600, 1200));
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert!((usage.processors.unwrap() - 600.0 / ticks / 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_run_without_two_samples_has_no_figures() {
        let meter = Meter::new(None, BTreeSet::new()).unwrap();
        assert_eq!(meter.finish(&weir_results::testing::result(1.0, 1.0)), Usage::default());
    }
}
