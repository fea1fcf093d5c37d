//! The cluster under load while one fault happens, as the fault sees it. Everything that is not as
//! it has to be is noted as a miss. Not here: single faults, and the judgement of a round.

use super::plan::{BACK, DEPTH, LOOK};
use crate::bed::{Engines, Gateway, Machine, Operator};
use crate::load::{Holding, Naming, Owners, Running, Target, rules};
use crate::stage::{Homes, Stage};
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::{Duration, Instant};
use weir_api::GatewayState;
use weir_lab::stop::Stop;
use weir_load::Control;

/// The cluster and its clients.
pub(crate) struct Scene<'a> {
    /// The cluster.
    pub(crate) stage: &'a mut Stage,
    /// The clients that write.
    pub(super) clients: Vec<Running>,
    /// The clients that make names.
    pub(super) naming: Vec<Naming>,
    /// The clients that hold locks.
    holding: Vec<Holding>,
    /// The number of the round, which names their files.
    round: u32,
    /// Stops all clients.
    halt: Control,
    /// The gateways of each address, since the round began.
    pub(crate) owners: BTreeMap<Ipv4Addr, Owners>,
    /// Whatever is not as it has to be.
    pub(crate) misses: Vec<String>,
    /// The gateway that was chosen.
    pub(super) victim: Option<Machine>,
    /// Time at which the server of that gateway was killed.
    pub(super) death: Option<Instant>,
    stop: &'a Stop,
    /// Gateways that are not asked for anything.
    unasked: BTreeSet<Machine>,
    /// Gateways that may end by themselves.
    may_end: BTreeSet<Machine>,
    /// Gateways that did.
    ended: BTreeSet<Machine>,
}

impl<'a> Scene<'a> {
    /// A scene without clients.
    pub(super) fn new(stage: &'a mut Stage, stop: &'a Stop, halt: Control, round: u32) -> Self {
        Self {
            stage,
            stop,
            round,
            clients: Vec::new(),
            naming: Vec::new(),
            holding: Vec::new(),
            halt,
            owners: BTreeMap::new(),
            misses: Vec::new(),
            victim: None,
            death: None,
            unasked: BTreeSet::new(),
            may_end: BTreeSet::new(),
            ended: BTreeSet::new(),
        }
    }

    /// etcd and Ceph.
    pub(super) fn engines(&self) -> &Engines {
        &self.stage.engines
    }

    /// Chooses the gateway with the most addresses. It is not asked for anything from now on.
    pub(super) fn choose(&mut self) -> Result<Machine> {
        let all = self.stage.gateways.iter().map(Gateway::machine);
        let most = all.max_by_key(|machine| self.addresses(*machine).len());
        let machine = most.context("there are no gateways")?;
        ensure!(!self.addresses(machine).is_empty(), "no gateway has an address");
        self.take(machine);
        Ok(machine)
    }

    /// Takes a gateway as the one that something happens to. It is not asked for anything from now
    /// on.
    pub(crate) fn take(&mut self, machine: Machine) {
        self.unasked.insert(machine);
        self.victim = Some(machine);
    }

    /// Lets the gateway be asked again.
    pub(crate) fn ask_again(&mut self, machine: Machine) {
        self.unasked.remove(&machine);
    }

    /// A gateway.
    pub(crate) fn gateway(&mut self, machine: Machine) -> Result<&mut Gateway> {
        let place = self.stage.place(machine)?;
        self.stage.gateways.get_mut(place).context("there is no such gateway")
    }

    /// A gateway that can be asked.
    pub(super) fn asked(&self) -> Result<Machine> {
        let can_be_asked = |gateway: &&Gateway| !self.unasked.contains(&gateway.machine());
        let first = self.stage.gateways.iter().find(can_be_asked);
        Ok(first.context("no gateway can be asked")?.machine())
    }

    fn operator(&self, machine: Machine) -> Result<&Operator> {
        let place = self.stage.place(machine)?;
        self.stage.operators.get(place).context("a gateway has no operator")
    }

    /// The operator of a gateway that can be asked.
    pub(crate) fn observer(&self) -> Result<&Operator> {
        self.operator(self.asked()?)
    }

