//! A volume on CephFS: opening it, and the state that its operations share.

use super::attrs;
use super::error::{fs_error, of_object};
use super::names::Names;
use super::object::{self, CephObject, Table};
use super::record;
use super::usage::Usage;
use crate::Options;
use crate::pool::{Lane, LaneBounds};
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Relaxed};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use weir_ceph::Statx;
use weir_ceph::{Called, InodeRef, Listing, Mount, New};
use weir_ceph::{Ceph, Dealt};
use weir_core::{Acl, AclKind, Attr, Credentials, FileKind, FsError, FsResult, Name, ObjectKey};

/// Jobs of one volume that run at once in the pool, and that wait there. Each waits for the
/// cluster most of its time, so there are more than of a local volume.
pub(super) const LANE: LaneBounds = LaneBounds { running_max: 32, queued_max: 1024 };

/// The version of the format.
const FORMAT: &str = "weir-volume-ceph 1";
/// The format while the volume is made.
const FORMAT_NEW: &str = "new";

const TOP_MODE: u32 = 0o755;
/// The mode of what nobody but the gateways may enter.
const OWNER_ALONE: u32 = 0o700;

/// A volume on CephFS that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum CephOpenError {
    /// The path is no path of a volume.
    #[error("{path:?} is no path of a volume on CephFS: names between slashes are needed")]
    Path {
        /// The path.
        path: String,
    },
    /// CephFS refused something.
    #[error("cannot {what} of the volume {path:?} on CephFS: {error}")]
    Call {
        /// The step.
        what: &'static str,
        /// The path.
        path: String,
        /// The error.
        error: FsError,
    },
    /// The directory holds something, and no format.
    #[error(
        "the directory {path:?} on CephFS is not empty and is no volume; if it was one, set its \
         extended attribute user.weir.format to \"weir-volume-ceph 1\""
    )]
    NoFormat {
        /// The path.
        path: String,
    },
    /// The pool belongs to other gateways.
    #[error(
        "the directory {path:?} on CephFS is a pool of another catalogue of Weir, {found:?}; use \
         another directory, or remove its extended attribute user.weir.pool once nothing serves it \
         any more"
    )]
    ForeignPool {
        /// The pool's directory.
        path: String,
        /// The catalogue that it is marked with.
        found: String,
    },
    /// The format is another.
    #[error(
        "the volume {path:?} on CephFS has the format {found:?}, which this version of Weir does not know"
    )]
    OtherFormat {
        /// The path.
        path: String,
        /// The format.
        found: String,
    },
}

/// Syncs, and those that failed.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub(super) syncs: AtomicU64,
    pub(super) failures: AtomicU64,
}

/// One volume.
#[derive(Debug)]
pub(super) struct Volume {
    pub(super) root: Arc<CephObject>,
    /// The directory above the root, with the format and the record of the usage.
    pub(super) directory: InodeRef,
    pub(super) table: Arc<Table>,
    pub(super) names: Names,
    pub(super) usage: Usage,
    pub(super) losses: Arc<Losses>,
    /// The attributes of the root as they were seen last, for who may not wait.
    pub(super) root_seen: Mutex<Attr>,
    /// The root is about to be asked for its attributes.
    pub(super) asks_root: AtomicBool,
    /// The quota of CephFS is about to be set.
    pub(super) sets_quota: AtomicBool,
    pub(super) closing: AtomicBool,
    pub(super) lane: Arc<Lane>,
    dealt: Dealt,
}

/// A name as the library takes it.
pub(super) fn c_name(name: &[u8]) -> FsResult<CString> {
    CString::new(name).map_err(|_| FsError::Invalid)
}

/// Opens the volume in the directory `path` below the one that is mounted, and makes it if there is
/// none. Blocks.
pub(super) fn open(
    ceph: &Ceph,
    path: &str,
    options: &Options,
) -> Result<Arc<Volume>, CephOpenError> {
    let failed = |what| {
        let path = path.to_owned();
        move |error| CephOpenError::Call { what, path, error }
    };
    let dealt = ceph.deal().ok_or(FsError::Busy).map_err(failed("choose a mount"))?;
    let mount = dealt.mount();
    let directory = walk(mount, path)?;
    let top = top(mount, &directory, path)?;
    let found = mount.getattr(&top).map_err(fs_error).map_err(failed("read the top directory"))?;
    let lists = attrs::has_acl(mount, &top, &found).map_err(fs_error);
    let attr = lists.and_then(|lists| attrs::attr(&found, lists));
    let attr = attr.map_err(failed("read the top directory"))?;
    let lane = Arc::new(options.pool.lane(LANE));
    let losses = Arc::new(Losses::default());
    let table = Table::new(
        Arc::clone(mount),
        Arc::clone(&lane),
        Arc::clone(&losses),
        options.cached_objects_max,
    );
    let (used, exact) = used(mount, &directory, &top).map_err(failed("read the usage"))?;
    record::set_usage(mount, &directory, None).map_err(failed("record the usage"))?;
    record::set_backstop(mount, &top, options.quota_bytes).map_err(failed("set the quota"))?;
    let birth = attrs::timestamp(found.btime);
    let root = table.hold(top, (&attr, birth)).map_err(failed("hold the top directory"))?;
    let volume = Arc::new(Volume {
        root,
        directory,
        table,
        names: Names::default(),
        usage: Usage::new(used, exact, options.quota_bytes),
        losses,
        root_seen: Mutex::new(attr),
        asks_root: AtomicBool::new(false),
        sets_quota: AtomicBool::new(false),
        closing: AtomicBool::new(false),
        lane,
        dealt,
    });
    if !exact {
        record::start_count(&volume);
    }
    Ok(volume)
}

