//! The other gateways as this life deals with them when they are cut from etcd: promises that it
//! gave them, and its refusal to give any while it takes over from them.

use crate::id::{GatewayId, Generation, Life};
use crate::records::View;
use crate::timing::{GATEWAYS_MAX, PATIENCE, PROMISE};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use weir_core::Mono;

/// The other gateways, by the latest life of each that was heard of.
#[derive(Debug, Default)]
pub(crate) struct Peers(BTreeMap<GatewayId, Peer>);

/// The latest life of another gateway.
#[derive(Debug)]
struct Peer {
    number: u32,
    /// The time when it was first heard of.
    known_since: Mono,
    /// The time of its latest question that was worth an answer.
    heard: Mono,
    /// This life takes nothing over from it until then.
    promised: Mono,
    refusal: Refusal,
}

/// Whether a change that condemns the peer may happen yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// No such change was sent, or it can't happen any more.
    None,
    /// It was sent upon this generation and is to be answered.
    Sent(Generation),
    /// It was sent upon this generation, and its answer did not come: it can happen until the
    /// generation is another.
    Unsettled(Generation),
}

impl Peers {
    /// Learns from `view` which lives there are, and forgets gateways that have left. The lives
    /// that need to be refused no longer are returned.
    pub(crate) fn follow(&mut self, now: Mono, me: GatewayId, view: &View) -> Vec<Life> {
        for (life, _) in view.members().filter(|(life, _)| life.gateway != me) {
            self.meet(now, life);
        }
        let mut lifted = Vec::new();
        for (&gateway, peer) in &mut self.0 {
            let life = Life { gateway, number: peer.number };
            if peer.refusal.generation().is_some_and(|sent| view.generation() > sent) {
                peer.refusal = Refusal::None;
                if !view.is_over(life) {
                    lifted.push(life);
                }
            }
        }
        // A promise binds also where this view does not have its gateway yet.
        self.0.retain(|gateway, peer| {
            view.records.gateways.contains_key(gateway) || now < peer.promised
        });
        lifted
    }

    /// The entry of `life`; none if a later life of its gateway is known, or there is no room.
    fn meet(&mut self, now: Mono, life: Life) -> Option<&mut Peer> {
        let fresh = Peer {
            number: life.number,
            known_since: now,
            heard: Mono::ZERO,
            promised: Mono::ZERO,
            refusal: Refusal::None,
        };
        if self.0.len() >= GATEWAYS_MAX && !self.0.contains_key(&life.gateway) {
            return None;
        }
        let peer = self.0.entry(life.gateway).or_insert(fresh);
        if life.number > peer.number {
            *peer = Peer {
                number: life.number,
                known_since: now,
                heard: Mono::ZERO,
                promised: Mono::ZERO,
                refusal: Refusal::None,
            };
        }
        (life.number == peer.number).then_some(peer)
    }

    /// Promises `life` at `now` to take nothing over from it; `false` if that is refused.
    pub(crate) fn promise(&mut self, now: Mono, life: Life) -> bool {
        let Some(peer) = self.meet(now, life) else { return false };
        if peer.refusal != Refusal::None {
            return false;
        }
        peer.heard = now;
        peer.promised = now + PROMISE;
        true
    }

    /// Has this life promised nothing to `life` and heard nothing from it for long enough, being
    /// awake since `awake_since`?
    pub(crate) fn is_free_of(&self, now: Mono, life: Life, awake_since: Mono) -> bool {
        let peer = self.0.get(&life.gateway).filter(|peer| peer.number == life.number);
        peer.is_some_and(|peer| {
            let quiet_since = peer.known_since.max(peer.heard).max(awake_since);
            now >= peer.promised && now >= quiet_since + PATIENCE
        })
    }

    /// A change that condemns `life` is sent upon `generation`.
    pub(crate) fn condemning(&mut self, life: Life, generation: Generation) {
        if let Some(peer) = self.peer_mut(life)
            && peer.refusal == Refusal::None
        {
            peer.refusal = Refusal::Sent(generation);
        }
    }

