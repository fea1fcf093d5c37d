//! Opening and closing a volume: its directories and the version of its format.

use super::acl::Lists;
use super::attrs::{Attrs, attr_of};
use super::calls::Calls;
use super::inode::{Inode, Reach};
use super::kept::Kept;
use super::names::Names;
use super::open::new_inode;
use super::record::{self, Record, State};
use super::shape::Shape;
use super::switch::CacheSwitch;
use super::table::Table;
use super::uncommitted::Crowd;
use super::units::Unit;
use super::usage::Usage;
use super::volume::Volume;
use super::{LocalStore, Options, walk};
use crate::creds::as_root;
use crate::descriptors::Share;
use crate::pool::LaneBounds;
use crate::sync::{Arc, AtomicBool, AtomicU64, Weak};
use crate::sys::{handle_of, open_handle, own_descriptors};
use rustix::fd::OwnedFd;
use rustix::fs::{
    Access, AtFlags, Dir, Mode, OFlags, accessat, fchmod, fstat, fstatvfs, fsync, mkdirat, open,
    openat, renameat, unlinkat,
};
use rustix::io::Errno;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use weir_core::FsResult;
use weir_core::place::NEW_VOLUME_MARK;

/// The newest format this server writes and reads.
const FORMAT: u32 = 1;
const FORMAT_FILE: &str = "format";
const FORMAT_WORD: &str = "weir-volume";
/// The longest meta file that is read.
const META_BYTES_MAX: usize = 256;

/// Jobs of one volume that run at once in the pool, and that wait there.
const LANE: LaneBounds = LaneBounds { running_max: 8, queued_max: 1024 };
/// Names kept for each object kept.
const NAMES_PER_OBJECT: usize = 2;
const OBJECTS_MIN: usize = 16;

/// The mode of what nobody but the server may enter.
const OWNER_ALONE: u32 = 0o700;

/// Why a volume can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A directory or file of the volume can't be made, opened or written.
    #[error("cannot open the volume at {}: failed to {what}", path.display())]
    Directory {
        /// The volume's directory.
        path: PathBuf,
        /// The attempted action.
        what: &'static str,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A newer server wrote the volume.
    #[error(
        "the volume at {} has format {found}, but this server supports formats up to {FORMAT}: use \
         the server version that wrote it, or a newer one",
        path.display()
    )]
    NewerFormat {
        /// The volume's directory.
        path: PathBuf,
        /// The version found.
        found: u32,
    },
    /// The format file says nothing that any server wrote.
    #[error("{}/meta/format is damaged: it must contain \"{FORMAT_WORD} {FORMAT}\"", path.display())]
    DamagedFormat {
        /// The volume's directory.
        path: PathBuf,
    },
    /// The volume was made once and there is no word of the format, so more may be lost, too.
    #[error(
        "the volume at {0} is not new, but {0}/meta/format is missing: restore it from a copy; or, \
         if {0}/root is intact, write \"{FORMAT_WORD} {FORMAT}\" to it; or, if no file is needed, \
         delete the volume and create it again",
        path.display()
    )]
    NoFormat {
        /// The volume's directory.
        path: PathBuf,
    },
    /// The file system has no handles that could be given to clients.
    #[error(
        "the file system of {} does not support file handles: put the data directory on ext4, XFS \
         or btrfs",
        path.display()
    )]
    NoHandles {
        /// The volume's directory.
        path: PathBuf,
    },
}

/// The format of the volume in `directory`, without opening it for service: nothing is made or
/// changed.
///
/// # Errors
/// `NewerFormat`, `DamagedFormat`, and `Directory` where there is no volume or it can't be read.
pub fn volume_format(directory: &Path) -> Result<u32, OpenError> {
    let at = Place(directory);
    let meta = at.check("open meta", open(directory.join("meta"), DIRECTORY, Mode::empty()))?;
    at.known_format(&at.check("read meta/format", read_file(&meta, FORMAT_FILE))?)
}

