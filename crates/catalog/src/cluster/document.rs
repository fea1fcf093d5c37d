//! Documents: the form in which rows are in the shared store.
//!
//! The key of a document is its table and its key there, in a form fit to read: numbers in decimal,
//! texts with what is not plain as `%XX`, bytes in hexadecimal digits. The value is JSON:
//!
//! ```text
//! rows/volumes/7 = {"v":12,"row":{"id":7,"name":"a",…},"export_rules":[{"network":…},…],…}
//! ```
//!
//! `v` is the format of the catalogue by which it was written. A column of a later format has its
//! default where the document is older. A document is refused by name if it is not exactly what its
//! format says: nothing is guessed, and nothing unknown is dropped.

use super::tables::{Child, Column, Kind, Table, named};
use crate::error::{ClusterError, Result};
use rusqlite::types::Value;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The longest value of a document, in bytes.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 512 << 10;
/// The first part of the key of every document.
pub(crate) const ROWS: &str = "rows/";

/// Documents by their keys; `None` is one that is deleted.
pub(crate) type Documents = BTreeMap<String, (Place, Option<Document>)>;

/// The table and the key of a document.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The table.
    pub(crate) table: &'static Table,
    /// The values of the key's columns.
    pub(crate) key: Vec<Value>,
}

/// The content of a document beside its key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    /// The values of the table's other columns.
    pub(crate) row: Vec<Value>,
    /// For each table of rows that belong to it, these rows.
    pub(crate) children: Vec<Vec<Vec<Value>>>,
}

impl Place {
    /// The key in the shared store.
    pub(crate) fn path(&self) -> String {
        let mut path = format!("{ROWS}{}", self.table.name);
        for value in &self.key {
            path.push('/');
            match value {
                Value::Text(text) => escape(&mut path, text),
                Value::Blob(bytes) => path.push_str(&hex(bytes)),
                Value::Integer(number) => path.push_str(&number.to_string()),
                Value::Null | Value::Real(_) => {}
            }
        }
        path
    }

    /// The place of the document with this key.
    ///
    /// # Errors
    /// `Row` if no document has such a key.
    pub(crate) fn parse(path: &str) -> Result<Self> {
        let foreign = || row_error(path, "no row of a catalogue has such a key");
        let rest = path.strip_prefix(ROWS).ok_or_else(foreign)?;
        let (name, rest) = rest.split_once('/').ok_or_else(foreign)?;
        let table = named(name).ok_or_else(foreign)?;
        let parts: Vec<&str> = rest.split('/').collect();
        if parts.len() != table.key.len() {
            return Err(foreign().into());
        }
        let part = |(column, part): (&Column, &&str)| match column.kind {
            Kind::Integer => part.parse().ok().map(Value::Integer),
            Kind::Text => unescape(part).map(Value::Text),
            Kind::Blob => unhex(part).map(Value::Blob),
        };
        let key: Option<Vec<Value>> = table.key.iter().zip(&parts).map(part).collect();
        let place = Self { table, key: key.ok_or_else(foreign)? };
        // One row must not have two keys, such as 7 and 07.
        if place.path() == path { Ok(place) } else { Err(foreign().into()) }
    }
}

/// The value of the document at `place`, in `format`.
///
/// # Errors
/// `NotYet` if it has something that the format lacks; `TooLarge`.
pub(crate) fn encode(place: &Place, document: &Document, format: u32) -> Result<Vec<u8>> {
    let mut value = Map::new();
    value.insert("v".to_owned(), format.into());
    let keys = place.table.key.iter().zip(&place.key);
    let row = object(keys.chain(place.table.columns.iter().zip(&document.row)), format)?;
    value.insert("row".to_owned(), row);
    for (child, rows) in place.table.children.iter().zip(&document.children) {
        let rows = rows.iter().map(|row| object(child.columns.iter().zip(row), format));
        value.insert(child.name.to_owned(), Json::Array(rows.collect::<Result<_>>()?));
    }
    let bytes = Json::Object(value).to_string().into_bytes();
    if bytes.len() > DOCUMENT_BYTES_MAX {
        return Err(ClusterError::TooLarge { key: place.path(), max: DOCUMENT_BYTES_MAX }.into());
    }
    Ok(bytes)
}

