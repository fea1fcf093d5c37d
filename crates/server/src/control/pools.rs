//! `/v1/pools`.

use super::change::{Answer, HowQuery, Shown, mode};
use super::failure::Failure;
use super::{Control, ControlState, convert};
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use weir_api::Pool;
use weir_catalog::{
    BytesPerSecond, Catalog, CatalogError, Iops, NewPool, Outcome, PoolChange, Snapshot, Thing,
};

pub(super) async fn list(State(state): State<ControlState>) -> Json<Vec<Pool>> {
    let snapshot = state.0.catalog.snapshot();
    Json(snapshot.pools().map(|pool| convert::pool(&snapshot, pool)).collect())
}

pub(super) async fn show(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Json<Pool>, Failure> {
    let snapshot = state.0.catalog.snapshot();
    let pool = find(&snapshot, &name);
    Ok(Json(pool.ok_or(CatalogError::NoSuch { thing: Thing::Pool, name })?))
}

pub(super) async fn create(
    State(state): State<ControlState>,
    how: HowQuery,
    new: Result<Json<weir_api::NewPool>, JsonRejection>,
) -> Answer<Pool> {
    let (mode, Json(new)) = (mode(how)?, new?);
    let name = new.name.clone();
    let new = NewPool {
        name: new.name,
        level: new.level,
        size_bytes: new.size_bytes,
        qos: convert::qos(new.qos),
        throughput: new.throughput_bytes_per_second.map(BytesPerSecond),
        iops: new.iops.map(Iops),
        directory: new.directory.map(Into::into),
    };
    state
        .change(
            mode,
            Shown::Changed,
            move |catalog, mode| catalog.create_pool(&new, mode),
            move |_, outcome| Ok(find(&outcome.snapshot, &name)),
        )
        .await
}

pub(super) async fn change(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    how: HowQuery,
    change: Result<Json<weir_api::PoolChange>, JsonRejection>,
) -> Answer<Pool> {
    let (mode, Json(change)) = (mode(how)?, change?);
    let change = PoolChange {
        level: change.level,
        size_bytes: change.size_bytes,
        qos: change.qos.map(convert::qos),
        throughput: change.throughput_bytes_per_second.map(BytesPerSecond),
        iops: change.iops.map(Iops),
    };
    let asked = name.clone();
    state
        .change(
            mode,
            Shown::Pool(name.clone()),
            move |catalog, mode| catalog.change_pool(&asked, &change, mode),
            move |_, outcome| Ok(find(&outcome.snapshot, &name)),
        )
        .await
}

pub(super) async fn delete(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    how: HowQuery,
) -> Answer<Pool> {
    let (mode, asked) = (mode(how)?, name.clone());
    let ask = move |catalog: &Catalog, mode| catalog.delete_pool(&asked, mode);
    // After a preview the catalogue still has it.
    let settle = move |control: &Control, _: &Outcome| Ok(find(&control.catalog.snapshot(), &name));
    state.change(mode, Shown::Changed, ask, settle).await
}

fn find(snapshot: &Snapshot, name: &str) -> Option<Pool> {
    snapshot.pool_named(name).map(|pool| convert::pool(snapshot, pool))
}
