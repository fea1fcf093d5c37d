//! One life of a gateway in the cluster: events in, actions out.
//!
//! Not here: the parts themselves. This module takes each event to the part that it belongs to, and
//! then lets every part do what is due.

mod changes;

use crate::command::{Command, Refusal};
use crate::event::{Action, Body, Event, HelperWord, Message, Reason, Start};
use crate::fencing::Fencing;
use crate::hosting::{Able, Hosting};
use crate::id::{GatewayId, GroupId, Life, RequestId, Version};
use crate::lease::Lease;
use crate::peers::Peers;
use crate::records::View;
use crate::right::Right;
use crate::timing::{ANSWER_WITHIN, ASK_EVERY, AWAKE, GATEWAYS_MAX, IN_VAIN, TURN};
use crate::words::Words;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use changes::{Changes, Purpose};
use weir_core::Mono;

/// One life of a gateway.
#[derive(Debug)]
pub struct Cluster {
    start: Start,
    phase: Phase,
    view: Arc<View>,
    pulse: Pulse,
    lease: Lease,
    peers: Peers,
    fencing: Fencing,
    hosting: Hosting,
    changes: Changes,
    command: Option<(u64, Command)>,
    /// The latest life of each gateway that is known to have ended, by the word of its helper.
    ended: BTreeMap<GatewayId, u32>,
    words: Words,
    /// When words were asked for last.
    asked: Option<Mono>,
    /// When a generation was acknowledged last.
    acknowledged: Option<Mono>,
    right: Right,
    requests: u64,
    actions: Vec<Action>,
}

/// How far a life has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It knows nothing of the cluster yet.
    Waiting,
    /// The helper on its machine is being told.
    Announcing,
    /// It is to become a member. The helper has spoken for its gateway until `announced`.
    Registering { announced: Mono },
    /// It is a member.
    Member { announced: Mono },
    /// It has ended.
    Ended,
}

/// Times of this life's own steps.
#[derive(Clone, Copy, Debug, Default)]
struct Pulse {
    last: Mono,
    /// Since when no two steps were far apart.
    awake_since: Mono,
    /// Since when the records have had their generation.
    view_since: Mono,
}

impl Cluster {
    /// A life that begins at `now` and knows nothing yet.
    #[must_use]
    pub fn new(now: Mono, start: Start) -> Self {
        Self {
            start,
            phase: Phase::Waiting,
            view: Arc::default(),
            pulse: Pulse { last: now, awake_since: now, view_since: now },
            lease: Lease::default(),
            peers: Peers::default(),
            fencing: Fencing::default(),
            hosting: Hosting::default(),
            changes: Changes::default(),
            command: None,
            ended: BTreeMap::new(),
            words: Words::default(),
            asked: None,
            acknowledged: None,
            right: Right::NONE,
            requests: 0,
            actions: Vec::new(),
        }
    }

    /// Takes an event, and returns what is to be done. The driver first publishes the
    /// [right](Self::right), then carries out the actions.
    pub fn step(&mut self, now: Mono, event: Event) -> Vec<Action> {
        if self.phase != Phase::Ended {
            let now = self.pulse.beat(now);
            self.take(now, event);
            self.pursue(now);
            self.right = self.right_at(now);
        }
        core::mem::take(&mut self.actions)
    }

    /// The right to reply, as of the latest step.
    #[must_use]
    pub const fn right(&self) -> Right {
        self.right
    }

    /// The groups for which replies may leave while there is a right to reply.
    pub fn replying(&self) -> impl Iterator<Item = GroupId> {
        self.hosting.replying()
    }

    /// The state of etcd that this life follows. While it is cut from etcd, the last that it saw.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Is this life unable to vouch for the end of `life` at `now`, whatever etcd says?
    #[cfg(test)]
    pub(crate) fn is_bound_to(&self, now: Mono, life: Life) -> bool {
        match self.phase {
            Phase::Member { announced } => {
                now < announced + crate::timing::PROMISE || self.peers.has_promised(now, life)
            }
            _ => true,
        }
    }

