//! Making a scenario fit a machine: less data, less at a time, shorter; and saying what was
//! changed.
//!
//! Nothing ever grows. What a test is about stays as it was: its blocks, mixes, order, connections,
//! rates and published figures. What is scaled, and how:
//!
//! - **Data.** All files shrink in the same proportion, and stay as many, down to 4 MiB or sixteen
//!   requests each; below that there are fewer of them. A proportion ([`Scale::factor`]) leaves at
//!   least a thousand blocks to a test in random order and 256 MiB to one in sequence (a second's
//!   worth), and a thousand files to one of metadata; a bound in bytes ([`Scale::max_data_bytes`])
//!   goes before that, and then the change says so. Parts of files that are visited, strides and
//!   lengths in bytes shrink with the files.
//! - **Requests at a time.** Jobs become fewer, in the same proportion in all steps so that these
//!   can be compared, down to one for each client; what is still too much is taken from the depth.
//! - **Time.** Of steps that are measured by time.
//! - **Steps.** One that became the same as a step before is left out, whatever its name and the
//!   figures published for it.

mod data;
mod estimate;
mod load;
mod repeats;
#[cfg(test)]
mod tests;

use super::{Cache, Scenario, Step};
use weir_core::units::Bytes;
use weir_load::workload::{Length, Workload};

pub use estimate::{PASS_BYTES_PER_S, estimate};

/// To what a scenario is scaled. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scale {
    /// Part of the data set to keep, over 0 and at most 1.
    pub factor: Option<f64>,
    /// Most bytes of files at a time.
    pub max_data_bytes: Option<u64>,
    /// Most seconds measured of a step.
    pub time_s: Option<f64>,
    /// Most seconds of warm-up of a step.
    pub warmup_s: Option<f64>,
    /// Most clients. Jobs become fewer in proportion.
    pub clients: Option<u32>,
    /// Most jobs of a load.
    pub jobs: Option<u32>,
    /// Most requests in flight of a job.
    pub depth: Option<u32>,
    /// Most requests in flight of a step.
    pub in_flight: Option<u32>,
    /// Most payload bytes in flight of a step.
    pub bytes_in_flight: Option<u64>,
    /// Most threads of the generator.
    pub threads: Option<u32>,
    /// The known facts about the machines, on which statements about caches rest.
    pub facts: Option<Facts>,
    /// Why [`Scale::max_data_bytes`] is less than caches demand, as a sentence, which becomes one
    /// of the changes if the data is scaled.
    pub too_little_room: Option<String>,
}

/// The known facts about the machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Memory of the client machines together, in bytes.
    pub client_memory_bytes: u64,
    /// Memory of the server, where it is known.
    pub server_memory_bytes: Option<u64>,
    /// Client and server are one machine, whose memory is both of the above.
    pub same_machine: bool,
    /// The client has a cache of its own: that of the kernel over a mounted path. A client in user
    /// space has none.
    pub client_caches: bool,
    /// Bytes free at the target, where that is known.
    pub free_bytes: Option<u64>,
    /// Processors of the client.
    pub processors: u32,
}

impl Facts {
    /// Memory that may hold a copy of the data, as far as it is known. If the server's memory is
    /// unknown, the client's memory is used instead.
    const fn memory_bytes(&self) -> u64 {
        match self.server_memory_bytes {
            Some(_) if self.same_machine => self.client_memory_bytes,
            Some(server) if self.client_caches => self.client_memory_bytes.saturating_add(server),
            Some(server) => server,
            None => self.client_memory_bytes,
        }
    }
}

/// Requests in flight for each processor of the client, and their bytes: more only lengthens the
/// queues of a machine that has the server on it too.
const IN_FLIGHT_PER_PROCESSOR: u32 = 128;
const BYTES_IN_FLIGHT_PER_PROCESSOR: u64 = 16 << 20;
/// Data of a test that wants nothing of caches, at most.
const DATA_BYTES: u64 = 4 << 30;
/// Seconds measured and of warm-up.
const TIME_S: f64 = 20.0;
const WARMUP_S: f64 = 5.0;

