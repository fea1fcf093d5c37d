//! `/v1/operations`: what outlasts the request that began it, which is the recount of a volume.
//!
//! Nothing here does the work, or waits for it: how an operation stands is read from the volume's
//! counters when somebody asks. The last ones are remembered until the server ends; one that it
//! ended with is begun anew by the store, at its next start, and is no operation of anybody's then.

use super::failure::Failure;
use super::page::{PageQuery, page};
use super::{Control, ControlState, time_of_day};
use crate::plane::VolumeLive;
use crate::sync::lock;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use std::collections::VecDeque;
use weir_api::{Operation, OperationState, Page, routes};
use weir_core::VolumeId;

/// Most operations that are remembered; the oldest go.
const OPERATIONS_MAX: usize = 256;

/// The operations of this life of the server, oldest first.
#[derive(Debug, Default)]
pub(super) struct Operations {
    last: u64,
    begun: VecDeque<Begun>,
}

/// A recount that was begun.
#[derive(Debug)]
struct Begun {
    volume: VolumeId,
    /// The number of recounts that the volume had completed before.
    completed: u64,
    /// The operation's state at the last look.
    seen: Operation,
}

impl Operations {
    /// Notes a recount that was just begun; `completed` is how many there had been before.
    pub(super) fn begin(&mut self, volume: VolumeId, name: &str, completed: u64) -> u64 {
        self.last += 1;
        if self.begun.len() == OPERATIONS_MAX {
            self.begun.pop_front();
        }
        let seen = Operation {
            id: self.last,
            kind: "rescan".to_owned(),
            volume: name.to_owned(),
            state: OperationState::Running,
            begun: time_of_day::text(),
            files: 0,
            bytes: 0,
            before_bytes: None,
            left_out: None,
        };
        self.begun.push_back(Begun { volume, completed, seen });
        self.last
    }

    /// The states of all operations, by the counters that `live` gives.
    fn look(&mut self, live: impl Fn(VolumeId) -> Option<VolumeLive>) -> Vec<Operation> {
        for one in &mut self.begun {
            if one.seen.state == OperationState::Running {
                one.look(live(one.volume));
            }
        }
        self.begun.iter().map(|one| one.seen.clone()).collect()
    }
}

impl Begun {
    fn look(&mut self, live: Option<VolumeLive>) {
        let seen = &mut self.seen;
        let Some(live) = live else {
            seen.state = OperationState::Gone;
            return;
        };
        let done = live.counted.filter(|counted| counted.number > self.completed);
        match (done, live.counting) {
            (Some(found), _) => {
                seen.state = OperationState::Done;
                // The counters tell of the last recount alone, which may be one after this.
                if found.number == self.completed + 1 {
                    (seen.files, seen.bytes) = (found.files, found.after_bytes);
                    seen.before_bytes = Some(found.before_bytes);
                    seen.left_out = Some(found.left_out);
                }
            }
            (None, Some(so_far)) => (seen.files, seen.bytes) = (so_far.files, so_far.bytes),
            (None, None) => seen.state = OperationState::Gone,
        }
    }
}

impl Control {
    fn operations(&self) -> Vec<Operation> {
        lock(&self.operations).look(|volume| self.plane.volume_live(volume))
    }
}

pub(super) async fn list(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<Operation>>, Failure> {
    let all = state.0.operations().into_iter().map(|one| (format!("{:020}", one.id), one));
    page(query, "operation", all, |one| one)
}

pub(super) async fn show(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Json<Operation>, Failure> {
    let found = state.0.operations().into_iter().find(|one| one.id.to_string() == name);
    found.map(Json).ok_or_else(no_such)
}

/// The answer to a request that has begun the operation `id`.
pub(super) fn accepted(state: &ControlState, id: u64) -> Result<Response, Failure> {
    let found = state.0.operations().into_iter().find(|one| one.id == id);
    let operation = found.ok_or_else(no_such)?;
    let place = routes::path(routes::OPERATION, &id.to_string());
    Ok((StatusCode::ACCEPTED, [(LOCATION, place)], Json(operation)).into_response())
}

fn no_such() -> Failure {
    let message =
        "the operation does not exist, is too old, or was started before the last restart";
    Failure::new(StatusCode::NOT_FOUND, "no_such_operation", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_store::{Counted, Counting};

    fn live(counting: Option<Counting>, counted: Option<Counted>) -> Option<VolumeLive> {
        Some(VolumeLive { counting, counted, ..VolumeLive::default() })
    }

    fn counted(number: u64) -> Option<Counted> {
        Some(Counted { before_bytes: 5, after_bytes: 6, files: 2, left_out: 1, number })
    }

    #[test]
    fn a_recount_is_followed_to_its_end_and_stays_as_it_ended() {
        let mut operations = Operations::default();
        assert_eq!(operations.begin(VolumeId(3), "v", 7), 1);
        let so_far = Some(Counting { files: 1, bytes: 4 });
        let seen = operations.look(|_| live(so_far, counted(7)));
        assert_eq!((seen[0].state, seen[0].files), (OperationState::Running, 1));
        // The next one has begun already.
        let seen = operations.look(|_| live(so_far, counted(8)));
        assert_eq!((seen[0].state, seen[0].bytes), (OperationState::Done, 6));
        assert_eq!((seen[0].before_bytes, seen[0].left_out), (Some(5), Some(1)));
        assert_eq!(operations.look(|_| None)[0].state, OperationState::Done);
    }

    #[test]
    fn what_a_later_recount_found_is_not_told_of_an_earlier_one() {
        let mut operations = Operations::default();
        operations.begin(VolumeId(3), "v", 7);
        let seen = operations.look(|_| live(None, counted(9)));
        assert_eq!((seen[0].state, seen[0].before_bytes), (OperationState::Done, None));
    }

    #[test]
    fn a_recount_whose_volume_went_is_gone() {
        for after in [None, live(None, counted(7))] {
            let mut operations = Operations::default();
            operations.begin(VolumeId(3), "v", 7);
            assert_eq!(operations.look(|_| after.clone())[0].state, OperationState::Gone);
        }
    }

    #[test]
    fn only_the_last_are_remembered() {
        let mut operations = Operations::default();
        for _ in 0..=OPERATIONS_MAX {
            operations.begin(VolumeId(3), "v", 0);
        }
        let seen = operations.look(|_| None);
        assert_eq!((seen.len(), seen[0].id), (OPERATIONS_MAX, 2));
    }
}
