//! `/v1/pools`.

use super::change::{ChangeResult, Options, WithEtag};
use super::failure::Failure;
use super::page::{PageQuery, page};
use super::preconditions::Target;
use super::{Control, ControlState, convert};
use crate::plane::Plane;
use crate::sync::Arc;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use weir_api::{Page, Pool};
use weir_catalog::{
    Asked, BytesPerSecond, Catalog, CatalogError, Ceph, Iops, NewPool, Outcome, PoolChange,
    Snapshot, Thing,
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
) -> Result<WithEtag<Pool>, Failure> {
    let snapshot = state.0.catalog.snapshot();
    let pool = find(&snapshot, &name);
    Ok(WithEtag(pool.ok_or(CatalogError::NoSuch { thing: Thing::Pool, name })?))
}

pub(super) async fn create(
    State(state): State<ControlState>,
    options: Options,
    new: Result<Json<weir_api::NewPool>, JsonRejection>,
) -> ChangeResult<Pool> {
    let Json(new) = new?;
    let name = new.name.clone();
    let new = NewPool {
        name: new.name,
        level: new.level,
        size_bytes: new.size_bytes,
        qos: convert::qos_asked(new.qos),
        throughput: new.throughput_bytes_per_second.map(BytesPerSecond),
        iops: new.iops.map(Iops),
        directory: new.directory.map(Into::into),
        ceph: new.ceph.map(|ceph| Ceph { conf: ceph.conf.into(), user: ceph.user }),
    };
    state
        .change(
            options,
            Target::New,
            move |catalog, asked| catalog.create_pool(&new, asked),
            move |_, outcome| Ok(find(&outcome.snapshot, &name)),
        )
        .await
}

pub(super) async fn change(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
    change: Result<Json<weir_api::PoolChange>, JsonRejection>,
) -> ChangeResult<Pool> {
    let Json(change) = change?;
    let change = PoolChange {
        level: change.level,
        size_bytes: change.size_bytes,
        qos: change.qos.map(convert::qos_asked),
        throughput: change.throughput_bytes_per_second.map(BytesPerSecond),
        iops: change.iops.map(Iops),
    };
    let which = name.clone();
    state
        .change(
            options,
            Target::Pool(name.clone()),
            move |catalog, asked| catalog.change_pool(&which, &change, asked),
            move |_, outcome| Ok(find(&outcome.snapshot, &name)),
        )
        .await
}

pub(super) async fn delete(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
) -> ChangeResult<Pool> {
    let which = name.clone();
    let target = Target::Pool(name.clone());
    let plane = Arc::clone(&state.0.plane);
    let apply = move |catalog: &Catalog, asked: Asked| {
        if let Some(pool) = catalog.snapshot().pool_named(&which) {
            check_emptied(&*plane, pool)?;
        }
        Ok::<_, Failure>(catalog.delete_pool(&which, asked.mode)?)
    };
    // After a preview the catalogue still has it.
    let view = move |control: &Control, _: &Outcome| Ok(find(&control.catalog.snapshot(), &name));
    state.change(options, target, apply, view).await
}

/// Checks that no tree of a volume would be forgotten with its pool.
fn check_emptied(plane: &dyn Plane, pool: &weir_catalog::Pool) -> Result<(), Failure> {
    match plane.holds_volumes(pool) {
        Ok(false) => Ok(()),
        Ok(true) => {
            let message = format!(
                "pool {:?} still has files of volumes that were moved or deleted: try again when their gateways have moved or removed them",
                pool.name
            );
            Err(Failure::new(StatusCode::CONFLICT, "pool_not_empty", message))
        }
        Err(error) => Err(Failure::internal("io", error.to_string())),
    }
}

fn find(snapshot: &Snapshot, name: &str) -> Option<Pool> {
    snapshot.pool_named(name).map(|pool| convert::pool(snapshot, pool))
}
