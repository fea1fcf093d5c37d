//! The memory of one volume: the last minute by seconds and the last hour by minutes, while
//! anything comes to it. Time is an argument; nothing here reads a clock.

use super::load::Marks;
use super::series::Series;
use crate::plane::VolumeReading;
use weir_qos::verdict::{Course, Reading, Tally};

/// Seconds that are kept.
const SECONDS: usize = 60;
/// Stretches of 10 s that are kept: the same minute.
const TENS: usize = 6;
/// Minutes that are kept: the last hour but the one under way.
const MINUTES: usize = 59;
/// A second, in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// A length of time with what happened in it and how it was judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Period {
    /// Start of the period, in seconds since 1970.
    pub(crate) start: u64,
    /// Length of the period, in nanoseconds.
    pub(crate) nanos: u64,
    /// The volume's course, in the part of the period in which it was looked at.
    pub(crate) course: Course,
    /// The verdicts on each 10 s of it.
    pub(crate) tally: Tally,
}

impl Period {
    /// Puts another after it, or into it.
    pub(crate) fn take_in(&mut self, other: &Self) {
        self.course += other.course;
        self.tally += other.tally;
    }
}

/// The memory of a volume.
pub(crate) struct Watched {
    last: Reading,
    /// Operations that were answered by then.
    answered: u64,
    /// The uses of the volume that are compared with the present.
    pub(super) marks: Marks,
    /// The look at which it was there last.
    pub(super) seen: u64,
    /// The time from which on it was looked at, in seconds since 1970.
    pub(super) since: u64,
    awake: Option<Box<Awake>>,
}

/// The memory of a volume with recent requests only.
#[derive(Default)]
struct Awake {
    seconds: Series<Course>,
    /// The 10 s under way, and those before it.
    ten: Course,
    tens: Series<Course>,
    /// The minute under way, and those before it.
    minute: (Course, Tally),
    minutes: Series<Period>,
    /// Looks since anything came.
    idle: usize,
}

/// A moment at which all volumes are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// The look's number.
    pub(crate) number: u64,
    /// The look before, in seconds since 1970.
    pub(crate) before: u64,
    /// This look, in seconds since 1970.
    pub(crate) now: u64,
}

impl Look {
    /// Did a stretch of so many seconds end between the two?
    fn ends(self, seconds: u64) -> bool {
        self.before / seconds != self.now / seconds
    }
}

impl Watched {
    /// A volume that comes into use: this is the first that its counters show, about a second after
    /// they began.
    pub(crate) fn new(VolumeReading { reading, entitled, .. }: &VolumeReading, look: Look) -> Self {
        let born = weir_core::Mono(reading.at.0.saturating_sub(SECOND));
        let last = reading.unused(*entitled, born);
        let (marks, since) = (Marks::default(), look.before);
        Self { last, answered: 0, marks, seen: 0, since, awake: None }
    }

    /// Takes up what the counters show now. Gives the minute that ended with it, if anything came
    /// in it.
    pub(crate) fn look(&mut self, seen: &VolumeReading, look: Look) -> Option<Period> {
        let VolumeReading { reading, answered, .. } = seen;
        let course = Course::between(&self.last, reading);
        // Operations that no contract is judged by are no part of its course.
        let is_idle = course.is_idle() && self.answered == *answered;
        (self.last, self.answered, self.seen) = (*reading, *answered, look.number);
        if is_idle && self.awake.is_none() {
            return None;
        }
        let awake = self.awake.get_or_insert_default();
        awake.idle = if is_idle { awake.idle + 1 } else { 0 };
        if awake.idle < SECONDS {
            awake.seconds.push(&course, SECONDS);
            awake.ten += course;
        }
        if look.ends(10) {
            awake.end_ten();
        }
        let ended = if look.ends(60) { awake.end_minute(look) } else { None };
        if awake.is_forgotten() {
            self.awake = None;
        }
        ended
    }

    /// The minute under way, as far as it is, for a server that stops.
    pub(crate) fn unfinished(&mut self, now: u64) -> Option<Period> {
        let awake = self.awake.as_mut()?;
        awake.end_ten();
        awake.end_minute(Look { number: 0, before: now, now })
    }

    /// Did anything come in the last minute?
    pub(crate) fn is_active(&self) -> bool {
        self.awake.as_ref().is_some_and(|awake| !awake.seconds.is_empty())
    }

    /// The course of the last `seconds`, of which up to a minute are remembered.
    pub(crate) fn recent(&self, seconds: usize) -> Course {
        let mut sum = Course::default();
        let newest = self.awake.iter().flat_map(|awake| awake.seconds.newest(seconds));
        newest.for_each(|second| sum += second);
        sum
    }

    /// The last seconds, oldest first, each with the time that its own end was at.
    pub(crate) fn seconds(&self, now: u64) -> Vec<Period> {
        let seconds = self.awake.as_ref().map(|awake| &awake.seconds);
        let count = seconds.map_or(0, Series::len) as u64;
        let period = |(at, course): (u64, Course)| {
            let mut tally = Tally::default();
            tally.count(&course, course.judge().verdict);
            Period { start: now.saturating_sub(count - at), nanos: course.nanos, course, tally }
        };
        (0..).zip(seconds.into_iter().flat_map(Series::iter)).map(period).collect()
    }

    /// The last minute: what happened, and how its 10 s were judged.
    pub(crate) fn last_minute(&self) -> (Course, Tally) {
        let mut tally = Tally::default();
        for course in self.awake.iter().flat_map(|awake| awake.tens.iter()) {
            tally.count(&course, course.judge().verdict);
        }
        (self.recent(SECONDS), tally)
    }

    /// The minutes of the last hour that ended, and the one under way, oldest first.
    pub(crate) fn minutes(&self, now: u64) -> Vec<Period> {
        let Some(awake) = &self.awake else { return Vec::new() };
        let recent = |period: &Period| period.start + 3600 > now;
        let mut all: Vec<_> = awake.minutes.iter().filter(recent).collect();
        let (mut course, tally) = awake.minute;
        course += awake.ten;
        if !course.is_idle() {
            let start = now / 60 * 60;
            all.push(Period { start, nanos: (now - start).max(1) * SECOND, course, tally });
        }
        all
    }
}

impl Awake {
    fn end_ten(&mut self) {
        let ten = std::mem::take(&mut self.ten);
        if ten.nanos == 0 {
            return;
        }
        let judgement = ten.judge();
        self.tens.push(&ten, TENS);
        self.minute.0 += ten;
        self.minute.1.count(&ten, judgement.verdict);
        if self.idle >= SECONDS {
            self.tens = Series::default();
        }
    }

    fn end_minute(&mut self, look: Look) -> Option<Period> {
        let (course, tally) = std::mem::take(&mut self.minute);
        if self.idle >= SECONDS {
            // A minute without requests: the history by seconds is no longer needed.
            (self.seconds, self.tens) = (Series::default(), Series::default());
        }
        self.forget_minutes(look.now);
        if course.is_idle() {
            return None;
        }
        let period = Period { start: look.before / 60 * 60, nanos: 60 * SECOND, course, tally };
        self.minutes.push(&period, MINUTES);
        Some(period)
    }

    /// Forgets the minutes that began more than an hour ago.
    fn forget_minutes(&mut self, now: u64) {
        while self.minutes.first().is_some_and(|first| first.start + 3600 <= now) {
            self.minutes.drop_first();
        }
    }

    fn is_forgotten(&self) -> bool {
        self.seconds.is_empty()
            && self.minutes.is_empty()
            && self.minute.0.nanos == 0
            && self.ten.nanos == 0
    }
}

#[cfg(test)]
mod tests;
