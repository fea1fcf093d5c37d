//! The use of each client and owner, against which the bounds are checked, and the files to search
//! when an owner or a client goes.

use crate::amounts::Use;
use crate::error::{Counted, Limit, Scope};
use crate::file::File;
use crate::limits::{Limits, Part};
use crate::owner::{Client, Owner, Protocol};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use weir_core::{Origin, VolumeId};

/// The use by client and by owner.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    clients: BTreeMap<Client, Account>,
    owners: BTreeMap<Owner, Standing>,
    total: Use,
    origins: BTreeMap<Origin, Sum>,
    volumes: BTreeMap<VolumeId, Sum>,
    /// Clients whose use fell to nothing, until [`Accounts::take_left`] returns them.
    left: Vec<Client>,
}

#[derive(Debug, Default)]
struct Account {
    used: Use,
    /// The files it has anything on, and how many things.
    files: BTreeMap<File, usize>,
    /// The number of things by volume.
    volumes: BTreeMap<VolumeId, usize>,
}

/// The total use of several clients, and their number.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    used: Use,
    clients: usize,
}

/// May a request be refused because its origin or its volume has its full part?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// A new request, which may be refused.
    New,
    /// A request that belongs to an earlier grant, which may not be refused.
    Old,
}

#[derive(Debug, Default)]
struct Standing {
    used: Use,
    /// The requests that wait, by file and number.
    waits: BTreeSet<(File, u64)>,
}

impl Accounts {
    pub(crate) fn total(&self) -> Use {
        self.total
    }

    pub(crate) fn clients(&self) -> impl ExactSizeIterator<Item = &Client> {
        self.clients.keys()
    }

    /// The known value of the same owner, so that its name is kept once.
    pub(crate) fn known(&self, owner: &Owner) -> Owner {
        if let Some((known, _)) = self.owners.get_key_value(owner) {
            return known.clone();
        }
        match self.clients.get_key_value(owner.client()) {
            Some((client, _)) => Owner::new(client.clone(), owner.name()),
            None => owner.clone(),
        }
    }

    /// May `owner` have `more` on files of `volume`?
    pub(crate) fn check(
        &self,
        owner: &Owner,
        volume: VolumeId,
        more: &Use,
        claim: Claim,
        limits: &Limits,
    ) -> Result<(), Limit> {
        let mut more = *more;
        if !self.owners.contains_key(owner) {
            more.owner_bytes = owner.name().len();
        }
        let account = self.clients.get(owner.client());
        let clients = Limit { counted: Counted::Clients, scope: Scope::Server };
        if account.is_none() && self.clients.len() >= limits.clients {
            return Err(clients);
        }
        let used = account.map(|account| account.used).unwrap_or_default();
        let full = |scope| move |counted| Err(Limit { counted, scope });
        used.passes(&more, &limits.client)
            .map(full(Scope::Client))
            .or_else(|| self.total.passes(&more, &limits.server).map(full(Scope::Server)))
            .unwrap_or(Ok(()))?;
        if claim == Claim::Old {
            return Ok(());
        }
        let origin = self.origins.get(&owner.client().origin()).copied().unwrap_or_default();
        let new = account.is_none();
        self.check_part(&origin, new, &more, limits, &limits.origin)
            .map_or(Ok(()), full(Scope::Origin))?;
        let on_volume = self.volumes.get(&volume).copied().unwrap_or_default();
        let new = account.is_none_or(|account| !account.volumes.contains_key(&volume));
        let more = Use { owner_bytes: 0, ..more };
        self.check_part(&on_volume, new, &more, limits, &limits.volume)
            .map_or(Ok(()), full(Scope::Volume))
    }

    /// The resource that a request would take too much of, in a part of which `own` is in use.
    /// `new` if the part would have one client more.
    fn check_part(
        &self,
        own: &Sum,
        new: bool,
        more: &Use,
        limits: &Limits,
        part: &Part,
    ) -> Option<Counted> {
        let others = self.clients.len().saturating_sub(own.clients);
        if new && own.clients >= part.of_clients(limits.clients, others) {
            return Some(Counted::Clients);
        }
        own.used.passes(more, &part.of(&limits.server, &self.total.without(&own.used)))
    }