impl Scale {
    /// The size that fits a machine: half of the free space at most; more data than all known
    /// memory that may hold it where caches have to be excluded and there is room for it; otherwise
    /// at most 4 GiB and an eighth of the client's memory, which caches hold. 128 requests and
    /// 16 MiB in flight for each processor; 20 s a step after 5 s of warm-up.
    #[must_use]
    pub fn automatic(scenario: &Scenario, facts: Facts) -> Self {
        let room = facts.free_bytes.map_or(u64::MAX, |free| free / 2);
        let excluded = scenario.steps.iter().any(|step| step.cache == Cache::Excluded);
        let beyond = facts.memory_bytes().saturating_add(facts.memory_bytes() / 4);
        let cached = (facts.client_memory_bytes / 8).clamp(64 << 20, DATA_BYTES).min(room);
        let (data, too_little_room) = match facts.free_bytes.filter(|_| excluded && beyond > room) {
            Some(free) => (cached, Some(too_little_room(cached, beyond, free))),
            None if excluded => (beyond, None),
            None => (cached, None),
        };
        let processors = facts.processors.max(1);
        Self {
            max_data_bytes: Some(data),
            time_s: Some(TIME_S),
            warmup_s: Some(WARMUP_S),
            in_flight: Some(processors.saturating_mul(IN_FLIGHT_PER_PROCESSOR)),
            bytes_in_flight: Some(
                u64::from(processors).saturating_mul(BYTES_IN_FLIGHT_PER_PROCESSOR),
            ),
            threads: Some((processors / 2).max(1)),
            facts: Some(facts),
            too_little_room,
            ..Self::default()
        }
    }

    /// Checks what a user gave.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn check(&self) -> Result<(), String> {
        let refuse = |what: &str, value: f64, bounds: &str| {
            Err(format!("{what} is {value}; it must be {bounds}"))
        };
        match (self.factor, self.time_s, self.warmup_s) {
            (Some(factor), ..) if !(factor > 0.0 && factor <= 1.0) => {
                refuse("the scale", factor, "over 0 and at most 1, as in 1/512")
            }
            (_, Some(time), _) if !(time > 0.0 && time.is_finite()) => {
                refuse("the time of a step", time, "over 0 seconds")
            }
            (.., Some(warmup)) if !(warmup >= 0.0 && warmup.is_finite()) => {
                refuse("the warm-up", warmup, "0 seconds or more")
            }
            _ => Ok(()),
        }
    }
}

/// Why a test that excludes caches has at most `data` bytes and not `beyond`.
fn too_little_room(data: u64, beyond: u64, free: u64) -> String {
    format!(
        "data set of at most {:.2} and not {:.2}, as excluded caches demand: half of the {:.2} that \
         are free is less than that; {:.2} have to be free to exclude caches, or choose the size \
         with --max-data",
        Bytes(data),
        Bytes(beyond),
        Bytes(free),
        Bytes(beyond.saturating_mul(2))
    )
}

/// `scenario` made to fit; [`Scenario::changes`] gets a sentence for everything that differs.
/// Figures of `scale` that [`Scale::check`] refuses change nothing.
#[must_use]
pub fn scale(scenario: &Scenario, scale: &Scale) -> Scenario {
    scale_changed(scenario, scenario.clone(), scale)
}