    /// Has a gateway and another ask each other for their metrics. Neither may get an answer.
    pub(super) fn are_apart(&mut self, machine: Machine) -> Result<()> {
        let answered = self.answers_between(machine)?;
        if answered > 0 {
            self.miss(format!("{answered} of 2 gateways that are cut from each other got answers"));
        }
        Ok(())
    }

    /// Waits until a gateway and another get answers from each other.
    pub(super) fn until_joined(&mut self, machine: Machine) -> Result<()> {
        self.until("the gateways that were cut from each other get answers", BACK, |scene| {
            scene.answers_between(machine).is_ok_and(|answered| answered == 2)
        })
    }

    /// How many of these two get an answer from the other: a gateway and one that can be asked.
    fn answers_between(&self, machine: Machine) -> Result<usize> {
        let other = self.asked()?;
        let mut answered = 0;
        for (from, to) in [(other, machine), (machine, other)] {
            answered += usize::from(self.operator(from)?.reaches(&to.name())?);
        }
        Ok(answered)
    }

    /// Starts a gateway that was killed.
    pub(crate) fn start(&mut self, machine: Machine) -> Result<()> {
        let gateway = self.gateway(machine)?;
        let operator = gateway.start()?;
        let place = self.stage.place(machine)?;
        if let Some(own) = self.stage.operators.get_mut(place) {
            *own = operator;
        }
        self.ask_again(machine);
        Ok(())
    }

    /// Allows a gateway to end by itself. It is started again.
    pub(super) fn allow_end(&mut self, machine: Machine) {
        self.may_end.insert(machine);
    }

    /// Did the gateway end by itself?
    pub(super) fn has_ended(&mut self, machine: Machine) -> bool {
        self.ended.contains(&machine)
    }

    /// The addresses of a gateway, as far as is known.
    pub(crate) fn addresses(&self, machine: Machine) -> Vec<Ipv4Addr> {
        let own = self.owners.iter().filter(|(_, owners)| owners.last() == Some(machine));
        own.map(|(address, _)| *address).collect()
    }

    /// Notes that something is not as it has to be.
    pub(crate) fn miss(&mut self, words: impl Into<String>) {
        self.misses.push(words.into());
    }

    /// Asks for a change of the catalogue. The error is the refusal, with its code.
    pub(super) fn change(&self) -> Result<(), String> {
        let volume = self.volume();
        let done = self.observer().map_err(|error| error.to_string())?.change(&volume);
        match done {
            Err(weir_api::ClientError::Refused { error, .. }) => {
                Err(format!("{}: {error}", error.code))
            }
            other => other.map_err(|error| error.to_string()),
        }
    }

    /// Has a gateway make a change of the catalogue, once it can. Returns the time at which it was
    /// made, by the gateway's clock.
    pub(super) fn change_at(&mut self, machine: Machine) -> Result<String> {
        let (place, volume) = (self.stage.place(machine)?, self.volume());
        self.until("a change is accepted", BACK, |scene| {
            let operator = scene.stage.operators.get(place);
            operator.is_some_and(|operator| operator.change(&volume).is_ok())
        })?;
        let operator = self.stage.operators.get(place);
        operator.context("the gateway has no operator")?.last_audited()
    }

    fn volume(&self) -> String {
        self.stage.targets.first().map(|target| target.name.clone()).unwrap_or_default()
    }

    /// Asks for a change, which has to be refused with this code.
    pub(super) fn refused_as(&mut self, code: &str) {
        let volume = self.volume();
        let asked = self.observer().map(|operator| operator.change(&volume));
        match asked {
            Ok(asked) => {
                let check = rules::refused("a change is refused by name", code, &asked);
                if !check.passed {
                    self.miss(format!("{}: {}", check.rule, check.worst));
                }
            }
            Err(error) => self.miss(error.to_string()),
        }
    }

