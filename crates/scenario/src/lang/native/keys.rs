//! The keys of a load: the one table from which they are read and documented
//! (`docs/bench-languages.md`).

use super::item::Item;
use std::collections::BTreeMap;
use weir_load::workload::{
    Draw, FileOrder, Flow, LatencyTarget, Layout, Length, MinRate, MixOp, OpShare, Operation,
    Pacing, Pattern, Positions, Rate, SizeShare, Stability, Starts, Think, VerifyScope, Visit,
    Workload, Zone,
};

/// Microseconds for which each number of requests in flight is tried that may keep a latency.
const KEEP_WINDOW_US: u64 = 1_000_000;

/// One key of a load.
pub(crate) struct Key {
    /// The key's name.
    pub name: &'static str,
    /// The key's meaning, for the documentation.
    pub about: &'static str,
    /// Takes its value.
    take: fn(&mut Draft, &Item) -> Result<(), String>,
}

/// A load while its keys are read: what several of them say together is put together at the end.
#[derive(Default)]
pub(super) struct Draft {
    load: Workload,
    pattern: Option<Pattern>,
    read_percent: Option<u8>,
    operation: Option<Operation>,
    time_s: Option<f64>,
    operations: Option<u64>,
    bytes: Option<u64>,
    layout: Option<&'static str>,
    layout_block: Option<u32>,
    think_us: Option<u64>,
    think_every: Option<u32>,
}

const fn key(
    name: &'static str,
    about: &'static str,
    take: fn(&mut Draft, &Item) -> Result<(), String>,
) -> Key {
    Key { name, about, take }
}

/// `put!(path, reader)`: the value goes to that field of the load.
macro_rules! put {
    ($($field:ident).+, $read:ident) => {
        |draft, item| {
            draft.load.$($field).+ = item.$read()?;
            Ok(())
        }
    };
    ($($field:ident).+, some $read:ident) => {
        |draft, item| {
            draft.load.$($field).+ = Some(item.$read()?);
            Ok(())
        }
    };
    (own $field:ident, $read:ident) => {
        |draft, item| {
            draft.$field = Some(item.$read()?);
            Ok(())
        }
    };
    ($($field:ident).+, with $read:expr) => {
        |draft, item| {
            draft.load.$($field).+ = $read(item)?;
            Ok(())
        }
    };
}

