//! The credits for bursts that volumes have left, as the server last kept them. They are no part of
//! a snapshot: they change with every request, and nothing is decided by them here.

use crate::catalog::Catalog;
use crate::error::Result;
use rusqlite::params;
use std::collections::{BTreeMap, BTreeSet};
use weir_core::VolumeId;

impl Catalog {
    /// The credits that were kept, of volumes that had some to keep.
    ///
    /// # Errors
    /// `Database`.
    pub fn credits(&self) -> Result<BTreeMap<VolumeId, u64>> {
        self.read(|db| {
            let mut query = db.prepare("SELECT volume, credits FROM credits")?;
            let rows = query.query_map([], |row| Ok((VolumeId(row.get(0)?), row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Keeps these credits in the place of those that were kept. A volume that isn't among them has
    /// none to keep, and would have its full credits at birth; one that has been deleted is left
    /// out.
    ///
    /// # Errors
    /// `Database`.
    pub fn keep_credits(&self, left: &BTreeMap<VolumeId, u64>) -> Result<()> {
        self.write(|tx| {
            tx.execute("DELETE FROM credits", [])?;
            let mut insert =
                tx.prepare("INSERT INTO credits SELECT id, ?2 FROM volumes WHERE id = ?1")?;
            for (volume, credits) in left {
                insert.execute(params![volume.0, credits])?;
            }
            Ok(())
        })
    }

    /// Keeps these credits of the volumes `of`, in the place of those that were kept of them: for
    /// one of several gateways, which has some of the volumes alone. What is kept of other volumes
    /// stays. A volume of `of` that isn't in `left` has none to keep.
    ///
    /// # Errors
    /// `Database`; of the cluster `Unreachable`, `Overtaken`.
    pub fn keep_credits_of(
        &self,
        of: &BTreeSet<VolumeId>,
        left: &BTreeMap<VolumeId, u64>,
    ) -> Result<()> {
        self.write(|tx| {
            let mut delete = tx.prepare("DELETE FROM credits WHERE volume = ?1")?;
            let mut insert = tx.prepare(
                "INSERT INTO credits SELECT id, ?2 FROM volumes WHERE id = ?1
                 ON CONFLICT (volume) DO UPDATE SET credits = excluded.credits",
            )?;
            for volume in of {
                match left.get(volume) {
                    Some(credits) => insert.execute(params![volume.0, credits])?,
                    None => delete.execute([volume.0])?,
                };
            }
            Ok(())
        })
    }
}
