//! `weir gateway`: the commands of the API here, those of a gateway's machine in modules.

#[cfg(not(feature = "cluster"))]
mod absent;
#[cfg(feature = "cluster")]
pub(super) mod catalogue;
#[cfg(feature = "cluster")]
mod helper;
#[cfg(feature = "cluster")]
mod init;
#[cfg(feature = "cluster")]
mod join;
#[cfg(feature = "cluster")]
mod machine;
#[cfg(feature = "cluster")]
mod member;
#[cfg(feature = "cluster")]
mod transfer;

use super::pool::dry;
use super::{Global, Output, confirm, connect, print};
use anyhow::Result;
use clap::{Args, Subcommand};
use weir_api::{Address, Client, Gateway, NewAddress};

/// Create a cluster of gateways, join one, and manage its gateways and addresses.
#[derive(Subcommand)]
pub(crate) enum GatewayCommand {
    #[cfg(feature = "cluster")]
    Init(Box<init::InitArgs>),
    #[cfg(feature = "cluster")]
    Join(Box<join::JoinArgs>),
    #[cfg(feature = "cluster")]
    Helper(helper::HelperArgs),
    #[cfg(feature = "cluster")]
    Import(Box<transfer::ImportArgs>),
    #[cfg(feature = "cluster")]
    Export(transfer::ExportArgs),
    /// Create a cluster (not in this build)
    #[cfg(not(feature = "cluster"))]
    Init(absent::AnyArgs),
    /// Add this machine to a cluster (not in this build)
    #[cfg(not(feature = "cluster"))]
    Join(absent::AnyArgs),
    /// Run the helper of a gateway's machine (not in this build)
    #[cfg(not(feature = "cluster"))]
    Helper(absent::AnyArgs),
    /// Bring the catalogue of a server that is alone into the cluster (not in this build)
    #[cfg(not(feature = "cluster"))]
    Import(absent::AnyArgs),
    /// Write the catalogue of the cluster to a data directory (not in this build)
    #[cfg(not(feature = "cluster"))]
    Export(absent::AnyArgs),
    #[command(flatten)]
    Running(RunningCommand),
}

