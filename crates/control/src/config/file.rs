//! Reading the TOML file: every key is checked against the table, with the line it stands on.

use super::keys::{KEYS, Value, nearest};
use super::{ConfigError, FILE_BYTES_MAX, ServerConfig};
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Changes `config` by what the file at `path` says.
pub(super) fn apply(config: &mut ServerConfig, path: &Path) -> Result<(), ConfigError> {
    let text = read(path)?;
    let line = |span: Range<usize>| {
        1 + text.as_bytes().iter().take(span.start).filter(|byte| **byte == b'\n').count()
    };
    let table = DeTable::parse(&text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        line: error.span().map_or(1, line),
        message: error.message().to_owned(),
    })?;
    let mut settings = Vec::new();
    flatten("", table.get_ref(), &mut settings);
    for (name, span, value) in settings {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            return Err(ConfigError::UnknownKey {
                path: path.to_owned(),
                line: line(span),
                nearest: nearest(&name),
                key: name,
            });
        };
        let given = read_value(value);
        let set = given.and_then(|given| key.set(config, &given));
        set.map_err(|reason| ConfigError::Value {
            origin: format!("{}:{}", path.display(), line(span)),
            key: key.name,
            reason,
        })?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let fault = |source| ConfigError::Read { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(fault)?;
    let mut text = String::new();
    let count = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(fault)?;
    if u64::try_from(count).is_ok_and(|count| count > FILE_BYTES_MAX) {
        return Err(ConfigError::TooLarge { path: path.to_owned() });
    }
    Ok(text)
}

type Setting<'a> = (String, Range<usize>, &'a DeValue<'a>);

/// All leaves under `table`, named with their sections. A section that no key has is a leaf too,
/// so that an empty or misspelt one is refused like any other unknown key.
fn flatten<'a>(prefix: &str, table: &'a DeTable<'a>, out: &mut Vec<Setting<'a>>) {
    for (key, value) in table {
        let name = format!("{prefix}{}", key.get_ref());
        let section = format!("{name}.");
        match value.get_ref() {
            DeValue::Table(inner) if KEYS.iter().any(|key| key.name.starts_with(&section)) => {
                flatten(&section, inner, out);
            }
            leaf => out.push((name, key.span(), leaf)),
        }
    }
}

fn read_value<'a>(value: &'a DeValue<'a>) -> Result<Value<'a>, String> {
    match value {
        DeValue::String(text) => Ok(Value::Text(text)),
        DeValue::Boolean(on) => Ok(Value::Bool(*on)),
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix())
            .map(Value::Integer)
            .map_err(|_| format!("{} is out of range", number.as_str())),
        DeValue::Array(items) => {
            let text = |item: &'a Spanned<DeValue<'a>>| {
                item.get_ref().as_str().ok_or_else(|| "expected a list of strings".to_owned())
            };
            items.iter().map(text).collect::<Result<_, _>>().map(Value::List)
        }
        other => Err(format!("a {} is not a valid value for this key", other.type_str())),
    }
}
