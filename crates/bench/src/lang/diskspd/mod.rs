//! The language of diskspd: not read by this build yet.

use super::{LangError, Options, Source};
use crate::scenario::Scenario;

/// Reads a text.
pub(crate) fn scenario(source: &Source, _: &Options) -> Result<Scenario, LangError> {
    Err(LangError::whole(&source.name, "the language of diskspd can't be read yet"))
}

/// Reads a command line.
pub(crate) fn command(_: &[String], _: &Options) -> Result<Scenario, LangError> {
    Err(LangError::whole("the command line", "the language of diskspd can't be read yet"))
}
