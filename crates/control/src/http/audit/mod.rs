//! The audit log: what is recorded, and when. The file is `log`'s; who may read it is the route's.
//!
//! A change without a record must not be: room for its record is taken before it, and where that
//! can't be had the change is refused. Its record is written and synced before its answer goes out.
//! A crash between the two leaves a change without a record; the next start finds by the
//! catalogue's generation that something is missing and says so in the log.

mod log;
mod logins;
mod read;

pub(super) use logins::record_logins;
pub(super) use read::read;

use super::access::Caller;
use super::body;
use super::change::{Replayed, Warnings};
use super::failure::{Code, Failure};
use super::{ControlState, preconditions, time_of_day};
use crate::limits::DENIALS_MINUTE_MAX;
use crate::per_minute::PerMinute;
use crate::sync::{Arc, AsyncMutex, Mutex, Semaphore, lock};
use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use log::Log;
use serde_json::{Value, json};
use std::io;
use weir_api::{AuditEvent, AuditRecord, routes};
use weir_catalog::Catalog;

/// The version of the records' form.
const VERSION: u32 = 1;
/// Most recorded requests at once; they take turns, and further ones are refused.
const IN_HAND_MAX: u32 = 64;
/// Longest body that a record repeats, in bytes.
const BODY_BYTES_MAX: usize = 16 << 10;
/// Longest path with its query that a record repeats, in characters.
const PATH_CHARS_MAX: usize = 2048;
/// A part of the names of fields that hold a secret, in lower case.
const PASSWORD: &str = "password";
/// The text in a record instead of a secret.
const NOT_RECORDED: &str = "(not recorded)";

/// The object of a request whose path does not tell enough, in the extensions of its answer.
#[derive(Clone, Debug)]
pub(super) struct Note(pub(super) String);

/// The audit log of a running server.
pub(super) struct Audit {
    log: Arc<Log>,
    catalog: Arc<Catalog>,
    /// One recorded request at a time, so that the log has them in the order in which they were
    /// made.
    turn: AsyncMutex<()>,
    in_hand: Arc<Semaphore>,
    denials: Mutex<PerMinute>,
}

impl Audit {
    /// The log of a catalogue's directory. Says in it whether the catalogue was changed without.
    ///
    /// # Errors
    /// The log can't be read or written.
    pub(super) fn open(catalog: Arc<Catalog>) -> io::Result<Self> {
        let log = Log::new(catalog.directory());
        let generation = catalog.snapshot().generation;
        if let Some(last) = log.newest(1)?.items.pop()
            && last.generation != generation
        {
            let note = format!(
                "the catalogue is at generation {generation}, but the last record has generation \
                 {}: the catalogue was restored, or the server stopped between a change and its \
                 record",
                last.generation
            );
            tracing::warn!("{note}");
            let gap = record(AuditEvent::Gap, None, generation);
            log.append(&AuditRecord { note: Some(note), ..gap }, true)?;
        }
        Ok(Self {
            log: Arc::new(log),
            catalog,
            turn: AsyncMutex::new(()),
            in_hand: Arc::new(Semaphore::new(IN_HAND_MAX as usize)),
            denials: Mutex::new(PerMinute::new(DENIALS_MINUTE_MAX)),
        })
    }

    /// Waits for the recorded requests that are in hand; takes no more.
    pub(super) async fn finish(&self) {
        // Nobody closes it before this.
        let _all = self.in_hand.acquire_many(IN_HAND_MAX).await.is_ok();
        self.in_hand.close();
    }

    /// The record of a request that is denied, unless too many were.
    pub(super) fn denial(
        &self,
        caller: &Caller,
        route: Option<String>,
        request: &Request,
        failure: &Failure,
    ) -> Option<AuditRecord> {
        if !lock(&self.denials).take(time_of_day::seconds()) {
            return None;
        }
        let mut record = self.record_of(AuditEvent::Denied, caller, route, request);
        record.status = Some(failure.status().as_u16());
        record.code = Some(failure.code().to_owned());
        Some(record)
    }

    /// Writes such a record.
    pub(super) async fn note(&self, denial: AuditRecord) {
        self.write(denial, false).await;
    }

    fn record_of(
        &self,
        event: AuditEvent,
        caller: &Caller,
        route: Option<String>,
        request: &Request,
    ) -> AuditRecord {
        let uri = request.uri();
        let path = uri.path_and_query().map_or_else(|| uri.path(), |whole| whole.as_str());
        AuditRecord {
            method: Some(request.method().to_string()),
            path: Some(path.chars().take(PATH_CHARS_MAX).collect()),
            route,
            ..record(event, Some(caller), self.catalog.snapshot().generation)
        }
    }

