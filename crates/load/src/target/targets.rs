//! The targets of a step: each load names one of them.

use super::Target;
use crate::error::BenchError;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Targets by name. Loads without the name of a target are on the one whose name is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Targets(BTreeMap<String, Target>);

impl From<Target> for Targets {
    /// One target, for loads that name none.
    fn from(target: Target) -> Self {
        Self(BTreeMap::from([(String::new(), target)]))
    }
}

impl FromIterator<(String, Target)> for Targets {
    fn from_iter<I: IntoIterator<Item = (String, Target)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

impl Targets {
    /// The target of this name.
    ///
    /// # Errors
    /// [`BenchError::Target`] if there is none, with the names that there are.
    pub fn get(&self, name: &str) -> Result<&Target, BenchError> {
        self.0.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            BenchError::Target(if name.is_empty() {
                format!(
                    "a load names no target, but all targets have names ({}): add `target` to the \
                     load, or give a target without a name",
                    known.join(", ")
                )
            } else {
                format!(
                    "a load is for the target {name:?}, which is not given: add --target \
                     {name}=TARGET"
                )
            })
        })
    }

    /// The target of `load`.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub fn of(&self, load: &Workload) -> Result<&Target, BenchError> {
        self.get(&load.target)
    }

    /// All, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Target)> {
        self.0.iter().map(|(name, target)| (name.as_str(), target))
    }

    /// All, with their names, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Target)> {
        self.0.iter_mut().map(|(name, target)| (name.as_str(), target))
    }

    /// The only target, if it is for loads that name none.
    #[must_use]
    pub fn only(&self) -> Option<&Target> {
        if self.0.len() == 1 { self.0.get("") } else { None }
    }
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, target)) in self.0.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            match name.as_str() {
                "" => write!(f, "{comma}{target}")?,
                // A load named it by its URL or path.
                name if name.contains('/') => write!(f, "{comma}{name}")?,
                name => write!(f, "{comma}{name}={target}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Target {
        Target::Path(text.into())
    }

    #[test]
    fn loads_find_their_target_by_name() {
        let targets: Targets =
            [(String::new(), path("/a")), ("b".to_owned(), path("/b"))].into_iter().collect();
        let load = |name: &str| Workload { target: name.to_owned(), ..Workload::default() };
        assert_eq!(targets.of(&load("")).unwrap(), &path("/a"));
        assert_eq!(targets.of(&load("b")).unwrap(), &path("/b"));
        let error = targets.of(&load("c")).unwrap_err().to_string();
        assert!(error.contains("--target c=TARGET"), "{error}");
        assert_eq!(targets.to_string(), "/a, b=/b");
        assert_eq!(targets.only(), None);
        assert_eq!(Targets::from(path("/a")).only(), Some(&path("/a")));
    }

    #[test]
    fn a_load_without_a_target_is_told_which_there_are() {
        let targets: Targets = [("b".to_owned(), path("/b"))].into_iter().collect();
        let error = targets.of(&Workload::default()).unwrap_err().to_string();
        assert!(error.contains("all targets have names (b)"), "{error}");
    }
}
