//! `/v1/volumes/{name}/exports`.

use super::change::{Answer, HowQuery, Shown, Terms, asked, tag};
use super::failure::Failure;
use super::given::{Concerned, Given};
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
    Ok(tag(&volume.etag, Json(volume.exports)))
}

pub(super) async fn set(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    how: HowQuery,
    given: Given,
    rules: Result<Json<Vec<ExportRule>>, JsonRejection>,
) -> Answer<Volume> {
    let (Asked { mode, .. }, Json(rules)) = (asked(how)?, rules?);
    let rules = rules.iter().map(convert::rule_asked).collect::<Result<Vec<_>, _>>()?;
    edit(state, name, (mode, given), move |catalog, name, mode| {
        catalog.set_exports(name, &rules, mode)
    })
    .await
}

pub(super) async fn add(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    how: HowQuery,
    given: Given,
    rule: Result<Json<ExportRule>, JsonRejection>,
) -> Answer<Volume> {
    let (Asked { mode, .. }, Json(rule)) = (asked(how)?, rule?);
    let rule = convert::rule_asked(&rule)?;
    edit(state, name, (mode, given), move |catalog, name, mode| {
        catalog.add_export(name, &rule, mode)
    })
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
    given: Given,
) -> Answer<Volume> {
    let Query(which) = which?;
    let network: IpNetwork = which
        .network
        .parse()
        .map_err(|error: NetworkError| Failure::bad_request(error.to_string()))?;
    let mode = if which.dry_run { Mode::Preview } else { Mode::Commit };
    edit(state, name, (mode, given), move |catalog, name, mode| {
        catalog.remove_export(name, network, mode)
    })
    .await
}

async fn edit(
    state: ControlState,
    name: String,
    (mode, given): (Mode, Given),
    ask: impl FnOnce(&Catalog, &str, Mode) -> weir_catalog::Result<Outcome> + Send + 'static,
) -> Answer<Volume> {
    let (which, concerned) = (name.clone(), Concerned::Volume(name.clone()));
    let settle =
        move |control: &Control, outcome: &Outcome| Ok(control.volume(&outcome.snapshot, &name));
    let ask = move |catalog: &Catalog, how: Asked| ask(catalog, &which, how.mode);
    let terms = Terms::new(mode, given, concerned);
    state.change(terms, Shown::Changed, ask, settle).await
}
