//! The contract watches itself: every second the counters of all volumes are read and judged, and
//! once a minute what came of it goes into the history.
//!
//! The rule is `weir-qos`'s ([`weir_qos::verdict`]). This module adds what that must not have: the
//! time of day, memory of what was ([`Watched`]), the history on disk ([`Recorder`]), and the words
//! of the API. It works on the control plane's thread, and never on a worker.

mod history;
mod kinds;
pub(crate) mod load;
mod past;
mod record;
mod run;
mod series;
mod sign;
mod volume;
mod words;

pub(crate) use past::{Past, Told};
pub(crate) use record::Recorder;
pub(crate) use run::run;
pub(crate) use sign::Signer;

use crate::plane::{Plane, VolumeReading};
use crate::sync::{Arc, Mutex, lock};
use history::{MINUTE, QUARTER};
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};
pub(crate) use volume::Period;
use volume::{Look, Watched};
use weir_api::{Active, Activity, Load, REPORT_VERSION, Report, Why, Window};
use weir_catalog::{Snapshot, Volume};
use weir_core::VolumeId;
use weir_qos::verdict::{Course, Tally, Verdict};
pub(crate) use words::OF_CLUSTER;

/// Longest period that is reported by seconds.
const BY_SECONDS: u64 = 60;
/// Longest period that is reported by minutes.
const BY_MINUTES: u64 = 24 * 3600;
/// Most periods of a report: more than a day has minutes, and 14 days quarters.
const PERIODS_MAX: usize = 1500;

/// A second, in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// The watch's memory of all volumes.
pub(crate) struct Watch {
    board: Mutex<Board>,
    /// Whether names and attributes are cached in memory, of volumes that do not say.
    metadata_cache: bool,
    pub(crate) recorder: Arc<Recorder>,
}

#[derive(Default)]
struct Board {
    volumes: HashMap<VolumeId, Watched>,
    looks: u64,
    /// Time of the last look, in seconds since 1970.
    at: u64,
    /// The first.
    since: u64,
}

/// The verdict on a volume's contract at present, for the metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// The verdict over the last 10 s.
    pub(crate) verdict: Verdict,
    /// The error over the last 10 s, minute and hour, where it was demanded.
    pub(crate) errors: [Option<f64>; 3],
}

