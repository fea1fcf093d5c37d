//! `weir calibrate`: measures the performance of the hardware on a temporary volume and stores the
//! result in the server. The server uses the result for its capacity check; `weir capacity` shows
//! it.

mod ground;
mod progress;
mod room;
mod stop;

use super::calibration;
use super::{Global, Output, connect, print, values};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use ground::{Ground, NAME, SIZE_BYTES};
use progress::Progress;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use stop::{Stop, Turn};
use tokio::time::MissedTickBehavior;
use weir_api::{
    Access, Calibration, CalibrationCell, CalibrationLoad, Changed, Client, Dry, ExportRule,
    NewCalibration, NewPool, Qos, ServerInfo, Squash,
};
use weir_bench::calibrate::{Cell, Plan, Step, measure};
use weir_core::units::{Bytes, Rate};
use weir_load::{Control, NfsTarget};

/// Load above which other volumes count as busy: bytes per second, READs and WRITEs per second.
const BUSY: (u64, u64) = (1 << 20, 100);
/// Polling interval for the load of other volumes.
const LOOK_WAIT: Duration = Duration::from_secs(5);
/// The number of polls in a row that may fail: each covers the last 10 s, so one missed poll loses
/// nothing.
const MISSED_MAX: u32 = 1;
/// Message after a signal stopped the calibration.
const INTERRUPTED: &str = "interrupted; nothing was stored";

/// Measure the performance of this hardware, as the limit for contracts
///
/// The calibration creates a temporary pool and volume, loads the volume over NFS with each mix and
/// block size, and removes both. The server stores the results, with date and conditions, for the
/// file system on which the pool was located. From then on, changes that commit more than the
/// measured capacity are refused (see `weir capacity`, and admission.policy of `weir serve`). Run
/// it on the server's machine while nothing else is busy there. Files that fit into memory are read
/// from memory: to measure READs from disk, make --file-size times --jobs larger than the memory.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = "\
Examples:
  weir calibrate
  weir calibrate --path /srv/weir --dry-run
  weir calibrate --path /srv/weir --file-size 32GiB --seconds 30
  weir calibrate show
  weir calibrate forget /srv/weir"
)]
pub(crate) struct CalibrateArgs {
    #[command(subcommand)]
    command: Option<CalibrateCommand>,
    #[command(flatten)]
    measure: Measure,
}

/// Commands for existing calibrations.
#[derive(Subcommand)]
enum CalibrateCommand {
    /// Show the results of calibrations, with their conditions
    Show {
        /// Directory of the calibration [default: all]
        directory: Option<String>,
    },
    /// Delete the calibration of a file system; capacity is then no longer checked there
    Forget {
        /// Directory of the calibration
        directory: String,
        /// Show what would be deleted, without deleting it
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Args)]
struct Measure {
    /// Directory on the server whose file system is measured; it must not be the directory of a
    /// pool [default: the default directory of pools]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Read/write mixes to measure, as percentages of reads, 0 to 100
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "100,70,0",
          value_parser = clap::value_parser!(u8).range(0..=100))]
    mix: Vec<u8>,
    /// Block sizes to measure, at most 1MiB each
    #[arg(long, value_name = "SIZE", value_delimiter = ',', default_value = "4KiB,8KiB,64KiB,1MiB",
          value_parser = block_size)]
    block_size: Vec<u32>,
    /// Duration of the measurement of each mix and block size, in seconds
    #[arg(long, default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,
    /// Duration of the warm-up before each measurement, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    warmup: f64,
    /// Size of each file; there is one file per job
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = values::size)]
    file_size: u64,
    /// Number of parallel request streams, each with its own connection, 1 to 256
    #[arg(long, value_name = "COUNT", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: u32,
    /// Number of requests that each stream keeps in flight, 1 to 1024
    #[arg(long, value_name = "COUNT", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: u32,
    /// Measure even if other volumes are busy; their load is stored with the results
    #[arg(long)]
    force: bool,
    /// Show what would be measured and how long it would take, without measuring
    #[arg(long)]
    dry_run: bool,
}

