//! `/v1/volumes/{name}/share-rules`.

use super::change::{ChangeResult, Options, with_etag};
use super::failure::Failure;
use super::preconditions::{Preconditions, Target};
use super::{Control, ControlState, convert};
use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::Deserialize;
use weir_api::{ShareRule, Volume};
use weir_catalog::{Asked, Catalog, CatalogError, Mode, Outcome, Thing};

pub(super) async fn list(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Response, Failure> {
    let snapshot = state.0.catalog.snapshot();
    let volume = state.0.volume(&snapshot, &name);
    let volume = volume.ok_or(CatalogError::NoSuch { thing: Thing::Volume, name })?;
    // Share rules are a part of the volume, so they have its etag.
    Ok(with_etag(&volume.etag, Json(volume.share_rules)))
}

pub(super) async fn set(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
    rules: Result<Json<Vec<ShareRule>>, JsonRejection>,
) -> ChangeResult<Volume> {
    let Json(rules) = rules?;
    let rules = rules.iter().map(convert::share_rule_asked).collect::<Result<Vec<_>, _>>()?;
    let set =
        move |catalog: &Catalog, name: &str, mode| catalog.set_share_rules(name, &rules, mode);
    edit(state, name, options, set).await
}

pub(super) async fn add(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
    rule: Result<Json<ShareRule>, JsonRejection>,
) -> ChangeResult<Volume> {
    let Json(rule) = rule?;
    let (clients, access) = convert::share_rule_asked(&rule)?;
    let add = move |catalog: &Catalog, name: &str, mode| {
        catalog.add_share_rule(name, &clients, access, mode)
    };
    edit(state, name, options, add).await
}

/// The query of a removal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    network: String,
    user: Option<String>,
    group: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

pub(super) async fn remove(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    which: Result<Query<Which>, QueryRejection>,
    preconditions: Preconditions,
) -> ChangeResult<Volume> {
    let Query(Which { network, user, group, dry_run }) = which?;
    let clients = convert::clients_asked(&network, user.as_ref(), group.as_ref())?;
    let options = Options::new(dry_run, false, preconditions);
    let remove =
        move |catalog: &Catalog, name: &str, mode| catalog.remove_share_rule(name, &clients, mode);
    edit(state, name, options, remove).await
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
