//! The result of one part, and the load of the machine meanwhile.

use super::server::Broken;
use crate::demo::processors::{Second, Watch, summary};
use crate::judge::{Check, all_kept};
use serde::Serialize;

/// The result of one part.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Part {
    pub(super) name: &'static str,
    /// The method, in sentences.
    pub(super) how: String,
    pub(super) machine: MachineLoad,
    pub(super) figures: Vec<Figure>,
    pub(super) checks: Vec<Check>,
    /// Seconds in which the server found a contract broken itself, and by what: where a rule was
    /// missed, look there.
    pub(super) said: Vec<String>,
    pub(super) courses: Vec<Curve>,
}

impl Part {
    /// Was every rule kept?
    pub(super) fn passed(&self) -> bool {
        all_kept(&self.checks)
    }

    /// The load of the machine, in a sentence.
    pub(super) fn conditions(&self) -> String {
        let MachineLoad { load_before, load_after, seconds } = &self.machine;
        let processors = summary(seconds).map(|summary| format!("; {summary}")).unwrap_or_default();
        format!("load average {load_before:.2} before, {load_after:.2} after{processors}")
    }
}

/// The server's verdicts on the seconds of a load, which began `started_unix_s` after 1970, in the
/// time of the load.
#[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
pub(super) fn server_verdicts(who: &str, broken: &Broken, started_unix_s: f64) -> Vec<String> {
    let explained = |(at, what): (&u64, &String)| {
        let from_s = *at as f64 - started_unix_s;
        format!("{who}, the second from {from_s:.0} s: {what}")
    };
    broken.iter().map(explained).collect()
}

/// A figure: the due value and the measured one.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    pub(super) what: String,
    pub(super) unit: &'static str,
    pub(super) due: f64,
    pub(super) found: f64,
}

impl Figure {
    pub(super) fn new(what: impl Into<String>, unit: &'static str, due: f64, found: f64) -> Self {
        Self { what: what.into(), unit, due, found }
    }
}

/// A value over time, and the due values.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) unit: &'static str,
    /// Seconds from the beginning, and the value.
    pub(super) points: Vec<(f64, f64)>,
    /// From, until, and the value due in between.
    pub(super) due: Vec<(f64, f64, f64)>,
    pub(super) marks: Vec<(f64, String)>,
}

/// The load of the machine.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MachineLoad {
    /// Mean number of tasks that wanted a processor over a minute (proc_loadavg(5)).
    pub(super) load_before: f64,
    pub(super) load_after: f64,
    /// The load of the processors, second by second.
    pub(super) seconds: Vec<Second>,
}

/// Watches how busy the machine is.
pub(super) struct Watching {
    load_before: f64,
    watch: Watch,
}

impl Watching {
    /// From now on.
    pub(super) fn begin() -> Self {
        Self { load_before: load_average(), watch: Watch::begin() }
    }

    /// To be called often.
    pub(super) fn look(&mut self) {
        self.watch.look();
    }

    /// The machine's load since the beginning.
    pub(super) fn end(self) -> MachineLoad {
        MachineLoad {
            load_before: self.load_before,
            load_after: load_average(),
            seconds: self.watch.seconds(),
        }
    }
}

/// Not a number where the system does not tell.
fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_said_is_told_in_the_time_of_the_load() {
        let broken = Broken::from([(1_000_026, "by store".to_owned())]);
        assert_eq!(
            server_verdicts("v", &broken, 1_000_000.3),
            ["v, the second from 26 s: by store"]
        );
    }

    #[test]
    fn the_load_of_the_machine_is_known() {
        let machine = Watching::begin().end();
        assert!(machine.load_before >= 0.0 && machine.load_after >= 0.0);
    }
}
