//! `/v1/sizing`: what to provision for a wanted rate, the other way round, the requests in flight,
//! and the TCP window. The arithmetic is `weir-qos`'s; nothing is changed.

use super::failure::Failure;
use super::{ControlState, convert, machine, others};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use weir_api::{Concurrency, SizeChoice, Sizing, SizingQuery, Spread, TcpWindow, Window};
use weir_catalog::limits::{RATE_MAX, SIZE_BYTES_MAX};
use weir_catalog::{
    BytesPerSecond, CatalogError, Iops, Level, Limits, Minimums, Qos, Snapshot, Thing,
};
use weir_qos::sizing::{self, Bounds, Size, Unreachable, Wanted};

/// Size of requests that nothing else is known of, in bytes: that of the capacity check.
const REQUEST_BYTES: u64 = 64 << 10;

/// Numbers of connections that are compared: 16 are the most that Linux clients have of one
/// address (`nconnect`).
const CONNECTIONS: [u64; 4] = [1, 4, 8, 16];

/// Requests that the server takes of one connection before it answers any (see [`Spread`]).
const IN_FLIGHT_MAX: u64 = 512;

/// The most clients, and connections of each, that can be asked for.
const MANY: u64 = 1_000_000;

pub(super) async fn sizing(
    State(state): State<ControlState>,
    asked: Result<Query<SizingQuery>, QueryRejection>,
) -> Result<Json<Sizing>, Failure> {
    let Query(asked) = asked?;
    check(&asked)?;
    let snapshot = state.0.catalog.snapshot();
    let bounds = bounds(state.0.catalog.minimums());
    let models = models(&snapshot, &asked)?;
    let measured = measured(&state, &asked).await?;
    let use_of = UseOf::new(&asked, measured);
    let request_bytes = use_of.request_bytes;
    if let Some(bytes) = asked.quota_bytes {
        let (min, max) = (bounds.volume_bytes_min, bounds.bytes_max);
        if !(min..=max).contains(&bytes) {
            let (thing, asked) = (Thing::Volume, bytes);
            return Err(CatalogError::Size { thing, asked, min, max }.into());
        }
        let choices = models.map(|(qos, level)| of_quota(qos, level, bytes, &bounds, &use_of));
        let choices = choices.collect();
        return Ok(Json(Sizing { choices, request_bytes, concurrency: None, window: None }));
    }
    let iops = asked.iops.map(Iops);
    let moved = sizing::rate_of(iops.unwrap_or_default(), request_bytes);
    let rate = asked.throughput_bytes_per_second.map_or(moved, BytesPerSecond);
    let wanted = match (asked.throughput_bytes_per_second, iops) {
        (None, Some(iops)) if !use_of.size_is_known => Wanted::Operations { iops, request_bytes },
        _ => Wanted::Rate { rate, iops },
    };
    let size = |(qos, level): (Qos, &Level)| {
        choice(qos, level, sizing::size_for(qos, level.contract, wanted, &bounds))
    };
    let operations = sizing::operations_for(rate, request_bytes).max(iops.unwrap_or_default());
    Ok(Json(Sizing {
        choices: models.map(size).collect(),
        request_bytes,
        concurrency: use_of.concurrency(operations),
        window: use_of.window(rate),
    }))
}

fn bounds(minimums: Minimums) -> Bounds {
    let Minimums { pool_bytes, volume_bytes, custom } = minimums;
    Bounds {
        volume_bytes_min: volume_bytes,
        pool_bytes_min: pool_bytes,
        bytes_max: SIZE_BYTES_MAX,
        rate_max: RATE_MAX,
        custom,
    }
}

