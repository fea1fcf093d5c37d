//! Scaling tests to a machine: less data, less parallelism, shorter runs, and other user changes.

use super::CliError;
use super::values::{client_delay, part, time};
use crate::suite::{Options, Plan};
use clap::Args;
use std::collections::BTreeSet;
use std::time::Duration;
use weir_core::units::parse_bytes;
use weir_load::workload::{VerifyScope, Workload};
use weir_scenario::scenario::scale::{Facts, Scale, scale_changed};
use weir_scenario::scenario::{Scenario, only};

/// Minimum measured time that a bound on the total time leads to.
const TIME_MIN_S: f64 = 1.0;

/// The share of a test's data to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScaleBy {
    /// This fraction.
    Part(f64),
    /// The amount that suits this machine.
    Auto,
}

/// Changes to the tests as they were written.
#[derive(Args, Clone, Debug, Default)]
pub struct FitArgs {
    /// Run only this step of the tests, and its preparations, at the size that it has in the whole
    /// test; repeatable. --dry-run shows the steps.
    #[arg(long, value_name = "NAME", help_heading = "Size")]
    pub step: Vec<String>,
    /// Scale the data by a factor (1/100, 1%), or scale everything to this machine (auto): data,
    /// requests in flight, and 20 s per step. The changes are reported.
    #[arg(long, value_name = "PART|auto", value_parser = scale_by, help_heading = "Size")]
    pub scale: Option<ScaleBy>,
    /// Maximum amount of data per test, on all targets together.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Size")]
    pub max_data: Option<u64>,
    /// Maximum measured time per step.
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Size")]
    pub time: Option<Duration>,
    /// Maximum warm-up time per step.
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Size")]
    pub warmup: Option<Duration>,
    /// Maximum total load time per test, including repeats; steps are shortened.
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Size")]
    pub max_time: Option<Duration>,
    /// Maximum number of clients.
    #[arg(long, value_name = "N", help_heading = "Size",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: Option<u32>,
    /// Maximum number of jobs per load.
    #[arg(long, value_name = "N", help_heading = "Size",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
    /// Maximum number of requests in flight per job.
    #[arg(long, value_name = "N", help_heading = "Size",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Number of connections per client (nconnect); refused for tests that vary it.
    #[arg(long, value_name = "N", help_heading = "Load",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: Option<u32>,
    /// Simulated network round-trip time per client (200us,2ms); several values are assigned to
    /// clients round-robin.
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = client_delay,
          help_heading = "Load")]
    pub client_delay: Vec<u64>,
    /// Number of worker threads (for NFS and SMB; a path has a thread for each request in flight).
    #[arg(long, value_name = "N", help_heading = "Load",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Option<u32>,
    /// Open files with O_DIRECT (for a path). Over NFS, writes are FILE_SYNC, as the Linux kernel
    /// sends direct writes.
    #[arg(long, help_heading = "Load")]
    pub direct: bool,
    /// Verify every block that is read, and read back and verify written data: everything, or this
    /// number of blocks.
    #[arg(long, value_name = "BLOCKS", num_args = 0..=1, require_equals = true,
          default_missing_value = "all", value_parser = super::args::verify_scope,
          help_heading = "Load")]
    pub verify: Option<VerifyScope>,
    /// Directory for the files, created below the target [default: weir-bench].
    #[arg(long, value_name = "NAME", help_heading = "Files")]
    pub dir: Option<String>,
}

fn scale_by(text: &str) -> Result<ScaleBy, String> {
    if text == "auto" { Ok(ScaleBy::Auto) } else { part(text).map(ScaleBy::Part) }
}

impl FitArgs {
    /// The scenario with all changes applied. `options` determine the number of repeats.
    pub(super) fn fit(
        &self,
        scenario: &Scenario,
        facts: Facts,
        options: &Options,
    ) -> Result<Scenario, CliError> {
        let mut changed = scenario.clone();
        self.change(&mut changed)?;
        let to = self.scale(&changed, facts);
        to.check().map_err(CliError::Usage)?;
        let sized = |to: &Scale| {
            let mut sized = scale_changed(scenario, changed.clone(), to);
            if !self.step.is_empty() {
                only(&mut sized, &self.step);
            }
            sized
        };
        let fitted = sized(&to);
        let Some(most) = self.max_time else { return Ok(fitted) };
        let in_time = |time_s: f64| {
            let least = |own: Option<f64>| Some(own.map_or(time_s, |own_s| own_s.min(time_s)));
            // A warm-up is no longer than the load that it prepares.
            let (time_s, warmup_s) = (least(to.time_s), least(to.warmup_s));
            sized(&Scale { time_s, warmup_s, ..to.clone() })
        };
        within(most.as_secs_f64(), fitted, in_time, options)
    }

