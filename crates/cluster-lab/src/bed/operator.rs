//! The operator's actions through the API of one gateway.

use super::network::with_prefix;
use anyhow::{Context, Result};
use std::future::Future;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use weir_api::{
    Access, Address, AuditQuery, CephFs, Client, ClientError, Dry, ExportRule, Gateway, Gateways,
    NewAddress, NewPool, NewVolume, Qos, Squash, TermsChange, VolumeChange,
};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// Size of a pool: its level gives it 4 GiB/s, more than the contracts of any campaign.
const POOL_BYTES: u64 = 256 * 1024 * GIB;
/// Quota of a new volume.
const QUOTA_BYTES: u64 = 100 * GIB;
/// Longest time until the API comes up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of one gateway's API that waits for each answer.
#[derive(Debug)]
pub(crate) struct Operator {
    runtime: Runtime,
    client: Client,
}

impl Operator {
    /// A client of the gateway with this data directory, as soon as its API answers. `still_runs`
    /// is asked before each attempt.
    ///
    /// # Errors
    /// If it does not answer in time; and those of `still_runs`.
    pub(super) fn connect(data: &Path, mut still_runs: impl FnMut() -> Result<()>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let operator = Self { runtime, client: Client::local(data) };
        let begun = Instant::now();
        loop {
            still_runs()?;
            match operator.runtime.block_on(operator.client.server()) {
                Ok(_) => return Ok(operator),
                Err(error) if begun.elapsed() > PATIENCE => return Err(error.into()),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Makes a pool on CephFS whose volumes have a throughput each.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn create_pool(&self, name: &str, conf: &Path, directory: &str) -> Result<()> {
        let new = NewPool {
            name: name.to_owned(),
            level: "standard".to_owned(),
            size_bytes: POOL_BYTES,
            qos: Qos::Manual,
            directory: Some(directory.to_owned()),
            ceph: Some(CephFs {
                conf: conf.to_string_lossy().into_owned(),
                user: "admin".to_owned(),
            }),
            ..NewPool::default()
        };
        self.done(self.client.create_pool(&new, Dry::No), || format!("making the pool {name}"))
    }

    /// Adds an address to the cluster.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn add_address(&self, address: Ipv4Addr) -> Result<()> {
        let new = NewAddress { address: with_prefix(address) };
        self.done(self.client.add_address(&new, Dry::No), || format!("adding {address}"))
    }

    /// Makes a volume at an address, and exports it to everybody.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn create_volume(
        &self,
        (name, pool): (&str, &str),
        address: Ipv4Addr,
        mibps: u64,
    ) -> Result<()> {
        let terms = TermsChange {
            throughput_bytes_per_second: Some(mibps * MIB),
            ..TermsChange::default()
        };
        let new = NewVolume {
            name: name.to_owned(),
            pool: pool.to_owned(),
            quota_bytes: QUOTA_BYTES,
            address: Some(address.to_string()),
            terms,
            ..NewVolume::default()
        };
        self.done(self.client.create_volume(&new, Dry::No), || format!("making {name}"))?;
        let rule = ExportRule {
            network: "0.0.0.0/0".to_owned(),
            access: Access::ReadWrite,
            squash: Squash::None,
            anon_uid: 65534,
            anon_gid: 65534,
        };
        self.done(self.client.add_export(name, &rule, Dry::No), || format!("exporting {name}"))
    }

    /// Asks for a change of the catalogue: the volume gets a little more quota.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn change(&self, volume: &str) -> Result<(), ClientError> {
        let now = self.runtime.block_on(self.client.volume(volume))?.quota_bytes;
        // More of it: a gateway that does not know how much is used refuses less.
        let quota_bytes = Some(now + MIB);
        let change = VolumeChange { quota_bytes, ..VolumeChange::default() };
        self.runtime.block_on(self.client.change_volume(volume, &change, Dry::No)).map(drop)
    }

    /// The time of the newest record of the audit log, in RFC 3339.
    ///
    /// # Errors
    /// In the server's own words, or if there is no record.
    pub(crate) fn last_audited(&self) -> Result<String> {
        let (mut query, mut last) = (AuditQuery::default(), None);
        loop {
            let page = self.runtime.block_on(self.client.audit(&query));
            let page = page.context("reading the audit log")?;
            last = page.items.last().map(|record| record.time.clone()).or(last);
            if !page.more {
                return last.context("the audit log has no record");
            }
            query.after = Some(page.next);
        }
    }

    /// Moves a volume, with its address, to a gateway. Returns before it has moved.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn move_home(&self, volume: &str, gateway: &str) -> Result<()> {
        let moving = self.client.move_home(volume, gateway);
        self.done(moving, || format!("moving {volume} to {gateway}"))
    }

    /// The names of all volumes with their quotas in bytes.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn quotas(&self) -> Result<Vec<(String, u64)>> {
        let all = self.runtime.block_on(self.client.volumes()).context("listing the volumes")?;
        Ok(all.into_iter().map(|volume| (volume.name, volume.quota_bytes)).collect())
    }

    /// Moves all addresses away from a gateway. Returns before they have moved.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn drain(&self, gateway: &str) -> Result<()> {
        self.done(self.client.drain_gateway(gateway), || format!("draining {gateway}"))
    }

    /// Takes a drain back.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn undrain(&self, gateway: &str) -> Result<()> {
        self.done(self.client.undrain_gateway(gateway), || format!("undraining {gateway}"))
    }

    /// All gateways.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn gateways(&self) -> Result<Vec<Gateway>> {
        self.runtime.block_on(self.client.gateways()).context("listing the gateways")
    }

    /// Does the gateway of this name answer the one that is asked, which collects the metrics of
    /// all?
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub(crate) fn reaches(&self, gateway: &str) -> Result<bool> {
        let all = self.client.metrics_of(Gateways::All);
        let text = self.runtime.block_on(all).context("asking for the metrics of all gateways")?;
        Ok(text.contains(&format!("weir_gateway_up{{gateway=\"{gateway}\"}} 1")))
    }

    /// All addresses.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn addresses(&self) -> Result<Vec<Address>> {
        self.runtime.block_on(self.client.addresses()).context("listing the addresses")
    }

    fn done<T>(
        &self,
        request: impl Future<Output = Result<T, ClientError>>,
        doing: impl FnOnce() -> String,
    ) -> Result<()> {
        self.runtime.block_on(request).with_context(doing).map(drop)
    }
}
