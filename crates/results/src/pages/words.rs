//! Figures, times, commands and loads in words.

use crate::{Machine, Spread, StepResult};
use std::time::{Duration, UNIX_EPOCH};
use weir_load::workload::{
    Draw, Layout, Length, MixOp, Operation, Pacing, Pattern, Rate, SizeShare, Stability, Workload,
    Zone,
};
use weir_report::figure;

/// `count` bytes as people write them: `4 KiB`, `1.50 TiB`.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(super) fn bytes(count: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} bytes");
    }
    let (mut value, mut unit) = (count as f64, "bytes");
    for next in units {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if (value - value.round()).abs() < 1e-9 {
        return format!("{value:.0} {unit}");
    }
    format!("{} {unit}", figure(value))
}

/// A number with its thousands told apart.
#[expect(clippy::cast_precision_loss, reason = "shown with thousands told apart")]
pub(super) fn count(number: u64) -> String {
    if number < 1000 { number.to_string() } else { figure(number as f64) }
}

/// A time in seconds since 1970 as `2026-11-22 17:15:00 UTC`.
pub fn when(unix_s: f64) -> String {
    let Some(time) = Duration::try_from_secs_f64(unix_s)
        .ok()
        .filter(|since| since.as_secs() < 253_402_300_800)
        .and_then(|since| UNIX_EPOCH.checked_add(since))
    else {
        return "at an unknown time".to_owned();
    };
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.replace('T', " ").replace('Z', " UTC")
}

