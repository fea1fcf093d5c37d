//! The sessions of a gateway with the CephFS that its pools are on, with what the server and the
//! rules of a cluster ask of them. Without the feature `ceph` there are none.
//!
//! One set for each gateway, opened when it starts. Not here: calls of Ceph (`weir-ceph`), the
//! format of volumes (`weir-store`), when others are fenced (`weir-cluster`).

#[cfg(feature = "ceph")]
pub use with::{CephSessions, exit};
#[cfg(not(feature = "ceph"))]
pub use without::CephSessions;

/// Ends this process at once with `status`.
#[cfg(not(feature = "ceph"))]
pub(crate) fn exit(status: u8) -> ! {
    std::process::exit(status.into())
}

#[cfg(feature = "ceph")]
mod with {
    use crate::sync::Arc;
    use std::io;
    use std::path::Path;
    use std::time::Duration;
    use weir_catalog::{Ceph as Place, ClusterError, Condemned, Pool, Snapshot, Volume};
    use weir_cluster::SessionId;
    use weir_store::{Ceph, CephError, CephMonitors, CephOptions, Options, Removal, VolumeStore};

    /// Silence after which the metadata server takes what a session holds, seconds.
    const SESSION_SECONDS: u32 = 60;
    /// Longest wait for the cluster at the start, and for its monitors later, seconds.
    const CONNECT_SECONDS: u32 = 30;
    /// Time between two looks whether the sessions have ended.
    const LOOK: Duration = Duration::from_millis(20);

    /// Ends this process at once with `status`, and without the exit handlers of Ceph's libraries:
    /// they may wait for Ceph, and abort the process where a session has not ended.
    pub fn exit(status: u8) -> ! {
        weir_store::exit(status)
    }

    /// The sessions. Cheap to clone; all clones are the same.
    #[derive(Clone, Debug)]
    pub struct CephSessions(Arc<Sessions>);

    #[derive(Debug)]
    struct Sessions {
        place: Place,
        ceph: Ceph,
        monitors: CephMonitors,
    }

    impl CephSessions {
        /// Opens as many sessions as `mounts` with the CephFS at `place`, and one with its
        /// monitors. To be called before system calls are filtered. Blocks, and starts threads.
        ///
        /// # Errors
        /// [`CephError`], with what to do.
        pub fn connect(place: Place, mounts: usize) -> Result<Self, CephError> {
            weir_store::prepare_process().map_err(|error| CephError::Option(error.to_string()))?;
            let ceph = Ceph::connect(&CephOptions {
                conf: place.conf.clone(),
                user: place.user.clone(),
                file_system: None,
                top: "/".to_owned(),
                mounts,
                object_cache: true,
                session_seconds: SESSION_SECONDS,
                mount_seconds: CONNECT_SECONDS,
            })?;
            let monitors = CephMonitors::connect(&place.conf, &place.user, CONNECT_SECONDS)?;
            Ok(Self(Arc::new(Sessions { place, ceph, monitors })))
        }

        /// The CephFS.
        #[must_use]
        pub fn place(&self) -> &Place {
            &self.0.place
        }

        /// The addresses of the sessions, to stand beside this gateway's lease.
        ///
        /// # Errors
        /// The library's; `InvalidData` for an address of another form.
        pub fn ids(&self) -> io::Result<Vec<SessionId>> {
            let mut ids = Vec::new();
            for session in self.0.ceph.sessions()? {
                for address in session.single_addresses()? {
                    let other = |error| io::Error::new(io::ErrorKind::InvalidData, error);
                    ids.push(address.parse::<SessionId>().map_err(other)?);
                }
            }
            ids.sort_unstable();
            ids.dedup();
            Ok(ids)
        }

