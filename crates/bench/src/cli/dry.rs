//! The output of a dry run.

use crate::cluster::{Wanted, WorkerPlace};
use crate::suite::{CacheOptions, Options, Plan, step_seconds};
use weir_core::units::Bytes;
use weir_core::units::span;
use weir_load::workload::{Length, MixOp, Operation, Pattern, Rate, Workload};
use weir_report::terminal::Text;
use weir_scenario::scenario::{Cache, Scenario, Step};

/// The text about running `scenarios` with `options`.
pub(super) fn text(scenarios: &[Scenario], options: &Options) -> Text {
    let mut text = Text::new();
    text.line(format_args!("Dry run: nothing is run, and {} is not contacted.", options.target));
    scenarios.iter().for_each(|scenario| test(&mut text, scenario, options));
    let plan = Plan::of(scenarios, options);
    let runs = if options.repeats > 1 || options.discard_first {
        let more = u32::from(options.discard_first);
        format!(", each {} times", options.repeats + more)
    } else {
        String::new()
    };
    text.blank();
    text.line(format_args!(
        "{}{runs}: {} of load{}. Files hold up to {} at a time.{}",
        if plan.steps == 1 { "1 step".to_owned() } else { format!("{} steps", plan.steps) },
        span(plan.seconds),
        if plan.open_ended > 0 {
            format!(", and {} that end by a count, however long they take", plan.open_ended)
        } else {
            String::new()
        },
        Bytes(plan.peak_bytes),
        passes(&plan)
    ));
    text
}

/// The data written and read beside the load, and about how long that takes.
fn passes(plan: &Plan) -> String {
    let parts = [
        (plan.layout_bytes, "are written to lay them out"),
        (plan.fill_bytes, "are read to fill caches"),
        (plan.flush_bytes, "of other data are read to push data out of caches"),
    ];
    let parts = parts.into_iter().filter(|(bytes, _)| *bytes > 0);
    let told: Vec<String> = parts.map(|(bytes, what)| format!("{} {what}", Bytes(bytes))).collect();
    if told.is_empty() {
        return String::new();
    }
    let takes = span(plan.pass_seconds());
    format!(" {}: {takes} at 300 MiB/s, on top of the load.", told.join(", "))
}

/// The workers that would apply the loads.
pub(super) fn workers(text: &mut Text, workers: &[Wanted]) {
    if workers.is_empty() {
        return;
    }
    text.blank();
    text.line(format_args!("Workers that would be started:"));
    for worker in workers {
        match &worker.place {
            WorkerPlace::Ssh(host) => text.line(format_args!("  {} by ssh {host}", worker.name)),
            WorkerPlace::Local => text.line(format_args!("  {} on this machine", worker.name)),
        }
    }
}

/// Remarks for the reader, a sentence each.
pub(super) fn notes(text: &mut Text, notes: &[String]) {
    if !notes.is_empty() {
        text.blank();
    }
    notes.iter().for_each(|note| text.line(format_args!("note: {note}")));
}

fn test(text: &mut Text, scenario: &Scenario, options: &Options) {
    text.blank();
    text.line(format_args!("{}: {}", scenario.name, scenario.title));
    if let Some(waiting) = &scenario.waiting {
        return text.line(format_args!("  is not run: {waiting}"));
    }
    for change in &scenario.changes {
        text.line(format_args!("  changed: {change}"));
    }
    for step in &scenario.steps {
        text.line(format_args!("  {}{}", step.name, about(step, &options.cache)));
        for load in &step.loads {
            text.line(format_args!("    {}", words(load)));
        }
    }
}

fn about(step: &Step, options: &CacheOptions) -> String {
    let mut about = String::new();
    if step.preparation {
        about.push_str(", preparation");
    }
    match step.cache {
        Cache::Any => {}
        Cache::Included => about.push_str(", caches filled before"),
        Cache::Excluded => about.push_str(&match options.emptied_by().as_slice() {
            [] => ", caches excluded, but nothing empties the server's".to_owned(),
            by => format!(", caches emptied before by {}", by.join(" and ")),
        }),
    }
    match step_seconds(step) {
        Some(seconds) => about.push_str(&format!(", {}", span(seconds))),
        None => about.push_str(", until a count is reached"),
    }
    about
}

/// A load in one line.
fn words(load: &Workload) -> String {
    let mut words = operation(load);
    words.push_str(&format!(
        ", {} × {} in flight on {} × {}",
        count(load.jobs, "job"),
        load.depth,
        count(load.clients, "client"),
        count(load.connections, "connection")
    ));
    words.push_str(&match &load.rate {
        Rate::Unlimited => String::new(),
        Rate::Operations(rate) => format!(", at {rate:.0} op/s"),
        Rate::Bytes(rate) => format!(", at {:.1} MiB/s", rate / 1_048_576.0),
        Rate::Share { of, percent } => format!(", at {percent} % of what step {of} reached"),
    });
    if load.needs_files() {
        words.push_str(&format!(
            ", {} of {} in {}",
            count(load.files, "file"),
            Bytes(load.file_bytes),
            load.directory
        ));
        if !load.target.is_empty() {
            words.push_str(&format!(" of {}", load.target));
        }
    }
    if !load.hosts.is_empty() {
        words.push_str(&format!(", by {}", load.hosts.join(", ")));
    }
    words.push_str(&match load.length {
        Length::Seconds(seconds) => {
            format!(", {} after {} of warm-up", span(seconds), span(load.warmup_s))
        }
        Length::Operations(operations) => format!(", {operations} operations"),
        Length::Bytes { per_job, .. } => format!(", {} for each job", Bytes(per_job)),
    });
    if !load.client_delays_us.is_empty() {
        let delays: Vec<String> = load.client_delays_us.iter().map(|us| delay(*us)).collect();
        words.push_str(&format!(", clients {} away", delays.join(" and ")));
    }
    if load.verify.is_some() || load.verify_reads {
        words.push_str(", verified");
    }
    words
}

