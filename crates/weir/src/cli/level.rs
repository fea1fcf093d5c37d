//! `weir level`.

use super::pool::{allowing, dry};
use super::{Global, Output, connect, print, values};
use anyhow::Result;
use clap::{Args, Subcommand};
use weir_api::{Client, Level, LevelChange, NewLevel};
use weir_core::units::Rate;

/// Create, show, change and delete service levels.
#[derive(Subcommand)]
pub(crate) enum LevelCommand {
    /// Create a custom service level
    ///
    /// A level defines the throughput that each TiB of a pool provides, and optionally the most
    /// that one volume has, however large its quota is. The levels standard (16 MiB/s per TiB),
    /// premium (64), ultra (128) and extreme (128) are built in and cannot be changed.
    Create(Create),
    /// List all levels, built-in and custom
    List,
    /// Show one level
    Show {
        /// Name of the level
        level: String,
    },
    /// Change the throughput per TiB, or the volume ceiling, of a custom level
    ///
    /// The change takes effect immediately in all pools that use the level; clients stay connected.
    /// In auto pools the limits of all volumes are recalculated. In manual pools they are
    /// unchanged; a rate too low for the limits already assigned is refused, and the error names
    /// the lowest possible rate. A volume ceiling lowers the limit of each volume that has more.
    Set(Set),
    /// Delete a custom level that no pool uses
    Delete {
        /// Name of the level
        level: String,
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir level create elastic --rate 32MiB/s
  weir level create large --rate 128MiB/s --volume-ceiling 4500MiB/s
  weir pool create shared --level elastic --size 10TiB")]
pub(crate) struct Create {
    /// Name of the level: 1 to 64 characters of A-Z a-z 0-9 . _ -
    level: String,
    /// Throughput per TiB, such as 32MiB/s; at most 1TiB/s
    #[arg(long, value_parser = values::rate)]
    rate: u64,
    /// The most that one volume has in auto, manual and shared pools, such as 4500MiB/s
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    volume_ceiling: Option<u64>,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir level set elastic --rate 48MiB/s --dry-run
  weir level set elastic --rate 48MiB/s
  weir level set large --volume-ceiling none")]
pub(crate) struct Set {
    /// Name of the level
    level: String,
    /// Throughput per TiB, such as 48MiB/s; at most 1TiB/s
    #[arg(long, value_parser = values::rate, required_unless_present = "volume_ceiling")]
    rate: Option<u64>,
    /// The most that one volume has in auto, manual and shared pools, such as 4500MiB/s; `none`
    /// removes it
    #[arg(long, value_name = "RATE", value_parser = values::ceiling_rate)]
    volume_ceiling: Option<values::Ceiling>,
    /// Allow the change even if it commits more than the measured capacity (`weir capacity`)
    #[arg(long)]
    overcommit: bool,
    /// Show the effect on each volume, without making the change
    #[arg(long)]
    dry_run: bool,
}

/// Runs `command`.
pub(crate) async fn run(global: &Global, command: &LevelCommand) -> Result<()> {
    let client = connect::client(global)?;
    let output = global.output;
    match command {
        LevelCommand::Create(Create { level, rate, volume_ceiling, dry_run }) => {
            let new = NewLevel {
                name: level.clone(),
                bytes_per_second_per_tib: *rate,
                volume_ceiling_bytes_per_second: *volume_ceiling,
            };
            let changed = client.create_level(&new, dry(*dry_run)).await?;
            print::changed(output, &changed, &described(level, changed.item.as_ref()))
        }
        LevelCommand::List => list(&client, output).await,
        LevelCommand::Show { level } => show(&client, output, level).await,
        LevelCommand::Set(Set { level, rate, volume_ceiling, overcommit, dry_run }) => {
            let client = allowing(&client, *overcommit);
            let change = LevelChange {
                bytes_per_second_per_tib: *rate,
                volume_ceiling_bytes_per_second: volume_ceiling.map(|most| most.0),
            };
            let changed = client.change_level(level, &change, dry(*dry_run)).await?;
            print::changed(output, &changed, &described(level, changed.item.as_ref()))
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
            level.name.clone(),
            Rate(level.bytes_per_second_per_tib).to_string(),
            ceiling(&level),
            kind(level.published).to_owned(),
            level.pools.to_string(),
        ]
    };
    print::table(
        &["name", "per TiB", "volume ceiling", "kind", "pools"],
        levels.into_iter().map(row),
    )
}

async fn show(client: &Client, output: Output, name: &str) -> Result<()> {
    let level = client.level(name).await?;
    if output == Output::Json {
        return print::json(&level);
    }
    print::fields(&[
        ("name", level.name.clone()),
        ("per TiB", Rate(level.bytes_per_second_per_tib).to_string()),
        ("volume ceiling", ceiling(&level)),
        ("kind", kind(level.published).to_owned()),
        ("pools", level.pools.to_string()),
    ])
}

const fn kind(published: bool) -> &'static str {
    if published { "built-in" } else { "custom" }
}

fn ceiling(level: &Level) -> String {
    let most = level.volume_ceiling_bytes_per_second;
    most.map_or_else(|| "–".to_owned(), |most| Rate(most).to_string())
}

fn described(name: &str, level: Option<&Level>) -> String {
    let Some(level) = level else { return format!("level {name} changed") };
    let rate = Rate(level.bytes_per_second_per_tib);
    match level.volume_ceiling_bytes_per_second {
        None => format!("level {name}: {rate} per TiB"),
        Some(most) => format!("level {name}: {rate} per TiB, volume ceiling {}", Rate(most)),
    }
}
