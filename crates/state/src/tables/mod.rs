//! The tables of locks, opens and shares of all volumes, and the operations on them.

mod moving;
mod of_opens;

use crate::accounts::Claim;
use crate::amounts::Use;
use crate::ask::{Ask, Grant, GrantId, Locked};
use crate::books::Books;
use crate::deadlock;
use crate::error::{Limit, Refused};
use crate::file::File;
use crate::limits::Limits;
use crate::open::Closed;
use crate::owner::{Client, OpenId, Owner, Protocol};
use crate::place::{LockPlace, ReleasedLock};
use crate::presence::Watch;
use crate::range::Range;
use crate::share::Share;
use crate::table::{Attempt, Table};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use weir_core::{Mono, Origin, VolumeId};

/// All locks, opens, shares and waiters: a table for each volume, over books that all volumes
/// share. `W` is what the caller needs to tell a waiting client.
///
/// Bounds and owners are the server's, so that a client has one account whatever volumes it uses
/// and deadlocks across volumes are found. A grace period is the volume's.
///
/// Every operation costs O(log n) in what is held, and as much for each range of the asking owner
/// that it touches. An operation that frees something also goes through those who wait on that
/// file, and one that has to wait searches for deadlocks.
///
/// # Whose turn it is
///
/// Waiters are served in the order of arrival. A request that would wait may not overtake an
/// earlier one that it conflicts with, so readers can't starve a writer; one that does not want to
/// wait looks only at held locks. The exception is an owner that holds a lock already, on any file:
/// its requests look only at held locks, because a request ahead may be waiting for it.
#[derive(Debug)]
pub struct Tables<W> {
    volumes: BTreeMap<VolumeId, Table<W>>,
    books: Books,
}

