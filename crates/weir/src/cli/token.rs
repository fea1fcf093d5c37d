//! `weir token`: access to the API over TCP.

use super::{Global, Output, connect, print, values};
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use weir_api::{NewToken, Role, Token};

/// Create, list and revoke API tokens.
#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token, and print its secret once
    ///
    /// Anyone who has the secret can call the API over TCP with the role of the token. The server
    /// stores only a hash: a lost secret cannot be recovered, so create another token and revoke
    /// this one. Use a separate token for each person or program: the audit log identifies the
    /// caller by the name of the token.
    Create(Create),
    /// List all tokens except api.token in the data directory
    List,
    /// Revoke a token with immediate effect
    Revoke {
        /// Name of the token
        token: String,
    },
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir token create grafana --role viewer
  weir token create ci --role operator --expires 90d > ci.token
  weir --server http://127.0.0.1:7437 --token-file ci.token volume list")]
pub(crate) struct Create {
    /// Name of the token: 1 to 64 characters of A-Z a-z 0-9 . _ -
    token: String,
    /// Role: viewer (read objects and metrics), operator (also change levels, pools, volumes and
    /// exports) or admin (also tokens, backups and the audit log)
    #[arg(long)]
    role: Role,
    /// Expiry: a duration such as 90d or 12h, or a time such as 2027-01-31T00:00:00Z [default:
    /// never]
    #[arg(long, value_name = "WHEN", value_parser = values::end)]
    expires: Option<String>,
}

/// Runs `command`.
pub(crate) async fn run(global: &Global, command: &TokenCommand) -> Result<()> {
    let client = connect::client(global)?;
    match command {
        TokenCommand::Create(Create { token, role, expires }) => {
            let new = NewToken { name: token.clone(), role: *role, expires: expires.clone() };
            let made = client.create_token(&new).await?;
            if global.output == Output::Json {
                return print::json(&made);
            }
            // The secret alone on standard output, so that it can go into a file.
            let Token { name, role, expires, .. } = &made.token;
            let end = expires.as_deref().unwrap_or("never");
            weir_report::errln!(
                "token {name}: {role}, expires: {end}. The secret is shown only once:"
            );
            print::line(&made.secret)
        }
        TokenCommand::List => {
            let tokens = client.tokens().await?;
            if global.output == Output::Json {
                return print::json(&tokens);
            }
            let row = |token: Token| {
                let end = token.expires.unwrap_or_else(|| "never".to_owned());
                vec![token.name, token.role.to_string(), token.created, end]
            };
            print::table(&["name", "role", "created", "expires"], tokens.into_iter().map(row))
        }
        TokenCommand::Revoke { token } if token == "api.token" => bail!(
            "api.token is the token of the data directory: to replace it, stop the server, remove the file, and start the server"
        ),
        TokenCommand::Revoke { token } => {
            let gone = client.revoke_token(token).await?;
            match global.output {
                Output::Json => print::json(&gone),
                Output::Table => print::line(format_args!("token {token} revoked")),
            }
        }
    }
}
