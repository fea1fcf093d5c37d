//! The export rules of a volume: the clients that may mount it, and their identities.

use crate::catalog::{Catalog, Mode, Outcome, Touched};
use crate::error::{CatalogError, Result};
use crate::limits::EXPORT_RULES_MAX;
use crate::model::ExportRule;
use crate::network::IpNetwork;
use crate::{rows, volumes};
use std::collections::HashSet;

impl Catalog {
    /// Replaces all rules of a volume. Without rules, no client has access.
    ///
    /// # Errors
    /// `NoSuch`, `TooManyRules`, `RuleExists` if a network comes twice.
    pub fn set_exports(&self, name: &str, rules: &[ExportRule], mode: Mode) -> Result<Outcome> {
        self.edit_exports(name, mode, |_| Ok(rules.to_vec()))
    }

    /// Adds one rule.
    ///
    /// # Errors
    /// `NoSuch`, `TooManyRules`, `RuleExists`.
    pub fn add_export(&self, name: &str, rule: &ExportRule, mode: Mode) -> Result<Outcome> {
        self.edit_exports(name, mode, |rules| Ok(rules.iter().chain([rule]).cloned().collect()))
    }

    /// Removes the rule of one network.
    ///
    /// # Errors
    /// `NoSuch`, `NoSuchRule`.
    pub fn remove_export(&self, name: &str, network: IpNetwork, mode: Mode) -> Result<Outcome> {
        self.edit_exports(name, mode, |rules| {
            let left: Vec<_> =
                rules.iter().filter(|rule| rule.network != network).cloned().collect();
            if left.len() == rules.len() {
                return Err(CatalogError::NoSuchRule { volume: name.to_owned(), network });
            }
            Ok(left)
        })
    }

    fn edit_exports(
        &self,
        name: &str,
        mode: Mode,
        edit: impl Fn(&[ExportRule]) -> Result<Vec<ExportRule>>,
    ) -> Result<Outcome> {
        self.mutate(mode, |tx, now| {
            let volume = volumes::find(now, name)?;
            let rules = edit(&volume.exports)?;
            if rules.len() > EXPORT_RULES_MAX {
                return Err(CatalogError::TooManyRules);
            }
            let mut networks = HashSet::new();
            if let Some(twice) = rules.iter().find(|rule| !networks.insert(rule.network)) {
                let network = twice.network;
                return Err(CatalogError::RuleExists { volume: volume.name.clone(), network });
            }
            rows::store_exports(tx, volume.id, &rules)?;
            Ok(Touched::Volume(volume.id))
        })
    }
}
