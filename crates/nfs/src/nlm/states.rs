//! The state numbers of hosts: by them one life of a host is told from the next (XNFS chapter 11).

use crate::limits::NLM_HOSTS_MAX;
use alloc::collections::BTreeMap;
use weir_state::Client;

/// The last state number heard of each host.
#[derive(Debug, Default)]
pub(super) struct States {
    heard: BTreeMap<Client, u32>,
}

impl States {
    /// A lock was asked for in the life `state`: `true` if that is a new one, so that whatever the
    /// host held before is over, although its notice got lost. 0 is from those who don't know.
    ///
    /// `in_use` tells whose state matters, should there be too many.
    pub(super) fn locks(
        &mut self,
        client: &Client,
        state: u32,
        in_use: impl Fn(&Client) -> bool,
    ) -> bool {
        if state == 0 {
            return false;
        }
        match self.heard.get_mut(client) {
            Some(heard) if is_later(state, *heard) => {
                *heard = state;
                true
            }
            Some(_) => false,
            None => {
                self.learn(client, state, in_use);
                false
            }
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
        if self.heard.len() >= NLM_HOSTS_MAX {
            self.heard.retain(|client, _| in_use(client));
        }
        self.heard.insert(client.clone(), state);
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
        Client::new(Protocol::Nlm, &number.to_be_bytes())
    }

    #[test]
    fn a_later_number_is_a_new_life_and_an_earlier_one_is_not() {
        let mut states = States::default();
        let mut locks = |state| states.locks(&client(1), state, |_| true);
        assert_eq!([3, 3, 5, 3, 0, 5].map(&mut locks), [false, false, true, false, false, false]);
        assert!(is_later(1, u32::MAX) && !is_later(u32::MAX, 1) && !is_later(7, 7));
    }

    #[test]
    fn a_notice_counts_once_and_not_after_a_lock_of_the_same_life() {
        let mut states = States::default();
        assert!(states.notified(&client(1), 5, |_| true));
        assert!(!states.notified(&client(1), 5, |_| true));
        assert!(!states.locks(&client(2), 7, |_| true));
        assert!(!states.notified(&client(2), 7, |_| true));
        assert!(states.notified(&client(2), 9, |_| true));
    }

    #[test]
    fn beyond_the_bound_those_without_locks_are_forgotten() {
        let mut states = States::default();
        let hosts = u32::try_from(NLM_HOSTS_MAX).unwrap();
        let keep = client(7);
        for number in 0..=hosts {
            states.locks(&client(number), 3, |client| *client == keep);
        }
        assert_eq!(states.heard.len(), 2);
        assert!(states.heard.contains_key(&keep) && states.heard.contains_key(&client(hosts)));
    }
}
