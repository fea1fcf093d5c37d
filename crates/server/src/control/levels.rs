//! `/v1/levels`.

use super::change::{Answer, HowQuery, Shown, Tagged, Terms, asked};
use super::failure::Failure;
use super::given::{Concerned, Given};
use super::page::{PageQuery, page};
use super::{Control, ControlState, convert};
use crate::sync::Arc;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use weir_api::{Level, LevelChange, NewLevel, Page};
use weir_catalog::{Asked, BytesPerSecond, Catalog, CatalogError, Outcome, Snapshot, Thing};

pub(super) async fn list(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<Level>>, Failure> {
    let snapshot = state.0.catalog.snapshot();
    // The published ones first, as they are numbered; then the others by name.
    let key = |(place, level): (usize, &Arc<weir_catalog::Level>)| match level.published {
        true => format!("0{place:03}"),
        false => format!("1{}", level.name),
    };
    let all = snapshot.levels().enumerate().map(|one| (key(one), one.1));
    page(query, "level", all, |level| convert::level(&snapshot, level))
}

pub(super) async fn show(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Tagged<Level>, Failure> {
    let level = find(&state.0.catalog.snapshot(), &name);
    Ok(Tagged(level.ok_or(CatalogError::NoSuch { thing: Thing::Level, name })?))
}

pub(super) async fn create(
    State(state): State<ControlState>,
    how: HowQuery,
    given: Given,
    new: Result<Json<NewLevel>, JsonRejection>,
) -> Answer<Level> {
    let (how, Json(new)) = (asked(how)?, new?);
    let (name, rate) = (new.name.clone(), BytesPerSecond(new.bytes_per_second_per_tib));
    let ask = move |catalog: &Catalog, how: Asked| catalog.create_level(&new.name, rate, how.mode);
    let settle = move |_: &Control, outcome: &Outcome| Ok(find(&outcome.snapshot, &name));
    state.change(Terms::new(how, given, Concerned::New), Shown::Changed, ask, settle).await
}

pub(super) async fn change(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    how: HowQuery,
    given: Given,
    change: Result<Json<LevelChange>, JsonRejection>,
) -> Answer<Level> {
    let (how, Json(change)) = (asked(how)?, change?);
    let (which, rate) = (name.clone(), BytesPerSecond(change.bytes_per_second_per_tib));
    let shown = Shown::Level(name.clone());
    let terms = Terms::new(how, given, Concerned::Level(name.clone()));
    let ask = move |catalog: &Catalog, how| catalog.change_level(&which, rate, how);
    let settle = move |_: &Control, outcome: &Outcome| Ok(find(&outcome.snapshot, &name));
    state.change(terms, shown, ask, settle).await
}

pub(super) async fn delete(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    how: HowQuery,
    given: Given,
) -> Answer<Level> {
    let (how, which) = (asked(how)?, name.clone());
    let terms = Terms::new(how, given, Concerned::Level(name.clone()));
    let ask = move |catalog: &Catalog, how: Asked| catalog.delete_level(&which, how.mode);
    // After a preview the catalogue still has it.
    let settle = move |control: &Control, _: &Outcome| Ok(find(&control.catalog.snapshot(), &name));
    state.change(terms, Shown::Changed, ask, settle).await
}

fn find(snapshot: &Snapshot, name: &str) -> Option<Level> {
    snapshot.level_named(name).map(|level| convert::level(snapshot, level))
}