fn block_size(text: &str) -> Result<u32, String> {
    let bytes = values::size(text)?;
    let fits = u32::try_from(bytes).ok().filter(|bytes| (512..=1 << 20).contains(bytes));
    fits.ok_or_else(|| format!("{text:?} is not a valid block size: the range is 512B to 1MiB"))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| format!("{text:?} is not a valid time: the range is 0.1 to 3600 seconds"))
}

/// Runs the command.
pub(crate) async fn run(global: &Global, args: &CalibrateArgs) -> Result<()> {
    if args.command.is_none() && global.if_match.is_some() {
        return Err(print::usage("a calibration changes no existing object: omit --if-match"));
    }
    let client = connect::client(global)?;
    match &args.command {
        None => calibrate(global, &client, &args.measure).await,
        Some(CalibrateCommand::Show { directory }) => {
            calibration::show(&client, global.output, directory.as_deref()).await
        }
        Some(CalibrateCommand::Forget { directory, dry_run }) => {
            let changed = client.forget_calibration(directory, super::pool::dry(*dry_run)).await?;
            print::changed(global.output, &changed, &format!("calibration of {directory} deleted"))
        }
    }
}

impl Measure {
    fn plan(&self) -> Result<Plan> {
        // The server works on the same processors.
        let half = std::thread::available_parallelism().map_or(1, usize::from) / 2;
        let plan = Plan {
            mixes: self.mix.clone(),
            block_sizes: self.block_size.clone(),
            seconds: self.seconds,
            warmup_s: self.warmup,
            jobs: self.jobs,
            depth: self.depth,
            file_bytes: self.file_size,
            threads: u32::try_from(half).unwrap_or(1).clamp(1, self.jobs),
        };
        plan.check().map_err(|error| print::usage(&error.to_string()))?;
        Ok(plan)
    }

    fn pool(&self) -> Result<NewPool> {
        let directory = match &self.path {
            Some(path) => {
                Some(std::path::absolute(path)?.join(NAME).to_string_lossy().into_owned())
            }
            None => None,
        };
        Ok(NewPool {
            name: NAME.to_owned(),
            level: ground::LEVEL.to_owned(),
            size_bytes: SIZE_BYTES,
            qos: Qos::Auto,
            directory,
            ..NewPool::default()
        })
    }
}

async fn calibrate(global: &Global, client: &Client, args: &Measure) -> Result<()> {
    let (plan, pool, output) = (args.plan()?, args.pool()?, global.output);
    if !connect::is_here(global)? {
        return Err(print::usage(
            "the server is on another machine, so the network would be measured: run `weir calibrate` on the server's machine",
        ));
    }
    if let Some(path) = args.path.as_ref().filter(|path| matches!(path.try_exists(), Ok(false))) {
        return Err(print::usage(&format!("directory {} does not exist", path.display())));
    }
    let server = client.server().await?;
    let _turn = Turn::take(&server)?;
    let mut stop = Stop::new()?;
    let others = Others::look(client).await?;
    if !args.force && (others.rate > BUSY.0 || others.iops > BUSY.1) {
        bail!(
            "other volumes are busy ({:.2}, {} IOPS), and their load would reduce the measured capacity: calibrate when they are idle, or use --force",
            Rate(others.rate),
            others.iops
        );
    }
    let mut left = tokio::select! {
        left = Ground::left_behind(client) => left?,
        () = stop.asked() => bail!(INTERRUPTED),
    };
    if let Some(ground) = left.take_if(|_| !args.dry_run) {
        ground.remove(client).await.context("removing the remains of an earlier calibration")?;
    }
    let place = match &left {
        Some(ground) => ground.directory().to_owned(),
        None => {
            let made = client.overcommitting().create_pool(&pool, Dry::Run).await?;
            PathBuf::from(
                made.item
                    .context("the server's response lacks the directory of the pool")?
                    .directory,
            )
        }
    };
    room::check(
        pool.directory.as_deref().map_or(&place, Path::new),
        plan.data_bytes(),
        server.pid,
    )?;
    if args.dry_run {
        return announce(output, args, &plan);
    }
    if output == Output::Table {
        weir_report::errln!("{}", in_words(&plan));
    }
    let run = Run { client, server: &server, output, plan: &plan };
    let kept = run.on_ground(&pool, others, &mut stop).await?;
    if output == Output::Json {
        return print::json(&kept);
    }
    let kept = kept.item.context("the server's response lacks the stored calibration")?;
    calibration::print_one(&kept)?;
    calibration::print_use(&client.capacity().await?, &kept.directory)
}