/// The usage at the start, and whether it is exact.
fn used(mount: &Mount, directory: &InodeRef, top: &InodeRef) -> FsResult<(u64, bool)> {
    if let Some(bytes) = record::usage(mount, directory)? {
        return Ok((bytes, true));
    }
    let (bytes, files) = record::below(mount, top)?;
    Ok((bytes, bytes == 0 && files == 0))
}

/// The names in a path of at least one, as the library takes them.
pub(super) fn names_in(path: &str) -> Result<Vec<CString>, CephOpenError> {
    let bad = || CephOpenError::Path { path: path.to_owned() };
    let name = |part: &str| {
        let name = Name::new(part.as_bytes()).ok().filter(|name| !name.is_special());
        c_name(name.ok_or_else(bad)?.as_bytes()).map_err(|_| bad())
    };
    let names = path.split('/').filter(|part| !part.is_empty()).map(name);
    let names = names.collect::<Result<Vec<_>, _>>()?;
    if names.is_empty() { Err(bad()) } else { Ok(names) }
}

/// The directory at `path`; those on the way are made.
pub(super) fn walk(mount: &Arc<Mount>, path: &str) -> Result<InodeRef, CephOpenError> {
    let failed = |error| CephOpenError::Call {
        what: "find or make the directory",
        path: path.to_owned(),
        error: fs_error(error),
    };
    let step = |at: InodeRef, name: CString| child_directory(mount, &at, &name, OWNER_ALONE);
    let top = mount.top().map_err(failed)?;
    names_in(path)?.into_iter().try_fold(top, step).map_err(failed)
}

/// The directory `name` in `dir`, which is made if there is nothing.
fn child_directory(mount: &Arc<Mount>, dir: &InodeRef, name: &CStr, mode: u32) -> Called<InodeRef> {
    let found = match mount.lookup(dir, name) {
        Err(Errno::NOENT) => {
            let root = mount.identity(&Credentials::ROOT)?;
            match mount.make(dir, name, (New::Directory, mode), &root) {
                Ok(made) => return Ok(made),
                // Another gateway was first.
                Err(Errno::EXIST) => mount.lookup(dir, name)?,
                Err(other) => return Err(other),
            }
        }
        found => found?,
    };
    let directory = u32::from(found.1.mode) & libc::S_IFMT == libc::S_IFDIR;
    if directory { Ok(found.0) } else { Err(Errno::NOTDIR) }
}

