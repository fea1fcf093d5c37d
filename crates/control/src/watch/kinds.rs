//! The load of a volume in sentences: what comes, of what kind it is, and what would help. The
//! rules of kinds are in [`weir_qos::load`].

use super::words::Subject;
use std::fmt::Write as _;
use weir_api::{Load, LoadKind, OperationRate};

/// Operations that a sentence names; the rest is summed up.
const NAMED_MAX: usize = 5;
/// The least share of an operation that is named: what is shown as 1 %.
const NAMED_SHARE_MIN: f64 = 0.005;
/// Requests in flight below which more connections have nothing to carry.
const FEW_IN_FLIGHT: f64 = 2.0;

/// The findings about a load: a summary, and a sentence for each kind.
pub(super) fn findings(load: &Load) -> Vec<String> {
    if load.operations.is_empty() {
        return Vec::new();
    }
    let kinds = load.kinds.iter().map(|kind| finding(load, *kind));
    std::iter::once(summary(load)).chain(kinds).collect()
}

fn summary(load: &Load) -> String {
    let all = load.operations_per_second.max(1e-9);
    let often = |one: &&OperationRate| one.per_second / all >= NAMED_SHARE_MIN;
    let often: Vec<_> = load.operations.iter().filter(often).take(NAMED_MAX).collect();
    let mut named: Vec<_> = often.iter().map(|one| share(load, one)).collect();
    let rest = 1.0 - often.iter().map(|one| one.per_second).sum::<f64>() / all;
    if rest >= NAMED_SHARE_MIN {
        named.push(format!("{} others", percent(rest)));
    }
    let mut text = format!(
        "In the last {:.0} s: {:.0} operations/s on {} of {}, {:.1} of them in the server at a time: {}.",
        load.seconds,
        load.operations_per_second,
        count(load.connections_total, "connection"),
        count(load.clients_total, "client"),
        load.in_flight,
        named.join(", "),
    );
    if let Some(mean) = load.mean_request_bytes {
        let _infallible = write!(text, " A READ or WRITE moves {} on average.", size(mean));
    }
    text
}

fn share(load: &Load, one: &OperationRate) -> String {
    let part = percent(one.per_second / load.operations_per_second.max(1e-9));
    format!("{part} {}", one.operation)
}

fn finding(load: &Load, kind: LoadKind) -> String {
    match kind {
        LoadKind::MetadataHeavy => format!(
            "The load is metadata-heavy: {} of the operations transfer no data.",
            percent(load.metadata_share),
        ),
        LoadKind::OneConnection => {
            let client = load.clients.first().map(|client| format!(" of {}", client.address));
            format!(
                "One connection{} has {} of the operations.",
                client.unwrap_or_default(),
                percent(load.busiest_connection_share),
            )
        }
        LoadKind::OneFile => format!(
            "One file has at least {} of the READs and WRITEs.",
            percent(load.one_file_share),
        ),
        LoadKind::SmallRequests => format!(
            "The requests are small: {} on average, and requests below {} are limited by their number rather than by their bytes.",
            size(load.mean_request_bytes.unwrap_or_default()),
            size(load.small_below_bytes),
        ),
    }
}

/// The advice for a load, of which `contract` is the limit or not.
pub(super) fn advice(load: &Load, subject: &Subject<'_>, contract: bool) -> Vec<String> {
    let volume = subject.volume;
    let helps = |kind: &&LoadKind| match kind {
        // Neither changes what the contract yields.
        LoadKind::OneConnection | LoadKind::OneFile => !contract,
        LoadKind::MetadataHeavy => !contract || volume.limits.burst.is_some(),
        LoadKind::SmallRequests => !contract || volume.limits.iops.is_some(),
    };
    let helpful = load.kinds.iter().filter(helps);
    helpful.map(|kind| remedy(load, subject, *kind)).collect()
}

fn remedy(load: &Load, subject: &Subject<'_>, kind: LoadKind) -> String {
    let volume = subject.volume;
    let protocols = &volume.protocols;
    let name = &volume.name;
    match kind {
        LoadKind::MetadataHeavy => {
            let mut text = "Metadata operations: open files once instead of for each access, list directories instead of asking for each file, and work with more processes, since each operation waits for the one before it.".to_owned();
            if protocols.nfs() {
                text += " Over NFS, clients ask less often with a longer attribute cache (mount option `actimeo`).";
            }
            if !subject.metadata_cache {
                let _infallible = write!(
                    text,
                    " The metadata cache of the volume is off: `weir volume set {name} --metadata-cache on`."
                );
            }
            if volume.limits.burst.is_some() {
                text += " In this pool each of them counts as an operation: the IOPS limit applies.";
            }
            text
        }
        LoadKind::OneConnection if load.in_flight < FEW_IN_FLIGHT => {
            "One connection: the client waits for one request before it sends the next. More connections help only with more processes or deeper queues.".to_owned()
        }
        LoadKind::OneConnection => {
            let mut text = "One connection: a single CPU and a single TCP stream carry the load.".to_owned();
            if protocols.nfs() {
                text += " Over NFS, mount with `nconnect=4` or more.";
            }
            text + " Several clients share the load too."
        }
        LoadKind::OneFile => {
            let mut text = "One file: the file system executes the writes of a file one after another. Spread the load over several files.".to_owned();
            if volume.limits_of_files().is_some() {
                let _infallible = write!(
                    text,
                    " The volume also has a ceiling for each file (`weir volume set {name} --max-file-throughput`, `--max-file-iops`)."
                );
            }
            text
        }
        LoadKind::SmallRequests => {
            let mut text = "Small requests: use larger blocks in the application, and buffered instead of direct or synchronous I/O.".to_owned();
            if protocols.nfs() {
                text += " Over NFS, check that `rsize` and `wsize` of the mount are not smaller.";
            }
            if volume.limits.iops.is_some() {
                text += " The IOPS limit is reached before the throughput limit: if the blocks cannot be larger, increase the IOPS.";
            }
            text
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}