fn object<'a>(columns: impl Iterator<Item = (&'a Column, &'a Value)>, format: u32) -> Result<Json> {
    let mut object = Map::new();
    for (column, value) in columns {
        if column.since > format {
            if *value != default(column) {
                let (column, needed) = (column.name, column.since);
                return Err(ClusterError::NotYet { column, needed, format }.into());
            }
            continue;
        }
        let value = match value {
            Value::Null | Value::Real(_) => Json::Null,
            Value::Integer(number) => (*number).into(),
            Value::Text(text) => text.as_str().into(),
            Value::Blob(bytes) => hex(bytes).into(),
        };
        object.insert(column.name.to_owned(), value);
    }
    Ok(Json::Object(object))
}

/// The document at `place` with this value. `known` is the newest format that this version knows.
///
/// # Errors
/// `Newer`, `Row`.
pub(crate) fn decode(place: &Place, bytes: &[u8], known: u32) -> Result<Document> {
    let path = place.path();
    let bad = |what: String| row_error(&path, &what);
    if bytes.len() > DOCUMENT_BYTES_MAX {
        return Err(bad(format!("it is longer than {DOCUMENT_BYTES_MAX} bytes")).into());
    }
    let value: Json = serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
    let Json::Object(mut value) = value else {
        return Err(bad("it is not an object".to_owned()).into());
    };
    let format = value.remove("v").as_ref().and_then(Json::as_u64);
    let format = format.ok_or_else(|| bad("it has no version \"v\"".to_owned()))?;
    let Some(format) = u32::try_from(format).ok().filter(|format| *format <= known) else {
        return Err(ClusterError::Newer { key: path, found: format, known: known.into() }.into());
    };
    let row = value.remove("row").ok_or_else(|| bad("it has no \"row\"".to_owned()))?;
    let columns: Vec<&Column> = place.table.key.iter().chain(place.table.columns).collect();
    let mut cells = cells(row, &columns, format).map_err(&bad)?;
    let row = cells.split_off(place.table.key.len().min(cells.len()));
    if cells != place.key {
        return Err(bad("its key is not that of its row".to_owned()).into());
    }
    let mut children = Vec::with_capacity(place.table.children.len());
    for child in place.table.children {
        children.push(child_rows(&mut value, child, format).map_err(&bad)?);
    }
    match value.keys().next() {
        Some(more) => Err(bad(format!("{more:?} is unknown in format {format}")).into()),
        None => Ok(Document { row, children }),
    }
}

fn child_rows(
    value: &mut Map<String, Json>,
    child: &Child,
    format: u32,
) -> std::result::Result<Vec<Vec<Value>>, String> {
    let Some(Json::Array(rows)) = value.remove(child.name) else {
        return Err(format!("it has no list {:?}", child.name));
    };
    if rows.len() > child.rows_max {
        return Err(format!("{:?} has more than {} rows", child.name, child.rows_max));
    }
    let columns: Vec<&Column> = child.columns.iter().collect();
    let rows = rows.into_iter().map(|row| cells(row, &columns, format));
    rows.collect::<std::result::Result<_, _>>().map_err(|what| format!("{}: {what}", child.name))
}

