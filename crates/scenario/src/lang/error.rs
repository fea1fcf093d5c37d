//! Why a text is no scenario.

use std::fmt;

/// Why a text could not be read. It prints as one line that names the place and says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LangError {
    /// The file, or "the command line".
    pub file: String,
    /// The line in it, from 1.
    pub line: Option<usize>,
    /// The option, parameter or key that it is about.
    pub option: Option<String>,
    /// The fault, and the remedy.
    pub message: String,
}

impl LangError {
    /// About all of `file`.
    pub fn whole(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, option: None, message: message.into() }
    }

    /// The error, about this option.
    #[must_use]
    pub fn option(self, option: impl Into<String>) -> Self {
        Self { option: Some(option.into()), ..self }
    }
}

impl fmt::Display for LangError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(option) = &self.option {
            write!(f, ": {option}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for LangError {}
