//! The common parts of resources: lists of them come in pages, and each has an etag.

use serde::{Deserialize, Serialize};

/// Something with an etag.
pub trait HasEtag {
    /// The etag, without quotes.
    fn etag(&self) -> &str;
}

impl HasEtag for crate::Level {
    fn etag(&self) -> &str {
        &self.etag
    }
}

impl HasEtag for crate::Pool {
    fn etag(&self) -> &str {
        &self.etag
    }
}

impl HasEtag for crate::Volume {
    fn etag(&self) -> &str {
        &self.etag
    }
}

impl HasEtag for crate::Calibration {
    fn etag(&self) -> &str {
        &self.etag
    }
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "PageOf{T}"))]
pub struct Page<T> {
    /// What is in it, in the order of the list.
    pub items: Vec<T>,
    /// Where the next part begins (`after`); nothing where this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
