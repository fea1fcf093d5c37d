//! `/v1/pools`.

use super::change::{Answer, HowQuery, Shown, Tagged, Terms, mode};
use super::failure::Failure;
use super::given::{Concerned, Given};
use super::page::{PageQuery, page};
use super::{Control, ControlState, convert};
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use weir_api::{Page, Pool};
use weir_catalog::{
    BytesPerSecond, Catalog, CatalogError, Iops, NewPool, Outcome, PoolChange, Snapshot, Thing,
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
            Terms::new(mode, given, Concerned::New),
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
    given: Given,
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
            Terms::new(mode, given, Concerned::Pool(name.clone())),
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
    given: Given,
) -> Answer<Pool> {
    let (mode, asked) = (mode(how)?, name.clone());
    let terms = Terms::new(mode, given, Concerned::Pool(name.clone()));
    let ask = move |catalog: &Catalog, mode| catalog.delete_pool(&asked, mode);
    // After a preview the catalogue still has it.
    let settle = move |control: &Control, _: &Outcome| Ok(find(&control.catalog.snapshot(), &name));
    state.change(terms, Shown::Changed, ask, settle).await
}

fn find(snapshot: &Snapshot, name: &str) -> Option<Pool> {
    snapshot.pool_named(name).map(|pool| convert::pool(snapshot, pool))
}