/// Seconds since 1970.
pub(crate) fn time_of_day() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Watch {
    /// Nothing known yet; the history goes to `recorder`. `metadata_cache` is what is configured
    /// for volumes without a setting of their own.
    pub(crate) fn new(recorder: Recorder, metadata_cache: bool) -> Self {
        Self { board: Mutex::default(), metadata_cache, recorder: Arc::new(recorder) }
    }

    /// Reads all counters, `now` in seconds since 1970. Once a minute, gives what is for the
    /// history; of a volume that is not served any more, at once.
    pub(crate) fn look(&self, plane: &dyn Plane, now: u64) -> Vec<(VolumeId, Period)> {
        let mut board = lock(&self.board);
        let board = &mut *board;
        board.looks += 1;
        let look = Look { number: board.looks, before: board.before(now), now };
        let mut ended = Vec::new();
        plane.readings(&mut |seen: VolumeReading| {
            let watched = board.volumes.entry(seen.id).or_insert_with(|| Watched::new(&seen, look));
            ended.extend(watched.look(&seen, look).map(|period| (seen.id, period)));
        });
        board.volumes.retain(|id, watched| {
            let stays = watched.seen == look.number;
            if !stays {
                let last = watched.unfinished(look.before);
                ended.extend(last.map(|period| (*id, period)));
            }
            stays
        });
        for (id, watched) in &mut board.volumes {
            let is_active = watched.is_active();
            watched.marks.look(look.number, is_active, || plane.volume_uses(*id));
        }
        board.at = now;
        ended
    }

    /// The history's rows for the minute under way, when the server stops.
    pub(crate) fn unfinished(&self, now: u64) -> Vec<(VolumeId, Period)> {
        let mut board = lock(&self.board);
        let volumes = board.volumes.iter_mut();
        volumes.filter_map(|(id, watched)| Some((*id, watched.unfinished(now)?))).collect()
    }

    /// The verdict on a volume's contract now; nothing if it is not in use.
    pub(crate) fn standing(&self, id: VolumeId) -> Option<Standing> {
        let board = lock(&self.board);
        let watched = board.volumes.get(&id)?;
        let ten = watched.recent(10);
        let (minute, hour) = (board.last_minute(watched), board.last_hour(watched));
        let mut tally = Tally::default();
        let verdict = ten.judge().verdict;
        tally.count(&ten, verdict);
        Some(Standing {
            verdict,
            errors: [tally.error(), minute.tally.error(), hour.tally.error()],
        })
    }

    /// The activity of all volumes of `snapshot`.
    pub(crate) fn activity(&self, snapshot: &Snapshot, plane: &dyn Plane) -> Activity {
        let board = lock(&self.board);
        let active = board.volumes.iter().filter(|(_, watched)| watched.is_active());
        let volumes = active.filter_map(|(id, watched)| {
            let volume = snapshot.volume(*id)?;
            let load = watched.load(plane, volume).unwrap_or_default();
            Some(Active {
                volume: volume.name.clone(),
                pool: pool_of(snapshot, volume),
                second: words::judged(&watched.recent(1), board.at),
                window: words::judged(&watched.recent(10), board.at),
                waiting: plane.volume_live(*id).map_or(0, |live| live.waiting),
                clients: load.clients_total,
                connections: load.connections_total,
                operations_per_second: load.operations_per_second,
                kinds: load.kinds,
                gateway: None,
            })
        });
        let mut volumes: Vec<_> = volumes.collect();
        volumes.sort_by(|left, right| left.volume.cmp(&right.volume));
        let served = snapshot.volumes().count() as u64;
        Activity { at: board.at, served, volumes, missing: Vec::new() }
    }

    /// The load of `volume` in the last seconds; one without requests if there were none in the
    /// last minute.
    pub(crate) fn load(&self, plane: &dyn Plane, volume: &Volume) -> Load {
        self.recent_load(plane, volume).unwrap_or_else(|| load::nothing(volume))
    }

    /// The same; `None` if there were no requests in the last minute.
    pub(crate) fn recent_load(&self, plane: &dyn Plane, volume: &Volume) -> Option<Load> {
        lock(&self.board).volumes.get(&volume.id)?.load(plane, volume)
    }

    /// Why `volume` is as quick or slow as it is.
    pub(crate) fn why(&self, snapshot: &Snapshot, plane: &dyn Plane, volume: &Volume) -> Why {
        let [window, minute, hour] = lock(&self.board).recent(volume);
        let mut why = Why {
            volume: volume.name.clone(),
            pool: pool_of(snapshot, volume),
            gateway: None,
            window,
            minute,
            hour,
            waiting: plane.volume_live(volume.id).map_or(0, |live| live.waiting),
            load: self.recent_load(plane, volume),
            findings: Vec::new(),
            advice: Vec::new(),
        };
        let subject = words::Subject {
            volume,
            pool: snapshot.pool(volume.pool).map(AsRef::as_ref),
            metadata_cache: volume.terms.metadata_cache.unwrap_or(self.metadata_cache),
        };
        words::explain(&mut why, &subject);
        why
    }

    /// The history of `volume` in the last `seconds`, as far as it was here. Blocks.
    pub(crate) fn past(&self, volume: &Volume, seconds: u64) -> Past {
        let resolution = resolution(seconds);
        let (now, recent, remembered) = {
            let board = lock(&self.board);
            let watched = board.volumes.get(&volume.id);
            let of = |get: fn(&Watched, u64) -> Vec<Period>| watched.map(|one| get(one, board.at));
            let get = if resolution == 1 { Watched::seconds } else { Watched::minutes };
            (board.at, board.recent(volume), of(get).unwrap_or_default())
        };
        let since = now.saturating_sub(seconds);
        let periods = match resolution {
            1 => remembered.into_iter().filter(|period| period.start >= since).collect(),
            _ => {
                let from = since / resolution * resolution;
                let kept = self.recorder.periods(volume.id, resolution, from, PERIODS_MAX);
                let unwritten = |minute: &&Period| minute.start >= from.max(kept.written_until);
                let unwritten: Vec<_> = remembered.iter().filter(unwritten).copied().collect();
                joined(kept.periods, &unwritten, resolution, now)
            }
        };
        Past { at: now, resolution, recent, periods }
    }

    /// Whether the contract of `volume` was kept in the last `seconds`, by its history.
    pub(crate) fn report(
        &self,
        snapshot: &Snapshot,
        volume: &Volume,
        seconds: u64,
        past: Past,
    ) -> Report {
        let Past { at: now, resolution, recent, periods } = past;
        let since = now.saturating_sub(seconds);
        let mut whole = Period { start: since, nanos: seconds * SECOND, ..Period::default() };
        periods.iter().for_each(|period| whole.take_in(period));
        Report {
            version: REPORT_VERSION,
            volume: volume.name.clone(),
            volume_id: volume.id.0,
            pool: pool_of(snapshot, volume),
            server: env!("CARGO_PKG_VERSION").to_owned(),
            made_at: now,
            resolution_seconds: resolution,
            whole: with_limits(words::window(&whole), volume),
            recent: recent.into(),
            periods: periods.iter().map(words::window).collect(),
            conditions: words::conditions(),
            missing: Vec::new(),
        }
    }
}

