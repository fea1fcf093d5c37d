//! A load on a volume with credits: for a while, or until they are gone and some time longer.

use super::super::judge;
use super::super::load::{Lines, Load, stop_all_if_asked};
use super::super::part::{Curve, Figure, Watching, server_verdicts};
use super::super::server::{BY_SECONDS, Broken, LiveServer, Sample};
use super::{ASK, CATCH_UP_S, Model};
use crate::judge::Check;
use crate::rate::Rate;
use crate::stop::Stop;
use anyhow::Result;
use std::time::{Duration, Instant};
use weir_load::stats::result::{Point, RunResult};

const BLOCK_BYTES: u32 = 4096;
/// Four streams of it: a tenth of a second of a burst.
const DEPTH: u32 = 256;
/// Not judged.
const WARMUP_S: f64 = 2.0;
/// Time before and after the end of the credits in which the rate is not judged.
const TURN_S: f64 = 1.0;
/// The end of the credits is searched within this part of the time that they should last.
const REACH: f64 = 0.1;
/// Time between two requests for the seconds in which the server found the contract broken: before
/// it forgets any.
const ASK_BROKEN: Duration = Duration::from_secs(BY_SECONDS - 10);
const STEP_S: f64 = 0.1;
/// Most points of a curve; a longer one is shown by means.
const POINTS_MAX: usize = 1200;

/// A load.
pub(super) struct Plan {
    name: &'static str,
    directory: &'static str,
    /// Expected end of the credits, in seconds from the beginning; nothing if the load ends before.
    empty_s: Option<f64>,
    seconds: f64,
}

impl Plan {
    /// A course that ends in the middle of a burst.
    pub(super) const fn for_seconds(
        name: &'static str,
        directory: &'static str,
        seconds: f64,
    ) -> Self {
        Self { name, directory, empty_s: None, seconds }
    }

    /// A course that lasts until the credits should be gone, and `base_s` longer.
    pub(super) fn to_the_end(
        name: &'static str,
        directory: &'static str,
        empty_s: f64,
        base_s: f64,
    ) -> Self {
        let seconds = empty_s + base_s - WARMUP_S;
        Self { name, directory, empty_s: Some(empty_s), seconds }
    }

    fn end_s(&self) -> f64 {
        WARMUP_S + self.seconds
    }
}

/// The result of a load.
pub(super) struct Drained {
    pub(super) checks: Vec<Check>,
    pub(super) figures: Vec<Figure>,
    pub(super) said: Vec<String>,
    pub(super) curve: Curve,
}

/// Loads the volume, and asks the API for its credits meanwhile.
pub(super) fn drain(
    model: &Model,
    server: &LiveServer,
    plan: &Plan,
    watching: &mut Watching,
    stop: &Stop,
) -> Result<Drained> {
    let load = Load {
        volume: model.name.to_owned(),
        directory: plan.directory,
        block_bytes: BLOCK_BYTES,
        depth: DEPTH,
        warmup_s: WARMUP_S,
        seconds: plan.seconds,
    };
    let ready = load.prepare(server.address())?;
    let begun = Instant::now();
    let first = server.credits(model.name, begun)?;
    let running = ready.begin()?;
    let late_s = begun.elapsed().as_secs_f64();
    let mut samples = vec![first];
    let mut lines = Lines::begin();
    let (mut broken, mut asked) = (Broken::new(), Instant::now());
    while !running.is_finished() {
        stop_all_if_asked(stop, &[&running])?;
        watching.look();
        let sample = server.credits(model.name, begun)?;
        samples.push(sample);
        lines.tick(&[&running], &format!(", {:.0} credits", sample.credits));
        if asked.elapsed() >= ASK_BROKEN {
            broken.extend(server.broken(model.name)?);
            asked = Instant::now();
        }
        std::thread::sleep(ASK);
    }
    broken.extend(server.broken(model.name)?);
    // From here on all is in the time of the load, which began when it was spawned.
    samples.iter_mut().for_each(|sample| sample.at_s -= late_s);
    let result = running.end()?;
    let said = server_verdicts(plan.name, &broken, result.started_unix_s);
    Ok(Drained { said, ..judge(model, plan, &result, &samples) })
}

