//! `make replay`: the catalogue of published tests against Weir and against NFS-Ganesha, on one
//! file system of one machine, in turns. Each client machine of a test is a network namespace with
//! a worker of its own, joined to the server's by a veth pair, so that every byte goes over
//! addresses that are not loopback, and the server sees as many machines as it did in the original.
//!
//! Every test is made to fit the machine by the same scale for both servers, and applied in rounds:
//! Weir, Ganesha, Ganesha, Weir, so that what else the machine does meets both. Weir runs on;
//! Ganesha is started for each turn. What is written is what `weir bench run` writes: a document of
//! results for each server, and reports of them. Nothing is judged here.

use crate::campaign::{self, Campaign, Report};
use crate::disk::{Disk, Filesystem};
use crate::judge::Check;
use crate::network::{Network, SERVER_ADDRESSES};
use crate::peers::{LOCAL, Reach, furnish, ganesha, requirements, weir};
use crate::stop::Stop;
use anyhow::{Result, bail};
use clap::Args;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use weir_bench::cluster::this_machine;
use weir_bench::suite::{
    CacheOptions, Event, Options as SuiteOptions, Plan, Suite, TargetPlace, Workers, chance_seed,
};
use weir_core::units::parse_bytes;
use weir_load::Target;
use weir_load::control::Control;
use weir_report::terminal;
use weir_results::compare::pairs::judge;
use weir_results::pages;
use weir_results::{Results, StepResult, Summary, TestResult};
use weir_scenario::catalogue;
use weir_scenario::scenario::Scenario;
use weir_scenario::scenario::scale::{Facts, Scale, scale};

/// Room beside the data set: the catalogue, journals, and Weir's own files.
const SPARE_BYTES: u64 = 2 << 30;

/// Places of the two servers.
const WEIR: usize = 0;
const GANESHA: usize = 1;

/// A remark that a reader has to know first.
const ONE_MACHINE: &str = "The client machines are network namespaces, and share the processors and \
    the memory of one machine with the server and its disk: what it can do bounds both servers, and \
    its figures are not those of a server that has a machine to itself. All tests go over NFS, also \
    those that were published for SMB.";

/// Run published tests, scaled, against Weir and NFS-Ganesha, alternating, as root, and write
/// results and reports.
#[derive(Clone, Debug, Args)]
pub(crate) struct Replay {
    /// Directory for results and reports.
    #[arg(long, default_value = "docs/performance/replay")]
    out: PathBuf,
    /// Directory for the file system image and logs; it needs twice the data size plus 2 GiB.
    #[arg(long, default_value = "target/replay")]
    work: PathBuf,
    /// Run only tests whose name contains this text; repeatable.
    #[arg(long)]
    only: Vec<String>,
    /// Number of rounds; in each, the servers alternate test by test.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Maximum measured time per step, in seconds.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Maximum warm-up time per step, in seconds.
    #[arg(long, default_value_t = 1.0)]
    warmup: f64,
    /// Maximum size of the files at any time.
    #[arg(long, default_value = "2GiB", value_parser = parse_bytes)]
    data: u64,
}

impl Campaign for Replay {
    fn requirements(&self) -> Result<()> {
        requirements()
    }

    fn isolated(&self) -> bool {
        true
    }