/// All keys of a load.
pub(crate) const KEYS: &[Key] = &[
    key(
        "operation",
        "`data` (the default), `null`, `getattr`, `access`, `lookup`, `create-remove`, `create`, `remove` or `mix`",
        |draft, item| {
            draft.operation = Some(match item.text()? {
                "data" => return Ok(()),
                "null" => Operation::Null,
                "getattr" => Operation::Getattr,
                "access" => Operation::Access,
                "lookup" => Operation::Lookup,
                "create-remove" => Operation::CreateRemove,
                "create" => Operation::Create,
                "remove" => Operation::Remove,
                "mix" => Operation::Mix,
                other => {
                    return Err(one_of(
                        other,
                        &[
                            "data",
                            "null",
                            "getattr",
                            "access",
                            "lookup",
                            "create-remove",
                            "create",
                            "remove",
                            "mix",
                        ],
                    ));
                }
            });
            Ok(())
        },
    ),
    key("order", "`random` (the default), `sequential`, or both: `30% random`", |draft, item| {
        draft.pattern = Some(order(item.text()?)?);
        Ok(())
    }),
    key(
        "read-percent",
        "percentage of reads; the rest are writes",
        put!(own read_percent, percent),
    ),
    key(
        "mix",
        "operations and their percentages: `{ stat = 39, access = 15, … }`",
        |draft, item| {
            draft.load.mix = mix(item)?;
            draft.operation = Some(Operation::Mix);
            Ok(())
        },
    ),
    key("block", "size of a request", put!(block_bytes, small_bytes)),
    key(
        "read-sizes",
        "sizes of reads and their percentages: `{ \"4KiB\" = 60, \"8KiB\" = 40 }`",
        put!(read_sizes, with sizes),
    ),
    key("write-sizes", "the same for writes", put!(write_sizes, with sizes)),
    key(
        "align",
        "alignment of random offsets; default: the block size",
        put!(align_bytes, some small_bytes),
    ),
    key("depth", "requests in flight per job", put!(depth, count)),
    key("jobs", "number of parallel request streams", put!(jobs, count)),
    key("clients", "number of clients, each with its own source address", put!(clients, count)),
    key("connections", "connections per client (`nconnect`)", put!(connections, count)),
    key(
        "files",
        "number of files; with fewer files than jobs they are shared, with more each job has several",
        put!(files, count),
    ),
    key("size", "size of each file", put!(file_bytes, bytes)),
    key("names", "names of the files, one per file", put!(names, with texts)),
    key("directory", "directory of the files, directly below the target", |draft, item| {
        item.text()?.clone_into(&mut draft.load.directory);
        Ok(())
    }),
    key("target", "name of the target, where there are several, or its URL", |draft, item| {
        item.text()?.clone_into(&mut draft.load.target);
        Ok(())
    }),
    key("layout", "`written` (the default), `sparse` or `existing`", |draft, item| {
        draft.layout = Some(match item.text()? {
            "written" => "written",
            "sparse" => "sparse",
            "existing" => "existing",
            other => return Err(one_of(other, &["written", "sparse", "existing"])),
        });
        Ok(())
    }),
    key(
        "layout-block",
        "block size for writing the files before the load",
        put!(own layout_block, small_bytes),
    ),
    key("keep", "keep the files afterwards", put!(keep, truth)),
    key(
        "time",
        "duration of the measurement; with `bytes`: maximum duration",
        put!(own time_s, seconds),
    ),
    key("operations", "total number of operations, instead of a time", put!(own operations, whole)),
    key("bytes", "bytes to transfer per job, instead of a time", put!(own bytes, bytes)),
    key("warmup", "duration of the warm-up", put!(warmup_s, seconds)),
    key(
        "cooldown",
        "duration of the load that continues after the measurement",
        put!(cooldown_s, seconds),
    ),
    key("drain", "maximum time to wait for the last replies", put!(drain_s, seconds)),
    key("start-delay", "delay after the start of the step", put!(start_delay_s, seconds)),
    key(
        "stability",
        "stability of writes: `unstable` (the default), `data-sync` or `file-sync`",
        |draft, item| {
            draft.load.stability = match item.text()? {
                "unstable" => Stability::Unstable,
                "data-sync" => Stability::DataSync,
                "file-sync" => Stability::FileSync,
                other => return Err(one_of(other, &["unstable", "data-sync", "file-sync"])),
            };
            Ok(())
        },
    ),
    key(
        "commit-every",
        "number of writes of a job after which it sends a COMMIT",
        put!(commit_every, some count),
    ),
    key("end-sync", "send a COMMIT of each file at the end", put!(end_sync, truth)),
    key(
        "draw",
        "selection of random blocks: `independent` (the default), `each-once`, `zipf 1.2`, `pareto 0.2`, `normal 20` (deviation in percent), or `zones 50/5 30/15 20/80` (percent of requests / of the file)",
        |draft, item| {
            draft.load.draw = draw(item.text()?)?;
            Ok(())
        },
    ),
    key(
        "starts",
        "start positions of sequential jobs in one file: `apart` (the default), `together`, `interlocked` (one cursor for all), or `stride 1MiB`",
        |draft, item| {
            draft.load.starts = starts(item.text()?)?;
            Ok(())
        },
    ),
    key(
        "skip",
        "bytes left out between two sequential requests: `8KiB`; `-8KiB` goes backwards",
        |draft, item| {
            draft.load.skip_bytes = skip(item.text()?)?;
            Ok(())
        },
    ),
    key(
        "visit",
        "several requests from each random place: `8 onward` (one behind the other) or `8 again`",
        |draft, item| {
            draft.load.visit = Some(visit(item.text()?)?);
            Ok(())
        },
    ),
    key(
        "file-order",
        "`by-operation` (the default: sequential requests go from file to file, others draw a file) or `in-turn`",
        |draft, item| {
            draft.load.file_order = match item.text()? {
                "by-operation" => FileOrder::ByOperation,
                "in-turn" => FileOrder::InTurn,
                other => return Err(one_of(other, &["by-operation", "in-turn"])),
            };
            Ok(())
        },
    ),
    key(
        "positions",
        "positions of sequential reads and writes in a file: `shared` (the default) or `by-direction`",
        |draft, item| {
            draft.load.positions = match item.text()? {
                "shared" => Positions::Shared,
                "by-direction" => Positions::ByDirection,
                other => return Err(one_of(other, &["shared", "by-direction"])),
            };
            Ok(())
        },
    ),
    key("offset", "start of the accessed part of each file", put!(region.offset, bytes)),
    key("region", "length of the accessed part", put!(region.bytes, some bytes)),
    key("job-offset", "additional offset of each following job", put!(region.job_increment, bytes)),
    key(
        "rate",
        "rate limit: `20k/s`, `64MiB/s`, or `50% of STEP` (an earlier step)",
        |draft, item| {
            draft.load.rate = rate(item.text()?)?;
            Ok(())
        },
    ),
    key(
        "pacing",
        "intervals of requests at a limited rate: `even` (the default) or `poisson`",
        |draft, item| {
            draft.load.pacing = match item.text()? {
                "even" => Pacing::Even,
                "poisson" => Pacing::Poisson,
                other => return Err(one_of(other, &["even", "poisson"])),
            };
            Ok(())
        },
    ),
    key(
        "min-rate",
        "rate of a job below which it ends, which is a failure: `100/s` or `1MiB/s`",
        |draft, item| {
            draft.load.min_rate = Some(match rate(item.text()?)? {
                Rate::Operations(rate) => MinRate::Operations(rate),
                Rate::Bytes(rate) => MinRate::Bytes(rate),
                _ => return Err("must be a number per second, as in 100/s or 1MiB/s".to_owned()),
            });
            Ok(())
        },
    ),
    key(
        "keep-latency",
        "latency that each job keeps by adjusting its requests in flight, up to `depth`: `99.9% of requests in 2ms`, tried for a second each; the job ends when it has found the largest number",
        |draft, item| {
            draft.load.latency_target = Some(keep_latency(item.text()?)?);
            Ok(())
        },
    ),
    key(
        "flow",
        "weight of each job: requests of all jobs of the step that have one are in this proportion",
        |draft, item| {
            draft.load.flow = Some(Flow { group: 0, weight: item.count()?, sleep_us: 0 });
            Ok(())
        },
    ),
    key("think", "pause of a job", put!(own think_us, microseconds)),
    key("think-every", "number of requests between two pauses", put!(own think_every, count)),
    key(
        "client-delays",
        "simulated network round-trip times, assigned to clients round-robin: `[\"0us\", \"1ms\"]`",
        |draft, item| {
            draft.load.client_delays_us =
                item.list()?.iter().map(Item::microseconds).collect::<Result<_, _>>()?;
            Ok(())
        },
    ),
    key(
        "verify",
        "read back and verify written data: `true`, or a number of blocks",
        |draft, item| {
            draft.load.verify = match item.truth() {
                Ok(true) => Some(VerifyScope::All),
                Ok(false) => None,
                Err(_) => Some(VerifyScope::Sample(
                    item.whole().map_err(|_| "must be true, false or a number of blocks")?,
                )),
            };
            Ok(())
        },
    ),
    key("verify-reads", "verify data that is read during the run", put!(verify_reads, truth)),
    key(
        "direct",
        "open files with `O_DIRECT` (for a path); over NFS, unstable writes become `file-sync`",
        put!(direct, truth),
    ),
    key("invalidate", "drop files from the page cache first (for a path)", put!(invalidate, truth)),
    key("threads", "number of worker threads (for NFS and SMB)", put!(threads, count)),
    key(
        "seed",
        "seed of the random sequences; the same seed accesses the same blocks",
        put!(seed, whole),
    ),
    key("hosts", "names of the workers that apply the load", put!(hosts, with texts)),
];

