//! The one path of every change: the catalogue, then the data plane, then the response.

use super::failure::Failure;
use super::preconditions::{Preconditions, Target};
use super::{Control, ControlState};
use crate::sync::{Arc, lock};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query};
use axum::http::header::ETAG;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_api::{Changed, HasEtag, LimitChange, Warning, mibps};
use weir_catalog::{
    Asked, Catalog, IdempotencyKey, Known, Mode, Outcome, Overcommitment, Pool, Snapshot,
};
use weir_core::VolumeId;

/// The header of a response that repeats an earlier one.
const IDEMPOTENCY_REPLAYED: &str = "idempotency-replayed";

/// The query of a change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeQuery {
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    overcommit: bool,
}

/// The options of a change, from its query and headers.
pub(super) struct Options {
    asked: Asked,
    preconditions: Preconditions,
}

impl Options {
    /// The options of a change that is made, or only checked for a dry run.
    pub(super) const fn new(dry_run: bool, overcommit: bool, preconditions: Preconditions) -> Self {
        let mode = match (dry_run, preconditions.key) {
            (true, _) => Mode::Preview,
            (false, Some(key)) => Mode::Once(key),
            (false, None) => Mode::Commit,
        };
        Self { asked: Asked { mode, overcommit }, preconditions }
    }

    /// Whether the change is made, and not only checked.
    pub(super) const fn commits(&self) -> bool {
        self.asked.mode.commits()
    }
}

impl<S: Sync> FromRequestParts<S> for Options {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let preconditions = Preconditions::from_request_parts(parts, state).await?;
        let query: Result<Query<ChangeQuery>, QueryRejection> = Query::try_from_uri(&parts.uri);
        let Query(ChangeQuery { dry_run, overcommit }) = query?;
        Ok(Self::new(dry_run, overcommit, preconditions))
    }
}

/// A response with the etag of the object.
pub(super) struct WithEtag<T>(pub(super) T);

impl<T: HasEtag + Serialize> IntoResponse for WithEtag<T> {
    fn into_response(self) -> Response {
        let etag = self.0.etag().to_owned();
        with_etag(&etag, Json(self.0))
    }
}

/// A response with an etag.
pub(super) fn with_etag(etag: &str, response: impl IntoResponse) -> Response {
    ([(ETAG, format!("\"{etag}\""))], response).into_response()
}

/// The response to a change.
pub(super) struct Reply<T> {
    changed: Changed<T>,
    /// Whether it repeats the response to an earlier request with the same key.
    replayed: bool,
}

/// A mark in the extensions of a response that repeats an earlier one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replayed;

/// The warnings about a change, in the extensions of the response.
#[derive(Clone, Debug)]
pub(super) struct Warnings(pub(super) String);

impl<T: HasEtag + Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        let etag = self.changed.item.as_ref().map(|item| item.etag().to_owned());
        let warnings: Vec<_> =
            self.changed.warnings.iter().map(|warning| warning.message.clone()).collect();
        let mut response = match etag.filter(|_| !self.changed.dry_run) {
            Some(etag) => with_etag(&etag, Json(self.changed)),
            None => Json(self.changed).into_response(),
        };
        if !warnings.is_empty() {
            response.extensions_mut().insert(Warnings(warnings.join("; ")));
        }
        if self.replayed {
            response.extensions_mut().insert(Replayed);
            let replayed = HeaderName::from_static(IDEMPOTENCY_REPLAYED);
            response.headers_mut().insert(replayed, HeaderValue::from_static("true"));
        }
        response
    }
}

/// The result of a changing request.
pub(super) type ChangeResult<T> = Result<Reply<T>, Failure>;

/// The request for which a new object is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The request that has just created the object.
    First,
    /// A repetition of a request whose response was not delivered: the object may be in use.
    Repeated,
}

impl ControlState {
    /// Makes a change of `target`: `apply` changes the catalogue, and `view` is the object after
    /// the change, for the response. `view` runs again if an undelivered response is repeated.
    ///
    /// The change runs on a thread that may wait for the disk, and to its end even if the client
    /// disconnects.
    pub(super) async fn change<T, E>(
        &self,
        options: Options,
        target: Target,
        apply: impl FnOnce(&Catalog, Asked) -> Result<Outcome, E> + Send + 'static,
        view: impl Fn(&Control, &Outcome) -> Result<Option<T>, Failure> + Send + 'static,
    ) -> ChangeResult<T>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        E: Into<Failure> + 'static,
    {
        self.change_and(options, target, apply, |_, _, _| Ok(()), view).await
    }

