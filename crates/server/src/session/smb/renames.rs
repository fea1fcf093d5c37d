//! Renames of files and directories, as the opens of all sessions see them.
//!
//! The tables of all protocols say which opens there are. They are read in parts: other requests
//! have them between two parts, and other connections of the worker have their turn.

use super::server::SmbServer;
use super::sums::SumAccount;
use super::user_session::FileOpen;
use crate::engine::ServedVolume;
use crate::sync::{Arc, Ordering, lock};
use crate::worker::give_way;
use weir_smb::open::Renamed;
use weir_state::{Client, File, OpenId};
use weir_store::VolumeObject;

/// Opens that are looked at before others have their turn.
const OPENS_TURN_MAX: usize = 256;

impl SmbServer {
    /// The number of renames so far, counted before they are applied to opens.
    pub(super) fn renames(&self) -> u64 {
        self.renames.load(Ordering::Acquire)
    }

    /// Counts a rename of `file` in `volume`, and applies it to the opens of the file in all
    /// sessions, and to the name by which the file is to be deleted. The names of the file are
    /// locked. `paths` is the account of the client that renames.
    pub(super) async fn apply_rename(
        &self,
        volume: &ServedVolume,
        file: &File,
        renamed: &Renamed<'_, VolumeObject>,
        paths: &SumAccount,
    ) {
        self.renames.fetch_add(1, Ordering::AcqRel);
        let mut after = OpenId(0);
        loop {
            let opens: Vec<(OpenId, Client)> = {
                let tables = volume.locks.tables_when_free().await;
                let opens = tables.opens_at(file, after).take(OPENS_TURN_MAX);
                opens.map(|(id, client)| (id, client.clone())).collect()
            };
            for (id, client) in &opens {
                if let Some(open) = self.open_of(client, *id) {
                    open.apply_rename(volume.unsynced(), renamed, paths);
                }
            }
            match opens.last() {
                Some((last, _)) if opens.len() == OPENS_TURN_MAX => after = *last,
                _ => break,
            }
            give_way().await;
        }
        // An open that was closed in the tables before the rename reached it left the old name.
        lock(&self.deletes).apply_rename(volume.unsynced(), file, renamed);
    }

    /// Does any session have an open below the directory at `path` of `volume`? This looks at the
    /// opens of all volumes: renames of directories are rare, and a table of opens by directory
    /// would cost each CREATE.
    pub(super) async fn any_open_below(&self, volume: &ServedVolume, path: &[u8]) -> bool {
        let mut after = OpenId(0);
        loop {
            let opens: Vec<_> = {
                let tables = volume.locks.tables_when_free().await;
                tables.opens(after).take(OPENS_TURN_MAX).collect()
            };
            let inside = opens.iter().filter(|open| open.file.volume == volume.id);
            let mut known = inside.filter_map(|open| self.open_of(&open.client, open.id));
            if known.any(|open| open.is_below(path)) {
                return true;
            }
            match opens.last() {
                Some(last) if opens.len() == OPENS_TURN_MAX => after = last.id,
                _ => return false,
            }
            give_way().await;
        }
    }

    /// The open of this number, until it is closed in the tables. `None` also for a client of
    /// another protocol.
    fn open_of(&self, client: &Client, open: OpenId) -> Option<Arc<FileOpen>> {
        self.holder(Self::session_id(client)?)?.numbered(open)
    }
}
