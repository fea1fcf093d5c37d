//! The one way in which anything changes: catalogue, then data plane, then the answer.

use super::failure::Failure;
use super::{Control, ControlState};
use crate::sync::{Arc, lock};
use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use serde::Deserialize;
use weir_api::{Changed, LimitChange, mibps};
use weir_catalog::{Catalog, Mode, Outcome, Pool, Snapshot};
use weir_core::VolumeId;

/// The query of every changing request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct How {
    #[serde(default)]
    dry_run: bool,
}

/// The query, or why it makes no sense.
pub(super) type HowQuery = Result<Query<How>, QueryRejection>;

/// Reads [`How`] as the catalogue's mode.
pub(super) fn mode(how: HowQuery) -> Result<Mode, Failure> {
    Ok(match how?.dry_run {
        true => Mode::Preview,
        false => Mode::Commit,
    })
}

/// The volumes whose limits the answer to a change shows.
pub(super) enum Shown {
    /// Those whose limits it changes.
    Changed,
    /// All of the pool of this name: a change of a pool concerns no others.
    Pool(String),
    /// All of the pools of the level of this name.
    Level(String),
}

/// The answer to a change.
pub(super) type Answer<T> = Result<Json<Changed<T>>, Failure>;

impl ControlState {
    /// Makes a change and answers with what `describe` says of the catalogue after it.
    ///
    /// It runs where it may wait for the disk, and to its end even if the client goes away.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        mode: Mode,
        shown: Shown,
        ask: impl FnOnce(&Catalog, Mode) -> weir_catalog::Result<Outcome> + Send + 'static,
        settle: impl FnOnce(&Control, &Outcome) -> Result<Option<T>, Failure> + Send + 'static,
    ) -> Answer<T> {
        let control = Arc::clone(&self.0);
        let work = move || {
            let _turn = lock(&control.turn);
            let before = control.catalog.snapshot();
            let outcome = ask(&control.catalog, mode)?;
            if mode == Mode::Commit {
                control.follow(&outcome.snapshot);
            }
            let item = settle(&control, &outcome)?;
            Ok(Json(Changed {
                dry_run: mode == Mode::Preview,
                generation: outcome.snapshot.generation,
                changes: limits(&before, &outcome, &shown),
                item,
            }))
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::internal("failed", "the change failed inside the server")),
        }
    }
}

impl Control {
    /// Tells the data plane. What it can't follow concerns single volumes: they are reported as
    /// not served, and everything else is in force.
    pub(super) fn follow(&self, snapshot: &Arc<Snapshot>) {
        if let Err(error) = self.plane.apply(Arc::clone(snapshot)) {
            tracing::warn!(%error, "the data plane can't serve all of the catalogue");
        }
    }
}

/// The limits before and after of the volumes to be shown.
fn limits(before: &Snapshot, outcome: &Outcome, shown: &Shown) -> Vec<LimitChange> {
    let volumes = |pool: &Arc<Pool>| before.volumes_of(pool.id).map(|volume| volume.id);
    let volumes: Vec<VolumeId> = match shown {
        Shown::Changed => outcome.changes.iter().map(|change| change.volume).collect(),
        Shown::Pool(name) => before.pool_named(name).into_iter().flat_map(volumes).collect(),
        Shown::Level(name) => {
            let level = before.level_named(name).into_iter();
            level.flat_map(|level| before.pools_of(level)).flat_map(volumes).collect()
        }
    };
    let change = |id| {
        let (old, new) = (before.volume(id)?, outcome.snapshot.volume(id)?);
        Some(LimitChange {
            volume: old.name.clone(),
            before_bytes_per_second: old.limits.rate.0,
            after_bytes_per_second: new.limits.rate.0,
            before_mibps: mibps(old.limits.rate.0),
            after_mibps: mibps(new.limits.rate.0),
            before_iops: old.limits.iops.map(|iops| iops.0),
            after_iops: new.limits.iops.map(|iops| iops.0),
            before_base_iops: old.limits.burst.map(|burst| burst.base.0),
            after_base_iops: new.limits.burst.map(|burst| burst.base.0),
        })
    };
    volumes.into_iter().filter_map(change).collect()
}
