//! `/v1/volumes`.

use super::change::{Attempt, ChangeResult, Options, WithEtag};
use super::failure::Failure;
use super::page::{PageQuery, page};
use super::preconditions::Target;
use super::{Control, ControlState, convert, gateways, operations, top};
use crate::sync::{Arc, lock};
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use weir_api::{Page, TopChange, Volume};
use weir_catalog::{
    Asked, Catalog, CatalogError, Mode, NewVolume, Outcome, Snapshot, Terms, Thing, VolumeChange,
};

pub(super) async fn list(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<Volume>>, Failure> {
    let (snapshot, plane) = (state.0.catalog.snapshot(), &*state.0.plane);
    let all = snapshot.volumes().map(|volume| (format!("{:010}", volume.id.0), volume));
    let shown = page(query, "volume", all, |volume| convert::volume(&snapshot, plane, volume));
    let Json(mut shown) = shown?;
    state.complete(&mut shown.items).await;
    Ok(Json(shown))
}

pub(super) async fn show(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<WithEtag<Volume>, Failure> {
    let volume = state.0.volume(&state.0.catalog.snapshot(), &name);
    let mut volume = volume.ok_or(CatalogError::NoSuch { thing: Thing::Volume, name })?;
    state.complete(std::slice::from_mut(&mut volume)).await;
    Ok(WithEtag(volume))
}

pub(super) async fn create(
    State(state): State<ControlState>,
    options: Options,
    new: Result<Json<weir_api::NewVolume>, JsonRejection>,
) -> ChangeResult<Volume> {
    let Json(new) = new?;
    let (name, top) = (new.name.clone(), new.top);
    let new = NewVolume {
        name: new.name,
        pool: new.pool,
        quota_bytes: new.quota_bytes,
        terms: Terms::default().with(&convert::terms_asked(&new.terms)),
        sharing: convert::sharing_asked(&new.sharing)?,
        address: gateways::address_asked(new.address.as_deref())?,
    };
    let top_asked = top.clone();
    let apply = move |catalog: &Catalog, asked| {
        if let Some(top) = &top_asked {
            top::asked(&catalog.snapshot(), top)?;
        }
        Ok::<_, Failure>(catalog.create_volume(&new, asked)?)
    };
    let which = name.clone();
    let complete = move |control: &Control, outcome: &Outcome, attempt| {
        control.complete(&outcome.snapshot, &which, top.as_ref(), attempt)
    };
    let view =
        move |control: &Control, outcome: &Outcome| Ok(control.volume(&outcome.snapshot, &name));
    state.change_and(options, Target::New, apply, complete, view).await
}

pub(super) async fn change(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
    change: Result<Json<weir_api::VolumeChange>, JsonRejection>,
) -> ChangeResult<Volume> {
    let Json(change) = change?;
    let top = change.top;
    let change = VolumeChange {
        pool: change.pool,
        quota_bytes: change.quota_bytes,
        terms: convert::terms_asked(&change.terms),
        sharing: convert::sharing_asked(&change.sharing)?,
        address: gateways::address_asked(change.address.as_deref())?,
    };
    let target = Target::Volume(name.clone());
    let (which, top_asked, control) = (name.clone(), top.clone(), Arc::clone(&state.0));
    let apply = move |catalog: &Catalog, asked| {
        let volume = catalog.snapshot().volume_named(&which).map(|volume| volume.id);
        let live = volume.and_then(|id| control.plane.volume_live(id));
        let used = live.filter(|live| live.used_exact).map(|live| live.used_bytes);
        let change = |asked| catalog.change_volume(&which, &change, used, asked);
        control.change_with_top(&which, top_asked.as_ref(), asked, change)
    };
    let planned = top.filter(|_| !options.commits());
    let view = move |control: &Control, outcome: &Outcome| match &planned {
        Some(top) => control.planned(&outcome.snapshot, &name, top),
        None => Ok(control.volume(&outcome.snapshot, &name)),
    };
    state.change(options, target, apply, view).await
}

pub(super) async fn delete(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
) -> ChangeResult<Volume> {
    let which = name.clone();
    let target = Target::Volume(name.clone());
    let apply = move |catalog: &Catalog, asked: Asked| catalog.delete_volume(&which, asked.mode);
    let commits = options.commits();
    let view = move |control: &Control, _: &Outcome| {
        if commits {
            control.remove_condemned();
        }
        // After a preview the catalogue still has it.
        Ok(control.volume(&control.catalog.snapshot(), &name))
    };
    state.change(options, target, apply, view).await
}

pub(super) async fn rescan(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Response, Failure> {
    let control = Arc::clone(&state.0);
    let work = move || {
        let snapshot = control.catalog.snapshot();
        let Some(volume) = snapshot.volume_named(&name) else {
            return Err(CatalogError::NoSuch { thing: Thing::Volume, name }.into());
        };
        let live = control.plane.volume_live(volume.id);
        let completed = live.and_then(|live| live.counted).map_or(0, |counted| counted.number);
        match control.plane.rescan(volume.id) {
            Some(true) => {}
            Some(false) => {
                let message = format!(
                    "a recount of volume {name:?} is already running; `weir volume show {name}` shows its progress"
                );
                return Err(Failure::new(StatusCode::CONFLICT, "counting", message));
            }
            None => return Err(control.not_served(&name)),
        }
        Ok(lock(&control.operations).begin(volume.id, &volume.name, completed))
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(begun) => operations::accepted(&state, begun?),
        Err(_) => Err(Failure::internal("failed", "the recount failed with an internal error")),
    }
}

impl Control {
    /// A volume as it is in `snapshot`, with its live counters.
    pub(super) fn volume(&self, snapshot: &Snapshot, name: &str) -> Option<Volume> {
        let volume = snapshot.volume_named(name)?;
        Some(convert::volume(snapshot, &*self.plane, volume))
    }

    /// Completes a new volume: changes its top directory by `top`. Takes back one that cannot be
    /// completed or that the data plane can't serve, so that an answer of success always means a
    /// volume that can be mounted and is as it was asked for; but not for a repeated request,
    /// because clients may have stored files meanwhile.
    fn complete(
        &self,
        snapshot: &Snapshot,
        name: &str,
        top: Option<&TopChange>,
        attempt: Attempt,
    ) -> Result<(), Failure> {
        // Of a volume whose home is another gateway, that one is the judge.
        let served = |volume: &Arc<weir_catalog::Volume>| {
            self.plane.volume_live(volume.id).is_some() || !self.plane.is_home_of(volume)
        };
        let completed = match top {
            _ if attempt == Attempt::First && !snapshot.volume_named(name).is_some_and(served) => {
                let message = format!(
                    "volume {name:?} cannot be served, so it was not created; the server's log contains the reason"
                );
                Err(Failure::internal("volume_not_served", message))
            }
            Some(top) => self.prepare_top(snapshot, name, top),
            None => Ok(()),
        };
        if completed.is_err() && attempt == Attempt::First {
            let undone = self.catalog.delete_volume(name, Mode::Commit)?;
            self.follow(&undone.snapshot);
            self.remove_condemned();
        }
        completed
    }

    pub(super) fn remove_condemned(&self) {
        if let Err(error) =
            self.trash.remove_condemned(Arc::clone(&self.catalog), Arc::clone(&self.plane))
        {
            tracing::warn!(%error, "files of deleted volumes are not removed before the next start");
        }
    }
}