    /// The life.
    #[must_use]
    pub const fn life(&self) -> Life {
        self.start.life
    }

    fn take(&mut self, now: Mono, event: Event) {
        match event {
            Event::Tick => {}
            Event::View(view) => self.follow(now, view),
            Event::Newer => self.end(Reason::Format),
            Event::Announced => {
                if self.phase == Phase::Announcing {
                    self.phase = Phase::Registering { announced: now };
                }
            }
            Event::Lease { request, answer } => self.lease.answered(request, answer),
            Event::Changed { request, applied } => self.changed(now, request, applied),
            Event::Message(message) => self.heard(now, message),
            Event::Helper(word) => self.heard_helper(now, word),
            Event::InForce { life, barrier } => self.fencing.in_force(life, barrier),
            Event::Adopted(group) => self.hosting.adopted(group),
            Event::Addressed(group) => self.hosting.addressed(group, &mut self.actions),
            Event::Stopped(group) => self.hosting.stopped(group),
            Event::Blocklisted => self.end(Reason::Blocklisted),
            Event::Command { number, command } => self.commanded(now, number, command),
        }
    }

    /// Does everything that is due at `now`.
    fn pursue(&mut self, now: Mono) {
        if self.phase == Phase::Ended {
            return;
        }
        let view = Arc::clone(&self.view);
        if let Phase::Member { .. } = self.phase {
            self.keep_lease(now);
            self.ask_for_words(now, &view);
            self.acknowledge(now, &view);
            let fresh = self.lease.is_fresh(now);
            let (me, replies) = (self.life(), self.right_at(now).allows(now));
            let able = Able { replies, changes: fresh };
            if let Err(reason) = self.hosting.follow(me, &view, able, &mut self.actions) {
                return self.end(reason);
            }
            if fresh && self.is_my_turn(now, &view) {
                self.fencing.pursue(now, &view, &mut self.actions);
            }
        }
        self.change(now, &view);
    }

    fn follow(&mut self, now: Mono, view: Arc<View>) {
        if view.revision < self.view.revision {
            return;
        }
        if view.generation() > self.view.generation() {
            self.pulse.view_since = now;
        }
        self.view = view;
        let is_member = match self.admission() {
            Ok(is_member) => is_member,
            Err(reason) => return self.end(reason),
        };
        match self.phase {
            Phase::Waiting => {
                self.phase = Phase::Announcing;
                self.actions.push(Action::Announce(self.life()));
            }
            Phase::Registering { announced } if is_member => {
                self.phase = Phase::Member { announced };
                // Changes of the life before are settled by this registration: those of its notes
                // that stand for lives which are still members are over.
                let members = self.view.members().map(|(life, _)| Action::Unnote(life));
                self.actions.extend(members);
            }
            _ => {}
        }
        let view = &self.view;
        for life in self.peers.follow(now, self.start.life.gateway, view) {
            self.actions.push(Action::Unnote(life));
        }
        self.words.follow(view);
        self.fencing.follow(view);
        self.ended.retain(|gateway, _| view.records.gateways.contains_key(gateway));
    }

    /// Whether the records have this life as a member; or why it can't be one.
    fn admission(&self) -> Result<bool, Reason> {
        let records = &self.view.records;
        if records.format > self.start.speaks {
            return Err(Reason::Format);
        }
        let me = self.life();
        let Some(row) = records.gateways.get(&me.gateway) else {
            return match self.phase {
                Phase::Member { .. } => Err(Reason::Condemned),
                _ if records.gateways.len() >= GATEWAYS_MAX => Err(Reason::Full),
                _ => Ok(false),
            };
        };
        // The earlier lives of another machine have to be over, and known to be.
        let is_free = row.member().is_none() && row.fences.iter().all(|fence| fence.gone);
        if row.machine != self.start.machine && (row.number() >= me.number || !is_free) {
            return Err(Reason::NameTaken);
        }
        if self.view.is_over(me) {
            return Err(Reason::Condemned);
        }
        Ok(self.view.is_member(me))
    }

