//! Questions that change nothing: contract reports, explanations, loads, activity, metrics and
//! sizes.

#[cfg(doc)]
use super::ClientError;
use super::{Client, Result, succeed};
use crate::routes;
use crate::{Activity, Gateways, Load, Report, SignedReport, Sizing, SizingQuery, Why};
use hyper::Method;

impl Client {
    /// Whether the contract of a volume was kept in the last `since_seconds`, at most
    /// [`REPORT_SECONDS_MAX`](crate::limits::REPORT_SECONDS_MAX).
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn report(&self, volume: &str, since_seconds: u64) -> Result<Report> {
        let path = routes::path(routes::REPORT, volume);
        self.get(&routes::with_query(&path, "since", &since_seconds.to_string())).await
    }

    /// The report, signed by the server.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn signed_report(&self, volume: &str, since_seconds: u64) -> Result<SignedReport> {
        let path = routes::path(routes::REPORT, volume);
        let path = routes::with_query(&path, "since", &since_seconds.to_string());
        self.get(&routes::with_query(&path, "signed", "true")).await
    }

    /// The explanation of a volume's current performance.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn why(&self, volume: &str) -> Result<Why> {
        self.get(&routes::path(routes::WHY, volume)).await
    }

    /// The operations, the clients and the kind of the load of a volume.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn load(&self, volume: &str) -> Result<Load> {
        self.get(&routes::path(routes::LOAD, volume)).await
    }

    /// The sizes to provision for a wanted rate, or the rate of a quota.
    ///
    /// # Errors
    /// [`ClientError`]; a refusal `no_measurement` if a latency is to be measured on a volume
    /// without requests.
    pub async fn sizing(&self, query: &SizingQuery) -> Result<Sizing> {
        let whole = |name, value: Option<u64>| (name, value.map(|value| value.to_string()));
        let parameters = [
            whole("throughput_bytes_per_second", query.throughput_bytes_per_second),
            whole("iops", query.iops),
            whole("quota_bytes", query.quota_bytes),
            ("qos", query.qos.map(|qos| qos.to_string())),
            ("level", query.level.clone()),
            whole("request_bytes", query.request_bytes),
            whole("latency_nanos", query.latency_nanos),
            ("volume", query.volume.clone()),
            whole("round_trip_nanos", query.round_trip_nanos),
            whole("clients", query.clients),
            whole("connections", query.connections),
        ];
        let given = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let path = given.fold(routes::SIZING.to_owned(), |path, (name, value)| {
            routes::with_query(&path, name, &value)
        });
        self.get(&path).await
    }

    /// The activity of all volumes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn activity(&self) -> Result<Activity> {
        self.get(routes::ACTIVITY).await
    }

    /// Metrics of the server in Prometheus' text format.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn metrics(&self) -> Result<String> {
        self.metrics_of(Gateways::This).await
    }

    /// Metrics in Prometheus' text format: of the server, or of all gateways of its cluster.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn metrics_of(&self, gateways: Gateways) -> Result<String> {
        let path = match gateways {
            Gateways::This => routes::METRICS.to_owned(),
            Gateways::All => routes::with_query(routes::METRICS, "gateways", gateways.word()),
        };
        let (status, body) = self.exchange(Method::GET, &path, Vec::new(), None).await?;
        let text = String::from_utf8_lossy(&succeed(status, &body)?).into_owned();
        Ok(text)
    }
}