    /// The facts that decide the size and that a dry run does not ask for, in a sentence.
    pub(super) fn not_asked(&self, options: &Options) -> Option<String> {
        let memory = match options.cache.server_memory {
            Some(_) => "",
            None => ", and more where caches are to be excluded if the server tells its memory",
        };
        (self.scale == Some(ScaleBy::Auto)).then(|| {
            format!(
                "a dry run asks no machine for its free space and memory: with --scale auto the run \
                 may use less data, if the target has little room{memory}"
            )
        })
    }

    fn scale(&self, scenario: &Scenario, facts: Facts) -> Scale {
        let mut to = match self.scale {
            Some(ScaleBy::Auto) => Scale::automatic(scenario, facts),
            Some(ScaleBy::Part(factor)) => {
                Scale { factor: Some(factor), facts: Some(facts), ..Scale::default() }
            }
            None => Scale { facts: Some(facts), ..Scale::default() },
        };
        if self.max_data.is_some() {
            (to.max_data_bytes, to.too_little_room) = (self.max_data, None);
        }
        to.time_s = self.time.map(|time| time.as_secs_f64()).or(to.time_s);
        to.warmup_s = self.warmup.map(|time| time.as_secs_f64()).or(to.warmup_s);
        to.clients = self.clients.or(to.clients);
        to.jobs = self.jobs.or(to.jobs);
        to.depth = self.depth.or(to.depth);
        to.threads = self.threads.or(to.threads);
        to
    }

    /// Applies the changes that do not concern the size.
    fn change(&self, scenario: &mut Scenario) -> Result<(), CliError> {
        if self.connections.is_some() {
            refuse_varied_connections(scenario)?;
        }
        for load in scenario.steps.iter_mut().flat_map(|step| &mut step.loads) {
            self.change_load(load);
        }
        let mut say = |sentence: String| scenario.changes.push(sentence);
        if let Some(connections) = self.connections {
            say(format!("each client has {connections} connections"));
        }
        if !self.client_delay.is_empty() {
            let delays: Vec<String> =
                self.client_delay.iter().map(|us| format!("{us} µs")).collect();
            say(format!(
                "simulated round-trip times of clients: {}, assigned round-robin",
                delays.join(", ")
            ));
        }
        if self.verify.is_some() {
            say("read data is verified, and written data is read back".to_owned());
        }
        if self.direct {
            say("files are opened with O_DIRECT".to_owned());
        }
        Ok(())
    }

    fn change_load(&self, load: &mut Workload) {
        load.connections = self.connections.unwrap_or(load.connections);
        load.threads = self.threads.unwrap_or(load.threads);
        load.direct |= self.direct;
        if !self.client_delay.is_empty() {
            // More distances than clients would stand for nobody.
            let clients = usize::try_from(load.clients).unwrap_or(usize::MAX);
            load.client_delays_us = self.client_delay.iter().copied().take(clients).collect();
        }
        if let Some(scope) = self.verify {
            load.verify = load.writes().then_some(scope);
            load.verify_reads = load.reads();
        }
        if let Some(directory) = &self.dir
            && load.directory == Workload::default().directory
        {
            load.directory.clone_from(directory);
        }
    }
}

/// Refuses one number of connections for a test that varies it: all its steps would be one load.
fn refuse_varied_connections(scenario: &Scenario) -> Result<(), CliError> {
    let measured = scenario.steps.iter().filter(|step| !step.preparation);
    let loads = measured.flat_map(|step| &step.loads);
    let numbers: BTreeSet<u32> = loads.map(|load| load.connections).collect();
    if numbers.len() < 2 {
        return Ok(());
    }
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    Err(CliError::Usage(format!(
        "{} is about the number of connections ({}), which --connections would make the same in \
         all its steps: omit the option",
        scenario.name,
        numbers.join(", ")
    )))
}

