//! `/v1/calibrations`, what was measured that file systems hold, and `/v1/capacity`, what is
//! promised of it.

use super::change::{ChangeResult, Options, WithEtag};
use super::failure::Failure;
use super::page::{PageQuery, page};
use super::preconditions::Target;
use super::{Control, ControlState, convert, machine, time_of_day};
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use weir_api::{Capacity, NewCalibration, Page, Policy};
use weir_catalog::{
    Admission, Asked, Calibration, Catalog, CatalogError, Outcome, Snapshot, Thing,
};

pub(super) async fn capacity(State(state): State<ControlState>) -> Json<Capacity> {
    let (snapshot, admission) = (state.0.catalog.snapshot(), state.0.catalog.admission());
    let Admission { policy, plan, overcommit_percent } = admission;
    let there = snapshot.filesystems().iter();
    Json(Capacity {
        policy: match policy {
            weir_catalog::Policy::Refuse => Policy::Refuse,
            weir_catalog::Policy::Warn => Policy::Warn,
            weir_catalog::Policy::Off => Policy::Off,
        },
        mix: plan.mix.to_string(),
        block_bytes: plan.block_bytes,
        iops_block_bytes: plan.iops_block_bytes,
        overcommit_percent,
        filesystems: there.map(|there| convert::filesystem(&snapshot, there)).collect(),
    })
}

pub(super) async fn list(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<weir_api::Calibration>>, Failure> {
    let snapshot = state.0.catalog.snapshot();
    let all = snapshot.calibrations().map(|kept| (kept.directory.display().to_string(), kept));
    page(query, "calibration", all, |kept| convert::calibration(kept))
}

pub(super) async fn show(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<WithEtag<weir_api::Calibration>, Failure> {
    let kept = find(&state.0.catalog.snapshot(), &name);
    Ok(WithEtag(kept.ok_or(CatalogError::NoSuch { thing: Thing::Calibration, name })?))
}

pub(super) async fn keep(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
    new: Result<Json<NewCalibration>, JsonRejection>,
) -> ChangeResult<weir_api::Calibration> {
    let Json(new) = new?;
    let (directory, durability) = (name.clone(), state.0.durability);
    let apply = move |catalog: &Catalog, asked| {
        let new = Calibration {
            at: time_of_day::seconds(),
            cells: new.cells.iter().map(convert::cell_asked).collect(),
            load: convert::load_asked(&new.load),
            machine: machine::describe(directory.as_ref(), durability),
            directory: directory.into(),
        };
        catalog.keep_calibration(&new, asked)
    };
    let target = Target::Calibration(name.clone());
    let view = move |_: &Control, outcome: &Outcome| Ok(find(&outcome.snapshot, &name));
    state.change(options, target, apply, view).await
}

pub(super) async fn forget(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
) -> ChangeResult<weir_api::Calibration> {
    let which = name.clone();
    let target = Target::Calibration(name.clone());
    let apply = move |catalog: &Catalog, asked: Asked| catalog.forget_calibration(&which, asked);
    // After a preview the catalogue still has it.
    let view = move |control: &Control, _: &Outcome| Ok(find(&control.catalog.snapshot(), &name));
    state.change(options, target, apply, view).await
}

fn find(snapshot: &Snapshot, directory: &str) -> Option<weir_api::Calibration> {
    snapshot.calibration_of(directory).map(|kept| convert::calibration(kept))
}
