//! The machine's load while the demo ran, second by second: a lack of processor time makes a
//! contract fail too, and on a virtual machine the host may have taken that time.
//!
//! The sources are `/proc/stat` (proc_stat(5)), `/proc/PID/stat` (proc_pid_stat(5)),
//! [`super::pressure`] and [`super::stalls`]; a source that is missing leaves the others.

use super::pressure::{Pressure, Waited};
use super::stalls::{Span, Stall, StallKind, Stalls};
use serde::Serialize;
use std::time::{Duration, Instant};

/// One second of the machine, in percent of all processors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Second {
    /// Start of the second, in seconds since the load began.
    pub at_s: f64,
    /// Time that anything ran on this machine.
    pub busy_percent: f64,
    /// Time that something was to run and the host ran something else.
    pub stolen_percent: f64,
    /// Time that processes other than the server and this program ran, and kernel threads; `None`
    /// if no server is watched.
    pub others_percent: Option<f64>,
    /// The pressure in this second; `None` where the kernel has no PSI.
    pub pressure: Option<Pressure>,
    /// The longest stall of each kind that began in this second, if it took 10 ms or more.
    pub stalls: Vec<Longest>,
}

/// The longest stall of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Longest {
    /// The kind of the stall.
    pub what: StallKind,
    /// Start of the stall, in seconds since the load began.
    pub at_s: f64,
    /// Duration of the stall (ms).
    pub ms: f64,
}

/// The least processor time of other processes that is reported, in percent of all processors.
pub(super) const OTHERS_PERCENT: f64 = 10.0;

/// Jiffies since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Jiffies {
    idle: u64,
    stolen: u64,
    /// Time in processes and kernel threads, without that in interrupts.
    run: u64,
    all: u64,
}

/// The counters at one moment.
#[derive(Clone, Copy)]
struct Look {
    at: Duration,
    jiffies: Jiffies,
    /// Processor time of the server and this program, if a server is watched (jiffies).
    ours: Option<u64>,
    waited: Option<Waited>,
}

/// The watch over the machine, from its creation on.
pub struct Watch {
    stalls: Stalls,
    server: Option<u32>,
    last: Option<Look>,
    seconds: Vec<Second>,
}

impl Watch {
    /// The first second begins now.
    pub fn begin() -> Self {
        Self::with(None)
    }

    /// A [`Watch::begin`] that also samples the workers of the server with process id `pid`.
    pub(crate) fn of(pid: u32) -> Self {
        Self::with(Some(pid))
    }

    fn with(server: Option<u32>) -> Self {
        Self {
            stalls: Stalls::watch(Instant::now(), server),
            server,
            last: Look::now(Duration::ZERO, server),
            seconds: Vec::new(),
        }
    }

    /// To be called often: notes each second that has passed.
    pub fn look(&mut self) {
        let at = self.stalls.begun().elapsed();
        let Some(last) = self.last.filter(|last| at >= last.at + Duration::from_secs(1)) else {
            return;
        };
        let Some(now) = Look::now(at, self.server) else { return };
        self.seconds.extend(second(&last, &now));
        self.last = Some(now);
    }

    /// The seconds that have passed.
    pub fn seconds(self) -> Vec<Second> {
        let stalls = self.stalls.so_far();
        let mut seconds = self.seconds;
        let end_s = |at: usize, seconds: &[Second]| {
            seconds.get(at + 1).map_or(f64::INFINITY, |next| next.at_s)
        };
        for at in 0..seconds.len() {
            let within = Span { from_s: seconds[at].at_s, to_s: end_s(at, &seconds) };
            seconds[at].stalls = longest(&stalls, within);
        }
        seconds
    }
}

impl Look {
    fn now(at: Duration, server: Option<u32>) -> Option<Self> {
        let ours = || Some(ran(std::process::id())? + ran(server?)?);
        Some(Self { at, jiffies: read()?, ours: ours(), waited: Waited::read() })
    }
}

/// The longest stall of each kind that began `within` an interval.
fn longest(stalls: &[Stall], within: Span) -> Vec<Longest> {
    let began = |stall: &&Stall| (within.from_s..within.to_s).contains(&stall.span.from_s);
    let of = |kind| {
        let of_kind = stalls.iter().filter(|stall| stall.kind == kind).filter(began);
        let longest = of_kind.max_by(|one, other| one.span.ms().total_cmp(&other.span.ms()))?;
        Some(Longest { what: kind, at_s: longest.span.from_s, ms: longest.span.ms() })
    };
    KINDS.into_iter().filter_map(|(kind, _)| of(kind)).collect()
}

