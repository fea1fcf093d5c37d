//! The machine's stalls, pressure and processor load while a rule was missed, in words. They excuse
//! nothing: a miss stays a miss. They name no culprit: two things at the same time need not be
//! cause and effect.

use super::processors::{Longest, OTHERS_PERCENT, Second};
use super::stalls::StallKind;
use weir_load::stats::result::Interval;

/// The shortest stall that is reported (ms). The rule for 1 s windows allows 50 ms.
const STALL_MS: f64 = 20.0;
/// The least pressure on disks and on memory that is reported, in percent.
const IO_PERCENT: f64 = 50.0;
const MEMORY_PERCENT: f64 = 5.0;

/// The machine's stalls, pressure and processor load `within` an interval, in words, by kind. The
/// seconds must be those of the load to which the interval belongs.
pub fn meanwhile(seconds: &[Second], within: Interval) -> String {
    let ends = seconds.iter().skip(1).map(|next| next.at_s).chain([f64::INFINITY]);
    let overlaps =
        |(second, end_s): &(&Second, f64)| second.at_s < within.to_s && *end_s > within.from_s;
    let during: Vec<&Second> =
        seconds.iter().zip(ends).filter(overlaps).map(|(second, _)| second).collect();
    if during.is_empty() {
        return "nobody watched the machine".to_owned();
    }
    let found = hindrances(&during, within);
    let most = |of: fn(&Second) -> f64| during.iter().map(|one| of(one)).fold(0.0, f64::max);
    let (busy, stolen) = (most(|one| one.busy_percent), most(|one| one.stolen_percent));
    // The processor load is always reported: a late watchdog means little without it. On busy
    // processors other threads ran; otherwise the host or the kernel kept the processors.
    let measured = format!("processors at most {busy:.0} % busy, {stolen:.0} % taken by the host");
    if found.is_empty() {
        return format!("no hindrance was seen; {measured}");
    }
    format!("{}; {measured}", found.join("; "))
}

fn hindrances(during: &[&Second], within: Interval) -> Vec<String> {
    let mut found = Vec::new();
    let mut tell = |part: f64, least: f64, words: &dyn Fn(f64) -> String| {
        if part >= least {
            found.push(words(part));
        }
    };
    for (kind, words) in [
        (StallKind::AllWatchdogs, "the watchdogs of all processors waited at once"),
        (StallKind::Watchdog, "the watchdog of a processor waited"),
        (StallKind::Ready, "a ready worker of the server had no processor"),
        (StallKind::Blocked, "a worker of the server was blocked in the kernel"),
    ] {
        let longest = longest(during, kind, within);
        tell(longest.map_or(0.0, |one| one.ms), STALL_MS, &|ms| {
            let at_s = longest.map_or(0.0, |one| one.at_s);
            format!("{words} for {ms:.0} ms at {at_s:.2} s")
        });
    }
    let others = during.iter().filter_map(|one| one.others_percent).fold(0.0, f64::max);
    tell(others, OTHERS_PERCENT, &|part| {
        format!("other processes had {part:.0} % of the processors for a second")
    });
    let pressed = |of: fn(&Second) -> Option<f64>| {
        during.iter().filter_map(|one| of(one)).fold(0.0, f64::max)
    };
    let (io, memory) = (
        pressed(|one| Some(one.pressure?.io_percent)),
        pressed(|one| Some(one.pressure?.memory_percent)),
    );
    tell(io, IO_PERCENT, &|part| format!("threads waited for a disk in {part:.0} % of a second"));
    tell(memory, MEMORY_PERCENT, &|part| {
        format!("threads waited for memory in {part:.0} % of a second")
    });
    found
}

/// The longest stall of one kind that overlaps the interval.
fn longest(during: &[&Second], kind: StallKind, within: Interval) -> Option<Longest> {
    let all = during.iter().flat_map(|second| &second.stalls);
    let touches = |one: &&Longest| {
        one.what == kind && one.at_s < within.to_s && one.at_s + one.ms / 1000.0 > within.from_s
    };
    all.filter(touches).max_by(|one, other| one.ms.total_cmp(&other.ms)).copied()
}

