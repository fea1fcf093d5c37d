//! The simulated world: machines, the network between them, etcd and Ceph, in virtual time. The
//! next thing to happen is the earliest one that is due, so a seed has one course.
//!
//! Not here: which faults happen ([`faults`](super::faults)), and what must hold
//! ([`checks`](super::checks)).

use super::checks::Checks;
use super::etcd::{Answer, Ceph, Etcd, Request};
use super::faults::Fault;
use super::machine::{Machine, Process};
use crate::change::Change;
use crate::cluster::Cluster;
use crate::event::{Action, Event, Message, Reason, Start};
use crate::id::{GatewayId, GroupId, Life, SessionId, Version};
use crate::records::{Came, View};
use crate::timing::TICK;
use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::sync::Arc;
use core::cmp::{Ordering, Reverse};
use weir_core::Mono;
use weir_core::rng::Rng;

pub(super) const MILLISECOND: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000 * MILLISECOND;

/// Parts of the world that do not behave as the rules may assume. The simulation has to find them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misbehaviour {
    None,
    /// Ceph says that a blocklist is in force before it is.
    BlocklistEarly,
    /// etcd ends leases too early.
    ShortLeases,
    /// Clocks run at rates that differ by up to 30 %.
    WildClocks,
    /// A helper takes a stopped process for ended.
    HastyHelper,
    /// A service is said to have stopped before it has.
    StoppedEarly,
}

/// The programs that lives are started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Programs {
    /// The programs that the machines have.
    Same,
    /// Now and then another is installed before a start, newer or older, and too old ones as well.
    Other,
    /// A program that is too old for the records is replaced by one that is not.
    Fitting,
}

/// The newest version of a program in this world.
const NEWEST: u16 = 3;

/// Things to come.
pub(super) enum What {
    Tick {
        machine: usize,
        serial: u64,
    },
    Event {
        machine: usize,
        serial: u64,
        event: Event,
    },
    View {
        machine: usize,
        serial: u64,
        view: Arc<View>,
    },
    Message {
        from: usize,
        to: usize,
        message: Message,
    },
    Etcd {
        machine: usize,
        serial: u64,
        request: u64,
        body: Request,
    },
    Expire,
    AskHelper {
        from: usize,
        of: usize,
        asker: Life,
        asked: Mono,
    },
    /// To whatever process is there then.
    Arrive {
        to: usize,
        event: Event,
    },
    HelperSpeaks {
        machine: usize,
    },
    Adopt {
        machine: usize,
        serial: u64,
        group: GroupId,
    },
    Stopped {
        machine: usize,
        serial: u64,
        group: GroupId,
    },
    Blocklist {
        machine: usize,
        serial: u64,
        life: Life,
        sessions: Vec<SessionId>,
    },
    Refuse {
        sessions: Vec<SessionId>,
    },
    Start {
        machine: usize,
    },
    PowerOn {
        machine: usize,
    },
    Continue {
        machine: usize,
        serial: u64,
    },
    /// The process of a life that has ended in order exits.
    Exit {
        machine: usize,
        life: Life,
    },
    Fault(Fault),
    Heal,
}

struct Entry {
    at: u64,
    order: u64,
    what: What,
}

/// Delays and losses of the network.
#[derive(Clone, Copy)]
pub(super) struct Weather {
    /// Of a thousand messages, so many are lost.
    pub(super) lost: u64,
    /// Of a thousand, so many come twice.
    pub(super) doubled: u64,
    /// Of a thousand, so many come up to two seconds late.
    pub(super) late: u64,
}

impl Weather {
    pub(super) const CALM: Self = Self { lost: 0, doubled: 0, late: 0 };
}

pub(super) struct World {
    pub(super) now: u64,
    pub(super) rng: Rng,
    pub(super) weather: Weather,
    pub(super) misbehaviour: Misbehaviour,
    pub(super) programs: Programs,
    pub(super) etcd: Etcd,
    pub(super) ceph: Ceph,
    pub(super) machines: Vec<Machine>,
    pub(super) links_cut_until: BTreeMap<(usize, usize), u64>,
    pub(super) checks: Checks,
    queue: BinaryHeap<Reverse<Entry>>,
    order: u64,
    serials: u64,
}

