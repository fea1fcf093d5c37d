//! Asking before data is destroyed.

use super::print;
use anyhow::Result;
use std::io::{BufRead, IsTerminal};
use weir_report::terminal;

/// Passes where there is somebody to ask.
///
/// # Errors
/// A usage error without a terminal.
pub(crate) fn possible() -> Result<()> {
    if std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(print::usage("deleting a volume destroys its files: confirm with --yes"))
}

/// Passes if whoever sits at the terminal types the volume's name; `held` is what would go.
///
/// # Errors
/// For any other answer.
pub(crate) fn deletion(volume: &str, held: &str) -> Result<()> {
    terminal::ask(format_args!(
        "This destroys volume {volume} with all its data ({held}). Type the name of the volume to continue:"
    ))?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() == volume {
        return Ok(());
    }
    anyhow::bail!("not deleted")
}
