//! Facts of volumes that their homes alone know, for the list and the details of volumes: live
//! figures, and the state of top directories.

use super::super::{Control, ControlState, convert};
use super::answering::VOLUMES;
use super::{Home, Known};
use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_api::{Top, Volume, VolumeLive, routes};
use weir_core::VolumeId;

/// The range of volumes that another gateway asks for, by their IDs.
#[derive(Deserialize)]
pub(super) struct Which {
    first: u32,
    last: u32,
}

/// The facts that a gateway tells of a volume that it serves.
#[derive(Serialize, Deserialize)]
pub(super) struct Told {
    live: VolumeLive,
    top: Option<Top>,
}

/// The answer to another gateway: the asked volumes that this one serves.
pub(super) async fn own(
    State(state): State<ControlState>,
    Query(which): Query<Which>,
) -> Json<BTreeMap<u32, Told>> {
    let (snapshot, plane) = (state.0.catalog.snapshot(), &*state.0.plane);
    let asked = snapshot.volumes().filter(|one| (which.first..=which.last).contains(&one.id.0));
    let told = |volume: &weir_catalog::Volume| {
        let live = convert::live(&plane.volume_live(volume.id)?);
        let top = plane.top(volume.id).map(|top| convert::top(&snapshot, top));
        Some((volume.id.0, Told { live, top }))
    };
    Json(asked.filter_map(|volume| told(volume)).collect())
}

impl Control {
    /// Names the gateways that serve `volumes`. Gives the other gateways among these, each with the
    /// range of its volumes.
    fn name_homes(&self, volumes: &mut [Volume]) -> BTreeMap<String, (Known, Which)> {
        let (snapshot, mut elsewhere) = (self.catalog.snapshot(), BTreeMap::new());
        let own = self.own().map(|known| known.name);
        for volume in volumes {
            let id = volume.id;
            let Some(found) = snapshot.volume(VolumeId(id)) else { continue };
            match self.home(&snapshot, found) {
                Home::Here => volume.gateway.clone_from(&own),
                Home::Nowhere => {}
                Home::At(home) => {
                    volume.gateway = Some(home.name.clone());
                    let place = elsewhere.entry(home.name.clone());
                    let (_, which) = place.or_insert((home, Which { first: id, last: id }));
                    which.first = which.first.min(id);
                    which.last = which.last.max(id);
                }
            }
        }
        elsewhere
    }
}

impl ControlState {
    /// Adds to `volumes` what their homes know of them, if those are other gateways.
    pub(in super::super) async fn complete(&self, volumes: &mut [Volume]) {
        if self.0.cluster.get().is_none() {
            return;
        }
        let question = |(home, which): (Known, Which)| {
            let path = routes::with_query(VOLUMES, "first", &which.first.to_string());
            (home, routes::with_query(&path, "last", &which.last.to_string()))
        };
        let questions = self.0.name_homes(volumes).into_values().map(question).collect();
        let answers = self.ask_each(questions, super::json::<BTreeMap<u32, Told>>).await;
        for (home, answer) in answers {
            let is_there = |volume: &&mut Volume| volume.gateway.as_ref() == Some(&home.name);
            let there = volumes.iter_mut().filter(is_there);
            match answer {
                Ok(mut told) => there.for_each(|volume| {
                    let Some(Told { live, top }) = told.remove(&volume.id) else { return };
                    (volume.live, volume.top) = (Some(live), top);
                }),
                Err(error) => there.for_each(|one| one.no_answer = Some(error.to_string())),
            }
        }
    }
}