    fn run(&self, stop: &Stop) -> Result<Report> {
        furnish()?;
        let mut network = Network::new()?;
        let exe = campaign::weir_program(None)?;
        let work = campaign::work_directory(&self.work)?;
        let scenarios = chosen(self)?;
        let size = self.data.saturating_mul(2).saturating_add(SPARE_BYTES);
        let disk = Disk::make(&work, "replay", Filesystem::Xfs, size)?;
        let (weir, directory) = weir(&exe, &disk, &work, "weir", "process", Reach::Everywhere)?;
        let mut sides = [
            Side::new(
                ("weir", "Weir"),
                version(&exe.to_string_lossy(), "--version"),
                "runs from the first turn to the last",
            ),
            Side::new(
                ("ganesha", "NFS-Ganesha"),
                version("ganesha.nfsd", "-v"),
                "is started for each turn; the other is idle meanwhile",
            ),
        ];
        for (number, scenario) in scenarios.iter().enumerate() {
            weir_report::errln!("{} ({} of {})", scenario.title, number + 1, scenarios.len());
            for round in 0..self.rounds {
                // The second server meets the state that the first left behind, so they alternate.
                let order = if round % 2 == 0 { [WEIR, GANESHA] } else { [GANESHA, WEIR] };
                for place in order {
                    let Some(side) = sides.get_mut(place).filter(|_| !stop.asked()) else {
                        continue;
                    };
                    weir_report::errln!("  {}, round {}", side.label, round + 1);
                    // Ganesha 4.3 releases no descriptor once it has used all it may have, and
                    // answers NFS3ERR_JUKEBOX from then on: it is started for each turn.
                    let fresh = (place == GANESHA)
                        .then(|| ganesha(LOCAL, &directory, &work, Reach::Everywhere))
                        .transpose();
                    disk.sync()?;
                    let applied = fresh.and_then(|fresh| {
                        let peer = fresh.as_ref().unwrap_or(&weir);
                        let target = peer.target_at(addresses(scenario));
                        let workers = network.workers(machines(scenario), &exe, target.clone())?;
                        side.apply(scenario, (peer.pid, target, workers), self, stop);
                        Ok(())
                    });
                    if let Err(error) = applied {
                        side.failures.push(format!("{}: {error:#}", side.label));
                    }
                }
            }
            // A run that is interrupted leaves what it has measured.
            report(self, &sides)?.write()?;
            if stop.asked() {
                bail!("interrupted; the results until then are in {}", self.out.display());
            }
        }
        for side in &sides {
            weir_report::outln!("{}", side.label);
            terminal::show(&pages::terminal(&side.results));
            weir_report::outln!("");
        }
        sides.iter().flat_map(|side| &side.failures).for_each(|why| weir_report::errln!("{why}"));
        report(self, &sides)
    }
}

/// The tests that can be run and are wanted, made to fit.
fn chosen(options: &Replay) -> Result<Vec<Scenario>> {
    let wanted = |name: &str| {
        options.only.is_empty() || options.only.iter().any(|part| name.contains(part.as_str()))
    };
    let scenarios: Vec<Scenario> = catalogue::all()
        .iter()
        .filter(|entry| entry.waiting.is_none() && wanted(&entry.name))
        .map(|entry| catalogue::scenario(&entry.name).map(|scenario| fitted(&scenario, options)))
        .collect::<Result<_, String>>()
        .map_err(anyhow::Error::msg)?;
    if scenarios.is_empty() {
        bail!("no test that can be run is called like {}", options.only.join(" or "));
    }
    Ok(scenarios)
}

fn fitted(scenario: &Scenario, options: &Replay) -> Scenario {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let facts = Facts {
        client_memory_bytes: this_machine().memory_bytes,
        server_memory_bytes: Some(this_machine().memory_bytes),
        same_machine: true,
        client_caches: false,
        free_bytes: Some(options.data.saturating_mul(2)),
        processors: u32::try_from(processors).unwrap_or(1),
    };
    let fit = Scale {
        max_data_bytes: Some(options.data),
        time_s: Some(options.seconds),
        warmup_s: Some(options.warmup),
        too_little_room: None,
        ..Scale::automatic(scenario, facts)
    };
    scale(scenario, &fit)
}

/// The number of client machines that a test needs: the most clients of one load. The loads of a
/// step share the machines.
fn machines(scenario: &Scenario) -> u32 {
    let steps = scenario.steps.iter();
    let clients = steps.map(|step| step.loads.iter().map(|load| load.clients).max().unwrap_or(1));
    clients.max().unwrap_or(1)
}

/// The server's addresses that a test is to use: as many as the published one has, one by default.
fn addresses(scenario: &Scenario) -> &'static [Ipv4Addr] {
    let number = usize::try_from(scenario.addresses.unwrap_or(1)).unwrap_or(usize::MAX);
    SERVER_ADDRESSES.get(..number).unwrap_or(&SERVER_ADDRESSES)
}

