//! Volumes that move from one server to another with their locks.

use super::Tables;
use crate::ask::Grant;
use crate::error::Refused;
use crate::moving::VolumeLocks;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use weir_core::{Mono, VolumeId};

impl<W> Tables<W> {
    /// Ends the table of `volume` as [`Self::close`] does, and gives what owners with names have in
    /// it. A grant that its client has not answered yet goes as the lock that it is.
    pub fn hand_over(&mut self, now: Mono, volume: VolumeId) -> VolumeLocks<W> {
        let Self { volumes, books } = self;
        let mut moving = VolumeLocks::default();
        if let Some(mut table) = volumes.remove(&volume) {
            table.hand_over(&mut moving, books);
            table.release_all(books);
        }
        moving.grace = books.grace.leave(now, volume);
        moving
    }

    /// Takes up what another server handed over, into the table of `volume`, which is open and
    /// empty. Requests that wait for something that is free are granted. After an error the table
    /// is empty again.
    ///
    /// # Errors
    /// [`Refused::Full`] if it is too much beside what is here; [`Refused::Held`] and
    /// [`Refused::Shared`] if it contradicts itself; [`Refused::NoVolume`].
    pub fn take_up(
        &mut self,
        now: Mono,
        volume: VolumeId,
        moving: VolumeLocks<W>,
        grants: &mut Vec<Grant<W>>,
    ) -> Result<(), Refused> {
        let Self { volumes, books } = self;
        let table = volumes.get_mut(&volume).ok_or(Refused::NoVolume)?;
        let VolumeLocks { locks, shares, waits, grace } = moving;
        let taken = table.take_up((locks, shares, waits), books, grants);
        if taken.is_err() {
            table.release_all(books);
            return taken;
        }
        if let Some(left) = grace {
            books.grace.go_on(now + left.time, BTreeSet::from([volume]), left.clients);
        }
        Ok(())
    }
}
