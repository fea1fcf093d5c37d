//! A shared pool: three volumes, each loaded beyond its part, one of which becomes idle and
//! comes back.

use super::judge::{self, CHANGE_S};
use super::load::{Lines, Load, Running, stop_all_if_asked};
use super::part::{Curve, Figure, Part, Watching, server_verdicts};
use super::server::LiveServer;
use crate::judge::Check;
use crate::operator::Limits;
use crate::rate::Rate;
use crate::stop::Stop;
use anyhow::{Context, Result};
use std::time::Duration;
use weir_api::Qos;
use weir_load::stats::result::{Point, RunResult};

const LEVEL: &str = "standard";
/// At 16 MiB/s for each.
const TEBIBYTES: u64 = 2;
const BUDGET_MIB: f64 = 32.0;
const MIB: f64 = 1_048_576.0;
const QUOTA_GIBIBYTES: u64 = 256;
const BLOCK_BYTES: u32 = 8192;
/// Four streams of it keep 1 MiB outstanding: a tenth of a second of the least that is due.
const DEPTH: u32 = 32;
/// Not judged.
const WARMUP_S: f64 = 3.0;
/// All are busy, then one is idle, then all are busy again; each for so long.
const STRETCH_S: f64 = 13.0;
// Without the second of the change there is room for windows, and for a change that comes late.
const _: () = assert!(STRETCH_S - CHANGE_S >= judge::WINDOW_S + 1.0);
const _: () = assert!(STRETCH_S > judge::REACH_S + 1.0);
const STEP_S: f64 = 0.01;
const LOOK: Duration = Duration::from_millis(5);

/// A volume of a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The last letter of its name.
    letter: char,
    /// Beside the others; 100 if nothing is said.
    weight: Option<u32>,
    /// The rate that it has for certain, in MiB/s.
    floor: Option<u64>,
    /// The rate due to it while all are busy, in MiB/s.
    busy: f64,
    /// The rate due to it while one is idle, in MiB/s; nothing for that one.
    alone: f64,
}

/// A pool and its volumes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// Of the part and of the pool.
    pub(super) name: &'static str,
    what: &'static str,
    members: [Member; 3],
    /// Which becomes idle.
    idle: usize,
}

const fn member(
    letter: char,
    weight: Option<u32>,
    floor: Option<u64>,
    busy: f64,
    alone: f64,
) -> Member {
    Member { letter, weight, floor, busy, alone }
}

/// The cases shown.
pub(super) const CASES: [Case; 3] = [
    Case {
        name: "shared-equal",
        what: "a third each",
        members: [
            member('a', None, None, BUDGET_MIB / 3.0, 16.0),
            member('b', None, None, BUDGET_MIB / 3.0, 0.0),
            member('c', None, None, BUDGET_MIB / 3.0, 16.0),
        ],
        idle: 1,
    },
    Case {
        name: "shared-weights",
        what: "by weights of 1:2:1",
        members: [
            member('a', Some(100), None, 8.0, 16.0),
            member('b', Some(200), None, 16.0, 0.0),
            member('c', Some(100), None, 8.0, 16.0),
        ],
        idle: 1,
    },
    Case {
        name: "shared-floor",
        what: "equally, but c has 16 MiB/s for certain",
        members: [
            member('a', None, None, 8.0, 16.0),
            member('b', None, None, 8.0, 16.0),
            member('c', None, Some(16), 16.0, 0.0),
        ],
        idle: 2,
    },
];

impl Case {
    fn volume(&self, member: &Member) -> String {
        format!("{}-{}", self.name, member.letter)
    }

    fn load(&self, member: &Member, directory: &'static str, warmup_s: f64, seconds: f64) -> Load {
        let volume = self.volume(member);
        Load { volume, directory, block_bytes: BLOCK_BYTES, depth: DEPTH, warmup_s, seconds }
    }
}

