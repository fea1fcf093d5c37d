//! `weir completions`: shell completion scripts, generated from the definition of the command line.
//! Names of pools and volumes are not completed.

use super::Cli;
use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;
use std::sync::LazyLock;
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

/// The whole command line. Names of a static value can be used in another command.
static COMMAND: LazyLock<Command> = LazyLock::new(Cli::described);

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut visible(&COMMAND), "weir", &mut script);
    Ok(document(&String::from_utf8(script)?)?)
}

/// The command without hidden options and subcommands, which the generator would complete.
fn visible(command: &'static Command) -> Command {
    Command::new(command.get_name())
        .about(command.get_about().cloned().unwrap_or_default())
        .version(command.get_version().unwrap_or_default())
        .disable_version_flag(command.get_version().is_none())
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()))
        .subcommands(command.get_subcommands().filter(|one| !one.is_hide_set()).map(visible))
}
