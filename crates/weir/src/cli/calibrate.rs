//! `weir calibrate`: measures what the hardware holds, on a volume of its own that goes again, and has the server
//! keep it. What is made of it is the server's business; `weir capacity` shows that.

use super::calibration;
use super::{Global, Output, connect, print, values};
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};
use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_api::{
    Access, CalibrationCell, CalibrationLoad, Client, ClientError, Dry, ExportRule, NewCalibration,
    NewPool, NewVolume, Pool, Qos, Squash,
};
use weir_bench::calibrate::{Cell, Plan, Step, measure};
use weir_bench::{Control, NfsTarget, Phase};
use weir_core::units::{Bytes, Rate};

/// The pool and the volume that are measured. A killed run leaves them, and the next takes them away.
const NAME: &str = "weir-calibration";
/// Their size. At the quickest level it buys 8 TiB/s, so that the contract binds nowhere.
const SIZE_BYTES: u64 = 1 << 56;
/// From this on other volumes are busy: bytes per second, READs and WRITEs a second.
const BUSY: (u64, u64) = (1 << 20, 100);
/// How often it is looked what other volumes do.
const LOOK_WAIT: Duration = Duration::from_secs(5);
/// How long is waited for the files of the volume to go.
const REMOVAL_WAIT: Duration = Duration::from_secs(30);

/// Measure what this hardware holds, so that no more is promised
///
/// It makes a pool and a volume, loads the volume over NFS with each mix and block size, removes both again, and has
/// the server keep the figures with date and conditions, for the file system that they lay on. From then on
/// changes that promise more than that are refused (`weir capacity`, and admission.policy of `weir serve`).
/// Run it on the server's machine, when nothing else is busy there. Files that fit into memory are read from
/// memory: to measure the READs of disks, make --file-size times --jobs larger than it.
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

/// What else can be done with what was measured.
#[derive(Subcommand)]
enum CalibrateCommand {
    /// Show what was measured, and under which conditions
    Show {
        /// Where it was measured [default: everywhere]
        directory: Option<String>,
    },
    /// Forget what was measured: nothing is refused on that file system any more
    Forget {
        /// Where it was measured
        directory: String,
        /// Only show what would be forgotten
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Args)]
struct Measure {
    /// Directory on the server whose file system is measured; not one of a pool [default: where pools are
    /// without a path of their own]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Mixes, as the percentage of reads
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "100,70,0",
          value_parser = clap::value_parser!(u8).range(0..=100))]
    mix: Vec<u8>,
    /// Block sizes, each at most 1MiB
    #[arg(long, value_name = "SIZE", value_delimiter = ',', default_value = "4KiB,8KiB,64KiB,1MiB",
          value_parser = block_size)]
    block_size: Vec<u32>,
    /// How long each mix and block size is measured
    #[arg(long, default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,
    /// Seconds of load before that
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    warmup: f64,
    /// Size of each file; there is one for each job
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = values::size)]
    file_size: u64,
    /// Streams of requests, each on a connection of its own
    #[arg(long, value_name = "COUNT", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: u32,
    /// Requests that each keeps in flight
    #[arg(long, value_name = "COUNT", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: u32,
    /// Also while other volumes are busy; what they do is kept with the figures
    #[arg(long)]
    force: bool,
    /// Only show what would be measured, and how long it would take
    #[arg(long)]
    dry_run: bool,
}

fn block_size(text: &str) -> Result<u32, String> {
    let bytes = values::size(text)?;
    let fits = u32::try_from(bytes).ok().filter(|bytes| (512..=1 << 20).contains(bytes));
    fits.ok_or_else(|| format!("{text:?} is no block size: from 512B to 1MiB is allowed"))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| format!("{text:?} is no time: write 0.1 to 3600, in seconds"))
}

/// Does as the arguments say.
pub(crate) async fn run(global: &Global, args: &CalibrateArgs) -> Result<()> {
    let client = connect::client(global)?;
    match &args.command {
        None => calibrate(&client, global.output, &args.measure).await,
        Some(CalibrateCommand::Show { directory }) => {
            calibration::show(&client, global.output, directory.as_deref()).await
        }
        Some(CalibrateCommand::Forget { directory, dry_run }) => {
            let changed = client.forget_calibration(directory, super::pool::dry(*dry_run)).await?;
            print::changed(
                global.output,
                &changed,
                &format!("calibration of {directory} forgotten"),
            )
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
            level: "extreme".to_owned(),
            size_bytes: SIZE_BYTES,
            qos: Qos::Auto,
            directory,
            ..NewPool::default()
        })
    }
}

