//! The blocklists that this life has asked for: which are due, and which are in force.

use crate::event::Action;
use crate::id::{Barrier, Life};
use crate::records::View;
use crate::timing::{BLOCKLIST_RENEW, BLOCKLIST_RETRY};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use weir_core::Mono;

/// The blocklists of ended lives.
#[derive(Debug, Default)]
pub(crate) struct Fencing {
    asked: BTreeMap<Life, Mono>,
    in_force: BTreeMap<Life, Barrier>,
}

impl Fencing {
    /// Forgets lives that are forgotten in the records.
    pub(crate) fn follow(&mut self, view: &View) {
        self.asked.retain(|life, _| view.fence(*life).is_some());
        self.in_force.retain(|life, _| view.fence(*life).is_some());
    }

    /// The blocklist of `life` is in force.
    pub(crate) fn in_force(&mut self, life: Life, barrier: Barrier) {
        if self.asked.contains_key(&life) {
            self.in_force.insert(life, barrier);
        }
    }

    /// The epoch from which on the blocklist of `life` is known to be in force.
    pub(crate) fn barrier(&self, life: Life) -> Option<Barrier> {
        self.in_force.get(&life).copied()
    }

    /// Asks for the blocklists that are due at `now`: those that are not in force, and those of
    /// lives whose end is not known.
    pub(crate) fn pursue(&mut self, now: Mono, view: &View, actions: &mut Vec<Action>) {
        for (life, fence) in view.fences() {
            let pause = match (fence.in_force, self.barrier(life)) {
                (None, None) => BLOCKLIST_RETRY,
                (Some(_), _) if !fence.gone => BLOCKLIST_RENEW,
                _ => continue,
            };
            if self.asked.get(&life).is_none_or(|asked| now >= *asked + pause) {
                self.asked.insert(life, now);
                actions.push(Action::Blocklist { life, sessions: fence.sessions.clone() });
            }
        }
    }
}
