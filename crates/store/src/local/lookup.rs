//! LOOKUP and finding objects by key: from the caches on the worker, from the kernel in the pool.

use super::LocalStore;
use super::inode::Inode;
use super::names::Changes;
use super::volume::{Step, Volume, Waiting};
use crate::sync::{Arc, Guard};
use weir_core::{Attr, FsError, FsResult, Name, ObjectKey};

/// A name of its own, for work that outlives the request's buffer.
pub(super) struct OwnName(Box<[u8]>);

impl From<Name<'_>> for OwnName {
    fn from(name: Name<'_>) -> Self {
        Self(name.as_bytes().into())
    }
}

impl OwnName {
    pub(super) fn get(&self) -> FsResult<Name<'_>> {
        Name::new(&self.0)
    }
}

impl LocalStore {
    #[inline]
    pub(super) async fn resolve(&self, key: &ObjectKey) -> FsResult<Arc<Inode>> {
        if let Some(inode) = self.0.table.get(key) {
            return if inode.key.may_be(key) { Ok(inode) } else { Err(FsError::Stale) };
        }
        let key = *key;
        Box::pin(self.pooled(move |volume| volume.open_key(&key))).await
    }

    #[inline]
    pub(super) async fn lookup(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
    ) -> FsResult<(Arc<Inode>, Attr)> {
        dir.need_directory()?;
        let at_root = dir.key == self.0.root.key;
        if name.is_dot() || (name.is_dot_dot() && at_root) {
            return Ok((Arc::clone(dir), dir.attr()?));
        }
        if let Some(inode) = self.0.names.get(dir, name) {
            let attr = inode.attr()?;
            return Ok((inode, attr));
        }
        if !self.0.switch.is_on()
            && let Some(found) = self.0.find_at_once(dir, name)
        {
            let inode = found?;
            let attr = inode.attr()?;
            return Ok((inode, attr));
        }
        Box::pin(self.lookup_in_kernel(dir, name)).await
    }

    async fn lookup_in_kernel(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
    ) -> FsResult<(Arc<Inode>, Attr)> {
        let (dir, name) = (Arc::clone(dir), OwnName::from(name));
        self.pooled(move |volume| {
            let name = name.get()?;
            let inode = if name.is_dot_dot() {
                volume.open_parent(&dir)?
            } else {
                let began = volume.names.count(&dir);
                let inode = volume.open_name(&dir, name)?;
                volume.names.found(&dir, name, &inode, began);
                inode
            };
            let attr = inode.attr()?;
            Ok((inode, attr))
        })
        .await
    }
}

impl Volume {
    /// The object of a name that the kernel has in memory, asked on this thread; `None` if the
    /// kernel may have to wait for the disk, or the object is not held open yet. While the metadata
    /// cache is off, a lookup needs no other thread by this, as with the cache.
    fn find_at_once(&self, dir: &Inode, name: Name<'_>) -> Option<FsResult<Arc<Inode>>> {
        if name.is_dot_dot() || dir.is_gone() {
            return None;
        }
        let key = match self.key_in_memory(dir.fd(), name.as_bytes())? {
            Ok(key) => key,
            Err(error) => return Some(Err(error)),
        };
        self.table.get(&key).filter(|inode| !inode.is_gone()).map(Ok)
    }

    /// Takes the lock under which a directory's entries change.
    pub(super) fn lock_names<'a>(
        &self,
        dir: &'a Inode,
        waiting: Waiting,
    ) -> Step<Guard<'a, Changes>> {
        dir.need_directory()?;
        if dir.is_gone() {
            return Err(FsError::Stale.into());
        }
        if let Some(lock) = self.names.try_lock(dir) {
            return Ok(lock);
        }
        waiting.or_stop()?;
        Ok(self.names.lock(dir))
    }

    /// The object called `name` in `dir`, whose `lock` the caller holds.
    pub(super) fn locked_lookup(
        &self,
        (dir, lock): (&Inode, &Changes),
        name: Name<'_>,
        waiting: Waiting,
    ) -> Step<Arc<Inode>> {
        if let Some(inode) = self.names.get(dir, name) {
            return Ok(inode);
        }
        if !self.switch.is_on()
            && let Some(found) = self.find_at_once(dir, name)
        {
            return Ok(found?);
        }
        waiting.or_stop()?;
        let inode = self.open_name(dir, name)?;
        self.names.set(dir, name, &inode, lock);
        Ok(inode)
    }

    /// Lets go of an object whose last name is gone, so that its space is freed and its handle
    /// becomes stale.
    pub(super) fn bury(&self, inode: &Inode) {
        inode.gone.store(true, crate::sync::Release);
        self.table.remove(&inode.key);
        if let Some(kept) = &self.kept {
            kept.forget(&inode.key);
        }
    }
}
