//! `weir export`: which clients may mount a volume, and with which identity.

use super::pool::dry;
use super::{Global, Output, connect, print};
use anyhow::Result;
use clap::{Args, Subcommand};
use weir_api::{Access, Changed, ExportRule, Squash, Volume};

/// Manage export rules: which clients may mount a volume, and with which identity.
#[derive(Subcommand)]
pub(crate) enum ExportCommand {
    /// List the export rules of a volume, in the order in which they are evaluated
    List {
        /// Name of the volume
        volume: String,
    },
    /// Add an export rule
    ///
    /// If several rules match a client's address, the rule with the most specific network applies.
    /// A client that matches no rule has no access.
    Add(Rule),
    /// Replace all export rules with one rule
    Set(Rule),
    /// Remove the export rule of a network
    Remove {
        /// Name of the volume
        volume: String,
        /// Network of the rule to remove
        #[arg(long)]
        network: String,
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
}

/// An export rule for the clients of one network.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir export add home --network 10.0.0.0/8 --access rw --squash root
  weir export set home --network fd00::/8 --access ro --squash all --anon-uid 1000 --anon-gid 1000")]
pub(crate) struct Rule {
    /// Name of the volume
    volume: String,
    /// Client network such as 10.0.0.0/8 or fd00::/8, or a single address
    #[arg(long)]
    network: String,
    /// Access: ro (read-only) or rw (read and write)
    #[arg(long, default_value = "rw")]
    access: Access,
    /// Users mapped to the anonymous user: none, root or all
    #[arg(long, default_value = "root")]
    squash: Squash,
    /// User ID of the anonymous user
    #[arg(long, value_name = "UID", default_value_t = 65534)]
    anon_uid: u32,
    /// Group ID of the anonymous user
    #[arg(long, value_name = "GID", default_value_t = 65534)]
    anon_gid: u32,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

impl Rule {
    fn rule(&self) -> ExportRule {
        ExportRule {
            network: self.network.clone(),
            access: self.access,
            squash: self.squash,
            anon_uid: self.anon_uid,
            anon_gid: self.anon_gid,
        }
    }
}

/// Runs `command`.
pub(crate) async fn run(global: &Global, command: &ExportCommand) -> Result<()> {
    let client = connect::client(global)?;
    let changed = match command {
        ExportCommand::List { volume } => {
            let rules = client.exports(volume).await?;
            return match global.output {
                Output::Json => print::json(&rules),
                Output::Table => print_rules(&rules),
            };
        }
        ExportCommand::Add(args) => {
            client.add_export(&args.volume, &args.rule(), dry(args.dry_run)).await?
        }
        ExportCommand::Set(args) => {
            client.set_exports(&args.volume, &[args.rule()], dry(args.dry_run)).await?
        }
        ExportCommand::Remove { volume, network, dry_run } => {
            client.remove_export(volume, network, dry(*dry_run)).await?
        }
    };
    report(global.output, &changed)
}

fn report(output: Output, changed: &Changed<Volume>) -> Result<()> {
    let name = changed.item.as_ref().map(|volume| volume.name.as_str()).unwrap_or_default();
    print::changed(output, changed, &format!("export rules of volume {name}:"))?;
    match (&changed.item, output) {
        (Some(volume), Output::Table) => print_rules(&volume.exports),
        _ => Ok(()),
    }
}

/// Prints rules as a table.
pub(crate) fn print_rules(rules: &[ExportRule]) -> Result<()> {
    let row = |rule: &ExportRule| {
        let ids = format!("{}:{}", rule.anon_uid, rule.anon_gid);
        vec![rule.network.clone(), rule.access.to_string(), rule.squash.to_string(), ids]
    };
    print::table(&["network", "access", "squash", "anonymous"], rules.iter().map(row))
}
