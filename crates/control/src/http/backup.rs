//! `/v1/catalog/backup`.

use super::ControlState;
use super::failure::Failure;
use crate::sync::Arc;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

/// The catalogue as it is now. A reader of it could forge file handles, so it is for those alone
/// who may do everything.
pub(super) async fn backup(State(state): State<ControlState>) -> Result<Response, Failure> {
    let catalog = Arc::clone(&state.0.catalog);
    let made = tokio::task::spawn_blocking(move || catalog.backup()).await;
    let bytes =
        made.map_err(|_| Failure::internal("backup", "the backup failed with an internal error"))??;
    tracing::info!(bytes = bytes.len(), "sent a backup of the catalogue");
    let headers = [(CONTENT_TYPE, "application/vnd.sqlite3"), (CACHE_CONTROL, "no-store")];
    Ok((headers, bytes).into_response())
}