impl Draft {
    /// Takes a key that the table has.
    pub(super) fn take(&mut self, name: &str, item: &Item) -> Result<(), String> {
        let key = KEYS.iter().find(|key| key.name == name);
        key.map_or_else(|| Err("is not a key of a load".to_owned()), |key| (key.take)(self, item))
    }

    /// The load.
    pub(super) fn finish(self, name: &str) -> Result<Workload, (&'static str, String)> {
        let mut load = Workload { name: name.to_owned(), ..self.load };
        load.operation = match (self.operation, self.pattern, self.read_percent) {
            (Some(_), Some(_), _) => {
                return Err(("order", "belongs to data; leave it or the operation out".into()));
            }
            (Some(_), _, Some(_)) => {
                return Err((
                    "read-percent",
                    "belongs to data; leave it or the operation out".into(),
                ));
            }
            (Some(operation), None, None) => operation,
            (None, pattern, reads) => Operation::Data {
                pattern: pattern.unwrap_or(Pattern::Random),
                read_percent: reads.unwrap_or(100),
            },
        };
        if load.operation == Operation::Mix && load.mix.is_empty() {
            return Err(("mix", "is missing; say the operations and their shares".into()));
        }
        load.length = match (self.time_s, self.operations, self.bytes) {
            (Some(seconds), None, None) => Length::Seconds(seconds),
            (None, Some(operations), None) => Length::Operations(operations),
            (at_most_s, None, Some(per_job)) => Length::Bytes { per_job, at_most_s },
            (None, None, None) => load.length,
            (_, Some(_), _) => {
                return Err(("operations", "stands alone; omit time and bytes".into()));
            }
        };
        let block_bytes = self.layout_block.unwrap_or(1 << 20);
        load.layout = match self.layout {
            None | Some("written") => Layout::Written { block_bytes },
            Some("sparse") => Layout::Sparse,
            Some(_) => Layout::Existing,
        };
        load.think = self.think_us.map(|us| Think { us, every: self.think_every.unwrap_or(1) });
        if self.think_every.is_some() && load.think.is_none() {
            return Err(("think-every", "needs think".into()));
        }
        Ok(load)
    }
}

