//! `weir bench`: the load generator and the benchmark suite. Ctrl-C ends a run early; the results
//! measured so far are shown.

mod command_line;

pub(super) use command_line::{meant_run, with_own_options};

use super::print::usage;
use super::{Global, connect};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_api::{ClientError, Volume};
use weir_bench::cli::{self, BenchCommand, CliError, Served};
use weir_load::Control;
use weir_results::Contract;

/// HTTP status of what does not exist (RFC 9110 §15.5.5).
const NOT_FOUND: u16 = 404;

/// Runs `command`; fails if the run was not clean.
pub(crate) fn run(global: &Global, command: &BenchCommand) -> Result<()> {
    let control = Control::new();
    stop_on_interrupt(control.clone())?;
    match cli::run(command, global.output.format(), &control, &|volumes| served(global, volumes)) {
        Ok(unclean) if unclean.is_empty() => Ok(()),
        Ok(unclean) => bail!("the run was not clean: {}", unclean.join("; ")),
        Err(CliError::Usage(message)) => Err(usage(&message)),
        Err(error) => Err(error.into()),
    }
}

/// The server that the options name; nothing if they name none, or if it does not answer, which is
/// said.
fn served(global: &Global, volumes: &BTreeSet<String>) -> Option<Served> {
    if !global.names_server() {
        return None;
    }
    let asked = connect::with_client(global, async {
        let client = connect::client(global)?;
        let info = client.server().await?;
        let mut contracts = Vec::new();
        for name in volumes {
            match client.volume(name).await {
                Ok(volume) => contracts.push(contract(volume)),
                // The target may be on another server.
                Err(ClientError::Refused { status: NOT_FOUND, .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let addresses = info.nfs.iter().chain(&info.smb);
        let addresses = addresses.filter_map(|address| address.parse().ok()).collect();
        Ok(Served { addresses, memory_bytes: info.memory_bytes, contracts })
    });
    match asked {
        Ok(served) => Some(served),
        Err(error) => {
            weir_report::errln!(
                "weir: the server's API did not tell its memory and its contracts: {error:#}"
            );
            None
        }
    }
}

fn contract(volume: Volume) -> Contract {
    Contract {
        volume: volume.name,
        bytes_per_second: volume.limit_bytes_per_second,
        iops: volume.limit_iops,
        base_iops: volume.base_iops,
    }
}

/// Exit status after a second signal, as shells have it for SIGINT.
const SECOND_SIGNAL: i32 = 130;

/// Waits for SIGINT or SIGTERM. Both are kept through all waits, so that none is missed between.
async fn next(signals: &mut [Signal; 2]) {
    let [interrupt, terminate] = signals;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// The first signal stops the run in an orderly way, the second one immediately: an orderly stop
/// may be impossible if the server does not respond.
fn stop_on_interrupt(control: Control) -> Result<()> {
    let runtime =
        Builder::new_current_thread().enable_io().build().context("cannot handle Ctrl-C")?;
    let mut signals = {
        let _inside = runtime.enter();
        let [interrupt, terminate] = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
        [interrupt.context("cannot handle Ctrl-C")?, terminate.context("cannot handle SIGTERM")?]
    };
    std::thread::Builder::new()
        .name("interrupt".to_owned())
        .spawn(move || {
            runtime.block_on(next(&mut signals));
            control.stop();
            runtime.block_on(next(&mut signals));
            weir_report::errln!("weir: stopped immediately; files may remain on the target");
            std::process::exit(SECOND_SIGNAL);
        })
        .context("cannot handle Ctrl-C")?;
    Ok(())
}