        /// Has Ceph refuse these sessions of another gateway for `time`. Gives the epoch from which
        /// that is in force. Blocks.
        ///
        /// # Errors
        /// The blocklist is not known to be in force. To be repeated.
        pub fn blocklist(&self, sessions: &[SessionId], time: Duration) -> io::Result<u64> {
            let addresses: Vec<_> = sessions.iter().map(ToString::to_string).collect();
            self.0.monitors.blocklist(&addresses, time)
        }

        /// Returns when a blocklist of this epoch is in force for whatever these sessions do next.
        /// Blocks until the monitors answer.
        ///
        /// # Errors
        /// A session has ended.
        pub fn wait_for_epoch(&self, epoch: u64) -> io::Result<()> {
            self.0.ceph.wait_for_epoch(epoch)
        }

        /// Returns when every blocklist that the monitors have is in force for whatever these
        /// sessions do next. Blocks until the monitors answer.
        ///
        /// # Errors
        /// A session has ended.
        pub fn wait_for_all_epochs(&self) -> io::Result<()> {
            self.0.ceph.fetch_map()
        }

        /// Has Ceph ended a session? Then this process has to end.
        #[must_use]
        pub fn is_lost(&self) -> bool {
            self.0.ceph.is_lost()
        }

        /// Ends the sessions, if this is the last clone: after the server has stopped and all that
        /// came from it is dropped. Blocks for at most `within`: a metadata server that does not
        /// answer, or refuses the sessions, is not waited for longer.
        pub fn end(self, within: Duration) {
            let Some(Sessions { ceph, monitors, .. }) = Arc::into_inner(self.0) else {
                tracing::warn!("the sessions with Ceph are still in use at the end");
                return;
            };
            let disconnect = move || {
                ceph.disconnect();
                drop(monitors);
            };
            let thread = std::thread::Builder::new().name("ceph-end".to_owned()).spawn(disconnect);
            let looks = within.as_millis() / LOOK.as_millis();
            let has_ended = thread.is_ok_and(|thread| {
                (0..looks).any(|_| {
                    std::thread::sleep(LOOK);
                    thread.is_finished()
                })
            });
            if !has_ended {
                tracing::warn!("the sessions with Ceph were not ended in order");
            }
        }

        /// Makes sure that `pool` is one of this catalogue.
        pub(crate) fn claim(&self, snapshot: &Snapshot, pool: &Pool) -> Result<(), String> {
            if let Some(asked) = pool.ceph.as_ref().filter(|asked| **asked != self.0.place) {
                let (ours, asked) = (self.0.place.clone(), asked.clone());
                return Err(ClusterError::OtherCeph { ours, asked }.to_string());
            }
            let path = text(&pool.directory)?;
            let claimed = weir_store::claim_pool(&self.0.ceph, path, snapshot.instance());
            claimed.map_err(|error| error.to_string())
        }

        /// Opens a volume in a pool that was claimed, and makes it if there is none.
        pub(crate) fn open(
            &self,
            snapshot: &Snapshot,
            config: &Volume,
            options: &Options,
        ) -> Result<VolumeStore, String> {
            self.settle(snapshot, config)?;
            let opened = VolumeStore::open_ceph(&self.0.ceph, text(&config.directory)?, options);
            opened.map_err(|error| error.to_string())
        }

        /// Puts the tree of a volume that was moved to another pool in its place.
        pub(crate) fn settle(&self, snapshot: &Snapshot, config: &Volume) -> Result<(), String> {
            let to = text(&config.directory)?;
            for from in snapshot.former_places(&self.0.place, config.id, &config.directory) {
                let moved = weir_store::move_volume(&self.0.ceph, text(&from)?, to);
                if moved.map_err(|error| error.to_string())? {
                    tracing::info!(volume = %config.name, to, "the files of a volume were moved");
                    break;
                }
            }
            Ok(())
        }

        /// Removes the image that an earlier move of a volume has left.
        pub(crate) fn clear_image(&self, config: &Volume) -> Result<(), String> {
            let cleared = weir_store::clear_handover(&self.0.ceph, text(&config.directory)?);
            cleared.map_err(|error| error.to_string())
        }

