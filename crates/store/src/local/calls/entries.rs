//! The calls on record in memory: found by their number, oldest first for each client, and bounded.

use crate::sync::time_of_day;
use std::collections::{HashMap, VecDeque};
use weir_core::fair::Holdings;
use weir_core::limits::{CALLS_CLIENT_MAX, CALLS_KEPT, CALLS_VOLUME_MAX};
use weir_core::{CallId, ObjectKey, Timestamp};

/// The progress of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Its intended change is on record; the call has not begun.
    Foreseen,
    /// It may have made its change.
    Begun,
    /// It has made its change.
    Acted,
    /// The change is stable.
    Settled,
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) call: CallId,
    pub(super) at: Timestamp,
    pub(super) stage: Stage,
    /// The intent was made stable before anything else was done.
    pub(super) synced: bool,
    /// The change as it is recorded; absent if only the outcome may be queried.
    pub(super) change: Option<Box<[u8]>>,
    pub(super) made: Option<ObjectKey>,
}

/// The entries of all clients.
#[derive(Debug, Default)]
pub(super) struct Entries {
    clients: HashMap<u128, VecDeque<Entry>>,
    /// The number of each call's entry. A client may have a thousand entries, too many to look
    /// through for each call.
    numbers: HashMap<CallId, u64>,
    held: Holdings,
}

impl Entries {
    pub(super) fn is_empty(&self) -> bool {
        self.held.total() == 0
    }

    /// The entries of all clients, oldest first for each client.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.clients.values().flatten()
    }

    /// As [`Self::iter`], to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.clients.values_mut().flatten()
    }

    /// The entry of `call`.
    pub(super) fn find(&mut self, call: &CallId) -> Option<&mut Entry> {
        let number = *self.numbers.get(call)?;
        let entries = self.clients.get_mut(&call.client)?;
        entries.get_mut(place(entries, number)?)
    }

    /// Adds an entry, whose number is greater than those of all others. If its client has too many
    /// then, or all clients together, the oldest go, and are passed to `forgotten`.
    pub(super) fn add(&mut self, entry: Entry, mut forgotten: impl FnMut(Entry)) {
        let client = entry.call.client;
        self.numbers.insert(entry.call, entry.number);
        let entries = self.clients.entry(client).or_default();
        entries.push_back(entry);
        if entries.len() > CALLS_CLIENT_MAX
            && let Some(entry) = self.remove_oldest(client)
        {
            forgotten(entry);
        }
        self.count(client);
        while self.held.total() > CALLS_VOLUME_MAX
            && let Some(entry) = self.give_way()
        {
            forgotten(entry);
        }
    }

    /// Removes the entry of `call`.
    pub(super) fn remove(&mut self, call: &CallId) -> Option<Entry> {
        let number = self.numbers.remove(call)?;
        let entries = self.clients.get_mut(&call.client)?;
        let entry = entries.remove(place(entries, number)?);
        self.count(call.client);
        entry
    }

    /// Removes the oldest entry of the client that has the most. `None` if there are no entries.
    pub(super) fn give_way(&mut self) -> Option<Entry> {
        let client = self.held.greediest()?;
        let entry = self.remove_oldest(client);
        self.count(client);
        entry
    }

    /// Removes entries that are no longer to be remembered.
    pub(super) fn forget_old(&mut self) {
        let now = time_of_day();
        let Self { clients, numbers, held } = self;
        clients.retain(|client, entries| {
            entries.retain(|entry| {
                let old = is_old(entry.at, now);
                if old {
                    numbers.remove(&entry.call);
                }
                !old
            });
            held.set(*client, entries.len());
            !entries.is_empty()
        });
    }

    fn remove_oldest(&mut self, client: u128) -> Option<Entry> {
        let entry = self.clients.get_mut(&client)?.pop_front()?;
        self.numbers.remove(&entry.call);
        Some(entry)
    }

    fn count(&mut self, client: u128) {
        let held = self.clients.get(&client).map_or(0, VecDeque::len);
        self.held.set(client, held);
        if held == 0 {
            self.clients.remove(&client);
        }
    }
}

/// The place of the entry with this number among a client's entries, which are in order of numbers.
fn place(entries: &VecDeque<Entry>, number: u64) -> Option<usize> {
    entries.binary_search_by_key(&number, |entry| entry.number).ok()
}

/// Is an entry of this time no longer to be remembered? A clock that was set back makes no entry
/// old.
pub(super) fn is_old(at: Timestamp, now: Timestamp) -> bool {
    let kept = i64::try_from(CALLS_KEPT.as_secs()).unwrap_or(i64::MAX);
    now.secs.saturating_sub(at.secs) > kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn entry(number: u64, client: u128, secs: i64) -> Entry {
        let xid = u32::try_from(number % 5000).unwrap();
        let call = CallId { client, xid, procedure: 8, print: 0 };
        let at = Timestamp { secs, nanos: 0 };
        Entry { number, call, at, stage: Stage::Acted, synced: false, change: None, made: None }
    }

    /// The tables agree: each entry is found by its call, and no number is left over.
    fn check(entries: &mut Entries) {
        let all: Vec<Entry> = entries.iter().cloned().collect();
        for entry in &all {
            assert_eq!(entries.find(&entry.call).map(|found| found.number), Some(entry.number));
        }
        assert_eq!((entries.numbers.len(), entries.held.total()), (all.len(), all.len()));
    }

    #[test]
    fn entries_are_found_by_their_calls_whatever_goes_for_want_of_room_or_age() {
        let (now, most) = (time_of_day().secs, CALLS_CLIENT_MAX as u64);
        let mut entries = Entries::default();
        let mut gone = HashSet::new();
        for number in 0..most + 10 {
            entries.add(entry(number, 1, now), |entry| _ = gone.insert(entry.number));
        }
        assert_eq!(gone, (0..10).collect(), "the oldest of the client");
        check(&mut entries);
        assert!(entries.remove(&entry(5, 1, now).call).is_none(), "it went for want of room");
        assert_eq!(entries.remove(&entry(20, 1, now).call).map(|it| it.number), Some(20));
        check(&mut entries);
        let others = CALLS_VOLUME_MAX as u64 - 10;
        for number in 2 * most..2 * most + others {
            entries.add(entry(number, number.into(), 0), |entry| {
                assert_eq!(entry.call.client, 1, "the client with the most gives way");
            });
        }
        assert_eq!(entries.iter().count(), CALLS_VOLUME_MAX);
        check(&mut entries);
        entries.forget_old();
        assert!(entries.iter().all(|entry| entry.call.client == 1), "the others were old");
        check(&mut entries);
    }
}