/// As [`scale`], of a scenario whose loads were `changed` before: steps that the change made the
/// same are left out too. `changed` has the steps of `scenario`.
#[must_use]
pub fn scale_changed(scenario: &Scenario, changed: Scenario, scale: &Scale) -> Scenario {
    let mut scaled = changed;
    let mut changes = Changes::default();
    load::fewer_at_a_time(&mut scaled.steps, scale, &mut changes);
    data::less(&mut scaled.steps, scale, &mut changes);
    for step in &mut scaled.steps {
        for load in &mut step.loads {
            shorten(load, step.preparation, scale, &mut changes);
        }
    }
    for (step, before) in scaled.steps.iter_mut().zip(&scenario.steps) {
        follow(step, before);
        let written = before.in_flight();
        step.written_in_flight = (step.in_flight() < written).then_some(written);
    }
    repeats::leave_out(&mut scaled, scenario, &mut changes);
    if let Some(facts) = &scale.facts {
        tell_of_caches(&scaled, facts, &mut changes);
    }
    scaled.changes.append(&mut changes.0);
    scaled
}

/// Sentences, each once.
#[derive(Default)]
struct Changes(Vec<String>);

impl Changes {
    fn say(&mut self, sentence: String) {
        if !self.0.contains(&sentence) {
            self.0.push(sentence);
        }
    }
}

/// Less time and fewer threads. A fill goes on to its end.
fn shorten(load: &mut Workload, preparation: bool, scale: &Scale, changes: &mut Changes) {
    let most_s = scale.time_s.filter(|seconds| *seconds > 0.0).unwrap_or(f64::INFINITY);
    match &mut load.length {
        Length::Seconds(seconds) if *seconds > most_s => {
            changes.say(format!("{seconds} s a step → {most_s} s"));
            *seconds = most_s;
        }
        Length::Bytes { at_most_s, .. } if !preparation && most_s.is_finite() => {
            let before = at_most_s.unwrap_or(f64::INFINITY);
            if before > most_s {
                changes.say(format!("steps that end by bytes end after {most_s} s at the latest"));
                *at_most_s = Some(most_s);
            }
        }
        Length::Seconds(_) | Length::Operations(_) | Length::Bytes { .. } => {}
    }
    let most_s = scale.warmup_s.filter(|seconds| *seconds >= 0.0).unwrap_or(f64::INFINITY);
    if load.warmup_s > most_s {
        changes.say(format!("{} s of warm-up → {most_s} s", load.warmup_s));
        load.warmup_s = most_s;
    }
    let threads = load.threads.min(scale.threads.unwrap_or(u32::MAX).max(1));
    if threads < load.threads {
        changes.say(format!("{} threads of the generator → {threads}", load.threads));
        load.threads = threads;
    }
}

/// Keeps the axis of a sweep over concurrency true.
fn follow(step: &mut Step, before: &Step) {
    let (Some(axis), [after, ..], [before, ..]) =
        (&mut step.axis, step.loads.as_slice(), before.loads.as_slice())
    else {
        return;
    };
    let pairs = [
        (before.in_flight(), after.in_flight()),
        (u64::from(before.depth), u64::from(after.depth)),
        (u64::from(before.jobs), u64::from(after.jobs)),
        (u64::from(before.clients), u64::from(after.clients)),
    ];
    let concurrency = ["in flight", "depth", "threads", "jobs", "clients"];
    if !concurrency.iter().any(|word| axis.label.contains(word)) {
        return;
    }
    for (old, new) in pairs {
        if same(axis.value, old) {
            #[expect(clippy::cast_precision_loss, reason = "at most 65,536 × 4,096")]
            let value = new as f64;
            axis.value = value;
            return;
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most 65,536 × 4,096")]
fn same(value: f64, count: u64) -> bool {
    (value - count as f64).abs() < 0.5
}

/// Can memory hold the data of a test that wants caches excluded?
fn tell_of_caches(scenario: &Scenario, facts: &Facts, changes: &mut Changes) {
    if !scenario.steps.iter().any(|step| step.cache == Cache::Excluded) {
        return;
    }
    let (data, memory) = (data::bytes(&scenario.steps), facts.memory_bytes());
    if data <= memory {
        changes.say(format!(
            "caches can hold the data set ({} against {:.1} of memory): only what is emptied before \
             a step is excluded",
            Bytes(data),
            Bytes(memory)
        ));
    }
}
