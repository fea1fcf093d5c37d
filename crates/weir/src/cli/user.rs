//! `weir user`.

use super::pool::dry;
use super::{Global, Output, connect, password, print};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use weir_api::{Client, Dry, NewPassword, NewUser, User, UserChange};

/// Create, show, change and delete users, who can log in over SMB.
#[derive(Subcommand)]
pub(crate) enum UserCommand {
    /// Create a user, and set the password
    ///
    /// The password is requested twice on the terminal, or is the first line of standard input. The
    /// server stores only its NT hash, encrypted with a key in the data directory. NFS clients
    /// identify users by their user ID and need no user here; a user with the same ID has the same
    /// files over both protocols.
    Create(Create),
    /// List all users
    List,
    /// Show one user
    Show {
        /// Name of the user
        user: String,
    },
    /// Change the name, the groups or the state of a user
    ///
    /// The user ID cannot be changed, because files belong to it.
    Set(Set),
    /// Set the password of a user
    ///
    /// The password is requested twice on the terminal, or is the first line of standard input.
    #[command(after_long_help = "\
Examples:
  weir user password alice
  weir user password backup < password.txt")]
    Password {
        /// Name of the user
        user: String,
    },
    /// Delete a user; files are not changed
    Delete {
        /// Name of the user
        user: String,
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir user create alice --uid 1000 --gid 1000
  weir user create backup --uid 2000 --group staff < password.txt")]
pub(crate) struct Create {
    /// Name of the user, as an account name in Windows: 1 to 64 characters
    user: String,
    /// User ID on files, not 0
    #[arg(long)]
    uid: u32,
    /// Group ID of the primary group [default: the user ID]
    #[arg(long)]
    gid: Option<u32>,
    /// Group that the user is added to; repeatable
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// Do not set a password: the user cannot log in until `weir user password` sets one
    #[arg(long)]
    no_password: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir user set alice --disable
  weir user set alice --name alice.smith --group staff --group admins
  weir user set alice --no-groups")]
#[command(override_usage = "weir user set [OPTIONS] <USER>")]
#[command(group(clap::ArgGroup::new("change").required(true).multiple(true)))]
pub(crate) struct Set {
    /// Name of the user
    user: String,
    /// New name
    #[arg(long, group = "change")]
    name: Option<String>,
    /// Group ID of the primary group
    #[arg(long, group = "change")]
    gid: Option<u32>,
    /// Group of the user; repeatable; replaces all groups
    #[arg(long = "group", group = "change", value_name = "GROUP")]
    groups: Vec<String>,
    /// Remove the user from all groups
    #[arg(long, group = "change", conflicts_with = "groups")]
    no_groups: bool,
    /// Allow logins
    #[arg(long, group = "change")]
    enable: bool,
    /// Refuse logins
    #[arg(long, group = "change", conflicts_with = "enable")]
    disable: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

impl Set {
    fn change(&self) -> UserChange {
        let some = |yes: bool, value: bool| yes.then_some(value);
        UserChange {
            name: self.name.clone(),
            gid: self.gid,
            groups: (self.no_groups || !self.groups.is_empty()).then(|| self.groups.clone()),
            enabled: some(self.enable, true).or(some(self.disable, false)),
        }
    }
}

/// Runs `command`.
pub(crate) async fn run(global: &Global, command: &UserCommand) -> Result<()> {
    let client = connect::client(global)?;
    let output = global.output;
    match command {
        UserCommand::Create(args) => create(&client, output, args).await,
        UserCommand::List => list(&client, output).await,
        UserCommand::Show { user } => show(&client, output, user).await,
        UserCommand::Set(set) => {
            let changed = client.change_user(&set.user, &set.change(), dry(set.dry_run)).await?;
            let done = changed.item.as_ref().map(described).unwrap_or_default();
            print::changed(output, &changed, &done)
        }
        UserCommand::Password { user } => {
            // Before the question: a user that doesn't exist needs no password.
            client.user(user).await?;
            let new = NewPassword { password: password::read(user)? };
            let changed = client.set_password(user, &new, Dry::No).await?;
            let done = changed.item.as_ref().map(described).unwrap_or_default();
            print::changed(output, &changed, &done)
        }
        UserCommand::Delete { user, dry_run } => {
            let changed = client.delete_user(user, dry(*dry_run)).await?;
            let done = match dry_run {
                true => format!("user {user} would be deleted"),
                false => format!("user {user} deleted"),
            };
            print::changed(output, &changed, &done)
        }
    }
}

async fn create(client: &Client, output: Output, args: &Create) -> Result<()> {
    let new = NewUser {
        name: args.user.clone(),
        uid: args.uid,
        gid: args.gid,
        groups: args.groups.clone(),
        enabled: true,
    };
    let password = match args.no_password || args.dry_run {
        true => None,
        false => {
            // Before the question, which would be for nothing otherwise.
            client.create_user(&new, Dry::Run).await?;
            Some(NewPassword { password: password::read(&args.user)? })
        }
    };
    let mut changed = client.create_user(&new, dry(args.dry_run)).await?;
    if let Some(password) = password {
        let set = client.set_password(&args.user, &password, Dry::No).await;
        changed = set.context("the user was created, but without the password")?;
    }
    let done = changed.item.as_ref().map(described).unwrap_or_default();
    print::changed(output, &changed, &done)
}

async fn list(client: &Client, output: Output) -> Result<()> {
    let users = client.users().await?;
    if output == Output::Json {
        return print::json(&users);
    }
    let row = |user: User| {
        vec![
            user.name,
            user.uid.to_string(),
            user.gid.to_string(),
            user.groups.join(", "),
            user.password.to_string(),
            state(user.enabled).to_owned(),
        ]
    };
    let header = ["name", "uid", "gid", "groups", "password", "state"];
    print::table(&header, users.into_iter().map(row))
}

async fn show(client: &Client, output: Output, name: &str) -> Result<()> {
    let user = client.user(name).await?;
    if output == Output::Json {
        return print::json(&user);
    }
    print::fields(&[
        ("name", user.name),
        ("uid", user.uid.to_string()),
        ("gid", user.gid.to_string()),
        ("groups", user.groups.join(", ")),
        ("password", user.password.to_string()),
        ("state", state(user.enabled).to_owned()),
        ("SID", user.sid),
    ])
}

const fn state(enabled: bool) -> &'static str {
    if enabled { "enabled" } else { "disabled" }
}

fn described(user: &User) -> String {
    let User { name, uid, gid, groups, enabled, password, .. } = user;
    let groups = match groups.as_slice() {
        [] => String::new(),
        groups => format!(", groups {}", groups.join(", ")),
    };
    format!("user {name}: uid {uid}, gid {gid}{groups}, {}, password: {password}", state(*enabled))
}
