//! The state numbers of hosts: by them one life of a host is told from the next (XNFS chapter 11).

use crate::limits::{NLM_HOSTS_MAX, NLM_HOSTS_ORIGIN_MAX};
use alloc::collections::BTreeMap;
use weir_core::Origin;
use weir_core::origin::Counts;
use weir_state::Client;

/// The last state number heard of each host.
#[derive(Debug, Default)]
pub(super) struct States {
    heard: BTreeMap<Client, u32>,
    /// The number of these hosts by origin.
    counts: Counts,
}

impl States {
    /// Is `state`, in which a host asks for a lock, a later life than the last known one? Then the
    /// host's earlier locks are over, although its notice got lost. 0 is from hosts that don't know
    /// their state.
    pub(super) fn is_new(&self, client: &Client, state: u32) -> bool {
        state != 0 && self.heard.get(client).is_some_and(|heard| is_later(state, *heard))
    }

    /// The last state number heard of this host.
    pub(super) fn heard(&self, client: &Client) -> Option<u32> {
        self.heard.get(client).copied()
    }

    /// Is a state number of this host known?
    pub(super) fn is_known(&self, client: &Client) -> bool {
        self.heard.contains_key(client)
    }

    /// Notes that a host got a lock in the life `state`. A number earlier than the last known one
    /// belongs to a late call and changes nothing.
    ///
    /// `in_use` tells whether a host's state matters, should there be too many.
    pub(super) fn locked(&mut self, client: &Client, state: u32, in_use: impl Fn(&Client) -> bool) {
        if state != 0 && (!self.is_known(client) || self.is_new(client, state)) {
            self.learn(client, state, in_use);
        }
    }

    /// The host announced the life `state`: `true` if it is not known to be in it already. The
    /// notice is repeated until it is answered, so it may come after the first locks of that life,
    /// and those must stay.
    pub(super) fn notified(
        &mut self,
        client: &Client,
        state: u32,
        in_use: impl Fn(&Client) -> bool,
    ) -> bool {
        if self.heard.get(client) == Some(&state) {
            return false;
        }
        self.learn(client, state, in_use);
        true
    }

    fn learn(&mut self, client: &Client, state: u32, in_use: impl Fn(&Client) -> bool) {
        if let Some(heard) = self.heard.get_mut(client) {
            *heard = state;
            return;
        }
        let origin = client.origin();
        if self.counts.of(origin) >= NLM_HOSTS_ORIGIN_MAX {
            self.forget(origin, &in_use);
        } else if self.heard.len() >= NLM_HOSTS_MAX
            && let Some((greediest, _)) = self.counts.greediest()
        {
            self.forget(greediest, &in_use);
        }
        self.heard.insert(client.clone(), state);
        self.counts.add(origin);
    }

    /// Forgets the hosts of `origin` that are not in use.
    fn forget(&mut self, origin: Origin, in_use: &impl Fn(&Client) -> bool) {
        let Self { heard, counts } = self;
        heard.retain(|client, _| {
            let keep = client.origin() != origin || in_use(client);
            if !keep {
                counts.remove(origin);
            }
            keep
        });
    }
}

/// Is `one` the number of a later life than `other`? They wrap around.
fn is_later(one: u32, other: u32) -> bool {
    (1..1 << 31).contains(&one.wrapping_sub(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_state::Protocol;

    fn client(number: u32) -> Client {
        Client::new(Protocol::Nlm, Origin::default(), &number.to_be_bytes())
    }

    #[test]
    fn a_later_number_is_a_new_life_and_an_earlier_one_is_not() {
        let mut states = States::default();
        let mut locks = |state| {
            let new = states.is_new(&client(1), state);
            states.locked(&client(1), state, |_| true);
            new
        };
        assert_eq!([3, 3, 5, 3, 0, 5].map(&mut locks), [false, false, true, false, false, false]);
        assert!(is_later(1, u32::MAX) && !is_later(u32::MAX, 1) && !is_later(7, 7));
    }

    #[test]
    fn a_notice_counts_once_and_not_after_a_lock_of_the_same_life() {
        let mut states = States::default();
        assert!(states.notified(&client(1), 5, |_| true));
        assert!(!states.notified(&client(1), 5, |_| true));
        states.locked(&client(2), 7, |_| true);
        assert!(!states.notified(&client(2), 7, |_| true));
        assert!(states.notified(&client(2), 9, |_| true));
    }

    #[test]
    fn beyond_its_bound_an_origin_loses_its_own_hosts_without_locks() {
        let mut states = States::default();
        let hosts = u32::try_from(NLM_HOSTS_ORIGIN_MAX).unwrap();
        let keep = client(7);
        let stranger = Client::new(Protocol::Nlm, Origin::of([10, 0, 0, 9].into()), b"stranger");
        states.locked(&stranger, 3, |_| false);
        for number in 0..=hosts {
            states.locked(&client(number), 3, |client| *client == keep);
        }
        assert_eq!(states.heard.len(), 3);
        for known in [&keep, &client(hosts), &stranger] {
            assert!(states.heard.contains_key(known));
        }
    }

    #[test]
    fn beyond_the_bound_of_all_the_origin_with_the_most_loses_hosts() {
        let mut states = States::default();
        let host = |from: u32, number: u32| {
            let origin = Origin::of(std::net::Ipv4Addr::from(from).into());
            Client::new(Protocol::Nlm, origin, &number.to_be_bytes())
        };
        let origins = u32::try_from(NLM_HOSTS_MAX / NLM_HOSTS_ORIGIN_MAX).unwrap();
        let each = u32::try_from(NLM_HOSTS_ORIGIN_MAX).unwrap();
        states.locked(&host(1000, 0), 3, |_| false);
        for (from, number) in (0..origins).flat_map(|from| (0..each).map(move |n| (from, n))) {
            states.locked(&host(from, number), 3, |_| false);
            assert!(states.heard.len() <= NLM_HOSTS_MAX);
        }
        assert!(states.heard.contains_key(&host(1000, 0)));
    }
}