impl<W> Tables<W> {
    /// No tables: no volume is open.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { volumes: BTreeMap::new(), books: Books::new(limits) }
    }

    /// Has `watch` told from now on what there is on which file. Nothing may be held yet.
    #[must_use]
    pub fn watched_by(mut self, watch: Box<dyn Watch>) -> Self {
        self.books.watch = Some(watch);
        self
    }

    pub(crate) fn volumes(&self) -> &BTreeMap<VolumeId, Table<W>> {
        &self.volumes
    }

    /// Begins a table for `volume`, unless there is one.
    pub fn open(&mut self, volume: VolumeId) {
        self.volumes.entry(volume).or_insert_with(|| Table::new(volume));
    }

    /// Is there a table for `volume`?
    #[must_use]
    pub fn is_open(&self, volume: VolumeId) -> bool {
        self.volumes.contains_key(&volume)
    }

    /// Ends all locks, opens, shares and waits on files of `volume`, because the volume is gone.
    /// Nobody is told, nothing is deleted, and later requests are refused.
    pub fn close(&mut self, volume: VolumeId) {
        if let Some(mut table) = self.volumes.remove(&volume) {
            table.release_all(&mut self.books);
        }
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
    /// [`Refused::Deadlock`], [`Refused::Full`], [`Refused::NoVolume`].
    pub fn lock(
        &mut self,
        now: Mono,
        ask: &Ask,
        reclaim: bool,
        wait: Option<W>,
        grants: &mut Vec<Grant<W>>,
    ) -> Result<Locked, Refused> {
        let Self { volumes, books } = self;
        let volume = ask.file.volume;
        books.grace.admit(now, volume, ask.owner.client(), reclaim)?;
        let ask = &Ask { owner: books.accounts.known(&ask.owner), ..ask.clone() };
        let wait = wait.filter(|_| !reclaim);
        let table = volumes.get_mut(&volume).ok_or(Refused::NoVolume)?;
        let claim = claim_of(reclaim);
        let Attempt::MustWait(waiting) =
            table.attempt(ask, wait.is_some(), claim, books, grants)?
        else {
            return Ok(Locked::Granted);
        };
        if waiting.is_none() && deadlock::found(volumes, &books.accounts, ask) {
            return Err(Refused::Deadlock);
        }
        match (volumes.get_mut(&volume), wait) {
            (Some(table), Some(token)) => {
                table.wait(ask, waiting, token, books).map_err(Refused::Full)
            }
            _ => Err(Refused::NoVolume),
        }
    }

    /// Would [`Self::lock`] give what is asked for? Nothing is taken, and who waits does not count.
    ///
    /// # Errors
    /// [`Refused::Held`], and [`Refused::Grace`], in which nobody can tell yet.
    pub fn test(&self, now: Mono, ask: &Ask) -> Result<(), Refused> {
        self.admits(now, ask.file.volume, ask.owner.client(), false)?;
        let table = self.volumes.get(&ask.file.volume).ok_or(Refused::NoVolume)?;
        match table.file(&ask.file.object).and_then(|locks| locks.holder(ask)) {
            Some(holder) => Err(Refused::Held(holder)),
            None => Ok(()),
        }
    }

    /// Does a request for what is asked, or to give it up, take only a short time, whatever others
    /// hold? One that would have to wait does not: it searches for deadlocks.
    #[must_use]
    pub fn is_quick(&self, ask: &Ask, may_wait: bool) -> bool {
        let table = self.volumes.get(&ask.file.volume);
        table.is_none_or(|table| table.is_quick(ask, may_wait, &self.books))
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
        let Some(table) = self.volumes.get_mut(&file.volume) else { return Ok(()) };
        table.unlock(file, owner, range, &mut self.books, grants)
    }

    /// Ends the wait for exactly what is asked for. If it was granted and the client has not said
    /// yet what it makes of that, it is given back. `false` if there was nothing to cancel.
    pub fn cancel(&mut self, ask: &Ask, grants: &mut Vec<Grant<W>>) -> bool {
        let table = self.volumes.get_mut(&ask.file.volume);
        table.is_some_and(|table| table.cancel(ask, &mut self.books, grants))
    }

    /// Releases the lock in this place of the [list](Self::locks), however many times an open holds
    /// it, or ends the wait of the request there; also in the grace period. `None` if there is
    /// nothing in this place. Other locks of the owner stay.
    ///
    /// For operators. The owner did not ask for the release, and continues to act as the holder
    /// unless its protocol informs it.
    pub fn release_lock(
        &mut self,
        place: &LockPlace,
        grants: &mut Vec<Grant<W>>,
    ) -> Option<ReleasedLock<W>> {
        let table = self.volumes.get_mut(&place.file.volume)?;
        table.release_lock(place, &mut self.books, grants)
    }

    /// The client knows that it holds what was granted, or may know: nothing takes it away any
    /// more but the client itself. Nothing happens if the grant was settled otherwise by now.
    pub fn taken(&mut self, grant: GrantId) {
        if let Some((file, owner)) = self.books.granted.remove(&grant)
            && let Some(table) = self.volumes.get_mut(&file.volume)
        {
            table.settle(&file.object, &owner, grant);
        }
    }

    /// The client does not want what was granted, or can't have heard of it: its owner holds again
    /// what it held before. Nothing happens if the grant was settled otherwise by now: the owner
    /// has locked or unlocked some of it since, so it knows. (A client of several threads may know
    /// it by another thread.)
    ///
    /// A client that may have heard of the grant, and only its answer got lost, goes on in the
    /// belief that it holds the lock: that is [`Self::taken`].
    pub fn refused(&mut self, grant: GrantId, grants: &mut Vec<Grant<W>>) {
        let Some((file, owner)) = self.books.granted.get(&grant).cloned() else { return };
        if let Some(table) = self.volumes.get_mut(&file.volume) {
            table.take_back(&file, &owner, grant, &mut self.books, grants);
        }
    }

    /// Reserves the file for `owner`, in place of a reservation it may have on it.
    ///
    /// # Errors
    /// [`Refused::Shared`] if another owner's reservation conflicts with it, [`Refused::Sharing`]
    /// if an open does, [`Refused::Grace`], [`Refused::NoReclaim`], [`Refused::Full`],
    /// [`Refused::NoVolume`].
    pub fn share(
        &mut self,
        now: Mono,
        file: &File,
        owner: &Owner,
        share: Share,
        reclaim: bool,
    ) -> Result<(), Refused> {
        self.admits(now, file.volume, owner.client(), reclaim)?;
        let owner = &self.books.accounts.known(owner);
        let table = self.volumes.get_mut(&file.volume).ok_or(Refused::NoVolume)?;
        table.share(file, owner, share, claim_of(reclaim), &mut self.books)
    }

    /// Ends the reservation of `owner`, if it has one; also in the grace period.
    pub fn unshare(&mut self, file: &File, owner: &Owner) {
        if let Some(table) = self.volumes.get_mut(&file.volume) {
            table.unshare(file, owner, &mut self.books);
        }
    }

    /// Ends all that `owner` has: its locks, shares and waits on all files.
    pub fn release_owner(&mut self, owner: &Owner, grants: &mut Vec<Grant<W>>) {
        for file in self.books.accounts.files_of(owner.client()) {
            self.release_on(&file, owner, &|other| other == owner, grants);
        }
    }

    /// Ends all that `client` has: it rebooted, its lease ran out, its session ended, or it said so
    /// itself. In the grace period nothing more is expected of it. Gives what came of its opens.
    ///
    /// Costs as much as to close each of them. Who can't hold the mutex for so long closes some of
    /// [`Self::opens_of`] at a time.
    pub fn release_client(
        &mut self,
        client: &Client,
        grants: &mut Vec<Grant<W>>,
    ) -> Vec<Closed<W>> {
        let opens: Vec<OpenId> = self.opens_of(client, OpenId(0)).collect();
        let closed = opens.into_iter().filter_map(|open| self.close_file(open, grants)).collect();
        let first = Owner::new(client.clone(), &[]);
        for file in self.books.accounts.files_of(client) {
            self.release_on(&file, &first, &|other| other.client() == client, grants);
        }
        self.books.grace.done(client);
        closed
    }

    fn release_on(
        &mut self,
        file: &File,
        first: &Owner,
        meant: &dyn Fn(&Owner) -> bool,
        grants: &mut Vec<Grant<W>>,
    ) {
        if let Some(table) = self.volumes.get_mut(&file.volume) {
            table.release(file, Some(first), meant, &mut self.books, grants);
        }
    }

    /// Begins the grace period of `volumes`, those that were served before the restart, whether
    /// they are open yet or not, in place of one that they have: until `until`, or until all of
    /// `clients`, those that held something before, are known to have nothing to reclaim. Without
    /// such clients there is none. Only they may reclaim: who is not among them held nothing when
    /// the server stopped, and others may have held it since.
    pub fn begin_grace(
        &mut self,
        until: Mono,
        volumes: impl IntoIterator<Item = VolumeId>,
        clients: impl IntoIterator<Item = Client>,
    ) {
        self.books.grace.begin(until, volumes, clients);
    }

    /// Latest end of the grace period of any volume; `None` if there is none at `now`.
    #[must_use]
    pub fn grace_until(&self, now: Mono) -> Option<Mono> {
        self.books.grace.until(now)
    }

    /// Has `client` anything: a lock, an open, a share, or a request that waits?
    #[must_use]
    pub fn has(&self, client: &Client) -> bool {
        self.books.accounts.has(client)
    }

    /// The use of all clients together.
    #[must_use]
    pub fn used(&self) -> Use {
        self.books.accounts.total()
    }

    /// Everybody who holds something or waits.
    pub fn clients(&self) -> impl ExactSizeIterator<Item = &Client> {
        self.books.accounts.clients()
    }

    /// The clients of one protocol whose requests come from `origin`.
    pub fn clients_at(&self, protocol: Protocol, origin: Origin) -> impl Iterator<Item = &Client> {
        self.books.accounts.clients_at(protocol, origin)
    }

    /// The clients of NLM whose last lock, share or waiter went away since the last call. A client
    /// that is returned may hold something again. Other protocols know by themselves when a client
    /// ends.
    pub fn take_left(&mut self) -> Vec<Client> {
        self.books.accounts.take_left()
    }

    /// Does the grace period of `volume` let `client` take a lock or share at `now`, as a reclaim
    /// or not?
    ///
    /// # Errors
    /// [`Refused::Grace`] and [`Refused::NoReclaim`].
    pub fn admits(
        &self,
        now: Mono,
        volume: VolumeId,
        client: &Client,
        reclaim: bool,
    ) -> Result<(), Refused> {
        self.books.grace.admit(now, volume, client, reclaim)
    }

    /// In a grace period, the clients of `origin` that may still reclaim; one may come more than
    /// once.
    pub fn awaited_at(&self, protocol: Protocol, origin: Origin) -> impl Iterator<Item = &Client> {
        self.books.grace.awaited_at(protocol, origin)
    }

    /// The owner of this grant, as long as it may have to be taken back.
    #[must_use]
    pub fn grantee(&self, grant: GrantId) -> Option<&Owner> {
        self.books.granted.get(&grant).map(|(_, owner)| owner)
    }
}

/// A reclaimed lock was granted before the restart.
const fn claim_of(reclaim: bool) -> Claim {
    if reclaim { Claim::Old } else { Claim::New }
}
