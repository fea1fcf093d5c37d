//! Who has how much and where: what the bounds are checked against, and where to look when an
//! owner or a client goes.

use crate::error::{Counted, Limit, Scope};
use crate::file::File;
use crate::limits::Limits;
use crate::owner::{Client, Owner};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Amounts of what can be held: in use, or at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Held ranges.
    pub locks: usize,
    /// Requests that wait.
    pub waiters: usize,
    /// Share reservations.
    pub shares: usize,
    /// Bytes in the names of owners, each owner counted once.
    pub owner_bytes: usize,
}

impl Use {
    /// What there would be too many of, were `more` added.
    pub(crate) fn passes(&self, more: &Self, most: &Self) -> Option<Counted> {
        let over =
            |used: usize, more: usize, most: usize| more > 0 && used.saturating_add(more) > most;
        if over(self.locks, more.locks, most.locks) {
            Some(Counted::Locks)
        } else if over(self.waiters, more.waiters, most.waiters) {
            Some(Counted::Waiters)
        } else if over(self.shares, more.shares, most.shares) {
            Some(Counted::Shares)
        } else if over(self.owner_bytes, more.owner_bytes, most.owner_bytes) {
            Some(Counted::OwnerBytes)
        } else {
            None
        }
    }

    fn add(&mut self, more: &Self) {
        self.locks += more.locks;
        self.waiters += more.waiters;
        self.shares += more.shares;
        self.owner_bytes += more.owner_bytes;
    }

    fn sub(&mut self, fewer: &Self) {
        self.locks -= fewer.locks;
        self.waiters -= fewer.waiters;
        self.shares -= fewer.shares;
        self.owner_bytes -= fewer.owner_bytes;
    }

    fn is_none(&self) -> bool {
        self.locks == 0 && self.waiters == 0 && self.shares == 0
    }
}

/// What is in use, by client and by owner.
#[derive(Debug, Default)]
pub(crate) struct Books {
    clients: BTreeMap<Client, Account>,
    owners: BTreeMap<Owner, Standing>,
    total: Use,
}

#[derive(Debug, Default)]
struct Account {
    used: Use,
    /// The files it has anything on, and how many things.
    files: BTreeMap<File, usize>,
}

#[derive(Debug, Default)]
struct Standing {
    used: Use,
    /// The requests that wait, by file and number.
    waits: BTreeSet<(File, u64)>,
}

impl Books {
    pub(crate) fn total(&self) -> Use {
        self.total
    }

    pub(crate) fn clients(&self) -> impl ExactSizeIterator<Item = &Client> {
        self.clients.keys()
    }

    /// The same owner as one value, whoever asks: so its name is kept once.
    pub(crate) fn known(&self, owner: &Owner) -> Owner {
        if let Some((known, _)) = self.owners.get_key_value(owner) {
            return known.clone();
        }
        match self.clients.get_key_value(owner.client()) {
            Some((client, _)) => Owner::new(client.clone(), owner.name()),
            None => owner.clone(),
        }
    }

    /// May `owner` have `more`?
    pub(crate) fn check(&self, owner: &Owner, more: &Use, limits: &Limits) -> Result<(), Limit> {
        let mut more = *more;
        if !self.owners.contains_key(owner) {
            more.owner_bytes = owner.name().len();
        }
        let client = self.clients.get(owner.client());
        if client.is_none() && self.clients.len() >= limits.clients {
            return Err(Limit { counted: Counted::Clients, scope: Scope::Server });
        }
        let used = client.map(|client| client.used).unwrap_or_default();
        let full = |scope| move |counted| Err(Limit { counted, scope });
        used.passes(&more, &limits.client)
            .map(full(Scope::Client))
            .or_else(|| self.total.passes(&more, &limits.server).map(full(Scope::Server)))
            .unwrap_or(Ok(()))
    }

    /// `owner` has `more` on `file`.
    pub(crate) fn add(&mut self, owner: &Owner, file: &File, more: &Use) {
        let things = more.locks + more.waiters + more.shares;
        if things == 0 {
            return;
        }
        let mut more = *more;
        let standing = self.owners.entry(owner.clone()).or_insert_with(|| {
            more.owner_bytes = owner.name().len();
            Standing::default()
        });
        standing.used.add(&more);
        let account = self.clients.entry(owner.client().clone()).or_default();
        account.used.add(&more);
        *account.files.entry(*file).or_default() += things;
        self.total.add(&more);
    }

    /// `owner` has `fewer` on `file`.
    pub(crate) fn sub(&mut self, owner: &Owner, file: &File, fewer: &Use) {
        let things = fewer.locks + fewer.waiters + fewer.shares;
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
        if let Some(left) = account.files.get_mut(file) {
            *left -= things;
            if *left == 0 {
                account.files.remove(file);
            }
        }
        if account.used.is_none() {
            self.clients.remove(owner.client());
        }
        self.total.sub(&fewer);
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

    /// What `owner` waits for.
    pub(crate) fn waits_of(&self, owner: &Owner) -> impl Iterator<Item = &(File, u64)> {
        self.owners.get(owner).into_iter().flat_map(|standing| &standing.waits)
    }

    /// Does `owner` hold a lock on any file?
    pub(crate) fn holds(&self, owner: &Owner) -> bool {
        self.owners.get(owner).is_some_and(|standing| standing.used.locks > 0)
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
