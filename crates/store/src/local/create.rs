//! CREATE: regular files, in the three ways of RFC 1813 §3.3.8.
//!
//! A file that is to have more than a mode gets it before its name: otherwise a server that is
//! killed in between would leave a file without the verifier of its exclusive create, which the
//! client's second attempt would take for somebody else's.

use super::acl::Lists;
use super::attrs::{Attrs, attr_of_status};
use super::calls::{NameChange, Place};
use super::commit::Extent;
use super::inode::{Inode, Reach};
use super::lookup::OwnName;
use super::open::{new_inode, without_atime};
use super::remove::take_back;
use super::set_attr::{CUT_INLINE_MAX, set_made, set_size};
use super::shape::Shape;
use super::switch::KnownIn;
use super::volume::{Step, Volume, Waiting};
use super::{Durability, LocalStore};
use crate::creds::as_caller;
use crate::descriptors::Share;
use crate::error::fs_error;
use crate::sync::Arc;
use crate::sys::{birth, handle_without_birth, own_descriptors, status};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, linkat, openat, statat};
use rustix::io::Errno;
use weir_core::attr::SetTime;
use weir_core::store::{CreateHow, Made};
use weir_core::{
    AclKind, CallId, Credentials, FileKind, FsError, FsResult, Name, ObjectKey, SetAttr, Timestamp,
};

/// The mode of a file whose maker gave none (an exclusive create never does): they set it next.
const MODE_UNSET: u32 = 0;

impl LocalStore {
    pub(super) async fn create(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
        how: &CreateHow,
        cred: &Credentials,
    ) -> FsResult<Made<Arc<Inode>>> {
        self.foresee_made(dir, name, true).await?;
        let call = self.1;
        let by = (cred, call.as_ref());
        let made = match self.inline_in_turn(dir, |volume, w| create(volume, dir, name, how, by, w))
        {
            Some(done) => done,
            None => {
                let (own, name) = (Arc::clone(dir), OwnName::from(name));
                let (how, cred) = (*how, cred.clone());
                self.pooled_change_in_turn(dir, move |volume, waiting| {
                    create(volume, &own, name.get()?, &how, (&cred, call.as_ref()), waiting)
                })
                .await
            }
        };
        let made = self.ended(made)?;
        if self.2 == Durability::Power {
            // Attributes that were set after the file was made belong to a later transaction.
            self.settle(&made.object, Extent::All).await?;
            self.settle(dir, Extent::All).await?;
            self.settled();
        }
        Ok(made)
    }
}

fn create(
    volume: &Volume,
    dir: &Inode,
    name: Name<'_>,
    how: &CreateHow,
    (cred, call): (&Credentials, Option<&CallId>),
    waiting: Waiting,
) -> Step<Made<Arc<Inode>>> {
    let mut lock = volume.lock_names(dir, waiting)?;
    if name.is_special() {
        let unchecked = matches!(how, CreateHow::Unchecked(_));
        return Err(if unchecked { FsError::IsDirectory } else { FsError::Exists }.into());
    }
    let (mode, rest) = split(how);
    let at = Place { dir: dir.key, name: name.as_bytes() };
    volume.intend(call, &NameChange::Make { at, whole: true }, waiting)?;
    let mutation = dir.begin();
    let made = volume.share().and_then(|share| {
        if rest != SetAttr::default() {
            return make_whole(volume, dir, name, (mode, &rest), (cred, share));
        }
        let fd = open_new(volume, dir, name, mode, cred)?;
        made(volume, (fd, share), 1).inspect_err(|_| {
            take_back(dir, name, false);
        })
    });
    let (object, attr) = match made {
        Ok(made) => {
            volume.calls.acted(call, Some(made.key));
            volume.names.replace(dir, name, &made, &mut lock);
            let attr = made.attr()?;
            (made, attr)
        }
        Err(FsError::Exists) => {
            volume.calls.void(call);
            let present = volume.locked_lookup((dir, &lock), name, waiting)?;
            let attr = open_existing(volume, &present, how, cred, waiting)?;
            (present, attr)
        }
        Err(other) => {
            volume.calls.void(call);
            return Err(other.into());
        }
    };
    Ok(Made { object, attr, dir: dir.end(mutation)? })
}

