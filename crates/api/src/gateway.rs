//! Gateways of a cluster, the addresses at which clients reach its volumes, and the homes of
//! volumes.

use crate::words::GatewayState;
use serde::{Deserialize, Serialize};

/// A gateway of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Gateway {
    /// Name.
    pub name: String,
    /// Number, never reused after a removal.
    pub number: u16,
    /// Address and port at which other gateways reach it.
    pub links: String,
    /// Address and port at which other gateways reach the helper on its machine.
    pub helper: String,
    /// State.
    pub state: GatewayState,
    /// Number of its latest life, counted in starts of its process; absent if it was never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<u32>,
    /// The newest version of the cluster that its program knows, as of its latest start. A version
    /// is one of records and formats, not of a release. Absent if no life of it is a member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u16>,
    /// Addresses that it serves.
    pub addresses: Vec<String>,
    /// Number of volumes that it serves.
    pub volumes: usize,
    /// Sum of the weights of these addresses.
    pub weight: u64,
}

/// The state of a gateway, in the health of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GatewayHealth {
    /// Name.
    pub name: String,
    /// State.
    pub state: GatewayState,
    /// Number of volumes that it serves; absent if it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes_served: Option<usize>,
    /// Why it does not answer; absent if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_answer: Option<String>,
    /// The fault for which the cluster is not ready; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A gateway that is missing in an answer for all gateways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MissingGateway {
    /// Name.
    pub gateway: String,
    /// Why it did not answer.
    pub reason: String,
}

/// An address of a cluster. Its volumes move together between gateways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Address {
    /// Address, such as `10.0.0.5`.
    pub address: String,
    /// Length of the network's prefix.
    pub prefix: u8,
    /// Number of the group of its volumes, never reused after a removal.
    pub group: u32,
    /// Name of the gateway that serves it; absent if none does at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// Name of the gateway that it is moving to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving_to: Option<String>,
    /// Names of its volumes.
    pub volumes: Vec<String>,
    /// Sum of the contracts of its volumes, for placement: of each volume MiB/s and a sixteenth of
    /// the IOPS, rounded up.
    pub weight: u64,
    /// Etag of the address, for `If-Match` (in quotes there). It changes with its configuration and
    /// its volumes, not with the gateway.
    #[serde(default)]
    pub etag: String,
}

/// An address to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAddress {
    /// Address with the length of the network's prefix, such as `10.0.0.5/24`.
    pub address: String,
}

/// The gateway that serves a volume of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VolumeHome {
    /// Name of the volume.
    pub volume: String,
    /// Its address, such as `10.0.0.5`.
    pub address: String,
    /// Name of the gateway that serves it; absent if none does at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// Name of the gateway that it is moving to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving_to: Option<String>,
    /// Names of the other volumes of the address, which move with it.
    pub moves_with: Vec<String>,
}

/// A change of the gateway that serves a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HomeChange {
    /// Name of the gateway.
    pub gateway: String,
}