/// Prints the plan of a dry run.
fn announce(output: Output, args: &Measure, plan: &Plan) -> Result<()> {
    if output == Output::Json {
        let cells: Vec<_> = plan
            .cells()
            .map(|(mix, block)| serde_json::json!({ "read_percent": mix, "block_bytes": block }))
            .collect();
        return print::json(&serde_json::json!({
            "dry_run": true,
            "path": args.path,
            "cells": cells,
            "data_bytes": plan.data_bytes(),
            "expected_seconds": plan.expected().as_secs(),
        }));
    }
    print::line(format_args!("Dry run, nothing is measured. {}", in_words(plan)))
}

fn in_words(plan: &Plan) -> String {
    let (jobs, depth, data) = (plan.jobs, plan.depth, Bytes(plan.data_bytes()));
    format!(
        "{} measurements of {} s, {jobs} jobs with {depth} requests in flight each, files of {data} in total: about {} s.",
        plan.cells().count(),
        plan.seconds,
        plan.expected().as_secs()
    )
}

/// The load of other volumes.
#[derive(Clone, Copy, Default)]
struct Others {
    rate: u64,
    iops: u64,
}

impl Others {
    /// The load of all volumes except those of calibrations.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "operations a second are positive and far below 2^52"
    )]
    async fn look(client: &Client) -> Result<Self> {
        let mut seen = Self::default();
        for active in client.activity().await?.volumes {
            if active.pool != NAME {
                seen.rate += active.window.delivered_bytes_per_second;
                seen.iops += active.window.delivered_iops.round() as u64;
            }
        }
        Ok(seen)
    }

    fn most(self, other: Self) -> Self {
        Self { rate: self.rate.max(other.rate), iops: self.iops.max(other.iops) }
    }
}

/// One calibration.
struct Run<'a> {
    client: &'a Client,
    server: &'a ServerInfo,
    output: Output,
    plan: &'a Plan,
}

