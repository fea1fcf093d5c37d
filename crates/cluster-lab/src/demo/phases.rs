//! The course of the demonstration: what happens to the cluster while the clients work, and when.

use super::judge::{Part, Phase};
use super::plan::{
    DEATH_S, DRAIN_S, Disturbance, MOVE_S, OUTAGE_S, RESTART_S, RETURN_S, STEADY_S, WARMUP_S, work,
};
use crate::bed::{Gateway, Machine, Operator};
use crate::load::{Outcome, Owners, Running, Senders, Span, Target, UNREACHABLE, Wire, rules};
use crate::stage::{Homes, Stage};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_lab::judge::Check;
use weir_lab::machine::{Second, Watch};
use weir_lab::stop::Stop;
use weir_load::Control;

/// Time between two looks while a phase goes on.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time until changes are accepted after etcd is back.
const ACCEPTED: Duration = Duration::from_secs(10);

/// The measurements, before they are judged.
pub(super) struct Measured {
    /// The volumes, and what their clients bring back.
    pub(super) volumes: Vec<(Target, Outcome)>,
    /// The gateways of each address.
    pub(super) owners: BTreeMap<Ipv4Addr, Owners>,
    /// The senders of replies on the bridge.
    pub(super) senders: Senders,
    /// The phases in which each address moved.
    pub(super) moved: BTreeMap<Ipv4Addr, Vec<Phase>>,
    /// The parts of the time in which contracts are judged, one after the other.
    pub(super) parts: Vec<Part>,
    /// The time without etcd.
    pub(super) outage: Span,
    /// The events, with their times.
    pub(super) events: Vec<(f64, String)>,
    /// The rules that are judged on the way.
    pub(super) checks: Vec<Check>,
    /// The machine's state.
    pub(super) seconds: Vec<Second>,
}

/// The loads, and what is known so far.
struct Play<'a> {
    stage: &'a mut Stage,
    stop: &'a Stop,
    begun: Instant,
    clients: Vec<Running>,
    owners: BTreeMap<Ipv4Addr, Owners>,
    moved: BTreeMap<Ipv4Addr, Vec<Phase>>,
    events: Vec<(f64, String)>,
    checks: Vec<Check>,
}

/// Loads all volumes, and lets everything happen.
///
/// # Errors
/// If a part fails in a way that leaves nothing to measure.
pub(super) fn run(stage: &mut Stage, stop: &Stop) -> Result<Measured> {
    let wire = Wire::watch(stage.gateways.iter().map(Gateway::machine).collect())?;
    let (begun, halt) = (Instant::now(), Control::new());
    let on_stop = halt.clone();
    stop.then(move || on_stop.stop())?;
    let machine = watch()?;
    let start = |target: &Target| Running::start(target, work(), begun, &halt);
    let clients = stage.targets.iter().map(start).collect::<Result<_>>()?;
    let mut play = Play {
        stage,
        stop,
        begun,
        clients,
        owners: BTreeMap::new(),
        moved: BTreeMap::new(),
        events: Vec::new(),
        checks: Vec::new(),
    };
    play.note_homes(0)?;
    play.pass(WARMUP_S)?;
    let steady_s = play.tell("steady");
    play.pass(STEADY_S)?;
    let death_s = play.now_s();
    let dead = play.death()?;
    let outage = play.outage(dead)?;
    let return_s = play.now_s();
    play.drain(dead)?;
    let end_s = play.tell("end of the loads: everything is read back");
    let volumes = play.finish()?;
    let part = |what, from_s, to_s| Part { what, span: Span { from_s, to_s } };
    let parts = vec![
        part("steady", steady_s, death_s),
        part("after a death", death_s, outage.from_s),
        part("etcd away and back", outage.from_s, return_s),
        part("return and drain", return_s, end_s),
    ];
    let Play { owners, moved, events, checks, .. } = play;
    let (senders, seconds) = (wire.end().senders, machine());
    Ok(Measured { volumes, owners, senders, moved, parts, outage, events, checks, seconds })
}

/// Watches the machine until the returned function is called.
fn watch() -> Result<impl FnOnce() -> Vec<Second>> {
    let (end, ended) = mpsc::channel::<()>();
    let watcher = std::thread::Builder::new().name("machine".to_owned());
    let watcher: JoinHandle<Vec<Second>> = watcher.spawn(move || {
        let mut watch = Watch::begin();
        while ended.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
            watch.look();
        }
        watch.seconds()
    })?;
    Ok(move || {
        drop(end);
        watcher.join().unwrap_or_default()
    })
}