/// The values of `columns` in `row`, which must have exactly those of its format.
fn cells(row: Json, columns: &[&Column], format: u32) -> std::result::Result<Vec<Value>, String> {
    let Json::Object(mut row) = row else { return Err("a row is not an object".to_owned()) };
    let mut cells = Vec::with_capacity(columns.len());
    for column in columns {
        if column.since > format {
            cells.push(default(column));
            continue;
        }
        let found = row.remove(column.name);
        let found = found.ok_or_else(|| format!("column {:?} is missing", column.name))?;
        let value = match (found, column.kind) {
            (Json::Null, _) if column.nullable => Some(Value::Null),
            (Json::Number(number), Kind::Integer) => number.as_i64().map(Value::Integer),
            (Json::String(text), Kind::Text) => Some(Value::Text(text)),
            (Json::String(digits), Kind::Blob) => unhex(&digits).map(Value::Blob),
            _ => None,
        };
        cells.push(value.ok_or_else(|| format!("column {:?} has a wrong type", column.name))?);
    }
    match row.keys().next() {
        Some(more) => Err(format!("column {more:?} is unknown in format {format}")),
        None => Ok(cells),
    }
}

fn default(column: &Column) -> Value {
    column.default.map_or(Value::Null, Value::Integer)
}

/// The refusal of what has this key.
pub(crate) fn row_error(key: &str, what: &str) -> ClusterError {
    let short = |text: &str| text.chars().take(256).collect::<String>();
    ClusterError::Row { key: short(key), what: short(what) }
}

/// Appends `text` with everything but plain characters as `%XX`.
fn escape(path: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b':' => {
                path.push(char::from(byte));
            }
            _ => {
                // Writing to a text never fails.
                let _never = write!(path, "%{byte:02X}");
            }
        }
    }
}

