//! The use of each client and owner, against which the bounds are checked, and the files to search
//! when an owner or a client goes.

use crate::amounts::Use;
use crate::error::{Counted, Limit, Scope};
use crate::file::File;
use crate::limits::{Limits, Part};
use crate::owner::{Client, OpenId, Owner, Protocol};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Bound;
use weir_core::{Origin, VolumeId};

/// The use by client and by owner.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    clients: BTreeMap<Client, Account>,
    owners: BTreeMap<Owner, Standing>,
    total: Use,
    origins: BTreeMap<Origin, Sum>,
    volumes: BTreeMap<VolumeId, Sum>,
    /// Clients of NLM whose use fell to nothing, until [`Accounts::take_left`] returns them.
    left: Vec<Client>,
}

#[derive(Debug, Default)]
struct Account {
    used: Use,
    /// The files it has anything on but opens, and how many things.
    files: BTreeMap<File, usize>,
    opens: BTreeSet<OpenId>,
    /// The number of things by volume, opens among them.
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
            Some((client, _)) => owner.with_client(client.clone()),
            None => owner.clone(),
        }
    }

    /// The known value of the same client.
    pub(crate) fn known_client(&self, client: &Client) -> Client {
        self.clients.get_key_value(client).map_or(client, |(known, _)| known).clone()
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
        self.check_client(owner.client(), volume, more, claim, limits)
    }

    /// May `client` have `more` on files of `volume`, the names of new owners included?
    pub(crate) fn check_client(
        &self,
        client: &Client,
        volume: VolumeId,
        more: Use,
        claim: Claim,
        limits: &Limits,
    ) -> Result<(), Limit> {
        let account = self.clients.get(client);
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
        let origin = self.origins.get(&client.origin()).copied().unwrap_or_default();
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
        let account = self.add_client(owner.client(), file.volume, &more);
        *account.files.entry(*file).or_default() += things;
    }

    /// `client` has opened a file of `volume`.
    pub(crate) fn add_open(&mut self, client: &Client, volume: VolumeId, open: OpenId) {
        let one = Use { opens: 1, ..Use::default() };
        self.add_client(client, volume, &one).opens.insert(open);
    }

    fn add_client(&mut self, client: &Client, volume: VolumeId, more: &Use) -> &mut Account {
        self.total.add(more);
        let origin = self.origins.entry(client.origin()).or_default();
        origin.used.add(more);
        let account = self.clients.entry(client.clone()).or_insert_with(|| {
            origin.clients += 1;
            Account::default()
        });
        account.used.add(more);
        let sum = self.volumes.entry(volume).or_default();
        sum.used.add(&Use { owner_bytes: 0, ..*more });
        let there = account.volumes.entry(volume).or_default();
        sum.clients += usize::from(*there == 0);
        *there += more.things();
        account
    }

    /// `owner` has `fewer` on `file`.
    pub(crate) fn sub(&mut self, owner: &Owner, file: &File, fewer: &Use) {
        let things = fewer.things();
        if things == 0 {
            return;
        }
        let Some(standing) = self.owners.get_mut(owner) else {
            debug_assert!(false, "an owner that has nothing");
            return;
        };
        let mut fewer = *fewer;
        standing.used.sub(&fewer);
        if standing.used.is_none() {
            fewer.owner_bytes = owner.name().len();
            self.owners.remove(owner);
        }
        if let Some(account) = self.clients.get_mut(owner.client()) {
            take(&mut account.files, file, things);
        }
        self.sub_client(owner.client(), file.volume, &fewer);
    }

    /// `client` has closed a file of `volume`.
    pub(crate) fn sub_open(&mut self, client: &Client, volume: VolumeId, open: OpenId) {
        if let Some(account) = self.clients.get_mut(client) {
            account.opens.remove(&open);
        }
        self.sub_client(client, volume, &Use { opens: 1, ..Use::default() });
    }

    fn sub_client(&mut self, client: &Client, volume: VolumeId, fewer: &Use) {
        let Some(account) = self.clients.get_mut(client) else {
            debug_assert!(false, "a client that has nothing");
            return;
        };
        account.used.sub(fewer);
        let off_volume = take(&mut account.volumes, &volume, fewer.things());
        let gone = account.used.is_none();
        if let Some(sum) = self.volumes.get_mut(&volume) {
            sum.used.sub(&Use { owner_bytes: 0, ..*fewer });
            sum.clients -= usize::from(off_volume);
            if sum.clients == 0 {
                self.volumes.remove(&volume);
            }
        }
        let from = client.origin();
        if let Some(origin) = self.origins.get_mut(&from) {
            origin.used.sub(fewer);
            origin.clients -= usize::from(gone);
            if origin.clients == 0 {
                self.origins.remove(&from);
            }
        }
        if gone
            && let Some((client, _)) = self.clients.remove_entry(client)
            && client.protocol() == Protocol::Nlm
        {
            self.left.push(client);
        }
        self.total.sub(fewer);
    }

    /// The clients of NLM whose use fell to nothing since the last call. A returned client may use
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

    /// Has `owner` anything?
    pub(crate) fn has_owner(&self, owner: &Owner) -> bool {
        self.owners.contains_key(owner)
    }

    /// The opens of `client` after `after`, in order.
    pub(crate) fn opens_of(&self, client: &Client, after: OpenId) -> impl Iterator<Item = OpenId> {
        let after = (Bound::Excluded(after), Bound::Unbounded);
        let account = self.clients.get(client).into_iter();
        account.flat_map(move |account| account.opens.range(after).copied())
    }

    /// The files that `client` has anything on but opens.
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
