//! The language native.

use super::{LangError, Options, Source};
use crate::scenario::Scenario;

/// Reads a text.
pub(crate) fn scenario(source: &Source, _: &Options) -> Result<Scenario, LangError> {
    Err(LangError::whole(&source.name, "can't be read yet"))
}
