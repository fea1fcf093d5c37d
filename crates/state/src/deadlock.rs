//! Would a request that is about to wait wait for its own owner? Cycles may lead through the files
//! of several volumes.

use crate::accounts::Accounts;
use crate::ask::Ask;
use crate::file::File;
use crate::owner::Owner;
use crate::table::Table;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use weir_core::VolumeId;

/// Owners looked at before the search gives up and lets the request wait: a bound on time. Longer
/// cycles go undetected, as they do on other servers.
const OWNERS_MAX: usize = 256;

/// Goes from the holders of a lock to the locks that they wait for, and to the holders of those. A
/// request that waits only because it may not overtake belongs to an owner without locks (see
/// [`Tables`](crate::Tables)), so nobody waits for that owner in turn, and the search follows
/// holders alone.
///
/// An owner is taken to be stuck while one of its requests waits, as `fcntl` does; if it has
/// threads that go on, that may be wrong (IEEE 1003.1 allows it: `EDEADLK`).
///
/// The locks of opens are not followed: an open is no thread, and a client can cancel the requests
/// of an open that wait, so a cycle through an open does not last for ever.
pub(crate) fn found<W>(
    tables: &BTreeMap<VolumeId, Table<W>>,
    accounts: &Accounts,
    ask: &Ask,
) -> bool {
    let locks_on = |file: &File| tables.get(&file.volume)?.file(&file.object);
    let mut seen: BTreeSet<&Owner> = BTreeSet::new();
    let mut waits: Vec<Ask> = Vec::new();
    let mut next = Some(ask.clone());
    while let Some(wait) = next {
        if let Some(locks) = locks_on(&wait.file) {
            let mut held_by_asker = false;
            let mut found = Vec::new();
            locks.ranges().conflict(Some(&wait.owner), wait.range, wait.mode, &mut |holder| {
                held_by_asker |= *holder == ask.owner;
                if seen.len() < OWNERS_MAX && seen.insert(holder) {
                    found.push(holder);
                }
                held_by_asker || seen.len() >= OWNERS_MAX
            });
            if held_by_asker {
                return true;
            }
            for (file, number) in found.into_iter().flat_map(|holder| accounts.waits_of(holder)) {
                waits.extend(locks_on(file).and_then(|locks| locks.asked(file, *number)));
            }
        }
        next = waits.pop();
    }
    false
}
