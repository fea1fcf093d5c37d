//! Metrics in Prometheus' text format, read off the catalogue and the data plane at each scrape.
//! Nothing is counted here.

use crate::limits::{METRICS_CLIENTS_MAX, METRICS_CLIENTS_VOLUME_MAX};
use crate::plane::{
    DURATION_BOUNDS, Durations, OperationCount, Plane, Totals, VolumeConnection, VolumeHistograms,
    VolumeLive,
};
use crate::sync::Arc;
use crate::watch::load::{Client, by_client};
use crate::watch::{Standing, Watch};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;
use std::time::Duration;
use weir_api::LoadKind;
use weir_catalog::{Filesystem, Pool, Snapshot, Volume};
use weir_qos::verdict::Verdict;

/// The name and the help of the metric that only the metrics of all gateways have.
pub(crate) const GATEWAY_UP: (&str, &str) = (
    "weir_gateway_up",
    "1 if the gateway answers the one that is asked for the metrics of all, else 0",
);

/// The content type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics, as text.
///
/// # Errors
/// None in practice: it writes to memory.
pub(crate) fn render(
    snapshot: &Arc<Snapshot>,
    plane: &dyn Plane,
    watch: &Watch,
) -> Result<String, fmt::Error> {
    // Volumes of other gateways are in the metrics of their homes.
    let is_here =
        |volume: &&Arc<Volume>| plane.is_home_of(volume) || plane.volume_live(volume.id).is_some();
    let volumes = snapshot.volumes().filter(is_here).map(|volume| {
        let pool = snapshot.pool(volume.pool).map(|pool| pool.name.clone()).unwrap_or_default();
        let (live, standing) = (plane.volume_live(volume.id), watch.standing(volume.id));
        let histograms = plane.volume_histograms(volume.id);
        let uses = plane.volume_uses(volume.id);
        let connections = uses.map(|uses| uses.connections).unwrap_or_default();
        let kinds = watch.recent_load(plane, volume).map(|load| load.kinds);
        let volume = Arc::clone(volume);
        Listed { volume, pool, live, standing, histograms, connections, kinds }
    });
    let scrape = Scrape {
        snapshot: Arc::clone(snapshot),
        volumes: volumes.collect(),
        totals: plane.totals(),
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(scrape));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

/// The state at the moment of a scrape.
#[derive(Debug)]
struct Scrape {
    snapshot: Arc<Snapshot>,
    volumes: Vec<Listed>,
    totals: Totals,
}

/// A volume of the catalogue, and what the data plane says of it.
#[derive(Debug)]
struct Listed {
    volume: Arc<Volume>,
    pool: String,
    live: Option<VolumeLive>,
    standing: Option<Standing>,
    histograms: Option<Box<VolumeHistograms>>,
    connections: Vec<VolumeConnection>,
    /// The kinds of its load, if it is in use.
    kinds: Option<Vec<LoadKind>>,
}

/// One metric over things of sort `T`; a counter's name gets `_total` on the wire.
struct Metric<T: ?Sized> {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    value: fn(&T) -> Value,
}

enum Value {
    Whole(u64),
    Seconds(f64),
}

use MetricType::{Counter, Gauge};
use Value::{Seconds, Whole};

const fn metric<T: ?Sized>(
    kind: MetricType,
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> Value,
) -> Metric<T> {
    Metric { name, help, kind, value }
}

/// Of a volume that is being served.
const LIVE: &[Metric<VolumeLive>] = &[
    metric(Counter, "weir_volume_read_operations", "READ operations completed", |v| {
        Whole(v.read_ops)
    }),
    metric(Counter, "weir_volume_read_bytes", "Bytes returned by READ", |v| Whole(v.read_bytes)),
    metric(Counter, "weir_volume_write_operations", "WRITE operations completed", |v| {
        Whole(v.write_ops)
    }),
    metric(Counter, "weir_volume_write_bytes", "Bytes accepted by WRITE", |v| Whole(v.write_bytes)),
    metric(Counter, "weir_volume_other_operations", "All other operations completed", |v| {
        Whole(v.other_ops)
    }),
    metric(
        Counter,
        "weir_volume_failed_operations",
        "Operations answered with an error status",
        |v| Whole(v.failed_ops),
    ),
    metric(Counter, "weir_volume_delayed_operations", "Requests throttled by the contract", |v| {
        Whole(v.delayed_ops)
    }),
    metric(
        Counter,
        "weir_volume_wait_seconds",
        "Total time that requests waited for the contract",
        |v| Seconds(seconds(v.wait_nanos)),
    ),
    metric(
        Counter,
        "weir_volume_latency_seconds",
        "Total time from arrival to reply of all operations",
        |v| Seconds(seconds(v.latency_nanos)),
    ),
    metric(
        Counter,
        "weir_volume_store_seconds",
        "Total time of READs, WRITEs and COMMITs in the store",
        |v| Seconds(seconds(v.store_nanos)),
    ),
    metric(
        Counter,
        "weir_volume_network_seconds",
        "Total time until clients' sockets accepted the replies to READs, WRITEs and COMMITs",
        |v| Seconds(seconds(v.network_nanos)),
    ),
    metric(
        Counter,
        "weir_volume_processing_seconds",
        "Total time in which READs, WRITEs and COMMITs waited for the server to process other requests",
        |v| Seconds(seconds(v.processing_nanos)),
    ),
    metric(
        Counter,
        "weir_volume_offered_bytes",
        "Bytes requested by READs and WRITEs on arrival",
        |v| Whole(v.offered_bytes),
    ),
    metric(Gauge, "weir_volume_waiting_requests", "Requests waiting for the contract", |v| {
        Whole(v.waiting)
    }),
    metric(Gauge, "weir_volume_parked_bytes", "Memory held by waiting requests", |v| {
        Whole(v.parked_bytes)
    }),
    metric(Gauge, "weir_volume_used_bytes", "Space used by the volume's files", |v| {
        Whole(v.used_bytes)
    }),
    metric(
        Gauge,
        "weir_volume_used_exact",
        "1 while the used bytes are exact, 0 after an unclean shutdown until the recount is complete",
        |v| Whole(u64::from(v.used_exact)),
    ),
    metric(Gauge, "weir_volume_counted_files", "Files counted by a running recount", |v| {
        Whole(v.counting.map_or(0, |counting| counting.files))
    }),
    metric(Gauge, "weir_volume_limit_bytes_per_second", "Throughput limit in force", |v| {
        Whole(v.limit_bytes_per_second)
    }),
    metric(
        Gauge,
        "weir_volume_limit_operations_per_second",
        "IOPS limit in force, 0 if there is none",
        |v| Whole(v.limit_iops.unwrap_or(0)),
    ),
    metric(Gauge, "weir_volume_credits", "Remaining burst credits, 0 if there are none", |v| {
        Whole(v.credits.unwrap_or(0))
    }),
    metric(
        Gauge,
        "weir_volume_throughput_limit_reached",
        "1 while requests wait for the contract, else 0",
        |v| Whole(u64::from(v.waiting > 0)),
    ),
];

/// Of a volume that is being served, for each operation that clients have requested.
const OPERATIONS: [Metric<OperationCount>; 2] = [
    metric(
        Counter,
        "weir_volume_operations",
        "Operations answered, by protocol and name, including those with an error status",
        |o| Whole(o.answered),
    ),
    metric(
        Counter,
        "weir_volume_operation_errors",
        "Operations answered with an error status, by protocol and name",
        |o| Whole(o.failed),
    ),
];

/// Of a volume that is being served, for each client with open connections.
const CLIENTS: (&str, &str) = (
    "weir_volume_client_connections",
    "Open connections of a client that have used the volume, for the clients with the most of them",
);

/// Of a volume in use, for each kind of load.
const KINDS: (&str, &str) =
    ("weir_volume_load_kind", "1 if the load of the last 10 to 15 s is of this kind, else 0");
const ALL_KINDS: [LoadKind; 4] =
    [LoadKind::MetadataHeavy, LoadKind::OneConnection, LoadKind::OneFile, LoadKind::SmallRequests];

/// Of every volume of the catalogue.
const VOLUME: &[Metric<Listed>] = &[
    metric(Gauge, "weir_volume_quota_bytes", "Provisioned size", |v| Whole(v.volume.quota_bytes)),
    metric(Gauge, "weir_volume_served", "1 while clients can use the volume, else 0", |v| {
        Whole(u64::from(v.live.is_some()))
    }),
    metric(
        Gauge,
        "weir_volume_connections",
        "Open connections of clients that have used the volume",
        |v| Whole(v.connections.len() as u64),
    ),
];

/// Of every volume that is served: the verdict on its contract over the last 10 s.
const CONTRACT: &[Metric<Listed>] = &[
    metric(
        Gauge,
        "weir_volume_contract_kept",
        "1 if the contract was demanded and delivered over the last 10 s, else 0",
        |v| Whole(u64::from(verdict(v) == Verdict::Kept)),
    ),
    metric(
        Gauge,
        "weir_volume_contract_broken",
        "1 if the contract was broken over the last 10 s, else 0",
        |v| Whole(u64::from(matches!(verdict(v), Verdict::Broken(_)))),
    ),
    metric(
        Gauge,
        "weir_volume_contract_demanded",
        "1 if clients demanded the contract over the last 10 s, else 0",
        |v| Whole(u64::from(verdict(v) != Verdict::NotDemanded)),
    ),
];

/// The error of a contract where it was demanded, over each of the times that [`Standing`] has.
const ERRORS: [(&str, &str); 3] = [
    (
        "weir_volume_contract_error_10s_ratio",
        "Ratio of delivered to contracted work over the last 10 s, minus 1",
    ),
    (
        "weir_volume_contract_error_1m_ratio",
        "Contract error over the last minute, for the time in which the contract was demanded",
    ),
    (
        "weir_volume_contract_error_1h_ratio",
        "Contract error over the last hour, for the time in which the contract was demanded",
    ),
];

/// Of volumes that the operator chose: how long operations took, by their class.
const OPERATION: (&str, &str) = (
    "weir_volume_operation_seconds",
    "Time from arrival to reply, for the volumes of metrics.histograms",
);
type Of = fn(&VolumeHistograms) -> &Durations;
const CLASSES: [(&str, Of); 3] =
    [("read", |h| &h.read), ("write", |h| &h.write), ("other", |h| &h.other)];

/// Of volumes that the operator chose: the time that requests waited.
const WAIT: (&str, &str) = (
    "weir_volume_contract_wait_seconds",
    "Time that READs, WRITEs and COMMITs waited for the contract, for the volumes of metrics.histograms",
);

/// Of a file system; what is not known is left out.
type OfFilesystem = fn(&Filesystem) -> Option<u64>;

const FILESYSTEM: [(&str, &str, OfFilesystem); 7] = [
    (
        "weir_filesystem_committed_bytes_per_second",
        "Throughput committed by the contracts on the file system",
        |f| Some(f.committed.rate().0),
    ),
    (
        "weir_filesystem_committed_operations_per_second",
        "IOPS committed by the contracts on the file system",
        |f| Some(f.committed.iops().0),
    ),
    ("weir_filesystem_holds_bytes_per_second", "Measured throughput capacity", |f| {
        f.holds.rate.map(|rate| rate.0)
    }),
    ("weir_filesystem_holds_operations_per_second", "Measured IOPS capacity", |f| {
        f.holds.iops.map(|iops| iops.0)
    }),
    ("weir_filesystem_allowed_bytes_per_second", "Throughput that contracts may commit", |f| {
        f.allowed.rate.map(|rate| rate.0)
    }),
    ("weir_filesystem_allowed_operations_per_second", "IOPS that contracts may commit", |f| {
        f.allowed.iops.map(|iops| iops.0)
    }),
    ("weir_filesystem_calibrated_timestamp_seconds", "Time of the calibration", |f| {
        f.calibration.as_ref().map(|kept| kept.at)
    }),
];

fn verdict(listed: &Listed) -> Verdict {
    listed.standing.map_or(Verdict::NotDemanded, |standing| standing.verdict)
}

/// Of a pool, with its volumes' quotas and limits summed.
const POOL: &[Metric<PoolSums>] = &[
    metric(Gauge, "weir_pool_size_bytes", "Provisioned size", |p| Whole(p.size)),
    metric(Gauge, "weir_pool_allocated_bytes", "Sum of the volumes' quotas", |p| {
        Whole(p.allocated)
    }),
    metric(
        Gauge,
        "weir_pool_budget_bytes_per_second",
        "Throughput budget of the pool: purchased throughput, or size times level rate",
        |p| Whole(p.budget),
    ),
    metric(
        Gauge,
        "weir_pool_budget_operations_per_second",
        "IOPS budget of the pool, 0 if it purchases none",
        |p| Whole(p.operations),
    ),
    metric(Gauge, "weir_pool_given_bytes_per_second", "Sum of the volumes' limits", |p| {
        Whole(p.given)
    }),
];

/// Of the server.
const SERVER: &[Metric<Totals>] = &[
    metric(Gauge, "weir_connections", "Open connections of NFS and SMB clients", |t| {
        Whole(t.connections)
    }),
    metric(
        Counter,
        "weir_connections_accepted",
        "Connections of NFS and SMB clients accepted",
        |t| Whole(t.connections_accepted),
    ),
    metric(
        Counter,
        "weir_connections_refused",
        "Connections of NFS and SMB clients refused because a limit was reached",
        |t| Whole(t.connections_refused),
    ),
    metric(
        Counter,
        "weir_connections_shed",
        "Idle connections of NFS and SMB clients closed to admit others",
        |t| Whole(t.connections_shed),
    ),
    metric(
        Counter,
        "weir_connections_misbehaved",
        "Connections of NFS and SMB clients closed because of protocol errors",
        |t| Whole(t.connections_misbehaved),
    ),
    metric(Gauge, "weir_parked_bytes", "Memory held by waiting requests of all volumes", |t| {
        Whole(t.parked_bytes)
    }),
    metric(
        Counter,
        "weir_reading_stopped",
        "Number of times that reading from a connection was paused because of too many waiting requests",
        |t| Whole(t.reading_stopped),
    ),
    metric(
        Counter,
        "weir_requests_refused",
        "Requests answered with NFS3ERR_JUKEBOX or STATUS_INSUFFICIENT_RESOURCES because waiting requests held all the memory they may",
        |t| Whole(t.requests_refused),
    ),
    metric(
        Counter,
        "weir_repetitions_dropped",
        "Retransmitted calls received while the original was in progress; both get the same reply",
        |t| Whole(t.repetitions_dropped),
    ),
    metric(
        Counter,
        "weir_repetitions_answered",
        "Retransmitted calls answered from the duplicate request cache",
        |t| Whole(t.repetitions_answered),
    ),
    metric(
        Counter,
        "weir_log_lines_dropped",
        "Log lines dropped because standard error was not read fast enough",
        |t| Whole(t.log_lines_dropped),
    ),
    metric(
        Counter,
        "weir_log_lines_left_out",
        "Log lines suppressed because there were too many similar lines",
        |t| Whole(t.log_lines_left_out),
    ),
    metric(Gauge, "weir_locks_held", "File ranges locked by clients", |t| Whole(t.locks.held)),
    metric(Gauge, "weir_locks_waiting", "Requests waiting for a lock", |t| Whole(t.locks.waiting)),
    metric(Gauge, "weir_lock_hosts", "Hosts to notify of a restart", |t| Whole(t.locks.hosts)),
    metric(
        Counter,
        "weir_lock_hosts_refused",
        "Locks refused because the host could not be recorded for notification after a restart",
        |t| Whole(t.locks.hosts_refused),
    ),
    metric(Gauge, "weir_lock_grace", "1 in the grace period after a restart, else 0", |t| {
        Whole(u64::from(t.locks.grace))
    }),
    metric(Counter, "weir_locks_granted", "Locks granted immediately", |t| Whole(t.locks.granted)),
    metric(Counter, "weir_locks_refused", "Locks refused", |t| Whole(t.locks.refused)),
    metric(Counter, "weir_lock_callbacks", "Lock callbacks answered by clients", |t| {
        Whole(t.locks.called_back)
    }),
    metric(Counter, "weir_lock_callbacks_unheard", "Lock callbacks not answered by clients", |t| {
        Whole(t.locks.unheard)
    }),
];

struct PoolSums {
    size: u64,
    allocated: u64,
    budget: u64,
    operations: u64,
    given: u64,
}

impl PoolSums {
    fn of(snapshot: &Snapshot, pool: &Pool) -> Self {
        let volumes = || snapshot.volumes_of(pool.id);
        let given = volumes().map(|volume| pool.gives(volume).rate.0).sum();
        Self {
            size: pool.size_bytes,
            allocated: volumes().map(|volume| volume.quota_bytes).sum(),
            budget: pool.contract().budget().map_or(given, |budget| budget.rate.0),
            operations: pool.model.bought().iops.map_or(0, |iops| iops.0),
            given,
        }
    }
}

impl Collector for Scrape {
    fn encode(&self, mut out: DescriptorEncoder<'_>) -> fmt::Result {
        let mut info = out.encode_descriptor("weir_build", "The server", None, MetricType::Info)?;
        info.encode_info(&[("version", env!("CARGO_PKG_VERSION"))])?;
        let generation = |s: &Snapshot| Whole(s.generation);
        let catalog = metric(
            Gauge,
            "weir_catalog_generation",
            "Generation of the catalogue, incremented with every change",
            generation,
        );
        single(&mut out, &catalog, &*self.snapshot)?;
        for metric in SERVER {
            single(&mut out, metric, &self.totals)?;
        }
        let pools: Vec<_> = self
            .snapshot
            .pools()
            .map(|pool| ([("pool", pool.name.as_str())], PoolSums::of(&self.snapshot, pool)))
            .collect();
        for metric in POOL {
            family(&mut out, metric, pools.iter().map(|(labels, sums)| (labels, sums)))?;
        }
        for (name, help, value) in FILESYSTEM {
            let all = self.snapshot.filesystems().iter();
            let known: Vec<_> = all.filter_map(|there| Some((there, value(there)?))).collect();
            if known.is_empty() {
                continue;
            }
            let mut encoder = out.encode_descriptor(name, help, None, Gauge)?;
            for (there, value) in known {
                let directory = there.directory.to_string_lossy();
                let labels = [("directory", &*directory)];
                encoder.encode_family(&labels)?.encode_gauge(&value)?;
            }
        }
        let labelled: Vec<_> = self
            .volumes
            .iter()
            .map(|one| ([("volume", one.volume.name.as_str()), ("pool", one.pool.as_str())], one))
            .collect();
        for metric in VOLUME {
            family(&mut out, metric, labelled.iter().map(|(labels, one)| (labels, *one)))?;
        }
        for metric in LIVE {
            let live =
                labelled.iter().filter_map(|(labels, one)| Some((labels, one.live.as_ref()?)));
            family(&mut out, metric, live)?;
        }
        self.encode_operations(&mut out)?;
        self.encode_clients(&mut out)?;
        self.encode_kinds(&mut out)?;
        for metric in CONTRACT {
            let served = labelled.iter().filter(|(_, one)| one.live.is_some());
            family(&mut out, metric, served.map(|(labels, one)| (labels, *one)))?;
        }
        for (place, (name, help)) in ERRORS.into_iter().enumerate() {
            let mut encoder = out.encode_descriptor(name, help, None, Gauge)?;
            for (labels, one) in &labelled {
                let errors = one.standing.as_ref().map(|standing| standing.errors);
                if let Some(error) = errors.and_then(|errors| *errors.get(place)?) {
                    encoder.encode_family(labels)?.encode_gauge(&error)?;
                }
            }
        }
        self.encode_histograms(&mut out)
    }
}

impl Scrape {
    fn encode_operations(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for metric in &OPERATIONS {
            let mut encoder = out.encode_descriptor(metric.name, metric.help, None, metric.kind)?;
            for Listed { volume, pool, live, .. } in &self.volumes {
                for count in live.iter().flat_map(|live| &live.operations) {
                    let labels = [
                        ("volume", volume.name.as_str()),
                        ("pool", pool.as_str()),
                        ("protocol", count.protocol),
                        ("operation", count.operation),
                    ];
                    write(encoder.encode_family(&labels)?, metric, count)?;
                }
            }
        }
        Ok(())
    }

    /// The clients with the most connections, and all others of a volume together.
    fn encode_clients(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, help) = CLIENTS;
        let mut encoder = out.encode_descriptor(name, help, None, Gauge)?;
        let mut left = METRICS_CLIENTS_MAX;
        for Listed { volume, pool, connections, .. } in &self.volumes {
            let mut clients = by_client(connections);
            clients.sort_by_key(|client| std::cmp::Reverse(client.connections));
            let named = clients.len().min(METRICS_CLIENTS_VOLUME_MAX).min(left);
            left -= named;
            let (named, others) = clients.split_at(named);
            for Client { address, protocol, connections, .. } in named {
                let address = address.to_string();
                let labels = [
                    ("volume", volume.name.as_str()),
                    ("pool", pool.as_str()),
                    ("protocol", *protocol),
                    ("client", address.as_str()),
                ];
                encoder.encode_family(&labels)?.encode_gauge(connections)?;
            }
            if !others.is_empty() {
                let connections: u64 = others.iter().map(|client| client.connections).sum();
                let labels = [
                    ("volume", volume.name.as_str()),
                    ("pool", pool.as_str()),
                    ("protocol", "any"),
                    ("client", "others"),
                ];
                encoder.encode_family(&labels)?.encode_gauge(&connections)?;
            }
        }
        Ok(())
    }

    fn encode_kinds(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, help) = KINDS;
        let mut encoder = out.encode_descriptor(name, help, None, Gauge)?;
        for Listed { volume, pool, kinds, .. } in &self.volumes {
            for (kinds, kind) in kinds.iter().flat_map(|kinds| ALL_KINDS.map(|kind| (kinds, kind)))
            {
                let labels = [
                    ("volume", volume.name.as_str()),
                    ("pool", pool.as_str()),
                    ("kind", kind.word()),
                ];
                let is_of_it = u64::from(kinds.contains(&kind));
                encoder.encode_family(&labels)?.encode_gauge(&is_of_it)?;
            }
        }
        Ok(())
    }

    fn encode_histograms(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let chosen: Vec<_> = self
            .volumes
            .iter()
            .filter_map(|one| {
                let labels = [("volume", one.volume.name.as_str()), ("pool", one.pool.as_str())];
                Some((labels, one.histograms.as_deref()?))
            })
            .collect();
        if chosen.is_empty() {
            return Ok(());
        }
        let (name, help) = OPERATION;
        let mut encoder = out.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for ([volume, pool], histograms) in &chosen {
            for (class, of) in CLASSES {
                let labels = [*volume, *pool, ("class", class)];
                histogram(encoder.encode_family(&labels)?, of(histograms))?;
            }
        }
        let (name, help) = WAIT;
        let mut encoder = out.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, histograms) in &chosen {
            histogram(encoder.encode_family(labels)?, &histograms.wait)?;
        }
        Ok(())
    }
}

