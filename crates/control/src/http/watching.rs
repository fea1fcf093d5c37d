//! Whether contracts are kept, why volumes are slow, and who uses them how:
//! `/v1/volumes/{name}/report`, `/why` and `/load`, and `/v1/activity`.

use super::failure::Failure;
use super::{ControlState, others};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use weir_api::limits::REPORT_SECONDS_MAX;
use weir_api::{Activity, Load, Why};
use weir_catalog::{CatalogError, Snapshot, Thing, Volume};

/// The period that is reported by default: a day, in seconds.
const SINCE: u64 = 24 * 3600;

/// The scope of a report.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    #[serde(default = "day")]
    since: u64,
    #[serde(default)]
    signed: bool,
}

const fn day() -> u64 {
    SINCE
}

pub(super) async fn report(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, Failure> {
    let Query(Asked { since, signed }) = asked?;
    if !(1..=REPORT_SECONDS_MAX).contains(&since) {
        let message = format!("since must be from 1 to {REPORT_SECONDS_MAX} seconds (14 days)");
        return Err(Failure::bad_request(message));
    }
    let report = others::report(&state, name, since).await?;
    if !signed {
        return Ok(Json(report).into_response());
    }
    let Some(signer) = &state.0.signer else {
        let message =
            "reports cannot be signed: the server's log contains the error about report.key";
        return Err(Failure::internal("no_report_key", message));
    };
    let signed = signer.sign(&report);
    let signed = signed.map_err(|_| Failure::internal("failed", "cannot generate the report"))?;
    Ok(Json(signed).into_response())
}

pub(super) async fn why(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Json<Why>, Failure> {
    Ok(Json(others::why(&state, &name).await?))
}

pub(super) async fn load(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Json<Load>, Failure> {
    Ok(Json(others::load(&state, &name).await?))
}

/// The explanation of a volume by this server.
pub(super) async fn own_why(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Json<Why>, Failure> {
    let (snapshot, plane) = (state.0.catalog.snapshot(), &*state.0.plane);
    let volume = find(&snapshot, &name)?;
    Ok(Json(state.0.watch.why(&snapshot, plane, volume)))
}

/// The load of a volume at this server.
pub(super) async fn own_load(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Json<Load>, Failure> {
    let (snapshot, plane) = (state.0.catalog.snapshot(), &*state.0.plane);
    let volume = find(&snapshot, &name)?;
    Ok(Json(state.0.watch.load(plane, volume)))
}

/// The activity of the volumes of this server.
pub(super) async fn own_activity(State(state): State<ControlState>) -> Json<Activity> {
    Json(state.0.watch.activity(&state.0.catalog.snapshot(), &*state.0.plane))
}

/// The volume called `name`.
pub(super) fn find<'a>(snapshot: &'a Snapshot, name: &str) -> Result<&'a Volume, Failure> {
    let volume = snapshot.volume_named(name);
    let missing = || CatalogError::NoSuch { thing: Thing::Volume, name: name.to_owned() };
    Ok(volume.ok_or_else(missing)?)
}
