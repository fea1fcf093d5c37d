//! `weir completions`: shell completion scripts, generated from the definition of the command line.
//! Names of pools and volumes are not completed.

use super::Cli;
use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use weir_report::terminal::document;

/// Print a shell completion script.
///
/// The Debian package installs the scripts for bash, zsh and fish.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  source <(weir completions bash)
  weir completions bash > ~/.local/share/bash-completion/completions/weir
  weir completions fish > ~/.config/fish/completions/weir.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell to generate the script for
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weir", &mut script);
    Ok(document(&String::from_utf8(script)?)?)
}
