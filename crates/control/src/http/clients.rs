//! `/v1/smb/sessions`, `/v1/smb/opens` and `/v1/locks`: the state that clients have at the data
//! plane. An answer is of one moment for each part of its entries, not for all of them.

use super::audit::Note;
use super::failure::Failure;
use super::page::{PageQuery, page_of};
use super::{Control, ControlState, blocking, convert};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use tokio::runtime::Handle;
use weir_api::{FileLock, Page, SmbOpen, SmbSession};

pub(super) async fn sessions(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<SmbSession>>, Failure> {
    let list = move |control: &Control| {
        let snapshot = control.catalog.snapshot();
        let part = |after: Option<&str>, most| {
            let sessions = control.plane.smb_sessions(number(after)?, most);
            Some(sessions.into_iter().map(|session| (key(session.id), session)).collect())
        };
        page_of(query, "session", part, |session| convert::smb_session(&snapshot, &session))
    };
    blocking(&state, list).await
}

pub(super) async fn close_session(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Response, Failure> {
    let handle = Handle::current();
    let close = move |control: &Control| {
        let id = name.parse().ok();
        let closed = id.and_then(|id| handle.block_on(control.plane.close_smb_session(id)));
        let closed = closed.ok_or_else(|| {
            let message = format!("there is no SMB session {name}; it may have ended");
            Failure::new(StatusCode::NOT_FOUND, "no_such_session", message)
        })?;
        Ok(convert::smb_session(&control.catalog.snapshot(), &closed))
    };
    let closed = blocking(&state, close).await?;
    let SmbSession { user, client, opens, .. } = &closed;
    let note = format!("session of {user} from {client}, {opens} opens");
    Ok((Extension(Note(note)), Json(closed)).into_response())
}

pub(super) async fn opens(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<SmbOpen>>, Failure> {
    let list = move |control: &Control| {
        let snapshot = control.catalog.snapshot();
        let part = |after: Option<&str>, most| {
            let opens = control.plane.smb_opens(number(after)?, most);
            Some(opens.into_iter().map(|open| (key(open.id), open)).collect())
        };
        page_of(query, "open", part, |open| convert::smb_open(&snapshot, &open))
    };
    blocking(&state, list).await
}

pub(super) async fn close_open(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Response, Failure> {
    let handle = Handle::current();
    let close = move |control: &Control| {
        let id = name.parse().ok();
        let closed = id.and_then(|id| handle.block_on(control.plane.close_smb_open(id)));
        let closed = closed.ok_or_else(|| {
            let message = format!("there is no open {name}; it may have been closed");
            Failure::new(StatusCode::NOT_FOUND, "no_such_open", message)
        })?;
        Ok(convert::smb_open(&control.catalog.snapshot(), &closed))
    };
    let closed = blocking(&state, close).await?;
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

/// The key of a list in the order of ids.
fn key(id: u64) -> String {
    id.to_string()
}

/// The id of a key, 0 for the beginning of the list; `None` if it is none.
fn number(key: Option<&str>) -> Option<u64> {
    key.map_or(Some(0), |key| key.parse().ok())
}
