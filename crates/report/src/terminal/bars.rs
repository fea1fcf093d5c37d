//! Moving bars on standard error, if that is a terminal.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::fmt::Display;
use weir_core::text::Escaped;

/// One line with a turning sign.
#[derive(Clone)]
pub struct Spinner(ProgressBar);

impl Default for Spinner {
    fn default() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Self(bar)
    }
}

impl Spinner {
    /// Puts `line` beside the sign.
    pub fn show(&self, line: impl Display) {
        self.0.set_message(Escaped(line).to_string());
        self.0.tick();
    }

    /// Prints a line that stays, above the sign.
    pub fn say(&self, line: impl Display) {
        self.0.println(Escaped(line).to_string());
    }

    /// Takes the sign away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Several bars, one below the other.
pub struct Bars {
    screen: MultiProgress,
    style: ProgressStyle,
}

/// One bar of [`Bars`]; a copy is the same bar.
#[derive(Clone)]
pub struct Row(ProgressBar);

impl Default for Bars {
    fn default() -> Self {
        let style = ProgressStyle::with_template("  {prefix:27} {bar:24.cyan/dim} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("━╸─");
        Self { screen: MultiProgress::new(), style }
    }
}

impl Bars {
    /// Adds a bar called `name` that is full at `whole`.
    pub fn add(&self, name: impl Display, whole: u64) -> Row {
        let bar = self.screen.add(ProgressBar::new(whole));
        bar.set_style(self.style.clone());
        bar.set_prefix(Escaped(name).to_string());
        Row(bar)
    }
}

impl Row {
    /// Shows the position and the text beside the bar.
    pub fn show(&self, at: u64, line: impl Display) {
        self.0.set_position(at);
        self.0.set_message(Escaped(line).to_string());
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
