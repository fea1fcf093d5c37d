//! `weir bench run`: published tests and loads written in other languages.

use super::choose::Choice;
use super::fit::FitArgs;
use super::method::{Files, MethodArgs};
use super::output::OutputArgs;
use super::place::WhoArgs;
use super::served::{self, Ask};
use super::show::Show;
use super::worker::WorkersArgs;
use super::{CliError, Format, dry, hosts, output, steps, targets};
use crate::cluster::{Wanted, WorkerPlace};
use crate::suite::fio::FioExecutor;
use crate::suite::{
    Executor, Local, Machine, Options, Place, Suite, SuiteOutcome, TargetPlace, above_contracts,
    cache_remarks, check, preflight,
};
use clap::{Args, ValueEnum};
use std::collections::BTreeMap;
use weir_load::control::Control;
use weir_load::target::{Target, Targets};
use weir_load::workload::{Stability, Workload};
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

  A Vdbench file on two volumes at once, its mount points mapped to their exports:
    weir bench run six.vdb --map /mnt/vol1:=nfs://10.0.0.4/vol1 --map /mnt/vol2:=nfs://10.0.0.4/vol2

  The same load on two volumes at the same time, with results for each:
    weir bench run load.fio --target a=nfs://10.0.0.4/vol1 --target b=nfs://10.0.0.4/vol2

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
    /// Seed of the orders in which steps that exclude caches visit their blocks, as an earlier run
    /// recorded it [default: another one in each run].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..1 << 53),
          help_heading = "Caches")]
    pub seed: Option<u64>,
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
    ask: &Ask<'_>,
) -> Result<Vec<String>, CliError> {
    args.output.keep_earlier()?;
    let (mut scenarios, given) = args.choice.scenarios()?;
    let targets = targets::resolve(&given, &mut scenarios, &args.who)?;
    let workers = hosts::workers(&args.by.workers, &mut scenarios)?;
    let files = Files { keep: args.keep, reuse: args.reuse };
    // A dry run contacts no machine.
    let served = if args.dry_run { None } else { ask(&served::volumes(&targets)) };
    let label = args.output.label.as_deref();
    let text = targets::text(&given, &targets);
    let mut options = args.method.options((&text, &targets), served.as_ref(), files, label)?;
    options.seed = args.seed.unwrap_or(options.seed);
    let room = if args.dry_run { None } else { least_room(&targets, control)? };
    let facts = facts(&options, room);
    let fitted = scenarios.iter().map(|scenario| args.fit.fit(scenario, facts, &options));
    let mut fitted: Vec<Scenario> = fitted.collect::<Result<_, _>>()?;
    steps::check(&args.fit.step, &scenarios, &fitted)?;
    fitted.retain(|scenario| args.fit.step.is_empty() || !scenario.steps.is_empty());
    let mut scenarios = fitted;
    let mut call = Call { targets, options, by: &args.by, workers, notes: Vec::new() };
    check(&call.targets, &call.worker_names(), &scenarios)?;
    scenarios.iter_mut().for_each(|scenario| apply_to(scenario, &call.targets));
    call.options.machine = call.machine();
    let mut needs = call.needs(&scenarios);
    let runnable = scenarios.iter().filter(|scenario| scenario.waiting.is_none());
    needs.extend(runnable.flat_map(|one| above_contracts(one, &call.options.contracts)));
    needs.extend(cache_remarks(&scenarios, &call.options.cache));
    if args.dry_run {
        needs.extend(args.fit.not_asked(&call.options));
        match format {
            Format::Table => {
                let mut text = dry::text(&scenarios, &call.options);
                dry::workers(&mut text, &call.workers);
                dry::notes(&mut text, &needs);
                output::print(&text)?;
            }
            Format::Json => output::print_json(&scenarios)?,
        }
        return Ok(Vec::new());
    }
    call.notes = needs;
    let to = (&args.output, format);
    with_suite(&scenarios, &mut call, to, control, |suite| suite.run(&scenarios))
}

