//! The load of a volume: its operations, its clients, its kind.

use crate::words::LoadKind;
use serde::{Deserialize, Serialize};

/// The load of a volume over the last 10 to 15 s; less if it began later. In the first 5 s it has
/// no rates, no kinds and no clients yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Load {
    /// Length of the period, in seconds.
    pub seconds: f64,
    /// Kinds of the load; empty for a load without a weak point, or of fewer than 10
    /// operations per second.
    pub kinds: Vec<LoadKind>,
    /// Operations answered, per second.
    pub operations_per_second: f64,
    /// Fraction of the operations that are no READ, WRITE, COMMIT or FLUSH.
    pub metadata_share: f64,
    /// Mean size of READs and WRITEs, bytes; absent if there were none.
    #[serde(default)]
    pub mean_request_bytes: Option<u64>,
    /// Size below which READs and WRITEs count as small: the size at which the throughput limit and
    /// the IOPS limit are reached together, or 16 KiB and a byte without an IOPS limit.
    pub small_below_bytes: u64,
    /// Mean number of requests of all operations in the server, including those that wait for the
    /// contract.
    pub in_flight: f64,
    /// Fraction of the operations that the busiest connection has.
    pub busiest_connection_share: f64,
    /// Fraction of the READs and WRITEs that are for one file, at least.
    pub one_file_share: f64,
    /// The operations by protocol and name, the most frequent first.
    pub operations: Vec<OperationRate>,
    /// Number of clients with open connections that had operations on the volume.
    pub clients_total: u64,
    /// Number of these connections.
    pub connections_total: u64,
    /// The 32 clients with the most operations, the most first.
    pub clients: Vec<ClientLoad>,
}

/// Rate of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OperationRate {
    /// Protocol: `nfs3`, `nfsacl` or `smb`.
    pub protocol: String,
    /// Name in the protocol's standard, such as `GETATTR`.
    pub operation: String,
    /// Requests answered, per second, including those with an error status.
    pub per_second: f64,
    /// Requests answered with an error status, per second.
    pub errors_per_second: f64,
}

/// Load of one client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClientLoad {
    /// Address.
    pub address: String,
    /// Protocol: `nfs` or `smb`.
    pub protocol: String,
    /// Number of open connections with operations on the volume.
    pub connections: u64,
    /// Operations answered, per second.
    pub operations_per_second: f64,
    /// Bytes moved by READs and WRITEs, per second.
    pub bytes_per_second: u64,
}
