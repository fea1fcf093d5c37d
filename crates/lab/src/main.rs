//! `weir-lab`: campaigns against this server that take minutes and hours, and reports about them:
//! the demonstration, crashes, contracts that change, many volumes, peers, published tests, fio.
//!
//! Not here: anything that the server or the benchmark suite needs. `weir` neither links nor ships
//! this program. The Makefile has a target for each campaign.

#![forbid(unsafe_code)]

mod agree;
mod bare;
mod crash;
mod demo;
mod disk;
mod live;
mod many;
mod peers;
mod replay;
mod sandbox;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a campaign against the server that was built beside this program.
#[derive(Debug, Parser)]
#[command(name = "weir-lab", version)]
struct Arguments {
    #[command(subcommand)]
    campaign: Campaign,
}

#[derive(Debug, Subcommand)]
enum Campaign {
    Agree(agree::Command),
    Bare(bare::Command),
    Crash(crash::Command),
    Demo(demo::Command),
    Live(live::Command),
    Many(many::Command),
    Peers(peers::Command),
    Replay(replay::Command),
}

fn main() -> ExitCode {
    match run(Arguments::parse().campaign) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            weir_report::outln!("not ok - {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs a campaign; `true` if every bar was met.
fn run(campaign: Campaign) -> Result<bool> {
    match campaign {
        Campaign::Agree(command) => command.run(),
        Campaign::Bare(command) => command.run(),
        Campaign::Crash(command) => command.run(),
        Campaign::Demo(command) => command.run(),
        Campaign::Live(command) => command.run(),
        Campaign::Many(command) => command.run(),
        Campaign::Peers(command) => command.run(),
        Campaign::Replay(command) => command.run(),
    }
}

/// The server program: `given`, or the one beside this program.
fn weir_program(given: Option<PathBuf>) -> Result<PathBuf> {
    let weir = match given {
        Some(weir) => weir,
        None => this_program()?.with_file_name("weir"),
    };
    ensure!(weir.exists(), "{} is missing: build it first", weir.display());
    Ok(weir)
}

fn this_program() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find the path of this program")
}
