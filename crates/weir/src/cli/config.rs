//! `weir config`: shows and explains the configuration of `weir serve`.

use super::serve::ConfigArgs;
use super::{Global, Output, print};
use anyhow::Result;
use clap::Subcommand;
use serde_json::json;
use weir_control::ServerConfig;
use weir_control::config::{KEYS, Key};
use weir_report::terminal::document;

/// Show or explain the configuration of `weir serve`.
#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the configuration that `weir serve` would use with the same options, as a TOML file
    Show(Box<ConfigArgs>),
    /// List the keys of the configuration file with their meanings
    Keys,
    /// Print a configuration file with every key, its meaning and its default value
    #[command(after_long_help = "\
Examples:
  weir config template > /etc/weir/weir.toml")]
    Template,
}

/// Runs `command`.
pub(crate) fn run(global: &Global, command: &ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Show(args) => {
            let toml = args.load(global)?.to_toml();
            match global.output {
                Output::Table => Ok(document(&toml)?),
                Output::Json => print::json(&toml::from_str::<serde_json::Value>(&toml)?),
            }
        }
        ConfigCommand::Template => Ok(document(&ServerConfig::template())?),
        ConfigCommand::Keys => {
            let row = |key: &Key| vec![key.name.to_owned(), key.meaning.to_owned()];
            let object = |key: &Key| json!({ "key": key.name, "meaning": key.meaning });
            match global.output {
                Output::Table => print::table(&["key", "meaning"], KEYS.iter().map(row)),
                Output::Json => print::json(&KEYS.iter().map(object).collect::<Vec<_>>()),
            }
        }
    }
}
