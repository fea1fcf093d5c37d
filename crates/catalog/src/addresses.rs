//! The addresses of a cluster, at which clients reach its volumes. The volumes of one address move
//! together between gateways: they are a group, whose number is that of the address.
//!
//! Not here: the gateway that has an address at the moment, which the records of the cluster say.

use crate::catalog::{Catalog, Mode, Outcome, Touched};
use crate::error::{CatalogError, ClusterError, Result, Thing};
use crate::members::{Address, InterfaceAddress};
use crate::model::Volume;
use crate::snapshot::Snapshot;
use rusqlite::params;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Deref;
use weir_cluster::GroupId;
use weir_cluster::timing::GROUPS_MAX;
use weir_core::PoolId;
use weir_qos::{BytesPerSecond, Iops};

/// Operations a second that weigh as much as 1 MiB/s: custom pools have so many of them by default.
const IOPS_PER_MIB: u64 = 16;

impl Catalog {
    /// Adds an address to the cluster, with a group of its own that has no volumes.
    ///
    /// # Errors
    /// `NotGateway`, `NameTaken`, `TooMany`; those of a change.
    pub fn add_address(&self, at: InterfaceAddress, mode: Mode) -> Result<Outcome> {
        self.check_gateway("an address for volumes")?;
        self.mutate(mode, |tx, now| {
            let (thing, max) = (Thing::Address, GROUPS_MAX);
            if now.address_at(at.ip).is_some() {
                return Err(CatalogError::NameTaken { thing, name: at.ip.to_string() });
            }
            if now.addresses().len() >= max {
                return Err(CatalogError::TooMany { thing, max });
            }
            let sql = "INSERT INTO addresses (address, prefix) VALUES (?1, ?2)";
            tx.execute(sql, params![at.ip.to_string(), at.prefix])?;
            let too_many = |_| CatalogError::TooMany { thing, max };
            u32::try_from(tx.last_insert_rowid()).map_err(too_many)?;
            Ok(Touched::Everything)
        })
    }

    /// Removes an address that no volume has. Its group comes to an end.
    ///
    /// # Errors
    /// `NotGateway`, `NoSuch`, `AddressInUse`; those of a change.
    pub fn remove_address(&self, ip: IpAddr, mode: Mode) -> Result<Outcome> {
        self.check_gateway("an address for volumes")?;
        self.mutate(mode, |tx, now| {
            let group = find(now, ip)?.group;
            let volumes = now.volumes_at(group).count();
            if volumes > 0 {
                let address = ip.to_string();
                return Err(ClusterError::AddressInUse { address, volumes }.into());
            }
            tx.execute("DELETE FROM addresses WHERE id = ?1", [group.0])?;
            Ok(Touched::Everything)
        })
    }

    /// The group of a new volume: that of the address asked for, or else of the address with the
    /// least weight. None without a cluster.
    pub(crate) fn group_for(
        &self,
        now: &Snapshot,
        asked: Option<IpAddr>,
    ) -> Result<Option<GroupId>> {
        match (self.cluster().is_some(), asked) {
            (false, None) => Ok(None),
            (_, Some(ip)) => {
                self.check_gateway("an address for a volume")?;
                Ok(Some(find(now, ip)?.group))
            }
            (true, None) => Ok(Some(lightest(&now.weights()).ok_or(ClusterError::NoAddress)?)),
        }
    }

    /// The group of `volume` when `asked` for. One that has an address keeps it: its home would
    /// have to hand the volume over alone.
    pub(crate) fn group_of(
        &self,
        now: &Snapshot,
        volume: &Volume,
        asked: Option<IpAddr>,
    ) -> Result<Option<GroupId>> {
        let Some(ip) = asked else { return Ok(volume.address) };
        self.check_gateway("an address for a volume")?;
        let group = find(now, ip)?.group;
        match volume.address {
            Some(has) if has != group => {
                let volume = volume.name.clone();
                Err(ClusterError::AddressKept { volume }.into())
            }
            _ => Ok(Some(group)),
        }
    }

    /// Refuses `what` on a server that is no gateway.
    pub(crate) fn check_gateway(&self, what: &'static str) -> Result<()> {
        match self.cluster() {
            Some(_) => Ok(()),
            None => Err(ClusterError::NotGateway { what }.into()),
        }
    }
}

