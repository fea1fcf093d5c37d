//! `/v1/smb/sessions`, `/v1/smb/opens` and `/v1/locks`: the state that clients have at the data
//! plane. An answer is of one moment for each part of its entries, not for all of them.

use super::audit::Note;
use super::failure::Failure;
use super::page::{PageQuery, page_of};
use super::{Control, ControlState, blocking, convert};
use crate::plane::{ClientState, Plane, Step};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use tokio::runtime::Handle;
use weir_api::{FileLock, Page, SmbOpen, SmbSession};
use weir_catalog::Snapshot;

pub(super) async fn sessions(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<SmbSession>>, Failure> {
    listed(
        &state,
        query,
        "session",
        <dyn Plane as ClientState>::smb_sessions,
        |session| session.id,
        convert::smb_session,
    )
    .await
}

pub(super) async fn close_session(
    State(state): State<ControlState>,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let kind = ("no_such_session", "SMB session");
    let close = <dyn Plane as ClientState>::close_smb_session;
    let closed = closed(&state, id, kind, close, convert::smb_session).await?;
    let SmbSession { user, client, opens, .. } = &closed;
    let note = format!("session of {user} from {client}, {opens} opens");
    Ok((Extension(Note(note)), Json(closed)).into_response())
}

pub(super) async fn opens(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<SmbOpen>>, Failure> {
    listed(
        &state,
        query,
        "open",
        <dyn Plane as ClientState>::smb_opens,
        |open| open.id,
        convert::smb_open,
    )
    .await
}

pub(super) async fn close_open(
    State(state): State<ControlState>,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let close = <dyn Plane as ClientState>::close_smb_open;
    let closed = closed(&state, id, ("no_such_open", "open"), close, convert::smb_open).await?;
    let SmbOpen { volume, path, file, user, client, .. } = &closed;
    let file = path.as_ref().unwrap_or(file);
    let [user, client] = [user, client].map(|who| who.as_deref().unwrap_or("unknown"));
    let note = format!("open of {file:?} in volume {volume}, by {user} from {client}");
    Ok((Extension(Note(note)), Json(closed)).into_response())
}

pub(super) async fn locks(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<FileLock>>, Failure> {
    let list = move |control: &Control| {
        let snapshot = control.catalog.snapshot();
        let part = |after: Option<&str>, most| control.plane.locks(after, most);
        page_of(query, "lock", part, |lock| convert::file_lock(&snapshot, &lock))
    };
    blocking(&state, list).await
}

pub(super) async fn close_lock(
    State(state): State<ControlState>,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let close = move |control: &Control| {
        let closed = control.plane.close_lock(&id);
        let closed = closed.ok_or_else(|| missing(("no_such_lock", "lock"), &id))?;
        Ok(convert::file_lock(&control.catalog.snapshot(), &closed))
    };
    let closed = blocking(&state, close).await?;
    Ok((Extension(Note(lock_note(&closed))), Json(closed)).into_response())
}

/// A lock that was closed, in words.
fn lock_note(lock: &FileLock) -> String {
    let FileLock { volume, path, file, mode, offset, length, .. } = lock;
    let kind = if lock.waiting { "lock that is waited for" } else { "lock" };
    let file = path.as_ref().unwrap_or(file);
    let length = length.map_or_else(|| "to the end".to_owned(), |length| format!("+{length}"));
    let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "unknown".to_owned());
    let owner = match (lock.open, lock.process) {
        (Some(open), _) => format!("{}, open {open}", name(&lock.user)),
        (None, Some(process)) => format!("host {:?}, process {process}", name(&lock.host)),
        (None, None) => format!("host {:?}", name(&lock.host)),
    };
    let client = name(&lock.client);
    format!(
        "{mode} {kind}, on bytes {offset} {length} of {file:?} in volume {volume}, by {owner}, \
         from {client}"
    )
}

/// A page of a list in the order of IDs. `part` gives the entries with IDs above the given one.
async fn listed<I: 'static, T: Send + 'static>(
    state: &ControlState,
    query: PageQuery,
    kind: &'static str,
    part: fn(&dyn Plane, u64, usize) -> Vec<I>,
    id: fn(&I) -> u64,
    show: fn(&Snapshot, &I) -> T,
) -> Result<Json<Page<T>>, Failure> {
    let list = move |control: &Control| {
        let snapshot = control.catalog.snapshot();
        let part = |after: Option<&str>, most| {
            let after = after.map_or(Some(0), |key| key.parse().ok())?;
            let entries = part(&*control.plane, after, most);
            Some(entries.into_iter().map(|entry| (id(&entry).to_string(), entry)).collect())
        };
        page_of(query, kind, part, |entry| show(&snapshot, &entry))
    };
    blocking(state, list).await
}

/// Closes the session or open whose ID is `id`, and gives it as it was before. `kind` is the code
/// of the failure and the noun of its message if there is none.
async fn closed<I: 'static, T: Send + 'static>(
    state: &ControlState,
    id: String,
    kind: (&'static str, &'static str),
    close: for<'a> fn(&'a dyn Plane, u64) -> Step<'a, Option<I>>,
    show: fn(&Snapshot, &I) -> T,
) -> Result<T, Failure> {
    let handle = Handle::current();
    let close = move |control: &Control| {
        let number = id.parse().ok();
        let closed = number.and_then(|id| handle.block_on(close(&*control.plane, id)));
        let closed = closed.ok_or_else(|| missing(kind, &id))?;
        Ok(show(&control.catalog.snapshot(), &closed))
    };
    blocking(state, close).await
}

/// The failure with this code and noun: there is nothing with the ID `id`.
fn missing((code, noun): (&'static str, &'static str), id: &str) -> Failure {
    let message = format!("there is no {noun} {id}; it may have been closed");
    Failure::new(StatusCode::NOT_FOUND, code, message)
}
