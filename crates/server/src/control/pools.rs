//! `/v1/pools`.

use super::change::{Answer, HowQuery, Shown, Tagged, Terms, asked};
use super::failure::Failure;
use super::given::{Concerned, Given};
use super::page::{PageQuery, page};
use super::{Control, ControlState, convert};
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use weir_api::{Page, Pool};
use weir_catalog::{
    Asked, BytesPerSecond, Catalog, CatalogError, Iops, NewPool, Outcome, PoolChange, Snapshot,
    Thing,
};

pub(super) async fn list(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<Pool>>, Failure> {
    let snapshot = state.0.catalog.snapshot();
    let all = snapshot.pools().map(|pool| (format!("{:010}", pool.id.0), pool));
    page(query, "pool", all, |pool| convert::pool(&snapshot, pool))
}

pub(super) async fn show(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Tagged<Pool>, Failure> {
    let snapshot = state.0.catalog.snapshot();
    let pool = find(&snapshot, &name);
    Ok(Tagged(pool.ok_or(CatalogError::NoSuch { thing: Thing::Pool, name })?))
}

pub(super) async fn create(
    State(state): State<ControlState>,
    how: HowQuery,
    given: Given,
    new: Result<Json<weir_api::NewPool>, JsonRejection>,
) -> Answer<Pool> {
    let (how, Json(new)) = (asked(how)?, new?);
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
            Terms::new(how, given, Concerned::New),
            Shown::Changed,
            move |catalog, how| catalog.create_pool(&new, how),
            move |_, outcome| Ok(find(&outcome.snapshot, &name)),
        )
        .await
}

pub(super) async fn change(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    how: HowQuery,
    given: Given,
    change: Result<Json<weir_api::PoolChange>, JsonRejection>,
) -> Answer<Pool> {
    let (how, Json(change)) = (asked(how)?, change?);
    let change = PoolChange {
        level: change.level,
        size_bytes: change.size_bytes,
        qos: change.qos.map(convert::qos),
        throughput: change.throughput_bytes_per_second.map(BytesPerSecond),
        iops: change.iops.map(Iops),
    };
    let which = name.clone();
    state
        .change(
            Terms::new(how, given, Concerned::Pool(name.clone())),
            Shown::Pool(name.clone()),
            move |catalog, how| catalog.change_pool(&which, &change, how),
            move |_, outcome| Ok(find(&outcome.snapshot, &name)),
        )
        .await
}

pub(super) async fn delete(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    how: HowQuery,
    given: Given,
) -> Answer<Pool> {
    let (how, which) = (asked(how)?, name.clone());
    let terms = Terms::new(how, given, Concerned::Pool(name.clone()));
    let ask = move |catalog: &Catalog, how: Asked| catalog.delete_pool(&which, how.mode);
    // After a preview the catalogue still has it.
    let settle = move |control: &Control, _: &Outcome| Ok(find(&control.catalog.snapshot(), &name));
    state.change(terms, Shown::Changed, ask, settle).await
}

fn find(snapshot: &Snapshot, name: &str) -> Option<Pool> {
    snapshot.pool_named(name).map(|pool| convert::pool(snapshot, pool))
}