impl LocalStore {
    /// Opens the volume in `directory`. Makes a new one if the directory is missing or has the
    /// mark of one that is still to be filled ([`NEW_VOLUME_MARK`]). Blocks.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(directory: &Path, options: &Options) -> Result<Self, OpenError> {
        let at = Place(directory);
        as_root(|_| Self::open_as_root(at, options))
            .unwrap_or_else(|error| Err(at.cause("become root", std::io::Error::other(error))))
    }

    fn open_as_root(at: Place<'_>, options: &Options) -> Result<Self, OpenError> {
        let directory = at.0;
        let (top, is_new) = at.top()?;
        if at.check("read its directory", fstat(&top))?.st_mode & !OWNER_ALONE & 0o777 != 0 {
            let mended = fchmod(&top, Mode::from_raw_mode(OWNER_ALONE));
            at.check("restrict its directory to the server's user", mended)?;
        }
        // Needed for every file later, when descriptors may have run out.
        let own = own_descriptors().map(drop).map_err(std::io::Error::other);
        own.map_err(|error| at.cause("open /proc/self/fd", error))?;
        let subdirectory = |name| openat(&top, name, DIRECTORY, Mode::empty());
        let meta = match at.formatted(&top)? {
            Some(meta) => at.unmark(&top).map(|()| meta)?,
            None => {
                at.make(&top, is_new)?;
                at.check("open meta", subdirectory("meta"))?
            }
        };
        let root = at.check("open its root", subdirectory("root"))?;

        let stat = at.check("read its root", fstat(&root))?;
        let (key, mount) = handle_of(&root).map_err(|errno| match errno {
            Errno::OPNOTSUPP | Errno::OVERFLOW => OpenError::NoHandles { path: directory.into() },
            other => at.cause("make a handle", other.into()),
        })?;
        let by_handle = as_root(|proof| open_handle(proof, &root, &key, OFlags::PATH).is_ok());
        let objects_max = options.cached_objects_max.max(OBJECTS_MIN);
        let space = at.check("read its file system", fstatvfs(&root))?;
        let lane = Arc::new(options.pool.lane(LANE));
        let recorded = Record::read(&meta);
        let descriptors = options.descriptors.account();
        let crowd = Crowd::new(objects_max, &options.descriptors);
        let switch = CacheSwitch::new(options.metadata_cache);
        let root = root_inode((root, descriptors.need()), key, &stat, &switch, &crowd)
            .map(Arc::new)
            .map_err(|error| at.cause("read its root", std::io::Error::other(error)))?;
        let usage = Usage::new(options.quota_bytes, Arc::clone(&root), recorded, Arc::clone(&lane));
        let volume = Arc::new_cyclic(|this: &Weak<Volume>| Volume {
            this: Weak::clone(this),
            table: Table::new(Arc::clone(&root), objects_max),
            root,
            device: stat.st_dev,
            mount,
            names: Names::new(objects_max * NAMES_PER_OBJECT, Arc::clone(&switch)),
            kept: (by_handle != Ok(true)).then(|| Box::new(Kept::new(objects_max, &descriptors))),
            index_memory: options.pool.index_memory(),
            descriptors,
            switch,
            usage,
            crowd,
            lane,
            pace: options.pool.pace_of(stat.st_dev),
            writeback: options.pool.writeback(),
            syncs: AtomicU64::new(0),
            sync_failures: AtomicU64::new(0),
            calls: Calls::new(options.namespace_durability, by_handle == Ok(true)),
            unit: Unit::on_blocks_of(space.f_frsize),
            label: directory.display().to_string(),
            closing: AtomicBool::new(false),
        });
        let this: Weak<Volume> = Arc::downgrade(&volume);
        options.descriptors.enter(&volume.descriptors, this);
        let store = Self(volume, None, options.namespace_durability);
        store.0.recall();
        if !store.0.usage.is_known() && walk::start(&store.0) {
            tracing::info!(volume = store.0.label, "counting the usage after an unclean shutdown");
        }
        Ok(store)
    }
}

pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn root_inode(
    fd: (OwnedFd, Share),
    key: weir_core::ObjectKey,
    stat: &rustix::fs::Stat,
    switch: &Arc<CacheSwitch>,
    crowd: &Arc<Crowd>,
) -> FsResult<Inode> {
    let attr = attr_of(stat)?;
    let lists = Lists::of(attr.kind, Reach::Full);
    let attrs = Attrs::new((attr, None), lists, switch, switch.epoch());
    Ok(new_inode(fd, Reach::Full, key, &attr, attrs, Shape::UNKNOWN, crowd))
}

/// Where a volume is, for error messages.
#[derive(Clone, Copy)]
struct Place<'a>(&'a Path);

