//! `weir bench search`: finding limits.

use super::args::LoadArgs;
use super::method::{Files, MethodArgs};
use super::output::OutputArgs;
use super::run::{ByArgs, Call, with_suite};
use super::served::{self, Ask};
use super::values::time;
use super::{CliError, Format};
use crate::suite::check;
use crate::suite::search::{Question, Varied, search};
use clap::{ArgGroup, Args, ValueEnum};
use std::time::Duration;
use weir_load::control::Control;
use weir_load::target::Target;
use weir_load::workload::Length;
use weir_scenario::scenario::{Chart, Language, Scenario, Step};

const EXAMPLES: &str = "\
Examples:
  The highest rate of 8 KiB random reads with a 99th percentile of at most 2 ms:
    weir bench search nfs://127.0.0.1:2049/vol --bs 8KiB --jobs 8 --depth 32 --time 10s \\
        --p99-under 2ms

  The knee of the latency curve, and the number of connections beyond which nothing is gained:
    weir bench search nfs://127.0.0.1:2049/vol --rw randrw --jobs 4 --time 10s \\
        --knee --scaling connections

How rates are found: the load is first applied without a rate limit. Rates are then doubled, starting
from a sixteenth of the result, until one misses the target (p99 too high, or less than 95 %
completed). The interval is then halved until it is below 5 %. A result near the target is measured
again; if the two results differ, the search ends there, because the boundary is within the noise. The
knee is the point of the curve of mean latency over operations per second, at 1, 2, 4, 8 … requests in
flight per job, that is furthest below the chord from its first to its last point. For --scaling, the
number is doubled until a doubling gains less than 5 %.

Exit status: as weir bench.";

/// Find limits: highest rate below a latency, knee of the latency curve, or useful parallelism
///
/// The load is described by the same options as for a single load; --time is the duration of each
/// probe. The results contain every probe as a step with all its figures.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES, max_term_width = 100)]
#[command(group = ArgGroup::new("question").required(true).multiple(true)
          .args(["p99_under", "knee", "scaling"]))]
pub struct SearchArgs {
    /// Find the highest rate with a 99th percentile below this latency.
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Question")]
    pub p99_under: Option<Duration>,
    /// Find the knee of the latency curve.
    #[arg(long, help_heading = "Question")]
    pub knee: bool,
    /// Find the number beyond which more of these gain nothing; several are tested one after the
    /// other.
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',', help_heading = "Question")]
    pub scaling: Vec<Scaling>,
    /// Maximum number of connections, jobs, or requests in flight per job to try.
    #[arg(long, value_name = "N", default_value_t = 256, help_heading = "Question",
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub most: u32,
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Repeats, caches and server measurement.
    #[command(flatten)]
    pub method: MethodArgs,
    /// The engine or the workers that apply the load.
    #[command(flatten)]
    pub by: ByArgs,
    /// Output of the results.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The parameter that is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scaling {
    /// Connections per client (nconnect).
    Connections,
    /// Jobs.
    Jobs,
    /// Requests in flight per job.
    Depth,
}

impl SearchArgs {
    fn questions(&self) -> Vec<Question> {
        let mut all = Vec::new();
        if let Some(under) = self.p99_under {
            all.push(Question::RateUnder(under.as_secs_f64() * 1e3));
        }
        if self.knee {
            all.push(Question::Knee(self.most));
        }
        all.extend(self.scaling.iter().map(|what| {
            let varied = match what {
                Scaling::Connections => Varied::Connections,
                Scaling::Jobs => Varied::Jobs,
                Scaling::Depth => Varied::Depth,
            };
            Question::Scaling(varied, self.most)
        }));
        all
    }
}

/// Runs the search; returns the problems that were found.
pub(super) fn run(
    args: &SearchArgs,
    format: Format,
    control: &Control,
    ask: &Ask<'_>,
) -> Result<Vec<String>, CliError> {
    let target = args.load.target()?;
    let load = args.load.workload("search")?;
    if matches!(target, Target::Path(_)) && args.scaling.contains(&Scaling::Connections) {
        let message = "a path has no connections of its own to scale over: search over jobs or \
                       depth, or on an nfs:// target";
        return Err(CliError::Usage(message.to_owned()));
    }
    if !matches!(load.length, Length::Seconds(_)) {
        return Err(CliError::Usage("probes end by --time, not by --ops".to_owned()));
    }
    let files = Files { keep: args.load.keep, reuse: args.load.reuse };
    let text = args.load.target_text();
    let label = args.output.label.as_deref();
    let targets = target.clone().into();
    let served = ask(&served::volumes(&targets));
    let options = args.method.options((text, &targets), served.as_ref(), files, label)?;
    // Preflight looks at the load as it was described.
    let probe = Scenario {
        name: "search".to_owned(),
        title: "Search".to_owned(),
        about: String::new(),
        source: None,
        language: Language::Native,
        chart: Chart::LatencyCurve,
        steps: vec![Step {
            name: "probe".to_owned(),
            loads: vec![load.clone()],
            ..Step::default()
        }],
        changes: Vec::new(),
        waiting: None,
        addresses: None,
        target: None,
        text: None,
        hosts: Vec::new(),
    };
    let to = (&args.output, format);
    let workers = args.by.workers.wanted();
    let notes = Vec::new();
    let mut call = Call { targets: target.into(), options, by: &args.by, workers, notes };
    call.options.machine = call.machine();
    check(&call.targets, &call.worker_names(), std::slice::from_ref(&probe))?;
    with_suite(&[probe], &mut call, to, control, |suite| search(suite, &load, &args.questions()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: SearchArgs,
    }

    fn parse(line: &str) -> Result<SearchArgs, String> {
        let words = std::iter::once("search").chain(line.split_whitespace());
        Program::try_parse_from(words).map(|program| program.args).map_err(|e| e.to_string())
    }

    #[test]
    fn questions_are_asked_together() {
        let args = parse("/mnt --p99-under 2ms --knee --scaling jobs,depth --most 32").unwrap();
        assert_eq!(
            args.questions(),
            [
                Question::RateUnder(2.0),
                Question::Knee(32),
                Question::Scaling(Varied::Jobs, 32),
                Question::Scaling(Varied::Depth, 32),
            ]
        );
        assert!(parse("/mnt").unwrap_err().contains("--p99-under"), "a question is wanted");
    }

    #[test]
    fn what_a_target_has_not_is_not_searched_for() {
        let refused = |line: &str| {
            let args = parse(line).unwrap();
            run(&args, Format::Table, &Control::new(), &|_| None).unwrap_err().to_string()
        };
        assert!(refused("/mnt --scaling connections").contains("a path has no connections"));
        assert!(refused("/mnt --knee --ops 5").contains("--time"));
    }
}