impl World {
    /// A world of so many machines, none of which has started its gateway.
    pub(super) fn new(seed: u64, machines: u16, misbehaviour: Misbehaviour) -> Self {
        let mut rng = Rng::new(seed);
        let spread: u64 = if misbehaviour == Misbehaviour::WildClocks { 300_000 } else { 10_000 };
        let mut rate = || i64::try_from(rng.below(2 * spread + 1)).unwrap() - spread.cast_signed();
        let mut etcd = Etcd::new(rate());
        if misbehaviour == Misbehaviour::ShortLeases {
            etcd.lease /= 2;
        }
        let rates: Vec<i64> = (0..machines).map(|_| rate()).collect();
        let mut offset = || rng.below(1_000_000) * SECOND;
        let machines = (1..=machines).zip(rates).map(|(n, rate)| Machine::new(n, rate, offset()));
        let mut world = Self {
            now: 0,
            machines: machines.collect(),
            rng,
            weather: Weather::CALM,
            misbehaviour,
            programs: Programs::Same,
            etcd,
            ceph: Ceph::default(),
            links_cut_until: BTreeMap::new(),
            checks: Checks::default(),
            queue: BinaryHeap::new(),
            order: 0,
            serials: 0,
        };
        world.after(0, What::Expire);
        world
    }

    /// Adds groups with these weights to the records.
    pub(super) fn create_groups(&mut self, weights: &[u64]) {
        for (group, &weight) in (1..).zip(weights) {
            self.etcd.change(&Change::Place { group: GroupId(group), weight });
        }
    }

    pub(super) fn after(&mut self, delay: u64, what: What) {
        self.order += 1;
        self.queue.push(Reverse(Entry { at: self.now + delay, order: self.order, what }));
    }