    fn keep_lease(&mut self, now: Mono) {
        if let Some(kind) = self.lease.due(now) {
            let request = self.next_request();
            self.lease.sent(request, now);
            self.actions.push(Action::Lease { request, kind });
        }
    }

    /// Asks all other members, and the helpers on their machines, while etcd is out of reach.
    fn ask_for_words(&mut self, now: Mono, view: &View) {
        let is_due = self.asked.is_none_or(|asked| now >= asked + ASK_EVERY);
        if self.lease.is_fresh(now) || !is_due {
            return;
        }
        self.asked = Some(now);
        let in_vain = now >= self.right.end() + IN_VAIN;
        let body = Body::Ask { asked: now, in_vain };
        let me = self.life();
        for (life, _) in view.members().filter(|(life, _)| life.gateway != me.gateway) {
            let message = Message { version: self.spoken(), from: me, body };
            self.actions.push(Action::Send { to: life.gateway, message });
            self.actions.push(Action::AskHelper { gateway: life.gateway, asked: now });
        }
    }

    /// Says which generation this life knows, once for each gateway that became a member.
    fn acknowledge(&mut self, now: Mono, view: &View) {
        let newest = view.members().map(|(_, member)| member.since).max();
        let known = view.acknowledged.get(&self.life().gateway);
        let is_due = self.acknowledged.is_none_or(|last| now >= last + ANSWER_WITHIN);
        if is_due && newest.is_some_and(|newest| known.is_none_or(|known| *known < newest)) {
            self.acknowledged = Some(now);
            self.actions.push(Action::Acknowledge(view.generation()));
        }
    }

    /// The version that all members understand: that of the records. Before they have agreed on
    /// one, it is the first.
    fn spoken(&self) -> Version {
        self.view.records.format.max(Version(1))
    }

    fn heard(&mut self, now: Mono, message: Message) {
        if message.version > self.start.speaks {
            return;
        }
        match message.body {
            Body::Ask { asked, in_vain } => {
                if self.promises(now, message.from, in_vain) {
                    let body = Body::Promise { to: message.from, asked };
                    let reply = Message { version: self.spoken(), from: self.life(), body };
                    self.actions.push(Action::Send { to: message.from.gateway, message: reply });
                }
            }
            Body::Promise { to, asked } if to == self.life() => {
                self.words.take(now, message.from.gateway, asked);
            }
            Body::Promise { .. } => {}
        }
    }

    /// Promises `life` to take nothing over from it, unless there is a reason not to.
    fn promises(&mut self, now: Mono, life: Life, in_vain: bool) -> bool {
        let is_member = matches!(self.phase, Phase::Member { .. });
        let is_hopeless = in_vain && self.lease.is_fresh(now);
        is_member && !is_hopeless && !self.view.is_over(life) && self.peers.promise(now, life)
    }

    fn heard_helper(&mut self, now: Mono, word: HelperWord) {
        let gateway = word.life.gateway;
        let Some(row) = self.view.records.gateways.get(&gateway) else { return };
        let is_meant = word.machine == row.machine && gateway != self.life().gateway;
        if word.version > self.start.speaks || word.runs || !is_meant {
            return;
        }
        let is_latest = row.number() <= word.life.number;
        let last = self.ended.entry(gateway).or_default();
        *last = (*last).max(word.life.number);
        if let Some(asked) = word.answers
            && asked.by == self.life()
            && !asked.noted
            && is_latest
        {
            self.words.take(now, gateway, asked.at);
        }
    }

    fn commanded(&mut self, now: Mono, number: u64, command: Command) {
        let is_member = matches!(self.phase, Phase::Member { .. });
        let refusal = match self.command {
            Some(_) => Refusal::Busy,
            None if is_member && self.lease.is_fresh(now) => {
                self.command = Some((number, command));
                return;
            }
            None => Refusal::Unreachable,
        };
        self.actions.push(Action::Answer { number, answer: Err(refusal) });
    }

