//! The findings, in the words of the API: windows, sentences, advice. No decisions.

use super::volume::Period;
use super::{kinds, load};
use weir_api::{Load, Split, Why, Window};
use weir_catalog::{Pool, Protocols, Volume};
use weir_core::units::Rate;
use weir_qos::verdict::{
    Cause, Course, Judgement, REFERENCE_NANOS, REFERENCE_SPEED, Reason, Tally, Verdict,
};

/// A second, in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// The conditions by which verdicts are found, for a reader of a report without the manual.
pub(super) fn conditions() -> Vec<String> {
    let reference = REFERENCE_NANOS / 1_000_000;
    [
        "Each 10-second interval is judged by the completed work in contract time: the time in which the tightest limit permits that work. The tolerance is 1 % plus one request of the maximum size; for intervals shorter than 10 s, 5 % plus one.".to_owned(),
        "Kept: the delivered work corresponds to the whole interval.".to_owned(),
        "Broken by the gate: it admitted more than the limits permit, or less while requests were waiting.".to_owned(),
        "Broken by store, network or processing: requests waited for the contract for longer than the delivered work corresponds to, and the processing of admitted requests was slow.".to_owned(),
        format!("Also broken by store, network or processing: no request waited, but the requests in flight, with the clients' pauses, would have reached the limit on a store that takes {reference} ms per request and transfers data at {REFERENCE_SPEED} times the limit."),
        "Not demanded: the clients requested less than the contract.".to_owned(),
        "Store: from the start of an operation to its end. Network: until the client's socket accepted the reply, and while a request waited because its client accepted no replies. Processing: while the server's threads were busy with other requests.".to_owned(),
        "A longer period is broken if any of its 10-second intervals is broken; otherwise it is kept if any of them is kept. Its error covers the intervals in which the contract was demanded.".to_owned(),
    ]
    .into()
}

/// A condition of reports of clusters: the history that they lack.
pub(crate) const OF_CLUSTER: &str = "Periods are added up from what the gateways of the cluster recorded. What a gateway recorded that was removed from the cluster is not among them. The last 10 s, minute and hour are those of the gateway that serves the volume, since it came there.";

/// A stretch of time that was judged as one, up to `now`.
pub(super) fn judged(course: &Course, now: u64) -> Window {
    let judgement = course.judge();
    let mut tally = Tally::default();
    tally.count(course, judgement.verdict);
    let start = now.saturating_sub(course.nanos.div_ceil(SECOND));
    let period = Period { start, nanos: course.nanos, course: *course, tally };
    Window { reason: reason(course, judgement), ..window(&period) }
}

/// A stretch of time of which each 10 s were judged.
pub(super) fn window(period: &Period) -> Window {
    let Period { start, nanos, course, tally } = period;
    let (verdict, cause) = match tally.verdict() {
        Verdict::Kept => (weir_api::Verdict::Kept, None),
        Verdict::NotDemanded => (weir_api::Verdict::NotDemanded, None),
        Verdict::Broken(cause) => (weir_api::Verdict::Broken, Some(self::cause(cause))),
    };
    let limit_iops = per_second(course.due.operations, course.nanos);
    Window {
        start: *start,
        seconds: part(*nanos, SECOND),
        verdict,
        cause,
        reason: String::new(),
        error: tally.error(),
        kept: tally.kept,
        not_demanded: tally.not_demanded,
        broken: tally.broken_in_all(),
        limit_bytes_per_second: per_second(course.due.bytes, course.nanos),
        limit_iops: (limit_iops > 0).then_some(limit_iops),
        offered_bytes_per_second: per_second(course.offered.bytes, *nanos),
        offered_iops: part(course.offered.operations, *nanos) * SECOND_F,
        delivered_bytes_per_second: per_second(course.delivered.bytes, *nanos),
        delivered_iops: part(course.delivered.operations, *nanos) * SECOND_F,
        waited: part(course.asked_nanos, *nanos).min(1.0),
        split: Split {
            requests: course.requests,
            wait_nanos: course.wait_nanos,
            store_nanos: course.store_nanos,
            network_nanos: course.network_nanos,
            processing_nanos: course.processing_nanos,
        },
    }
}

