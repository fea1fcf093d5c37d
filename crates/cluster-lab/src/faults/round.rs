//! One round: the loads begin, a fault happens, the cluster becomes whole again, everything is read
//! back, and all of it is judged.

use super::fault::{Fault, Moves};
use super::plan::{AFTER, BACK, BEFORE, GIVEN_UP, work};
use super::scene::Scene;
use crate::bed::{CLIENTS, Gateway, Machine};
use crate::load::{
    Course, File, Named, Names, Naming, Outcome, Owners, Running, Seen, Span, Target, Wire, rules,
};
use crate::stage::Stage;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;
use weir_lab::judge::Check;
use weir_lab::stop::Stop;
use weir_load::Control;

/// The result of one round.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Round {
    /// Name of the fault.
    pub(crate) fault: &'static str,
    /// The gateway that it hit, if it hits one.
    pub(crate) gateway: Option<String>,
    /// Addresses that moved.
    pub(crate) moved: usize,
    /// The longest time without an answer to a client, of either kind, of a volume that moved, or
    /// of any if none had to, in seconds.
    pub(crate) pause_s: f64,
    /// The same of the volumes that did not move.
    pub(crate) others_s: f64,
    /// Writes that were acknowledged.
    pub(crate) writes: usize,
    /// Changes of names that were acknowledged.
    pub(crate) names: u64,
    /// Requests that were refused as expected.
    pub(super) refused: u64,
    /// Blocks and names that were looked at from a fresh mount.
    pub(crate) looked_at: u64,
    /// Whatever is not as it has to be.
    pub(crate) misses: Vec<String>,
}

/// The cluster and the accounts of all rounds.
pub(crate) struct Rounds<'a> {
    /// The cluster.
    pub(crate) stage: &'a mut Stage,
    /// Asked for an early end.
    pub(crate) stop: &'a Stop,
    /// Stops all clients.
    halt: Control,
    wire: Wire,
    /// The last file of each volume and fault.
    files: BTreeMap<(String, &'static str), File>,
    /// All names that were made and kept.
    names: Vec<Names>,
    count: u32,
}

impl<'a> Rounds<'a> {
    /// The rounds of a cluster.
    ///
    /// # Errors
    /// If the system refuses the watch over the bridge.
    pub(crate) fn new(stage: &'a mut Stage, stop: &'a Stop) -> Result<Self> {
        let wire = Wire::watch(stage.gateways.iter().map(Gateway::machine).collect())?;
        let halt = Control::new();
        let on_stop = halt.clone();
        stop.then(move || on_stop.stop())?;
        let (files, names) = (BTreeMap::new(), Vec::new());
        Ok(Self { stage, stop, halt, wire, files, names, count: 0 })
    }

    /// Carries a fault out; `place` is that in the list of all.
    ///
    /// # Errors
    /// If the cluster does not become whole again, so that no further round is possible.
    pub(crate) fn carry_out(&mut self, fault: &'static Fault, place: usize) -> Result<Round> {
        self.count += 1;
        let begun = Instant::now();
        let mut scene = Scene::new(self.stage, self.stop, self.halt.clone(), self.count);
        scene.hold(std::time::Duration::ZERO)?;
        // Nothing has moved since the last round, as the cluster was whole.
        drop(self.wire.take());
        for target in scene.stage.targets.clone() {
            let work = work(place, self.count);
            scene.clients.push(Running::start(&target, work, begun, &self.halt)?);
            let prefix = format!("name-{}", self.count);
            scene.naming.push(Naming::start(&target, prefix, begun, &self.halt)?);
        }
        scene.hold(BEFORE)?;
        let from_s = begun.elapsed().as_secs_f64();
        if let Err(error) = (fault.act)(&mut scene) {
            self.stop.check()?;
            scene.miss(format!("could not be carried out: {error:#}"));
        }
        if let Err(missing) = scene.until_whole(BACK)? {
            scene.miss(format!("not whole within {} s: {missing}", BACK.as_secs()));
            if let Err(missing) = scene.until_whole(GIVEN_UP)? {
                let misses = scene.misses.join("; ");
                bail!(
                    "{}: the cluster does not become whole again: {missing}; {misses}",
                    fault.name
                );
            }
        }
        scene.hold(AFTER)?;
        let span = Span { from_s, to_s: begun.elapsed().as_secs_f64() };
        let ended = End::of(scene)?;
        Ok(self.judge(fault, span, ended))
    }