/// The commands that any running gateway of the cluster carries out.
#[derive(Subcommand)]
pub(crate) enum RunningCommand {
    /// List the gateways of the cluster, with the addresses that each of them serves
    ///
    /// The version is the newest one of the cluster's records that a gateway knows: during an
    /// upgrade it shows which gateways are new, if the new program has another one.
    List,
    /// Move all addresses away from a gateway, and give it no new ones
    ///
    /// The addresses move one after another to the gateways with the least load, with their
    /// volumes; clients reclaim their locks. `weir gateway list` shows the progress: the gateway is
    /// draining, then drained.
    Drain(Named),
    /// Let a gateway that was drained have addresses again
    Undrain(Named),
    /// State that no process of a gateway runs, because its machine is off or lost
    ///
    /// Its addresses are taken over without asking it. This is needed only if the other gateways
    /// cannot find out by themselves. If a process of the gateway still runs, both may write to the
    /// same files: turn the machine off first.
    DeclareGone {
        /// Name of the gateway
        gateway: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Remove a gateway that has ended from the cluster
    Remove(Named),
    /// List, add and remove the addresses at which clients reach the volumes of the cluster
    #[command(subcommand)]
    Address(AddressCommand),
}

#[derive(Args)]
pub(crate) struct Named {
    /// Name of the gateway
    gateway: String,
}

/// List, add and remove the addresses of a cluster.
#[derive(Subcommand)]
pub(crate) enum AddressCommand {
    /// List the addresses, with their volumes and the gateways that serve them
    List,
    /// Add an address
    ///
    /// A volume belongs to one address. The volumes of one address are served by one gateway and
    /// move together, so a cluster needs at least as many addresses as gateways.
    #[command(after_long_help = "\
Examples:
  weir gateway address add 10.0.0.5/24
  weir volume create home --pool fast --quota 1TiB --address 10.0.0.5")]
    Add {
        /// Address with the length of the network's prefix, such as 10.0.0.5/24
        address: String,
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove an address that no volume has
    Remove {
        /// Address, such as 10.0.0.5
        address: String,
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
}

/// Runs `command`.
pub(crate) fn run(global: &Global, command: &GatewayCommand) -> Result<()> {
    match command {
        #[cfg(feature = "cluster")]
        GatewayCommand::Init(args) => init::run(global, args),
        #[cfg(feature = "cluster")]
        GatewayCommand::Join(args) => join::run(global, args),
        #[cfg(feature = "cluster")]
        GatewayCommand::Helper(args) => helper::run(global, args),
        #[cfg(feature = "cluster")]
        GatewayCommand::Import(args) => transfer::import(global, args),
        #[cfg(feature = "cluster")]
        GatewayCommand::Export(args) => transfer::export(global, args),
        #[cfg(not(feature = "cluster"))]
        GatewayCommand::Init(_)
        | GatewayCommand::Join(_)
        | GatewayCommand::Helper(_)
        | GatewayCommand::Import(_)
        | GatewayCommand::Export(_) => absent::run(),
        GatewayCommand::Running(command) => connect::with_client(global, ask(global, command)),
    }
}

async fn ask(global: &Global, command: &RunningCommand) -> Result<()> {
    let client = connect::client(global)?;
    let output = global.output;
    let gateway = match command {
        RunningCommand::List => return list(&client, output).await,
        RunningCommand::Address(command) => return addresses(&client, output, command).await,
        RunningCommand::Drain(Named { gateway }) => client.drain_gateway(gateway).await?,
        RunningCommand::Undrain(Named { gateway }) => client.undrain_gateway(gateway).await?,
        RunningCommand::DeclareGone { gateway, yes } => {
            if !yes {
                confirm::certainty(gateway)?;
            }
            client.declare_gateway_gone(gateway).await?
        }
        RunningCommand::Remove(Named { gateway }) => {
            let removed = client.remove_gateway(gateway).await?;
            if output == Output::Json {
                return print::json(&removed);
            }
            return print::line(format_args!("gateway {gateway} removed"));
        }
    };
    if output == Output::Json {
        return print::json(&gateway);
    }
    let Gateway { name, state, addresses, .. } = gateway;
    print::line(format_args!("gateway {name}: {state}, {} address(es)", addresses.len()))
}

async fn list(client: &Client, output: Output) -> Result<()> {
    let gateways = client.gateways().await?;
    if output == Output::Json {
        return print::json(&gateways);
    }
    let row = |gateway: Gateway| {
        vec![
            gateway.name,
            gateway.state.to_string(),
            gateway.version.map_or_else(|| "none".to_owned(), |version| version.to_string()),
            gateway.links,
            gateway.volumes.to_string(),
            gateway.weight.to_string(),
            gateway.addresses.join(", "),
        ]
    };
    let header = ["name", "state", "version", "links", "volumes", "weight", "addresses"];
    print::table(&header, gateways.into_iter().map(row))
}

async fn addresses(client: &Client, output: Output, command: &AddressCommand) -> Result<()> {
    let (changed, done) = match command {
        AddressCommand::List => return list_addresses(client, output).await,
        AddressCommand::Add { address, dry_run } => {
            let new = NewAddress { address: address.clone() };
            (client.add_address(&new, dry(*dry_run)).await?, format!("address {address} added"))
        }
        AddressCommand::Remove { address, dry_run } => {
            let changed = client.remove_address(address, dry(*dry_run)).await?;
            (changed, format!("address {address} removed"))
        }
    };
    print::changed(output, &changed, &done)
}

async fn list_addresses(client: &Client, output: Output) -> Result<()> {
    let addresses = client.addresses().await?;
    if output == Output::Json {
        return print::json(&addresses);
    }
    let row = |one: Address| {
        let gateway = match (one.gateway, one.moving_to) {
            (Some(from), Some(to)) => format!("{from}, moving to {to}"),
            (Some(gateway), None) => gateway,
            (None, _) => "none".to_owned(),
        };
        let address = format!("{}/{}", one.address, one.prefix);
        vec![address, gateway, one.weight.to_string(), one.volumes.join(", ")]
    };
    let header = ["address", "gateway", "weight", "volumes"];
    print::table(&header, addresses.into_iter().map(row))
}
