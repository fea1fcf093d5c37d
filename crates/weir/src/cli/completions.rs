//! `weir completions`: what a shell needs to complete commands and options, made from the
//! definition of the command line. Names of pools and volumes are not completed.

use super::Cli;
use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use weir_bench::terminal::document;

/// Print what a shell needs to complete weir's commands and options.
///
/// The Debian package brings it for bash, zsh and fish.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  source <(weir completions bash)
  weir completions bash > ~/.local/share/bash-completion/completions/weir
  weir completions fish > ~/.config/fish/completions/weir.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints them.
pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weir", &mut script);
    Ok(document(&String::from_utf8(script)?)?)
}
