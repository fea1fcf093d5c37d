//! The catalogue of a gateway: opened from the store of its cluster instead of a file, and kept up
//! with it. What is shared, and how, is in `cluster`.

use crate::catalog::Catalog;
use crate::cluster::{self, ClusterPlace, Guard, Head, Link, Secret};
use crate::directory::{self, Lock};
use crate::error::{CatalogError, ClusterError, Result};
use crate::limits::Minimums;
use crate::sealer::Sealer;
use crate::{promises, rows, schema};
use std::path::Path;
use weir_cluster::Version;

impl Catalog {
    /// Opens the catalogue of a cluster, on a gateway with this data directory, which holds what
    /// belongs to this machine alone: the lock, the first token of the API, the history of
    /// contracts and the audit log.
    ///
    /// # Errors
    /// `Locked` if another server has the directory; `NotDataDirectory`, `ForeignOwner`, `Io`; of
    /// the cluster `BadName`, `Missing`, `WrongKey`, `Row`, `Newer`, `Unreachable`.
    pub fn open_in_cluster(
        directory: &Path,
        minimums: Minimums,
        place: ClusterPlace,
    ) -> Result<Self> {
        let directory = directory::prepare(directory)?;
        let lock = Lock::take(&directory)?;
        let mut db = schema::in_memory()?;
        cluster::install(&db)?;
        let (link, snapshot) = Link::open(place, &mut db, |tx, reach| {
            let snapshot = rows::load(tx, &directory)?;
            promises::check(&snapshot, reach)?;
            Ok(snapshot)
        })?;
        let handles = secret(&link, Secret::Handles)?;
        let handles: [u8; 16] = handles.try_into().map_err(|_| no_secret(Secret::Handles))?;
        let key = secret(&link, Secret::Passwords)?;
        let sealer = Sealer::with_key(&directory, snapshot.instance(), &key);
        Ok(Self::following((directory, lock), minimums, (db, link), (snapshot, handles, sealer)))
    }

    /// From now on everything that this gateway writes in the catalogue of its cluster has `guard`,
    /// unless it has had one since it was opened.
    pub fn guard_by(&self, guard: Guard) {
        if let Some(link) = self.cluster() {
            link.place().life.set(guard);
        }
    }

    /// Applies what other gateways changed, up to now, and completes what this one began. Tells
    /// whether there was something new. Until an error is gone, the snapshot stays as it was, and
    /// changes are refused.
    ///
    /// # Errors
    /// `Row`, `Newer`, `Replaced`, `Unreachable`.
    pub fn follow(&self) -> Result<bool> {
        let followed = self.with_cluster(|link, db| {
            let news = self.follow_once(link, db)?;
            if link.has_own_intent() {
                self.catch_up(link, db)?;
            }
            Ok(news)
        })?;
        Ok(followed.unwrap_or(false))
    }

    /// Ends the large change, such as an import, that `gateway` was making when it ended: undone if
    /// it was not valid yet, so that nothing was changed. Tells whether there was one. Only for a
    /// gateway that has ended: one that has not is told that its change was undone.
    ///
    /// # Errors
    /// The errors of [`Catalog::follow`], `InDoubt`.
    pub fn end_change_of(&self, gateway: &str) -> Result<bool> {
        let ended = self.with_cluster(|link, db| {
            self.follow_once(link, db)?;
            let ended = link.undo_of(gateway)?;
            match self.catch_up(link, db) {
                // That of a third gateway, which is its own.
                Err(CatalogError::Cluster(ClusterError::Busy { .. })) => Ok(ended),
                done => done.map(|_| ended),
            }
        })?;
        Ok(ended.unwrap_or(false))
    }

    /// The format in which the cluster's rows are written, and the newest that this version knows.
    #[must_use]
    pub fn cluster_formats(&self) -> Option<(u32, u32)> {
        self.cluster().map(|link| (link.state().head.format, schema::newest_format()))
    }

    /// Lets all gateways write the format of the catalogue that belongs to `version`. To be called
    /// when the records of the cluster are in that version: then every gateway knows it, and none
    /// that does not can become a member any more. Gives the format if it was raised; it is never
    /// lowered.
    ///
    /// # Errors
    /// The errors of a change.
    pub fn raise_cluster_format(&self, version: Version) -> Result<Option<u32>> {
        let format = schema::format_in(version);
        let is_behind = |link: &Link| link.state().head.format < format;
        let raised = self.with_cluster(|link, db| {
            if !is_behind(link) {
                return Ok(None);
            }
            self.catch_up(link, db)?;
            let state = link.state();
            if !is_behind(link) {
                return Ok(None);
            }
            let head = Head { format, ..state.head.clone() };
            link.send(&state, &head, Vec::new())?;
            self.follow_once(link, db)?;
            Ok(Some(format))
        })?;
        Ok(raised.flatten())
    }
}

/// A secret that every cluster has.
///
/// # Errors
/// `Row` if it is missing, `WrongKey`, `Unreachable`.
pub(crate) fn secret(link: &Link, which: Secret) -> Result<Vec<u8>> {
    let found = link.vault().read(which)?;
    found.map(|(content, _)| content).ok_or_else(|| no_secret(which))
}

fn no_secret(which: Secret) -> CatalogError {
    let what = "it is missing, or no such secret".to_owned();
    ClusterError::Row { key: which.path(), what }.into()
}