/// Makes the pool and its volumes, loads them, and judges.
pub(super) fn show(case: &Case, server: &LiveServer, stop: &Stop) -> Result<Part> {
    server.operator().create_pool(case.name, LEVEL, Qos::Shared, TEBIBYTES, None)?;
    for member in &case.members {
        let limits = Limits { mibps: member.floor, weight: member.weight, ..Limits::NONE };
        server.operator().create_volume(
            &case.volume(member),
            case.name,
            QUOTA_GIBIBYTES,
            &limits,
        )?;
    }
    weir_report::outln!(
        "# {}: {BUDGET_MIB} MiB/s among three volumes, {}; {} is idle from {:.0} to {:.0} s",
        case.name,
        case.what,
        case.members[case.idle].letter,
        WARMUP_S + STRETCH_S,
        WARMUP_S + 2.0 * STRETCH_S
    );
    let mut watching = Watching::begin();
    let results = load(case, server, &mut watching, stop)?;
    let machine = watching.end();
    let mut verdicts = Vec::new();
    for (member, result) in case.members.iter().zip(&results) {
        let broken = server.broken(&case.volume(member))?;
        verdicts.extend(server_verdicts(
            &member.letter.to_string(),
            &broken,
            result.started_unix_s,
        ));
    }
    let run = SharedRun::new(case, &results)?;
    Ok(Part {
        name: case.name,
        how: format!(
            "A pool of {BUDGET_MIB} MiB/s with three volumes, divided {}. The clients of each keep 1 MiB of requests of 8 KiB outstanding, \
             half of them READs. Those of {} do nothing for {STRETCH_S:.0} s in between.",
            case.what, case.members[case.idle].letter
        ),
        machine,
        figures: run.figures(),
        checks: run.checks(),
        said: verdicts,
        courses: run.courses(),
    })
}

/// The loads of the members in their order; the last is that of the one that came back.
fn load(
    case: &Case,
    server: &LiveServer,
    watching: &mut Watching,
    stop: &Stop,
) -> Result<Vec<RunResult>> {
    let ready = |(number, member): (usize, &Member)| {
        let seconds = if number == case.idle { STRETCH_S } else { 3.0 * STRETCH_S };
        case.load(member, "live", WARMUP_S, seconds).prepare(server.address())
    };
    let ready = case.members.iter().enumerate().map(ready).collect::<Result<Vec<_>>>()?;
    let again = case.load(&case.members[case.idle], "again", 0.0, STRETCH_S);
    let mut again = Some(again.prepare(server.address())?);
    let begun = std::time::Instant::now();
    let mut running =
        ready.into_iter().map(super::load::Ready::begin).collect::<Result<Vec<_>>>()?;
    let mut lines = Lines::begin();
    loop {
        let all: Vec<&Running> = running.iter().collect();
        stop_all_if_asked(stop, &all)?;
        lines.tick(&all, "");
        watching.look();
        if begun.elapsed().as_secs_f64() >= WARMUP_S + 2.0 * STRETCH_S
            && let Some(again) = again.take()
        {
            running.push(again.begin()?);
        } else if again.is_none() && running.iter().all(Running::is_finished) {
            break;
        }
        std::thread::sleep(LOOK);
    }
    running.into_iter().map(Running::end).collect()
}

/// The clients' observations, all in the time of the first load.
struct SharedRun<'a> {
    case: &'a Case,
    /// Of each member.
    points: Vec<Vec<Point>>,
    rates: Vec<Rate>,
    all: Rate,
    /// Times at which one became idle, and came back (s).
    went_s: f64,
    came_s: f64,
    end_s: f64,
}

impl<'a> SharedRun<'a> {
    fn new(case: &'a Case, results: &[RunResult]) -> Result<Self> {
        let first = results.first().context("nothing was loaded")?;
        let offset = |result: &RunResult| {
            let offset = result.started_unix_s - first.started_unix_s;
            (offset / STEP_S).round() * STEP_S
        };
        let mut points: Vec<Vec<Point>> = vec![Vec::new(); case.members.len()];
        for (number, result) in results.iter().enumerate() {
            let member = if number < case.members.len() { number } else { case.idle };
            let moved = |point: &Point| Point { at_s: point.at_s + offset(result), ..*point };
            points[member].extend(result.series_10ms.iter().map(moved));
        }
        let mut together: Vec<Point> = points.concat();
        together.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        let (one, again) = (&results[case.idle], results.last().context("nothing was loaded")?);
        Ok(Self {
            case,
            rates: points.iter().map(|points| Rate::by(points, STEP_S)).collect(),
            all: Rate::by(&together, STEP_S),
            points,
            went_s: one.measured.to_s + offset(one),
            came_s: offset(again),
            end_s: WARMUP_S + 3.0 * STRETCH_S,
        })
    }

