//! `weir-lab`: campaigns against this server that take minutes and hours, and reports about them:
//! the demonstration, crashes, contracts that change, many volumes, peers, published tests, fio.
//!
//! Not here: anything that the server or the benchmark suite needs. `weir` neither links nor ships
//! this program. The Makefile has a target for each campaign. Public is what the campaigns of
//! `weir-cluster-lab` use too.

#![forbid(unsafe_code)]

mod agree;
mod bare;
mod cache;
pub mod campaign;
/// The parts of the comparison with peers that comparisons of clusters use too.
pub mod comparison {
    pub use crate::peers::{Peer, Probe, Reach, Reading, Threads, Used, ganesha};
}
mod crash;
mod demo;
mod disk;
pub mod judge;
mod live;
/// The state of the machine during a campaign.
pub mod machine {
    pub use crate::demo::cause::meanwhile;
    pub use crate::demo::processors::{Second, Watch};
}
mod many;
mod network;
mod operator;
mod peers;
pub mod process;
pub mod rate;
mod replay;
pub mod sandbox;
mod server;
pub mod stop;
mod wide;

use anyhow::Result;
use campaign::Campaign;
use clap::{Parser, Subcommand};
use std::process::ExitCode;
use stop::Stop;

/// Run a campaign against the server that was built beside this program.
///
/// The exit status is 0 if every rule was kept, 1 if one was not, and 2 if the campaign could not
/// be completed.
#[derive(Debug, Parser)]
#[command(name = "weir-lab", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The program already runs in its own namespaces.
    #[arg(long, hide = true, global = true)]
    inside: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Agree(agree::Agree),
    Bare(bare::Bare),
    Cache(cache::Cache),
    Crash(crash::Crash),
    Demo(demo::Demo),
    Live(live::Live),
    Many(many::Many),
    Peers(peers::Peers),
    Replay(replay::Replay),
    Wide(wide::Wide),
}

/// Runs the campaign that the command line names.
pub fn main() -> ExitCode {
    let Arguments { command, inside } = Arguments::parse();
    let outcome = match command {
        Command::Agree(campaign) => execute(&campaign, inside),
        Command::Bare(bare) => bare.serve().map(|()| true),
        Command::Cache(campaign) => execute(&campaign, inside),
        Command::Crash(campaign) => execute(&campaign, inside),
        Command::Demo(campaign) => execute(&campaign, inside),
        Command::Live(campaign) => execute(&campaign, inside),
        Command::Many(campaign) => execute(&campaign, inside),
        Command::Peers(campaign) => execute(&campaign, inside),
        Command::Replay(campaign) => execute(&campaign, inside),
        Command::Wide(campaign) => execute(&campaign, inside),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            weir_report::errln!("weir-lab: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs a campaign and writes its report; `true` if every rule was kept.
fn execute(campaign: &impl Campaign, inside: bool) -> Result<bool> {
    campaign.requirements()?;
    // The program may have no other threads when it enters its namespaces.
    if campaign.isolated() && !inside {
        sandbox::enter()?;
    }
    let report = campaign.run(&Stop::on_signals()?)?;
    report.write()?;
    if let Some(file) = report.main_file() {
        weir_report::errln!("Report: {}", file.display());
    }
    Ok(report.kept())
}