/// A command line to paste into a shell.
pub(super) fn shell(command: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quoted = command.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            return word.clone();
        }
        format!("'{}'", word.replace('\'', "'\\''"))
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A machine in a line.
pub fn machine(machine: &Machine) -> String {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let processors = match machine.processors {
        0 => None,
        1 => Some("1 processor".to_owned()),
        several => Some(format!("{several} processors")),
    };
    let memory =
        (machine.memory_bytes > 0).then(|| format!("{} of memory", bytes(machine.memory_bytes)));
    let parts = [
        some(&machine.processor),
        processors,
        memory,
        some(&machine.kernel),
        some(&machine.system),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The distance of the repeats from their median: `−1.2 to +0.8 %`; nothing of one run.
pub(super) fn spread(spread: &Spread, repeats: u32) -> String {
    if repeats < 2 || spread.median <= 0.0 {
        return String::new();
    }
    let percent = |value: f64| weir_report::percent((value / spread.median - 1.0) * 100.0, 1);
    let (low, high) = (percent(spread.min), percent(spread.max));
    format!("{} to {high}", low.trim_end_matches(" %"))
}

/// The step's name, with its group where that is told too.
pub(super) fn step_name(step: &StepResult, groups: bool) -> String {
    if groups && !step.group.is_empty() && !step.name.contains(&step.group) {
        format!("{}: {}", step.group, step.name)
    } else {
        step.name.clone()
    }
}

/// A load in a sentence without its full stop.
pub(super) fn load(load: &Workload) -> String {
    let mut parts = vec![operation(load), concurrency(load)];
    if load.needs_files() {
        let whole = u64::from(load.files).saturating_mul(load.file_bytes);
        parts.push(match load.files {
            1 => format!("1 file of {}", bytes(load.file_bytes)),
            many => format!("{many} files of {} ({})", bytes(load.file_bytes), bytes(whole)),
        });
    }
    if load.writes() {
        parts.push(stability(load));
    }
    parts.extend(rate(load));
    parts.extend(load.direct.then(|| "O_DIRECT".to_owned()));
    parts.extend(
        load.think.map(|think| {
            format!("a pause of {} µs after every {} requests", think.us, think.every)
        }),
    );
    if let Some(most) = load.client_delays_us.iter().max() {
        parts.push(format!("up to {most} µs of simulated network round-trip time"));
    }
    parts.push(length(load));
    parts.extend(
        match load.layout {
            Layout::Existing => Some("files as they were"),
            Layout::Sparse => Some("files laid out as holes"),
            Layout::Written { .. } => None,
        }
        .map(str::to_owned),
    );
    parts.join("; ")
}

fn operation(load: &Workload) -> String {
    match load.operation {
        Operation::Data { pattern, read_percent } => {
            let order = match pattern {
                Pattern::Random => random(load),
                Pattern::Sequential => match load.skip_bytes {
                    0 => "sequential".to_owned(),
                    skip => format!("sequential with {skip} bytes left out after each request,"),
                },
                Pattern::Mixed { random_percent } => format!("{random_percent} % random"),
            };
            let (reads, writes) = (size(&load.read_sizes, load), size(&load.write_sizes, load));
            match read_percent {
                100 => format!("{order} reads of {reads}"),
                0 => format!("{order} writes of {writes}"),
                share if reads == writes => format!("{order}, {share} % reads, of {reads}"),
                share => format!("{order}, {share} % reads of {reads}, writes of {writes}"),
            }
        }
        Operation::Null => "NULL".to_owned(),
        Operation::Getattr => "GETATTR".to_owned(),
        Operation::Access => "ACCESS".to_owned(),
        Operation::Lookup => "LOOKUP".to_owned(),
        Operation::CreateRemove => "CREATE, then REMOVE".to_owned(),
        Operation::Create => "CREATE".to_owned(),
        Operation::Remove => "REMOVE of laid-out files".to_owned(),
        Operation::Mix => {
            let part = |op: MixOp| {
                serde_json::to_value(op).ok().and_then(|name| name.as_str().map(str::to_owned))
            };
            let shares = load
                .mix
                .iter()
                .map(|share| format!("{} {} %", part(share.op).unwrap_or_default(), share.percent));
            format!("a mix of {}", shares.collect::<Vec<_>>().join(", "))
        }
    }
}

fn random(load: &Workload) -> String {
    let draw = match &load.draw {
        Draw::Independent => "random".to_owned(),
        Draw::Permuted => "random, every block once before any is repeated".to_owned(),
        Draw::Zipf { theta } => format!("random by Zipf's law with theta {theta}"),
        Draw::Pareto { h } => format!("random by Pareto's law with h {h}"),
        Draw::Normal { deviation_percent } => {
            format!("random by a normal distribution with a deviation of {deviation_percent} %")
        }
        Draw::Zoned { zones } => {
            let zone = |zone: &Zone| {
                format!("{} % to {} %", zone.requests_percent, figure(zone.size_percent))
            };
            let zones = zones.iter().map(zone).collect::<Vec<_>>();
            format!("random by zones of each file ({})", zones.join(", "))
        }
    };
    match load.visit {
        None => draw,
        Some(visit) if visit.again => {
            format!("{draw}, {} requests for each block in a row,", visit.requests)
        }
        Some(visit) => format!("{draw}, {} requests in order from each place,", visit.requests),
    }
}

fn size(sizes: &[SizeShare], load: &Workload) -> String {
    if sizes.is_empty() {
        return bytes(u64::from(load.block_bytes));
    }
    let each =
        sizes.iter().map(|share| format!("{} {} %", bytes(u64::from(share.bytes)), share.percent));
    each.collect::<Vec<_>>().join(", ")
}

fn concurrency(load: &Workload) -> String {
    let plural = |count: u32, one: &str| match count {
        1 => format!("1 {one}"),
        many => format!("{many} {one}s"),
    };
    format!(
        "{} with {} in flight each, {} with {} each",
        plural(load.jobs, "job"),
        plural(load.depth, "request"),
        plural(load.clients, "client"),
        plural(load.connections, "connection")
    )
}

fn stability(load: &Workload) -> String {
    let word = match load.stability {
        Stability::Unstable => "unstable writes",
        Stability::DataSync => "writes with DATA_SYNC",
        Stability::FileSync => "writes with FILE_SYNC",
    };
    match load.commit_every {
        Some(count) => format!("{word}, a COMMIT after every {count}"),
        None => word.to_owned(),
    }
}

fn rate(load: &Workload) -> Option<String> {
    let pace = match load.pacing {
        Pacing::Even => "evenly spaced",
        Pacing::Poisson => "as a Poisson process",
    };
    match &load.rate {
        Rate::Unlimited => None,
        Rate::Operations(rate) => Some(format!("at {} op/s, {pace}", figure(*rate))),
        Rate::Bytes(rate) => Some(format!("at {} MiB/s, {pace}", figure(*rate / 1_048_576.0))),
        Rate::Share { of, percent } => Some(format!("at {percent} % of the rate of {of}")),
    }
}

fn length(load: &Workload) -> String {
    match load.length {
        Length::Seconds(seconds) => {
            format!("{seconds:.0} s after {:.0} s of warm-up", load.warmup_s)
        }
        Length::Operations(count) => format!("{count} operations"),
        Length::Bytes { per_job, .. } => format!("{} for each job", bytes(per_job)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_well() {
        let cases = [
            (512, "512 bytes"),
            (4096, "4 KiB"),
            (1 << 40, "1 TiB"),
            (1_610_612_736, "1.50 GiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (count, text) in cases {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn times_are_dates_and_nonsense_is_said_to_be_unknown() {
        assert_eq!(when(0.0), "1970-01-01 00:00:00 UTC");
        for nonsense in [-1.0, f64::NAN, 1e300, 1e15] {
            assert_eq!(when(nonsense), "at an unknown time");
        }
    }

    #[test]
    fn commands_can_be_pasted() {
        let words = ["weir", "bench", "nfs://h:1/v?uid=0", "it's", ""].map(str::to_owned);
        assert_eq!(shell(&words), "weir bench 'nfs://h:1/v?uid=0' 'it'\\''s' ''");
    }

    #[test]
    fn loads_are_told_in_words() {
        let text = load(&Workload::default());
        for part in ["random reads of 4 KiB", "1 job with 16 requests in flight", "1 file of 1 GiB"]
        {
            assert!(text.contains(part), "{text}");
        }
        let write = Workload {
            operation: Operation::Data { pattern: Pattern::Sequential, read_percent: 25 },
            rate: Rate::Operations(5000.0),
            files: 4,
            ..Workload::default()
        };
        let text = load(&write);
        for part in
            ["sequential, 25 % reads", "4 files of 1 GiB (4 GiB)", "unstable", "op/s, evenly"]
        {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn spreads_are_told_of_repeats_only() {
        let of = Spread { min: 98.0, median: 100.0, max: 103.0 };
        assert_eq!(spread(&of, 3), "-2.0 to +3.0 %");
        assert_eq!(spread(&of, 1), "");
    }
}