fn check(asked: &SizingQuery) -> Result<(), Failure> {
    let refuse = |message: &str| Err(Failure::bad_request(message));
    match (asked.throughput_bytes_per_second, asked.iops, asked.quota_bytes) {
        (None, None, None) => {
            return refuse("give throughput_bytes_per_second, iops or quota_bytes");
        }
        (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => {
            return refuse("give a wanted throughput and IOPS, or a quota, but not both");
        }
        (Some(0), ..) | (_, Some(0), _) | (.., Some(0)) => {
            return refuse("throughput, IOPS and quota must be greater than 0");
        }
        _ => {}
    }
    if asked.latency_nanos.is_some() && asked.volume.is_some() {
        return refuse("give latency_nanos or the volume that it is measured on, but not both");
    }
    if asked.request_bytes == Some(0) {
        return refuse("request_bytes must be greater than 0");
    }
    for (name, number) in [("clients", asked.clients), ("connections", asked.connections)] {
        if number.is_some_and(|number| !(1..=MANY).contains(&number)) {
            return Err(Failure::bad_request(format!("{name} must be from 1 to {MANY}")));
        }
    }
    Ok(())
}

/// The models and levels that were asked for. A model that does not use the level is there once.
fn models<'a>(
    snapshot: &'a Snapshot,
    asked: &SizingQuery,
) -> Result<impl Iterator<Item = (Qos, &'a Level)>, Failure> {
    let levels: Vec<_> = match &asked.level {
        None => snapshot.levels().map(AsRef::as_ref).collect(),
        Some(name) => {
            let missing = || CatalogError::NoSuch { thing: Thing::Level, name: name.clone() };
            vec![snapshot.level_named(name).map(AsRef::as_ref).ok_or_else(missing)?]
        }
    };
    let asked_qos = asked.qos.map(convert::qos_asked);
    let named = asked.level.is_some();
    let fits = move |qos: &Qos| {
        // A named level means the models that use it.
        asked_qos.map_or_else(|| !named || uses_level(*qos), |asked| asked == *qos)
    };
    Ok(Qos::ALL.into_iter().filter(fits).flat_map(move |qos| {
        let count = if uses_level(qos) { levels.len() } else { 1 };
        levels.clone().into_iter().take(count).map(move |level| (qos, level))
    }))
}

const fn uses_level(qos: Qos) -> bool {
    matches!(qos, Qos::Auto | Qos::Manual | Qos::Shared)
}

/// A choice without anything to provision.
fn empty(qos: Qos, level: &Level, limits: Limits) -> SizeChoice {
    SizeChoice {
        qos: convert::qos(qos),
        level: uses_level(qos).then(|| level.name.clone()),
        quota_bytes: None,
        pool_bytes: None,
        pool_throughput_bytes_per_second: None,
        pool_iops: None,
        volume_throughput_bytes_per_second: None,
        volume_iops: None,
        limit_bytes_per_second: limits.rate.0,
        limit_iops: limits.iops.map(|iops| iops.0),
        base_iops: limits.burst.map(|burst| burst.base.0),
        concurrency: None,
        window: None,
        unreachable: String::new(),
    }
}

fn choice(qos: Qos, level: &Level, size: Result<Size, Unreachable>) -> SizeChoice {
    match size {
        Ok(Size { quota_bytes, pool_bytes, bought, assigned, limits }) => SizeChoice {
            quota_bytes,
            pool_bytes,
            pool_throughput_bytes_per_second: bought.rate.map(|rate| rate.0),
            pool_iops: bought.iops.map(|iops| iops.0),
            volume_throughput_bytes_per_second: assigned.rate.map(|rate| rate.0),
            volume_iops: assigned.iops.map(|iops| iops.0),
            ..empty(qos, level, limits)
        },
        Err(unreachable) => SizeChoice {
            unreachable: unreachable.to_string(),
            ..empty(qos, level, Limits::of(BytesPerSecond::ZERO))
        },
    }
}

/// The limits of a volume of this quota that has the least pool to itself, and what its clients
/// need to use them.
fn of_quota(
    qos: Qos,
    level: &Level,
    bytes: u64,
    bounds: &Bounds,
    use_of: &UseOf<'_>,
) -> SizeChoice {
    let pool = bytes.max(bounds.pool_bytes_min);
    let limits = sizing::limits_of(qos, level.contract, bytes, pool);
    let operations = sizing::operations_for(limits.rate, use_of.request_bytes);
    let operations = limits.iops.map_or(operations, |most| operations.min(most));
    SizeChoice {
        quota_bytes: Some(bytes),
        pool_bytes: Some(pool),
        concurrency: use_of.concurrency(operations),
        window: use_of.window(limits.rate),
        ..empty(qos, level, limits)
    }
}