fn one_of(found: &str, all: &[&str]) -> String {
    format!("is {found:?}; it must be one of {}", all.join(", "))
}

fn order(text: &str) -> Result<Pattern, String> {
    match text {
        "random" => return Ok(Pattern::Random),
        "sequential" => return Ok(Pattern::Sequential),
        _ => {}
    }
    let percent =
        text.strip_suffix("random").map(str::trim).and_then(|text| text.strip_suffix('%'));
    match percent.map(str::parse) {
        Some(Ok(random_percent @ 1..=99)) => Ok(Pattern::Mixed { random_percent }),
        _ => Err(one_of(text, &["random", "sequential", "30% random"])),
    }
}

fn draw(text: &str) -> Result<Draw, String> {
    match text {
        "independent" => return Ok(Draw::Independent),
        "each-once" => return Ok(Draw::Permuted),
        _ => {}
    }
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    let number = rest.trim().parse::<f64>();
    match (name, number) {
        ("zipf", Ok(theta)) if theta > 0.0 && theta <= 5.0 && theta != 1.0 => {
            Ok(Draw::Zipf { theta })
        }
        ("pareto", Ok(h)) if h > 0.0 && h < 1.0 => Ok(Draw::Pareto { h }),
        ("normal", Ok(deviation_percent)) if (0.0..=100.0).contains(&deviation_percent) => {
            Ok(Draw::Normal { deviation_percent })
        }
        ("zones", _) if !rest.trim().is_empty() => rest
            .split_whitespace()
            .map(zone)
            .collect::<Result<_, _>>()
            .map(|zones| Draw::Zoned { zones }),
        _ => Err(one_of(
            text,
            &[
                "independent",
                "each-once",
                "zipf 1.2 (over 0, not 1, at most 5)",
                "pareto 0.2 (over 0, below 1)",
                "normal 20 (0 to 100)",
                "zones 50/5 30/15 20/80",
            ],
        )),
    }
}

