//! `/v1/volumes/{name}/exports`.

use super::change::{ChangeResult, Options, with_etag};
use super::failure::Failure;
use super::preconditions::{Preconditions, Target};
use super::{Control, ControlState, convert};
use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::Deserialize;
use weir_api::{ExportRule, Volume};
use weir_catalog::{Asked, Catalog, CatalogError, IpNetwork, Mode, NetworkError, Outcome, Thing};

pub(super) async fn list(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Response, Failure> {
    let snapshot = state.0.catalog.snapshot();
    let volume = state.0.volume(&snapshot, &name);
    let volume = volume.ok_or(CatalogError::NoSuch { thing: Thing::Volume, name })?;
    // Exports are a part of the volume, so they have its etag.
    Ok(with_etag(&volume.etag, Json(volume.exports)))
}

pub(super) async fn set(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
    rules: Result<Json<Vec<ExportRule>>, JsonRejection>,
) -> ChangeResult<Volume> {
    let Json(rules) = rules?;
    let rules = rules.iter().map(convert::rule_asked).collect::<Result<Vec<_>, _>>()?;
    edit(state, name, options, move |catalog, name, mode| catalog.set_exports(name, &rules, mode))
        .await
}

pub(super) async fn add(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
    rule: Result<Json<ExportRule>, JsonRejection>,
) -> ChangeResult<Volume> {
    let Json(rule) = rule?;
    let rule = convert::rule_asked(&rule)?;
    edit(state, name, options, move |catalog, name, mode| catalog.add_export(name, &rule, mode))
        .await
}

/// The query of a removal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    network: String,
    #[serde(default)]
    dry_run: bool,
}

pub(super) async fn remove(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    which: Result<Query<Which>, QueryRejection>,
    preconditions: Preconditions,
) -> ChangeResult<Volume> {
    let Query(which) = which?;
    let network: IpNetwork = which
        .network
        .parse()
        .map_err(|error: NetworkError| Failure::bad_request(error.to_string()))?;
    let options = Options::new(which.dry_run, false, preconditions);
    edit(state, name, options, move |catalog, name, mode| {
        catalog.remove_export(name, network, mode)
    })
    .await
}

async fn edit(
    state: ControlState,
    name: String,
    options: Options,
    edit: impl FnOnce(&Catalog, &str, Mode) -> weir_catalog::Result<Outcome> + Send + 'static,
) -> ChangeResult<Volume> {
    let (which, target) = (name.clone(), Target::Volume(name.clone()));
    let view =
        move |control: &Control, outcome: &Outcome| Ok(control.volume(&outcome.snapshot, &name));
    let apply = move |catalog: &Catalog, asked: Asked| edit(catalog, &which, asked.mode);
    state.change(options, target, apply, view).await
}
