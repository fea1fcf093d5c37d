//! The one way in which anything changes: catalogue, then data plane, then the answer.

use super::failure::Failure;
use super::given::{Concerned, Given};
use super::{Control, ControlState};
use crate::sync::{Arc, lock};
use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::header::ETAG;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_api::{Changed, HasEtag, LimitChange, Warning, mibps};
use weir_catalog::{Asked, Catalog, Claim, Known, Mode, Outcome, Overcommitment, Pool, Snapshot};
use weir_core::VolumeId;

/// The header that says that an answer was given before.
const IDEMPOTENCY_REPLAYED: &str = "idempotency-replayed";

/// The query of every changing request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct How {
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    overcommit: bool,
}

/// The query, or why it makes no sense.
pub(super) type HowQuery = Result<Query<How>, QueryRejection>;

/// Reads [`How`] in the catalogue's words.
pub(super) fn asked(how: HowQuery) -> Result<Asked, Failure> {
    let Query(How { dry_run, overcommit }) = how?;
    let mode = if dry_run { Mode::Preview } else { Mode::Commit };
    Ok(Asked { mode, overcommit })
}

/// The volumes whose limits the answer to a change shows.
pub(super) enum Shown {
    /// The volumes whose limits the change alters.
    Changed,
    /// All of the pool of this name: a change of a pool concerns no others.
    Pool(String),
    /// All of the pools of the level of this name.
    Level(String),
}

/// The terms on which a change is asked for.
pub(super) struct Terms {
    asked: Asked,
    given: Given,
    concerned: Concerned,
}

impl Terms {
    /// A change of something; one that is made and has a name is made once.
    pub(super) fn new(asked: impl Into<Asked>, given: Given, concerned: Concerned) -> Self {
        let mut asked = asked.into();
        if let (Some(claim), true) = (given.claim, asked.mode.commits()) {
            asked.mode = Mode::Once(claim);
        }
        Self { asked, given, concerned }
    }
}

/// Something that is shown with its etag.
pub(super) struct Tagged<T>(pub(super) T);

impl<T: HasEtag + Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        let etag = self.0.etag().to_owned();
        tag(&etag, Json(self.0))
    }
}

/// An answer with an etag.
pub(super) fn tag(etag: &str, answer: impl IntoResponse) -> Response {
    ([(ETAG, format!("\"{etag}\""))], answer).into_response()
}

/// The result of a change, for its answer.
pub(super) struct Reply<T> {
    changed: Changed<T>,
    /// Was it made by the same request before?
    again: bool,
}

/// A mark in the extensions of an answer: the same request made the change before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again;

/// The warnings about a change that was made, in the extensions of its answer.
#[derive(Clone, Debug)]
pub(super) struct Minded(pub(super) String);

impl<T: HasEtag + Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        let etag = self.changed.item.as_ref().map(|item| item.etag().to_owned());
        let minded: Vec<_> = self.changed.warnings.iter().map(|one| one.message.clone()).collect();
        let mut response = match etag.filter(|_| !self.changed.dry_run) {
            Some(etag) => tag(&etag, Json(self.changed)),
            None => Json(self.changed).into_response(),
        };
        if !minded.is_empty() {
            response.extensions_mut().insert(Minded(minded.join("; ")));
        }
        if self.again {
            response.extensions_mut().insert(Again);
            let replayed = HeaderName::from_static(IDEMPOTENCY_REPLAYED);
            response.headers_mut().insert(replayed, HeaderValue::from_static("true"));
        }
        response
    }
}

/// The answer to a change.
pub(super) type Answer<T> = Result<Reply<T>, Failure>;

impl ControlState {
    /// Makes a change and answers with what `settle` says of the catalogue after it.
    ///
    /// The change runs where it may wait for the disk, and to its end even if the client goes away.
    pub(super) async fn change<T: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        terms: Terms,
        shown: Shown,
        ask: impl FnOnce(&Catalog, Asked) -> weir_catalog::Result<Outcome> + Send + 'static,
        settle: impl Fn(&Control, &Outcome) -> Result<Option<T>, Failure> + Send + 'static,
    ) -> Answer<T> {
        let control = Arc::clone(&self.0);
        let work = move || {
            let Terms { asked, given, concerned } = terms;
            let mode = asked.mode;
            let _turn = lock(&control.turn);
            let before = control.catalog.snapshot();
            if let Mode::Once(claim) = mode
                && let Some(changed) = control.made_before(&claim, &settle)?
            {
                return Ok(Reply { changed, again: true });
            }
            concerned.check(&given, &control, &before)?;
            let outcome = ask(&control.catalog, asked)?;
            if mode.commits() {
                control.follow(&outcome.snapshot);
            }
            let item = match (settle(&control, &outcome), mode) {
                (Err(failure), Mode::Once(claim)) => {
                    control.catalog.forget_request(&claim)?;
                    return Err(failure);
                }
                (settled, _) => settled?,
            };
            let changed = Changed {
                dry_run: mode == Mode::Preview,
                generation: outcome.snapshot.generation,
                changes: limits(&before, &outcome, &shown),
                item,
                warnings: outcome.overcommitted.iter().map(warning).collect(),
            };
            for warning in changed.warnings.iter().filter(|_| mode.commits()) {
                tracing::warn!(code = warning.code, "{}", warning.message);
            }
            if let Mode::Once(claim) = mode {
                control.keep_answer(&claim, &changed);
            }
            Ok(Reply { changed, again: false })
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::internal("failed", "the change failed with an internal error")),
        }
    }
}

impl Control {
    /// The earlier answer to the request of `claim`. Where only the object that it made is known,
    /// the answer shows it as it is now; where that is gone, it may be made anew.
    fn made_before<T: DeserializeOwned>(
        &self,
        claim: &Claim,
        settle: impl Fn(&Self, &Outcome) -> Result<Option<T>, Failure>,
    ) -> Result<Option<Changed<T>>, Failure> {
        let answer = match self.catalog.recall(claim)? {
            Known::Nothing => return Ok(None),
            Known::Other => {
                return Err(Failure::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "idempotency_key_reused",
                    "this Idempotency-Key was used for a different request: use a new key for each request",
                ));
            }
            Known::Done(answer) => answer,
        };
        if let Some(changed) = answer.and_then(|answer| serde_json::from_slice(&answer).ok()) {
            return Ok(Some(changed));
        }
        let snapshot = self.catalog.snapshot();
        let (generation, changes) = (snapshot.generation, Vec::new());
        let (nothing, overcommitted) = (Vec::new(), Vec::new());
        let item = settle(self, &Outcome { snapshot, changes: nothing, overcommitted })?;
        if item.is_none() {
            self.catalog.forget_request(claim)?;
            return Ok(None);
        }
        let warnings = Vec::new();
        Ok(Some(Changed { dry_run: false, generation, changes, item, warnings }))
    }

    /// Keeps what a request was answered. Without it a request that comes again is shown what it
    /// made as it is then.
    fn keep_answer<T: Serialize>(&self, claim: &Claim, changed: &Changed<T>) {
        let answer = serde_json::to_vec(changed).unwrap_or_default();
        if let Err(error) = self.catalog.keep_answer(claim, &answer) {
            tracing::warn!(%error, "cannot store the response for idempotent replay");
        }
    }
}

impl Control {
    /// Tells the data plane. What it can't follow concerns single volumes: they are reported as
    /// not served, and everything else is in force.
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
