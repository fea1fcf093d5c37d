//! The key of a request that is carried out only once, recorded in the transaction of its change.

use crate::error::{ClusterError, Result};
use crate::limits::{REQUEST_SECS, REQUESTS_MAX};
use rusqlite::{Connection, params};

/// The key of a request that must be carried out only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Hash of the caller and of the key that it chose.
    pub key: [u8; 32],
    /// Hash of the whole request.
    pub request: [u8; 32],
    /// Time of the request, in seconds since 1970.
    pub at: u64,
}

/// Refuses a request that another gateway carried out since it was looked for.
pub(crate) fn check_new(db: &Connection, key: &IdempotencyKey) -> Result<()> {
    let since = key.at.saturating_sub(REQUEST_SECS);
    let find = "SELECT count(*) FROM requests WHERE key = ?1 AND at > ?2";
    match db.query_row(find, params![key.key, since], |row| row.get::<_, u64>(0))? {
        0 => Ok(()),
        _ => Err(ClusterError::Repeated.into()),
    }
}

/// Records the request in the transaction of its change. The oldest records are removed.
pub(crate) fn note(db: &Connection, key: &IdempotencyKey) -> Result<()> {
    let old = key.at.saturating_sub(REQUEST_SECS);
    db.execute("DELETE FROM requests WHERE at <= ?1 OR key = ?2", params![old, key.key])?;
    let crowded = "DELETE FROM requests WHERE key IN
        (SELECT key FROM requests ORDER BY at DESC, key LIMIT -1 OFFSET ?1)";
    db.execute(crowded, [REQUESTS_MAX - 1])?;
    let put = "INSERT INTO requests (key, request, at) VALUES (?1, ?2, ?3)";
    db.execute(put, params![key.key, key.request, key.at])?;
    Ok(())
}