    /// etcd answered a change.
    fn changed(&mut self, now: Mono, request: RequestId, applied: bool) {
        match self.changes.answered(now, request) {
            Some(Purpose::Condemn(life)) if !applied && self.peers.failed(life) => {
                self.actions.push(Action::Unnote(life));
            }
            Some(Purpose::Command) if applied => self.answer(Ok(())),
            _ => {}
        }
    }

    /// Answers the command that is being carried out.
    fn answer(&mut self, answer: Result<(), Refusal>) {
        if let Some((number, _)) = self.command.take() {
            self.actions.push(Action::Answer { number, answer });
        }
    }

    /// Whether it is up to this life to do common work: the first live gateway begins at once, each
    /// further one later.
    fn is_my_turn(&self, now: Mono, view: &View) -> bool {
        let rank = view.live().position(|life| life == self.life());
        let wait = rank.and_then(|rank| TURN.checked_mul(u32::try_from(rank).ok()?));
        wait.is_some_and(|wait| now >= self.pulse.view_since + wait)
    }

    fn next_request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    fn right_at(&self, now: Mono) -> Right {
        let Phase::Member { .. } = self.phase else { return Right::NONE };
        let words = self.words.until(now, self.life().gateway, &self.view);
        Right::until(self.lease.until().max(words))
    }

    fn end(&mut self, reason: Reason) {
        self.phase = Phase::Ended;
        self.right = Right::NONE;
        self.actions.clear();
        self.actions.push(Action::End(reason));
    }
}

impl Pulse {
    /// A step at `now`; a clock that went back is taken to stand still.
    fn beat(&mut self, now: Mono) -> Mono {
        let now = now.max(self.last);
        if now.since(self.last) > AWAKE {
            self.awake_since = now;
        }
        self.last = now;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::id::MachineId;
    use crate::records::Records;

    #[test]
    fn a_row_of_a_newer_version_ends_the_life_however_far_it_has_got() {
        let me = Life { gateway: GatewayId(1), number: 1 };
        let records = Arc::new(Records::default().with(&Change::registers(me)));
        let view = Event::View(Arc::new(View { revision: 1, records, ..View::default() }));
        let before = [view.clone(), Event::Announced, view];
        for steps in 0..=before.len() {
            let (speaks, sessions) = (Version::CURRENT, Vec::new());
            let start = Start { life: me, machine: MachineId(1), speaks, sessions };
            let mut cluster = Cluster::new(Mono::ZERO, start);
            for event in &before[..steps] {
                cluster.step(Mono::ZERO, event.clone());
            }
            let actions = cluster.step(Mono::ZERO, Event::Newer);
            assert_eq!(actions, [Action::End(Reason::Format)], "after {steps} events");
            assert_eq!(cluster.right(), Right::NONE);
        }
    }

    #[test]
    fn words_are_asked_for_in_the_version_that_all_members_understand() {
        let life = |gateway| Life { gateway: GatewayId(gateway), number: 1 };
        let (me, machine) = (life(1), MachineId(1));
        for format in [Version(0), Version(1), Version(2)] {
            let start = Start { life: me, machine, speaks: Version(3), sessions: Vec::new() };
            let mut cluster = Cluster::new(Mono::ZERO, start);
            let records = Records::default()
                .with(&Change::registers(me))
                .with(&Change::registers(life(2)))
                .with(&Change::Format(format));
            let view = Arc::new(View { revision: 1, records: records.into(), ..View::default() });
            cluster.step(Mono::ZERO, Event::View(Arc::clone(&view)));
            cluster.step(Mono::ZERO, Event::Announced);
            let actions = cluster.step(Mono::ZERO, Event::View(view));
            let asked = actions.iter().find_map(|action| match action {
                Action::Send { message, .. } => Some(message.version),
                _ => None,
            });
            assert_eq!(asked, Some(format.max(Version(1))), "{actions:?}");
        }
    }
}
