//! Pressure stall information of this machine (`/proc/pressure`, the kernel's documentation of
//! PSI): the part of time in which threads waited for a processor, for a disk or for memory. A
//! kernel without PSI yields nothing.

use serde::Serialize;

/// Time in which at least one thread waited, in microseconds since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waited {
    cpu: u64,
    io: u64,
    memory: u64,
}

/// The part of an interval in which at least one thread waited, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pressure {
    pub cpu_percent: f64,
    pub io_percent: f64,
    pub memory_percent: f64,
}

impl Waited {
    /// The waiting times up to now.
    pub(super) fn read() -> Option<Self> {
        let read = |what| parse(&std::fs::read_to_string(format!("/proc/pressure/{what}")).ok()?);
        Some(Self { cpu: read("cpu")?, io: read("io")?, memory: read("memory")? })
    }

    /// The pressure in the `seconds` since `before`.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a second")]
    pub(super) fn since(self, before: Self, seconds: f64) -> Pressure {
        let percent = |now: u64, before: u64| {
            let part = now.saturating_sub(before) as f64 / (seconds * 1e6).max(1.0);
            (part * 100.0).min(100.0)
        };
        Pressure {
            cpu_percent: percent(self.cpu, before.cpu),
            io_percent: percent(self.io, before.io),
            memory_percent: percent(self.memory, before.memory),
        }
    }
}

/// The total of the line `some` (µs).
fn parse(pressure: &str) -> Option<u64> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_ascii_whitespace().find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_what_some_waited_is_read() {
        let text = "some avg10=1.00 avg60=0.00 avg300=0.00 total=1234\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        assert_eq!(parse(text), Some(1234));
        for text in ["", "full total=5", "some total=x", "some avg10=1.00"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn pressure_is_a_part_of_the_time() {
        let before = Waited { cpu: 1_000_000, io: 0, memory: 7 };
        let now = Waited { cpu: 2_000_000, io: 500_000, memory: 7 };
        let found = now.since(before, 2.0);
        let due = Pressure { cpu_percent: 50.0, io_percent: 25.0, memory_percent: 0.0 };
        assert_eq!(found, due);
        assert_eq!(now.since(before, 0.5).cpu_percent, 100.0, "never more than all of it");
    }
}
