use super::*;
use weir_core::Mono;
use weir_qos::verdict::{Cause, Verdict};
use weir_qos::{BytesPerSecond, Cost, Limits};

const LIMIT: u64 = 1 << 20;
const START: u64 = 1_700_000_040;

/// A volume whose counters a test makes go on, second by second.
struct World {
    watched: Watched,
    reading: Reading,
    now: u64,
    looks: u64,
    minutes: Vec<Period>,
}

fn limits() -> Limits {
    Limits::of(BytesPerSecond(LIMIT))
}

/// Counters with which every operation is part of the course.
fn seen(reading: Reading) -> VolumeReading {
    let (id, entitled, answered) = (weir_core::VolumeId(1), limits().into(), reading.requests);
    VolumeReading { id, entitled, reading, answered }
}

impl World {
    fn new() -> Self {
        let due = Cost { bytes: LIMIT, operations: 0 };
        let first = Reading { at: Mono(SECOND), due, ..Reading::default() };
        let look = Look { number: 0, before: START - 1, now: START };
        let (watched, reading) = (Watched::new(&seen(first), look), Reading::default());
        Self { watched, reading, now: START, looks: 0, minutes: Vec::new() }
    }

    /// Seconds in each of which `change` is made to the counters.
    fn pass(&mut self, seconds: u64, change: impl Fn(&mut Reading)) {
        for _ in 0..seconds {
            self.reading.at.0 += SECOND;
            self.reading.due.bytes += LIMIT;
            change(&mut self.reading);
            (self.now, self.looks) = (self.now + 1, self.looks + 1);
            let look = Look { number: self.looks, before: self.now - 1, now: self.now };
            self.minutes.extend(self.watched.look(&seen(self.reading), look));
        }
    }
}

fn idle(_: &mut Reading) {}

/// The contract to the byte, with somebody always waiting.
fn kept(reading: &mut Reading) {
    moved(reading, LIMIT);
    reading.asked_nanos += SECOND;
    reading.wait_nanos += 5 * SECOND;
}

/// Half of it, because the store is slow.
fn slow(reading: &mut Reading) {
    moved(reading, LIMIT / 2);
    reading.busy_nanos += SECOND;
    reading.inside_nanos += 64 * SECOND;
}

fn moved(reading: &mut Reading, bytes: u64) {
    for cost in [&mut reading.offered, &mut reading.passed, &mut reading.delivered] {
        *cost = Cost { bytes: cost.bytes + bytes, operations: cost.operations + bytes / 8192 };
    }
    reading.requests += bytes / 8192;
    reading.largest_bytes = 8192;
}

#[test]
fn nothing_is_held_of_a_volume_that_nothing_comes_to() {
    let mut world = World::new();
    world.pass(200, idle);
    assert!(world.watched.awake.is_none() && world.minutes.is_empty());
    assert!(!world.watched.is_active());
    assert_eq!(world.watched.recent(10).judge().verdict, Verdict::NotDemanded);
}

#[test]
fn each_ten_seconds_are_judged_and_counted_in_their_minute() {
    let mut world = World::new();
    world.pass(20, kept);
    assert_eq!(world.watched.recent(10).judge().verdict, Verdict::Kept);
    world.pass(10, slow);
    assert_eq!(world.watched.recent(10).judge().verdict, Verdict::Broken(Cause::Store));
    world.pass(30, idle);
    let [minute] = world.minutes.as_slice() else { panic!("{:?}", world.minutes) };
    assert_eq!(
        (minute.start, minute.nanos, minute.course.nanos),
        (START, 60 * SECOND, 60 * SECOND)
    );
    let Tally { kept, not_demanded, broken, .. } = minute.tally;
    assert_eq!((kept, not_demanded, broken), (2, 3, [0, 1, 0, 0]));
    assert_eq!(minute.tally.verdict(), Verdict::Broken(Cause::Store));
    // Half was missing of one of the three in which it was demanded.
    assert!((minute.tally.error().unwrap() + 1.0 / 6.0).abs() < 1e-9);
    assert_eq!(world.watched.last_minute().1, minute.tally);
    assert_eq!(world.watched.minutes(world.now), [*minute]);
}

#[test]
fn memory_goes_when_a_volume_rests() {
    let mut world = World::new();
    world.pass(60, kept);
    assert_eq!(world.watched.seconds(world.now).len(), SECONDS);
    assert!(world.watched.is_active());
    world.pass(60, idle);
    world.pass(60, idle);
    assert!(!world.watched.is_active());
    assert!(world.watched.seconds(world.now).is_empty());
    assert_eq!(world.watched.minutes(world.now).len(), 1, "the hour is remembered");
    world.pass(3600, idle);
    assert!(world.watched.awake.is_none());
    assert_eq!(world.minutes.len(), 1, "minutes without anything are not told");
    // And it comes back as it was.
    world.pass(60, kept);
    assert_eq!(world.watched.recent(10).judge().verdict, Verdict::Kept);
    assert_eq!(world.minutes[1].tally.kept, 6);
}

#[test]
fn memory_is_bounded() {
    let mut world = World::new();
    world.pass(3 * 3600, kept);
    let awake = world.watched.awake.as_ref().unwrap();
    assert_eq!(
        (awake.seconds.len(), awake.tens.len(), awake.minutes.len()),
        (SECONDS, TENS, MINUTES)
    );
    // 1,000 volumes that are busy all the time, within 14 MiB.
    let series = awake.seconds.capacity() + awake.tens.capacity() + awake.minutes.capacity();
    let each = series + size_of::<Awake>();
    assert!(each < 14 << 10, "{each}");
    assert_eq!(world.minutes.len(), 180);
}

#[test]
fn the_minute_under_way_is_not_lost() {
    let mut world = World::new();
    world.pass(25, kept);
    let minutes = world.watched.minutes(world.now);
    assert_eq!((minutes.len(), minutes[0].nanos), (1, 25 * SECOND));
    assert_eq!(minutes[0].course.delivered.bytes, 25 * LIMIT);
    let left = world.watched.unfinished(world.now).unwrap();
    assert_eq!((left.start, left.course.delivered.bytes), (START, 25 * LIMIT));
    assert_eq!(left.tally.kept, 3);
}

#[test]
fn seconds_are_told_with_their_times() {
    let mut world = World::new();
    world.pass(5, kept);
    let seconds = world.watched.seconds(world.now);
    let starts: Vec<_> = seconds.iter().map(|second| second.start).collect();
    assert_eq!(starts, [START, START + 1, START + 2, START + 3, START + 4]);
    assert!(seconds.iter().all(|second| second.tally.verdict() == Verdict::Kept));
}