/// Has a directory no entries?
fn is_empty(mount: &Arc<Mount>, directory: &InodeRef) -> Called<bool> {
    let mut listing = Listing::open(mount, directory, 0)?;
    while let Some(entry) = listing.next(false)? {
        if !matches!(&*entry.name, b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The volume's top directory. A directory without a format is made a volume only if it is empty.
fn top(mount: &Arc<Mount>, directory: &InodeRef, path: &str) -> Result<InodeRef, CephOpenError> {
    let failed = |error| CephOpenError::Call {
        what: "read or write the format",
        path: path.to_owned(),
        error,
    };
    let format = record::read(mount, directory, record::FORMAT).map_err(failed)?;
    let set = |format: &str| {
        mount.setxattr(directory, record::FORMAT, Some(format.as_bytes()), None).map_err(of_object)
    };
    match format.as_deref() {
        Some(FORMAT) => {
            let found = mount.lookup(directory, c"root").map_err(fs_error).map_err(failed)?;
            return Ok(found.0);
        }
        Some(FORMAT_NEW) => {}
        Some(found) => {
            let (path, found) = (path.to_owned(), found.to_owned());
            return Err(CephOpenError::OtherFormat { path, found });
        }
        None => {
            if !is_empty(mount, directory).map_err(fs_error).map_err(failed)? {
                return Err(CephOpenError::NoFormat { path: path.to_owned() });
            }
            set(FORMAT_NEW).map_err(failed)?;
        }
    }
    let top = child_directory(mount, directory, c"root", TOP_MODE).map_err(fs_error);
    let top = top.map_err(failed)?;
    set(FORMAT).and_then(|()| mount.sync_inode(directory).map_err(fs_error)).map_err(failed)?;
    Ok(top)
}

impl Volume {
    pub(super) fn mount(&self) -> &Arc<Mount> {
        self.dealt.mount()
    }

    /// Another session, for what the volume's own cannot do.
    pub(super) fn other_mount(&self) -> &Arc<Mount> {
        self.dealt.other()
    }

    /// The attributes of an object; see [`Volume::status`].
    pub(super) fn attr(&self, object: &CephObject) -> FsResult<Attr> {
        self.status(object).map(|(attr, _)| attr)
    }

    /// The attributes of an object, and the count of its changes. One whose last name is gone is
    /// found no more by its key, but who holds it open can go on.
    ///
    /// # Errors
    /// `Stale` if the cluster does not know it any more.
    pub(super) fn status(&self, object: &CephObject) -> FsResult<(Attr, u64)> {
        let found = self.mount().getattr(object.inode()).map_err(of_object);
        let found = found.inspect_err(|error| {
            if *error == FsError::Stale {
                object.bury();
            }
        })?;
        if found.nlink == 0 {
            object.bury();
        }
        let attr = self.told(object.inode(), &found)?;
        if object.ino == self.root.ino {
            *self.root_seen.lock() = attr;
        }
        Ok((attr, found.version))
    }

    /// Has the metadata server make a change, and gives the attributes and the count of changes
    /// afterwards. The server counts on from the changes that it knows of. If libcephfs has counted
    /// others that it has not told the server yet, such as unstable writes, the server's count may
    /// be one that libcephfs has already. Then it tells the server, and the change is made again.
    pub(super) fn counted(
        &self,
        object: &CephObject,
        change: impl Fn() -> FsResult<()>,
    ) -> FsResult<(Attr, u64)> {
        let (_, before) = self.status(object)?;
        change()?;
        let (attr, after) = self.status(object)?;
        if after != before {
            return Ok((attr, after));
        }
        object.sync()?;
        change()?;
        self.status(object)
    }

    /// The attributes after the last name may be gone: without one there are no links.
    pub(super) fn attr_or_gone(&self, object: &CephObject, before: &Attr) -> FsResult<Attr> {
        match self.attr(object) {
            Err(FsError::Stale) => Ok(Attr { nlink: 0, ..*before }),
            found => found,
        }
    }

    /// The attributes of an inode that the library told.
    pub(super) fn told(&self, inode: &InodeRef, found: &Statx) -> FsResult<Attr> {
        let lists = attrs::has_acl(self.mount(), inode, found).map_err(of_object)?;
        attrs::attr(found, lists)
    }

    /// Holds an inode that was found, with its attributes.
    pub(super) fn hold(&self, inode: InodeRef, found: &Statx) -> FsResult<(Arc<CephObject>, Attr)> {
        let attr = self.told(&inode, found)?;
        let object = self.table.hold(inode, (&attr, attrs::timestamp(found.btime)))?;
        Ok((object, attr))
    }

    /// Holds an inode, and asks for its attributes.
    pub(super) fn hold_asked(&self, inode: InodeRef) -> FsResult<(Arc<CephObject>, Attr)> {
        let found = self.mount().getattr(&inode).map_err(of_object)?;
        self.hold(inode, &found)
    }

    /// The object of this name, if there is one; `.` and `..` too.
    pub(super) fn child(
        &self,
        dir: &Arc<CephObject>,
        name: Name<'_>,
    ) -> FsResult<Option<(Arc<CephObject>, Attr)>> {
        dir.need_directory()?;
        if name.is_dot() || (name.is_dot_dot() && dir.ino == self.root.ino) {
            return Ok(Some((Arc::clone(dir), self.attr(dir)?)));
        }
        if dir.is_gone() {
            return Err(FsError::Stale);
        }
        match self.mount().lookup(dir.inode(), &c_name(name.as_bytes())?) {
            // Attributes that come with a name may be older than the capabilities say.
            Ok((inode, _)) => self.hold_asked(inode).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(fs_error(errno)),
        }
    }

    /// The object with this key, asked from the cluster.
    pub(super) fn find(&self, key: &ObjectKey) -> FsResult<Arc<CephObject>> {
        let ino = object::ino(key)?;
        let gone = |errno| match errno {
            // An inode number of no file.
            Errno::INVAL => FsError::Stale,
            other => of_object(other),
        };
        let inode = self.mount().by_number(ino).map_err(gone)?;
        let found = self.mount().getattr(&inode).map_err(of_object)?;
        let birth = attrs::timestamp(found.btime);
        if found.nlink == 0 || !object::key(found.ino, birth)?.may_be(key) {
            return Err(FsError::Stale);
        }
        let (object, _) = self.hold(inode, &found)?;
        if object.is_gone() { Err(FsError::Stale) } else { Ok(object) }
    }

    /// The access list of an object, if it has one.
    pub(super) fn access_list(&self, object: &CephObject) -> FsResult<Option<Acl>> {
        self.list(object, AclKind::Access)
    }

    /// A list of an object, if it has one.
    pub(super) fn list(&self, object: &CephObject, kind: AclKind) -> FsResult<Option<Acl>> {
        match (object.kind, kind) {
            (FileKind::Symlink, _) => Ok(None),
            (FileKind::Directory, _) | (_, AclKind::Access) => {
                attrs::read_acl(self.mount(), object.inode(), kind)
            }
            _ => Ok(None),
        }
    }

    /// The times at which data that was answered may have been lost.
    pub(super) fn lost(&self) -> u64 {
        self.losses.failures.load(Relaxed) + u64::from(self.mount().is_lost())
    }
}