    /// The stretches in which parts are judged, and whether all are busy in them.
    fn stretches(&self) -> [(&'static str, (f64, f64), bool); 3] {
        [
            ("all busy", (WARMUP_S, self.went_s), true),
            ("one idle", (self.went_s + CHANGE_S, self.came_s), false),
            ("all busy again", (self.came_s + CHANGE_S, self.end_s), true),
        ]
    }

    /// The members with what is due to them, all busy or not.
    fn due(&self, busy: bool) -> impl Iterator<Item = (String, &Rate, f64)> {
        let due = move |member: &Member| if busy { member.busy } else { member.alone };
        let members = self.case.members.iter().zip(&self.rates);
        members
            .filter(move |(member, _)| due(member) > 0.0)
            .map(move |(member, rate)| (member.letter.to_string(), rate, due(member)))
    }

    fn checks(&self) -> Vec<Check> {
        let request = f64::from(BLOCK_BYTES);
        let span = (WARMUP_S, self.end_s);
        let mut checks = judge::contract("the pool", &self.all, span, BUDGET_MIB * MIB, request);
        for (when, span, busy) in self.stretches() {
            for (who, rate, due) in self.due(busy) {
                checks.push(judge::part(&format!("{who}, {when}"), rate, span, due * MIB));
            }
        }
        for (member, rate) in self.case.members.iter().zip(&self.rates) {
            let (busy, alone) = (member.busy * MIB, member.alone * MIB);
            if alone > 0.0 {
                let who = format!("{}, when one is idle", member.letter);
                checks.extend(judge::soon(&who, rate, self.went_s, (busy, alone), request));
            }
            let who = format!("{}, when it is back", member.letter);
            checks.extend(judge::soon(&who, rate, self.came_s, (alone, busy), request));
        }
        checks
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (when, (from_s, to_s), busy) in self.stretches() {
            for (who, rate, due) in self.due(busy) {
                let found = rate.bytes_between(from_s, to_s) / (to_s - from_s) / MIB;
                figures.push(Figure::new(format!("{who}, {when}"), "MiB/s", due, found));
            }
        }
        figures
    }

    fn courses(&self) -> Vec<Curve> {
        let curve = |((member, points), rate): ((&Member, &Vec<Point>), &Rate)| {
            let last = points.last().map_or(0.0, |point| point.at_s);
            let tenths = (0u32..).map(|step| f64::from(step) / 10.0).take_while(|at| *at <= last);
            Curve {
                name: format!("{} of {}", member.letter, self.case.name),
                unit: "MiB/s",
                points: tenths
                    .map(|at| (at + 0.05, rate.bytes_between(at, at + 0.1) / 0.1 / MIB))
                    .collect(),
                due: vec![
                    (0.0, self.went_s, member.busy),
                    (self.went_s, self.came_s, member.alone),
                    (self.came_s, self.end_s, member.busy),
                ],
                marks: vec![(self.went_s, "one idle".to_owned()), (self.came_s, "back".to_owned())],
            }
        };
        self.case.members.iter().zip(&self.points).zip(&self.rates).map(curve).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_divided_whole_whoever_is_busy() {
        for case in CASES {
            let sum = |due: fn(&Member) -> f64| case.members.iter().map(due).sum::<f64>();
            assert!((sum(|member| member.busy) - BUDGET_MIB).abs() < 1e-9, "{}", case.name);
            assert!((sum(|member| member.alone) - BUDGET_MIB).abs() < 1e-9, "{}", case.name);
            let idle = case.members[case.idle].alone;
            assert!(idle.abs() < 1e-9, "{}", case.name);
            for member in case.members {
                let floor =
                    member.floor.map_or(0.0, |mibps| f64::from(u32::try_from(mibps).unwrap()));
                assert!(member.busy >= floor);
            }
        }
    }
}
