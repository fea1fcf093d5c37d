//! Asking before data is destroyed.

use super::print;
use anyhow::Result;
use std::io::{BufRead, IsTerminal, Write};

/// Passes if `yes` was given, or if whoever sits at the terminal types the volume's name.
///
/// # Errors
/// A usage error without `yes` and without a terminal; a plain one for any other answer.
pub(crate) fn deletion(volume: &str, yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(print::usage(
            "deleting a volume destroys its files: give --yes if you mean it",
        ));
    }
    eprint!("This destroys volume {volume} and all its files. Type its name to go on: ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    if answer.trim() == volume {
        return Ok(());
    }
    anyhow::bail!("not deleted")
}
