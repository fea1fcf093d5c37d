//! The one door to standard output and standard error for everything that people read. `cargo xtask
//! tidy` finds printing beside it.
//!
//! Values come from outside: names, paths, messages of servers and other processes, files. They
//! must neither command a terminal nor make lines of their own. So what is printed is made of
//! lines, and only this module ends a line: whatever is formatted into one, a value or our own
//! words, is escaped ([`weir_core::text::Escaped`]), ends of lines included. Tables are laid out
//! here too, of cells that are escaped before, and so are colours and everything else that does
//! command a terminal: lines that change ([`Status`]), bars ([`Bars`], [`Spinner`]) and whole
//! screens ([`Screen`]).
//!
//! Not here: the log of the server, which has a format of its own.

mod bars;
mod grid;
mod screen;

pub use bars::{Bars, Row, Spinner};
pub use grid::Grid;
pub use screen::Screen;

use rustix::termios::tcgetwinsize;
use serde::Serialize;
use std::fmt::{self, Display, Write as _};
use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::ops::Deref;
use std::os::fd::AsFd;
use weir_core::text::{Escaped, Escaping, commands, escaped_json};

/// Prints a line to standard output, formatted as by `println!`. That nobody reads it is no
/// failure.
#[macro_export]
macro_rules! outln {
    ($($arg:tt)*) => { $crate::terminal::out(format_args!($($arg)*)) };
}

/// Prints a line to standard error, formatted as by `eprintln!`. That nobody reads it is no
/// failure.
#[macro_export]
macro_rules! errln {
    ($($arg:tt)*) => { $crate::terminal::say(format_args!($($arg)*)) };
}

/// Lines that are safe to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// A text without lines.
    #[must_use]
    pub const fn new() -> Self {
        Self(String::new())
    }

    /// Adds one line: ends of lines in `line` are escaped.
    pub fn line(&mut self, line: impl Display) {
        // Writing to a string can't fail; a value that fails to format is cut off.
        let _never = write!(Escaping(&mut self.0), "{line}");
        self.0.push('\n');
    }

    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.0.push('\n');
    }

    /// Adds the lines of `other`.
    pub fn append(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }

    /// The lines, each with its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<L: Display> FromIterator<L> for Text {
    fn from_iter<I: IntoIterator<Item = L>>(lines: I) -> Self {
        let mut text = Self::new();
        lines.into_iter().for_each(|line| text.line(line));
        text
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Is standard output a terminal?
#[must_use]
pub fn shows_output() -> bool {
    io::stdout().is_terminal()
}

/// Is standard error a terminal?
#[must_use]
pub fn shows_errors() -> bool {
    io::stderr().is_terminal()
}

/// The columns of the terminal that standard output is.
pub(crate) fn columns_of_output() -> Option<u16> {
    columns_of(io::stdout())
}

/// The columns of a terminal; `None` if it is none, or does not know: a pseudo-terminal that nobody
/// gave a size has 0.
fn columns_of(terminal: impl AsFd) -> Option<u16> {
    tcgetwinsize(terminal).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
}

/// Prints lines to standard output. A reader that has gone away (`| head`) is no failure.
///
/// # Errors
/// The error of the write.
pub fn print(text: &Text) -> io::Result<()> {
    put(text.as_str())
}

/// Prints one line to standard output.
///
/// # Errors
/// The error of the write.
pub fn line(line: impl Display) -> io::Result<()> {
    print(&Text::from_iter([line]))
}

/// Prints one line like [`line()`], for a program that can do nothing about a failure. [`outln!`]
/// uses it.
pub fn out(it: impl Display) {
    // There is nowhere left to report the failure.
    drop(line(it));
}

/// Prints lines like [`print()`], for a program that can do nothing about a failure.
pub fn show(text: &Text) {
    drop(print(text));
}

/// Prints one line to standard error. Nobody may be reading it any more (`… 2>&1 | head`): that
/// must not end a run whose files are still at the target, as a panic would. [`errln!`] is made of
/// it.
pub fn say(line: impl Display) {
    line_to(&mut io::stderr().lock(), line);
}

fn line_to(to: &mut dyn Write, line: impl Display) {
    // One write call, so that lines of several threads don't mix. There is nowhere left to report a
    // failure.
    drop(to.write_all(Text::from_iter([line]).as_str().as_bytes()));
}

/// Asks for something on standard error, on a line that the answer goes on.
///
/// # Errors
/// The error of the write.
pub fn ask(question: impl Display) -> io::Result<()> {
    let mut to = io::stderr().lock();
    write!(to, "{} ", Escaped(question))?;
    to.flush()
}

/// Prints JSON over several lines to standard output.
///
/// # Errors
/// The error of the write, or of `value` if it can't be JSON.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    put(&(escaped_json(&serde_json::to_string_pretty(value)?) + "\n"))
}

/// Prints JSON on one line to standard output.
///
/// # Errors
/// The errors of [`json`].
pub fn json_line(value: &impl Serialize) -> io::Result<()> {
    put(&(escaped_json(&serde_json::to_string(value)?) + "\n"))
}

/// Prints lines to standard error, as [`say`] does one.
pub fn warn(lines: &Text) {
    drop(io::stderr().lock().write_all(lines.as_str().as_bytes()));
}

/// JSON on one line.
#[must_use]
pub fn json_text(value: &impl Serialize) -> Text {
    Text(escaped_json(&serde_json::to_string(value).unwrap_or_default()) + "\n")
}

/// Prints a document for another program to standard output: a configuration, a shell's
/// completions. The document has its own lines, so its author must see to it that no value ends
/// one. Characters not fit to be shown are escaped as in TOML.
///
/// # Errors
/// The error of the write.
pub fn document(document: &str) -> io::Result<()> {
    put(&of_document(document))
}

/// Prints clap's output for the command line: help, or an error, which may contain values of
/// `given`, the arguments and the environment. Its lines and colours are clap's, unless `given` has
/// characters not fit to be shown: then it is one line.
///
/// # Errors
/// The error of the write.
pub fn usage<'a>(error: &clap::Error, given: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
    if error.use_stderr() && given.into_iter().any(|text| text.contains(commands)) {
        say(error.render());
        return Ok(());
    }
    error.print()
}

fn of_document(document: &str) -> String {
    let mut safe = String::with_capacity(document.len());
    for letter in document.chars() {
        // Escapes of TOML strings, because a configuration's values are TOML strings.
        let _never = match (u32::from(letter), commands(letter)) {
            (_, true) if letter == '\n' || letter == '\t' => safe.write_char(letter),
            (code @ ..=0xffff, true) => write!(safe, "\\u{code:04x}"),
            (code, true) => write!(safe, "\\U{code:08x}"),
            (_, false) => safe.write_char(letter),
        };
    }
    safe
}

fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// A changing line on standard error, if that is a terminal.
#[derive(Debug)]
pub struct Status(bool);

impl Status {
    /// A status line that shows nothing unless `wanted` and standard error is a terminal.
    #[must_use]
    pub fn new(wanted: bool) -> Self {
        Self(wanted && shows_errors())
    }

    /// Puts `line` in place of the line shown.
    pub fn show(&self, line: impl Display) {
        if self.0 {
            drop(io::stderr().lock().write_all(status(line).as_bytes()));
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.show("");
    }
}

fn status(line: impl Display) -> String {
    format!("\r{}\x1b[K", Escaped(line))
}

#[cfg(test)]
mod tests;