    /// `owner` has `more` on `file`.
    pub(crate) fn add(&mut self, owner: &Owner, file: &File, more: &Use) {
        let things = more.things();
        if things == 0 {
            return;
        }
        let mut more = *more;
        let standing = self.owners.entry(owner.clone()).or_insert_with(|| {
            more.owner_bytes = owner.name().len();
            Standing::default()
        });
        standing.used.add(&more);
        let origin = self.origins.entry(owner.client().origin()).or_default();
        origin.used.add(&more);
        let account = self.clients.entry(owner.client().clone()).or_insert_with(|| {
            origin.clients += 1;
            Account::default()
        });
        account.used.add(&more);
        *account.files.entry(*file).or_default() += things;
        let volume = self.volumes.entry(file.volume).or_default();
        volume.used.add(&Use { owner_bytes: 0, ..more });
        let there = account.volumes.entry(file.volume).or_default();
        volume.clients += usize::from(*there == 0);
        *there += things;
        self.total.add(&more);
    }

    /// `owner` has `fewer` on `file`.
    pub(crate) fn sub(&mut self, owner: &Owner, file: &File, fewer: &Use) {
        let things = fewer.things();
        if things == 0 {
            return;
        }
        let (Some(standing), Some(account)) =
            (self.owners.get_mut(owner), self.clients.get_mut(owner.client()))
        else {
            debug_assert!(false, "an owner that has nothing");
            return;
        };
        let mut fewer = *fewer;
        standing.used.sub(&fewer);
        if standing.used.is_none() {
            fewer.owner_bytes = owner.name().len();
            self.owners.remove(owner);
        }
        account.used.sub(&fewer);
        take(&mut account.files, file, things);
        let off_volume = take(&mut account.volumes, &file.volume, things);
        let gone = account.used.is_none();
        if let Some(volume) = self.volumes.get_mut(&file.volume) {
            volume.used.sub(&Use { owner_bytes: 0, ..fewer });
            volume.clients -= usize::from(off_volume);
            if volume.clients == 0 {
                self.volumes.remove(&file.volume);
            }
        }
        let from = owner.client().origin();
        if let Some(origin) = self.origins.get_mut(&from) {
            origin.used.sub(&fewer);
            origin.clients -= usize::from(gone);
            if origin.clients == 0 {
                self.origins.remove(&from);
            }
        }
        if gone && let Some((client, _)) = self.clients.remove_entry(owner.client()) {
            self.left.push(client);
        }
        self.total.sub(&fewer);
    }

    /// The clients whose use fell to nothing since the last call. A returned client may use
    /// something again.
    pub(crate) fn take_left(&mut self) -> Vec<Client> {
        core::mem::take(&mut self.left)
    }

    /// All clients of `origin` with anything in use.
    pub(crate) fn clients_at(
        &self,
        protocol: Protocol,
        origin: Origin,
    ) -> impl Iterator<Item = &Client> {
        let first = Client::new(protocol, origin, &[]);
        let all = self.clients.range(first..).map(|(client, _)| client);
        all.take_while(move |client| (client.protocol(), client.origin()) == (protocol, origin))
    }

    /// `owner` waits on `file`, or does so no more, as number `number`. Counted already.
    pub(crate) fn waits(&mut self, owner: &Owner, file: &File, number: u64, begins: bool) {
        if let Some(standing) = self.owners.get_mut(owner) {
            if begins {
                standing.waits.insert((*file, number));
            } else {
                standing.waits.remove(&(*file, number));
            }
        }
    }

    /// The requests of `owner` that wait.
    pub(crate) fn waits_of(&self, owner: &Owner) -> impl Iterator<Item = &(File, u64)> {
        self.owners.get(owner).into_iter().flat_map(|standing| &standing.waits)
    }

    /// The number of ranges that `owner` holds on all files.
    pub(crate) fn locks_of(&self, owner: &Owner) -> usize {
        self.owners.get(owner).map_or(0, |standing| standing.used.locks)
    }

    /// Does `owner` hold a lock on any file?
    pub(crate) fn holds(&self, owner: &Owner) -> bool {
        self.locks_of(owner) > 0
    }

    /// Has `client` anything?
    pub(crate) fn has(&self, client: &Client) -> bool {
        self.clients.contains_key(client)
    }

    /// The files that `client` has anything on.
    pub(crate) fn files_of(&self, client: &Client) -> Vec<File> {
        let account = self.clients.get(client);
        account.map(|account| account.files.keys().copied().collect()).unwrap_or_default()
    }
}

/// Takes `fewer` from the count of `key`; `true` if that was the last.
fn take<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K, fewer: usize) -> bool {
    let Some(left) = counts.get_mut(key) else { return false };
    *left -= fewer;
    let none = *left == 0;
    if none {
        counts.remove(key);
    }
    none
}