impl Play<'_> {
    fn now_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Notes and announces that something happens now. Returns the time.
    fn tell(&mut self, what: &str) -> f64 {
        let now_s = self.now_s();
        weir_report::errln!("{now_s:6.1} s  {what}");
        self.events.push((now_s, what.to_owned()));
        now_s
    }

    /// Lets some seconds pass.
    fn pass(&mut self, seconds: u64) -> Result<()> {
        self.pass_until(self.now_s() + Duration::from_secs(seconds).as_secs_f64())
    }

    /// Starts gateways that have ended by themselves, as the service manager of a machine does. It
    /// is a miss.
    fn attend(&mut self) -> Result<()> {
        let mut ended = Vec::new();
        for gateway in &mut self.stage.gateways {
            if let Err(error) = gateway.still_runs() {
                ended.push(error.to_string());
                gateway.launch()?;
            }
        }
        for words in ended {
            self.tell(&format!("{words}; it is started again"));
            self.checks.push(Check::new("no gateway ends by itself", words, false));
        }
        Ok(())
    }

    /// Lets time pass until `until_s`. The loads have to go on.
    fn pass_until(&mut self, until_s: f64) -> Result<()> {
        while self.now_s() < until_s {
            self.stop.check()?;
            self.attend()?;
            let lost = self.clients.iter().position(Running::is_finished);
            if let Some(place) = lost {
                self.clients.remove(place).wait().context("a client ended before its time")?;
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn operator(&self, machine: Machine) -> Result<&Operator> {
        self.stage.operators.get(self.stage.place(machine)?).context("a gateway has no operator")
    }

    /// The gateway that is not `other` and has the most addresses.
    fn another(&self, other: Machine) -> Result<Machine> {
        let all = self.stage.gateways.iter().map(Gateway::machine);
        let others = all.filter(|machine| *machine != other);
        let most = others.max_by_key(|machine| self.addresses(*machine).len());
        most.context("there is no other gateway")
    }

    /// Notes the homes of all addresses, according to the gateway at this place.
    fn note_homes(&mut self, place: usize) -> Result<Homes> {
        let operator = self.stage.operators.get(place).context("there is no such gateway")?;
        let homes = self.stage.homes(operator)?;
        for (address, home) in &homes {
            self.owners.entry(*address).or_default().note(*home);
        }
        Ok(homes)
    }

    /// The addresses of a gateway, as far as is known.
    fn addresses(&self, machine: Machine) -> Vec<Ipv4Addr> {
        let own = self.owners.iter().filter(|(_, owners)| owners.last() == Some(machine));
        own.map(|(address, _)| *address).collect()
    }

    /// Waits until these addresses are at other gateways than `from`, and their clients get
    /// answers, and notes the homes all the time.
    fn follow(&mut self, addresses: &[Ipv4Addr], from: Machine) -> Result<bool> {
        let place = self.stage.place(self.another(from)?)?;
        let until_s = self.now_s() + Duration::from_secs(MOVE_S).as_secs_f64();
        let is_away = |home: &Option<Machine>| home.is_some_and(|home| home != from);
        let answered: Vec<u64> = self.clients.iter().map(Running::answered).collect();
        loop {
            // A gateway may be too busy to answer.
            let homes = self.note_homes(place).unwrap_or_default();
            let away = addresses.iter().all(|one| homes.get(one).is_some_and(is_away));
            let mut each = self.clients.iter().zip(&answered);
            let goes_on = each.all(|(client, before)| client.answered() > *before);
            if (away && goes_on) || self.now_s() > until_s {
                return Ok(away && goes_on);
            }
            self.pass_until(self.now_s() + LOOK.as_secs_f64())?;
        }
    }

    /// Notes that these addresses moved between two times.
    fn moved(&mut self, addresses: &[Ipv4Addr], why: Disturbance, from_s: f64) {
        let phase = Phase { why, span: Span { from_s, to_s: self.now_s() } };
        for address in addresses {
            self.moved.entry(*address).or_default().push(phase);
        }
    }

    /// Kills the last gateway. Returns it.
    fn death(&mut self) -> Result<Machine> {
        let victim = self.stage.gateways.last().context("there are no gateways")?;
        let (machine, name) = (victim.machine(), victim.name());
        let addresses = self.addresses(machine);
        ensure!(!addresses.is_empty(), "{name} serves no address");
        let from_s = self.tell(&format!("{name} is killed, with {} addresses", addresses.len()));
        let victim = self.stage.gateways.last_mut().context("there are no gateways")?;
        victim.kill()?;
        let came = self.follow(&addresses, machine)?;
        let took_s = self.now_s() - from_s;
        if came {
            self.tell("its addresses are at other gateways, and their clients go on");
        }
        let words = format!("{}, {:.1} s after", if came { "all" } else { "not all" }, took_s);
        self.checks.push(Check::new("the volumes of a killed gateway come back", words, came));
        self.pass_until(from_s + Duration::from_secs(DEATH_S).as_secs_f64())?;
        self.moved(&addresses, Disturbance::Death, from_s);
        Ok(machine)
    }

    /// Takes etcd away and brings it back. Returns the time without it.
    fn outage(&mut self, dead: Machine) -> Result<Span> {
        let asked = self.another(dead)?;
        let place = self.stage.place(asked)?;
        let before = self.note_homes(place)?;
        let from_s = self.tell("all members of etcd are killed");
        self.stage.engines.kill_etcd()?;
        self.pass_until(from_s + 5.0)?;
        let refused = self.operator(asked)?.change(&self.volume()?);
        let rule = "a change without etcd is refused by name";
        self.checks.push(rules::refused(rule, UNREACHABLE, &refused));
        self.pass_until(from_s + Duration::from_secs(OUTAGE_S).as_secs_f64())?;
        let back_s = self.tell("etcd is started again");
        self.stage.engines.start_etcd()?;
        let begun = Instant::now();
        let accepted = loop {
            match self.operator(asked)?.change(&self.volume()?) {
                Err(error) if begun.elapsed() > ACCEPTED => break Err(error),
                Err(_) => self.pass_until(self.now_s() + 0.2)?,
                Ok(()) => break Ok(self.now_s() - back_s),
            }
        };
        let (words, passed) = match &accepted {
            Ok(after_s) => (format!("{after_s:.1} s after"), *after_s <= ACCEPTED.as_secs_f64()),
            Err(error) => (error.to_string(), false),
        };
        let rule = "changes are accepted within 10 s after etcd is back";
        self.checks.push(Check::new(rule, words, passed));
        self.pass_until(back_s + Duration::from_secs(RETURN_S).as_secs_f64())?;
        let after = self.note_homes(place)?;
        let moved = before.iter().filter(|(address, home)| after.get(*address) != Some(*home));
        let moved = moved.count();
        let rule = "no address moves while etcd is away";
        self.checks.push(Check::new(rule, format!("{moved} moved"), moved == 0));
        Ok(Span { from_s, to_s: self.now_s() })
    }

    fn volume(&self) -> Result<String> {
        let first = self.stage.targets.first().context("there are no volumes")?;
        Ok(first.name.clone())
    }

    /// Starts the dead gateway again, and drains another, so that addresses move to it.
    fn drain(&mut self, dead: Machine) -> Result<()> {
        let place = self.stage.place(dead)?;
        let begun = Instant::now();
        let gateway = self.stage.gateways.get_mut(place).context("there is no such gateway")?;
        let name = gateway.name();
        let operator = gateway.start()?;
        let took_s = begun.elapsed().as_secs_f64();
        if let Some(own) = self.stage.operators.get_mut(place) {
            *own = operator;
        }
        let returned_s = self.tell(&format!("{name} is back after {took_s:.1} s"));
        self.pass_until(returned_s + Duration::from_secs(RESTART_S).as_secs_f64())?;
        let other = self.another(dead)?;
        self.note_homes(place)?;
        let addresses = self.addresses(other);
        let from = self.stage.gateways.iter().find(|gateway| gateway.machine() == other);
        let from = from.context("there is no other gateway")?.name();
        ensure!(!addresses.is_empty(), "{from} serves no address");
        let from_s = self.tell(&format!("{from} is drained of {} addresses", addresses.len()));
        let asked = self.operator(dead)?.drain(&from);
        let came = asked.is_ok() && self.follow(&addresses, other)?;
        let words = match asked {
            Ok(()) => format!("{:.1} s after", self.now_s() - from_s),
            Err(error) => format!("refused: {error:#}"),
        };
        self.checks.push(Check::new("a drained gateway has no addresses left", words, came));
        let got = addresses.iter().filter(|address| {
            self.owners.get(*address).is_some_and(|owners| owners.last() == Some(dead))
        });
        let got = got.count();
        let rule = "a gateway that returned gets addresses";
        self.checks.push(Check::new(rule, format!("{got} of {}", addresses.len()), got > 0));
        if came {
            self.tell("its addresses are at other gateways, and their clients go on");
        }
        self.pass_until(from_s + Duration::from_secs(DRAIN_S).as_secs_f64())?;
        self.moved(&addresses, Disturbance::Drain, from_s);
        Ok(())
    }

    /// Ends the loads, and waits until everything was read back.
    fn finish(&mut self) -> Result<Vec<(Target, Outcome)>> {
        self.clients.iter().for_each(Running::finish);
        let clients = std::mem::take(&mut self.clients);
        let targets = self.stage.targets.iter().cloned();
        targets.zip(clients).map(|(target, client)| Ok((target, client.wait()?))).collect()
    }
}