/// The mode to make the file with, and what is to be set afterwards.
fn split(how: &CreateHow) -> (u32, SetAttr) {
    match how {
        CreateHow::Unchecked(set) | CreateHow::Guarded(set) => {
            let size = set.size.filter(|&size| size > 0);
            (set.mode.unwrap_or(MODE_UNSET) & 0o7777, SetAttr { mode: None, size, ..*set })
        }
        CreateHow::Exclusive(verifier) => {
            let (atime, mtime) = stamps(verifier);
            let (atime, mtime) = (SetTime::To(atime), SetTime::To(mtime));
            (MODE_UNSET, SetAttr { atime, mtime, ..SetAttr::default() })
        }
    }
}

fn open_new(
    volume: &Volume,
    dir: &Inode,
    name: Name<'_>,
    mode: u32,
    cred: &Credentials,
) -> FsResult<OwnedFd> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode);
    let open = |flags| openat(&dir.fd, name.as_bytes(), flags, mode);
    let open = || volume.retry_short(|| without_atime(flags, open));
    as_caller(cred, |_| open())?.map_err(without_directory)
}

/// Makes a file with attributes and gives it its name last.
fn make_whole(
    volume: &Volume,
    dir: &Inode,
    name: Name<'_>,
    (mode, rest): (u32, &SetAttr),
    (cred, share): (&Credentials, Share),
) -> FsResult<Arc<Inode>> {
    // An existing name comes before any other reason to refuse.
    let look = || statat(&dir.fd, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
    match as_caller(cred, |_| look())? {
        Ok(_) => return Err(FsError::Exists),
        Err(Errno::NOENT) => {}
        Err(other) => return Err(fs_error(other)),
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode);
    let open = |flags| openat(&dir.fd, c".", flags, mode);
    let open = || volume.retry_short(|| without_atime(flags, open));
    let fd = as_caller(cred, |_| open())?.map_err(without_directory)?;
    // Until it has its name nobody finds it, and all it gets is holes.
    let made = made(volume, (fd, share), 0)?;
    match set_made(volume, &made, rest, cred).and_then(|()| give_name(&made, dir, name, cred)) {
        Ok(()) => Ok(made),
        Err(error) => {
            volume.bury(&made);
            Err(error)
        }
    }
}

/// Gives `made` its first name. If this fails, there is no name: the caches of `dir` were not told
/// of one.
fn give_name(made: &Inode, dir: &Inode, name: Name<'_>, cred: &Credentials) -> FsResult<()> {
    let mutation = made.begin();
    let (descriptors, number) = (own_descriptors()?, made.fd.as_raw_fd().to_string());
    let flags = AtFlags::SYMLINK_FOLLOW;
    as_caller(cred, |_| linkat(descriptors, number, &dir.fd, name.as_bytes(), flags))?
        .map_err(without_directory)?;
    let ended = made.end(mutation).map(drop);
    ended.inspect_err(|_| {
        take_back(dir, name, false);
    })
}

fn without_directory(errno: Errno) -> FsError {
    match errno {
        // The directory itself is gone.
        Errno::NOENT => FsError::Stale,
        other => fs_error(other),
    }
}

/// Holds a file open that was just made with so many `names`.
fn made(volume: &Volume, fd: (OwnedFd, Share), names: u32) -> FsResult<Arc<Inode>> {
    let (key, _) = handle_without_birth(&fd.0).map_err(fs_error)?;
    let mark = volume.table.mark(&key);
    hold_made(volume, fd, names, (key, mark))
}

fn hold_made(
    volume: &Volume,
    (fd, share): (OwnedFd, Share),
    names: u32,
    (key, mark): (ObjectKey, u64),
) -> FsResult<Arc<Inode>> {
    let epoch = volume.switch.epoch();
    let status = status(&fd).map_err(fs_error)?;
    let (key, attr) = (key.born(birth(&status)), attr_of_status(&status)?);
    if let Some(kept) = &volume.kept {
        kept.keep(key, &fd)?;
    }
    // The ACL inherited from the directory.
    let lists = Lists::of(attr.kind, Reach::Full);
    let first = (attr, lists.read(&fd, AclKind::Access)?);
    let attrs = Attrs::new(first, lists, &volume.switch, epoch);
    // Somebody may have found it by its name and written to it already, or removed it.
    let untouched = attr.size == 0 && attr.nlink == names;
    let shape = if untouched { Shape::EMPTY } else { Shape::UNKNOWN };
    let mut inode = new_inode((fd, share), Reach::Full, key, &attr, attrs, shape, &volume.crowd);
    inode.plain = KnownIn::since(epoch);
    let inode = volume.hold(inode, mark);
    if names == 0 {
        // Nobody can have found it, whatever has left the table meanwhile. The kernel must not be
        // asked before it has its name: it would say that the file counts for nothing, and that
        // would stay.
        *inode.shape.write() = Shape::EMPTY;
    }
    Ok(inode)
}

fn open_existing(
    volume: &Volume,
    present: &Inode,
    how: &CreateHow,
    cred: &Credentials,
    waiting: Waiting,
) -> Step<weir_core::Attr> {
    match how {
        CreateHow::Guarded(_) => Err(FsError::Exists.into()),
        CreateHow::Exclusive(verifier) => {
            let attr = present.attr()?;
            let same = present.kind == FileKind::Regular
                && attr.size == 0
                && (attr.atime, attr.mtime) == stamps(verifier);
            if same { Ok(attr) } else { Err(FsError::Exists.into()) }
        }
        CreateHow::Unchecked(set) => {
            match present.kind {
                FileKind::Regular => {}
                FileKind::Directory => return Err(FsError::IsDirectory.into()),
                _ => return Err(FsError::Exists.into()),
            }
            // Of an existing file only a size of zero is set (RFC 1813 §3.3.8).
            let Some(size) = set.size.filter(|&size| size == 0) else {
                return Ok(present.attr()?);
            };
            let mut mutation = present.begin();
            let found = mutation.found(&present.fd)?;
            if size.saturating_add(CUT_INLINE_MAX) < found.size {
                waiting.or_stop()?;
            }
            set_size(volume, present, size, &found, cred, waiting)?;
            let change = present.end(mutation)?;
            Ok(change.after.ok_or(FsError::Io)?)
        }
    }
}

/// The times that keep an exclusive create's verifier: whole seconds that every file system can
/// hold, so the top bit of each half is left out.
fn stamps(verifier: &[u8; 8]) -> (Timestamp, Timestamp) {
    let [a, b, c, d, e, f, g, h] = *verifier;
    let stamp = |half: [u8; 4]| Timestamp {
        secs: i64::from(u32::from_be_bytes(half) & 0x7fff_ffff),
        nanos: 0,
    };
    (stamp([a, b, c, d]), stamp([e, f, g, h]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Descriptors, Options, Pool, StoreControl, prepare_process};
    use weir_core::Store;
    use weir_core::store::Stability;
    use weir_core::testing::block_on;

    #[test]
    fn a_file_made_with_a_size_counts_although_others_left_the_table_meanwhile() {
        prepare_process().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            quota_bytes: 1 << 30,
            namespace_durability: Durability::Process,
            metadata_cache: true,
            cached_objects_max: 16,
            descriptors: Descriptors::new(1024),
            pool: Pool::new(2).unwrap(),
        };
        let store = LocalStore::open(&directory.path().join("volume"), &options).unwrap();
        let (volume, root, cred) = (&*store.0, store.root(), Credentials::ROOT);
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let fd = openat(&root.fd, c".", flags, Mode::RUSR | Mode::WUSR).unwrap();
        let (key, _) = handle_without_birth(&fd).unwrap();
        let mark = volume.table.mark(&key);
        for number in 0.. {
            let (name, how) = (format!("f{number}"), CreateHow::Guarded(SetAttr::default()));
            let name = Name::new(name.as_bytes()).unwrap();
            block_on(store.create(&root, name, &how, &cred)).unwrap();
            if volume.table.mark(&key) != mark {
                break;
            }
        }
        let file = hold_made(volume, (fd, volume.share().unwrap()), 0, (key, mark)).unwrap();
        let set = SetAttr { size: Some(10_000), ..SetAttr::default() };
        set_made(volume, &file, &set, &cred).unwrap();
        let name = Name::new(b"file").unwrap();
        give_name(&file, &root, name, &cred).unwrap();
        block_on(store.write(&file, 0, vec![1].into(), Stability::Unstable.into())).unwrap();
        assert_eq!(store.usage().bytes, 4096);
        block_on(Store::remove(&store, &root, name, &cred)).unwrap();
        assert_eq!(store.usage().bytes, 0);
    }
}