    /// A time between two others, in milliseconds; returned in nanoseconds.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        (least * MILLISECOND) + self.rng.below((most - least) * MILLISECOND + 1)
    }

    pub(super) fn happens(&mut self, of_a_thousand: u64) -> bool {
        self.rng.below(1_000) < of_a_thousand
    }

    /// Lets everything happen that is due until `until`, or until a check fails.
    pub(super) fn run_until(&mut self, until: u64) {
        while self.checks.violation.is_none() && self.step_until(until) {}
        self.now = self.now.max(until);
    }

    /// Lets the next thing happen, if it is due before `until`.
    pub(super) fn step_until(&mut self, until: u64) -> bool {
        if self.queue.peek().is_none_or(|Reverse(next)| next.at > until) {
            return false;
        }
        if let Some(Reverse(next)) = self.queue.pop() {
            self.now = next.at;
            self.happen(next.what);
            super::checks::check(self);
        }
        true
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Tick { machine, serial } => self.tick(machine, serial),
            What::Event { machine, serial, event } => self.give(machine, Some(serial), event),
            What::View { machine, serial, view } if self.reaches_etcd(machine) => {
                self.give(machine, Some(serial), Event::View(view));
            }
            What::View { .. } => {}
            What::Message { from, to, message } if self.is_linked(from, to) => {
                self.give(to, None, Event::Message(message));
            }
            What::Message { .. } => {}
            What::Etcd { machine, serial, request, body } => {
                self.at_etcd(machine, serial, request, body);
            }
            What::Expire => self.expire(),
            What::AskHelper { from, of, asker, asked } => self.ask_helper(from, of, asker, asked),
            What::Arrive { to, event } => self.give(to, None, event),
            What::HelperSpeaks { machine } => self.helper_speaks(machine),
            What::Adopt { machine, serial, group } => {
                if self.now < self.machines[machine].cut_from_ceph_until {
                    self.after(500 * MILLISECOND, What::Adopt { machine, serial, group });
                } else {
                    self.give(machine, Some(serial), Event::Adopted(group));
                }
            }
            What::Stopped { machine, serial, group } => {
                let process = self.machines[machine].process.as_ref();
                if let Some(process) = process.filter(|process| process.serial == serial) {
                    self.checks.released(group, process.cluster.life());
                }
                self.give(machine, Some(serial), Event::Stopped(group));
            }
            What::Blocklist { machine, serial, life, sessions } => {
                self.ceph.blocklist(&sessions);
                let barrier = self.ceph.barrier();
                let told = self.between(1, 1_000);
                self.after(told, What::Refuse { sessions });
                self.give(machine, Some(serial), Event::InForce { life, barrier });
            }
            What::Refuse { sessions } => self.refuse(&sessions),
            What::Start { machine } => self.start(machine),
            What::PowerOn { machine } => {
                let own = &mut self.machines[machine];
                own.is_up = own.is_up || !own.is_lost;
                self.start(machine);
            }
            What::Continue { machine, serial } => self.continue_process(machine, serial),
            What::Exit { machine, life } => self.exit(machine, life),
            What::Fault(fault) => self.strike(fault),
            What::Heal => self.heal(),
        }
    }

    /// Gives an event to the process on a machine, if it is the one with this serial.
    fn give(&mut self, machine: usize, serial: Option<u64>, event: Event) {
        let now = self.machines[machine].local(self.now);
        let Some(process) = &mut self.machines[machine].process else { return };
        if serial.is_some_and(|serial| serial != process.serial) {
            return;
        }
        if let Some((_, missed)) = &mut process.stopped {
            if !matches!(event, Event::Tick) {
                missed.push(event);
            }
            return;
        }
        let actions = process.cluster.step(now, event);
        let serial = process.serial;
        for action in actions {
            self.perform(machine, serial, action);
        }
    }

    fn perform(&mut self, machine: usize, serial: u64, action: Action) {
        let soon = self.between(0, 3);
        match action {
            Action::Announce(life) => {
                self.machines[machine].helper.announce(life);
                self.after(soon, What::Event { machine, serial, event: Event::Announced });
            }
            Action::Lease { request, kind } => {
                let life = self.machines[machine].life().unwrap();
                self.ask_etcd(machine, serial, request.0, Request::Lease(life, kind));
            }
            Action::Change { request, transaction } => {
                self.ask_etcd(machine, serial, request.0, Request::Change(transaction));
            }
            Action::Acknowledge(generation) => {
                let gateway = self.machines[machine].gateway;
                self.ask_etcd(machine, serial, 0, Request::Acknowledge(gateway, generation));
            }
            Action::Send { to, message } => self.send(machine, to, &message),
            Action::AskHelper { gateway, asked } => {
                let asker = self.machines[machine].life().unwrap();
                let of = Self::index(gateway);
                for delay in self.delays() {
                    self.after(delay, What::AskHelper { from: machine, of, asker, asked });
                }
            }
            Action::Note(life) => self.machines[machine].helper.note(life),
            Action::Unnote(life) => self.machines[machine].helper.unnote(life),
            Action::Blocklist { life, sessions } => self.blocklist(machine, serial, life, sessions),
            Action::Adopt { group, came } => self.adopt(machine, serial, group, came),
            Action::Address(group) => {
                let delay = self.between(1, 20);
                self.after(delay, What::Event { machine, serial, event: Event::Addressed(group) });
            }
            Action::Notify(_) => self.checks.notified += 1,
            Action::Stop { group, .. } => {
                let delay = self.between(1, 300);
                if self.misbehaviour == Misbehaviour::StoppedEarly {
                    self.checks.lingering(self.now + SECOND, group, self.machines[machine].life());
                }
                self.after(delay, What::Stopped { machine, serial, group });
            }
            Action::Resume(group) => self.checks.resumed(group),
            Action::Answer { answer, .. } => self.checks.answers.push(answer),
            Action::End(reason) => {
                self.checks.too_old += u64::from(reason == Reason::Format);
                self.checks.ends.push(reason);
                self.end_process(machine);
                let delay = self.between(200, 2_000);
                self.after(delay, What::Start { machine });
            }
        }
    }

    pub(super) fn end_process(&mut self, machine: usize) {
        self.machines[machine].end_process();
        self.after(MILLISECOND, What::HelperSpeaks { machine });
    }

    fn tick(&mut self, machine: usize, serial: u64) {
        let is_present = |process: &Process| process.serial == serial;
        if !self.machines[machine].process.as_ref().is_some_and(is_present) {
            return;
        }
        self.watch(machine);
        let jitter = self.rng.below(20 * MILLISECOND);
        let tick = u64::try_from(TICK.as_nanos()).unwrap() - jitter;
        self.after(tick, What::Tick { machine, serial });
        self.give(machine, Some(serial), Event::Tick);
    }

    /// Sends the newest view to the process on a machine, unless it has it.
    fn watch(&mut self, machine: usize) {
        let (delay, reaches) = (self.between(0, 10), self.reaches_etcd(machine));
        let (now, revision) = (self.now, self.etcd.view.revision);
        let Some(process) = &mut self.machines[machine].process else { return };
        let (sent, arrives) = process.watched;
        // A view that was under way when the link was cut is lost, so the last one is sent again.
        let is_lost = arrives < now && process.cluster.view().revision < sent;
        let is_news = sent < revision || is_lost || (revision == 0 && arrives == 0);
        if !reaches || !is_news {
            return;
        }
        let arrives = arrives.max(now + delay);
        process.watched = (revision, arrives);
        let (serial, view) = (process.serial, Arc::clone(&self.etcd.view));
        self.after(arrives - now, What::View { machine, serial, view });
    }

    fn start(&mut self, machine: usize) {
        let own = &self.machines[machine];
        if !own.is_up || own.process.is_some() || own.leaving.is_some() {
            return;
        }
        self.install(machine);
        let sessions = vec![self.ceph.mount(), self.ceph.mount()];
        self.serials += 1;
        let serial = self.serials;
        let own = &mut self.machines[machine];
        own.counter += 1;
        let start = Start {
            life: Life { gateway: own.gateway, number: own.counter },
            machine: own.id,
            speaks: own.speaks,
            sessions: sessions.clone(),
        };
        let cluster = Cluster::new(own.local(self.now), start);
        own.process = Some(Process { serial, cluster, sessions, stopped: None, watched: (0, 0) });
        self.after(0, What::Tick { machine, serial });
    }

    /// Lets an operator install another program on a machine whose gateway does not run.
    fn install(&mut self, machine: usize) {
        match self.programs {
            Programs::Same => {}
            Programs::Other => {
                if self.happens(400) {
                    let version = 1 + self.rng.below(NEWEST.into());
                    self.machines[machine].speaks = Version(u16::try_from(version).unwrap());
                }
            }
            Programs::Fitting => {
                let own = &mut self.machines[machine];
                own.speaks = own.speaks.max(self.etcd.view.records.format);
            }
        }
    }

    pub(super) fn index(gateway: GatewayId) -> usize {
        usize::from(gateway.0) - 1
    }
}