/// The free space at the target that has least.
fn least_room(targets: &Targets, control: &Control) -> Result<Option<u64>, CliError> {
    let mut place = TargetPlace::new(targets.clone()).stopped_by(control);
    let mut least = None;
    for (name, _) in targets.iter() {
        let room = place.room(name)?;
        least = match (least, room) {
            (Some(least), Some(room)) => Some(room.min(least)),
            (least, room) => least.or(room),
        };
    }
    Ok(least)
}

/// A run, as the command line describes it.
pub(super) struct Call<'a> {
    /// The targets.
    pub(super) targets: Targets,
    /// The options of the suite.
    pub(super) options: Options,
    /// The engine, and how workers are started.
    pub(super) by: &'a ByArgs,
    /// The workers that apply the loads; this process if there are none.
    pub(super) workers: Vec<Wanted>,
    /// Sentences for the user before the run.
    pub(super) notes: Vec<String>,
}

impl Call<'_> {
    /// The names of the workers.
    pub(super) fn worker_names(&self) -> Vec<String> {
        self.workers.iter().map(|worker| worker.name.clone()).collect()
    }

    /// This machine, if it applies all loads; the machines of remote workers are unknown.
    pub(super) fn machine(&self) -> Option<Machine> {
        let is_here = |worker: &Wanted| worker.place == WorkerPlace::Local;
        self.workers.iter().all(is_here).then(|| Machine::this(&self.targets))
    }

    /// Sentences about published rates that this machine cannot apply by itself, and about clients
    /// that share an address.
    fn needs(&self, scenarios: &[Scenario]) -> Vec<String> {
        let Some(machine) = &self.options.machine else { return Vec::new() };
        let runnable = || scenarios.iter().filter(|scenario| scenario.waiting.is_none());
        let mut all: Vec<String> =
            runnable().flat_map(|scenario| machine.falls_short(scenario)).collect();
        if self.workers.is_empty() {
            let loads = runnable().flat_map(|scenario| &scenario.steps).flat_map(|one| &one.loads);
            for load in loads {
                let target = self.targets.of(load).ok();
                let shared = target.and_then(|target| target.shared_source(load.clients));
                all.extend(shared.filter(|sentence| !all.contains(sentence)));
            }
        }
        all
    }

    /// The executor that applies the loads; the options are completed with its machines.
    fn executor(&mut self) -> Result<Box<dyn Executor>, CliError> {
        if self.by.engine == Engine::Fio {
            if !self.workers.is_empty() {
                let message =
                    "fio is run on this machine alone: omit --engine fio for loads on hosts";
                return Err(CliError::Usage(message.to_owned()));
            }
            let Some(target) = self.targets.only() else {
                let message = "fio is run on one path: give one target, or omit --engine fio";
                return Err(CliError::Usage(message.to_owned()));
            };
            return Ok(Box::new(FioExecutor::new(target)?));
        }
        if self.workers.is_empty() {
            return Ok(Box::new(Local::new(self.targets.clone())));
        }
        let workers = self.by.workers.connect(self.targets.clone(), &self.workers)?;
        self.options.clients = workers.machines();
        let mut machines: BTreeMap<&str, u64> = BTreeMap::new();
        for machine in &self.options.clients {
            machines.insert(&machine.name, machine.memory_bytes);
        }
        self.options.cache.client_memory = machines.values().sum();
        Ok(Box::new(workers))
    }
}

/// Puts in what the kind of each load's target decides, and notes it.
fn apply_to(scenario: &mut Scenario, targets: &Targets) {
    let (mut durable, mut through_smb) = (false, false);
    for load in scenario.steps.iter_mut().flat_map(|step| &mut step.loads) {
        // A load without a target is refused when it is run.
        let Ok(target) = targets.of(load) else { continue };
        let applied = load.applied_to(target);
        durable |= applied.stability != load.stability;
        through_smb |= matches!(target, Target::Smb(_)) && is_direct_and_unstable(load);
        *load = applied;
    }
    if let Some((published, given)) = fewer_addresses(scenario, targets) {
        scenario.changes.push(format!("addresses of the server: {published} → {given}"));
    }
    let notes = [
        (
            durable,
            "O_DIRECT over NFS: writes are FILE_SYNC, as the Linux kernel sends direct writes",
        ),
        (
            through_smb,
            "O_DIRECT over SMB: this client has no cache to bypass, and writes are not write-through",
        ),
    ];
    let notes = notes.into_iter().filter(|(applies, _)| *applies);
    scenario.changes.extend(notes.map(|(_, sentence)| sentence.to_owned()));
}