const SECOND_F: f64 = 1e9;

const fn cause(cause: Cause) -> weir_api::Cause {
    match cause {
        Cause::Gate => weir_api::Cause::Gate,
        Cause::Store => weir_api::Cause::Store,
        Cause::Network => weir_api::Cause::Network,
        Cause::Processing => weir_api::Cause::Processing,
    }
}

/// The condition that decided, with its figures.
fn reason(course: &Course, judgement: Judgement) -> String {
    let of_time = |nanos: u64| format!("{:.1} %", part(nanos, course.nanos) * 100.0);
    let delivered = of_time(course.used_nanos);
    let Judgement { verdict, reason } = judgement;
    match (reason, verdict) {
        (Reason::TooMuch, _) => {
            format!("the gate admitted {} of the contract", of_time(course.let_through_nanos))
        }
        (Reason::Delivered, _) => {
            format!("the limit was reached: {delivered} of the contract was delivered")
        }
        (Reason::HeldBack, Verdict::Broken(Cause::Gate)) => format!(
            "requests waited for the contract {} of the time, but only {} of the contract was admitted",
            of_time(course.waited_nanos()),
            of_time(course.passed_nanos),
        ),
        (Reason::HeldBack, Verdict::Broken(cause)) => format!(
            "requests waited for the contract {} of the time, but {delivered} of the contract was delivered; {}",
            of_time(course.waited_nanos()),
            where_time_went(course, cause),
        ),
        (Reason::WouldHave, Verdict::Broken(cause)) => format!(
            "{delivered} of the contract was delivered, but the requests in flight would have \
             reached it on a store that takes {} ms per request; {}",
            REFERENCE_NANOS / 1_000_000,
            where_time_went(course, cause),
        ),
        (Reason::NothingCame, _) => "there were no requests".to_owned(),
        _ if waited_for_files(course) => {
            format!("{delivered} of the contract was delivered, limited by the ceilings of files")
        }
        _ if course.returned_nanos > course.nanos / 10 => format!(
            "clients requested more data than exists, or disconnected: {delivered} of the contract \
             was transferred, and requests without a result had asked for {} of it",
            of_time(course.returned_nanos),
        ),
        _ => format!("clients requested {delivered} of the contract"),
    }
}

/// Whether it was ceilings of files that requests waited for, and not the limits of the volume: who
/// waits for those waits as long as somebody does.
fn waited_for_files(course: &Course) -> bool {
    course.wait_nanos > course.nanos / 10 && course.asked_nanos < course.nanos / 100
}

fn where_time_went(course: &Course, cause: Cause) -> String {
    let behind = course.store_nanos + course.network_nanos + course.processing_nanos;
    let (nanos, place) = match cause {
        Cause::Gate => return String::new(),
        Cause::Store => (course.store_nanos, "in the store"),
        Cause::Network => (course.network_nanos, "until the client accepted the reply"),
        Cause::Processing => (course.processing_nanos, "waiting for the server's CPUs"),
    };
    format!("after admission they spent {:.0} % of their time {place}", part(nanos, behind) * 100.0)
}

/// A volume, with the settings beside it on which advice depends.
pub(super) struct Subject<'a> {
    /// The volume.
    pub(super) volume: &'a Volume,
    /// Its pool.
    pub(super) pool: Option<&'a Pool>,
    /// Whether names and attributes are cached in memory.
    pub(super) metadata_cache: bool,
}