/// The kinds of stalls, in the order of tables, each with its words in a sentence.
const KINDS: [(StallKind, &str); 4] = [
    (StallKind::AllWatchdogs, "the watchdogs of all processors waited at once for at most"),
    (StallKind::Watchdog, "the watchdog of one for"),
    (StallKind::Ready, "a ready worker of the server had no processor for at most"),
    (StallKind::Blocked, "one was blocked in the kernel for"),
];

/// The value `of` each second (percent), on average and in the worst second, and that second's
/// start (s).
fn course(seconds: &[Second], of: fn(&Second) -> f64) -> Option<(f64, f64, f64)> {
    let worst = seconds.iter().max_by(|one, other| of(one).total_cmp(&of(other)))?;
    Some((seconds.iter().map(of).sum::<f64>() / count(seconds), of(worst), worst.at_s))
}

/// The longest stall of one kind.
fn longest_of(seconds: &[Second], kind: StallKind) -> Option<&Longest> {
    let of_kind = seconds.iter().flat_map(|second| &second.stalls).filter(|one| one.what == kind);
    of_kind.max_by(|one, other| one.ms.total_cmp(&other.ms))
}

/// A sentence with the processor load on average and in the worst second, and the longest stall of
/// each kind.
pub(crate) fn summary(seconds: &[Second]) -> Option<String> {
    let (busy, busiest, _) = course(seconds, |second| second.busy_percent)?;
    let (stolen, most, at_s) = course(seconds, |second| second.stolen_percent)?;
    let mut told = format!(
        "processors {busy:.0} % busy, {busiest:.0} % in the busiest second; the host took \
         {stolen:.0} %, {most:.0} % in the worst second ({at_s:.0} s)"
    );
    if let Some((others, most, at_s)) =
        course(seconds, |second| second.others_percent.unwrap_or(0.0))
            .filter(|(_, most, _)| *most >= OTHERS_PERCENT)
    {
        told += &format!(
            "; other processes took {others:.0} %, {most:.0} % in the worst second ({at_s:.0} s)"
        );
    }
    for (kind, words) in KINDS {
        if let Some(Longest { ms, at_s, .. }) = longest_of(seconds, kind) {
            told += &format!("; {words} {ms:.0} ms ({at_s:.1} s)");
        }
    }
    Some(told)
}

/// Table figures: the processor load, the time taken by the host, and the longest stalls in the
/// order of their kinds.
pub(super) fn figures(seconds: &[Second]) -> [String; 6] {
    let none = || "–".to_owned();
    let busy = course(seconds, |second| second.busy_percent)
        .map_or_else(none, |(mean, worst, _)| format!("{mean:.0} % ({worst:.0} %)"));
    let stolen = course(seconds, |second| second.stolen_percent)
        .map_or_else(none, |(_, worst, at_s)| format!("{worst:.0} % at {at_s:.0} s"));
    let [machine, processor, ready, blocked] = KINDS.map(|(kind, _)| {
        longest_of(seconds, kind)
            .map_or_else(none, |one| format!("{:.0} ms at {:.1} s", one.ms, one.at_s))
    });
    [busy, stolen, machine, processor, ready, blocked]
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
    let &[user, nice, system, idle, waiting, _, _, stolen] = fields.as_slice() else {
        return None;
    };
    let (idle, run, all) = (idle + waiting, user + nice + system, fields.iter().sum());
    Some(Jiffies { idle, stolen, run, all })
}

