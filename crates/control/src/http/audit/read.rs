//! `/v1/audit`.

use super::super::ControlState;
use super::super::failure::Failure;
use super::super::time_of_day;
use super::log::{Part, Place};
use crate::sync::Arc;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use weir_api::AuditPage;

/// Records of a page, unless a limit is given.
const LIMIT_DEFAULT: usize = 100;
/// Most records of an answer.
const LIMIT_MAX: usize = 1000;

/// The requested records.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Which {
    since: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

pub(in super::super) async fn read(
    State(state): State<ControlState>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<AuditPage>, Failure> {
    let Query(Which { since, after, limit }) = which?;
    let limit = limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Failure::bad_request(format!("limit must be from 1 to {LIMIT_MAX}")));
    }
    let since = since.as_deref().map(time_of_day::precise).transpose()?;
    let place = |text: String| {
        let message = "after is not a position returned by a page of the audit log";
        Place::parse(&text).ok_or_else(|| Failure::bad_request(message))
    };
    let after = after.map(place).transpose()?;
    let log = Arc::clone(&state.0.audit.log);
    let work = move || match (after, since) {
        (None, None) => log.newest(limit),
        (after, since) => log.from(after.unwrap_or_default(), &since.unwrap_or_default(), limit),
    };
    let failed = || {
        Failure::internal("io", "cannot read the audit log; the server's log contains the reason")
    };
    let Part { items, next, more } = match tokio::task::spawn_blocking(work).await {
        Ok(Ok(part)) => part,
        Ok(Err(error)) => {
            tracing::error!(%error, "cannot read the audit log");
            return Err(failed());
        }
        Err(_) => return Err(failed()),
    };
    Ok(Json(AuditPage { items, next: next.text(), more }))
}
