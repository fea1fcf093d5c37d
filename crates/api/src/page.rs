//! Common parts of resources: pages of lists, and etags.

use serde::{Deserialize, Serialize};

/// A resource with an etag.
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

impl HasEtag for crate::User {
    fn etag(&self) -> &str {
        &self.etag
    }
}

impl HasEtag for crate::Group {
    fn etag(&self) -> &str {
        &self.etag
    }
}

impl HasEtag for crate::Address {
    fn etag(&self) -> &str {
        &self.etag
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "PageOf{T}"))]
pub struct Page<T> {
    /// Items, in the order of the list.
    pub items: Vec<T>,
    /// Position of the next page (`after`); absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
