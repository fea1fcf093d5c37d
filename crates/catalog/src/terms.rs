//! The terms of a volume: its settings beside its quota and its pool. Each of them is
//! a field here, with its columns and its bounds; nothing else in the catalogue lists them.

use crate::error::{CatalogError, CeilingOf, Result};
use crate::limits::{FILE_IOPS_MIN, FILE_RATE_MIN, IOPS_MAX, RATE_MAX};
use rusqlite::Row;
use weir_qos::contract::{self, Demand, Model, Qos};
use weir_qos::rate::{BytesPerSecond, Iops};
use weir_qos::shares::Share;
use weir_qos::{Ceiling, Limits};

/// The terms of a volume. `None` is the default of the pool's model, or no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The assigned rate, in pools that assign one. In a shared pool: the guaranteed minimum.
    pub throughput: Option<BytesPerSecond>,
    /// The assigned operations a second, in custom and provisioned-v2 pools. A custom pool's
    /// default is the share of its operations in proportion to the rate.
    pub iops: Option<Iops>,
    /// The weight relative to the other volumes of a shared pool.
    pub weight: Option<u32>,
    /// The most that the volume may use, independent of its contract.
    pub ceiling: Ceiling,
    /// The most that each of its files may use.
    pub file_ceiling: Ceiling,
    /// Whether names and attributes are cached in memory; `None` if the server's configuration
    /// decides.
    pub metadata_cache: Option<bool>,
}

/// A change of [`Terms`]: `None` keeps a term, `Some(None)` removes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TermsChange {
    /// The assigned rate. In a shared pool, zero removes the guaranteed minimum.
    pub throughput: Option<BytesPerSecond>,
    /// The assigned operations a second.
    pub iops: Option<Option<Iops>>,
    /// The weight.
    pub weight: Option<u32>,
    /// The ceiling of the rate.
    pub ceiling_rate: Option<Option<BytesPerSecond>>,
    /// The ceiling of the operations a second.
    pub ceiling_iops: Option<Option<Iops>>,
    /// The ceiling of the rate of each file.
    pub file_rate: Option<Option<BytesPerSecond>>,
    /// The ceiling of the operations a second of each file.
    pub file_iops: Option<Option<Iops>>,
    /// Whether names and attributes are cached in memory.
    pub metadata_cache: Option<Option<bool>>,
}

impl Terms {
    /// These terms after `change`.
    #[must_use]
    pub fn with(&self, change: &TermsChange) -> Self {
        Self {
            throughput: change.throughput.or(self.throughput),
            iops: change.iops.unwrap_or(self.iops),
            weight: change.weight.or(self.weight),
            ceiling: Ceiling {
                rate: change.ceiling_rate.unwrap_or(self.ceiling.rate),
                iops: change.ceiling_iops.unwrap_or(self.ceiling.iops),
            },
            file_ceiling: Ceiling {
                rate: change.file_rate.unwrap_or(self.file_ceiling.rate),
                iops: change.file_iops.unwrap_or(self.file_ceiling.iops),
            },
            metadata_cache: change.metadata_cache.unwrap_or(self.metadata_cache),
        }
    }

    /// A volume of these terms and this quota, for the arithmetic of contracts.
    pub(crate) const fn demand(&self, quota_bytes: u64) -> Demand {
        Demand { quota_bytes, rate: self.throughput, iops: self.iops }
    }

    /// The limits of a volume of these terms and this quota in `pool`.
    pub(crate) fn limits(&self, pool: &contract::Pool, quota_bytes: u64) -> Limits {
        pool.limits(self.demand(quota_bytes)).under(self.ceiling)
    }