    /// Writes the record of a request, where it may wait for the disk. One that can't be written is
    /// in the server's log.
    async fn write(&self, mut record: AuditRecord, safe: bool) {
        record.suppressed = lock(&self.denials).take_suppressed();
        self.append(record, safe).await;
    }

    async fn append(&self, mut record: AuditRecord, safe: bool) {
        record.time = time_of_day::text();
        let log = Arc::clone(&self.log);
        let work = move || {
            if let Err(error) = log.append(&record, safe) {
                let record = serde_json::to_string(&record).unwrap_or_default();
                tracing::error!(%error, record, "cannot write the audit log");
            }
        };
        if tokio::task::spawn_blocking(work).await.is_err() {
            tracing::error!("cannot write the audit log: its thread has ended");
        }
    }

    async fn reserve(&self) -> Result<(), Failure> {
        let log = Arc::clone(&self.log);
        match tokio::task::spawn_blocking(move || log.reserve()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Failure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "audit_unavailable",
                format!(
                    "the change was not made, because it cannot be recorded in the audit log: \
                     {error}; check the disk of the data directory"
                ),
            )),
            Err(_) => Err(Failure::internal("failed", "internal error in the audit log")),
        }
    }
}

/// The fields that all records have.
fn record(event: AuditEvent, caller: Option<&Caller>, generation: u64) -> AuditRecord {
    let (who, uid, from) = match caller {
        Some(Caller::Socket { uid }) => (Some("socket".to_owned()), *uid, None),
        Some(Caller::Token { name, from, .. }) => (Some(name.clone()), None, Some(*from)),
        Some(Caller::Nobody { name, from }) => (name.clone(), None, *from),
        None => (None, None, None),
    };
    AuditRecord {
        version: VERSION,
        time: time_of_day::text(),
        event,
        who,
        role: caller.and_then(Caller::role),
        uid,
        from: from.map(|from| from.to_string()),
        method: None,
        path: None,
        route: None,
        request: None,
        status: None,
        code: None,
        generation,
        suppressed: None,
        note: None,
    }
}

/// The routes whose changes can be tried. Everywhere else a `dry_run` in the query means nothing.
const TRIED: [&str; 15] = [
    routes::LEVELS,
    routes::LEVEL,
    routes::POOLS,
    routes::POOL,
    routes::VOLUMES,
    routes::VOLUME,
    routes::EXPORTS,
    routes::CALIBRATION,
    routes::SHARE_RULES,
    routes::USERS,
    routes::USER,
    routes::PASSWORD,
    routes::GROUPS,
    routes::GROUP,
    routes::MEMBERS,
];

/// Is it a change, or something else that is to be traced? A dry run isn't.
fn is_recorded(request: &Request, route: Option<&str>) -> bool {
    let Some(route) = route else { return false };
    let query = request.uri().query().unwrap_or_default();
    let dry = TRIED.contains(&route) && query.split('&').any(|part| part == "dry_run=true");
    (changes(request) && !dry) || route == routes::CATALOG_BACKUP
}

/// Does its method change something?
fn changes(request: &Request) -> bool {
    ![Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method())
}

/// Carries a change out and records it. It is carried to its end and recorded also if the
/// client goes away.
pub(super) async fn recorded(
    State(state): State<ControlState>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let caller = request.extensions().get::<Caller>().cloned();
    let Some(caller) = caller.filter(|_| is_recorded(&request, route.as_deref())) else {
        return next.run(request).await;
    };
    let (mut parts, body) = request.into_parts();
    let body = match body::read(body).await {
        Ok(body) => body,
        Err(failure) => return failure.into_response(),
    };
    match preconditions::idempotency_key(&caller, &parts, &body) {
        Ok(Some(key)) => drop(parts.extensions.insert(key)),
        Ok(None) => {}
        Err(failure) => return failure.into_response(),
    }
    let request = Request::from_parts(parts, Body::from(body.clone()));
    let Ok(permit) = Arc::clone(&state.0.audit.in_hand).try_acquire_owned() else {
        let message = "too many changes are pending: try again later";
        return Failure::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).into_response();
    };
    let work = async move {
        let _in_hand = permit;
        state.0.audit.carry_out(&caller, route, request, &body, next).await
    };
    match tokio::spawn(work).await {
        Ok(response) => response,
        Err(_) => {
            Failure::internal("failed", "the request failed with an internal error").into_response()
        }
    }
}

