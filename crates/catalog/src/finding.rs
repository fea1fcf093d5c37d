//! Findings of a check.

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The catalogue serves all the same.
    Warning,
    /// A volume is not served, or lost.
    Error,
}

/// A fault in a catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The finding's severity.
    pub severity: Severity,
    /// A word for programs, which never changes.
    pub code: &'static str,
    /// The fault, and its remedy.
    pub message: String,
}

impl Finding {
    /// A fault because of which a volume is not served, or lost.
    #[must_use]
    pub const fn error(code: &'static str, message: String) -> Self {
        Self { severity: Severity::Error, code, message }
    }

    /// A fault that keeps nothing from being served.
    #[must_use]
    pub const fn warning(code: &'static str, message: String) -> Self {
        Self { severity: Severity::Warning, code, message }
    }
}