/// Adds the findings about a volume, and the advice, to `why`.
pub(super) fn explain(why: &mut Why, subject: &Subject<'_>) {
    let window = &why.window;
    let mut findings = vec![headline(window, why.load.as_ref())];
    findings.extend(mean_time(&window.split));
    findings.extend(why.load.iter().flat_map(kinds::findings));
    if why.waiting > 0 {
        findings.push(format!("{} waiting for the contract now.", requests(why.waiting)));
    }
    let hour = &why.hour;
    if hour.kept + hour.broken + hour.not_demanded > 0 {
        let cause =
            hour.cause.map(|cause| format!(", mostly by {}", by(cause))).unwrap_or_default();
        findings.push(format!(
            "In the last hour, by 10-second intervals: {} kept, {} not demanded, {} broken{cause}.",
            hour.kept, hour.not_demanded, hour.broken
        ));
    }
    why.advice = advice(why, subject);
    if let Some(load) = &why.load {
        why.advice.extend(kinds::advice(load, subject, is_limited(window)));
    }
    why.findings = findings;
}

/// Is the contract the limit of what comes?
fn is_limited(window: &Window) -> bool {
    let split = &window.split;
    window.verdict == weir_api::Verdict::Kept && split.wait_nanos > split.total_nanos() / 2
}

/// Did operations come on names and attributes alone?
fn is_metadata_alone(split: &Split, load: Option<&Load>) -> bool {
    let some = load.is_some_and(|load| load::is_young(load) || load.operations_per_second > 0.0);
    some && split.total_nanos() == 0 && split.requests == 0
}

fn headline(window: &Window, load: Option<&Load>) -> String {
    if is_metadata_alone(&window.split, load) {
        return "The contract is not demanded: there were no READs and WRITEs.".to_owned();
    }
    let verdict = match (window.verdict, window.cause) {
        (weir_api::Verdict::Broken, Some(cause)) => format!("broken by {}", by(cause)),
        (weir_api::Verdict::Broken, None) => "broken".to_owned(),
        (weir_api::Verdict::Kept, _) => "kept".to_owned(),
        (weir_api::Verdict::NotDemanded, _) => "not demanded".to_owned(),
    };
    format!("The contract is {verdict}: {}.", window.reason)
}

const fn by(cause: weir_api::Cause) -> &'static str {
    match cause {
        weir_api::Cause::Gate => "the gate",
        weir_api::Cause::Store => "the store",
        weir_api::Cause::Network => "the network or the clients",
        weir_api::Cause::Processing => "too little CPU time",
    }
}

fn requests(count: u64) -> String {
    if count == 1 { "1 request".to_owned() } else { format!("{count} requests") }
}

/// The mean time of a request, and its parts.
fn mean_time(split: &Split) -> Option<String> {
    let parts = [
        (split.wait_nanos, "waiting for the contract"),
        (split.store_nanos, "in the store"),
        (split.network_nanos, "until the client accepted the reply"),
        (split.processing_nanos, "waiting for the server's CPUs"),
    ];
    let parts = parts.map(|(nanos, place)| format!("{:.1} % {place}", split.part(nanos) * 100.0));
    let of = parts.join(", ");
    match split.mean_nanos() {
        Some(mean) => Some(format!("The mean latency of a request is {}: {of}.", time(mean))),
        None if split.total_nanos() > 0 => {
            Some(format!("No request was answered; requests are {of}."))
        }
        None => None,
    }
}

/// Nanoseconds for people.
fn time(nanos: u64) -> String {
    match nanos {
        0..1_000_000 => format!("{:.0} µs", part(nanos, 1000)),
        1_000_000..1_000_000_000 => format!("{:.1} ms", part(nanos, 1_000_000)),
        _ => format!("{:.2} s", part(nanos, SECOND)),
    }
}

