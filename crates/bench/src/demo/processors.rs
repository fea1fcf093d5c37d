//! What the machine's processors did while the demo ran, second by second: a contract is missed for
//! want of processor time too, and on a virtual machine the host may have taken it.
//!
//! From `/proc/stat` (proc_stat(5)); where that can't be read there is nothing to tell.

use serde::Serialize;
use std::time::{Duration, Instant};

/// What one second was, in percent of all processors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Second {
    /// When it began, in seconds since the load did.
    at_s: f64,
    /// Time that anything ran on this machine.
    busy_percent: f64,
    /// Time that something was to run and the host ran something else.
    stolen_percent: f64,
}

/// Jiffies since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Jiffies {
    idle: u64,
    stolen: u64,
    all: u64,
}

/// Watches the processors from its making on.
pub(crate) struct Watch {
    begun: Instant,
    last: Option<(Duration, Jiffies)>,
    seconds: Vec<Second>,
}

impl Watch {
    /// The first second begins now.
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            last: read().map(|now| (Duration::ZERO, now)),
            seconds: Vec::new(),
        }
    }

    /// To be called often: notes each second that has passed.
    pub(crate) fn look(&mut self) {
        let at = self.begun.elapsed();
        let Some((since, last)) = self.last.filter(|last| at >= last.0 + Duration::from_secs(1))
        else {
            return;
        };
        let Some(now) = read() else { return };
        self.seconds.extend(second(since, last, now));
        self.last = Some((at, now));
    }

    /// The seconds that began from `from_s` on.
    pub(crate) fn seconds(self, from_s: f64) -> Vec<Second> {
        self.seconds.into_iter().filter(|second| second.at_s >= from_s).collect()
    }
}

/// In a sentence: how busy the processors were on average and in the worst second.
pub(crate) fn summary(seconds: &[Second]) -> Option<String> {
    let worst = |of: fn(&Second) -> f64| {
        let worst = seconds.iter().max_by(|one, other| of(one).total_cmp(&of(other)))?;
        Some((of(worst), worst.at_s))
    };
    let mean = |of: fn(&Second) -> f64| seconds.iter().map(of).sum::<f64>() / count(seconds);
    let (busiest, _) = worst(|second| second.busy_percent)?;
    let (most, at_s) = worst(|second| second.stolen_percent)?;
    Some(format!(
        "processors {:.0} % busy, {busiest:.0} % in the busiest second; the host took {:.0} %, {most:.0} % in \
         the worst second ({at_s:.0} s)",
        mean(|second| second.busy_percent),
        mean(|second| second.stolen_percent),
    ))
}

#[expect(clippy::cast_precision_loss, reason = "a count of seconds")]
fn count(seconds: &[Second]) -> f64 {
    seconds.len() as f64
}

fn read() -> Option<Jiffies> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// The line of all processors together: user, nice, system, idle, iowait, irq, softirq, steal, and
/// two that are contained in the first.
fn parse(stat: &str) -> Option<Jiffies> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    let fields: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
    let &[.., idle, waiting, _, _, stolen] = fields.as_slice() else { return None };
    (fields.len() == 8).then(|| Jiffies { idle: idle + waiting, stolen, all: fields.iter().sum() })
}

#[expect(clippy::cast_precision_loss, reason = "jiffies of a second")]
fn second(since: Duration, last: Jiffies, now: Jiffies) -> Option<Second> {
    let all = now.all.checked_sub(last.all).filter(|&all| all > 0)? as f64;
    let part = |now: u64, last: u64| now.saturating_sub(last) as f64 / all * 100.0;
    let (idle, stolen) = (part(now.idle, last.idle), part(now.stolen, last.stolen));
    Some(Second {
        at_s: since.as_secs_f64(),
        busy_percent: (100.0 - idle - stolen).max(0.0),
        stolen_percent: stolen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "cpu  100 0 100 600 50 0 50 100 7 7\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
    const NEXT: &str = "cpu  160 0 140 640 60 0 60 140 9 9\n";

    #[test]
    fn a_second_is_told_in_percent_of_all_processors() {
        let [first, next] = [FIRST, NEXT].map(|stat| parse(stat).unwrap());
        assert_eq!(first, Jiffies { idle: 650, stolen: 100, all: 1000 });
        let second = second(Duration::from_secs(3), first, next).unwrap();
        assert_eq!(second, Second { at_s: 3.0, busy_percent: 55.0, stolen_percent: 20.0 });
        let calm = Second { at_s: 4.0, busy_percent: 45.0, stolen_percent: 0.0 };
        let told = "processors 50 % busy, 55 % in the busiest second; the host took 10 %, 20 % in the worst second (3 s)";
        assert_eq!(summary(&[calm, second]).unwrap(), told);
        assert_eq!(summary(&[]), None);
    }

    #[test]
    fn what_is_not_the_kernel_s_table_is_not_read() {
        for stat in
            ["", "cpu", "cpu  1 2 3 4 5 6 7", "cpu0 1 2 3 4 5 6 7 8", "cpu  1 2 x 4 5 6 7 8"]
        {
            assert_eq!(parse(stat), None, "{stat}");
        }
        let none = Jiffies { idle: 1, stolen: 1, all: 2 };
        assert_eq!(second(Duration::ZERO, none, none), None);
    }
}
