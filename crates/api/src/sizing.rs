//! Sizing: what to provision for a wanted rate, and how a client can use it.

use crate::words::Qos;
use serde::{Deserialize, Serialize};

/// A question about sizes. Give a wanted throughput or a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SizingQuery {
    /// Wanted throughput, reads and writes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bytes_per_second: Option<u64>,
    /// Wanted IOPS. Without a throughput, the wanted throughput is that of so many requests of
    /// `request_bytes`; if these are neither given nor measured, models that limit IOPS themselves
    /// have the least throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// A quota, to ask for the throughput of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// Contract model; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<Qos>,
    /// Service level; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Size of each READ and WRITE. Default: that of the requests to `volume`, or 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_bytes: Option<u64>,
    /// Latency of a request without the wait for the contract, as the client measures it. Answered
    /// with the number of requests in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_nanos: Option<u64>,
    /// A volume with a load: the latency is the mean of its requests in the last minute or hour,
    /// in the server and without the wait for the contract, plus the round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Round trip between client and server. Answered with the TCP window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_nanos: Option<u64>,
    /// Number of clients. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u64>,
    /// Number of connections of each client. Default: several are compared; 1 for the TCP window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
}

/// The answer about sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sizing {
    /// The models and levels, in their order.
    pub choices: Vec<SizeChoice>,
    /// Size of each READ and WRITE; 0 in answers of servers that do not tell it.
    #[serde(default)]
    pub request_bytes: u64,
    /// The requests in flight for the wanted rate, if a latency is known. For a quota, the choices
    /// have their own.
    #[serde(default)]
    pub concurrency: Option<Concurrency>,
    /// The TCP window for the wanted rate, if a round trip was given. For a quota, the choices have
    /// their own.
    #[serde(default)]
    pub window: Option<TcpWindow>,
}

/// One model and level, with what has to be provisioned there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SizeChoice {
    /// Contract model.
    pub qos: Qos,
    /// Service level; absent if the model does not use it.
    #[serde(default)]
    pub level: Option<String>,
    /// Least quota of the volume; absent if the limits do not depend on it.
    #[serde(default)]
    pub quota_bytes: Option<u64>,
    /// Least size of the pool; absent if it only has to hold the quotas.
    #[serde(default)]
    pub pool_bytes: Option<u64>,
    /// Throughput that the pool purchases.
    #[serde(default)]
    pub pool_throughput_bytes_per_second: Option<u64>,
    /// IOPS that the pool purchases.
    #[serde(default)]
    pub pool_iops: Option<u64>,
    /// Throughput that is set for the volume.
    #[serde(default)]
    pub volume_throughput_bytes_per_second: Option<u64>,
    /// IOPS that are set for the volume.
    #[serde(default)]
    pub volume_iops: Option<u64>,
    /// Throughput limit of the volume; 0 if the wanted limits cannot be reached.
    pub limit_bytes_per_second: u64,
    /// IOPS limit of the volume, including bursts; absent if there is none.
    #[serde(default)]
    pub limit_iops: Option<u64>,
    /// IOPS without burst credits.
    #[serde(default)]
    pub base_iops: Option<u64>,
    /// For a quota: the requests in flight for the limits of this choice, if a latency is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// For a quota: the TCP window for the throughput limit, if a round trip was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<TcpWindow>,
    /// Reason why the wanted limits cannot be reached; empty if they can.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unreachable: String,
}

/// The requests in flight for a rate, by Little's law: operations per second × latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Concurrency {
    /// Operations per second.
    pub operations_per_second: u64,
    /// Size of each READ and WRITE.
    pub request_bytes: u64,
    /// Latency of each, without the wait for the contract.
    pub latency_nanos: u64,
    /// Requests in flight, over all clients.
    pub in_flight: u64,
    /// Ways to have as many.
    pub spreads: Vec<Spread>,
}

/// A distribution of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Spread {
    /// Number of clients.
    pub clients: u64,
    /// Connections of each client.
    pub connections: u64,
    /// Requests in flight on each connection.
    pub depth: u64,
    /// Whether the server admits as many on one connection: more than 512 are not read from it.
    pub admitted: bool,
}

/// The TCP window of each connection: its part of the rate × round trip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TcpWindow {
    /// Round trip.
    pub round_trip_nanos: u64,
    /// Connections over all clients.
    pub connections: u64,
    /// Bandwidth–delay product of a connection: bytes that are under way.
    pub window_bytes: u64,
    /// Size that the socket buffers need: twice the window, since Linux keeps up to half of a
    /// buffer for its own structures.
    pub buffer_bytes: u64,
    /// Largest receive buffer that the server's kernel gives a connection: the third number of
    /// `net.ipv4.tcp_rmem`. Limits WRITEs.
    #[serde(default)]
    pub server_receive_max_bytes: Option<u64>,
    /// Largest send buffer: the third number of `net.ipv4.tcp_wmem`. Limits READs.
    #[serde(default)]
    pub server_send_max_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_servers_that_tell_less_are_read() {
        let sizing: Sizing = serde_json::from_str(r#"{"choices":[]}"#).unwrap();
        assert_eq!((sizing.choices.len(), sizing.request_bytes), (0, 0));
        let choice = r#"{"qos":"auto","limit_bytes_per_second":7}"#;
        let choice: SizeChoice = serde_json::from_str(choice).unwrap();
        assert_eq!((choice.limit_bytes_per_second, choice.unreachable.as_str()), (7, ""));
    }
}