impl Board {
    /// Time of the look before that of `now`.
    fn before(&mut self, now: u64) -> u64 {
        if self.since == 0 {
            self.since = now;
            return now;
        }
        self.at
    }

    /// The last 10 s, minute and hour of `volume`.
    fn recent(&self, volume: &Volume) -> [Window; 3] {
        let windows = match self.volumes.get(&volume.id) {
            Some(watched) => [
                words::judged(&watched.recent(10), self.at),
                words::window(&self.last_minute(watched)),
                words::window(&self.last_hour(watched)),
            ],
            None => {
                let nothing = |seconds| self.lately(seconds, self.since);
                let now = Window { seconds: 10.0, ..words::judged(&Course::default(), self.at) };
                [now, words::window(&nothing(60)), words::window(&nothing(3600))]
            }
        };
        windows.map(|window| with_limits(window, volume))
    }

    /// The last hour, or what has passed since the volume came into use here.
    fn last_hour(&self, watched: &Watched) -> Period {
        let mut hour = self.lately(3600, watched.since);
        watched.minutes(self.at).iter().for_each(|minute| hour.take_in(minute));
        hour
    }

    /// The last minute, or what has passed since the volume came into use here.
    fn last_minute(&self, watched: &Watched) -> Period {
        let (course, tally) = watched.last_minute();
        Period { course, tally, ..self.lately(60, watched.since) }
    }

    /// The last so many seconds, as far as they are after `since`, with nothing in them. What came
    /// before is known to another gateway at most, of which the volume was.
    fn lately(&self, seconds: u64, since: u64) -> Period {
        let length = self.at.saturating_sub(since).clamp(1, seconds);
        let start = self.at.saturating_sub(length);
        Period { start, nanos: length * SECOND, ..Period::default() }
    }
}

/// The length of a period in the history of the last `seconds`, in seconds.
pub(crate) const fn resolution(seconds: u64) -> u64 {
    match seconds {
        ..=BY_SECONDS => 1,
        seconds if seconds <= BY_MINUTES => MINUTE,
        _ => QUARTER,
    }
}

/// The periods that the history has, and the minutes of which it knows nothing yet. The last may be
/// under way.
fn joined(kept: Vec<Period>, unwritten: &[Period], resolution: u64, now: u64) -> Vec<Period> {
    let mut all = kept;
    for minute in unwritten {
        let start = minute.start / resolution * resolution;
        match all.last_mut() {
            Some(last) if last.start >= start => last.take_in(minute),
            _ => all.push(Period { start, ..*minute }),
        }
    }
    for period in &mut all {
        period.nanos = now.saturating_sub(period.start).clamp(1, resolution) * SECOND;
    }
    all
}

/// The window with the limits of the catalogue, if nothing is known of its time.
fn with_limits(window: Window, volume: &Volume) -> Window {
    if window.limit_bytes_per_second > 0 {
        return window;
    }
    Window {
        limit_bytes_per_second: volume.limits.rate.0,
        limit_iops: volume.limits.iops.map(|iops| iops.0),
        ..window
    }
}

fn pool_of(snapshot: &Snapshot, volume: &Volume) -> String {
    snapshot.pool(volume.pool).map(|pool| pool.name.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
