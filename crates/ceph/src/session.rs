//! [`Ceph`]: the sessions of this process with one CephFS. Volumes are dealt to them.
//!
//! Libcephfs has one lock for each mount, so a process with many volumes wants several. A volume
//! stays on the mount that it was dealt to: two mounts are two clients to the cluster, and wait
//! seconds for each other's capabilities where both use one file. Not here: what a volume is.

use crate::LibraryError;
use crate::ffi::CephFs;
use crate::monitors::addresses_of;
use crate::mount::Mount;
use crate::sync::{Arc, AtomicU64, AtomicUsize, Mutex, Relaxed, sleep};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// Fewest mounts of one process: a volume has one, and needs [another](Dealt::other).
pub const MOUNTS_MIN: usize = 2;
/// Most mounts of one process: each has threads, a cache, and sessions with monitors, metadata
/// servers and OSDs.
pub const MOUNTS_MAX: usize = 64;

/// Time between two looks at whether all objects were released.
const LOOK: Duration = Duration::from_millis(1);
/// Longest wait for objects to be released. They are given back by threads of the pool, which may
/// hang where the cluster does.
const LOOKS_MAX: u32 = 10_000;

/// The CephFS to serve from, and the way to use it.
#[derive(Clone, Debug)]
pub struct CephOptions {
    /// The cluster's configuration file (`ceph.conf`), with its monitors and the client's keyring.
    pub conf: PathBuf,
    /// The client's name without `client.`, such as `admin`.
    pub user: String,
    /// The file system; without one, the cluster's default.
    pub file_system: Option<String>,
    /// The directory that is mounted, from the top of the file system, such as `/weir`. Paths of
    /// volumes begin there.
    pub top: String,
    /// Mounts, from [`MOUNTS_MIN`] to [`MOUNTS_MAX`].
    pub mounts: usize,
    /// Keep written data in this process until it is synced, and read ahead (libcephfs's object
    /// cache). Without, every read and write goes to the OSDs.
    pub object_cache: bool,
    /// Time after which the metadata server takes the capabilities of a client that is silent,
    /// seconds.
    pub session_seconds: u32,
    /// Longest time to wait for the cluster when mounting, seconds.
    pub mount_seconds: u32,
}

/// A CephFS that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CephError {
    /// The library.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// An option that cannot be passed on, or is out of bounds.
    #[error("{0}")]
    Option(String),
    /// A step of mounting failed.
    #[error("cannot {step} for {conf}: {source}")]
    Mount {
        /// The step.
        step: &'static str,
        /// The configuration file.
        conf: String,
        /// The error of libcephfs.
        source: std::io::Error,
    },
}

/// One session of this process with the cluster, as others must know it to end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CephSession {
    /// The client's number (`global_id`).
    pub client: u64,
    /// Its addresses, as [`CephMonitors::blocklist`](crate::CephMonitors::blocklist) takes them.
    pub addresses: String,
}

impl CephSession {
    /// The single addresses, each of the form `IP:PORT/NONCE`.
    ///
    /// # Errors
    /// `InvalidInput` if they are none.
    pub fn single_addresses(&self) -> std::io::Result<Vec<String>> {
        addresses_of(&self.addresses)
    }
}

/// The sessions of this process with one CephFS.
///
/// Connect before the process gives up its right to open files: the library, the configuration and
/// the keyring are read here.
#[derive(Debug)]
pub struct Ceph {
    slots: Vec<Slot>,
    dealing: Mutex<()>,
    /// The highest epoch that was waited for.
    epoch: AtomicU64,
}

#[derive(Debug)]
struct Slot {
    mount: Arc<Mount>,
    volumes: Arc<AtomicUsize>,
}

/// A volume's place on a mount, which is free again when this is dropped.
#[derive(Debug)]
pub struct Dealt {
    mount: Arc<Mount>,
    other: Arc<Mount>,
    volumes: Arc<AtomicUsize>,
}

impl Dealt {
    /// The mount.
    #[must_use]
    pub fn mount(&self) -> &Arc<Mount> {
        &self.mount
    }

    /// Another mount of the same file system. To the cluster it is another client, so its cache
    /// does not have the names that the volume's mount has cached.
    #[must_use]
    pub fn other(&self) -> &Arc<Mount> {
        &self.other
    }
}

impl Drop for Dealt {
    fn drop(&mut self) {
        self.volumes.fetch_sub(1, Relaxed);
    }
}

impl Ceph {
    /// Loads the library and mounts. Blocks, and starts threads.
    ///
    /// # Errors
    /// [`CephError`], with what to do.
    pub fn connect(options: &CephOptions) -> Result<Self, CephError> {
        if !(MOUNTS_MIN..=MOUNTS_MAX).contains(&options.mounts) {
            let words =
                format!("{} mounts: there can be {MOUNTS_MIN} to {MOUNTS_MAX}", options.mounts);
            return Err(CephError::Option(words));
        }
        let functions = CephFs::get()?;
        let mounts = (0..options.mounts).map(|_| -> Result<Slot, CephError> {
            let mount = Arc::new(mount(functions, options)?);
            Ok(Slot { mount, volumes: Arc::new(AtomicUsize::new(0)) })
        });
        let slots = mounts.collect::<Result<_, CephError>>()?;
        Ok(Self { slots, dealing: Mutex::new(()), epoch: AtomicU64::new(0) })
    }