async fn calibrate(client: &Client, output: Output, args: &Measure) -> Result<()> {
    let (plan, pool) = (args.plan()?, args.pool()?);
    if let Some(path) = args.path.as_ref().filter(|path| matches!(path.try_exists(), Ok(false))) {
        return Err(print::usage(&format!("there is no directory {}", path.display())));
    }
    let others = Others::look(client).await?;
    if others.calibrates {
        bail!("another `weir calibrate` is under way: wait for its end");
    }
    if !args.force && (others.rate > BUSY.0 || others.iops > BUSY.1) {
        bail!(
            "other volumes are busy ({:.2}, {} IOPS), and what they use would be missing from what is measured: calibrate when they are quiet, or give --force",
            Rate(others.rate),
            others.iops
        );
    }
    if args.dry_run {
        tried(client.overcommitting().create_pool(&pool, Dry::Run).await)?;
        return announce(output, args, &plan);
    }
    let mut stop = Stop::new()?;
    remove(client, None).await.context("taking away what a calibration before left")?;
    if output == Output::Table {
        eprintln!("{}", in_words(&plan));
    }
    let made = client.overcommitting().create_pool(&pool, Dry::No).await?;
    let made = made.item.context("the server says nothing of the pool that it made")?;
    let measured = on_volume(client, output, &plan, others, &mut stop).await;
    let removed = remove(client, Some(&made)).await;
    if let (Err(error), Output::Table) = (&removed, output) {
        eprintln!(
            "weir: pool {NAME} is still there, and the next calibration takes it away: {error:#}"
        );
    }
    let new = measured?;
    let directory = Path::new(&made.directory).parent().unwrap_or(Path::new("/"));
    let directory = directory.to_string_lossy();
    let kept = client.keep_calibration(&directory, &new, Dry::No).await?;
    if output == Output::Json {
        return print::json(&kept);
    }
    let kept = kept.item.context("the server says nothing of what it kept")?;
    calibration::print_one(&kept)?;
    calibration::print_use(&client.capacity().await?, &kept.directory)
}

/// A dry run may find the pool of a killed run, which a real one would take away.
fn tried<T>(outcome: Result<T, ClientError>) -> Result<()> {
    match outcome {
        Err(ClientError::Refused { error, .. }) if error.code == "name_taken" => Ok(()),
        outcome => Ok(outcome.map(drop)?),
    }
}

/// Says what would be done.
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
    print::text(&format!("Dry run, nothing is measured. {}\n", in_words(plan)))
}

fn in_words(plan: &Plan) -> String {
    let (jobs, depth, data) = (plan.jobs, plan.depth, Bytes(plan.data_bytes()));
    format!(
        "{} measurements of {} s, {jobs} jobs with {depth} requests in flight each, files of {data} in all: about {} s.",
        plan.cells().count(),
        plan.seconds,
        plan.expected().as_secs()
    )
}

/// What asks for an end before its time.
struct Stop([Signal; 3]);

impl Stop {
    fn new() -> Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Ok(Self([interrupt?, terminate?, hangup?]))
    }

    async fn asked(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// What other volumes do.
#[derive(Clone, Copy, Default)]
struct Others {
    rate: u64,
    iops: u64,
    /// Is ours in use?
    calibrates: bool,
}

impl Others {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "operations a second are positive and far below 2^52"
    )]
    async fn look(client: &Client) -> Result<Self> {
        let mut seen = Self::default();
        for active in client.activity().await?.volumes {
            if active.volume == NAME {
                seen.calibrates = active.second.delivered_iops > 0.0;
                continue;
            }
            seen.rate += active.window.delivered_bytes_per_second;
            seen.iops += active.window.delivered_iops.round() as u64;
        }
        Ok(seen)
    }

    fn most(self, other: Self) -> Self {
        let (rate, iops) = (self.rate.max(other.rate), self.iops.max(other.iops));
        Self { rate, iops, calibrates: false }
    }
}