impl Audit {
    async fn carry_out(
        &self,
        caller: &Caller,
        route: Option<String>,
        request: Request,
        body: &Bytes,
        next: Next,
    ) -> Response {
        let _turn = self.turn.lock().await;
        if let Err(failure) = self.reserve().await {
            return failure.into_response();
        }
        let changes = changes(&request);
        let mut record = self.record_of(AuditEvent::Change, caller, route, &request);
        record.request = essence(record.route.as_deref(), body);
        let response = next.run(request).await;
        let done = response.status().is_success();
        record.event = match (done, changes) {
            (true, true) => AuditEvent::Change,
            (true, false) => AuditEvent::Secret,
            (false, _) => AuditEvent::Refused,
        };
        record.status = Some(response.status().as_u16());
        record.code = response.extensions().get::<Code>().map(|code| code.0.clone());
        let warnings = response.extensions().get::<Warnings>();
        let note = response.extensions().get::<Note>();
        record.note = warnings.map(|warnings| &warnings.0).or(note.map(|note| &note.0)).cloned();
        if response.extensions().get::<Replayed>().is_some() {
            record.note = Some("replay of an earlier request; nothing was changed".to_owned());
        }
        record.generation = self.catalog.snapshot().generation;
        self.write(record, done).await;
        response
    }
}

/// The part of a body that a record repeats. Nothing of a password is in it, wherever it was sent,
/// and nothing of a body to the route of passwords that may be one in another form.
fn essence(route: Option<&str>, body: &[u8]) -> Option<Value> {
    if body.is_empty() {
        return None;
    }
    if route == Some(routes::PASSWORD) {
        return Some(json!({ PASSWORD: NOT_RECORDED }));
    }
    let whole = (body.len() <= BODY_BYTES_MAX).then(|| serde_json::from_slice(body).ok());
    let mut whole: Value = whole.flatten().unwrap_or_else(|| json!({ "bytes": body.len() }));
    redact(&mut whole);
    Some(whole)
}

/// Takes the values of all members that may be passwords out of `value`, at any depth: those with
/// "password" in their names, in any case.
fn redact(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(redact),
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| {
            if name.to_ascii_lowercase().contains(PASSWORD) {
                *value = json!(NOT_RECORDED);
            } else {
                redact(value);
            }
        }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_repeats_what_was_asked_within_bounds() {
        let essence = |body| essence(Some(routes::VOLUMES), body);
        assert_eq!(essence(b""), None);
        assert_eq!(essence(b"{\"name\":\"v\"}"), Some(json!({ "name": "v" })));
        assert_eq!(essence(b"{\"name\""), Some(json!({ "bytes": 7 })));
        let long = format!("\"{}\"", "x".repeat(BODY_BYTES_MAX));
        assert_eq!(essence(long.as_bytes()), Some(json!({ "bytes": long.len() })));
    }

    #[test]
    fn a_record_repeats_no_password() {
        let redacted = json!({ "password": NOT_RECORDED });
        for body in
            [&b"{\"password\":\"hunter2\"}"[..], b"\"hunter2\"", b"hunter2", b"[\"hunter2\"]"]
        {
            assert_eq!(essence(Some(routes::PASSWORD), body), Some(redacted.clone()));
        }
        let body = b"{\"password\":[\"hunter2\"]}";
        assert_eq!(essence(Some(routes::USERS), body), Some(redacted));
        let body =
            json!([{ "Password": "hunter2", "user": { "newPASSWORD": { "x": "hunter2" } } }]);
        let recorded = essence(Some(routes::USERS), body.to_string().as_bytes()).unwrap();
        let user = json!({ "newPASSWORD": NOT_RECORDED });
        assert_eq!(recorded, json!([{ "Password": NOT_RECORDED, "user": user }]));
    }

    #[test]
    fn changes_and_backups_are_recorded_and_nothing_else() {
        let recorded = |method: &str, uri: &str, route: Option<&str>| {
            let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
            is_recorded(&request, route)
        };
        assert!(recorded("POST", "/v1/pools", Some(routes::POOLS)));
        assert!(recorded("DELETE", "/v1/pools/p?dry_run=false", Some(routes::POOL)));
        assert!(recorded("GET", "/v1/catalog/backup", Some(routes::CATALOG_BACKUP)));
        // A request that can't be tried is carried out, whatever its query says.
        assert!(recorded("POST", "/v1/tokens?dry_run=true", Some(routes::TOKENS)));
        assert!(recorded("HEAD", "/v1/catalog/backup", Some(routes::CATALOG_BACKUP)));
        assert!(!recorded("GET", "/v1/pools", Some(routes::POOLS)));
        assert!(!recorded("POST", "/v1/pools?dry_run=true", Some(routes::POOLS)));
        assert!(!recorded("PUT", "/v1/users/u/password?dry_run=true", Some(routes::PASSWORD)));
        assert!(!recorded("POST", "/v1/nothing", None));
    }
}