fn find(now: &Snapshot, ip: IpAddr) -> Result<&Address> {
    let no_such = || CatalogError::NoSuch { thing: Thing::Address, name: ip.to_string() };
    now.address_at(ip).ok_or_else(no_such)
}

/// The group with the least weight; of several, the one with the least number.
pub(crate) fn lightest(weights: &BTreeMap<GroupId, u64>) -> Option<GroupId> {
    weights.iter().min_by_key(|(group, weight)| (**weight, **group)).map(|(group, _)| *group)
}

impl Snapshot {
    /// All addresses of the cluster, by group.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = &Address> {
        self.address_list().iter()
    }

    /// The address of a group.
    #[must_use]
    pub fn address(&self, group: GroupId) -> Option<&Address> {
        self.addresses().find(|address| address.group == group)
    }

    /// The address of the cluster that is `ip`.
    #[must_use]
    pub fn address_at(&self, ip: IpAddr) -> Option<&Address> {
        self.addresses().find(|address| address.at.ip == ip)
    }

    /// The volumes of one group, by id.
    pub fn volumes_at(&self, group: GroupId) -> impl Iterator<Item = &Volume> {
        self.volumes().map(Deref::deref).filter(move |volume| volume.address == Some(group))
    }

    /// The weight of each group, by which they are spread over the gateways: the sum of its
    /// volumes' weights. That of a volume is its rate in MiB/s and a sixteenth of its operations a
    /// second, each rounded up. They are what its contract gives it, under its ceiling and without
    /// bursts; operations that the contract does not count weigh nothing. In a shared pool the rate
    /// is its part of the budget by weight, or its guaranteed minimum if that is more.
    #[must_use]
    pub fn weights(&self) -> BTreeMap<GroupId, u64> {
        let mut weights: BTreeMap<_, u64> =
            self.addresses().map(|address| (address.group, 0)).collect();
        for (volume, weight) in self.weighed() {
            if let Some(sum) = volume.address.and_then(|group| weights.get_mut(&group)) {
                *sum = sum.saturating_add(weight);
            }
        }
        weights
    }

    /// All volumes with their weights, by id.
    pub(crate) fn weighed(&self) -> impl Iterator<Item = (&Volume, u64)> {
        let shares = self.shares_of_pools();
        self.volumes().map(move |volume| (&**volume, self.weight_among(volume, &shares)))
    }

    /// The sum of the weights of the volumes of each shared pool.
    fn shares_of_pools(&self) -> BTreeMap<PoolId, u64> {
        let mut sums = BTreeMap::new();
        for volume in self.volumes() {
            if let Some(share) = volume.share {
                *sums.entry(volume.pool).or_insert(0_u64) += u64::from(share.weight);
            }
        }
        sums
    }

    fn weight_among(&self, volume: &Volume, shares: &BTreeMap<PoolId, u64>) -> u64 {
        let Some(pool) = self.pool(volume.pool) else { return 1 };
        let given = pool.gives(volume);
        let rate = match (pool.shared_budget(), volume.share) {
            (Some(budget), Some(share)) => {
                let all = shares.get(&volume.pool).copied().unwrap_or(0).max(1);
                let part = u128::from(budget.rate.0) * u128::from(share.weight) / u128::from(all);
                BytesPerSecond(u64::try_from(part).unwrap_or(u64::MAX)).max(share.floor)
            }
            _ => given.rate,
        };
        let most = volume.limits.iops.unwrap_or(Iops(u64::MAX));
        let iops = given.burst.map(|burst| burst.base).or(given.iops).map(|iops| iops.min(most));
        let iops = iops.map_or(0, |iops| iops.0.div_ceil(IOPS_PER_MIB));
        rate.min(volume.limits.rate).0.div_ceil(1 << 20).saturating_add(iops).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_weights_the_first_group_is_chosen() {
        let weights = [(GroupId(1), 5), (GroupId(2), 3), (GroupId(3), 3)].into();
        assert_eq!(lightest(&weights), Some(GroupId(2)));
        assert_eq!(lightest(&BTreeMap::new()), None);
    }
}
