//! Simulated clusters: gateways under these rules, their machines and helpers, the network, etcd
//! and Ceph in virtual time, with faults drawn from a seed. Checked after every step:
//!
//! - no two lives may reply for a group at the same moment;
//! - a life begins to use a group's volumes only when the one before has released them or is
//!   fenced;
//! - no life may reply without a lease or a word of every other member, nor after it is condemned;
//! - the records are in a version that every member knows, and never in an older one than before;
//!
//! and after the faults, within a bound: every group is served again, and the records are in the
//! newest version that all gateways know, if all are there. Programs of three versions are started.
//! `WEIR_CLUSTER_SEEDS` makes a longer campaign, `WEIR_CLUSTER_FIRST` chooses its first seed.

mod checks;
mod etcd;
mod faults;
mod machine;
mod scenarios;
mod tests;
mod world;

use checks::{is_behind, is_undecidable, unserved};
use core::fmt;
use std::thread;
use world::{MILLISECOND, Misbehaviour, Programs, SECOND, Weather, What, World};

/// Seeds of a normal run.
const SEEDS: u64 = 2_000;

/// The time until which faults begin.
const FAULTS_UNTIL: u64 = 22 * SECOND;

/// The longest that groups may be without service after all faults have ended.
const RECOVERY_MAX: u64 = 15 * SECOND;

/// Service has to last this long after the faults.
const SETTLED: u64 = 5 * SECOND;

/// The course of a seed, in numbers.
#[derive(Debug, Default)]
struct Course {
    violation: Option<String>,
    steps: u64,
    condemned: u64,
    condemned_by_word: u64,
    taken: u64,
    handed: u64,
    served_by_words: u64,
    raised: u64,
    too_old: u64,
    undecidable: u64,
    recovery: u64,
}

/// Runs the world of a seed to its end.
fn run(seed: u64, misbehaviour: Misbehaviour) -> Course {
    let mut world = drawn(seed, misbehaviour);
    let mut course = Course::default();
    while world.step_until(FAULTS_UNTIL) {
        course.steps += 1;
        if world.checks.violation.is_some() {
            break;
        }
    }
    world.now = world.now.max(FAULTS_UNTIL);
    let mut served_since = None;
    while world.checks.violation.is_none() {
        let homeless: Vec<_> = unserved(&world);
        let (open, undecidable): (Vec<_>, Vec<_>) =
            homeless.into_iter().partition(|group| !is_undecidable(&world, *group));
        course.undecidable = u64::try_from(undecidable.len()).unwrap();
        let passed = world.now - FAULTS_UNTIL;
        let is_behind = is_behind(&world);
        if is_behind || !open.is_empty() {
            served_since = None;
            if passed > RECOVERY_MAX {
                let what = if is_behind { "the format is behind" } else { "groups are not served" };
                let what = format!("{what}, {open:?}: {:?}", world.etcd.view);
                world.checks.violation = Some(what);
            }
        } else if *served_since.get_or_insert(passed) + SETTLED <= passed {
            break;
        }
        let next = world.now + 100 * MILLISECOND;
        while world.checks.violation.is_none() && world.step_until(next) {
            course.steps += 1;
        }
        world.now = next;
    }
    course.recovery = served_since.unwrap_or(0);
    let checks = world.checks;
    Course {
        violation: checks.violation,
        condemned: checks.condemned,
        condemned_by_word: checks.condemned_by_word,
        taken: checks.taken,
        handed: checks.handed,
        served_by_words: checks.served_by_words,
        raised: checks.raised,
        too_old: checks.too_old,
        ..course
    }
}

/// The world of a seed, with its faults to come: small clusters mostly, up to 16 gateways.
fn drawn(seed: u64, misbehaviour: Misbehaviour) -> World {
    let mut draw = weir_core::rng::Rng::new(seed ^ 0x5EED);
    let machines = match draw.below(20) {
        0..7 => 2,
        7..13 => 3,
        13..17 => 4 + draw.below(3),
        17..19 => 7 + draw.below(4),
        _ => 11 + draw.below(6),
    };
    let machines = u16::try_from(machines).unwrap();
    let mut world = World::new(seed, machines, misbehaviour);
    let groups = usize::from(machines).min(6) + usize::try_from(draw.below(3)).unwrap();
    let weights: Vec<u64> = (0..groups).map(|_| draw.below(10)).collect();
    world.create_groups(&weights);
    world.programs = Programs::Other;
    if draw.below(2) == 0 {
        world.weather =
            Weather { lost: draw.below(100), doubled: draw.below(50), late: draw.below(200) };
    }
    for machine in 0..usize::from(machines) {
        // Some gateways join late.
        let joins = if draw.below(6) == 0 { draw.below(15 * SECOND) } else { draw.below(SECOND) };
        world.after(joins, What::Start { machine });
    }
    world.draw_faults(2 + draw.below(9), 4 * SECOND, FAULTS_UNTIL - SECOND);
    world.after(FAULTS_UNTIL, What::Heal);
    world
}

/// Sums over many seeds.
#[derive(Default)]
struct Totals {
    seeds: u64,
    course: Course,
    failed: Vec<(u64, String)>,
}

impl Totals {
    fn add(&mut self, seed: u64, mut course: Course) {
        self.seeds += 1;
        self.failed.extend(course.violation.take().map(|violation| (seed, violation)));
        course.served_by_words = course.served_by_words.min(1);
        course.undecidable = course.undecidable.min(1);
        self.sum(&course);
    }

    fn join(mut self, other: Self) -> Self {
        self.seeds += other.seeds;
        self.failed.extend(other.failed);
        self.sum(&other.course);
        self
    }

    fn sum(&mut self, other: &Course) {
        let own = &mut self.course;
        own.steps += other.steps;
        own.condemned += other.condemned;
        own.condemned_by_word += other.condemned_by_word;
        own.taken += other.taken;
        own.handed += other.handed;
        own.served_by_words += other.served_by_words;
        own.raised += other.raised;
        own.too_old += other.too_old;
        own.undecidable += other.undecidable;
        own.recovery = own.recovery.max(other.recovery);
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let course = &self.course;
        write!(
            f,
            "{} seeds, {} steps; condemned {} by vouching, {} by a helper's word; {} groups taken \
             over, {} handed over; words served in {} seeds; the format raised {} times, {} lives \
             too old; {} seeds with a group that only an operator can decide; longest recovery {} \
             ms",
            self.seeds,
            course.steps,
            course.condemned,
            course.condemned_by_word,
            course.taken,
            course.handed,
            course.served_by_words,
            course.raised,
            course.too_old,
            course.undecidable,
            course.recovery / MILLISECOND,
        )
    }
}

/// Runs seeds on all processors.
fn campaign(first: u64, seeds: u64, misbehaviour: Misbehaviour) -> Totals {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let part = |thread: usize| {
        let mut totals = Totals::default();
        for seed in (first..first + seeds).skip(thread).step_by(threads) {
            totals.add(seed, run(seed, misbehaviour));
            if totals.failed.len() >= 3 {
                break;
            }
        }
        totals
    };
    thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        let totals = parts.into_iter().map(|part| part.join().unwrap());
        totals.reduce(Totals::join).unwrap_or_default()
    })
}
