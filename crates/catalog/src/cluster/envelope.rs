//! The values beside documents: the head, a gateway's last change, the intent of a large change and
//! its chunks, secrets. All are JSON with a version of their own, and refused by name if they are
//! damaged or of a later version.

use super::capture::Counters;
use super::document::row_error;
use super::tables::{COUNTED, counted};
use crate::error::{ClusterError, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The version of these values.
pub(super) const VERSION: u32 = 1;
/// The longest value of them, in bytes: a chunk.
const VALUE_BYTES_MAX: usize = super::TRANSACTION_BYTES_MAX;

/// The state of the catalogue as a whole. Each guarded change replaces it, and is guarded by its
/// revision in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    /// The version of the value.
    pub(crate) v: u32,
    /// The format in which documents are written: one that all gateways know.
    pub(crate) format: u32,
    /// Increased by one with every change of what is published.
    pub(crate) generation: u64,
    /// The random name of the catalogue.
    pub(crate) instance: String,
    /// The name of the last change, unlike that of any other.
    pub(crate) change: String,
    /// The gateway that made it.
    pub(crate) gateway: String,
    /// The counters of ids, in the order of `COUNTED`: in the store those of the format.
    pub(crate) counters: Counters,
}

impl Head {
    /// The first head of a catalogue.
    pub(crate) fn first(format: u32, instance: String, counters: Counters) -> Self {
        let (change, gateway) = (String::new(), String::new());
        Self { v: VERSION, format, generation: 0, instance, change, gateway, counters }
    }

    /// The head as it is stored: without the counters of formats after its own.
    pub(crate) fn stored(mut self) -> Self {
        self.counters.truncate(counted(self.format));
        self
    }

    /// The head with all counters: those of formats after its own have counted nothing.
    pub(super) fn complete(mut self) -> Self {
        self.counters.resize(COUNTED.len(), 0);
        self
    }
}

/// The last change that a gateway attempted and that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Last {
    /// The version of the value.
    pub(crate) v: u32,
    /// The name of the change.
    pub(crate) change: String,
}

impl Last {
    pub(crate) fn of(change: &str) -> Self {
        Self { v: VERSION, change: change.to_owned() }
    }
}

/// The intent of a large change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Intent {
    /// The version of the value.
    pub(crate) v: u32,
    /// The name of the change, by which its chunks are found.
    pub(crate) change: String,
    /// The gateway that makes it.
    pub(crate) gateway: String,
    /// Whether the change is valid: then its chunks are documents, wherever they are.
    pub(crate) valid: bool,
}

impl Intent {
    pub(crate) fn of(change: &str, gateway: &str) -> Self {
        let (change, gateway) = (change.to_owned(), gateway.to_owned());
        Self { v: VERSION, change, gateway, valid: false }
    }
}

/// A chunk of a large change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chunk {
    /// The version of the value.
    pub(crate) v: u32,
    /// The values by their keys, without the prefix of the catalogue.
    pub(crate) staged: Vec<Staged>,
}

impl Chunk {
    pub(crate) const fn of(staged: Vec<Staged>) -> Self {
        Self { v: VERSION, staged }
    }
}

/// A value of a chunk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Staged {
    /// The key.
    pub(crate) key: String,
    /// The value; `None` deletes the key.
    pub(crate) value: Option<Json>,
}

/// A sealed secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SealedSecret {
    /// The version of the value.
    pub(crate) v: u32,
    /// In hexadecimal digits.
    pub(crate) sealed: String,
}

impl SealedSecret {
    pub(crate) const fn of(sealed: String) -> Self {
        Self { v: VERSION, sealed }
    }
}

/// The bytes of a value.
pub(crate) fn write(value: &impl Serialize) -> Result<Vec<u8>> {
    let failed = |error: serde_json::Error| ClusterError::Unreachable { what: error.to_string() };
    Ok(serde_json::to_vec(value).map_err(failed)?)
}

/// The value of `key` in `bytes`.
///
/// # Errors
/// `Newer`, `Row`.
pub(crate) fn read<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T> {
    if bytes.len() > VALUE_BYTES_MAX {
        return Err(row_error(key, &format!("it is longer than {VALUE_BYTES_MAX} bytes")).into());
    }
    let damaged = |error: serde_json::Error| row_error(key, &error.to_string());
    let value: Json = serde_json::from_slice(bytes).map_err(damaged)?;
    let found = value.get("v").and_then(Json::as_u64);
    match found.ok_or_else(|| row_error(key, "it has no version \"v\""))? {
        found if found > VERSION.into() => {
            Err(ClusterError::Newer { key: key.to_owned(), found, known: VERSION.into() }.into())
        }
        _ => Ok(serde_json::from_value(value).map_err(damaged)?),
    }
}

/// Any value of `key`, for a chunk.
pub(crate) fn any(key: &str, bytes: &[u8]) -> Result<Json> {
    Ok(serde_json::from_slice(bytes).map_err(|error| row_error(key, &error.to_string()))?)
}