    /// Has a stranger want to join with this key file and name. It has to be refused, with this
    /// code.
    pub(super) fn stranger(&mut self, key: &Path, name: &str, code: &str) -> Result<()> {
        let first = self.stage.gateways.first().context("there are no gateways")?;
        match first.stranger(&self.stage.engines, key, name)? {
            None => self.miss("the stranger joined"),
            Some(refusal) if !refusal.contains(&format!("\"code\":\"{code}\"")) => {
                self.miss(format!("the refusal is not {code}: {refusal}"));
            }
            Some(_) => {}
        }
        let count = self.observer()?.gateways()?.len();
        if count != self.stage.gateways.len() {
            self.miss(format!("there are {count} gateways"));
        }
        Ok(())
    }

    /// The lengths of the logs of all gateways.
    pub(super) fn logs(&self) -> Vec<u64> {
        self.stage.gateways.iter().map(Gateway::log_bytes).collect()
    }

    /// Do the logs of all gateways have these words since then?
    pub(super) fn all_say(&self, since: &[u64], words: &str) -> bool {
        let mut each = self.stage.gateways.iter().zip(since);
        each.all(|(gateway, since)| gateway.log_from(*since).contains(words))
    }

    /// Does the log of any gateway have these words since then?
    pub(super) fn any_says(&self, since: &[u64], words: &str) -> bool {
        let mut each = self.stage.gateways.iter().zip(since);
        each.any(|(gateway, since)| gateway.log_from(*since).contains(words))
    }

    /// Has a client hold a lock on each volume of a gateway from now on.
    pub(super) fn hold_locks(&mut self, of: Machine) -> Result<()> {
        let addresses = self.addresses(of);
        let is_there = |target: &&Target| match target.address.ip() {
            IpAddr::V4(address) => addresses.contains(&address),
            IpAddr::V6(_) => false,
        };
        let targets: Vec<Target> = self.stage.targets.iter().filter(is_there).cloned().collect();
        for target in targets {
            let prefix = format!("held-{}", self.round);
            self.holding.push(Holding::start(&target, &prefix, &self.halt)?);
        }
        Ok(())
    }

    /// Has the clients with locks look at them, after their volumes have moved.
    pub(super) fn look_at_locks(&mut self) -> Result<()> {
        for client in std::mem::take(&mut self.holding) {
            let wrong = client.look().context("a client with a lock could not go on")?;
            self.misses.extend(wrong);
        }
        Ok(())
    }

    /// Has every client been refused?
    pub(super) fn all_refused(&mut self) -> bool {
        self.clients.iter().all(|client| client.refused() > 0)
    }

    /// One look: gateways that have ended by themselves are started again, as a service manager
    /// does, and the homes of addresses are noted.
    fn look(&mut self) -> Result<Homes> {
        self.stop.check()?;
        self.attend()?;
        if let Some(place) = self.clients.iter().position(Running::is_finished) {
            self.clients.remove(place).wait().context("a client ended before its time")?;
        }
        if let Some(place) = self.naming.iter().position(Naming::is_finished) {
            let ended = "a client of names ended before its time";
            self.naming.remove(place).wait().context(ended)?;
        }
        // A gateway may be too busy to answer.
        let homes = self.stage.homes(self.observer()?).unwrap_or_default();
        for (address, home) in &homes {
            self.owners.entry(*address).or_default().note(*home);
        }
        Ok(homes)
    }

    fn attend(&mut self) -> Result<()> {
        for gateway in &mut self.stage.gateways {
            let Err(error) = gateway.still_runs() else { continue };
            if !self.may_end.contains(&gateway.machine()) {
                self.misses.push(error.to_string());
            }
            self.ended.insert(gateway.machine());
            gateway.launch()?;
        }
        Ok(())
    }