fn histogram(mut encoder: MetricEncoder<'_>, of: &Durations) -> fmt::Result {
    let bounds = DURATION_BOUNDS.iter().map(Duration::as_secs_f64).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(of.counts).collect();
    encoder.encode_histogram::<NoLabelSet>(seconds(of.nanos), of.count(), &buckets, None)
}

fn single<T>(out: &mut DescriptorEncoder<'_>, metric: &Metric<T>, of: &T) -> fmt::Result {
    write(out.encode_descriptor(metric.name, metric.help, None, metric.kind)?, metric, of)
}

fn family<'a, const N: usize, T: 'a>(
    out: &mut DescriptorEncoder<'_>,
    metric: &Metric<T>,
    things: impl Iterator<Item = (&'a [(&'a str, &'a str); N], &'a T)>,
) -> fmt::Result {
    let mut encoder = out.encode_descriptor(metric.name, metric.help, None, metric.kind)?;
    for (labels, thing) in things {
        write(encoder.encode_family(labels)?, metric, thing)?;
    }
    Ok(())
}

fn write<T>(mut encoder: MetricEncoder<'_>, metric: &Metric<T>, of: &T) -> fmt::Result {
    match ((metric.value)(of), metric.kind) {
        (Whole(value), Counter) => encoder.encode_counter::<NoLabelSet, u64, u64>(&value, None),
        (Seconds(value), Counter) => encoder.encode_counter::<NoLabelSet, f64, u64>(&value, None),
        (Whole(value), _) => encoder.encode_gauge(&value),
        (Seconds(value), _) => encoder.encode_gauge(&value),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a sum of seconds is read to a few digits")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// A page or a file of the repository that speaks of metrics.
    fn read(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(path)).unwrap()
    }

    /// Names as they are scraped.
    fn published() -> BTreeSet<String> {
        fn of<T>(metrics: &[Metric<T>]) -> impl Iterator<Item = String> {
            let suffix = |metric: &Metric<T>| match metric.kind {
                Counter => format!("{}_total", metric.name),
                _ => metric.name.to_owned(),
            };
            metrics.iter().map(suffix).collect::<Vec<_>>().into_iter()
        }
        let single = ["weir_build_info", "weir_catalog_generation"].map(str::to_owned);
        let errors = ERRORS.map(|(name, _)| name.to_owned());
        let volumes =
            of(LIVE).chain(of(&OPERATIONS)).chain(of(VOLUME)).chain(of(CONTRACT)).chain(errors);
        let histograms =
            [OPERATION, WAIT, CLIENTS, KINDS, GATEWAY_UP].map(|(name, _)| name.to_owned());
        let filesystems = FILESYSTEM.map(|(name, ..)| name.to_owned());
        let volumes = volumes.chain(of(POOL)).chain(filesystems);
        volumes.chain(of(SERVER)).chain(single).chain(histograms).collect()
    }

    /// The published metrics, and the series that histograms are scraped as.
    fn scraped() -> BTreeSet<String> {
        let series = |(name, _)| ["bucket", "sum", "count"].map(|part| format!("{name}_{part}"));
        published().into_iter().chain([OPERATION, WAIT].into_iter().flat_map(series)).collect()
    }

    /// Every word of `text` that begins as metrics do.
    fn named(text: &str) -> BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.filter(|word| word.starts_with("weir_")).map(str::to_owned).collect()
    }

    #[test]
    fn the_page_lists_every_metric_and_no_other() {
        let page = read("docs/metrics.md");
        let row = |line: &str| {
            line.strip_prefix("| `weir_")?.split_once("` |").map(|(name, _)| format!("weir_{name}"))
        };
        let listed: Vec<_> = page.lines().filter_map(row).collect();
        assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), published());
        assert_eq!(listed.len(), published().len(), "one is listed twice");
    }

    #[test]
    fn expressions_name_only_metrics_that_exist() {
        for path in ["docs/metrics.md", "dist/prometheus/weir.rules.yml", "dist/grafana/weir.json"]
        {
            let (named, scraped) = (named(&read(path)), scraped());
            assert!(named.len() > 5, "{path}");
            let unknown: Vec<_> = named.difference(&scraped).collect();
            assert!(unknown.is_empty(), "{path}: {unknown:?}");
        }
    }

    #[test]
    fn every_panel_of_the_dashboard_asks_for_something() {
        let dashboard: serde_json::Value =
            serde_json::from_str(&read("dist/grafana/weir.json")).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        let asking = panels.iter().filter(|panel| panel["type"] != "row");
        assert!(asking.clone().count() > 10);
        for panel in asking {
            let targets = panel["targets"].as_array().unwrap();
            let asks =
                |target: &serde_json::Value| !named(target["expr"].as_str().unwrap()).is_empty();
            assert!(!targets.is_empty() && targets.iter().all(asks), "{}", panel["title"]);
        }
    }
}
