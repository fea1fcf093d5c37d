//! `weir bench run`: published tests and loads written in other languages.

use super::choose::Choice;
use super::fit::FitArgs;
use super::method::{Files, MethodArgs};
use super::output::OutputArgs;
use super::place::WhoArgs;
use super::show::Show;
use super::worker::WorkersArgs;
use super::{CliError, Format, dry, output};
use crate::suite::fio::FioExecutor;
use crate::suite::{Executor, Local, Options, Place, Suite, SuiteOutcome, TargetPlace, preflight};
use clap::{Args, ValueEnum};
use std::collections::BTreeMap;
use weir_load::control::Control;
use weir_load::target::Target;
use weir_load::workload::Stability;
use weir_scenario::scenario::Scenario;
use weir_scenario::scenario::scale::Facts;

const EXAMPLES: &str = "\
Examples:
  A published test scaled to this machine, with a report:
    weir bench run anf-linux-4k-random nfs://127.0.0.1:2049/vol --scale auto --out report

  Show what that would do, without doing it:
    weir bench run anf-linux-4k-random nfs://127.0.0.1:2049/vol --scale auto --dry-run

  A fio job file, unchanged, three times on a mounted path:
    weir bench run oltp.fio /mnt/vol --repeats 3 --discard-first

  A published command line, unchanged; its drive is mapped to the target:
    weir bench run --target nfs://10.0.0.4/vol --map 'z:\\:=' -- \\
        diskspd.exe -c2G -b4K -F4 -r -o128 -w20 -d60 -Sh z:\\testfile.dat

Ctrl-C stops the run: the results measured so far are written, and the files are removed.

Exit status: 0 on success; 1 if an operation failed, a step could not be run, verification found a
mismatch, files could not be removed, a worker was lost, or the run was interrupted; 2 for an
invalid command line.";

/// The engine or the workers that apply the loads.
#[derive(Args, Clone, Debug, Default)]
pub struct ByArgs {
    /// Engine that applies the loads: Weir's own, or fio (for a path).
    #[arg(long, value_enum, default_value_t, help_heading = "Load",
          conflicts_with_all = ["worker", "local_workers"])]
    pub engine: Engine,
    /// Workers.
    #[command(flatten)]
    pub workers: WorkersArgs,
}

/// The engine that applies the loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Weir's own engine.
    #[default]
    Native,
    /// The program fio, which must be installed.
    Fio,
}

