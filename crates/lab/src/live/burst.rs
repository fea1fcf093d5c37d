//! Credits for bursts: full at birth, drained, empty, earned again, and kept over a restart.
//!
//! A full bucket lasts an hour by construction. Unless that hour is asked for, most of the credits
//! are taken away in between, as an operator could: the volume is given a size at which few credits
//! are kept, and then its own again, for a change of size keeps credits as credits as far as the
//! new limits keep so many. The report says so.

mod drain;

use super::Live;
use super::judge;
use super::judge::WINDOW_S;
use super::part::{Curve, Figure, Part, Watching};
use super::server::{LiveServer, Sample};
use crate::judge::Check;
use crate::operator::Limits;
use crate::stop::Stop;
use anyhow::Result;
use drain::{Drained, Plan, drain};
use std::time::{Duration, Instant};
use weir_api::{Qos, TermsChange, VolumeChange};

const LEVEL: &str = "standard";
/// Room for a volume of [`Shrink::Quota`].
const TEBIBYTES: u64 = 128;
const GIB: u64 = 1 << 30;
/// The first drain, which only begins to empty the bucket.
const FIRST_S: f64 = 12.0;
/// Time for which the base rate is judged once a bucket is empty (s).
const BASE_S: f64 = 25.0;
/// Time between two requests for credits to the API.
const ASK: Duration = Duration::from_millis(500);
/// Longest delay of a full bucket beyond its due time (s).
const PATIENCE_S: f64 = 10.0;

/// The change that leaves a volume with few credits.
#[derive(Clone, Copy, Debug)]
enum Shrink {
    /// In GiB: the burst of a volume so large is little more than its base.
    Quota(u64),
    /// The change to a volume that provisions this number of IOPS.
    Iops(u64),
}

/// A volume with bursts, and what is published for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    /// Of the part, the pool and the volume.
    pub(super) name: &'static str,
    qos: Qos,
    quota_gibibytes: u64,
    /// The volume's provision: MiB/s and IOPS.
    limits: Limits,
    base: f64,
    burst: f64,
    /// The published credits.
    credits: f64,
    shrink: Shrink,
    /// The base rate by that.
    shrunk_base: f64,
}

/// The most IOPS of any volume, which such a volume has in bursts.
const IOPS_MAX: f64 = 102_400.0;
/// Duration of a burst from full credits on (s).
const BURST_S: f64 = 3600.0;
/// The savings of an idle meter, in seconds of its rate.
const CATCH_UP_S: f64 = 0.05;

/// Two rows of the published tables.
pub(super) const MODELS: [Model; 2] = [
    Model {
        name: "burst-v1",
        qos: Qos::ProvisionedV1,
        quota_gibibytes: 1024,
        limits: Limits::NONE,
        base: 4024.0,
        burst: 10_000.0,
        credits: 21_513_600.0,
        shrink: Shrink::Quota(99_300),
        shrunk_base: 102_300.0,
    },
    Model {
        name: "burst-v2",
        qos: Qos::ProvisionedV2,
        quota_gibibytes: 64,
        limits: Limits { mibps: Some(100), iops: Some(3000), ..Limits::NONE },
        base: 3000.0,
        burst: 10_000.0,
        credits: 25_200_000.0,
        shrink: Shrink::Iops(102_283),
        shrunk_base: 102_283.0,
    },
];

impl Model {
    /// The credits lost in a second of a burst.
    fn fall(&self) -> f64 {
        self.burst - self.base
    }

    /// The credits that are left by shrinking.
    fn shrunk(&self) -> f64 {
        (IOPS_MAX - self.shrunk_base) * BURST_S
    }

    /// The change that leaves it with few credits, and the one back.
    fn shrinking(&self) -> [VolumeChange; 2] {
        let quota = |gibibytes: u64| VolumeChange {
            quota_bytes: Some(gibibytes * GIB),
            ..VolumeChange::default()
        };
        let iops = |iops| VolumeChange {
            terms: TermsChange { iops: Some(iops), ..TermsChange::default() },
            ..VolumeChange::default()
        };
        match self.shrink {
            Shrink::Quota(gibibytes) => [quota(gibibytes), quota(self.quota_gibibytes)],
            Shrink::Iops(few) => [iops(Some(few)), iops(self.limits.iops)],
        }
    }
}

/// The findings on the way.
struct BurstRun<'a> {
    model: &'a Model,
    checks: Vec<Check>,
    figures: Vec<Figure>,
    said: Vec<String>,
    courses: Vec<Curve>,
    begun: Instant,
}

