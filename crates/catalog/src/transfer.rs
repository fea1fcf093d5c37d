//! Catalogues into a cluster and out of it: looking for one, creating one, and putting another in
//! its place. What comes and goes is in the modules: a stand-alone catalogue ([`import`]), a
//! stand-alone data directory ([`export`]), a backup of the cluster's own catalogue ([`saved`]).
//!
//! A replacement is one change: it is valid as a whole or not at all. No gateway should run
//! meanwhile, which the caller sees to. One that does notices, and must be restarted, because
//! handles, SIDs and passwords are those of the new catalogue.

mod export;
mod import;
mod saved;

pub use export::export_cluster;
pub use import::{Import, check_import, import_into_cluster, preview_import};
pub use saved::{ClusterBackup, back_up_cluster, restore_cluster};

use crate::cluster::{
    self, ClusterPlace, ClusterStore, Decision, Guard, Head, Link, Operation, Secret, State,
    StoreError, Vault,
};
use crate::directory;
use crate::error::{CatalogError, ClusterError, Result};
use crate::gateway::secret;
use crate::members::{self, Gateway};
use crate::restore::Replace;
use crate::sealer::Sealer;
use crate::snapshot::Snapshot;
use crate::{image, merge, rows, schema};
use rusqlite::Connection;
use std::path::Path;

/// How often creating a cluster is tried while answers are lost.
const TRIES: usize = 8;
/// The tables without which a catalogue counts as empty.
const CONTENT: [&str; 3] = ["levels", "pools", "accounts"];