/// Run published tests, job files and command lines
///
/// Names are those shown by `weir bench list`. Files are Weir scenarios (TOML), fio job files,
/// Vdbench parameter files, or text files with a diskspd or fio command line. The target is the
/// last argument, or is given by --target.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES, max_term_width = 100)]
pub struct RunArgs {
    /// Tests and target.
    #[command(flatten)]
    pub choice: Choice,
    /// Scaling and other changes.
    #[command(flatten)]
    pub fit: FitArgs,
    /// Repeats, caches and server measurement.
    #[command(flatten)]
    pub method: MethodArgs,
    /// The engine or the workers.
    #[command(flatten)]
    pub by: ByArgs,
    /// User, group and addresses of the client.
    #[command(flatten)]
    pub who: WhoArgs,
    /// Keep the files after the run.
    #[arg(long, conflicts_with = "reuse", help_heading = "Files")]
    pub keep: bool,
    /// Use the files of an earlier run with --keep, unchanged.
    #[arg(long, help_heading = "Files")]
    pub reuse: bool,
    /// Show the runs with their loads, data and duration, without running anything or contacting
    /// any machine.
    #[arg(long, help_heading = "Result")]
    pub dry_run: bool,
    /// Output of the results.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Runs the tests; returns the problems that were found.
pub(super) fn run(
    args: &RunArgs,
    format: Format,
    control: &Control,
) -> Result<Vec<String>, CliError> {
    let (written, text) = args.choice.scenarios()?;
    let target = args.who.target(&text)?;
    let files = Files { keep: args.keep, reuse: args.reuse };
    let options = args.method.options(&text, &target, files, args.output.label.as_deref())?;
    let room = if args.dry_run { None } else { TargetPlace::new(target.clone()).room()? };
    let facts = facts(&options, room);
    let fitted = written.iter().map(|scenario| args.fit.fit(scenario, facts, &options));
    let mut scenarios: Vec<Scenario> = fitted.collect::<Result<_, _>>()?;
    scenarios.iter_mut().for_each(|scenario| apply_to(scenario, &target));
    if args.dry_run {
        match format {
            Format::Table => output::print(&dry::text(&scenarios, &options))?,
            Format::Json => output::print_json(&scenarios)?,
        }
        return Ok(Vec::new());
    }
    let to = (&args.output, format);
    with_suite(&scenarios, target, options, &args.by, to, control, |suite| suite.run(&scenarios))
}

/// Puts in what the kind of target decides about the loads, and notes it.
fn apply_to(scenario: &mut Scenario, target: &Target) {
    let mut durable = false;
    for load in scenario.steps.iter_mut().flat_map(|step| &mut step.loads) {
        let applied = load.applied_to(target);
        durable |= applied.stability != load.stability;
        *load = applied;
    }
    let said = if durable {
        "O_DIRECT over NFS: writes are FILE_SYNC, as the Linux kernel sends direct writes"
    } else if matches!(target, Target::Smb(_)) && direct_and_unstable(scenario) {
        "O_DIRECT over SMB: this client has no cache to bypass, and writes are not write-through"
    } else {
        return;
    };
    scenario.changes.push(said.to_owned());
}

/// Does `scenario` write directly without asking for durable writes?
fn direct_and_unstable(scenario: &Scenario) -> bool {
    let mut loads = scenario.steps.iter().flat_map(|step| &step.loads);
    loads.any(|load| load.direct && load.writes() && load.stability == Stability::Unstable)
}

/// The known facts about the machines. `room` is the free space at the target.
fn facts(options: &Options, room: Option<u64>) -> Facts {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Facts {
        client_memory_bytes: options.cache.client_memory,
        server_memory_bytes: options.cache.server_memory,
        same_machine: options.cache.server_is_here,
        free_bytes: room,
        processors: u32::try_from(processors).unwrap_or(u32::MAX),
    }
}

/// Checks whether `scenarios` can be run, calls `work`, and writes the results.
pub(super) fn with_suite(
    scenarios: &[Scenario],
    target: Target,
    mut options: Options,
    by: &ByArgs,
    (to, format): (&OutputArgs, Format),
    control: &Control,
    work: impl FnOnce(&mut Suite<'_>) -> SuiteOutcome,
) -> Result<Vec<String>, CliError> {
    to.check()?;
    let mut place = TargetPlace::new(target.clone());
    preflight(&mut place, scenarios, &options)?;
    let mut executor = executor(target, by, &mut options)?;
    let mut show = Show::new(to.quiet);
    let outcome = work(&mut Suite {
        executor: &mut *executor,
        place: &mut place,
        options: &options,
        control,
        observer: &mut |event| show.event(event),
    });
    show.finish();
    to.give(&outcome.results, format)?;
    Ok(outcome.unclean())
}

/// The executor that applies the loads; the options are completed with its machines.
fn executor(
    target: Target,
    by: &ByArgs,
    options: &mut Options,
) -> Result<Box<dyn Executor>, CliError> {
    if by.engine == Engine::Fio {
        return Ok(Box::new(FioExecutor::new(&target)?));
    }
    if !by.workers.any() {
        return Ok(Box::new(Local::new(target)));
    }
    let workers = by.workers.connect(target)?;
    options.clients = workers.machines();
    let mut machines: BTreeMap<&str, u64> = BTreeMap::new();
    for machine in &options.clients {
        machines.insert(&machine.name, machine.memory_bytes);
    }
    options.cache.client_memory = machines.values().sum();
    Ok(Box::new(workers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_load::target::{NfsTarget, SmbTarget};

    fn read(line: &str) -> Scenario {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        weir_scenario::lang::command(&words, &weir_scenario::lang::Options::default()).unwrap()
    }

    #[test]
    fn direct_writes_of_every_language_are_file_sync_over_nfs() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("direct.vdb");
        let text = "sd=sd1,lun=/mnt/f,size=1m,openflags=o_direct\nwd=wd1,sd=sd*,rdpct=0\n\
                    rd=rd1,wd=wd1,iorate=max,elapsed=5\n";
        std::fs::write(&file, text).unwrap();
        let nfs = Target::Nfs(NfsTarget::parse("nfs://127.0.0.1/vol").unwrap());
        let smb = Target::Smb(SmbTarget::parse("smb://u@127.0.0.1/share").unwrap());
        for line in [
            "fio --name=a --size=1m --rw=write --direct=1".to_owned(),
            "diskspd.exe -w100 -c1M -Su z:\\a".to_owned(),
            format!("vdbench -f {}", file.display()),
        ] {
            let written = read(&line);
            let load = |scenario: &Scenario| scenario.steps[0].loads[0].clone();
            assert!(load(&written).direct, "{line}");
            assert_eq!(load(&written).stability, Stability::Unstable, "{line}");
            let noted = |target, word: &str| {
                let mut applied = written.clone();
                apply_to(&mut applied, target);
                let told = applied.changes.iter().filter(|told| told.contains(word)).count();
                assert_eq!(told, 1, "{line}: {:?}", applied.changes);
                load(&applied).stability
            };
            assert_eq!(noted(&nfs, "FILE_SYNC, as the Linux"), Stability::FileSync);
            assert_eq!(noted(&smb, "not write-through"), Stability::Unstable);
            let mut applied = written.clone();
            apply_to(&mut applied, &Target::Path("/mnt".into()));
            assert_eq!(applied, written, "the kernel of the mount decides");
        }
    }
}