/// One server, and what came of it so far.
struct Side {
    /// Of its files.
    name: &'static str,
    label: &'static str,
    /// The program's own version text.
    program: String,
    /// The lifetime of its process.
    process: &'static str,
    results: Results,
    failures: Vec<String>,
}

impl Side {
    fn new(
        (name, label): (&'static str, &'static str),
        program: String,
        process: &'static str,
    ) -> Self {
        let (results, failures) = (Results::default(), Vec::new());
        Self { name, label, program, process, results, failures }
    }

    /// Applies `scenario` once and adds what came of it.
    fn apply(
        &mut self,
        scenario: &Scenario,
        (pid, target, mut workers): (u32, Target, Workers),
        options: &Replay,
        stop: &Stop,
    ) {
        let suite_options = self.options(pid, &target, &workers);
        let seconds = Plan::of(std::slice::from_ref(scenario), &suite_options).seconds;
        weir_report::errln!("  about {seconds:.0} s of load");
        let control = Control::new();
        let mut observer = |event: &Event<'_>| {
            if stop.asked() {
                control.stop();
            }
            if let Event::Done(step) = event
                && let Some(summary) = &step.summary
            {
                let (iops, mibps) = (summary.iops.median, summary.mibps.median);
                weir_report::errln!("    {:<28} {iops:>9.0} op/s {mibps:>8.1} MiB/s", step.name);
            }
        };
        let outcome = Suite {
            executor: &mut workers,
            place: &mut TargetPlace::new(target),
            options: &suite_options,
            control: &control,
            observer: &mut observer,
        }
        .run(std::slice::from_ref(scenario));
        let prefixed = outcome.failures.into_iter().map(|why| format!("{}: {why}", self.label));
        self.failures.extend(prefixed);
        self.add(outcome.results, options);
    }

    fn options(&self, pid: u32, target: &Target, workers: &Workers) -> SuiteOptions {
        SuiteOptions {
            label: self.label.to_owned(),
            target: target.to_string(),
            command: command(),
            transport: "NFSv3 in user space, over veth pairs between network namespaces".to_owned(),
            server_pid: Some(pid),
            clients: workers.machines(),
            cache: CacheOptions {
                client_memory: this_machine().memory_bytes,
                server_memory: Some(this_machine().memory_bytes),
                drop: true,
                server_is_here: true,
                ..CacheOptions::default()
            },
            seed: chance_seed(),
            ..SuiteOptions::default()
        }
    }

    fn add(&mut self, new: Results, options: &Replay) {
        if self.results.tests.is_empty() {
            self.results = Results { tests: Vec::new(), ..new.clone() };
            let rounds = format!("{}, in turns with the other server", options.rounds);
            let facts = [
                ("server's program", self.program.clone()),
                ("server's process", self.process.to_owned()),
                (
                    "file system",
                    "XFS in a file of this machine's disk, the same for both".to_owned(),
                ),
                ("rounds", rounds),
            ];
            let facts = facts.map(|(name, value)| (name.to_owned(), value));
            self.results.environment.facts.extend(facts);
            self.results.warnings.push(ONE_MACHINE.to_owned());
        }
        self.results.interrupted |= new.interrupted;
        for warning in new.warnings {
            if !self.results.warnings.contains(&warning) {
                self.results.warnings.push(warning);
            }
        }
        for test in new.tests {
            match self.results.tests.iter_mut().find(|own| own.name == test.name) {
                Some(own) => join(own, test),
                None => self.results.tests.push(test),
            }
        }
        self.results.pairs = judge(&[&self.results]).pairs;
    }
}

/// Adds another round of the same test.
fn join(own: &mut TestResult, other: TestResult) {
    for step in other.steps {
        match own.steps.iter_mut().find(|kept| kept.name == step.name) {
            Some(kept) => join_step(kept, step),
            None => own.steps.push(step),
        }
    }
}