#[cfg(test)]
mod tests {
    use super::super::pressure::Pressure;
    use super::*;

    fn second(at_s: f64) -> Second {
        let (others_percent, pressure, stalls) = (None, None, Vec::new());
        let (busy_percent, stolen_percent) = (50.0, 0.0);
        Second { at_s, busy_percent, stolen_percent, others_percent, pressure, stalls }
    }

    fn told(change: impl FnOnce(&mut Second)) -> String {
        let mut seconds: Vec<Second> = (0..10).map(|at| second(f64::from(at))).collect();
        change(&mut seconds[5]);
        meanwhile(&seconds, Interval { from_s: 4.7, to_s: 5.7 })
    }

    fn stalled(what: StallKind, at_s: f64, ms: f64) -> String {
        told(|second| second.stalls.push(Longest { what, at_s, ms }))
    }

    const CALM: &str = "processors at most 50 % busy, 0 % taken by the host";

    #[test]
    fn a_calm_machine_is_said_to_be_calm() {
        let calm = format!("no hindrance was seen; {CALM}");
        assert_eq!(told(|_| ()), calm);
        assert_eq!(stalled(StallKind::AllWatchdogs, 5.0, 19.0), calm, "too short to tell");
    }

    #[test]
    fn each_hindrance_is_named() {
        let due = |words: &str| format!("{words}; {CALM}");
        let all = stalled(StallKind::AllWatchdogs, 5.25, 64.0);
        assert_eq!(all, due("the watchdogs of all processors waited at once for 64 ms at 5.25 s"));
        let one = stalled(StallKind::Watchdog, 5.25, 64.0);
        assert_eq!(one, due("the watchdog of a processor waited for 64 ms at 5.25 s"));
        let ready = stalled(StallKind::Ready, 5.25, 64.0);
        assert_eq!(ready, due("a ready worker of the server had no processor for 64 ms at 5.25 s"));
        let disk = stalled(StallKind::Blocked, 5.25, 80.0);
        let words = "a worker of the server was blocked in the kernel for 80 ms at 5.25 s";
        assert_eq!(disk, due(words));
        let others = told(|second| second.others_percent = Some(31.4));
        assert_eq!(others, due("other processes had 31 % of the processors for a second"));
        let pressure = Pressure { cpu_percent: 99.0, io_percent: 60.0, memory_percent: 7.0 };
        let words = "threads waited for a disk in 60 % of a second; \
                     threads waited for memory in 7 % of a second";
        assert_eq!(told(|second| second.pressure = Some(pressure)), due(words));
    }

    #[test]
    fn late_watchdogs_are_told_beside_how_busy_the_processors_were_and_what_the_host_took() {
        let late = |busy_percent, stolen_percent| {
            told(|second| {
                let all = Longest { what: StallKind::AllWatchdogs, at_s: 5.1, ms: 70.0 };
                second.stalls.push(all);
                (second.busy_percent, second.stolen_percent) = (busy_percent, stolen_percent);
            })
        };
        let words = "the watchdogs of all processors waited at once for 70 ms at 5.10 s";
        let due = |rest: &str| format!("{words}; processors at most {rest}");
        assert_eq!(late(100.0, 0.0), due("100 % busy, 0 % taken by the host"), "others had them");
        assert_eq!(late(52.0, 6.0), due("52 % busy, 6 % taken by the host"), "the host had them");
    }

    #[test]
    fn what_lies_outside_the_stretch_is_not_blamed() {
        assert!(stalled(StallKind::AllWatchdogs, 5.71, 64.0).starts_with("no hindrance"));
        assert!(
            stalled(StallKind::AllWatchdogs, 5.69, 64.0).starts_with("the watchdogs"),
            "it began before the end"
        );
        let seconds: Vec<Second> = (0..3).map(|at| second(f64::from(at))).collect();
        let unseen = meanwhile(&seconds, Interval { from_s: -2.0, to_s: -1.0 });
        assert_eq!(unseen, "nobody watched the machine");
    }
}
