//! The command line: one small file for each subcommand. The command line makes no decisions:
//! `serve` passes a configuration to the server, the other commands call the API of a running
//! server.

mod audit;
mod bench;
mod calibrate;
mod calibration;
mod catalog;
mod completions;
mod config;
mod confirm;
mod connect;
mod export;
mod gateway;
mod group;
mod health;
mod level;
mod log_fields;
mod logging;
mod man;
mod ownership;
mod password;
mod pool;
mod print;
mod reach;
mod report;
mod serve;
mod share;
mod size;
mod smb;
mod terms;
mod token;
mod top;
mod user;
mod values;
mod volume;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_api::Fingerprint;

/// Network file storage whose volumes keep a performance contract.
///
/// `weir serve` runs the server. The other commands talk to a running server: through the Unix
/// socket in its data directory, which only the owner of the directory can use (--data or
/// WEIR_DATA), or over TCP with a token (--server and --token-file).
///
/// Sizes and rates have a binary unit: 100GiB, 1.5TiB, 48MiB/s.
#[derive(Parser)]
#[command(name = "weir", version, max_term_width = 100, after_long_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

impl Cli {
    /// Reads the command line of this process. Help shows the names of environment variables but
    /// not their values: the values are untrusted text.
    ///
    /// # Errors
    /// The error of clap.
    pub(crate) fn given() -> Result<Self, clap::Error> {
        let mut command = without_values(Self::described());
        let read = command.try_get_matches_from_mut(std::env::args_os());
        let mut matches = read.map_err(|error| {
            // Help and version are no errors.
            if !error.use_stderr() {
                return error;
            }
            let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
            bench::meant_run(&words.collect::<Vec<_>>(), &mut command).unwrap_or(error)
        })?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }

    /// The command line as help, manual pages and completions show it.
    fn described() -> clap::Command {
        bench::with_own_options(Self::command())
    }
}

fn without_values(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| arg.hide_env_values(true)).mut_subcommands(without_values)
}

const EXAMPLES: &str = "Examples:
  weir serve --data /var/lib/weir
  export \
WEIR_DATA=/var/lib/weir
  weir pool create fast --level premium --size 4TiB
  weir volume create \
home --pool fast --quota 1TiB
  weir volume resize home 2TiB
  weir pool set fast --qos manual \
--dry-run

Exit status: 0 success, 1 refused or failed, 2 invalid command line.";

/// Options common to all commands.
#[derive(Args)]
pub(crate) struct Global {
    /// Data directory of the server
    #[arg(long, global = true, env = "WEIR_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// URL of a remote server's API: https:// with --fingerprint or --cacert; http:// only on this
    /// machine or on a trusted network
    #[arg(long, global = true, env = "WEIR_SERVER", value_name = "https://HOST:PORT")]
    server: Option<String>,
    /// SHA-256 fingerprint of the certificate of --server; the server logs it at startup, and `weir
    /// health` on the server's machine shows it
    #[arg(
        long,
        global = true,
        env = "WEIR_API_FINGERPRINT",
        value_name = "SHA256",
        conflicts_with = "cacert"
    )]
    fingerprint: Option<Fingerprint>,
    /// PEM file with CA certificates that verify the certificate and host name of --server
    #[arg(long, global = true, env = "WEIR_CACERT", value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// File with the token for --server: the output of `weir token create`, or a copy of api.token
    /// from the server's data directory
    #[arg(long, global = true, env = "WEIR_TOKEN_FILE", value_name = "FILE", requires = "server")]
    token_file: Option<PathBuf>,
    /// Apply the change only if the object still has this etag, as printed by `show --output json`;
    /// the change is refused if the object was modified in the meantime
    #[arg(long, global = true, value_name = "ETAG")]
    if_match: Option<String>,
    /// Output format on standard output
    #[arg(long, global = true, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    output: Output,
}

impl Global {
    /// Whether the options name a server.
    const fn names_server(&self) -> bool {
        self.data.is_some() || self.server.is_some()
    }
}

/// Output format on standard output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Text for people
    Table,
    /// JSON for programs: the API's own representation where one exists; errors are JSON on
    /// standard error
    Json,
}

