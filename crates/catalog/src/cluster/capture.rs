//! Between the database and documents: which documents a transaction touched, their content, and
//! applying documents that came from elsewhere.
//!
//! Temporary triggers note the key of every row that is inserted, changed or deleted, also by a
//! reference (`ON DELETE CASCADE`). They are part of the connection, not of the database, so that
//! no copy has them.

use super::document::{Document, Documents, Place, row_error};
use super::tables::{COUNTED, Child, Column, TABLES, Table};
use crate::error::{CatalogError, Result};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};
use std::fmt::Write as _;

/// The counters of ids, in the order of [`COUNTED`].
pub(crate) type Counters = Vec<i64>;

/// Makes the triggers.
pub(crate) fn install(db: &Connection) -> Result<()> {
    let mut sql = "CREATE TEMP TABLE touched (place, k0, k1, k2);\n".to_owned();
    for table in TABLES {
        let note = |which: &str| {
            let mut key = table.key.iter().map(|column| format!("{which}.{}", column.name));
            let mut next = || key.next().unwrap_or_else(|| "NULL".to_owned());
            let (k0, k1, k2) = (next(), next(), next());
            format!("INSERT INTO touched VALUES ('{}', {k0}, {k1}, {k2});", table.name)
        };
        let differs = |column: &Column| format!("old.{0} IS NOT new.{0}", column.name);
        let changed: Vec<_> = table.key.iter().chain(table.columns).map(differs).collect();
        triggers(&mut sql, table.name, &note, &format!("WHEN {}", changed.join(" OR ")));
        for child in table.children {
            let note = |which: &str| {
                let (place, parent) = (table.name, child.parent);
                format!("INSERT INTO touched VALUES ('{place}', {which}.{parent}, NULL, NULL);")
            };
            triggers(&mut sql, child.name, &note, "");
        }
    }
    Ok(db.execute_batch(&sql)?)
}

fn triggers(sql: &mut String, name: &str, note: &dyn Fn(&str) -> String, changed: &str) {
    let (old, new) = (note("old"), note("new"));
    // Writing to a text never fails.
    let _never = write!(
        sql,
        "CREATE TEMP TRIGGER {name}_inserted AFTER INSERT ON main.{name} BEGIN {new} END;
         CREATE TEMP TRIGGER {name}_deleted AFTER DELETE ON main.{name} BEGIN {old} END;
         CREATE TEMP TRIGGER {name}_changed AFTER UPDATE ON main.{name} {changed}
            BEGIN {old} {new} END;\n"
    );
}

/// Forgets what was touched, at the beginning of a transaction.
pub(crate) fn clear(tx: &Connection) -> Result<()> {
    tx.execute("DELETE FROM temp.touched", [])?;
    Ok(())
}

/// The documents that were touched since [`clear`].
pub(crate) fn touched(tx: &Connection) -> Result<Documents> {
    let mut documents = Documents::new();
    for table in TABLES {
        let mut query =
            tx.prepare_cached("SELECT DISTINCT k0, k1, k2 FROM temp.touched WHERE place = ?1")?;
        let mut rows = query.query([table.name])?;
        while let Some(row) = rows.next()? {
            let key = (0..table.key.len()).map(|at| row.get(at));
            let place = Place { table, key: key.collect::<rusqlite::Result<_>>()? };
            let document = read(tx, &place)?;
            documents.insert(place.path(), (place, document));
        }
    }
    Ok(documents)
}

/// All documents of a database.
pub(crate) fn whole(db: &Connection) -> Result<Documents> {
    let mut documents = Documents::new();
    for table in TABLES {
        let names = names(table.key.iter());
        let mut query = db.prepare(&format!("SELECT {names} FROM {}", table.name))?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let place = Place { table, key: values(row, table.key.len())? };
            let document = read(db, &place)?;
            documents.insert(place.path(), (place, document));
        }
    }
    Ok(documents)
}

/// The document at `place`, if its row exists.
fn read(db: &Connection, place: &Place) -> Result<Option<Document>> {
    let table = place.table;
    // A table that has only a key still needs something to select.
    let columns = names(table.columns.iter().chain(table.key));
    let sql = format!("SELECT {columns} FROM {} WHERE {}", table.name, is_key(table));
    let mut query = db.prepare_cached(&sql)?;
    let mut rows = query.query(params_from_iter(&place.key))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let row = values(row, table.columns.len())?;
    let children = table.children.iter().map(|child| {
        let columns = names(child.columns.iter());
        let (name, parent) = (child.name, child.parent);
        let sql = format!("SELECT {columns} FROM {name} WHERE {parent} = ?1 ORDER BY {columns}");
        let mut query = db.prepare_cached(&sql)?;
        let rows = query
            .query_map(params_from_iter(&place.key), |row| values(row, child.columns.len()))?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    });
    let children = children.collect::<rusqlite::Result<_>>()?;
    Ok(Some(Document { row, children }))
}

