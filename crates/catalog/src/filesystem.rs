//! The file systems under the pools, with their capacity and its commitment by contracts.

use crate::calibration::Calibration;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_core::PoolId;
use weir_qos::admission::{Committed, Holds};

/// A file system with pools on it, or one that was calibrated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filesystem {
    /// The directory of its calibration, or else that of its first pool.
    pub directory: PathBuf,
    /// The pools there, by id.
    pub pools: Vec<PoolId>,
    /// The commitment of the contracts for good: of shared pools their budget, of the others the
    /// limits of their volumes.
    pub committed: Committed,
    /// The capacity by the plan, as far as it was measured.
    pub holds: Holds,
    /// The part of the capacity that may be committed.
    pub allowed: Holds,
    /// The measurement.
    pub calibration: Option<Arc<Calibration>>,
    pub(crate) place: Place,
}

/// The identity of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The kernel's device number.
    Device(u64),
    /// The file system isn't there: this pool is all that is known of it.
    Away(PoolId),
}

impl Filesystem {
    /// Do contracts there promise more than may be?
    #[must_use]
    pub fn is_overcommitted(&self) -> bool {
        let Holds { rate, iops } = self.allowed;
        rate.is_some_and(|allowed| self.committed.rate() > allowed)
            || iops.is_some_and(|allowed| self.committed.iops() > allowed)
    }

    pub(crate) fn new(place: Place, directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            pools: Vec::new(),
            committed: Committed::default(),
            holds: Holds::default(),
            allowed: Holds::default(),
            calibration: None,
            place,
        }
    }
}