    fn judge(&mut self, fault: &'static Fault, span: Span, mut end: End) -> Round {
        let (seen, halt) = (self.wire.take(), self.halt.clone());
        let moved = end.moved();
        end.judge_moves(fault.moves, &moved);
        let longest = |of_moved: bool| {
            let of = end.courses().filter(|(target, _)| {
                address(target).is_some_and(|address| moved.contains(&address)) == of_moved
            });
            of.map(|(_, course)| course.longest_gap(span).length_s()).fold(0.0, f64::max)
        };
        let (pause_s, others_s) = match fault.moves {
            Moves::OfOne => (longest(true), longest(false)),
            Moves::None => (longest(true).max(longest(false)), 0.0),
        };
        let mut round = Round {
            fault: fault.name,
            gateway: end.victim.take(),
            moved: moved.len(),
            pause_s,
            others_s,
            writes: end.data.iter().map(|(_, outcome)| outcome.course.completions.len()).sum(),
            names: end.names.iter().map(|named| named.course.completions.len() as u64).sum(),
            refused: end.refused(),
            looked_at: 0,
            misses: std::mem::take(&mut end.misses),
        };
        round.take(end.checks(fault.refusals, &seen, &moved));
        for (target, outcome) in end.data {
            round.looked_at += outcome.found.checked;
            self.files.insert((target.name, fault.name), outcome.file);
        }
        for mut named in end.names {
            round.look(&named.names, &halt);
            named.names.forget_removed();
            self.names.push(named.names);
        }
        round
    }

    /// Looks at all that was acknowledged in all rounds once more, at all volumes at the same time.
    /// Returns how much, and the misses.
    pub(crate) fn look_at_all(&self) -> (u64, Vec<String>) {
        let volumes = self.stage.targets.iter().map(|target| target.name.as_str());
        std::thread::scope(|scope| {
            let look = |volume| scope.spawn(move || self.look_at(volume));
            let all: Vec<_> = volumes.map(look).collect();
            let (mut looked_at, mut misses) = (0, Vec::new());
            for one in all {
                let ended = || (0, vec!["a thread ended abnormally".to_owned()]);
                let (count, wrong) = one.join().unwrap_or_else(|_| ended());
                looked_at += count;
                misses.extend(wrong);
            }
            (looked_at, misses)
        })
    }

    /// The same of one volume.
    fn look_at(&self, volume: &str) -> (u64, Vec<String>) {
        let (mut looked_at, mut misses) = (0, Vec::new());
        let mut note = |what: Result<(u64, Vec<String>)>| match what {
            Ok((count, wrong)) => {
                looked_at += count;
                misses.extend(wrong);
            }
            Err(error) => misses.push(format!("{volume}: {error:#}")),
        };
        for ((_, fault), file) in self.files.iter().filter(|((own, _), _)| own == volume) {
            let found = CLIENTS.within(|| file.read_back(&self.halt));
            note(found.map(|found| {
                let check = rules::data(&found).of(&format!("{volume}, {fault}"));
                (found.checked, failed([check]).collect())
            }));
        }
        for names in self.names.iter().filter(|names| names.volume() == volume) {
            note(CLIENTS.within(|| names.look(&self.halt)));
        }
        (looked_at, misses)
    }
}

impl Round {
    fn take(&mut self, checks: impl IntoIterator<Item = Check>) {
        self.misses.extend(failed(checks));
    }

    /// Looks for all names.
    fn look(&mut self, names: &Names, halt: &Control) {
        match CLIENTS.within(|| names.look(halt)) {
            Ok((count, wrong)) => {
                self.looked_at += count;
                self.misses.extend(wrong);
            }
            Err(error) => self.misses.push(format!("names: {error:#}")),
        }
    }
}

/// The rules that were missed, in words.
fn failed(checks: impl IntoIterator<Item = Check>) -> impl Iterator<Item = String> {
    let missed = checks.into_iter().filter(|check| !check.passed);
    missed.map(|check| format!("{}: {}", check.rule, check.worst))
}