impl Run<'_> {
    /// Creates the pool, measures in it, removes it, and has the server store the result.
    async fn on_ground(
        &self,
        pool: &NewPool,
        others: Others,
        stop: &mut Stop,
    ) -> Result<Changed<Calibration>> {
        let client = self.client;
        let ground = Ground::make(client, pool).await?;
        let directory = ground.directory().parent().unwrap_or(Path::new("/")).to_owned();
        let directory = directory.to_string_lossy();
        let measured = async {
            // A result that would be refused at the end is refused before anything is measured.
            let sample = self.sample();
            client.keep_calibration(&directory, &sample, Dry::Run).await?;
            self.on_volume(&ground, others, stop).await
        };
        let measured = measured.await;
        if let (Err(error), Output::Table) = (ground.remove(client).await, self.output) {
            weir_report::errln!(
                "weir: the calibration was not removed completely; the next one removes the remains: {}",
                print::in_full(&error)
            );
        }
        Ok(client.keep_calibration(&directory, &measured?, Dry::No).await?)
    }

    /// The result for a dry run: figures that the server would accept.
    fn sample(&self) -> NewCalibration {
        let cell = |(read_percent, block_bytes)| CalibrationCell {
            read_percent,
            block_bytes,
            bytes_per_second: 1,
            iops: 1,
            mean_nanos: 1,
            p99_nanos: 1,
            server_cpu_nanos: None,
            saturated: false,
        };
        let load = self.load(Others::default());
        NewCalibration { cells: self.plan.cells().map(cell).collect(), load }
    }

    fn load(&self, others: Others) -> CalibrationLoad {
        let plan = self.plan;
        let millis = Duration::try_from_secs_f64(plan.seconds).unwrap_or_default().as_millis();
        CalibrationLoad {
            jobs: plan.jobs,
            depth: plan.depth,
            millis: u64::try_from(millis).unwrap_or(u64::MAX),
            data_bytes: plan.data_bytes(),
            others_bytes_per_second: others.rate,
            others_iops: others.iops,
        }
    }

    /// Creates the volume and measures on it.
    async fn on_volume(
        &self,
        ground: &Ground,
        mut others: Others,
        stop: &mut Stop,
    ) -> Result<NewCalibration> {
        let (client, server) = (self.client, self.server);
        let address = server.nfs.first().context("the server does not serve NFS")?;
        let address = reachable(address.parse().with_context(|| format!("NFS address {address}"))?);
        let name = ground.make_volume(client).await?;
        if !address.ip().is_loopback() {
            client.add_export(name, &own_rule(address.ip()), Dry::No).await?;
        }
        let control = Control::new();
        let (stopped, planned, pid) = (control.clone(), self.plan.clone(), server.pid);
        let (mut progress, export) = (Progress::new(self.output), format!("/{name}"));
        let mut run = tokio::task::spawn_blocking(move || {
            let target = NfsTarget::new(address, export);
            let mut told = |step: Step<'_>| progress.told(step);
            let cells = measure(&target, &planned, Some(pid), &stopped, &mut told);
            progress.end();
            cells
        });
        let mut looks = tokio::time::interval(LOOK_WAIT);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut missed, mut blind) = (0, None);
        let cells = loop {
            let look = async {
                looks.tick().await;
                Others::look(client).await
            };
            tokio::select! {
                done = &mut run => break done.context("the measurement failed with an internal error")?,
                // The engine stops by the same control when it loses the server.
                () = stop.asked(), if !control.stopped() => control.stop(),
                looked = look => match looked {
                    Ok(seen) => (others, missed) = (others.most(seen), 0),
                    Err(error) => {
                        missed += 1;
                        if missed > MISSED_MAX {
                            blind.get_or_insert(error);
                            control.stop();
                        }
                    }
                },
            }
        };
        if stop.is_asked() {
            bail!(INTERRUPTED);
        }
        match (cells, blind) {
            (Ok(cells), None) => Ok(NewCalibration {
                cells: cells.iter().map(told).collect(),
                load: self.load(others),
            }),
            (Err(error), None) => Err(error.into()),
            (_, Some(blind)) => {
                Err(blind.context("cannot read the load of other volumes; nothing was stored"))
            }
        }
    }
}

/// The address at which this machine can reach the given listen address.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The export rule that admits this machine, by the given address.
fn own_rule(address: IpAddr) -> ExportRule {
    let (network, access, squash) = (address.to_string(), Access::ReadWrite, Squash::None);
    ExportRule { network, access, squash, anon_uid: 65534, anon_gid: 65534 }
}

const fn told(cell: &Cell) -> CalibrationCell {
    CalibrationCell {
        read_percent: cell.read_percent,
        block_bytes: cell.block_bytes,
        bytes_per_second: cell.bytes_per_second,
        iops: cell.iops,
        mean_nanos: cell.mean_nanos,
        p99_nanos: cell.p99_nanos,
        server_cpu_nanos: cell.server_cpu_nanos,
        saturated: cell.saturated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_everywhere_is_reached_at_home() {
        let reached = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(reached("0.0.0.0:2049"), "127.0.0.1:2049");
        assert_eq!(reached("[::]:20490"), "[::1]:20490");
        assert_eq!(reached("192.0.2.7:2049"), "192.0.2.7:2049");
        assert_eq!(own_rule("2001:db8::7".parse().unwrap()).network, "2001:db8::7");
    }

    #[test]
    fn values_are_within_what_can_be_measured() {
        assert_eq!(block_size("64KiB"), Ok(65_536));
        assert!(block_size("2MiB").unwrap_err().contains("512B to 1MiB"));
        assert!(block_size("64K").unwrap_err().contains("64KiB"));
        assert_eq!(seconds("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "soon", "NaN", "3601"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