    /// The mount with the fewest volumes, for one more.
    /// `None` only if there is no mount, which [`Ceph::connect`] refuses.
    #[must_use]
    pub fn deal(&self) -> Option<Dealt> {
        let _one_at_a_time = self.dealing.lock();
        let others = self.slots.iter().cycle().skip(1);
        let pairs = self.slots.iter().zip(others);
        let (slot, other) = pairs.min_by_key(|(slot, _)| slot.volumes.load(Relaxed))?;
        slot.volumes.fetch_add(1, Relaxed);
        Some(Dealt {
            mount: Arc::clone(&slot.mount),
            other: Arc::clone(&other.mount),
            volumes: Arc::clone(&slot.volumes),
        })
    }

    /// All sessions, to be kept beside this gateway's lease.
    ///
    /// # Errors
    /// If the library does not know its own addresses.
    pub fn sessions(&self) -> std::io::Result<Vec<CephSession>> {
        let session = |slot: &Slot| -> std::io::Result<CephSession> {
            let addresses = slot.mount.addresses()?;
            Ok(CephSession { client: slot.mount.client_id(), addresses })
        };
        self.slots.iter().map(session).collect()
    }

    /// Waits until every session knows the map of OSDs of this epoch, which the monitors have
    /// already, or a later one. From then on no OSD carries out a request of these sessions before
    /// it has that map itself, and refuses those whom the map blocklists. Blocks until the monitors
    /// answer.
    ///
    /// # Errors
    /// The library's; `NotConnected` and others for a session that has ended.
    pub fn wait_for_epoch(&self, epoch: u64) -> std::io::Result<()> {
        if self.epoch.load(Relaxed) >= epoch {
            return Ok(());
        }
        self.fetch_map()?;
        self.epoch.fetch_max(epoch, Relaxed);
        Ok(())
    }

    /// Gives every session the newest map of OSDs that the monitors have, as
    /// [`Ceph::wait_for_epoch`] does for one that it does not know: for blocklists of which no
    /// epoch is known. Blocks until the monitors answer.
    ///
    /// # Errors
    /// As for [`Ceph::wait_for_epoch`].
    pub fn fetch_map(&self) -> std::io::Result<()> {
        self.slots.iter().try_for_each(|slot| slot.mount.fetch_map())?;
        Ok(())
    }

    /// Has the cluster ended a session? Everything on it fails from then on, data that was not
    /// stable is lost, and this process has to end.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.slots.iter().any(|slot| slot.mount.is_lost())
    }

    /// Waits until all objects of volumes are released, which threads of the pool do, and unmounts.
    /// To be called when all stores are dropped, before the process ends. Blocks, but not for ever.
    pub fn disconnect(self) {
        for slot in self.slots {
            for _ in 0..LOOKS_MAX {
                if Arc::strong_count(&slot.mount) == 1 {
                    break;
                }
                sleep(LOOK);
            }
        }
    }
}

fn mount(functions: &'static CephFs, options: &CephOptions) -> Result<Mount, CephError> {
    let string = |what: &str, bytes: &[u8]| {
        CString::new(bytes).map_err(|_| CephError::Option(format!("{what}: there is a NUL in it")))
    };
    let conf = string("the configuration file", options.conf.as_os_str().as_bytes())?;
    let user = string("the name of the client", options.user.as_bytes())?;
    let top = string("the directory", options.top.as_bytes())?;
    let named = |name: &String| string("the name of the file system", name.as_bytes());
    let file_system = options.file_system.as_ref().map(named).transpose()?;
    let switch = |on: bool| if on { c"true".to_owned() } else { c"false".to_owned() };
    let seconds = string("the time to wait", options.mount_seconds.to_string().as_bytes())?;
    let settings: [(&CStr, CString); 8] = [
        // Access control lists, and the client decides for the identity of each call.
        (c"client_acl_type", c"posix_acl".to_owned()),
        (c"client_permissions", switch(true)),
        (c"fuse_default_permissions", switch(false)),
        // No name leads to snapshots: no name of a client is empty.
        (c"client_snapdir", c"".to_owned()),
        // The space is that of the pool; quotas are the store's own.
        (c"client_quota_df", switch(false)),
        // A session that was ended must not come to life again: what it held is another's.
        (c"client_reconnect_stale", switch(false)),
        (c"client_oc", switch(options.object_cache)),
        (c"client_mount_timeout", seconds),
    ];
    let place = (file_system.as_deref(), top.as_c_str());
    Mount::new(
        functions,
        (conf.as_c_str(), user.as_c_str()),
        &settings,
        options.session_seconds,
        place,
    )
    .map_err(|(step, errno): (_, Errno)| CephError::Mount {
        step,
        conf: options.conf.display().to_string(),
        source: errno.into(),
    })
}
