//! The gateways of a cluster as its operator names them, and the places where others reach them.
//!
//! Not here: whether a gateway is alive, and the volumes that it serves, which the records of the
//! cluster say; and how a gateway opens the catalogue, which is in `gateway`.

use crate::catalog::{Catalog, Mode, Outcome, Touched};
use crate::error::{CatalogError, ClusterError, Result, Thing};
use crate::members::Gateway;
use crate::names;
use crate::snapshot::Snapshot;
use rusqlite::params;
use std::net::SocketAddr;
use weir_cluster::GatewayId;
use weir_cluster::timing::GATEWAYS_MAX;

/// A gateway to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGateway {
    /// The gateway's name.
    pub name: String,
    /// The address at which other gateways reach it.
    pub links: SocketAddr,
    /// The address at which other gateways reach the helper on its machine.
    pub helper: SocketAddr,
}

impl Catalog {
    /// Adds a gateway to the cluster, which gets a number that no gateway had.
    ///
    /// # Errors
    /// `NotGateway`, `BadName`, `NameTaken`, `TooMany`, `BadAddress`, `GatewayAddressTaken`; those
    /// of a change.
    pub fn add_gateway(&self, new: &NewGateway, mode: Mode) -> Result<Outcome> {
        self.check_gateway("another gateway")?;
        let thing = Thing::Gateway;
        names::check(thing, &new.name)?;
        for address in [new.links, new.helper] {
            check_reachable(address)?;
        }
        self.mutate(mode, |tx, now| {
            if now.gateway_named(&new.name).is_some() {
                return Err(CatalogError::NameTaken { thing, name: new.name.clone() });
            }
            if now.gateways().len() >= GATEWAYS_MAX {
                return Err(CatalogError::TooMany { thing, max: GATEWAYS_MAX });
            }
            let taken = |address: SocketAddr, by: &str| {
                let (address, gateway) = (address.to_string(), by.to_owned());
                Err(ClusterError::GatewayAddressTaken { address, gateway }.into())
            };
            if new.links == new.helper {
                return taken(new.links, &new.name);
            }
            let places = now.gateways().flat_map(|one| [(one.links, one), (one.helper, one)]);
            for (address, other) in places {
                if [new.links, new.helper].contains(&address) {
                    return taken(address, &other.name);
                }
            }
            let sql = "INSERT INTO gateways (name, links, helper) VALUES (?1, ?2, ?3)";
            tx.execute(sql, params![new.name, new.links.to_string(), new.helper.to_string()])?;
            let too_many = |_| CatalogError::TooMany { thing, max: u16::MAX.into() };
            u16::try_from(tx.last_insert_rowid()).map_err(too_many)?;
            Ok(Touched::Everything)
        })
    }

    /// Removes a gateway from the catalogue. The records of the cluster are asked first: they know
    /// whether it has ended.
    ///
    /// # Errors
    /// `NotGateway`, `NoSuch`; those of a change.
    pub fn remove_gateway(&self, name: &str, mode: Mode) -> Result<Outcome> {
        self.check_gateway("removing a gateway")?;
        self.mutate(mode, |tx, now| {
            let no_such =
                || CatalogError::NoSuch { thing: Thing::Gateway, name: names::printable(name) };
            let gateway = now.gateway_named(name).ok_or_else(no_such)?;
            tx.execute("DELETE FROM gateways WHERE id = ?1", [gateway.id.0])?;
            Ok(Touched::Everything)
        })
    }
}

/// Checks that other machines can connect to `address`.
fn check_reachable(address: SocketAddr) -> Result<()> {
    let ip = address.ip();
    if address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() {
        return Ok(());
    }
    let reason = "other gateways must be able to connect to it: use ADDRESS:PORT".to_owned();
    Err(ClusterError::BadAddress { address: address.to_string(), reason }.into())
}

impl Snapshot {
    /// All gateways of the cluster, by number.
    pub fn gateways(&self) -> impl ExactSizeIterator<Item = &Gateway> {
        self.gateway_list().iter()
    }

    /// The gateway with this number.
    #[must_use]
    pub fn gateway(&self, id: GatewayId) -> Option<&Gateway> {
        self.gateways().find(|gateway| gateway.id == id)
    }

    /// The gateway of this name.
    #[must_use]
    pub fn gateway_named(&self, name: &str) -> Option<&Gateway> {
        self.gateways().find(|gateway| gateway.name == name)
    }
}
