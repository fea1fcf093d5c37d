//! Whole databases in memory: a copy of one that is in use, and its bytes.
//!
//! A copy is taken page by page with SQLite's backup interface, at one moment, and so carries a
//! damage of the original with it.

use crate::error::Result;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, MAIN_DB, ffi};
use std::io::Cursor;

/// The bytes of a database's header that say how it is read and written: 1 is with a rollback
/// journal, 2 with a log beside it (SQLite's file format, §1.3.3).
const JOURNAL: std::ops::RangeInclusive<usize> = 18..=19;

/// Copies `from`, as it is now, over all of `to`.
pub(crate) fn copy(from: &Connection, to: &mut Connection) -> Result<()> {
    // All pages in one step, during which nobody else writes.
    match Backup::new(from, to)?.step(-1)? {
        StepResult::Done => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None).into()),
    }
}

/// A copy of `db` in memory.
pub(crate) fn of(db: &Connection) -> Result<Connection> {
    let mut image = Connection::open_in_memory()?;
    copy(db, &mut image)?;
    Ok(image)
}

/// The file that `image` would be: a single one, that can be read where nothing can be written.
pub(crate) fn bytes(mut image: Connection) -> Result<Vec<u8>> {
    let mut bytes = image.serialize(MAIN_DB)?.to_vec();
    if let Some(journal) = bytes.get_mut(JOURNAL) {
        journal.fill(1);
    }
    Ok(bytes)
}

/// The length of `image`'s file, in bytes.
pub(crate) fn length(image: &Connection) -> Result<u64> {
    let number = |name| image.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok(number("page_count")?.unsigned_abs().saturating_mul(number("page_size")?.unsigned_abs()))
}

/// The database that such `bytes` are.
pub(crate) fn read(bytes: &[u8]) -> Result<Connection> {
    let mut image = Connection::open_in_memory()?;
    image.deserialize_read_exact(MAIN_DB, Cursor::new(bytes), bytes.len(), false)?;
    Ok(image)
}

/// The maximum number of reported errors in the database.
const DAMAGES_MAX: usize = 20;

/// The damages that SQLite finds in a database, and references that lead nowhere.
pub(crate) fn damages(db: &Connection) -> Result<Vec<String>> {
    let mut damages = Vec::new();
    let mut query = db.prepare(&format!("PRAGMA integrity_check({DAMAGES_MAX})"))?;
    for line in query.query_map([], |row| row.get::<_, String>(0))? {
        match line {
            Ok(line) if line == "ok" => {}
            Ok(line) => damages.push(line),
            // The pages that say what there is are damaged themselves.
            Err(error) => damages.push(error.to_string()),
        }
    }
    if !damages.is_empty() {
        return Ok(damages);
    }
    let mut query = db.prepare("PRAGMA foreign_key_check")?;
    let told = query.query_map([], |row| {
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        Ok(format!("a row of {table} refers to a missing row of {parent}"))
    })?;
    for line in told.take(DAMAGES_MAX) {
        damages.push(line?);
    }
    Ok(damages)
}
