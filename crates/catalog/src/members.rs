//! The addresses and the gateways of a cluster as values, and their rows. Not here: changes of them
//! ([`crate::addresses`], [`crate::gateways`]).

use crate::error::{CatalogError, ClusterError, Result};
use rusqlite::Connection;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use weir_cluster::{GatewayId, GroupId};

/// Longest text of an address that an error repeats.
const TEXT_CHARS_MAX: usize = 64;

/// An address of a host with the length of its network's prefix: `10.0.0.5/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address.
    pub ip: IpAddr,
    /// The length of the prefix.
    pub prefix: u8,
}

/// An address of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The group of its volumes. Never used again after the address is removed.
    pub group: GroupId,
    /// The address, which no other group has.
    pub at: InterfaceAddress,
}

impl InterfaceAddress {
    /// An address that a gateway can have on an interface.
    ///
    /// # Errors
    /// `BadAddress` if hosts have no such addresses, or the prefix does not fit.
    pub fn new(ip: IpAddr, prefix: u8) -> Result<Self> {
        let address = Self { ip, prefix };
        let refused = |reason: &str| {
            let (address, reason) = (address.to_string(), reason.to_owned());
            Err(ClusterError::BadAddress { address, reason }.into())
        };
        let width: u8 = if ip.is_ipv4() { 32 } else { 128 };
        if !(1..=width).contains(&prefix) {
            return refused(&format!("the length of the prefix is from 1 to {width}"));
        }
        if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
            return refused("it is not the address of a host that others can reach");
        }
        match ip {
            IpAddr::V4(v4) => {
                let host = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
                let (is_none, is_all) =
                    (v4.to_bits() & host == 0, v4.to_bits() | !host == u32::MAX);
                if v4.is_link_local() || v4.is_broadcast() || prefix < 31 && (is_none || is_all) {
                    return refused(
                        "it is the address of a network, a broadcast or one link alone",
                    );
                }
            }
            IpAddr::V6(v6) if v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some() => {
                return refused("it is an address of one link alone, or of IPv4");
            }
            IpAddr::V6(_) => {}
        }
        Ok(address)
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}

impl FromStr for InterfaceAddress {
    type Err = CatalogError;

    /// `ADDRESS/PREFIX`, both as they are printed.
    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('/').and_then(|(ip, prefix)| {
            Some((ip.parse().ok()?, prefix.parse().ok().filter(|_| !prefix.starts_with('+'))?))
        });
        let Some((ip, prefix)) = parts else {
            let address = text.chars().take(TEXT_CHARS_MAX).collect();
            let reason = "use ADDRESS/PREFIX, such as 10.0.0.5/24".to_owned();
            return Err(ClusterError::BadAddress { address, reason }.into());
        };
        Self::new(ip, prefix)
    }
}

/// A gateway of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Never used again after the gateway is removed.
    pub id: GatewayId,
    /// Unique among gateways.
    pub name: String,
    /// The address at which other gateways reach it.
    pub links: SocketAddr,
    /// The address at which other gateways reach the helper on its machine.
    pub helper: SocketAddr,
}

/// The addresses in the database, by group.
pub(crate) fn load_addresses(db: &Connection) -> Result<Vec<Address>> {
    let mut query = db.prepare("SELECT id, address, prefix FROM addresses ORDER BY id")?;
    let mut rows = query.query([])?;
    let mut addresses = Vec::new();
    while let Some(row) = rows.next()? {
        let (group, text): (u32, String) = (row.get(0)?, row.get(1)?);
        let damaged = |what: String| CatalogError::Damaged(format!("address {text:?}: {what}"));
        let ip = text.parse().map_err(|_| damaged("it is not an address".to_owned()))?;
        let at =
            InterfaceAddress::new(ip, row.get(2)?).map_err(|error| damaged(error.to_string()))?;
        if at.ip.to_string() != text {
            return Err(damaged("it is not written as an address is".to_owned()));
        }
        addresses.push(Address { group: GroupId(group), at });
    }
    Ok(addresses)
}

/// The gateways in the database, by number.
pub(crate) fn load_gateways(db: &Connection) -> Result<Vec<Gateway>> {
    let mut query = db.prepare("SELECT id, name, links, helper FROM gateways ORDER BY id")?;
    let mut rows = query.query([])?;
    let mut gateways = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(1)?;
        let address = |column: usize| {
            let text: String = row.get(column)?;
            let damaged = |error| {
                CatalogError::Damaged(format!("gateway {name:?}: address {text:?}: {error}"))
            };
            text.parse::<SocketAddr>().map_err(damaged)
        };
        let (links, helper) = (address(2)?, address(3)?);
        gateways.push(Gateway { id: GatewayId(row.get(0)?), name, links, helper });
    }
    Ok(gateways)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_hosts() {
        for good in ["10.0.0.5/24", "192.0.2.1/32", "10.0.0.0/31", "fd00::5/64", "2001:db8::/64"] {
            assert_eq!(good.parse::<InterfaceAddress>().unwrap().to_string(), good);
        }
        let refused = [
            "10.0.0.5",
            "10.0.0.5/",
            "10.0.0.5/0",
            "10.0.0.5/33",
            "10.0.0.5/+24",
            "x/24",
            "10.0.0.0/24",
            "10.0.0.255/24",
            "0.0.0.0/8",
            "127.0.0.1/8",
            "224.0.0.1/4",
            "255.255.255.255/32",
            "169.254.1.1/16",
            "::/64",
            "::1/128",
            "fe80::1/64",
            "ff02::1/16",
            "::ffff:10.0.0.5/120",
            "fd00::5/129",
        ];
        for text in refused {
            let error = text.parse::<InterfaceAddress>().unwrap_err();
            assert_eq!(error.code(), "bad_address", "{text}");
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