/// Makes the pool and its volume, and takes the bucket through its life.
pub(super) fn show(
    model: &Model,
    server: &mut LiveServer,
    options: &Live,
    stop: &Stop,
) -> Result<Part> {
    let name = model.name;
    server.operator().create_pool(name, LEVEL, model.qos, TEBIBYTES, None)?;
    server.operator().create_volume(name, name, model.quota_gibibytes, &model.limits)?;
    let mut watching = Watching::begin();
    let begun = Instant::now();
    let mut run = BurstRun {
        model,
        checks: Vec::new(),
        figures: Vec::new(),
        said: Vec::new(),
        courses: Vec::new(),
        begun,
    };
    run.birth(server)?;
    weir_report::outln!("# {name}: {FIRST_S:.0} s of a burst, from {:.0} credits", model.credits);
    let first = Plan::for_seconds("the first burst", "first", FIRST_S);
    run.drain(server, &first, &mut watching, stop)?;
    run.restart(server)?;
    let taken = if options.full {
        run.fill(server, &mut watching, stop)?;
        "The bucket was drained from full to empty."
    } else {
        run.shrink(server)?;
        "Before the bucket was drained to its end most credits were taken away through the API: the volume was given limits that \
         keep few, and then its own again."
    };
    let begin = server.credits(name, begun)?;
    weir_report::outln!(
        "# {name}: a burst until {:.0} credits are gone, then the base rate",
        begin.credits
    );
    let whole = Plan::to_the_end("to the end", "end", begin.credits / model.fall(), BASE_S);
    run.drain(server, &whole, &mut watching, stop)?;
    run.refill(server, options.refill_s(), &mut watching, stop)?;
    let begin = server.credits(name, begun)?;
    weir_report::outln!("# {name}: a burst with the {:.0} credits that were earned", begin.credits);
    let again =
        Plan::to_the_end("once more", "again", begin.credits / model.fall(), WINDOW_S + 3.0);
    run.drain(server, &again, &mut watching, stop)?;
    Ok(Part {
        name,
        how: format!(
            "A volume of {} GiB with {:.0} IOPS, {:.0} in bursts, and {:.0} credits at birth, as published. Its clients keep 1,024 requests of \
             4 KiB outstanding, half of them READs. {taken} The server is restarted after the first burst.",
            model.quota_gibibytes, model.base, model.burst, model.credits
        ),
        machine: watching.end(),
        figures: run.figures,
        checks: run.checks,
        said: run.said,
        courses: run.courses,
    })
}

