//! `/v1/groups`, and the users that were added to them.

use super::change::{ChangeResult, Options, WithEtag};
use super::failure::Failure;
use super::page::{PageQuery, page};
use super::preconditions::{Preconditions, Target};
use super::{Control, ControlState, convert};
use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use std::collections::HashMap;
use weir_api::{Group, Member, NewGroup, Page};
use weir_catalog::{Asked, Catalog, CatalogError, Mode, Outcome, Snapshot, Thing};

pub(super) async fn list(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<Group>>, Failure> {
    let snapshot = state.0.catalog.snapshot();
    let mut members: HashMap<u32, Vec<&str>> = HashMap::new();
    for user in snapshot.users() {
        for group in &user.groups {
            members.entry(group.rid).or_default().push(&user.name);
        }
    }
    let all = snapshot.groups().iter().map(|group| (format!("{:010}", group.rid), group));
    page(query, "group", all, |group| {
        let members = members.get(&group.rid).into_iter().flatten();
        convert::group(&snapshot, group, members.map(|&name| name.to_owned()).collect())
    })
}

pub(super) async fn show(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<WithEtag<Group>, Failure> {
    let group = find(&state.0.catalog.snapshot(), &name);
    Ok(WithEtag(group.ok_or(CatalogError::NoSuch { thing: Thing::Group, name })?))
}

pub(super) async fn create(
    State(state): State<ControlState>,
    options: Options,
    new: Result<Json<NewGroup>, JsonRejection>,
) -> ChangeResult<Group> {
    let Json(NewGroup { name, gid }) = new?;
    let create =
        move |catalog: &Catalog, name: &str, mode: Mode| catalog.create_group(name, gid, mode);
    edit(state, name, Target::New, options, create).await
}

pub(super) async fn delete(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
) -> ChangeResult<Group> {
    let (target, shown) = (Target::Group(name.clone()), name.clone());
    let apply = move |catalog: &Catalog, asked: Asked| catalog.delete_group(&name, asked.mode);
    // After a preview the catalogue still has it.
    let view = move |control: &Control, _: &Outcome| Ok(find(&control.catalog.snapshot(), &shown));
    state.change(options, target, apply, view).await
}

pub(super) async fn add_member(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
    member: Result<Json<Member>, JsonRejection>,
) -> ChangeResult<Group> {
    let Json(Member { user }) = member?;
    let target = Target::Group(name.clone());
    let add =
        move |catalog: &Catalog, group: &str, mode: Mode| catalog.add_member(group, &user, mode);
    edit(state, name, target, options, add).await
}

/// The query of a removal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    user: String,
    #[serde(default)]
    dry_run: bool,
}

pub(super) async fn remove_member(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    which: Result<Query<Which>, QueryRejection>,
    preconditions: Preconditions,
) -> ChangeResult<Group> {
    let Query(Which { user, dry_run }) = which?;
    let options = Options::new(dry_run, false, preconditions);
    let target = Target::Group(name.clone());
    let remove =
        move |catalog: &Catalog, group: &str, mode: Mode| catalog.remove_member(group, &user, mode);
    edit(state, name, target, options, remove).await
}

async fn edit(
    state: ControlState,
    name: String,
    target: Target,
    options: Options,
    edit: impl FnOnce(&Catalog, &str, Mode) -> weir_catalog::Result<Outcome> + Send + 'static,
) -> ChangeResult<Group> {
    let which = name.clone();
    let view = move |_: &Control, outcome: &Outcome| Ok(find(&outcome.snapshot, &name));
    let apply = move |catalog: &Catalog, asked: Asked| edit(catalog, &which, asked.mode);
    state.change(options, target, apply, view).await
}

/// A group as it is in `snapshot`.
pub(super) fn find(snapshot: &Snapshot, name: &str) -> Option<Group> {
    let group = snapshot.group_named(name)?;
    let added = snapshot
        .users()
        .iter()
        .filter(|user| user.groups.iter().any(|other| other.rid == group.rid));
    Some(convert::group(snapshot, group, added.map(|user| user.name.clone()).collect()))
}
