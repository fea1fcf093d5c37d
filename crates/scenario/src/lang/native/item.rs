//! Values of a TOML text with their lines, and reading them in people's units.

use crate::lang::LangError;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};
use weir_core::units::parse_bytes;
use weir_core::units::parse_time;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// From 1.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Real(f64),
    Truth(bool),
    List(Vec<Item>),
    Table(BTreeMap<String, Item>),
    Date,
}

/// Parses `text`; the result is its outermost table.
pub(super) fn parse(file: &str, text: &str) -> Result<BTreeMap<String, Item>, LangError> {
    let lines = Lines::new(text);
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(|span| lines.of(span.start));
        LangError { line, ..LangError::whole(file, error.message()) }
    })?;
    Ok(lines.table(table.get_ref()))
}

/// The offsets at which lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at).collect())
    }

    fn of(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }

    fn table(&self, table: &DeTable<'_>) -> BTreeMap<String, Item> {
        let one = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
            let key: &std::borrow::Cow<'_, str> = key.get_ref();
            (key.to_string(), self.item(value))
        };
        table.iter().map(one).collect()
    }

    fn item(&self, value: &toml::Spanned<DeValue<'_>>) -> Item {
        let line = self.of(value.span().start);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| Value::Text(number.as_str().to_owned()), Value::Whole),
            DeValue::Float(number) => number
                .as_str()
                .parse()
                .map_or_else(|_| Value::Text(number.as_str().to_owned()), Value::Real),
            DeValue::Boolean(truth) => Value::Truth(*truth),
            DeValue::Datetime(_) => Value::Date,
            DeValue::Array(list) => {
                Value::List(list.iter().map(|value| self.item(value)).collect())
            }
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Item { line, value }
    }
}

impl Item {
    /// A text.
    pub(super) fn text(&self) -> Result<&str, String> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => Err("must be a text in quotes".to_owned()),
        }
    }

    /// Yes or no.
    pub(super) fn truth(&self) -> Result<bool, String> {
        match self.value {
            Value::Truth(truth) => Ok(truth),
            _ => Err("must be true or false".to_owned()),
        }
    }

    /// A whole number, zero or more.
    pub(super) fn whole(&self) -> Result<u64, String> {
        match self.value {
            Value::Whole(number) => {
                u64::try_from(number).map_err(|_| "must not be negative".to_owned())
            }
            _ => Err("must be a whole number".to_owned()),
        }
    }

    /// A whole number from 1 to 2^32.
    pub(super) fn count(&self) -> Result<u32, String> {
        let refused = || "must be a whole number of at least 1".to_owned();
        u32::try_from(self.whole()?).ok().filter(|count| *count > 0).ok_or_else(refused)
    }

    /// From 0 to 100.
    pub(super) fn percent(&self) -> Result<u8, String> {
        let refused = || "must be from 0 to 100".to_owned();
        u8::try_from(self.whole()?).ok().filter(|percent| *percent <= 100).ok_or_else(refused)
    }

    /// Any number.
    #[expect(clippy::cast_precision_loss, reason = "figures need no more than 52 bits")]
    pub(super) fn number(&self) -> Result<f64, String> {
        match self.value {
            Value::Whole(number) => Ok(number as f64),
            Value::Real(number) if number.is_finite() => Ok(number),
            _ => Err("must be a number".to_owned()),
        }
    }

    /// A size such as "8KiB".
    pub(super) fn bytes(&self) -> Result<u64, String> {
        parse_bytes(self.text().map_err(|_| "must be a size in quotes, as in \"8KiB\"")?)
            .map_err(|error| error.to_string())
    }

    /// A size of at most 4 GiB.
    pub(super) fn small_bytes(&self) -> Result<u32, String> {
        u32::try_from(self.bytes()?).map_err(|_| "is over 4 GiB".to_owned())
    }

    /// A time such as "30s", in seconds.
    pub(super) fn seconds(&self) -> Result<f64, String> {
        let text = self.text().map_err(|_| "must be a time in quotes, as in \"30s\"")?;
        parse_time(text).map(|time| time.as_secs_f64())
    }

    /// A time in microseconds.
    pub(super) fn microseconds(&self) -> Result<u64, String> {
        let text = self.text().map_err(|_| "must be a time in quotes, as in \"2ms\"")?;
        if let Some(digits) = text.strip_suffix("us") {
            return digits.trim().parse().map_err(|_| format!("{text:?} is not a time"));
        }
        let time = parse_time(text)?;
        u64::try_from(time.as_micros()).map_err(|_| format!("{text:?} is too long"))
    }

    /// A list.
    pub(super) fn list(&self) -> Result<&[Self], String> {
        match &self.value {
            Value::List(list) => Ok(list),
            _ => Err("must be a list".to_owned()),
        }
    }

    /// A table.
    pub(super) fn table(&self) -> Result<&BTreeMap<String, Self>, String> {
        match &self.value {
            Value::Table(table) => Ok(table),
            _ => Err("must be a table".to_owned()),
        }
    }
}