/// Processor time of all threads of a process until now, in jiffies.
fn ran(pid: u32) -> Option<u64> {
    parse_ran(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The sum of `utime` and `stime`. The name of the process, which may contain anything, ends with
/// the last parenthesis.
fn parse_ran(stat: &str) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(") ")?;
    let mut fields = behind.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    Some(fields.next()?.ok()? + fields.next()?.ok()?)
}

/// The second between two looks; none if no time has passed.
#[expect(clippy::cast_precision_loss, reason = "jiffies of a second")]
fn second(last: &Look, now: &Look) -> Option<Second> {
    let (before, after) = (last.jiffies, now.jiffies);
    let all = after.all.checked_sub(before.all).filter(|&all| all > 0)? as f64;
    let part = |now: u64, last: u64| now.saturating_sub(last) as f64 / all * 100.0;
    let (idle, stolen) = (part(after.idle, before.idle), part(after.stolen, before.stolen));
    let ours = now.ours.zip(last.ours).map(|(now, last)| part(now, last));
    let others = ours.map(|ours| (part(after.run, before.run) - ours).max(0.0));
    let seconds = now.at.saturating_sub(last.at).as_secs_f64();
    let pressure = now.waited.zip(last.waited).map(|(now, last)| now.since(last, seconds));
    Some(Second {
        at_s: last.at.as_secs_f64(),
        busy_percent: (100.0 - idle - stolen).max(0.0),
        stolen_percent: stolen,
        others_percent: others,
        pressure,
        stalls: Vec::new(),
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
        assert_eq!(first, Jiffies { idle: 650, stolen: 100, run: 200, all: 1000 });
        let second = second(&look(3, first, None), &look(4, next, None)).unwrap();
        assert_eq!(second, plain(3.0, 55.0, 20.0));
        let told = "processors 50 % busy, 55 % in the busiest second; the host took 10 %, 20 % in \
                    the worst second (3 s)";
        assert_eq!(summary(&[plain(4.0, 45.0, 0.0), second]).unwrap(), told);
        assert_eq!(summary(&[]), None);
    }

    fn look(at_s: u64, jiffies: Jiffies, ours: Option<u64>) -> Look {
        Look { at: Duration::from_secs(at_s), jiffies, ours, waited: None }
    }

    fn plain(at_s: f64, busy_percent: f64, stolen_percent: f64) -> Second {
        let (others_percent, pressure, stalls) = (None, None, Vec::new());
        Second { at_s, busy_percent, stolen_percent, others_percent, pressure, stalls }
    }

    #[test]
    fn the_time_of_other_processes_is_what_the_server_and_this_program_did_not_use() {
        let [first, next] = [FIRST, NEXT].map(|stat| parse(stat).unwrap());
        let second = second(&look(3, first, Some(7)), &look(4, next, Some(47))).unwrap();
        assert_eq!(second.others_percent, Some(30.0), "100 of 200 jiffies, 40 of them ours");
        let told = summary(&[second]).unwrap();
        assert!(told.ends_with("; other processes took 30 %, 30 % in the worst second (3 s)"));
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 30 12 0 0 20 0 5 0 1";
        assert_eq!(parse_ran(stat), Some(42));
        assert_eq!(parse_ran("7 (a"), None);
        assert!(ran(std::process::id()).is_some());
    }

    #[test]
    fn the_longest_stall_of_each_kind_is_told_with_its_second() {
        let stall = |kind, from_s, ms: f64| Stall {
            kind,
            span: Span { from_s, to_s: from_s + ms / 1000.0 },
        };
        let stalls = [
            stall(StallKind::Ready, 3.2, 20.0),
            stall(StallKind::Ready, 3.9, 300.0),
            stall(StallKind::AllWatchdogs, 3.5, 64.0),
            stall(StallKind::Ready, 4.0, 500.0),
        ];
        let found = longest(&stalls, Span { from_s: 3.0, to_s: 4.0 });
        let found: Vec<(StallKind, f64)> = found.iter().map(|one| (one.what, one.at_s)).collect();
        assert_eq!(found, [(StallKind::AllWatchdogs, 3.5), (StallKind::Ready, 3.9)]);
        let still = Longest { what: StallKind::AllWatchdogs, at_s: 3.5, ms: 64.0 };
        let second = Second { stalls: vec![still], ..plain(3.0, 50.0, 6.0) };
        let told = summary(&[plain(2.0, 50.0, 0.0), second.clone()]).unwrap();
        let end = "; the watchdogs of all processors waited at once for at most 64 ms (3.5 s)";
        assert!(told.ends_with(end), "{told}");
        let figures = figures(&[second]);
        let due = ["50 % (50 %)", "6 % at 3 s", "64 ms at 3.5 s", "–", "–", "–"];
        assert_eq!(figures, due);
    }

    #[test]
    fn what_is_not_the_kernel_s_table_is_not_read() {
        for stat in
            ["", "cpu", "cpu  1 2 3 4 5 6 7", "cpu0 1 2 3 4 5 6 7 8", "cpu  1 2 x 4 5 6 7 8"]
        {
            assert_eq!(parse(stat), None, "{stat}");
        }
        let none = look(0, Jiffies { idle: 1, stolen: 1, run: 0, all: 2 }, None);
        assert_eq!(second(&none, &none), None);
    }
}