/// Makes the volume and measures on it.
async fn on_volume(
    client: &Client,
    output: Output,
    plan: &Plan,
    mut others: Others,
    stop: &mut Stop,
) -> Result<NewCalibration> {
    let server = client.server().await?;
    let address = server.nfs.first().context("the server serves no NFS")?;
    let address = reachable(address.parse().with_context(|| format!("NFS address {address}"))?);
    let (name, pool) = (NAME.to_owned(), NAME.to_owned());
    let new = NewVolume { name, pool, quota_bytes: SIZE_BYTES, ..NewVolume::default() };
    client.overcommitting().create_volume(&new, Dry::No).await?;
    if !address.ip().is_loopback() {
        client.add_export(NAME, &own_rule(address.ip()), Dry::No).await?;
    }
    let control = Control::new();
    let (stopped, planned, mut progress) = (control.clone(), plan.clone(), Progress::new(output));
    let mut run = tokio::task::spawn_blocking(move || {
        let target = NfsTarget::new(address, format!("/{NAME}"));
        let mut told = |step: Step<'_>| progress.told(step);
        let cells = measure(&target, &planned, Some(server.pid), &stopped, &mut told);
        progress.end();
        cells
    });
    let mut looks = tokio::time::interval(LOOK_WAIT);
    let cells = loop {
        tokio::select! {
            done = &mut run => break done.context("the measurement failed inside this program")?,
            () = stop.asked() => control.stop(),
            _ = looks.tick() => others = others.most(Others::look(client).await?),
        }
    };
    if control.stopped() {
        bail!("interrupted; nothing was kept");
    }
    let millis = Duration::try_from_secs_f64(plan.seconds).unwrap_or_default().as_millis();
    let load = CalibrationLoad {
        jobs: plan.jobs,
        depth: plan.depth,
        millis: u64::try_from(millis).unwrap_or(u64::MAX),
        data_bytes: plan.data_bytes(),
        others_bytes_per_second: others.rate,
        others_iops: others.iops,
    };
    Ok(NewCalibration { cells: cells?.iter().map(told).collect(), load })
}

/// Where this machine reaches an address that its server listens on.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Lets this machine in by the address that it has towards itself.
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

/// Takes the volume and the pool away, if they are there.
async fn remove(client: &Client, pool: Option<&Pool>) -> Result<()> {
    let there = match pool {
        Some(pool) => Some(pool.clone()),
        None => absent(client.pool(NAME).await)?,
    };
    let Some(pool) = there else { return Ok(()) };
    if let Some(volume) = absent(client.volume(NAME).await)? {
        client.delete_volume(NAME, Dry::No).await?;
        let tree = Path::new(&pool.directory).join("volumes").join(volume.id.to_string());
        let begun = Instant::now();
        // The files go in the background, and the pool's directory only goes without them.
        while tree.exists() && begun.elapsed() < REMOVAL_WAIT {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    client.delete_pool(NAME, Dry::No).await?;
    // Where it was made for this, it is empty now; if it isn't, it is somebody's.
    let _somebodys = std::fs::remove_dir(&pool.directory);
    Ok(())
}

/// Nothing where the server says that there is none.
fn absent<T>(asked: Result<T, ClientError>) -> Result<Option<T>> {
    match asked {
        Ok(found) => Ok(Some(found)),
        Err(ClientError::Refused { status: 404, .. }) => Ok(None),
        Err(error) => Err(anyhow!(error)),
    }
}

/// What goes on, on standard error: a line that changes on a terminal, and one for each measurement.
struct Progress {
    shown: bool,
    terminal: bool,
    what: String,
}

impl Progress {
    fn new(output: Output) -> Self {
        let shown = output == Output::Table;
        Self { shown, terminal: shown && std::io::stderr().is_terminal(), what: String::new() }
    }

    fn told(&mut self, step: Step<'_>) {
        match step {
            Step::Layout(done, total) => {
                let percent = done.saturating_mul(100).checked_div(total).unwrap_or(100);
                self.line(&format!("writing the files: {percent} %"));
            }
            Step::Begin(mix, block, number, count) => {
                let block = Bytes(block.into());
                self.what = format!("{}/{count}: {mix} % reads, blocks of {block}", number + 1);
                self.line(&self.what);
            }
            Step::Window(window) => {
                let phase = if window.phase == Phase::Warmup { "warm-up" } else { "measuring" };
                self.line(&format!("{}, {phase} {:.0} s", self.what, window.at_s));
            }
            Step::Done(cell) => {
                self.end();
                if self.shown {
                    let rate = Rate(cell.bytes_per_second);
                    eprintln!("{}: {rate:.2}, {} IOPS", self.what, cell.iops);
                }
            }
        }
    }

    fn line(&self, text: &str) {
        if self.terminal {
            eprint!("\r{text}\x1b[K");
        }
    }

    fn end(&self) {
        self.line("");
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
        assert!(block_size("2MiB").unwrap_err().contains("from 512B to 1MiB"));
        assert!(block_size("64K").unwrap_err().contains("64KiB"));
        assert_eq!(seconds("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "soon", "NaN", "3601"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
