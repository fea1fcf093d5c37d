//! The hosts that hold locks, kept across a crash so that they can be notified of it, and the
//! number by which they tell one life of the server from the next (NSM; X/Open XNFS, chapter 11).

use crate::catalog::Catalog;
use crate::error::{CatalogError, Result};
use rusqlite::params;
use std::net::IpAddr;

/// A host that holds locks or did when the server stopped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MonitoredHost {
    /// The host's address.
    pub address: IpAddr,
    /// The host's name for itself.
    pub name: Vec<u8>,
    /// The address of ours that it knows us by.
    pub local: IpAddr,
}

impl Catalog {
    /// Begins a new life of the server: its state number, odd because it is up, and unlike that of
    /// any life before. On disk when it returns.
    ///
    /// # Errors
    /// `Database`.
    pub fn next_nsm_state(&self) -> Result<u32> {
        self.write(|db| {
            // Odd numbers below 2^31, over and over.
            let next = "UPDATE nsm SET state = (state + 2) & 0x7fffffff RETURNING state";
            Ok(db.query_row(next, [], |row| row.get(0))?)
        })
    }

    /// Every monitored host.
    ///
    /// # Errors
    /// `Database`, `Damaged`.
    pub fn monitored_hosts(&self) -> Result<Vec<MonitoredHost>> {
        self.read(|db| {
            let mut query = db.prepare("SELECT address, name, local FROM monitored_hosts")?;
            let mut rows = query.query([])?;
            let mut hosts = Vec::new();
            while let Some(row) = rows.next()? {
                let ip = |column| {
                    let text: String = row.get(column)?;
                    text.parse()
                        .map_err(|_| CatalogError::Damaged(format!("{text:?}: not an address")))
                };
                hosts.push(MonitoredHost { address: ip(0)?, name: row.get(1)?, local: ip(2)? });
            }
            Ok(hosts)
        })
    }

    /// Remembers `host`; on disk when it returns.
    ///
    /// # Errors
    /// `Database`.
    pub fn monitor_host(&self, host: &MonitoredHost) -> Result<()> {
        self.monitor_hosts(core::slice::from_ref(host))
    }

    /// Remembers `hosts`; all are on disk when it returns.
    ///
    /// # Errors
    /// `Database`.
    pub fn monitor_hosts(&self, hosts: &[MonitoredHost]) -> Result<()> {
        self.write(|db| {
            let put = "INSERT OR IGNORE INTO monitored_hosts VALUES (?1, ?2, ?3)";
            let mut put = db.prepare(put)?;
            for host in hosts {
                let (address, local) = (host.address.to_string(), host.local.to_string());
                put.execute(params![address, host.name, local])?;
            }
            Ok(())
        })
    }

    /// Forgets these hosts.
    ///
    /// # Errors
    /// `Database`.
    pub fn forget_hosts(&self, hosts: &[MonitoredHost]) -> Result<()> {
        self.write(|db| {
            let mut delete = db.prepare(
                "DELETE FROM monitored_hosts WHERE address = ?1 AND name = ?2 AND local = ?3",
            )?;
            for host in hosts {
                let (address, local) = (host.address.to_string(), host.local.to_string());
                delete.execute(params![address, host.name, local])?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_the_state_number_survive() {
        let base = tempfile::tempdir().unwrap();
        let host = |address: &str, name: &[u8]| MonitoredHost {
            address: address.parse().unwrap(),
            name: name.to_vec(),
            local: "10.0.0.1".parse().unwrap(),
        };
        let (one, odd) = (host("10.0.0.2", b"one"), host("::1", b"\xff\0odd"));
        {
            let catalog = Catalog::open(base.path()).unwrap();
            assert_eq!(catalog.next_nsm_state().unwrap(), 1);
            assert!(catalog.monitored_hosts().unwrap().is_empty());
            for host in [&one, &odd, &one, &host("10.0.0.2", b"two")] {
                catalog.monitor_host(host).unwrap();
            }
            catalog.forget_hosts(&[host("10.0.0.2", b"two")]).unwrap();
        }
        let catalog = Catalog::open(base.path()).unwrap();
        assert_eq!(catalog.next_nsm_state().unwrap(), 3);
        let mut hosts = catalog.monitored_hosts().unwrap();
        hosts.sort();
        assert_eq!(hosts, [one, odd]);
    }

    #[test]
    fn the_state_number_stays_odd_where_it_wraps() {
        let base = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(base.path()).unwrap();
        let last = "UPDATE nsm SET state = 0x7fffffff";
        catalog.write(|db| Ok(db.execute(last, []).map(drop)?)).unwrap();
        assert_eq!(catalog.next_nsm_state().unwrap(), 1);
    }
}