/// The counters of ids.
pub(crate) fn counters(db: &Connection) -> Result<Counters> {
    let counter = |(name, _): &(&str, u32)| {
        let find = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?1";
        Ok(db.query_row(find, [name], |row| row.get(0))?)
    };
    COUNTED.iter().map(counter).collect()
}

/// Sets the counters of ids.
pub(crate) fn set_counters(tx: &Connection, counters: &[i64]) -> Result<()> {
    for (counter, (name, _)) in counters.iter().zip(COUNTED) {
        tx.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [name])?;
        tx.execute("INSERT INTO sqlite_sequence VALUES (?1, ?2)", params![name, counter])?;
    }
    Ok(())
}

/// Deletes all rows.
pub(crate) fn empty(tx: &Connection) -> Result<()> {
    for table in TABLES.iter().rev() {
        tx.execute(&format!("DELETE FROM {}", table.name), [])?;
    }
    Ok(())
}

/// Applies `documents`, of one change, in a transaction with deferred references. Names may pass
/// from one row to another within a change, so a row that is refused waits for the others.
///
/// # Errors
/// `Row` with the first document that the rules of the database refuse.
pub(crate) fn apply(tx: &Connection, documents: &Documents) -> Result<()> {
    let mut left: Vec<_> = documents.iter().collect();
    left.sort_by_key(|(_, (place, document))| {
        let rank = TABLES.iter().position(|table| table.name == place.table.name);
        // First what is written, parents first; then what is deleted, parents last.
        (
            document.is_none(),
            rank.map(|rank| if document.is_none() { TABLES.len() - rank } else { rank }),
        )
    });
    loop {
        let count = left.len();
        let mut refused = Vec::new();
        let mut first = None;
        for one @ (path, (place, document)) in left {
            tx.execute_batch("SAVEPOINT document")?;
            let done = write(tx, place, document.as_ref());
            if let Err(error) = done {
                tx.execute_batch("ROLLBACK TO document; RELEASE document")?;
                first.get_or_insert_with(|| row_error(path, &error.to_string()));
                refused.push(one);
            } else {
                tx.execute_batch("RELEASE document")?;
            }
        }
        match first {
            None => return Ok(()),
            Some(error) if refused.len() == count => return Err(CatalogError::from(error)),
            Some(_) => left = refused,
        }
    }
}

fn write(tx: &Connection, place: &Place, document: Option<&Document>) -> rusqlite::Result<()> {
    let table = place.table;
    let Some(document) = document else {
        let sql = format!("DELETE FROM {} WHERE {}", table.name, is_key(table));
        tx.prepare_cached(&sql)?.execute(params_from_iter(&place.key))?;
        return Ok(());
    };
    let set: Vec<_> =
        table.columns.iter().map(|column| format!("{0} = excluded.{0}", column.name)).collect();
    let set = match set.is_empty() {
        true => "NOTHING".to_owned(),
        false => format!("UPDATE SET {}", set.join(", ")),
    };
    let sql = format!(
        "INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) DO {set}",
        table.name,
        names(table.key.iter().chain(table.columns)),
        marks(table.key.len() + table.columns.len()),
        names(table.key.iter()),
    );
    tx.prepare_cached(&sql)?.execute(params_from_iter(place.key.iter().chain(&document.row)))?;
    for (child, rows) in table.children.iter().zip(&document.children) {
        write_children(tx, place, child, rows)?;
    }
    Ok(())
}

fn write_children(
    tx: &Connection,
    place: &Place,
    child: &Child,
    rows: &[Vec<Value>],
) -> rusqlite::Result<()> {
    let sql = format!("DELETE FROM {} WHERE {} = ?1", child.name, child.parent);
    tx.prepare_cached(&sql)?.execute(params_from_iter(&place.key))?;
    let sql = format!(
        "INSERT INTO {} ({}, {}) VALUES ({})",
        child.name,
        child.parent,
        names(child.columns.iter()),
        marks(1 + child.columns.len()),
    );
    let mut insert = tx.prepare_cached(&sql)?;
    for row in rows {
        insert.execute(params_from_iter(place.key.iter().chain(row)))?;
    }
    Ok(())
}

fn names<'a>(columns: impl Iterator<Item = &'a Column>) -> String {
    columns.map(|column| column.name).collect::<Vec<_>>().join(", ")
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn is_key(table: &Table) -> String {
    let is = |column: &Column| format!("{} = ?", column.name);
    table.key.iter().map(is).collect::<Vec<_>>().join(" AND ")
}

fn values(row: &Row<'_>, count: usize) -> rusqlite::Result<Vec<Value>> {
    (0..count).map(|at| row.get(at)).collect()
}