fn advice(why: &Why, subject: &Subject<'_>) -> Vec<String> {
    let (name, window) = (&why.volume, &why.window);
    let split = &window.split;
    let behind = [
        (weir_api::Cause::Store, split.store_nanos),
        (weir_api::Cause::Network, split.network_nanos),
        (weir_api::Cause::Processing, split.processing_nanos),
    ];
    let slowest = behind.into_iter().rev().max_by_key(|(_, nanos)| *nanos).map(|(cause, _)| cause);
    let at_the_gate = split.wait_nanos > split.total_nanos() / 2;
    match (window.verdict, window.cause.or(slowest)) {
        (weir_api::Verdict::Broken, Some(weir_api::Cause::Gate)) => vec![
            "This is an error of the server, or its clock stopped (a suspended machine). If it persists, please report it with the output of `weir volume report --output json`.".to_owned(),
        ],
        (weir_api::Verdict::Kept, _) if is_limited(window) => {
            vec![more_contract(window, subject)]
        }
        (weir_api::Verdict::NotDemanded, _) if is_metadata_alone(split, why.load.as_ref()) => {
            Vec::new()
        }
        (weir_api::Verdict::NotDemanded, _) if split.total_nanos() == 0 => vec![
            "The server receives no requests: if this volume appears slow, check the client and the network.".to_owned(),
        ],
        (weir_api::Verdict::NotDemanded, _) if at_the_gate && window.waited < 0.01 => vec![format!(
            "The volume is limited by the ceilings of its files. To get more: increase them (`weir volume set {name} --max-file-throughput`, `--max-file-iops`), or spread the load over more files."
        )],
        (weir_api::Verdict::NotDemanded, _) => vec![more_in_flight(subject.volume.protocols)],
        (_, Some(weir_api::Cause::Network)) => vec![
            "Replies wait for the clients to accept them: check the network, and the load of the client machines.".to_owned(),
        ],
        (_, Some(weir_api::Cause::Processing)) => vec![
            "The server's threads are busy: check the CPU load of the server, and the `workers` setting.".to_owned(),
        ],
        _ => vec![
            format!("The disk or the file system of pool {} is slow: check it with `iostat -x 1`, and check what else uses it. `weir top` shows other volumes.", why.pool),
        ],
    }
}

/// The advice for a volume that its contract limits.
fn more_contract(window: &Window, subject: &Subject<'_>) -> String {
    let name = &subject.volume.name;
    let limit = Rate(window.limit_bytes_per_second);
    let at_ceiling = |pool: &&Pool| {
        let ceiling = pool.model.volume_ceiling().rate;
        ceiling == Some(subject.volume.limits.rate) && is_limited_by_rate(window)
    };
    match subject.pool.filter(at_ceiling) {
        Some(Pool { name: pool, level, .. }) => format!(
            "The volume is limited by the volume ceiling of the service level {level}, {limit}: more quota or throughput does not help. To get more: raise the ceiling (`weir level set {level} --volume-ceiling`), or use another level (`weir pool set {pool} --level`).",
            level = level.name,
        ),
        None => format!(
            "The volume is limited by its contract of {limit}. To get more: increase the quota in an auto pool (`weir volume resize {name}`), the throughput in another pool (`weir volume set {name} --throughput`), or a ceiling (`--max-throughput`, `--max-iops`)."
        ),
    }
}

/// Was the limit of the rate nearer than that of the operations?
fn is_limited_by_rate(window: &Window) -> bool {
    let rate = part(window.delivered_bytes_per_second, window.limit_bytes_per_second);
    window.limit_iops.is_none_or(|most| window.delivered_iops / most.max(1) as f64 <= rate)
}

/// The advice for clients that could send more at the same time, in the terms of their protocols.
fn more_in_flight(protocols: Protocols) -> String {
    let ways = match (protocols.nfs(), protocols.smb()) {
        (true, false) => {
            "deeper queues, larger requests (`rsize`, `wsize`) or more connections (`nconnect`)"
        }
        (false, _) => "deeper queues or larger requests",
        (true, true) => {
            "deeper queues or larger requests, and over NFS more connections (`nconnect`, `rsize`, `wsize`)"
        }
    };
    format!(
        "The clients have too few requests in flight to reach the contract: use more processes, {ways}."
    )
}

fn per_second(amount: u64, nanos: u64) -> u64 {
    let nanos = u128::from(nanos.max(1));
    let rate = (u128::from(amount) * u128::from(SECOND) + nanos / 2) / nanos;
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a part is read to a few digits")]
fn part(of: u64, all: u64) -> f64 {
    of as f64 / all.max(1) as f64
}