        /// Writes the image with which a volume moves.
        pub(crate) fn put_image(&self, config: &Volume, image: &[u8]) -> Result<(), String> {
            let put = weir_store::put_handover(&self.0.ceph, text(&config.directory)?, image);
            put.map_err(|error| error.to_string())
        }

        /// Takes the image with which a volume came, and at most one byte more than an image has.
        pub(crate) fn take_image(&self, config: &Volume) -> Result<Option<Vec<u8>>, String> {
            let (path, most) = (text(&config.directory)?, weir_handover::IMAGE_BYTES_MAX + 1);
            let taken = weir_store::take_handover(&self.0.ceph, path, most);
            taken.map_err(|error| error.to_string())
        }

        /// Are there trees of volumes in `pool`?
        pub(crate) fn holds_volumes(&self, pool: &Pool) -> io::Result<bool> {
            let path = text(&pool.directory).map_err(io::Error::other)?;
            weir_store::holds_volumes(&self.0.ceph, path).map_err(io::Error::other)
        }

        /// Removes a condemned tree, wherever it is. Tells whether all of it is gone.
        pub(crate) fn remove(
            &self,
            snapshot: &Snapshot,
            condemned: &Condemned,
            leaving: &dyn Fn() -> bool,
        ) -> io::Result<bool> {
            let (place, id) = (&self.0.place, condemned.volume);
            if condemned.ceph.as_ref() != Some(place) || snapshot.volume(id).is_some() {
                return Ok(false);
            }
            let now = condemned.directory.clone();
            let places = snapshot.former_places(place, id, &condemned.directory);
            for tree in std::iter::once(now).chain(places) {
                let no_pool = || io::Error::other("it is in no pool");
                let pool = tree.parent().and_then(Path::parent).ok_or_else(no_pool)?;
                let pool = (text(pool).map_err(io::Error::other)?, snapshot.instance());
                let tree = text(&tree).map_err(io::Error::other)?;
                let removed = weir_store::remove_volume(&self.0.ceph, pool, tree, leaving);
                if removed.map_err(io::Error::other)? == Removal::CutShort {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }

    /// A path of the catalogue, all of which are text.
    fn text(path: &Path) -> Result<&str, String> {
        path.to_str().ok_or_else(|| format!("the path {} is no text", path.display()))
    }
}

#[cfg(not(feature = "ceph"))]
mod without {
    use std::io;
    use weir_catalog::{Ceph as Place, Condemned, Pool, Snapshot, Volume};
    use weir_store::{Options, VolumeStore};

    /// Sessions, of which a build without the feature `ceph` has none.
    #[derive(Clone, Debug)]
    pub enum CephSessions {}

    impl CephSessions {
        pub(crate) fn place(&self) -> &Place {
            match *self {}
        }

        pub(crate) fn claim(&self, _: &Snapshot, _: &Pool) -> Result<(), String> {
            match *self {}
        }

        pub(crate) fn open(
            &self,
            _: &Snapshot,
            _: &Volume,
            _: &Options,
        ) -> Result<VolumeStore, String> {
            match *self {}
        }

        pub(crate) fn settle(&self, _: &Snapshot, _: &Volume) -> Result<(), String> {
            match *self {}
        }

        pub(crate) fn clear_image(&self, _: &Volume) -> Result<(), String> {
            match *self {}
        }

        pub(crate) fn put_image(&self, _: &Volume, _: &[u8]) -> Result<(), String> {
            match *self {}
        }

        pub(crate) fn take_image(&self, _: &Volume) -> Result<Option<Vec<u8>>, String> {
            match *self {}
        }

        pub(crate) fn holds_volumes(&self, _: &Pool) -> io::Result<bool> {
            match *self {}
        }

        pub(crate) fn remove(
            &self,
            _: &Snapshot,
            _: &Condemned,
            _: &dyn Fn() -> bool,
        ) -> io::Result<bool> {
            match *self {}
        }
    }
}
