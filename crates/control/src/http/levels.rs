//! `/v1/levels`.

use super::change::{ChangeResult, Options, WithEtag};
use super::failure::Failure;
use super::page::{PageQuery, page};
use super::preconditions::Target;
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
) -> Result<WithEtag<Level>, Failure> {
    let level = find(&state.0.catalog.snapshot(), &name);
    Ok(WithEtag(level.ok_or(CatalogError::NoSuch { thing: Thing::Level, name })?))
}

pub(super) async fn create(
    State(state): State<ControlState>,
    options: Options,
    new: Result<Json<NewLevel>, JsonRejection>,
) -> ChangeResult<Level> {
    let Json(new) = new?;
    let name = new.name.clone();
    let figures = weir_catalog::NewLevel {
        rate_per_tib: BytesPerSecond(new.bytes_per_second_per_tib),
        volume_ceiling: new.volume_ceiling_bytes_per_second.map(BytesPerSecond),
    };
    let apply =
        move |catalog: &Catalog, asked: Asked| catalog.create_level(&new.name, figures, asked.mode);
    let view = move |_: &Control, outcome: &Outcome| Ok(find(&outcome.snapshot, &name));
    state.change(options, Target::New, apply, view).await
}

pub(super) async fn change(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
    change: Result<Json<LevelChange>, JsonRejection>,
) -> ChangeResult<Level> {
    let Json(change) = change?;
    let which = name.clone();
    let ceiling = change.volume_ceiling_bytes_per_second;
    let figures = weir_catalog::LevelChange {
        rate_per_tib: change.bytes_per_second_per_tib.map(BytesPerSecond),
        volume_ceiling: ceiling.map(|most| most.map(BytesPerSecond)),
    };
    let target = Target::Level(name.clone());
    let apply = move |catalog: &Catalog, asked| catalog.change_level(&which, figures, asked);
    let view = move |_: &Control, outcome: &Outcome| Ok(find(&outcome.snapshot, &name));
    state.change(options, target, apply, view).await
}

pub(super) async fn delete(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
) -> ChangeResult<Level> {
    let which = name.clone();
    let target = Target::Level(name.clone());
    let apply = move |catalog: &Catalog, asked: Asked| catalog.delete_level(&which, asked.mode);
    // After a preview the catalogue still has it.
    let view = move |control: &Control, _: &Outcome| Ok(find(&control.catalog.snapshot(), &name));
    state.change(options, target, apply, view).await
}

fn find(snapshot: &Snapshot, name: &str) -> Option<Level> {
    snapshot.level_named(name).map(|level| convert::level(snapshot, level))
}
