//! `weir share`: which users may connect to the SMB share of a volume, and from where; and the
//! options for shares, common to `weir volume create` and `weir volume set`.

use super::pool::dry;
use super::{Global, Output, connect, print, values};
use anyhow::Result;
use clap::{Args, Subcommand};
use weir_api::{Changed, Protocol, ShareAccess, ShareRule, SharingChange, Volume};

/// Manage share rules: which users may connect to the SMB share of a volume, and from where.
#[derive(Subcommand)]
pub(crate) enum ShareCommand {
    /// List the share rules of a volume, in the order in which they are evaluated
    List {
        /// Name of the volume
        volume: String,
    },
    /// Add a share rule
    ///
    /// Of the rules that match the client's address and the user, those with the most specific
    /// network apply; of these, a rule for the user goes before rules for the user's groups, and
    /// these before a rule for every user. If several groups of the user have a rule, the most
    /// permissive one applies. A user who matches no rule has no access. File permissions apply in
    /// addition.
    Add(Rule),
    /// Replace all share rules with one rule
    Set(Rule),
    /// Remove a share rule
    #[command(after_long_help = "\
Examples:
  weir share remove home --network 10.0.0.0/8 --group staff
  weir share remove home --network any              # the rule for every user from any network")]
    Remove {
        /// Name of the volume
        volume: String,
        #[command(flatten)]
        clients: Clients,
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
}

/// A share rule.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir share add home --network 10.0.0.0/8 --group staff
  weir share add home --network any --user alice --access ro
  weir share add home --network 10.1.0.0/16 --access none")]
pub(crate) struct Rule {
    /// Name of the volume
    volume: String,
    #[command(flatten)]
    clients: Clients,
    /// Access: ro (read-only), rw (read and write) or none (the connection is refused)
    #[arg(long, default_value = "rw")]
    access: ShareAccess,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

/// The clients of a share rule.
#[derive(Args)]
pub(crate) struct Clients {
    /// Client network such as 10.0.0.0/8 or fd00::/8, a single address, or any
    #[arg(long)]
    network: String,
    /// User that the rule applies to [default: every user]
    #[arg(long, conflicts_with = "group")]
    user: Option<String>,
    /// Group whose users the rule applies to
    #[arg(long)]
    group: Option<String>,
}

impl Clients {
    fn rule(&self, access: ShareAccess) -> ShareRule {
        let (user, group) = (self.user.clone(), self.group.clone());
        ShareRule { network: self.network.clone(), user, group, access }
    }
}

/// The protocols and the share of a volume to create or to change. The options are in the group of
/// the terms, of which `weir volume set` needs at least one.
#[derive(Args)]
#[group(id = "sharing")]
pub(crate) struct SharingArgs {
    /// Protocols by which clients reach the volume: nfs, smb or nfs,smb; by default nfs. The name
    /// of the share is the name of the volume. When SMB is added, every user may connect from the
    /// server's own machine, until share rules are added (`weir share`)
    #[arg(long, group = "terms", value_name = "PROTOCOL", value_delimiter = ',')]
    protocols: Option<Vec<Protocol>>,
    /// Require encryption of all SMB requests to the volume: on or off, the default
    #[arg(long, group = "terms", value_name = "STATE", value_parser = values::switch)]
    smb_encrypt: Option<bool>,
    /// Omit the share from lists of shares: on or off, the default
    #[arg(long, group = "terms", value_name = "STATE", value_parser = values::switch)]
    smb_hidden: Option<bool>,
    /// Access-based enumeration: omit files that a user may not read from lists over SMB: on or
    /// off, the default
    #[arg(long, group = "terms", value_name = "STATE", value_parser = values::switch)]
    smb_abe: Option<bool>,
}

impl SharingArgs {
    /// The protocols and the share for a request.
    pub(crate) fn change(&self) -> SharingChange {
        SharingChange {
            protocols: self.protocols.clone(),
            smb_encrypt: self.smb_encrypt,
            smb_hidden: self.smb_hidden,
            smb_abe: self.smb_abe,
        }
    }
}

/// Runs `command`.
pub(crate) async fn run(global: &Global, command: &ShareCommand) -> Result<()> {
    let client = connect::client(global)?;
    let changed = match command {
        ShareCommand::List { volume } => {
            let rules = client.share_rules(volume).await?;
            return match global.output {
                Output::Json => print::json(&rules),
                Output::Table => print_rules(&rules),
            };
        }
        ShareCommand::Add(Rule { volume, clients, access, dry_run }) => {
            client.add_share_rule(volume, &clients.rule(*access), dry(*dry_run)).await?
        }
        ShareCommand::Set(Rule { volume, clients, access, dry_run }) => {
            client.set_share_rules(volume, &[clients.rule(*access)], dry(*dry_run)).await?
        }
        ShareCommand::Remove { volume, clients, dry_run } => {
            let rule = clients.rule(ShareAccess::None);
            client.remove_share_rule(volume, &rule, dry(*dry_run)).await?
        }
    };
    report(global.output, &changed)
}

fn report(output: Output, changed: &Changed<Volume>) -> Result<()> {
    let name = changed.item.as_ref().map(|volume| volume.name.as_str()).unwrap_or_default();
    print::changed(output, changed, &format!("share rules of volume {name}:"))?;
    match (&changed.item, output) {
        (Some(volume), Output::Table) => print_rules(&volume.share_rules),
        _ => Ok(()),
    }
}

/// Prints rules as a table.
pub(crate) fn print_rules(rules: &[ShareRule]) -> Result<()> {
    let row = |rule: &ShareRule| {
        let users = match (&rule.user, &rule.group) {
            (Some(user), _) => format!("user {user}"),
            (None, Some(group)) => format!("group {group}"),
            (None, None) => "every user".to_owned(),
        };
        vec![rule.network.clone(), users, rule.access.to_string()]
    };
    print::table(&["network", "users", "access"], rules.iter().map(row))
}