    /// Lets time pass.
    pub(crate) fn hold(&mut self, time: Duration) -> Result<()> {
        let begun = Instant::now();
        loop {
            self.look()?;
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Lets time pass, and then until every client has got answers: before the fault is undone.
    pub(super) fn serves_for(&mut self, time: Duration) -> Result<()> {
        self.hold(time)?;
        self.until_answered()
    }

    /// The numbers of answers that the clients of each kind have got.
    fn answered(&self) -> Vec<u64> {
        let data = self.clients.iter().map(Running::answered);
        data.chain(self.naming.iter().map(Naming::answered)).collect()
    }

    /// Has every client got an answer since then?
    fn answered_since(&self, before: &[u64]) -> bool {
        self.answered().iter().zip(before).all(|(answered, before)| answered > before)
    }

    /// Waits until something is so. If it is not within the time, that is a miss, with `what`.
    pub(crate) fn until(
        &mut self,
        what: &str,
        longest: Duration,
        mut is_so: impl FnMut(&mut Self) -> bool,
    ) -> Result<()> {
        let begun = Instant::now();
        loop {
            self.look()?;
            if is_so(self) {
                return Ok(());
            }
            if begun.elapsed() > longest {
                self.miss(format!("not within {} s: {what}", longest.as_secs()));
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until every client has got an answer to something that it asked from now on.
    pub(crate) fn until_answered(&mut self) -> Result<()> {
        self.until_answered_within(BACK)
    }

    /// The same, with another longest time.
    pub(super) fn until_answered_within(&mut self, longest: Duration) -> Result<()> {
        // Answers to requests under way may be in the socket. A client of names has fewer.
        let before: Vec<u64> =
            self.answered().iter().map(|count| count + u64::from(DEPTH)).collect();
        self.until("every volume answers", longest, |scene| scene.answered_since(&before))
    }

    /// Waits until the addresses of a gateway are at others, and every client gets answers.
    pub(crate) fn until_moved(&mut self, from: Machine) -> Result<()> {
        let addresses = self.addresses(from);
        let what = format!("the addresses of {} are at others", from.name());
        self.until(&what, BACK, |scene| {
            let last = |address| scene.owners.get(address).and_then(Owners::last);
            addresses.iter().all(|address| last(address).is_some_and(|home| home != from))
        })?;
        self.until_answered()
    }

    /// Moves addresses with their volumes to a gateway, one after the other.
    pub(crate) fn bring(&mut self, addresses: &[Ipv4Addr], to: Machine) -> Result<()> {
        for address in addresses {
            let mut targets = self.stage.targets.iter();
            let target = targets.find(|target| target.address.ip() == IpAddr::V4(*address));
            let volume = target.with_context(|| format!("no volume at {address}"))?.name.clone();
            let what = format!("{volume} may move to {}", to.name());
            // Before the gateway lives in the eyes of all, it is refused.
            self.until(&what, BACK, |scene| {
                let observer = scene.observer();
                observer.and_then(|observer| observer.move_home(&volume, &to.name())).is_ok()
            })?;
            let what = format!("{address} is at {}", to.name());
            self.until(&what, BACK, |scene| {
                scene.owners.get(address).and_then(Owners::last) == Some(to)
            })?;
        }
        Ok(())
    }

    /// The first reason for which the cluster is not whole: all gateways live in the eyes of each,
    /// and all addresses have a home.
    fn missing(&self) -> Result<Option<String>> {
        for (gateway, operator) in self.stage.gateways.iter().zip(&self.stage.operators) {
            let name = gateway.name();
            let Ok(all) = operator.gateways() else {
                return Ok(Some(format!("{name} does not answer its operator")));
            };
            if let Some(one) = all.iter().find(|one| one.state != GatewayState::Live) {
                return Ok(Some(format!("to {name}, {} is {}", one.name, one.state)));
            }
            let homes = self.stage.homes(operator)?;
            if let Some((address, _)) = homes.iter().find(|(_, home)| home.is_none()) {
                return Ok(Some(format!("to {name}, {address} has no gateway")));
            }
        }
        Ok(None)
    }

    /// Waits until the cluster is whole and every client gets answers.
    ///
    /// # Errors
    /// If the campaign has to end. A cluster that is not whole in time is the inner error.
    pub(super) fn until_whole(&mut self, longest: Duration) -> Result<Result<(), String>> {
        self.unasked.clear();
        let begun = Instant::now();
        let answered = self.answered();
        loop {
            self.look()?;
            let missing = match self.missing() {
                Ok(None) if self.answered_since(&answered) => return Ok(Ok(())),
                Ok(None) => "a volume does not answer".to_owned(),
                Ok(Some(missing)) => missing,
                Err(error) => format!("{error:#}"),
            };
            if begun.elapsed() > longest {
                return Ok(Err(missing));
            }
            std::thread::sleep(LOOK);
        }
    }
}
