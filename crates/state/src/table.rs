//! The table of all locks and shares, and what may be done with it.

use crate::amounts::Use;
use crate::ask::{Ask, Grant, GrantId, Locked};
use crate::books::Claim;
use crate::deadlock;
use crate::error::{Limit, Refused};
use crate::file::File;
use crate::grace::Grace;
use crate::limits::Limits;
use crate::locks::{Common, Locks};
use crate::owner::{Client, Owner, Protocol};
use crate::range::Range;
use crate::share::Share;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use weir_core::{Mono, Origin, VolumeId};

/// All locks, shares and waiters. `W` is what the caller needs to tell a waiting client.
///
/// Every operation costs O(log n) in what is held, and as much for each range of the asking owner
/// that it touches. What frees something also goes through those who wait on that file.
///
/// # Whose turn it is
///
/// Waiters are served in the order of arrival. A request that would wait may not overtake an
/// earlier one that it conflicts with, so readers can't starve a writer; one that does not want to
/// wait looks only at held locks. The exception is an owner that holds a lock already, on any file:
/// its requests look only at held locks, because a request ahead may be waiting for it.
#[derive(Debug)]
pub struct Table<W> {
    files: BTreeMap<File, Locks<W>>,
    common: Common,
    grace: Grace,
}

impl<W> Table<W> {
    /// A table in which nothing is held.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { files: BTreeMap::new(), common: Common::new(limits), grace: Grace::default() }
    }

    /// Takes what is asked for. What its owner holds of it already changes its mode. A `reclaim` is
    /// a lock from before the restart; it never waits.
    ///
    /// With `wait`, a lock that somebody else holds is waited for. To ask again for what waits
    /// already is not to wait twice, but gives the new token, and the lock if it is free by now; to
    /// ask for what was granted meanwhile gives it, and settles the grant.
    ///
    /// # Errors
    /// [`Refused::Held`] without `wait`, [`Refused::Grace`] and [`Refused::NoReclaim`],
    /// [`Refused::Deadlock`], [`Refused::Full`].
    pub fn lock(
        &mut self,
        now: Mono,
        ask: &Ask,
        reclaim: bool,
        wait: Option<W>,
        grants: &mut Vec<Grant<W>>,
    ) -> Result<Locked, Refused> {
        self.grace.admit(now, ask.owner.client(), reclaim)?;
        let ask = &Ask { owner: self.common.books.known(&ask.owner), ..ask.clone() };
        let wait = wait.filter(|_| !reclaim);
        let locks = self.files.entry(ask.file).or_default();
        let (holder, waiting) = (locks.holder(ask), locks.waiting(ask));
        let behind = wait.is_some() && locks.must_queue(ask, waiting, &self.common.books);
        let done = match (holder, wait) {
            (Some(holder), None) => Err(Refused::Held(holder)),
            (holder, Some(token)) if holder.is_some() || behind => self.wait(ask, waiting, token),
            _ => locks
                .take(ask, waiting, claim_of(reclaim), &mut self.common, grants)
                .map_err(Refused::Full),
        };
        self.tidy(&ask.file);
        done
    }

    fn wait(&mut self, ask: &Ask, waiting: Option<u64>, token: W) -> Result<Locked, Refused> {
        if waiting.is_none() && deadlock::found(&self.files, &self.common.books, ask) {
            return Err(Refused::Deadlock);
        }
        let locks = self.files.entry(ask.file).or_default();
        locks.wait(ask, waiting, token, &mut self.common).map_err(Refused::Full)
    }

    /// Would [`Self::lock`] give what is asked for? Nothing is taken, and who waits does not count.
    ///
    /// # Errors
    /// [`Refused::Held`], and [`Refused::Grace`], in which nobody can tell yet.
    pub fn test(&self, now: Mono, ask: &Ask) -> Result<(), Refused> {
        self.grace.admit(now, ask.owner.client(), false)?;
        match self.files.get(&ask.file).and_then(|locks| locks.holder(ask)) {
            Some(holder) => Err(Refused::Held(holder)),
            None => Ok(()),
        }
    }

    /// Gives up what `owner` holds of `range`, in whatever mode; also in the grace period.
    ///
    /// # Errors
    /// [`Limit`] if the middle of a range is to be unlocked and there may be no more ranges.
    pub fn unlock(
        &mut self,
        file: &File,
        owner: &Owner,
        range: Range,
        grants: &mut Vec<Grant<W>>,
    ) -> Result<(), Limit> {
        let Some(locks) = self.files.get_mut(file) else { return Ok(()) };
        let done = locks.unlock(file, owner, range, &mut self.common, grants);
        self.tidy(file);
        done
    }

    /// Ends the wait for exactly what is asked for. If it was granted and the client has not said
    /// yet what it makes of that, it is given back. `false` if there was nothing to cancel.
    pub fn cancel(&mut self, ask: &Ask, grants: &mut Vec<Grant<W>>) -> bool {
        let Some(locks) = self.files.get_mut(&ask.file) else { return false };
        let done = locks.cancel(ask, &mut self.common, grants);
        self.tidy(&ask.file);
        done
    }

    /// The client knows that it holds what was granted, or may know: nothing takes it away any
    /// more but the client itself. Nothing happens if the grant was settled otherwise by now.
    pub fn taken(&mut self, grant: GrantId) {
        if let Some((file, owner)) = self.common.granted.remove(&grant)
            && let Some(locks) = self.files.get_mut(&file)
        {
            locks.settle(&owner, grant);
        }
    }

    /// The client does not want what was granted, or can't have heard of it: its owner holds again
    /// what it held before. Nothing happens if the grant was settled otherwise by now: the owner
    /// has locked or unlocked some of it since, so it knows.
    ///
    /// A client that may have heard of the grant, and only its answer got lost, goes on in the
    /// belief that it holds the lock: that is [`Self::taken`].
    pub fn refused(&mut self, grant: GrantId, grants: &mut Vec<Grant<W>>) {
        let Some((file, owner)) = self.common.granted.get(&grant).cloned() else { return };
        if let Some(locks) = self.files.get_mut(&file) {
            locks.take_back(&file, &owner, grant, &mut self.common, grants);
        }
        self.tidy(&file);
    }

    /// Reserves the file for `owner`, in place of a reservation it may have on it.
    ///
    /// # Errors
    /// [`Refused::Shared`] if another owner's reservation stands against it, [`Refused::Grace`],
    /// [`Refused::NoReclaim`], [`Refused::Full`].
    pub fn share(
        &mut self,
        now: Mono,
        file: &File,
        owner: &Owner,
        share: Share,
        reclaim: bool,
    ) -> Result<(), Refused> {
        self.grace.admit(now, owner.client(), reclaim)?;
        let owner = &self.common.books.known(owner);
        let locks = self.files.entry(*file).or_default();
        let done = locks.share(file, owner, share, claim_of(reclaim), &mut self.common);
        self.tidy(file);
        done
    }

    /// Ends the reservation of `owner`, if it has one; also in the grace period.
    pub fn unshare(&mut self, file: &File, owner: &Owner) {
        if let Some(locks) = self.files.get_mut(file) {
            locks.unshare(file, owner, &mut self.common);
            self.tidy(file);
        }
    }

    /// Ends all that `owner` has: its locks, shares and waits on all files.
    pub fn release_owner(&mut self, owner: &Owner, grants: &mut Vec<Grant<W>>) {
        for file in self.common.books.files_of(owner.client()) {
            self.release_on(&file, owner, &|other| other == owner, grants);
        }
    }

    /// Ends all that `client` has: it rebooted, its lease ran out, or it said so itself. In the
    /// grace period nothing more is expected of it.
    pub fn release_client(&mut self, client: &Client, grants: &mut Vec<Grant<W>>) {
        let first = Owner::new(client.clone(), &[]);
        for file in self.common.books.files_of(client) {
            self.release_on(&file, &first, &|other| other.client() == client, grants);
        }
        self.grace.done(client);
    }

    fn release_on(
        &mut self,
        file: &File,
        first: &Owner,
        whose: &dyn Fn(&Owner) -> bool,
        grants: &mut Vec<Grant<W>>,
    ) {
        if let Some(locks) = self.files.get_mut(file) {
            locks.release(file, first, whose, &mut self.common, grants);
            self.tidy(file);
        }
    }

    /// Ends all locks, shares and waits on files of `volume`, because the volume is gone. Nobody is
    /// told.
    pub fn release_volume(&mut self, volume: VolumeId) {
        let files: Vec<File> =
            self.files.keys().filter(|file| file.volume == volume).copied().collect();
        for file in files {
            // All waiters leave before anything is freed, so nothing is granted.
            self.release_on(&file, &Owner::lowest(), &|_| true, &mut Vec::new());
        }
    }

    /// Begins the grace period that follows a restart: until `until`, or until all of `clients`,
    /// those that held something before, are known to have nothing to reclaim. Without such
    /// clients there is none. Only they may reclaim: who is not among them held nothing when the
    /// server stopped, and others may have held it since.
    pub fn begin_grace(&mut self, until: Mono, clients: impl IntoIterator<Item = Client>) {
        self.grace.begin(until, clients);
    }

    /// Latest end of the grace period; `None` if there is none at `now`.
    #[must_use]
    pub fn grace_until(&self, now: Mono) -> Option<Mono> {
        self.grace.until(now)
    }

    /// Does `client` hold anything, or wait?
    #[must_use]
    pub fn has(&self, client: &Client) -> bool {
        self.common.books.has(client)
    }

    /// The use of all clients together.
    #[must_use]
    pub fn used(&self) -> Use {
        self.common.books.total()
    }

    /// Everybody who holds something or waits.
    pub fn clients(&self) -> impl ExactSizeIterator<Item = &Client> {
        self.common.books.clients()
    }

    /// The clients of one protocol whose requests come from `origin`.
    pub fn clients_at(&self, protocol: Protocol, origin: Origin) -> impl Iterator<Item = &Client> {
        self.common.books.clients_at(protocol, origin)
    }

    /// The clients whose last lock or waiter went away since the last call. A returned client may
    /// hold something again.
    pub fn take_left(&mut self) -> Vec<Client> {
        self.common.books.take_left()
    }

    /// Does the grace period let `client` take a lock or share at `now`, as a reclaim or not?
    ///
    /// # Errors
    /// [`Refused::Grace`] and [`Refused::NoReclaim`].
    pub fn admits(&self, now: Mono, client: &Client, reclaim: bool) -> Result<(), Refused> {
        self.grace.admit(now, client, reclaim)
    }

    /// In the grace period, the clients of `origin` that may still reclaim.
    pub fn awaited_at(&self, protocol: Protocol, origin: Origin) -> impl Iterator<Item = &Client> {
        self.grace.awaited_at(protocol, origin)
    }

    /// The owner of this grant, as long as it may have to be taken back.
    #[must_use]
    pub fn grantee(&self, grant: GrantId) -> Option<&Owner> {
        self.common.granted.get(&grant).map(|(_, owner)| owner)
    }

    /// Forgets a file on which nothing is left.
    fn tidy(&mut self, file: &File) {
        if self.files.get(file).is_some_and(Locks::is_empty) {
            self.files.remove(file);
        }
    }
}

/// A reclaimed lock was granted before the restart.
const fn claim_of(reclaim: bool) -> Claim {
    if reclaim { Claim::Old } else { Claim::New }
}
