//! The rows by which each gateway tells how far it follows the catalogue.
//!
//! They are at `/weir/CLUSTER/follows/GATEWAY`, beside the catalogue's prefix and not below it, so
//! that writing one wakes no gateway.

use super::envelope::{self, VERSION};
use super::link::Link;
use super::store::Operation;
use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A place in the course of a cluster's catalogue and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// The generation of the catalogue.
    pub generation: u64,
    /// The revision of the store at which the tokens of the API were last written.
    pub tokens: u64,
}

impl Followed {
    /// Whether everything up to `other` is followed.
    #[must_use]
    pub const fn covers(&self, other: &Self) -> bool {
        self.generation >= other.generation && self.tokens >= other.tokens
    }
}

/// The value of such a row.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    v: u32,
    generation: u64,
    tokens: u64,
}

impl Link {
    fn follows(&self) -> String {
        format!("/weir/{}/follows/", self.place.cluster)
    }

    /// Tells how far this gateway follows.
    ///
    /// # Errors
    /// `NotMember`, `Unreachable`, `InDoubt`.
    pub(crate) fn tell(&self, Followed { generation, tokens }: Followed) -> Result<()> {
        let value = envelope::write(&Row { v: VERSION, generation, tokens })?;
        let key = format!("{}{}", self.follows(), self.place.gateway);
        let life: Vec<_> = self.place.life.get().cloned().into_iter().collect();
        self.insist(&life, &[Operation::Put { key, value }], self.not_member())
    }

    /// How far each gateway follows, by name. A row that cannot be read tells nothing: its gateway
    /// writes it again with the next change.
    ///
    /// # Errors
    /// `Unreachable`.
    pub(crate) fn told(&self) -> Result<BTreeMap<String, Followed>> {
        let prefix = self.follows();
        let pairs = self.place.store.range(&prefix)?.pairs.into_iter();
        let told = pairs.filter_map(|pair| {
            let Row { generation, tokens, .. } = envelope::read(&pair.key, &pair.value).ok()?;
            let gateway = pair.key.strip_prefix(&prefix)?.to_owned();
            Some((gateway, Followed { generation, tokens }))
        });
        Ok(told.collect())
    }

    /// Waits until something happens in the store that is not applied yet, for at most `within`.
    pub(crate) fn wait(&self, within: Duration) {
        self.place.store.wait(&self.prefix, self.state().revision, within);
    }
}