impl Place<'_> {
    fn cause(self, what: &'static str, source: std::io::Error) -> OpenError {
        OpenError::Directory { path: self.0.into(), what, source }
    }

    fn check<T>(self, what: &'static str, result: Result<T, Errno>) -> Result<T, OpenError> {
        result.map_err(|errno| self.cause(what, errno.into()))
    }

    /// Opens a directory of the volume, making it if it is missing.
    fn subdirectory(self, top: &OwnedFd, name: &str, mode: u32) -> Result<OwnedFd, OpenError> {
        match mkdirat(top, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(self.cause("create root, snap and meta", errno.into())),
        }
        self.check("open root, snap and meta", openat(top, name, DIRECTORY, Mode::empty()))
    }

    /// The directory `meta` of a volume that says which format it has.
    fn formatted(self, top: &OwnedFd) -> Result<Option<OwnedFd>, OpenError> {
        let meta = match openat(top, "meta", DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            meta => self.check("open meta", meta)?,
        };
        match read_file(&meta, FORMAT_FILE) {
            Err(Errno::NOENT) => Ok(None),
            read => self.known_format(&self.check("read meta/format", read)?).map(|_| Some(meta)),
        }
    }

    /// The format in a format file, if this server can read such a volume.
    fn known_format(self, text: &str) -> Result<u32, OpenError> {
        let version = text.trim_end().strip_prefix(FORMAT_WORD);
        match version.and_then(|v| v.strip_prefix(' ')?.parse::<u32>().ok()) {
            Some(found) if found > FORMAT => {
                Err(OpenError::NewerFormat { path: self.0.into(), found })
            }
            Some(known @ 1..=FORMAT) => Ok(known),
            _ => Err(OpenError::DamagedFormat { path: self.0.into() }),
        }
    }

    /// Opens the volume's directory, making it if it is missing. Was it?
    fn top(self) -> Result<(OwnedFd, bool), OpenError> {
        let open = || open(self.0, DIRECTORY, Mode::empty());
        let (top, is_new) = match open() {
            Err(Errno::NOENT) => {
                let is_new = self.make_directory()?;
                (open(), is_new)
            }
            there => (there, false),
        };
        Ok((self.check("open its directory", top)?, is_new))
    }

    /// Makes the volume's directory, unless it is there. Was it missing?
    fn make_directory(self) -> Result<bool, OpenError> {
        let make = |directory: &Path, parents| {
            // Whoever could come in here would be past export rules and quotas.
            DirBuilder::new().recursive(parents).mode(OWNER_ALONE).create(directory)
        };
        let parents = self.0.parent().map_or(Ok(()), |parents| make(parents, true));
        match parents.and_then(|()| make(self.0, false)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(self.cause("create its directory", error)),
        }
    }

    /// Fills the directory of a new volume, the format last. One that was not filled to the end has
    /// its mark still.
    fn make(self, top: &OwnedFd, is_new: bool) -> Result<(), OpenError> {
        let no_format = || OpenError::NoFormat { path: self.0.into() };
        let marked = accessat(top, NEW_VOLUME_MARK, Access::EXISTS, AtFlags::empty());
        if !is_new && marked.is_err() {
            return Err(no_format());
        }
        let meta = self.subdirectory(top, "meta", OWNER_ALONE)?;
        self.subdirectory(top, "snap", OWNER_ALONE)?;
        if !matches!(Record::read(&meta), State::Missing | State::Clean { used: 0 }) {
            return Err(no_format());
        }
        let root = self.subdirectory(top, "root", 0o755)?;
        if !self.check("read its root", is_empty(&root))? {
            return Err(no_format());
        }
        self.check("sync its directory", fsync(top))?;
        let empty = State::Clean { used: 0 }.to_string();
        self.check("write meta/usage", replace_file(&meta, record::FILE, &empty))?;
        let text = format!("{FORMAT_WORD} {FORMAT}\n");
        self.check("write meta/format", replace_file(&meta, FORMAT_FILE, &text))?;
        self.unmark(top)
    }

    /// Takes the mark of a new volume away, for good.
    fn unmark(self, top: &OwnedFd) -> Result<(), OpenError> {
        match unlinkat(top, NEW_VOLUME_MARK, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            done => self.check("remove its mark \"new\"", done.and_then(|()| fsync(top))),
        }
    }
}

fn is_empty(directory: &OwnedFd) -> Result<bool, Errno> {
    for entry in Dir::read_from(directory)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn read_file(directory: &OwnedFd, name: &str) -> Result<String, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(directory, name, flags, Mode::empty())?;
    let mut bytes = vec![0; META_BYTES_MAX];
    let count = rustix::io::read(&fd, &mut bytes)?;
    bytes.truncate(count);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a file so that after a power cut either the old or the new one is there.
pub(super) fn replace_file(directory: &OwnedFd, name: &str, text: &str) -> Result<(), Errno> {
    let new = format!("{name}.new");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let fd = openat(directory, &new, flags, Mode::from_raw_mode(0o600))?;
    if rustix::io::write(&fd, text.as_bytes())? != text.len() {
        return Err(Errno::NOSPC);
    }
    fsync(&fd)?;
    renameat(directory, &new, directory, name)?;
    fsync(directory)
}