/// The addresses of the server in the published test and at its target, if there are fewer here.
/// Nothing is known of the addresses behind a path.
fn fewer_addresses(scenario: &Scenario, targets: &Targets) -> Option<(usize, usize)> {
    let published = usize::try_from(scenario.addresses?).ok()?;
    let given = targets.iter().filter_map(|(_, target)| match target {
        Target::Nfs(nfs) => Some(nfs.more.len() + 1),
        Target::Smb(smb) => Some(smb.more.len() + 1),
        Target::Path(_) => None,
    });
    given.min().filter(|given| *given < published).map(|given| (published, given))
}

/// Does `load` write directly without asking for durable writes?
fn is_direct_and_unstable(load: &Workload) -> bool {
    load.direct && load.writes() && load.stability == Stability::Unstable
}

/// The known facts about the machines. `room` is the free space at the target.
fn facts(options: &Options, room: Option<u64>) -> Facts {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Facts {
        client_memory_bytes: options.cache.client_memory,
        server_memory_bytes: options.cache.server_memory,
        same_machine: options.cache.server_is_here,
        client_caches: options.cache.on_path,
        free_bytes: room,
        processors: u32::try_from(processors).unwrap_or(u32::MAX),
    }
}

/// Checks whether `scenarios` can be run, calls `work`, and writes the results.
pub(super) fn with_suite(
    scenarios: &[Scenario],
    call: &mut Call<'_>,
    (to, format): (&OutputArgs, Format),
    control: &Control,
    work: impl FnOnce(&mut Suite<'_>) -> SuiteOutcome,
) -> Result<Vec<String>, CliError> {
    to.check()?;
    let mut show = Show::new(to.quiet, control);
    let mut place = TargetPlace::new(call.targets.clone()).stopped_by(control);
    let remarks = preflight(&mut place, scenarios, &call.options)?;
    let mut executor = call.executor()?;
    // Notes in front of an error would hide it.
    call.notes.iter().chain(&remarks).for_each(|note| show.note(note));
    let outcome = work(&mut Suite {
        executor: &mut *executor,
        place: &mut place,
        options: &call.options,
        control,
        observer: &mut |event| show.event(event),
    });
    show.finish();
    to.give(&outcome.results, format)?;
    Ok(outcome.unclean())
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
    fn a_target_with_fewer_addresses_than_published_is_a_change() {
        let changes = |name: &str, url: &str| {
            let mut scenario = weir_scenario::catalogue::scenario(name).unwrap();
            let target = NfsTarget::parse(url).unwrap();
            apply_to(&mut scenario, &Targets::from(Target::Nfs(target)));
            let of = scenario.changes.iter().filter(|told| told.contains("addresses"));
            of.cloned().collect::<Vec<_>>()
        };
        let six = "nfs://10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5,10.0.0.6/vol";
        assert_eq!(changes("eda", "nfs://10.0.0.1/vol"), ["addresses of the server: 6 → 1"]);
        assert_eq!(changes("eda", six), [""; 0]);
        assert_eq!(changes("anf-linux-4k-random", "nfs://10.0.0.1/vol"), [""; 0]);
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
                apply_to(&mut applied, &Targets::from(Target::clone(target)));
                let told = applied.changes.iter().filter(|told| told.contains(word)).count();
                assert_eq!(told, 1, "{line}: {:?}", applied.changes);
                load(&applied).stability
            };
            assert_eq!(noted(&nfs, "FILE_SYNC, as the Linux"), Stability::FileSync);
            assert_eq!(noted(&smb, "not write-through"), Stability::Unstable);
            let mut applied = written.clone();
            apply_to(&mut applied, &Target::Path("/mnt".into()).into());
            assert_eq!(applied, written, "the kernel of the mount decides");
        }
    }
}