/// Messages between machines.
impl World {
    pub(super) fn is_linked(&self, a: usize, b: usize) -> bool {
        let cut_until = self.links_cut_until.get(&(a.min(b), a.max(b))).copied().unwrap_or(0);
        self.machines[a].is_up && self.machines[b].is_up && self.now >= cut_until
    }

    /// The delays with which the copies of a message arrive.
    fn delays(&mut self) -> Vec<u64> {
        let weather = self.weather;
        if self.happens(weather.lost) {
            return Vec::new();
        }
        let copies = if self.happens(weather.doubled) { 2 } else { 1 };
        let mut delay = || {
            let most = if self.happens(weather.late) { 2_000 } else { 3 };
            self.between(0, most)
        };
        (0..copies).map(|_| delay()).collect()
    }

    fn send(&mut self, from: usize, to: GatewayId, message: &Message) {
        let to = Self::index(to);
        for delay in self.delays() {
            self.after(delay, What::Message { from, to, message: *message });
        }
    }

    fn ask_helper(&mut self, from: usize, of: usize, asker: Life, asked: Mono) {
        if !self.is_linked(from, of) {
            return;
        }
        if let Some(word) = self.machines[of].word(Some((asker, asked))) {
            for delay in self.delays() {
                self.after(delay, What::Arrive { to: from, event: Event::Helper(word) });
            }
        }
    }

