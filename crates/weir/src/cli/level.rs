//! `weir level`.

use super::pool::{allowing, dry};
use super::{Global, Output, connect, print, values};
use anyhow::Result;
use clap::{Args, Subcommand};
use weir_api::{Client, Level, LevelChange, NewLevel};
use weir_core::units::Rate;

/// Make, show, change and delete service levels.
#[derive(Subcommand)]
pub(crate) enum LevelCommand {
    /// Make a service level of your own
    ///
    /// A level says what each TiB of a pool buys. Standard (16 MiB/s for each TiB), premium (64),
    /// ultra (128) and extreme (128) are there always, and nobody changes them.
    Create(Create),
    /// List all levels, the published and your own
    List,
    /// Show one level
    Show {
        /// Its name
        level: String,
    },
    /// Change what each TiB buys at a level of your own
    ///
    /// In force at once in all pools that have the level; nobody is disconnected. In auto pools the
    /// limits of all volumes follow. In manual pools they stay; a level that would not
    /// carry them is refused, with the least that would.
    Set(Set),
    /// Delete a level of your own that no pool has
    Delete {
        /// Its name
        level: String,
        /// Only show what would be done
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir level create elastic --rate 32MiB/s
  weir pool create shared --level elastic --size 10TiB")]
pub(crate) struct Create {
    /// Its name: 1 to 64 of A-Z a-z 0-9 . _ -
    level: String,
    /// What each TiB buys, such as 32MiB/s: at most 1TiB/s
    #[arg(long, value_parser = values::rate)]
    rate: u64,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir level set elastic --rate 48MiB/s --dry-run
  weir level set elastic --rate 48MiB/s")]
pub(crate) struct Set {
    /// Its name
    level: String,
    /// What each TiB is to buy, such as 48MiB/s: at most 1TiB/s
    #[arg(long, value_parser = values::rate)]
    rate: u64,
    /// Also where it commits disks to more than they were measured to hold (`weir capacity`)
    #[arg(long)]
    overcommit: bool,
    /// Only show what would change, for each volume
    #[arg(long)]
    dry_run: bool,
}

/// Does as `command` says.
pub(crate) async fn run(global: &Global, command: &LevelCommand) -> Result<()> {
    let client = connect::client(global)?;
    let output = global.output;
    match command {
        LevelCommand::Create(Create { level, rate, dry_run }) => {
            let new = NewLevel { name: level.clone(), bytes_per_second_per_tib: *rate };
            let changed = client.create_level(&new, dry(*dry_run)).await?;
            print::changed(output, &changed, &described(level, *rate))
        }
        LevelCommand::List => list(&client, output).await,
        LevelCommand::Show { level } => show(&client, output, level).await,
        LevelCommand::Set(Set { level, rate, overcommit, dry_run }) => {
            let client = allowing(&client, *overcommit);
            let change = LevelChange { bytes_per_second_per_tib: *rate };
            let changed = client.change_level(level, &change, dry(*dry_run)).await?;
            print::changed(output, &changed, &described(level, *rate))
        }
        LevelCommand::Delete { level, dry_run } => {
            let changed = client.delete_level(level, dry(*dry_run)).await?;
            print::changed(output, &changed, &format!("level {level} deleted"))
        }
    }
}

async fn list(client: &Client, output: Output) -> Result<()> {
    let levels = client.levels().await?;
    if output == Output::Json {
        return print::json(&levels);
    }
    let row = |level: Level| {
        vec![
            level.name,
            Rate(level.bytes_per_second_per_tib).to_string(),
            kind(level.published).to_owned(),
            level.pools.to_string(),
        ]
    };
    print::table(&["name", "per TiB", "kind", "pools"], levels.into_iter().map(row))
}

async fn show(client: &Client, output: Output, name: &str) -> Result<()> {
    let level = client.level(name).await?;
    if output == Output::Json {
        return print::json(&level);
    }
    print::fields(&[
        ("name", level.name),
        ("per TiB", Rate(level.bytes_per_second_per_tib).to_string()),
        ("kind", kind(level.published).to_owned()),
        ("pools", level.pools.to_string()),
    ])
}

const fn kind(published: bool) -> &'static str {
    if published { "published" } else { "own" }
}

fn described(name: &str, rate: u64) -> String {
    format!("level {name}: {} for each TiB", Rate(rate))
}