impl BurstRun<'_> {
    /// Full when created, and the published figures.
    fn birth(&mut self, server: &LiveServer) -> Result<()> {
        let model = self.model;
        let exact = |value: f64| (value, value);
        let shown = server.operator().volume(model.name)?;
        let api = server.credits(model.name, self.begun)?.credits;
        let whole = |value: Option<u64>| value.map_or(f64::NAN, small);
        for (what, found, due) in [
            ("base IOPS", whole(shown.base_iops), model.base),
            ("IOPS in bursts", whole(shown.limit_iops), model.burst),
            ("the most credits", whole(shown.credits_max), model.credits),
            ("credits at birth, in the API", api, model.credits),
            (
                "credits at birth, in the metrics",
                server.scraped_credits(model.name)?,
                model.credits,
            ),
        ] {
            self.checks.push(judge::between(format!("{what} as published"), found, exact(due)));
        }
        Ok(())
    }

    fn drain(
        &mut self,
        server: &LiveServer,
        plan: &Plan,
        watching: &mut Watching,
        stop: &Stop,
    ) -> Result<()> {
        let Drained { checks, figures, said, curve } =
            drain(self.model, server, plan, watching, stop)?;
        for Figure { what, unit, due, found } in &figures {
            weir_report::outln!("# {}: {what}: {found:.1} {unit}, due {due:.1}", self.model.name);
        }
        self.checks.extend(checks);
        self.figures.extend(figures);
        self.said.extend(said);
        self.courses.push(curve);
        Ok(())
    }

    /// Restarts the server. The credits left are kept, except those earned while the server runs
    /// without requests.
    fn restart(&mut self, server: &mut LiveServer) -> Result<()> {
        let before = server.credits(self.model.name, self.begun)?;
        server.restart()?;
        let after = server.credits(self.model.name, self.begun)?;
        weir_report::outln!("# {}: restarted with {:.0} credits", self.model.name, after.credits);
        let most = before.credits + self.model.base * (after.at_s - before.at_s);
        let rule = "credits over a restart, with what is earned meanwhile".to_owned();
        self.checks.push(judge::between(rule, after.credits, (before.credits, most)));
        Ok(())
    }

    /// Takes most credits away.
    fn shrink(&mut self, server: &LiveServer) -> Result<()> {
        let [few, back] = self.model.shrinking();
        server.operator().change(self.model.name, &few)?;
        let begun = self.begun.elapsed().as_secs_f64();
        server.operator().change(self.model.name, &back)?;
        let after = server.credits(self.model.name, self.begun)?;
        weir_report::outln!(
            "# {}: {:.0} credits left by a change there and back",
            self.model.name,
            after.credits
        );
        let (least, saved) = (self.model.shrunk(), self.model.shrunk_base * CATCH_UP_S);
        let most = least + saved + self.model.base * (after.at_s - begun);
        let rule = "credits stay credits where limits change, as far as they keep so many, with what the meter of 50 ms had saved".to_owned();
        self.checks.push(judge::between(rule, after.credits, (least, most)));
        Ok(())
    }

    /// Waits until the bucket is full again, and no fuller.
    fn fill(&mut self, server: &LiveServer, watching: &mut Watching, stop: &Stop) -> Result<()> {
        let model = self.model;
        let begin = server.credits(model.name, self.begun)?;
        let due_s = (model.credits - begin.credits) / model.base;
        weir_report::outln!("# {}: full again in {due_s:.0} s", model.name);
        let samples = self.idle(server, due_s + PATIENCE_S, watching, stop)?;
        let full = samples.iter().find(|sample| sample.credits >= model.credits);
        let took_s = full.map_or(f64::INFINITY, |full| full.at_s - begin.at_s);
        self.figures.push(Figure::new("until it is full again", "s", due_s, took_s));
        let span = (begin.at_s, begin.at_s + due_s - 1.0);
        self.checks.push(judge::pace("until it is full", &samples, span, model.base));
        let last = samples.last().map_or(f64::NAN, |last| last.credits);
        let rule = "credits of a full bucket".to_owned();
        self.checks.push(judge::between(rule, last, (model.credits, model.credits)));
        Ok(())
    }

    /// Leaves the volume alone for a while: it earns credits at the base rate.
    fn refill(
        &mut self,
        server: &LiveServer,
        seconds: f64,
        watching: &mut Watching,
        stop: &Stop,
    ) -> Result<()> {
        weir_report::outln!("# {}: {seconds:.0} s of nothing", self.model.name);
        let samples = self.idle(server, seconds, watching, stop)?;
        let span = (0.0, f64::INFINITY);
        self.checks.push(judge::pace("idle", &samples, span, self.model.base));
        if let (Some(first), Some(last)) = (samples.first(), samples.last()) {
            let pace = (last.credits - first.credits) / (last.at_s - first.at_s);
            self.figures.push(Figure::new("earned while idle", "credits/s", self.model.base, pace));
        }
        Ok(())
    }

    fn idle(
        &self,
        server: &LiveServer,
        seconds: f64,
        watching: &mut Watching,
        stop: &Stop,
    ) -> Result<Vec<Sample>> {
        let begun = Instant::now();
        let mut samples = Vec::new();
        loop {
            stop.check()?;
            watching.look();
            samples.push(server.credits(self.model.name, self.begun)?);
            if begun.elapsed().as_secs_f64() >= seconds {
                return Ok(samples);
            }
            std::thread::sleep(ASK);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "credits are at most some hundred millions")]
const fn small(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_and_what_shrinking_leaves_follow_from_the_rules() {
        for model in MODELS {
            assert!((model.fall() * BURST_S - model.credits).abs() < 0.5, "{}", model.name);
            let (base, burst) = match model.shrink {
                Shrink::Quota(gibibytes) => (3000.0 + small(gibibytes), 3.0 * small(gibibytes)),
                Shrink::Iops(iops) => (small(iops), 3.0 * small(iops)),
            };
            assert!(burst >= IOPS_MAX && (base - model.shrunk_base).abs() < 0.5, "{}", model.name);
            let lasts_s = model.shrunk() / model.fall();
            assert!((58.0..62.0).contains(&lasts_s), "{}: {lasts_s} s of a burst", model.name);
            assert!(model.quota_gibibytes <= TEBIBYTES << 10);
        }
    }
}