    /// The terms of a volume of these terms and this quota when `old`, its pool, changes to the
    /// model `next`, or it moves to a pool of that model. Where both models assign a rate or
    /// operations, the volume keeps them.
    pub(crate) fn carried(&self, quota_bytes: u64, old: &contract::Pool, next: &Model) -> Self {
        let kept = *self;
        let rate = Some(old.given(self.demand(quota_bytes)).rate);
        let (throughput, iops) = match (&old.model, next) {
            (_, Model::Auto(_) | Model::ProvisionedV1) => (None, None),
            (Model::ProvisionedV2, Model::ProvisionedV2) => (kept.throughput, kept.iops),
            (_, Model::ProvisionedV2) => (None, None),
            (Model::Custom { .. }, Model::Custom { .. }) => (rate, kept.iops),
            (_, Model::Manual(_) | Model::Flexible { .. } | Model::Custom { .. }) => (rate, None),
            (_, Model::Shared(_)) => (rate, None),
        };
        let weight = kept.weight.filter(|_| matches!(next, Model::Shared(_)));
        Self { throughput, iops, weight, ..kept }
    }

    /// The columns of the table of volumes that hold the terms.
    pub(crate) fn columns(&self) -> [(&'static str, Option<u64>); 8] {
        // A guaranteed minimum of zero is none; other models refuse zero.
        let throughput = self.throughput.filter(|&rate| rate > BytesPerSecond::ZERO);
        [
            ("throughput", throughput.map(|rate| rate.0)),
            ("iops", self.iops.map(|iops| iops.0)),
            ("weight", self.weight.map(u64::from)),
            ("ceiling_throughput", self.ceiling.rate.map(|rate| rate.0)),
            ("ceiling_iops", self.ceiling.iops.map(|iops| iops.0)),
            ("file_throughput", self.file_ceiling.rate.map(|rate| rate.0)),
            ("file_iops", self.file_ceiling.iops.map(|iops| iops.0)),
            ("metadata_cache", self.metadata_cache.map(u64::from)),
        ]
    }

    /// The terms in a row with [`columns`](Self::columns).
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let rate = |name| row.get::<_, Option<u64>>(name).map(|rate| rate.map(BytesPerSecond));
        let iops = |name| row.get::<_, Option<u64>>(name).map(|iops| iops.map(Iops));
        Ok(Self {
            throughput: rate("throughput")?,
            iops: iops("iops")?,
            weight: row.get("weight")?,
            ceiling: Ceiling { rate: rate("ceiling_throughput")?, iops: iops("ceiling_iops")? },
            file_ceiling: Ceiling { rate: rate("file_throughput")?, iops: iops("file_iops")? },
            metadata_cache: row.get("metadata_cache")?,
        })
    }

    /// Checks the terms that do not depend on other volumes, for a pool of this name and model.
    pub(crate) fn check(&self, pool: &str, model: &Model) -> Result<()> {
        let rate = |of, rate: Option<BytesPerSecond>, least| {
            (of, rate.map(|rate| rate.0), least, RATE_MAX.0)
        };
        let iops = |of, iops: Option<Iops>, least| (of, iops.map(|iops| iops.0), least, IOPS_MAX.0);
        for (of, asked, least, max) in [
            rate(CeilingOf::VolumeRate, self.ceiling.rate, 1),
            iops(CeilingOf::VolumeIops, self.ceiling.iops, 1),
            rate(CeilingOf::FileRate, self.file_ceiling.rate, FILE_RATE_MIN.0),
            iops(CeilingOf::FileIops, self.file_ceiling.iops, FILE_IOPS_MIN.0),
        ] {
            if let Some(asked) = asked.filter(|asked| !(least..=max).contains(asked)) {
                return Err(CatalogError::CeilingBounds { of, asked, least, max });
            }
        }
        match self.weight {
            Some(_) if model.qos() != Qos::Shared => {
                Err(CatalogError::NotShared { pool: pool.to_owned(), qos: model.qos() })
            }
            Some(asked) if !(1..=Share::WEIGHT_MAX).contains(&asked) => {
                Err(CatalogError::Weight { asked, max: Share::WEIGHT_MAX })
            }
            _ => Ok(()),
        }
    }
}