/// The mean request of a volume.
#[derive(Clone, Copy)]
struct Mean {
    latency: u64,
    bytes: Option<u64>,
}

/// The mean request of the volume that was named, without the wait for its contract.
async fn measured(state: &ControlState, asked: &SizingQuery) -> Result<Option<Mean>, Failure> {
    let Some(name) = &asked.volume else { return Ok(None) };
    let why = others::why(state, name).await?;
    let mean = [&why.minute, &why.hour].into_iter().find_map(mean_of);
    let message = format!(
        "volume {name:?} had no READs and WRITEs in the last hour: load it, or give the latency"
    );
    let none = || Failure::new(StatusCode::CONFLICT, "no_measurement", message);
    mean.ok_or_else(none).map(Some)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a mean of some digits"
)]
fn mean_of(window: &Window) -> Option<Mean> {
    let split = &window.split;
    let behind = split.total_nanos() - split.wait_nanos;
    let latency = behind.checked_div(split.requests)?;
    let transfers = window.delivered_iops;
    let bytes = (transfers > 0.0)
        .then(|| (window.delivered_bytes_per_second as f64 / transfers).round() as u64);
    Some(Mean { latency, bytes: bytes.filter(|bytes| *bytes > 0) })
}

/// The clients that are to use a rate.
struct UseOf<'a> {
    asked: &'a SizingQuery,
    /// Size of each READ and WRITE, in bytes.
    request_bytes: u64,
    /// Was the size asked for or measured?
    size_is_known: bool,
    /// Latency of each, if it is known, in nanoseconds.
    latency_nanos: Option<u64>,
}

impl<'a> UseOf<'a> {
    fn new(asked: &'a SizingQuery, measured: Option<Mean>) -> Self {
        let round_trip = asked.round_trip_nanos.unwrap_or(0);
        let measured_nanos = measured.map(|one| one.latency.saturating_add(round_trip));
        let request_bytes = asked.request_bytes.or(measured.and_then(|one| one.bytes));
        Self {
            asked,
            request_bytes: request_bytes.unwrap_or(REQUEST_BYTES),
            size_is_known: request_bytes.is_some(),
            latency_nanos: asked.latency_nanos.or(measured_nanos),
        }
    }

    /// The requests in flight with which so many `operations` a second are answered.
    fn concurrency(&self, operations: Iops) -> Option<Concurrency> {
        let latency_nanos = self.latency_nanos?;
        let in_flight = sizing::in_flight(operations, latency_nanos);
        let clients = self.asked.clients.unwrap_or(1);
        let numbers = self.asked.connections.map_or_else(|| CONNECTIONS.to_vec(), |one| vec![one]);
        let spread = |connections| {
            let depth = sizing::depth(in_flight, clients, connections);
            Spread { clients, connections, depth, admitted: depth <= IN_FLIGHT_MAX }
        };
        Some(Concurrency {
            operations_per_second: operations.0,
            request_bytes: self.request_bytes,
            latency_nanos,
            in_flight,
            spreads: numbers.into_iter().map(spread).collect(),
        })
    }

    /// The TCP window with which `rate` comes over a round trip.
    fn window(&self, rate: BytesPerSecond) -> Option<TcpWindow> {
        let round_trip_nanos = self.asked.round_trip_nanos?;
        let (clients, each) =
            (self.asked.clients.unwrap_or(1), self.asked.connections.unwrap_or(1));
        let connections = clients.saturating_mul(each);
        let each = BytesPerSecond(rate.0.div_ceil(connections.max(1)));
        let window_bytes = sizing::window(each, round_trip_nanos);
        Some(TcpWindow {
            round_trip_nanos,
            connections,
            window_bytes,
            buffer_bytes: window_bytes.saturating_mul(2),
            server_receive_max_bytes: machine::buffer_max("rmem"),
            server_send_max_bytes: machine::buffer_max("wmem"),
        })
    }
}