fn judge(model: &Model, plan: &Plan, result: &RunResult, samples: &[Sample]) -> Drained {
    // Operations in the place of bytes.
    let counted = |point: &Point| Point { bytes: point.operations, ..*point };
    let points: Vec<Point> = result.series_100ms.iter().map(counted).collect();
    let rate = Rate::by(&points, STEP_S);
    let (name, end_s) = (plan.name, plan.end_s());
    let begin = samples.first().map_or(f64::NAN, |first| {
        // The credits earned until the load began.
        (first.credits - model.base * first.at_s).min(model.credits)
    });
    let empty_s = plan.empty_s.map(|due| {
        let reach = (due * REACH).max(2.0);
        let step_s = (reach / 500.0).max(0.02);
        judge::bend(&rate, (due - reach, due + reach), step_s, (model.burst, model.base))
    });
    let burst_end_s = empty_s.map_or(end_s, |empty| empty - TURN_S);
    let burst = (WARMUP_S, burst_end_s);
    let mut checks =
        judge::contract(&format!("{name}, in the burst"), &rate, burst, model.burst, 1.0);
    checks.push(judge::pace(&format!("{name}, in the burst"), samples, burst, -model.fall()));
    let mean = |(from, to): (f64, f64)| rate.bytes_between(from, to) / (to - from);
    let mut figures =
        vec![Figure::new(format!("{name}, in the burst"), "IOPS", model.burst, mean(burst))];
    let mut due = vec![(0.0, empty_s.unwrap_or(end_s), model.burst)];
    let mut marks = Vec::new();
    if let Some(empty) = empty_s {
        let base = (empty + TURN_S, end_s);
        checks.extend(judge::contract(
            &format!("{name}, when empty"),
            &rate,
            base,
            model.base,
            1.0,
        ));
        checks.push(judge::conserved(name, &rate, end_s, begin, model.base));
        let left = samples.iter().filter(|one| (base.0..base.1).contains(&one.at_s));
        let most = left.map(|one| one.credits).fold(0.0, f64::max);
        let rule = format!("{name}: credits when empty, at most 50 ms of the base");
        checks.push(judge::between(rule, most, (0.0, model.base * CATCH_UP_S)));
        figures.push(Figure::new(format!("{name}, when empty"), "IOPS", model.base, mean(base)));
        let lasts = begin / model.fall();
        figures.push(Figure::new(format!("{name}, until empty"), "s", lasts, empty));
        due.push((empty, end_s, model.base));
        marks.push((empty, "empty".to_owned()));
    }
    let curve = Curve {
        name: format!("{}, {name}", model.name),
        unit: "IOPS",
        points: thinned(&rate, end_s),
        due,
        marks,
    };
    Drained { checks, figures, said: Vec::new(), curve }
}

/// The rate over time, in at most [`POINTS_MAX`] points.
fn thinned(rate: &Rate, end_s: f64) -> Vec<(f64, f64)> {
    let tenths = (1u32..).find(|each| end_s / (f64::from(*each) * STEP_S) <= POINTS_MAX as f64);
    let width = f64::from(tenths.unwrap_or(1)) * STEP_S;
    (0u32..)
        .map(|step| f64::from(step) * width)
        .take_while(|at| at + width <= end_s + STEP_S / 2.0)
        .map(|at| (at + width / 2.0, rate.bytes_between(at, at + width) / width))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::MODELS;
    use super::*;

    #[test]
    fn a_load_lasts_past_the_end_of_the_credits() {
        let plan = Plan::to_the_end("p", "d", 60.0, 25.0);
        assert!((plan.end_s() - 85.0).abs() < 1e-9);
        for model in MODELS {
            let again = Plan::to_the_end("p", "d", 40.0 * model.base / model.fall(), 13.0);
            let burst = again.empty_s.unwrap() - TURN_S - WARMUP_S;
            assert!(
                burst > judge::WINDOW_S,
                "{}: what is earned in 40 s can be judged",
                model.name
            );
        }
    }

    #[test]
    fn a_long_course_is_shown_by_means() {
        let points: Vec<Point> = (0..36_000u32)
            .map(|step| Point { at_s: f64::from(step) * STEP_S, operations: 0, bytes: 1000 })
            .collect();
        let shown = thinned(&Rate::by(&points, STEP_S), 3600.0);
        assert_eq!(shown.len(), POINTS_MAX);
        assert!(shown.iter().all(|(_, rate)| (rate - 10_000.0).abs() < 1.0));
    }
}