/// `50/5`: half of the requests for a twentieth of each file.
fn zone(text: &str) -> Result<Zone, String> {
    let refused =
        || format!("{text:?} is no zone; write percent of requests and of the file: 50/5");
    let (requests, size) = text.split_once('/').ok_or_else(refused)?;
    let requests_percent = requests.parse().map_err(|_| refused())?;
    let size_percent = size.parse().map_err(|_| refused())?;
    Ok(Zone { requests_percent, size_percent })
}

/// A size, or a negative one.
fn skip(text: &str) -> Result<i64, String> {
    let (sign, size) = text.strip_prefix('-').map_or((1, text), |size| (-1, size));
    let bytes = weir_core::units::parse_bytes(size).map_err(|error| error.to_string())?;
    i64::try_from(bytes).map(|bytes| sign * bytes).map_err(|_| format!("{text:?} is too large"))
}

/// `99.9% of requests in 2ms`.
fn keep_latency(text: &str) -> Result<LatencyTarget, String> {
    let how = || one_of(text, &["99.9% of requests in 2ms"]);
    let (percent, time) = text.split_once("% of requests in ").ok_or_else(how)?;
    let percent = percent.trim().parse().map_err(|_| how())?;
    let time = weir_core::units::parse_time(time).map_err(|error| error.to_string())?;
    let us = u64::try_from(time.as_micros()).map_err(|_| how())?;
    Ok(LatencyTarget { us, window_us: KEEP_WINDOW_US, percent, goes_on: false })
}

/// `8 onward`, `8 again`.
fn visit(text: &str) -> Result<Visit, String> {
    let refused = || one_of(text, &["8 onward", "8 again"]);
    let (requests, how) = text.split_once(' ').ok_or_else(refused)?;
    let requests = requests.parse().map_err(|_| refused())?;
    match how.trim() {
        "onward" => Ok(Visit { requests, again: false }),
        "again" => Ok(Visit { requests, again: true }),
        _ => Err(refused()),
    }
}

fn starts(text: &str) -> Result<Starts, String> {
    Ok(match text {
        "apart" => Starts::Apart,
        "together" => Starts::Together,
        "interlocked" => Starts::Interlocked,
        _ => match text.strip_prefix("stride ") {
            Some(size) => Starts::Stride {
                bytes: weir_core::units::parse_bytes(size).map_err(|error| error.to_string())?,
            },
            None => return Err(one_of(text, &["apart", "together", "interlocked", "stride 1MiB"])),
        },
    })
}