    /// The change did not happen and can't. Returns whether the refusal ends with it.
    pub(crate) fn failed(&mut self, life: Life) -> bool {
        let sent = self.peer_mut(life).filter(|peer| matches!(peer.refusal, Refusal::Sent(_)));
        sent.map(|peer| peer.refusal = Refusal::None).is_some()
    }

    /// Whether the change happens is not known.
    pub(crate) fn unsettled(&mut self, life: Life) {
        if let Some(peer) = self.peer_mut(life)
            && let Refusal::Sent(generation) = peer.refusal
        {
            peer.refusal = Refusal::Unsettled(generation);
        }
    }

    /// Can a change upon `generation` still condemn a life, without anybody waiting for its answer?
    pub(crate) fn is_unsettled(&self, generation: Generation) -> bool {
        self.0.values().any(|peer| peer.refusal == Refusal::Unsettled(generation))
    }

    fn peer_mut(&mut self, life: Life) -> Option<&mut Peer> {
        self.0.get_mut(&life.gateway).filter(|peer| peer.number == life.number)
    }

    /// Does a promise to `life` bind at `now`?
    #[cfg(test)]
    pub(crate) fn has_promised(&self, now: Mono, life: Life) -> bool {
        let peer = self.0.get(&life.gateway).filter(|peer| peer.number == life.number);
        peer.is_some_and(|peer| now < peer.promised)
    }
}

impl Refusal {
    const fn generation(self) -> Option<Generation> {
        match self {
            Self::None => None,
            Self::Sent(generation) | Self::Unsettled(generation) => Some(generation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::records::Records;

    const ME: GatewayId = GatewayId(1);
    const OTHER: Life = Life { gateway: GatewayId(2), number: 1 };

    fn at(millis: u64) -> Mono {
        Mono::from_millis(millis)
    }

    fn joined() -> Records {
        Records::default().with(&Change::registers(OTHER))
    }

    fn view(records: Records) -> View {
        View { records: records.into(), ..View::default() }
    }

    #[test]
    fn a_promise_binds_for_its_whole_length_and_patience_begins_with_each_question() {
        let mut peers = Peers::default();
        assert_eq!(peers.follow(at(0), ME, &view(joined())), []);
        assert!(!peers.is_free_of(at(1_499), OTHER, at(0)), "it was heard of just now");
        assert!(peers.is_free_of(at(1_500), OTHER, at(0)));
        assert!(!peers.is_free_of(at(1_500), OTHER, at(1)), "this life was not awake before");
        assert!(peers.promise(at(2_000), OTHER));
        assert!(!peers.is_free_of(at(4_999), OTHER, at(0)));
        assert!(peers.is_free_of(at(5_000), OTHER, at(0)));
        let later = Life { number: 2, ..OTHER };
        assert!(peers.promise(at(5_000), later));
        assert!(!peers.promise(at(5_000), OTHER), "a later life is known");
        assert!(!peers.is_free_of(at(9_000), OTHER, at(0)), "its end is another's matter");
    }

    #[test]
    fn a_life_that_is_being_condemned_is_refused_until_that_is_settled() {
        let mut peers = Peers::default();
        let records = joined();
        let _none = peers.follow(at(0), ME, &view(records.clone()));
        peers.condemning(OTHER, records.generation);
        assert!(!peers.promise(at(0), OTHER));
        assert!(peers.failed(OTHER) && peers.promise(at(0), OTHER), "the answer was no");
        peers.condemning(OTHER, records.generation);
        peers.unsettled(OTHER);
        peers.condemning(OTHER, records.generation);
        assert!(!peers.failed(OTHER), "the first one can happen still");
        assert!(!peers.promise(at(0), OTHER) && peers.is_unsettled(records.generation));
        let settled = records.with(&Change::Settle);
        assert_eq!(peers.follow(at(0), ME, &view(settled)), [OTHER]);
        assert!(peers.promise(at(0), OTHER));
        peers.condemning(OTHER, records.generation.next());
        let condemned = records.with(&Change::Condemn { life: OTHER, gone: false });
        assert_eq!(peers.follow(at(0), ME, &view(condemned.with(&Change::Settle))), []);
    }
}