/// `fitted`, or, where it takes more than `most_s`, the scenario of `in_time` with the longest
/// measured time per step that takes no more, found by bisection. Each candidate is a scenario that
/// could be the result, so that the steps that are left out do not count.
fn within(
    most_s: f64,
    fitted: Scenario,
    in_time: impl Fn(f64) -> Scenario,
    options: &Options,
) -> Result<Scenario, CliError> {
    let takes = |scenario: Scenario| Plan::of(&[scenario], options).seconds;
    if takes(fitted.clone()) <= most_s {
        return Ok(fitted);
    }
    let least = takes(in_time(TIME_MIN_S));
    if least > most_s {
        return Err(CliError::Usage(format!(
            "{} takes at least {least:.0} s, with {TIME_MIN_S} s for each step: raise --max-time, \
             or choose fewer --repeats",
            fitted.name
        )));
    }
    let (mut low, mut high) = (TIME_MIN_S, 86_400.0);
    while high - low > 0.5 {
        let middle = f64::midpoint(low, high);
        if takes(in_time(middle)) <= most_s { low = middle } else { high = middle }
    }
    Ok(in_time(low.floor().max(TIME_MIN_S)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::testing::scenario;
    use weir_load::workload::{Length, Operation, Pattern};

    fn fit(args: &FitArgs, scenario: &Scenario) -> Scenario {
        args.fit(scenario, Facts::default(), &Options::default()).unwrap()
    }

    #[test]
    fn without_options_nothing_changes() {
        let one = scenario(&["a", "b"]);
        assert_eq!(fit(&FitArgs::default(), &one).steps, one.steps);
    }

    #[test]
    fn a_bound_on_the_whole_shortens_steps_and_their_warm_ups() {
        let one = scenario(&["a", "b", "c", "d"]);
        let args = FitArgs { max_time: Some(Duration::from_secs(60)), ..FitArgs::default() };
        let fitted = fit(&args, &one);
        let plan = Plan::of(std::slice::from_ref(&fitted), &Options::default());
        assert!(plan.seconds <= 60.0 && plan.seconds > 50.0, "{plan:?}");
        assert!(!fitted.changes.is_empty());
        let short = FitArgs { max_time: Some(Duration::from_secs(3)), ..FitArgs::default() };
        let refused = short.fit(&one, Facts::default(), &Options::default()).unwrap_err();
        assert!(refused.to_string().contains("raise --max-time"), "{refused}");
    }

    #[test]
    fn a_bound_on_the_whole_counts_the_steps_that_are_applied() {
        let mut near_and_far = scenario(&["near", "far"]);
        let lengths = [(600.0, 0), (900.0, 500)];
        for (step, (seconds, delay)) in near_and_far.steps.iter_mut().zip(lengths) {
            let load = &mut step.loads[0];
            (load.length, load.warmup_s) = (Length::Seconds(seconds), 0.0);
            load.client_delays_us = vec![delay];
        }
        let bound = |seconds, client_delay: &[u64]| FitArgs {
            max_time: Some(Duration::from_secs(seconds)),
            client_delay: client_delay.to_vec(),
            ..FitArgs::default()
        };
        let of = |args: &FitArgs| {
            let fitted = fit(args, &near_and_far);
            let seconds = Plan::of(std::slice::from_ref(&fitted), &Options::default()).seconds;
            (fitted.steps.len(), seconds)
        };
        // Steps that differ in nothing but their lengths are one step below 600 s.
        let ((steps, one), (both, two)) = (of(&bound(300, &[200])), of(&bound(300, &[])));
        assert_eq!((steps, both), (1, 2));
        for seconds in [one, two] {
            assert!(seconds <= 300.0 && seconds > 290.0, "{one} {two}");
        }
    }

    #[test]
    fn a_step_by_itself_has_the_size_that_it_has_in_its_test() {
        let test = weir_scenario::catalogue::scenario("anf-linux-4k-random").unwrap();
        let facts = Facts { processors: 2, ..Facts::default() };
        let of = |step: &[&str], most_s: Option<u64>| {
            let args = FitArgs {
                scale: Some(ScaleBy::Auto),
                step: step.iter().map(ToString::to_string).collect(),
                max_time: most_s.map(Duration::from_secs),
                ..FitArgs::default()
            };
            args.fit(&test, facts, &Options::default()).unwrap()
        };
        let (whole, last) = (of(&[], None), test.steps.last().unwrap());
        let alone = of(&[&last.name], None);
        assert!(whole.steps.len() == 11 && alone.steps.len() == 1, "{alone:?}");
        assert_eq!(alone.steps[0].loads, whole.steps[10].loads);
        let bounded = of(&[&last.name], Some(25));
        assert_eq!(bounded.steps, alone.steps, "the time of the others does not count");
    }

    #[test]
    fn a_bound_on_the_whole_lengthens_no_step() {
        let one = scenario(&["a", "b"]);
        let short = FitArgs { time: Some(Duration::from_secs(3)), ..FitArgs::default() };
        let roomy = FitArgs { max_time: Some(Duration::from_secs(3600)), ..short.clone() };
        assert_eq!(fit(&roomy, &one), fit(&short, &one));
        let tight = FitArgs { max_time: Some(Duration::from_secs(9)), ..roomy };
        // Twice 2 s after 2 s of warm-up.
        let fitted = fit(&tight, &one);
        assert!(fitted.steps.iter().all(|step| step.loads[0].length == Length::Seconds(2.0)));
    }

    #[test]
    fn what_is_not_size_is_set_and_said() {
        let mut one = scenario(&["a", "b"]);
        one.steps[1].loads[0].operation =
            Operation::Data { pattern: Pattern::Random, read_percent: 0 };
        one.steps[1].loads[0].directory = "own".to_owned();
        let args = FitArgs {
            connections: Some(4),
            client_delay: vec![200],
            verify: Some(VerifyScope::All),
            dir: Some("here".to_owned()),
            time: Some(Duration::from_secs(3)),
            ..FitArgs::default()
        };
        let fitted = fit(&args, &one);
        let (read, write) = (&fitted.steps[0].loads[0], &fitted.steps[1].loads[0]);
        assert!(read.verify_reads && read.verify.is_none());
        assert!(!write.verify_reads && write.verify == Some(VerifyScope::All));
        assert_eq!((read.directory.as_str(), write.directory.as_str()), ("here", "own"));
        assert_eq!((read.connections, &read.client_delays_us), (4, &vec![200]));
        assert_eq!(read.length, Length::Seconds(3.0));
        assert!(fitted.changes.len() >= 4, "{:?}", fitted.changes);
    }

    #[test]
    fn one_number_of_connections_is_refused_for_a_test_that_varies_them() {
        let varied = weir_scenario::catalogue::scenario("anf-nconnect-4k-random").unwrap();
        let args = FitArgs { connections: Some(4), ..FitArgs::default() };
        let refused = args.fit(&varied, Facts::default(), &Options::default()).unwrap_err();
        assert!(refused.to_string().contains("omit the option"), "{refused}");
        let one = fit(&args, &scenario(&["a", "b"]));
        assert!(one.steps.iter().all(|step| step.loads[0].connections == 4));
    }

    #[test]
    fn steps_that_options_make_the_same_are_left_out() {
        let mut near_and_far = scenario(&["near", "far"]);
        near_and_far.steps[1].loads[0].client_delays_us = vec![500];
        let args = FitArgs { client_delay: vec![200], ..FitArgs::default() };
        let fitted = fit(&args, &near_and_far);
        let names: Vec<&str> = fitted.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["near"]);
        assert!(fitted.changes.iter().any(|told| told.contains("far (as near)")), "{fitted:?}");
        assert_eq!(fit(&args, &scenario(&["a", "b"])).steps.len(), 2, "the same as written");
    }

    #[test]
    fn a_dry_run_tells_what_it_did_not_ask_for() {
        let auto = FitArgs { scale: Some(ScaleBy::Auto), ..FitArgs::default() };
        let mut options = Options::default();
        let told = auto.not_asked(&options).unwrap();
        assert!(told.contains("less data") && told.contains("tells its memory"), "{told}");
        options.cache.server_memory = Some(1 << 30);
        let told = auto.not_asked(&options).unwrap();
        assert!(told.contains("less data") && !told.contains("tells its memory"), "{told}");
        assert_eq!(FitArgs::default().not_asked(&options), None);
    }

    #[test]
    fn a_scale_is_a_part_or_automatic() {
        assert_eq!(scale_by("auto"), Ok(ScaleBy::Auto));
        assert_eq!(scale_by("1/100"), Ok(ScaleBy::Part(0.01)));
        assert!(scale_by("automatic").unwrap_err().contains("auto"));
    }
}
