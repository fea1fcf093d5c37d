//! Running other programs: their output as text, or passed on.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// The output of `program`; an error with its complaint if it fails.
pub(crate) fn output(program: &str, args: &[&str]) -> Result<String> {
    let done =
        Command::new(program).args(args).output().with_context(|| format!("running {program}"))?;
    if !done.status.success() {
        bail!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(String::from_utf8(done.stdout)?)
}

/// Runs `command` with its output passed on; `true` if it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> Result<bool> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("running {shown}"))?;
    Ok(status.success())
}

/// Is there a program of this name on the search path, or, if it has a slash, at this path?
pub(crate) fn exists(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}
