//! The outcome of the demonstration, in the shape of `result.json`.

use super::judge::{self, Part, Pause};
use super::phases::Measured;
use crate::load::{Break, Outcome, Span, Target, rules};
use serde::Serialize;
use std::net::IpAddr;
use weir_lab::campaign::Origin;
use weir_lab::judge::{Check, all_kept};
use weir_lab::machine::{Second, meanwhile};

const MIB: f64 = 1_048_576.0;

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Event {
    /// In seconds since the loads began.
    pub(super) at_s: f64,
    /// In words.
    pub(super) what: String,
}

/// The whole demonstration.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DemoOutcome {
    /// Program, machine and time.
    pub(super) origin: Origin,
    /// Was every rule kept?
    pub(super) passed: bool,
    /// The rules that were missed, with the cause where it is known.
    pub(super) misses: Vec<String>,
    /// The contract of each volume (MiB/s).
    pub(super) contract_mibps: f64,
    /// The time in which contracts are judged.
    pub(super) judged: Span,
    /// Its parts.
    pub(super) parts: Vec<Part>,
    /// The events of the demonstration.
    pub(super) events: Vec<Event>,
    /// The volumes.
    pub(super) volumes: Vec<VolumeOutcome>,
    /// Rules about the cluster.
    pub(super) cluster: Vec<Check>,
    /// The machine's state, second by second.
    pub(super) machine: Vec<Second>,
}

/// One volume.
#[derive(Clone, Debug, Serialize)]
pub(super) struct VolumeOutcome {
    /// Its name.
    pub(super) name: String,
    /// Its address.
    pub(super) address: IpAddr,
    /// The gateways that served it, in order.
    pub(super) gateways: Vec<String>,
    /// Mean rate while contracts are judged, pauses included (MiB/s).
    pub(super) measured_mibps: f64,
    /// Pauses while its address moved.
    pub(super) pauses: Vec<Pause>,
    /// Connections that broke.
    pub(super) breaks: Vec<Break>,
    /// Writes that were acknowledged.
    pub(super) acknowledged: usize,
    /// Its rules.
    pub(super) checks: Vec<Check>,
    /// MiB/s second by second, for the charts.
    pub(super) seconds: Vec<f64>,
}

impl DemoOutcome {
    /// Judges what was measured.
    #[expect(clippy::cast_precision_loss, reason = "a contract has far less than 2^52 MiB/s")]
    pub(super) fn new(measured: Measured, mibps: u64) -> Self {
        let contract_mibps = mibps as f64;
        let mut volumes = volumes(&measured, contract_mibps);
        let judged = judged(&measured.parts);
        let Measured { parts, events, mut checks, seconds, .. } = measured;
        let explain = |check: &mut Check| {
            check.meanwhile =
                check.within.filter(|_| !check.passed).map(|within| meanwhile(&seconds, within));
        };
        volumes.iter_mut().flat_map(|volume| &mut volume.checks).for_each(explain);
        checks.iter_mut().for_each(explain);
        let events = events.into_iter().map(|(at_s, what)| Event { at_s, what }).collect();
        let mut outcome = Self {
            origin: Origin::here(),
            passed: false,
            misses: Vec::new(),
            contract_mibps,
            judged,
            parts,
            events,
            volumes,
            cluster: checks,
            machine: seconds,
        };
        let checks = outcome.checks();
        outcome.passed = all_kept(&checks);
        outcome.misses = checks.iter().filter(|check| !check.passed).map(in_words).collect();
        outcome
    }

    /// All rules, those of volumes with their names.
    pub(super) fn checks(&self) -> Vec<Check> {
        let of = |volume: &VolumeOutcome| {
            volume.checks.iter().map(|check| check.clone().of(&volume.name)).collect::<Vec<_>>()
        };
        self.cluster.iter().cloned().chain(self.volumes.iter().flat_map(of)).collect()
    }
}

/// A missed rule, with the machine's state meanwhile.
fn in_words(check: &Check) -> String {
    let words = format!("{}: {}", check.rule, check.worst);
    match &check.meanwhile {
        Some(meanwhile) => format!("{words}. Meanwhile {meanwhile}"),
        None => words,
    }
}

/// From the beginning of the first part to the end of the last.
fn judged(parts: &[Part]) -> Span {
    let ends = parts.first().zip(parts.last());
    ends.map_or_else(Span::default, |(first, last)| Span {
        from_s: first.span.from_s,
        to_s: last.span.to_s,
    })
}

/// The volumes, with their rules.
fn volumes(measured: &Measured, contract_mibps: f64) -> Vec<VolumeOutcome> {
    let (judged, outage) = (judged(&measured.parts), measured.outage);
    let of = |(target, outcome): &(Target, Outcome)| {
        let IpAddr::V4(address) = target.address.ip() else { return None };
        let owners = measured.owners.get(&address).cloned().unwrap_or_default();
        let moved = measured.moved.get(&address).map(Vec::as_slice).unwrap_or_default();
        let (course, rate) = (&outcome.course, outcome.course.rate());
        let pauses = judge::pauses(course, moved);
        let due = contract_mibps * MIB;
        let contract = |part| judge::contract(course, (part, judged), &pauses, due);
        let mut checks: Vec<Check> = measured.parts.iter().flat_map(contract).collect();
        checks.extend(pauses.iter().map(judge::pause));
        checks.push(judge::no_pause("etcd away", course, (outage, None), &pauses));
        checks.push(judge::no_pause("at any other time", course, (judged, Some(outage)), &pauses));
        checks.push(rules::answers(&course.refusals, &[], outcome.unanswered));
        checks.push(rules::data(&outcome.found));
        checks.push(rules::replies(&measured.senders, address, &owners));
        Some(VolumeOutcome {
            name: target.name.clone(),
            address: address.into(),
            gateways: owners.served().iter().map(|machine| machine.name()).collect(),
            measured_mibps: rate.bytes_between(judged.from_s, judged.to_s)
                / MIB
                / judged.length_s(),
            pauses,
            breaks: course.breaks.clone(),
            acknowledged: course.completions.len(),
            checks,
            seconds: rate.seconds((0.0, judged.to_s)),
        })
    };
    measured.volumes.iter().filter_map(of).collect()
}
