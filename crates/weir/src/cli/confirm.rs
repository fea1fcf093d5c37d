//! Asking before data is destroyed, or may be.

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

/// Passes if whoever sits at the terminal types the name of the gateway, of which no process runs.
///
/// # Errors
/// A usage error without a terminal, and for any other answer.
pub(crate) fn certainty(gateway: &str) -> Result<()> {
    if !std::io::stdin().is_terminal() {
        let told = "declaring a gateway gone while it runs destroys files: confirm with --yes";
        return Err(print::usage(told));
    }
    terminal::ask(format_args!(
        "If a process of gateway {gateway} still runs, files can be destroyed. Type the name of the gateway to continue:"
    ))?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() == gateway {
        return Ok(());
    }
    anyhow::bail!("not declared")
}