fn unescape(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.extend(unhex(std::str::from_utf8(digits).ok()?)?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// `bytes` in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    // Writing to a text never fails.
    let _never = bytes.iter().try_for_each(|byte| write!(digits, "{byte:02x}"));
    digits
}

/// The bytes of these hexadecimal digits.
pub(crate) fn unhex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tables::{Guarded, TABLES};
    use super::*;

    const NOW: u32 = 12;
    static COLUMNS: [Column; 2] = [named_column("a"), named_column("b").added(13, Some(1))];
    static TABLE: Table = Table {
        name: "later",
        key: &[named_column("id")],
        columns: &COLUMNS,
        children: &[],
        guarded: Guarded::ByHead,
    };

    const fn named_column(name: &'static str) -> Column {
        Column { name, kind: Kind::Integer, nullable: false, since: 0, default: None }
    }

    fn level() -> (Place, Document) {
        let place =
            Place { table: named("levels").unwrap(), key: vec![Value::Text("a b/é".into())] };
        let row = vec![Value::Integer(1 << 40), Value::Null];
        (place, Document { row, children: vec![] })
    }

    #[test]
    fn a_document_is_readable_and_comes_back_as_it_was() {
        let (place, document) = level();
        assert_eq!(place.path(), "rows/levels/a%20b%2F%C3%A9");
        let bytes = encode(&place, &document, NOW).unwrap();
        let told =
            r#"{"row":{"name":"a b/é","rate_per_tib":1099511627776,"volume_ceiling":null},"v":12}"#;
        assert_eq!(String::from_utf8(bytes.clone()).unwrap(), told);
        let back = Place::parse(&place.path()).unwrap();
        assert_eq!((back.table.name, &back.key), ("levels", &place.key));
        assert_eq!(decode(&back, &bytes, NOW).unwrap(), document);
    }

    #[test]
    fn keys_that_no_row_has_are_refused() {
        for path in [
            "rows/volumes/07",
            "rows/volumes/x",
            "rows/volumes/1/2",
            "rows/volumes",
            "rows//1",
            "rows/levels/%4",
            "rows/levels/%61",
            "rows/levels/%2f",
            "rows/requests/AB",
            "levels/a",
            "rows/meta/1",
            "rows/volumes/99999999999999999999",
        ] {
            let refused = Place::parse(path).unwrap_err().to_string();
            assert!(refused.contains("no row of a catalogue"), "{path}: {refused}");
        }
    }

    #[test]
    fn a_damaged_document_is_refused_by_name() {
        let (place, document) = level();
        let whole = String::from_utf8(encode(&place, &document, NOW).unwrap()).unwrap();
        for (damaged, told) in [
            (String::new(), "EOF"),
            (whole.replace("\"v\":12", "\"v\":-1"), "no version"),
            (whole.replace("null", "\"x\""), "\"volume_ceiling\" has a wrong type"),
            (whole.replace("1099511627776", "1.5"), "\"rate_per_tib\" has a wrong type"),
            (whole.replace("1099511627776", "99999999999999999999"), "wrong type"),
            (whole.replace("rate_per_tib", "rate"), "\"rate_per_tib\" is missing"),
            (whole.replace("{\"row\"", "{\"more\":1,\"row\""), "\"more\" is unknown"),
            (whole.replace("{\"name\"", "{\"n\":1,\"name\""), "\"n\" is unknown"),
            (whole.replace("a b", "b b"), "its key is not"),
            ("[".repeat(1000), "recursion"),
            (" ".repeat(DOCUMENT_BYTES_MAX + 1), "longer than"),
        ] {
            let refused = decode(&place, damaged.as_bytes(), NOW).unwrap_err();
            assert_eq!(refused.code(), "cluster_row_damaged");
            let refused = refused.to_string();
            assert!(refused.contains(told) && refused.contains("rows/levels/a%20b"), "{refused}");
        }
        let newer = whole.replace("\"v\":12", "\"v\":13");
        let refused = decode(&place, newer.as_bytes(), NOW).unwrap_err();
        assert_eq!(refused.code(), "newer_format");
    }

    #[test]
    fn versions_side_by_side_write_the_older_format_and_refuse_what_it_lacks() {
        let place = Place { table: &TABLE, key: vec![Value::Integer(7)] };
        let document =
            |b| Document { row: vec![Value::Integer(5), Value::Integer(b)], children: vec![] };
        let old = encode(&place, &document(1), 12).unwrap();
        assert_eq!(String::from_utf8(old.clone()).unwrap(), r#"{"row":{"a":5,"id":7},"v":12}"#);
        assert_eq!(decode(&place, &old, 13).unwrap(), document(1), "with the default");
        let refused = encode(&place, &document(2), 12).unwrap_err();
        assert_eq!(refused.code(), "cluster_format");
        let new = encode(&place, &document(2), 13).unwrap();
        assert_eq!(decode(&place, &new, 13).unwrap(), document(2));
        assert_eq!(decode(&place, &new, 12).unwrap_err().code(), "newer_format");
        let mixed = String::from_utf8(new).unwrap().replace(":13", ":12");
        assert!(decode(&place, mixed.as_bytes(), 13).is_err());
    }

    proptest::proptest! {
        #[test]
        fn a_changed_byte_is_refused_or_is_another_row(at in 0_usize..4096, byte: u8) {
            let (place, document) = level();
            let mut bytes = encode(&place, &document, NOW).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Ok(found) = decode(&place, &bytes, NOW) {
                let again = encode(&place, &found, NOW).unwrap();
                proptest::prop_assert_eq!(decode(&place, &again, NOW).unwrap(), found);
            }
        }

        #[test]
        fn no_key_is_two_keys(path in "rows/(levels|volumes|requests|monitored_hosts)/[ -~]{0,40}") {
            if let Ok(place) = Place::parse(&path) {
                proptest::prop_assert_eq!(place.path(), path);
            }
        }
    }

    #[test]
    fn the_largest_volume_fits_into_a_document() {
        let table = TABLES.iter().find(|table| table.name == "volumes").unwrap();
        let long = |column: &Column| match column.kind {
            Kind::Integer => Value::Integer(i64::MIN),
            Kind::Text | Kind::Blob => Value::Text("x".repeat(64)),
        };
        let child = |child: &Child| {
            (0..child.rows_max).map(|_| child.columns.iter().map(long).collect()).collect()
        };
        let document = Document {
            row: table.columns.iter().map(long).collect(),
            children: table.children.iter().map(child).collect(),
        };
        let place = Place { table, key: vec![Value::Integer(1)] };
        let bytes = encode(&place, &document, crate::schema::newest_format()).unwrap();
        assert!(bytes.len() < DOCUMENT_BYTES_MAX / 2);
    }
}
