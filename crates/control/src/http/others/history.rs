//! Reports on volumes that have, or had, other gateways as their homes: the present is the home's,
//! and the history is that of all gateways together.

use super::super::failure::Failure;
use super::super::{Control, ControlState, blocking};
use super::answering::HISTORY;
use super::{Home, no_answer};
use crate::watch::{OF_CLUSTER, Past, Told, resolution, time_of_day};
use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;
use weir_api::limits::REPORT_SECONDS_MAX;
use weir_api::{MissingGateway, Report, routes};
use weir_catalog::{CatalogError, Snapshot, Thing, Volume};
use weir_core::VolumeId;

/// Seconds by which the clocks of gateways may differ before what one of them recorded in the last
/// minutes is left out.
const CLOCKS_DIFFER: u64 = 3600;

/// The history that another gateway asks for.
#[derive(Deserialize)]
pub(super) struct Which {
    volume: u32,
    since: u64,
}

/// The answer to another gateway: what this one recorded of a volume.
pub(super) async fn own(
    State(state): State<ControlState>,
    Query(which): Query<Which>,
) -> Result<Json<Told>, Failure> {
    let look = move |control: &Control| {
        let snapshot = control.catalog.snapshot();
        let volume = snapshot.volume(VolumeId(which.volume)).ok_or_else(|| {
            let name = format!("number {}", which.volume);
            CatalogError::NoSuch { thing: Thing::Volume, name }
        })?;
        let since = which.since.clamp(1, REPORT_SECONDS_MAX);
        Ok(control.watch.past(volume, since).told())
    };
    blocking(&state, look).await.map(Json)
}

/// The report on the volume called `name` for the last `since` seconds.
pub(in super::super) async fn report(
    state: &ControlState,
    name: String,
    since: u64,
) -> Result<Report, Failure> {
    let snapshot = state.0.catalog.snapshot();
    let Some(volume) = snapshot.volume_named(&name) else {
        return Err(CatalogError::NoSuch { thing: Thing::Volume, name }.into());
    };
    let own = own_past(state, volume, since).await?;
    if state.0.cluster.get().is_none() {
        return Ok(state.0.watch.report(&snapshot, volume, since, own));
    }
    let (past, missing) = joined(state, (&snapshot, volume), since, own).await?;
    let mut report = state.0.watch.report(&snapshot, volume, since, past);
    report.conditions.push(OF_CLUSTER.to_owned());
    Ok(Report { missing, ..report })
}

async fn own_past(state: &ControlState, volume: &Volume, since: u64) -> Result<Past, Failure> {
    let volume = volume.clone();
    blocking(state, move |control| Ok(control.watch.past(&volume, since))).await
}

/// The history of a volume at all gateways, of which this one has `own`, and the gateways that did
/// not answer.
async fn joined(
    state: &ControlState,
    (snapshot, volume): (&Snapshot, &Volume),
    since: u64,
    own: Past,
) -> Result<(Past, Vec<MissingGateway>), Failure> {
    let length = resolution(since);
    let path = routes::with_query(HISTORY, "volume", &volume.id.0.to_string());
    let path = routes::with_query(&path, "since", &since.to_string());
    let home = state.0.home(snapshot, volume);
    let (mut present, mut others, mut missing) = (None, Vec::new(), Vec::new());
    for (gateway, answer) in state.ask_each(state.0.to_all(&path), super::json::<Told>).await {
        let is_home = matches!(&home, Home::At(known) if known.id == gateway.id);
        match answer {
            Ok(told) if is_home => present = told.past(length),
            Ok(told) => others.push(told),
            Err(error) if is_home => return Err(no_answer(&gateway, &volume.name, &error)),
            Err(error) => missing.push(gateway.missing(&error)),
        }
    }
    let mut whole = match (home, present) {
        (Home::Here | Home::Nowhere, _) => own,
        (Home::At(_), Some(present)) => {
            others.push(own.told());
            present
        }
        (Home::At(known), None) => {
            return Err(no_answer(&known, &volume.name, &super::NoAnswer::Malformed));
        }
    };
    let now = time_of_day();
    whole.join(others, now.saturating_sub(since)..now.saturating_add(CLOCKS_DIFFER));
    Ok((whole, missing))
}