    /// Makes a change as [`change`](Self::change) does, with a part outside the catalogue: when the
    /// data plane follows the change, `complete` does it. It runs again if an undelivered response
    /// is repeated, and not for a dry run.
    pub(super) async fn change_and<T, E>(
        &self,
        options: Options,
        target: Target,
        apply: impl FnOnce(&Catalog, Asked) -> Result<Outcome, E> + Send + 'static,
        complete: impl Fn(&Control, &Outcome, Attempt) -> Result<(), Failure> + Send + 'static,
        view: impl Fn(&Control, &Outcome) -> Result<Option<T>, Failure> + Send + 'static,
    ) -> ChangeResult<T>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        E: Into<Failure> + 'static,
    {
        let control = Arc::clone(&self.0);
        let work = move || {
            let Options { asked, preconditions } = options;
            let mode = asked.mode;
            let _turn = lock(&control.turn);
            let before = control.catalog.snapshot();
            if let Mode::Once(key) = mode
                && let Some(changed) = control.made_before(&key, &complete, &view)?
            {
                return Ok(Reply { changed, replayed: true });
            }
            target.check(&preconditions, &control, &before)?;
            let outcome = apply(&control.catalog, asked).map_err(Into::into)?;
            let completed = mode.commits().then(|| {
                control.follow(&outcome.snapshot);
                complete(&control, &outcome, Attempt::First)
            });
            let item = completed.unwrap_or(Ok(())).and_then(|()| view(&control, &outcome));
            let item = match (item, mode) {
                (Err(failure), Mode::Once(key)) => {
                    control.catalog.forget_request(&key)?;
                    return Err(failure);
                }
                (item, _) => item?,
            };
            let changed = Changed {
                dry_run: mode == Mode::Preview,
                generation: outcome.snapshot.generation,
                changes: limits(&before, &outcome, &target),
                item,
                warnings: outcome.overcommitted.iter().map(warning).collect(),
            };
            for warning in changed.warnings.iter().filter(|_| mode.commits()) {
                tracing::warn!(code = warning.code, "{}", warning.message);
            }
            if let Mode::Once(key) = mode {
                control.keep_response(&key, &changed);
            }
            Ok(Reply { changed, replayed: false })
        };
        let control = Arc::clone(&self.0);
        let work = move || {
            let mut reply = work()?;
            if !reply.changed.dry_run && !reply.replayed {
                reply.changed.warnings.extend(control.wait_for_followers());
            }
            Ok(reply)
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(response) => response,
            Err(_) => Err(Failure::internal("failed", "the change failed with an internal error")),
        }
    }
}

impl Control {
    /// The earlier response to the request with this key. If only the object that it created is
    /// known, the response shows its current state; if the object is gone, it may be created again.
    fn made_before<T: DeserializeOwned>(
        &self,
        key: &IdempotencyKey,
        complete: impl Fn(&Self, &Outcome, Attempt) -> Result<(), Failure>,
        view: impl Fn(&Self, &Outcome) -> Result<Option<T>, Failure>,
    ) -> Result<Option<Changed<T>>, Failure> {
        let response = match self.catalog.recall(key)? {
            Known::Nothing => return Ok(None),
            Known::Other => {
                return Err(Failure::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "idempotency_key_reused",
                    "this Idempotency-Key was used for a different request: use a new key for each request",
                ));
            }
            Known::Done(response) => response,
        };
        if let Some(changed) = response.and_then(|json| serde_json::from_slice(&json).ok()) {
            return Ok(Some(changed));
        }
        let snapshot = self.catalog.snapshot();
        let generation = snapshot.generation;
        let unchanged = Outcome { snapshot, changes: Vec::new(), overcommitted: Vec::new() };
        if view(self, &unchanged)?.is_none() {
            self.catalog.forget_request(key)?;
            return Ok(None);
        }
        complete(self, &unchanged, Attempt::Repeated)?;
        let item = view(self, &unchanged)?;
        let (changes, warnings) = (Vec::new(), Vec::new());
        Ok(Some(Changed { dry_run: false, generation, changes, item, warnings }))
    }

    /// Stores the response to a request. Without it, a repeated request gets the current state of
    /// the object.
    fn keep_response<T: Serialize>(&self, key: &IdempotencyKey, changed: &Changed<T>) {
        let response = serde_json::to_vec(changed).unwrap_or_default();
        if let Err(error) = self.catalog.keep_response(key, &response) {
            tracing::warn!(%error, "cannot store the response for idempotent replay");
        }
    }

    /// Passes a snapshot to the data plane. A volume that the data plane cannot serve is reported
    /// as not served; the rest of the snapshot is in force.
    pub(super) fn follow(&self, snapshot: &Arc<Snapshot>) {
        if let Err(error) = self.plane.apply(Arc::clone(snapshot)) {
            tracing::warn!(%error, "the data plane cannot serve all volumes of the catalogue");
        }
    }
}

/// The warning that hardware is committed to more than it was measured to hold.
fn warning(beyond: &Overcommitment) -> Warning {
    Warning { code: "hardware_exceeded".to_owned(), message: beyond.to_string() }
}

/// The limits before and after: of all volumes of a changed pool or level, else of the volumes
/// whose limits differ.
fn limits(before: &Snapshot, outcome: &Outcome, target: &Target) -> Vec<LimitChange> {
    let volumes = |pool: &Arc<Pool>| before.volumes_of(pool.id).map(|volume| volume.id);
    let volumes: Vec<VolumeId> = match target {
        Target::New
        | Target::Volume(_)
        | Target::Calibration(_)
        | Target::User(_)
        | Target::Group(_)
        | Target::Address(_) => outcome.changes.iter().map(|change| change.volume).collect(),
        Target::Pool(name) => before.pool_named(name).into_iter().flat_map(volumes).collect(),
        Target::Level(name) => {
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
