//! `weir-cluster-lab`: campaigns with a whole cluster on this machine, and reports about them:
//! several gateways, three members of etcd and a Ceph, each in network namespaces of their own.
//!
//! Not here: campaigns of one server, which are those of `weir-lab`, and anything that the server
//! needs. `weir` neither links nor ships this program.

#![forbid(unsafe_code)]

mod alone;
mod bed;
mod demo;
mod faults;
mod load;
mod peers;
mod stage;
mod upgrade;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use weir_lab::stop::Stop;

/// Run a campaign against a cluster of the server that was built beside this program.
///
/// The exit status is 0 if every rule was kept, 1 if one was not, and 2 if there is no result. A
/// campaign of faults that ends early has missed a rule.
#[derive(Debug, Parser)]
#[command(name = "weir-cluster-lab", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The program already runs in its own namespaces, and works in this directory.
    #[arg(long, hide = true, global = true, value_name = "DIR")]
    inside: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "peers")]
    CephClient(peers::CephClient),
    Demo(demo::Demo),
    Faults(faults::Faults),
    Peers(peers::Peers),
    Upgrade(upgrade::Upgrade),
}

fn main() -> ExitCode {
    let Arguments { command, inside } = Arguments::parse();
    match execute(&command, inside) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            weir_report::errln!("weir-cluster-lab: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs a campaign, in namespaces of its own, and writes its report. Returns the exit status.
fn execute(command: &Command, inside: Option<PathBuf>) -> Result<u8> {
    if let Command::Faults(faults) = command
        && faults.listed()
    {
        return Ok(0);
    }
    #[cfg(feature = "peers")]
    if let Command::CephClient(client) = command {
        client.serve()?;
        return Ok(0);
    }
    let Some(work) = inside else {
        bed::requirements()?;
        if matches!(command, Command::Peers(_)) {
            peers::requirements()?;
        }
        return alone::run(&Stop::on_signals()?);
    };
    let stop = Stop::on_signals()?;
    alone::end_with_the_caller(&stop)?;
    let report = match command {
        Command::Demo(demo) => demo.run(&work, &stop)?,
        Command::Faults(faults) => faults.run(&work, &stop)?,
        Command::Peers(peers) => peers.run(&work, &stop)?,
        #[cfg(feature = "peers")]
        Command::CephClient(_) => anyhow::bail!("a client of Ceph has no namespaces of its own"),
        Command::Upgrade(upgrade) => upgrade.run(&work, &stop)?,
    };
    report.write()?;
    if let Some(file) = report.main_file() {
        weir_report::errln!("Report: {}", file.display());
    }
    Ok(if report.kept() { 0 } else { 1 })
}
