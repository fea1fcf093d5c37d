//! `weir group`.

use super::pool::dry;
use super::{Global, Output, connect, print};
use anyhow::Result;
use clap::{Args, Subcommand};
use weir_api::{Client, Group, NewGroup};

/// Create, show and delete groups of users, and change their members.
#[derive(Subcommand)]
pub(crate) enum GroupCommand {
    /// Create a group without members
    #[command(after_long_help = "\
Examples:
  weir group create staff --gid 50
  weir group add staff alice")]
    Create {
        /// Name of the group, as an account name in Windows: 1 to 64 characters
        group: String,
        /// Group ID on files
        #[arg(long)]
        gid: u32,
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
    /// List all groups
    List,
    /// Show one group with its members
    Show {
        /// Name of the group
        group: String,
    },
    /// Add a user to a group
    Add(Member),
    /// Remove a user from a group
    Remove(Member),
    /// Delete a group; its users and files are not changed
    Delete {
        /// Name of the group
        group: String,
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Args)]
pub(crate) struct Member {
    /// Name of the group
    group: String,
    /// Name of the user
    user: String,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

/// Runs `command`.
pub(crate) async fn run(global: &Global, command: &GroupCommand) -> Result<()> {
    let client = connect::client(global)?;
    let output = global.output;
    let changed = match command {
        GroupCommand::List => return list(&client, output).await,
        GroupCommand::Show { group } => return show(&client, output, group).await,
        GroupCommand::Delete { group, dry_run } => {
            let changed = client.delete_group(group, dry(*dry_run)).await?;
            let done = match dry_run {
                true => format!("group {group} would be deleted"),
                false => format!("group {group} deleted"),
            };
            return print::changed(output, &changed, &done);
        }
        GroupCommand::Create { group, gid, dry_run } => {
            let new = NewGroup { name: group.clone(), gid: *gid };
            client.create_group(&new, dry(*dry_run)).await?
        }
        GroupCommand::Add(Member { group, user, dry_run }) => {
            client.add_member(group, user, dry(*dry_run)).await?
        }
        GroupCommand::Remove(Member { group, user, dry_run }) => {
            client.remove_member(group, user, dry(*dry_run)).await?
        }
    };
    let done = changed.item.as_ref().map(described).unwrap_or_default();
    print::changed(output, &changed, &done)
}

async fn list(client: &Client, output: Output) -> Result<()> {
    let groups = client.groups().await?;
    if output == Output::Json {
        return print::json(&groups);
    }
    let row =
        |group: Group| vec![group.name, group.gid.to_string(), group.members.len().to_string()];
    print::table(&["name", "gid", "members"], groups.into_iter().map(row))
}

async fn show(client: &Client, output: Output, name: &str) -> Result<()> {
    let group = client.group(name).await?;
    if output == Output::Json {
        return print::json(&group);
    }
    print::fields(&[
        ("name", group.name),
        ("gid", group.gid.to_string()),
        ("members", group.members.join(", ")),
        ("SID", group.sid),
    ])
}

fn described(group: &Group) -> String {
    let Group { name, gid, members, .. } = group;
    format!("group {name}: gid {gid}, {} member(s)", members.len())
}
