//! The changes that this life sends to etcd, one at a time: the choice of the next one, and what is
//! known of the one under way.
//!
//! A change without an answer may happen or not. All are guarded by the generation, so another one
//! upon the same generation does no harm, and the next generation settles it.

use super::{Cluster, Phase};
use crate::change::{Change, Registration, Transaction};
use crate::command::{Effect, Refusal, effect};
use crate::event::Action;
use crate::id::{GatewayId, Generation, Life, RequestId};
use crate::records::View;
use crate::steward;
use crate::timing::{ANSWER_WITHIN, FENCES_MAX, PROMISE};
use weir_core::Mono;

/// The change under way.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pending: Option<Pending>,
    /// The generation upon which a change was answered, and when. The next change waits for the
    /// next generation, or for a while if none comes.
    answered: Option<(Generation, Mono)>,
}

#[derive(Debug)]
struct Pending {
    request: RequestId,
    sent: Mono,
    generation: Generation,
    purpose: Purpose,
}

/// The consequence of the answer to a change, or of none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It condemns a life because this life gives it no word.
    Condemn(Life),
    /// It carries out the command.
    Command,
    Other,
}

/// A change that is due.
struct Due {
    change: Change,
    absent: Option<GatewayId>,
    purpose: Purpose,
}

impl Changes {
    /// Notes the answer to a change: its purpose, if it is the one under way.
    pub(super) fn answered(&mut self, now: Mono, request: RequestId) -> Option<Purpose> {
        let pending = self.pending.take_if(|pending| pending.request == request)?;
        self.answered = Some((pending.generation, now));
        Some(pending.purpose)
    }

    /// Gives up waiting for an answer: the purpose of the change.
    fn expired(&mut self, now: Mono) -> Option<Purpose> {
        let is_over = |pending: &mut Pending| now >= pending.sent + ANSWER_WITHIN;
        self.pending.take_if(is_over).map(|pending| pending.purpose)
    }

    fn is_free(&self, now: Mono, generation: Generation) -> bool {
        let is_settled =
            |(last, at): (Generation, Mono)| generation > last || now >= at + ANSWER_WITHIN;
        self.pending.is_none() && self.answered.is_none_or(is_settled)
    }
}

impl Due {
    fn new(change: Change) -> Self {
        Self { change, absent: None, purpose: Purpose::Other }
    }
}

impl Cluster {
    /// Sends the change that is due at `now`, if there is one and none is under way.
    pub(super) fn change(&mut self, now: Mono, view: &View) {
        match self.changes.expired(now) {
            Some(Purpose::Condemn(life)) => self.peers.unsettled(life),
            Some(Purpose::Command) => self.answer(Err(Refusal::Unknown)),
            Some(Purpose::Other) | None => {}
        }
        if self.changes.pending.is_none() && !self.lease.is_fresh(now) {
            self.answer(Err(Refusal::Unreachable));
        }
        if !self.changes.is_free(now, view.generation()) {
            return;
        }
        let due = match self.phase {
            Phase::Registering { .. } => self.registration(view).map(Due::new),
            Phase::Member { announced } if self.lease.is_fresh(now) => {
                self.due(now, view, announced)
            }
            _ => None,
        };
        if let Some(due) = due {
            self.send(now, view.generation(), due);
        }
    }

    fn send(&mut self, now: Mono, generation: Generation, due: Due) {
        let request = self.next_request();
        if let Purpose::Condemn(life) = due.purpose {
            self.peers.condemning(life, generation);
            self.actions.push(Action::Note(life));
        }
        let is_member = matches!(self.phase, Phase::Member { .. });
        let writer = is_member.then_some(self.life());
        let Due { change, absent, purpose } = due;
        self.changes.pending = Some(Pending { request, sent: now, generation, purpose });
        let transaction = Transaction { generation, writer, absent, change };
        self.actions.push(Action::Change { request, transaction });
    }

    /// The registration of this life, unless it has to wait for earlier ones to be forgotten.
    fn registration(&self, view: &View) -> Option<Change> {
        let row = view.records.gateways.get(&self.life().gateway);
        let is_full = row.is_some_and(|row| row.fences.len() >= FENCES_MAX);
        (!is_full).then(|| {
            Change::Register(Registration {
                life: self.life(),
                machine: self.start.machine,
                speaks: self.start.speaks,
                sessions: self.start.sessions.clone(),
            })
        })
    }

    /// The most urgent change of a member.
    fn due(&mut self, now: Mono, view: &View, announced: Mono) -> Option<Due> {
        if let Some(due) = self.condemnation(now, view, announced) {
            return Some(due);
        }
        let handovers = self.hosting.handovers(self.life(), view);
        if !handovers.is_empty() {
            self.hosting.sent(&handovers, view.generation());
            return Some(Due::new(Change::Homes(handovers)));
        }
        if let Some(due) = self.command_due(view) {
            return Some(due);
        }
        if self.peers.is_unsettled(view.generation()) {
            return Some(Due::new(Change::Settle));
        }
        let is_mine = self.is_my_turn(now, view);
        let common = is_mine.then(|| steward::next(view, &self.fencing, &self.ended));
        common.flatten().map(Due::new)
    }

    /// A member that has to be condemned. There are two reasons:
    ///
    /// - The helper on its machine says that it has ended.
    /// - It has no lease, and this life vouches for it that it has no right to reply: by its own
    ///   acknowledgement it counts this gateway among those whose words it needs, and has none.
    fn condemnation(&self, now: Mono, view: &View, announced: Mono) -> Option<Due> {
        let others = view.members().filter(|(life, _)| life.gateway != self.life().gateway);
        others.map(|(life, _)| life).find_map(|life| {
            let ended = self.ended.get(&life.gateway).is_some_and(|last| *last >= life.number);
            if ended {
                return Some(Due::new(Change::Condemn { life, gone: true }));
            }
            let absent =
                Some(life.gateway).filter(|gateway| !view.attached.contains_key(gateway))?;
            self.vouches(now, view, announced, life).then_some(Due {
                change: Change::Condemn { life, gone: false },
                absent: Some(absent),
                purpose: Purpose::Condemn(life),
            })
        })
    }

    /// Can this life vouch that `life` has no right to reply by words?
    fn vouches(&self, now: Mono, view: &View, announced: Mono, life: Life) -> bool {
        let Some(me) = view.member(self.life().gateway) else { return false };
        let needs_me = view.acknowledged.get(&life.gateway).is_some_and(|known| *known >= me.since);
        // Words of this life's predecessor and of the helper hold so long.
        let speaks_alone = now >= announced + PROMISE;
        needs_me && speaks_alone && self.peers.is_free_of(now, life, self.pulse.awake_since)
    }

    fn command_due(&mut self, view: &View) -> Option<Due> {
        let (_, command) = self.command?;
        match effect(view, command) {
            Ok(Effect::None) => self.answer(Ok(())),
            Err(refusal) => self.answer(Err(refusal)),
            Ok(Effect::Change(change)) => {
                return Some(Due { change, absent: None, purpose: Purpose::Command });
            }
            Ok(Effect::IfAbsent(gateway, change)) => {
                return Some(Due { change, absent: Some(gateway), purpose: Purpose::Command });
            }
        }
        None
    }
}