    /// The helper of a machine tells everybody that the gateway's process has ended, if it has, and
    /// goes on doing so.
    fn helper_speaks(&mut self, machine: usize) {
        let own = &self.machines[machine];
        if !own.helper.knows_end() {
            return;
        }
        if let Some(word) = own.word(None) {
            for to in (0..self.machines.len()).filter(|to| *to != machine) {
                if self.is_linked(machine, to) {
                    for delay in self.delays() {
                        self.after(delay, What::Arrive { to, event: Event::Helper(word) });
                    }
                }
            }
        }
        self.after(SECOND, What::HelperSpeaks { machine });
    }
}

/// etcd and Ceph.
impl World {
    pub(super) fn reaches_etcd(&self, machine: usize) -> bool {
        let own = &self.machines[machine];
        own.is_up && self.now >= own.cut_from_etcd_until && self.now >= self.etcd.down_until
    }

    pub(super) fn ask_etcd(&mut self, machine: usize, serial: u64, request: u64, body: Request) {
        let own = &self.machines[machine];
        if !own.is_up || self.now < own.cut_from_etcd_until {
            return;
        }
        let most = if self.now < self.etcd.slow_until { 4_000 } else { 10 };
        let delay = self.between(0, most);
        self.after(delay, What::Etcd { machine, serial, request, body });
    }

    /// A request has arrived at etcd, also if its sender has ended meanwhile.
    fn at_etcd(&mut self, machine: usize, serial: u64, request: u64, body: Request) {
        if self.now < self.etcd.down_until {
            // A stopped etcd finds it in its socket later; one that ended does not.
            if self.happens(500) {
                let wait = self.etcd.down_until - self.now;
                self.after(wait, What::Etcd { machine, serial, request, body });
            }
            return;
        }
        let before = self.etcd.view.revision;
        let (answer, change) = self.etcd.carry_out(self.now, body);
        if let Some(change) = &change {
            self.checks.applied(change);
        }
        if self.etcd.view.revision > before {
            (0..self.machines.len()).for_each(|machine| self.watch(machine));
        }
        let request = crate::id::RequestId(request);
        let event = match answer {
            Answer::Lease(answer) => Event::Lease { request, answer },
            Answer::Changed(applied) => Event::Changed { request, applied },
            Answer::None => return,
        };
        if self.reaches_etcd(machine) {
            let delay = self.between(0, 10);
            self.after(delay, What::Event { machine, serial, event });
        }
    }

    fn expire(&mut self) {
        if self.now >= self.etcd.down_until {
            let rng = &mut self.rng;
            if self.etcd.expire(self.now, || rng.below(2) == 0) {
                (0..self.machines.len()).for_each(|machine| self.watch(machine));
            }
        }
        self.after(100 * MILLISECOND, What::Expire);
    }

    fn blocklist(&mut self, machine: usize, serial: u64, life: Life, sessions: Vec<SessionId>) {
        if self.now < self.machines[machine].cut_from_ceph_until {
            return;
        }
        let delay = self.between(20, 800);
        if self.misbehaviour == Misbehaviour::BlocklistEarly {
            let event = Event::InForce { life, barrier: self.ceph.barrier() };
            self.after(MILLISECOND, What::Event { machine, serial, event });
        }
        self.after(delay, What::Blocklist { machine, serial, life, sessions });
    }

    /// Ceph tells the process with these sessions that they are blocklisted.
    fn refuse(&mut self, sessions: &[SessionId]) {
        for machine in 0..self.machines.len() {
            let own = &self.machines[machine];
            let is_meant = |process: &Process| process.sessions == *sessions;
            if self.now >= own.cut_from_ceph_until && own.process.as_ref().is_some_and(is_meant) {
                self.give(machine, None, Event::Blocklisted);
            }
        }
    }

    fn adopt(&mut self, machine: usize, serial: u64, group: GroupId, came: Came) {
        if let Some(process) = &self.machines[machine].process {
            let (life, sessions) = (process.cluster.life(), process.sessions.clone());
            self.checks.adopts(&self.ceph, group, life, sessions, came);
        }
        let delay = self.between(1, 300);
        self.after(delay, What::Adopt { machine, serial, group });
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}