/// A network distance in words.
fn delay(us: u64) -> String {
    if us > 0 && us.is_multiple_of(1000) {
        format!("{} ms", us / 1000)
    } else {
        format!("{us} µs")
    }
}

fn operation(load: &Workload) -> String {
    match load.operation {
        Operation::Data { pattern, read_percent } => {
            let order = match pattern {
                Pattern::Random => "random".to_owned(),
                Pattern::Sequential => "sequential".to_owned(),
                Pattern::Mixed { random_percent } => format!("{random_percent} % random"),
            };
            let kind = match read_percent {
                100 => "reads".to_owned(),
                0 => "writes".to_owned(),
                reads => format!("requests, {reads} % reads"),
            };
            format!("{order} {} {kind}", Bytes(u64::from(load.block_bytes)))
        }
        Operation::Null => "NULL".to_owned(),
        Operation::Getattr => "GETATTR".to_owned(),
        Operation::Access => "ACCESS".to_owned(),
        Operation::Lookup => "LOOKUP".to_owned(),
        Operation::CreateRemove => "CREATE and REMOVE".to_owned(),
        Operation::Create => "CREATE".to_owned(),
        Operation::Remove => "REMOVE".to_owned(),
        Operation::Mix => match sequential_reads(load) {
            Some(reads) => format!(
                "sequential {} requests, {reads} % reads, with a position of each kind",
                Bytes(u64::from(load.block_bytes))
            ),
            None => format!("a mix of {} kinds of operation", load.mix.len()),
        },
    }
}

/// The percentage of reads of a mix of reads and writes in sequence.
fn sequential_reads(load: &Workload) -> Option<u8> {
    let [reads, writes] = load.mix.as_slice() else { return None };
    let kinds = (reads.op, writes.op);
    (kinds == (MixOp::ReadSequential, MixOp::WriteSequential)).then_some(reads.percent)
}

fn count(number: u32, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::testing::scenario;

    #[test]
    fn everything_that_would_run_is_told_in_words() {
        let mut one = scenario(&["fill", "load"]);
        one.changes.push("files are smaller".to_owned());
        one.steps[0].preparation = true;
        one.steps[0].shares_files = true;
        one.steps[0].loads[0].length = Length::Operations(9);
        one.steps[1].cache = Cache::Excluded;
        one.steps[1].loads[0].rate = Rate::Share { of: "fill".to_owned(), percent: 50.0 };
        one.steps[1].loads[0].client_delays_us = vec![200, 2000];
        let mut other = scenario(&["never"]);
        other.waiting = Some("no SMB".to_owned());
        let options = Options { repeats: 3, target: "nfs://x/y".to_owned(), ..Options::default() };
        let text = text(&[one, other], &options).to_string();
        for part in [
            "nfs://x/y is not contacted",
            "changed: files are smaller",
            "fill, preparation, until a count",
            "load, caches excluded, but nothing empties the server's, 32 s",
            "random 4 KiB reads, 1 job × 16 in flight on 1 client × 1 connection",
            "at 50 % of what step fill reached",
            "1 file of 1 MiB in weir-bench",
            "30 s after 2 s of warm-up",
            "clients 200 µs and 2 ms away",
            "is not run: no SMB",
            "2 steps, each 3 times: 96 s of load, and 1 that end by a count",
            "up to 1 MiB at a time. 1 MiB are written to lay them out: 0 s at 300 MiB/s",
        ] {
            let plain = text.replace("2 min", "96 s");
            assert!(plain.contains(part), "{part} is missing in {text}");
        }
        assert!(!text.contains("never"), "{text}");
    }

    #[test]
    fn what_empties_caches_is_named_and_passes_are_counted() {
        let mut one = scenario(&["full", "empty"]);
        one.steps[0].cache = Cache::Included;
        one.steps[1].cache = Cache::Excluded;
        let mut options = Options::default();
        options.cache.command = Some("ssh s flush".to_owned());
        options.cache.read_bytes = Some(3 << 30);
        options.cache.server_memory = Some(2 << 30);
        let text = text(&[one], &options).to_string();
        for part in [
            "full, caches filled before",
            "empty, caches emptied before by `ssh s flush` and reading 3 GiB of other data",
            "1 MiB are read to fill caches",
            "3 GiB of other data are read to push data out of caches",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }

    #[test]
    fn a_sequential_mix_is_told_in_words() {
        let test = weir_scenario::catalogue::scenario("gcnv-flex-64k-sequential").unwrap();
        let text = text(&[test], &Options::default()).to_string();
        assert!(text.contains("sequential 64 KiB requests, 75 % reads, with a position"), "{text}");
    }
}
