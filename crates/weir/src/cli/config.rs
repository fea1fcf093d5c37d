//! `weir config`: the configuration of `weir serve`, shown and explained.

use super::serve::ConfigArgs;
use super::{Global, print};
use anyhow::Result;
use clap::Subcommand;
use weir_server::config::KEYS;

/// Show or explain the configuration of `weir serve`.
#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print, as a file, the configuration that `weir serve` with the same options would have
    Show(Box<ConfigArgs>),
    /// List the keys of the file with their meanings
    Keys,
}

/// Does as `command` says.
pub(crate) fn run(global: &Global, command: &ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Show(args) => print::text(&args.load(global)?.to_toml()),
        ConfigCommand::Keys => {
            let row =
                |key: &weir_server::config::Key| vec![key.name.to_owned(), key.meaning.to_owned()];
            print::table(&["key", "meaning"], KEYS.iter().map(row))
        }
    }
}