/// The address of a volume.
fn address(target: &Target) -> Option<Ipv4Addr> {
    match target.address.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// The end of a round: what its clients bring back, and what was seen.
struct End {
    data: Vec<(Target, Outcome)>,
    names: Vec<Named>,
    owners: BTreeMap<Ipv4Addr, Owners>,
    victim: Option<String>,
    death: Option<Instant>,
    misses: Vec<String>,
}

impl End {
    /// Ends the loads, and waits until the files were read back.
    fn of(scene: Scene<'_>) -> Result<Self> {
        let Scene { stage, clients, naming, owners, misses, victim, death, .. } = scene;
        clients.iter().for_each(Running::finish);
        naming.iter().for_each(Naming::finish);
        let names = naming.into_iter().map(Naming::wait).collect::<Result<_>>()?;
        let wait = |(target, client): (Target, Running)| {
            let outcome = client.wait().with_context(|| target.name.clone())?;
            Ok((target, outcome))
        };
        let data = stage.targets.iter().cloned().zip(clients).map(wait).collect::<Result<_>>()?;
        Ok(Self { data, names, owners, victim: victim.map(Machine::name), death, misses })
    }

    /// The addresses that had another gateway in the end, or meanwhile.
    fn moved(&self) -> BTreeSet<Ipv4Addr> {
        let moved = self.owners.iter().filter(|(_, owners)| owners.served().len() > 1);
        moved.map(|(address, _)| *address).collect()
    }

    /// Did the addresses move that had to, and no others?
    fn judge_moves(&mut self, moves: Moves, moved: &BTreeSet<Ipv4Addr>) {
        let had = |owners: &Owners| owners.served().first().map(|machine| machine.name());
        let victim = match moves {
            Moves::OfOne => self.victim.clone(),
            Moves::None => None,
        };
        for (address, owners) in &self.owners {
            let has_to = victim.is_some() && had(owners) == victim;
            if has_to != moved.contains(address) {
                let word = if has_to { "did not move" } else { "moved" };
                let served: Vec<String> =
                    owners.served().iter().map(|machine| machine.name()).collect();
                self.misses.push(format!("{address} {word}: it was at {}", served.join(", ")));
            }
        }
    }

    /// The courses of all clients, with their volumes.
    fn courses(&self) -> impl Iterator<Item = (&Target, &Course)> {
        let data = self.data.iter().map(|(target, outcome)| (target, &outcome.course));
        let names = self.data.iter().zip(&self.names);
        data.chain(names.map(|((target, _), named)| (target, &named.course)))
    }

    fn refused(&self) -> u64 {
        self.courses().map(|(_, course)| course.refusals.count()).sum()
    }

    /// The rules that every load has.
    fn checks(&self, expected: &[&str], seen: &Seen, moved: &BTreeSet<Ipv4Addr>) -> Vec<Check> {
        let mut checks = Vec::new();
        for (target, outcome) in &self.data {
            let mut add = |check: Check| checks.push(check.of(&target.name));
            add(rules::answers(&outcome.course.refusals, expected, outcome.unanswered));
            add(rules::data(&outcome.found));
            let Some(address) = address(target) else { continue };
            let owners = self.owners.get(&address).cloned().unwrap_or_default();
            add(rules::replies(&seen.senders, address, &owners));
            if let Some(death) = self.death.filter(|_| moved.contains(&address)) {
                add(rules::silent_death(seen, address, death));
            }
        }
        for (named, (target, _)) in self.names.iter().zip(&self.data) {
            let check =
                rules::answers(&named.course.refusals, expected, u64::from(named.unanswered));
            checks.push(check.of(&format!("names of {}", target.name)));
        }
        checks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 4, 1);

    fn end(served: &[u8], victim: Option<u8>) -> End {
        let mut owners = Owners::default();
        served.iter().for_each(|number| owners.note(Some(Machine::Gateway(*number))));
        let victim = victim.map(|number| Machine::Gateway(number).name());
        let (data, names, misses) = (Vec::new(), Vec::new(), Vec::new());
        End { data, names, owners: [(ADDRESS, owners)].into(), victim, death: None, misses }
    }

    fn misses(served: &[u8], victim: Option<u8>, moves: Moves) -> usize {
        let mut end = end(served, victim);
        let moved = end.moved();
        end.judge_moves(moves, &moved);
        end.misses.len()
    }

    #[test]
    fn addresses_of_the_one_gateway_move_and_no_others() {
        assert_eq!(misses(&[1, 2], Some(1), Moves::OfOne), 0);
        assert_eq!(misses(&[1], Some(1), Moves::OfOne), 1, "it did not move");
        assert_eq!(misses(&[3], Some(1), Moves::OfOne), 0);
        assert_eq!(misses(&[3, 2], Some(1), Moves::OfOne), 1, "a false takeover");
        assert_eq!(misses(&[1, 2], Some(1), Moves::None), 1);
        assert_eq!(misses(&[1, 2, 1], None, Moves::None), 1, "and back");
        assert_eq!(misses(&[1], None, Moves::None), 0);
    }
}