/// Creates the catalogue of a new cluster, empty and with new secrets.
///
/// # Errors
/// `Exists`, `BadName`, `Unreachable`, `InDoubt`, `Io`.
pub fn create_cluster(place: &ClusterPlace) -> Result<()> {
    let prefix = place.prefix()?;
    let db = schema::in_memory()?;
    let instance = rows::instance(&db)?;
    let head = Head::first(schema::newest_format(), instance.clone(), cluster::counters(&db)?);
    let head = Operation::Put { key: format!("{prefix}head"), value: cluster::write(&head)? };
    let (vault, mut operations) = (Vault::of(place)?, vec![head]);
    for (which, content) in new_secrets()? {
        operations.push(vault.seal(which, &content)?);
    }
    let absent = Guard::At { key: format!("{prefix}head"), revision: 0 };
    for _ in 0..TRIES {
        match place.store.commit(std::slice::from_ref(&absent), &operations) {
            Ok(Decision::At(_)) => return Ok(()),
            Ok(Decision::Refused) => {
                // An attempt whose answer was lost may have made it.
                let found = Link::open(place.clone(), &mut memory()?, |tx, _| rows::instance(tx))?;
                return match found.1 == instance {
                    true => Ok(()),
                    false => Err(ClusterError::Exists { cluster: place.cluster.clone() }.into()),
                };
            }
            Err(StoreError::Unknown(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ClusterError::InDoubt.into())
}

/// Whether the store has a catalogue of the cluster `cluster`.
///
/// # Errors
/// `BadName`, `Unreachable`.
pub fn cluster_exists(store: &dyn ClusterStore, cluster: &str) -> Result<bool> {
    let prefix = cluster::prefix_of(cluster)?;
    Ok(store.get(&format!("{prefix}head"))?.is_some())
}

/// The gateways in the catalogue of a cluster, by number; none if there is no catalogue.
///
/// # Errors
/// `BadName`, `Row`, `Newer`, `Unreachable`.
pub fn cluster_gateways(place: &ClusterPlace) -> Result<Vec<Gateway>> {
    let mut db = memory()?;
    match Link::open(place.clone(), &mut db, |tx, _| members::load_gateways(tx)) {
        Ok((_, gateways)) => Ok(gateways),
        Err(CatalogError::Cluster(ClusterError::Missing { .. })) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Random secrets for a catalogue that has none.
fn new_secrets() -> Result<[(Secret, Vec<u8>); 3]> {
    Ok([
        (Secret::Handles, directory::random::<16>()?),
        (Secret::Reports, directory::random::<32>()?),
        (Secret::Passwords, Sealer::new_key()?),
    ])
}

fn memory() -> Result<Connection> {
    let db = schema::in_memory()?;
    cluster::install(&db)?;
    Ok(db)
}

/// The treatment of a large change that another gateway has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftBehind {
    /// The change is undone: no gateway runs that could end it.
    Undone,
    /// The change stays, and is an error (`Busy`): its gateway may run.
    Kept,
}

/// A catalogue in the place of a cluster's, ready to be sent.
struct Replacement {
    link: Link,
    state: State,
    /// The new catalogue, with the gateways and addresses of the cluster.
    image: Connection,
    head: Head,
    operations: Vec<Operation>,
}

impl Replacement {
    /// Prepares `image` as the catalogue of the cluster at `place`. What the cluster keeps is
    /// merged into it ([`merge::keep_cluster`]), once `check` has passed for `image` and the
    /// present catalogue.
    ///
    /// # Errors
    /// The errors of `check`; `Exists` if the cluster has a pool, a level or a user and may not be
    /// replaced; `Busy`, `Missing`, `WrongKey`, `Row`, `Newer`, `NotYet`, `TooMany`, `Unreachable`,
    /// `InDoubt`.
    fn prepare(
        place: &ClusterPlace,
        image: &Connection,
        (replace, left_behind): (Replace, LeftBehind),
        check: impl FnOnce(&Connection, &Connection) -> Result<()>,
    ) -> Result<Self> {
        let mut db = memory()?;
        let (link, ()) = Link::open(place.clone(), &mut db, |_, _| Ok(()))?;
        loop {
            match link.resolve() {
                Ok(false) => break,
                Ok(true) => {}
                Err(CatalogError::Cluster(ClusterError::Busy { gateway }))
                    if left_behind == LeftBehind::Undone =>
                {
                    link.undo_of(&gateway)?;
                }
                Err(error) => return Err(error),
            }
            link.follow(&mut db, |_, _| Ok(()))?;
        }
        // Secrets that this key does not open would stay beside those that it seals.
        secret(&link, Secret::Handles)?;
        let state = link.state();
        let mut documents = cluster::whole(&db)?;
        let has_content = documents.values().any(|(place, _)| CONTENT.contains(&place.table.name));
        if replace == Replace::Never && has_content {
            return Err(ClusterError::Exists { cluster: place.cluster.clone() }.into());
        }
        documents.values_mut().for_each(|(_, document)| *document = None);
        let mut image = image::of(image)?;
        check(&image, &db)?;
        merge::keep_cluster(&mut image, &db)?;
        documents.extend(cluster::whole(&image)?);
        let operations = link.operations(&documents, state.head.format)?;
        let find = "SELECT generation FROM meta";
        let generation: u64 = image.query_row(find, [], |row| row.get(0))?;
        let head = Head {
            generation: generation.max(state.head.generation).saturating_add(1),
            instance: rows::instance(&image)?,
            counters: cluster::counters(&image)?,
            ..state.head.clone()
        };
        Ok(Self { link, state, image, head, operations })
    }

    /// The catalogue as it will be, but for its generation.
    fn snapshot(&self) -> Result<Snapshot> {
        rows::load(&self.image, Path::new("/"))
    }

    /// Makes it the catalogue of the cluster, with these secrets. Secrets that are not among them
    /// stay.
    ///
    /// # Errors
    /// The errors of a change.
    fn send(mut self, secrets: &[(Secret, Vec<u8>)]) -> Result<()> {
        for (which, content) in secrets {
            self.operations.push(self.link.vault().seal(*which, content)?);
        }
        self.link.send(&self.state, &self.head, self.operations)?;
        // It is valid. If opening it does not complete it, the first gateway does.
        let place = self.link.place().clone();
        let _completed_later = Link::open(place, &mut memory()?, |_, _| Ok(()));
        Ok(())
    }
}