fn join_step(own: &mut StepResult, other: StepResult) {
    own.runs.extend(other.runs);
    own.summary = Summary::of(&own.runs);
    own.skipped = own.skipped.take().or(other.skipped);
    for note in other.notes {
        if !own.notes.contains(&note) {
            own.notes.push(note);
        }
    }
}

/// The command line, with the program by its name alone: results travel.
fn command() -> Vec<String> {
    let words = std::env::args().skip(1).filter(|word| word != "--inside");
    std::iter::once("weir-lab".to_owned()).chain(words).collect()
}

/// The first line of what `program` says of its version; its name if it says nothing.
fn version(program: &str, flag: &str) -> String {
    let said = std::process::Command::new(program).arg(flag).output();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let first = said.ok().and_then(|text| text.lines().next().map(str::to_owned));
    first.filter(|line| !line.is_empty()).unwrap_or_else(|| program.to_owned())
}

/// The results of each server, a report of both, and the rule that nothing failed.
fn report(options: &Replay, sides: &[Side]) -> Result<Report> {
    let checks = sides.iter().map(|side| {
        let worst = format!("{} failures", side.failures.len());
        Check::new(
            format!("every test could be run on {}", side.label),
            worst,
            side.failures.is_empty(),
        )
    });
    let mut report = Report::new(checks.collect());
    for side in sides {
        let path = |extension| options.out.join(format!("{}.{extension}", side.name));
        report = report
            .file(path("json"), serde_json::to_string(&side.results)? + "\n")
            .file(path("html"), pages::html(&[&side.results]))
            .file(path("csv"), pages::csv(&side.results));
    }
    let all: Vec<&Results> = sides.iter().map(|side| &side.results).collect();
    Ok(report.file(options.out.join("replay.html"), pages::html(&all)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(only: &[&str]) -> Replay {
        Replay {
            work: PathBuf::new(),
            out: PathBuf::new(),
            only: only.iter().map(|&name| name.to_owned()).collect(),
            rounds: 2,
            seconds: 2.0,
            warmup: 0.5,
            data: 1 << 30,
        }
    }

    #[test]
    fn tests_are_chosen_by_name_and_made_to_fit() {
        let some = chosen(&options(&["anf-linux-4k"])).unwrap();
        assert!(!some.is_empty() && some.iter().all(|test| test.name.contains("anf-linux-4k")));
        assert!(some.iter().all(|test| !test.changes.is_empty()));
        assert!(chosen(&options(&["no such test"])).is_err());
        assert!(chosen(&options(&[])).unwrap().iter().all(|test| test.waiting.is_none()));
    }

    #[test]
    fn a_test_has_a_machine_for_each_client_and_the_addresses_of_its_server() {
        let scenario = |name: &str| chosen(&options(&[name])).unwrap().swap_remove(0);
        let eda = scenario("eda-frontend");
        assert_eq!((machines(&eda), addresses(&eda).len()), (12, 6));
        let one = scenario("anf-nconnect-4k-random");
        assert_eq!((machines(&one), addresses(&one).len()), (1, 1));
        assert_eq!(machines(&scenario("weir-contract-accuracy")), 40);
    }

    #[test]
    fn programs_say_their_version_or_are_named() {
        assert_eq!(version("echo", "one"), "one");
        assert_eq!(version("/no/such/program", "-v"), "/no/such/program");
    }

    #[test]
    fn rounds_of_a_test_are_its_repeats() {
        let step = |note: &str| StepResult {
            name: "a".to_owned(),
            group: String::new(),
            axis: None,
            preparation: false,
            published: None,
            written_in_flight: None,
            runs: Vec::new(),
            summary: None,
            skipped: None,
            notes: vec!["same".to_owned(), note.to_owned()],
            out_of_reach: Vec::new(),
            cache: weir_results::CacheProof::default(),
        };
        let mut own = step("one");
        join_step(&mut own, StepResult { skipped: Some("why".to_owned()), ..step("two") });
        assert_eq!(own.notes, ["same", "one", "two"]);
        assert_eq!(own.skipped.as_deref(), Some("why"));
    }
}