impl Output {
    /// The output format requested by a command line that could not be parsed.
    fn asked(words: impl IntoIterator<Item = OsString>) -> Self {
        let words: Vec<_> = words.into_iter().take_while(|word| word != "--").collect();
        let joined = words.iter().any(|word| word == "--output=json");
        let apart = words.windows(2).any(|pair| pair[0] == "--output" && pair[1] == "json");
        if joined || apart { Self::Json } else { Self::Table }
    }

    /// The corresponding output format of `weir bench`.
    const fn format(self) -> weir_bench::cli::Format {
        match self {
            Self::Table => weir_bench::cli::Format::Table,
            Self::Json => weir_bench::cli::Format::Json,
        }
    }
}

#[derive(Subcommand)]
enum Command {
    Serve(Box<serve::ServeArgs>),
    /// Show or explain the configuration of `weir serve`
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Create, show, change and delete service levels
    #[command(subcommand)]
    Level(level::LevelCommand),
    /// Create, show, change and delete capacity pools
    #[command(subcommand)]
    Pool(pool::PoolCommand),
    /// Create, show, change and delete volumes
    #[command(subcommand)]
    Volume(volume::VolumeCommand),
    /// Manage export rules: which clients may mount a volume, and with which identity
    #[command(subcommand)]
    Export(export::ExportCommand),
    /// Manage share rules: which users may connect to the SMB share of a volume, and from where
    #[command(subcommand)]
    Share(share::ShareCommand),
    /// Create, show, change and delete users, who can log in over SMB
    #[command(subcommand)]
    User(user::UserCommand),
    /// Create, show and delete groups of users, and change their members
    #[command(subcommand)]
    Group(group::GroupCommand),
    /// List and close the sessions, opens and locks of clients
    ///
    /// In a cluster, these are the clients of the gateway that is asked.
    #[command(subcommand)]
    Smb(smb::SmbCommand),
    /// Create a cluster of gateways, join one, and manage its gateways and addresses
    #[command(subcommand)]
    Gateway(gateway::GatewayCommand),
    /// Back up, restore and check the catalogue: pools, volumes, contracts, rules and users
    #[command(subcommand)]
    Catalog(catalog::CatalogCommand),
    Calibrate(calibrate::CalibrateArgs),
    /// Show the measured capacity of file systems, and how much of it contracts commit
    Capacity,
    Size(Box<size::SizeArgs>),
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    Audit(audit::AuditArgs),
    /// Check whether the server serves all its volumes
    ///
    /// In a cluster, any gateway checks all gateways and volumes. The command fails if a volume is
    /// not served, or a gateway does not answer that has not ended.
    Health,
    Top(top::TopArgs),
    Bench(Box<weir_bench::cli::BenchCommand>),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

pub(crate) use print::unread;

/// Runs the command.
pub(crate) fn run(cli: Cli) -> ExitCode {
    let Cli { global, command } = cli;
    let outcome = match command {
        Command::Serve(args) => serve::run(&global, &args),
        Command::Config(command) => config::run(&global, &command),
        Command::Level(command) => connect::with_client(&global, level::run(&global, &command)),
        Command::Pool(command) => connect::with_client(&global, pool::run(&global, &command)),
        Command::Volume(command) => connect::with_client(&global, volume::run(&global, &command)),
        Command::Export(command) => connect::with_client(&global, export::run(&global, &command)),
        Command::Share(command) => connect::with_client(&global, share::run(&global, &command)),
        Command::User(command) => connect::with_client(&global, user::run(&global, &command)),
        Command::Group(command) => connect::with_client(&global, group::run(&global, &command)),
        Command::Smb(command) => connect::with_client(&global, smb::run(&global, &command)),
        Command::Gateway(command) => gateway::run(&global, &command),
        Command::Catalog(command) => catalog::run(&global, &command),
        Command::Calibrate(args) => connect::with_client(&global, calibrate::run(&global, &args)),
        Command::Capacity => connect::with_client(&global, calibration::capacity(&global)),
        Command::Size(args) => connect::with_client(&global, size::run(&global, &args)),
        Command::Token(command) => connect::with_client(&global, token::run(&global, &command)),
        Command::Audit(args) => connect::with_client(&global, audit::run(&global, &args)),
        Command::Bench(args) => bench::run(&global, &args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Top(args) => connect::with_client(&global, top::run(&global, &args)),
        Command::Health => connect::with_client(&global, health::run(&global)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failure(&error, global.output),
    }
}