/// `20k/s`, `64MiB/s`, `50% of STEP`.
#[expect(clippy::cast_precision_loss, reason = "rates need no more than 52 bits")]
fn rate(text: &str) -> Result<Rate, String> {
    let refused = || one_of(text, &["20k/s (operations)", "64MiB/s", "50% of STEP"]);
    if let Some((percent, of)) = text.split_once("% of ") {
        let percent = percent.trim().parse::<f64>().ok().filter(|p| *p > 0.0 && p.is_finite());
        let of = of.trim().to_owned();
        return Ok(Rate::Share { of, percent: percent.ok_or_else(refused)? });
    }
    if text.contains("B/s") {
        let bytes = weir_core::units::parse_rate(text).map_err(|error| error.to_string())?;
        return Ok(Rate::Bytes(bytes as f64));
    }
    let number = text.strip_suffix("/s").ok_or_else(refused)?.trim();
    let (digits, factor) = match (number.strip_suffix('k'), number.strip_suffix('M')) {
        (Some(digits), _) => (digits, 1e3),
        (_, Some(digits)) => (digits, 1e6),
        _ => (number, 1.0),
    };
    let number = digits.trim().parse::<f64>().ok().filter(|n| *n > 0.0 && n.is_finite());
    Ok(Rate::Operations(number.ok_or_else(refused)? * factor))
}

fn sizes(item: &Item) -> Result<Vec<SizeShare>, String> {
    let mut all = Vec::new();
    for (size, share) in item.table()? {
        let bytes = weir_core::units::parse_bytes(size).map_err(|error| error.to_string())?;
        let bytes = u32::try_from(bytes).map_err(|_| format!("{size:?} is over 4 GiB"))?;
        all.push(SizeShare { bytes, percent: share.percent()? });
    }
    all.sort_by_key(|share| share.bytes);
    hundred(all.iter().map(|share| share.percent))?;
    Ok(all)
}

fn mix(item: &Item) -> Result<Vec<OpShare>, String> {
    let mut all = Vec::new();
    for (name, share) in item.table()? {
        let op: MixOp = serde_json::from_value(serde_json::Value::String(name.clone()))
            .map_err(|_| format!("{name:?} is not an operation of a mix"))?;
        all.push(OpShare { op, percent: share.percent()? });
    }
    hundred(all.iter().map(|share| share.percent))?;
    Ok(all)
}

fn hundred(shares: impl Iterator<Item = u8>) -> Result<(), String> {
    let sum: u32 = shares.map(u32::from).sum();
    if sum == 100 { Ok(()) } else { Err(format!("its shares add up to {sum}, not to 100")) }
}

fn texts(item: &Item) -> Result<Vec<String>, String> {
    item.list()?.iter().map(|item| item.text().map(str::to_owned)).collect()
}

/// The label of a sweep over `key` on an axis, and the place of `item` on it.
#[expect(clippy::cast_precision_loss, reason = "places on an axis need no more than 52 bits")]
pub(super) fn axis(key: &str, item: &Item) -> Result<(String, f64), String> {
    let sizes =
        ["block", "size", "align", "layout-block", "offset", "region", "job-offset", "bytes"];
    let label = match key {
        "read-percent" => "reads %",
        "depth" => "requests in flight of a job",
        key if sizes.contains(&key) => {
            return Ok((format!("{key}, KiB"), item.bytes()? as f64 / 1024.0));
        }
        "rate" => {
            return Ok(match rate(item.text()?)? {
                Rate::Operations(rate) => ("operations a second".to_owned(), rate),
                Rate::Bytes(rate) => ("MiB/s".to_owned(), rate / 1_048_576.0),
                Rate::Share { percent, .. } => ("rate, % of the highest".to_owned(), percent),
                Rate::Unlimited => ("rate".to_owned(), 0.0),
            });
        }
        "think" => return Ok(("think time, ms".to_owned(), item.microseconds()? as f64 / 1e3)),
        other => other,
    };
    let value = item.number().map_err(|_| "cannot be swept: it has no place on an axis")?;
    Ok((label.to_owned(), value))
}

/// The tables of a text, each over the one before it.
pub(super) fn layered<'a>(layers: &[&'a BTreeMap<String, Item>]) -> BTreeMap<&'a str, &'a Item> {
    let mut all = BTreeMap::new();
    for layer in layers {
        all.extend(layer.iter().map(|(key, item)| (key.as_str(), item)));
    }
    all
}
