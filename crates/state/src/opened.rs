//! The open files of one volume: which opens each has, whether they can be together, and whether it
//! is to be deleted.

use crate::open::{DeleteRequest, OpenMode, Opens, Sharing};
use crate::owner::OpenId;
use crate::share::{Share, Shares};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::ops::Bound;
use weir_core::{Access, ObjectKey};

/// The files with opens.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    files: BTreeMap<Arc<ObjectKey>, FileOpens>,
}

/// The opens of one file. Most files have one, which needs nothing beside its number.
#[derive(Debug)]
struct FileOpens {
    /// The only open, unless there is `more`.
    only: OpenId,
    more: Option<Box<SeveralOpens>>,
}

/// The opens of a file that has several, or that is to be deleted.
#[derive(Debug, Default)]
struct SeveralOpens {
    opens: BTreeSet<OpenId>,
    uses: Uses,
    delete: Option<DeleteRequest>,
}

/// The numbers of a file's opens that have each kind of access, and that let nobody else have it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Uses {
    accessed: [u32; 3],
    denied: [u32; 3],
}

const KINDS: [Sharing; 3] = [Sharing::READ, Sharing::WRITE, Sharing::DELETE];

impl Uses {
    fn add(&mut self, mode: OpenMode) {
        for (kind, (accessed, denied)) in KINDS.into_iter().zip(self.counts()) {
            *accessed += u32::from(mode.access.contains(kind));
            *denied += u32::from(mode.denied().contains(kind));
        }
    }

    fn remove(&mut self, mode: OpenMode) {
        for (kind, (accessed, denied)) in KINDS.into_iter().zip(self.counts()) {
            *accessed -= u32::from(mode.access.contains(kind));
            *denied -= u32::from(mode.denied().contains(kind));
        }
    }

    fn counts(&mut self) -> impl Iterator<Item = (&mut u32, &mut u32)> {
        self.accessed.iter_mut().zip(&mut self.denied)
    }

    /// The access that some open has.
    fn accessed(&self) -> Sharing {
        kinds(&self.accessed)
    }

    /// The access that some open does not let others have.
    pub(crate) fn denied(&self) -> Sharing {
        kinds(&self.denied)
    }

    /// Can an open in this mode not be added (MS-FSA §2.1.5.1.2.2)?
    pub(crate) fn conflict(&self, mode: OpenMode) -> bool {
        self.denied().intersects(mode.access) || self.accessed().intersects(mode.denied())
    }

    /// Can this share not be added?
    pub(crate) fn conflict_share(&self, share: Share) -> bool {
        self.denied().intersects(sharing(share.access))
            || self.accessed().intersects(sharing(share.deny))
    }
}

fn kinds(counts: &[u32; 3]) -> Sharing {
    let used = KINDS.into_iter().zip(counts).filter(|(_, count)| **count > 0);
    used.map(|(kind, _)| kind).collect()
}

/// The use that is meant by a share's access, of which only reading and writing count.
fn sharing(access: Access) -> Sharing {
    let mut sharing = Sharing::empty();
    sharing.set(Sharing::READ, access.contains(Access::READ));
    sharing.set(Sharing::WRITE, access.contains(Access::WRITE));
    sharing
}

/// Does a share conflict with an open in this mode?
pub(crate) fn conflicts_with(shares: &Shares, mode: OpenMode) -> bool {
    sharing(shares.denied()).intersects(mode.access)
        || sharing(shares.accessed()).intersects(mode.denied())
}

impl FileOpens {
    /// The opens as several, even if there is only one.
    fn more(&mut self, opens: &Opens) -> &mut SeveralOpens {
        let only = self.only;
        self.more.get_or_insert_with(|| {
            let mut more =
                SeveralOpens { opens: BTreeSet::from([only]), ..SeveralOpens::default() };
            if let Ok(open) = opens.get(only) {
                more.uses.add(open.mode);
            }
            Box::new(more)
        })
    }
}

impl Opened {
    /// The number of opens of a file.
    pub(crate) fn len(&self, object: &ObjectKey) -> usize {
        let of = self.files.get(object);
        of.map_or(0, |of| of.more.as_ref().map_or(1, |more| more.opens.len()))
    }

    /// The opens of a file after the open `after`, in order.
    pub(crate) fn of(&self, object: &ObjectKey, after: OpenId) -> impl Iterator<Item = OpenId> {
        let of = self.files.get(object);
        let only = of.filter(|of| of.more.is_none() && of.only > after).map(|of| of.only);
        let more = of.and_then(|of| of.more.as_ref());
        let later = (Bound::Excluded(after), Bound::Unbounded);
        only.into_iter()
            .chain(more.into_iter().flat_map(move |more| more.opens.range(later).copied()))
    }

    /// The use of a file by its opens.
    pub(crate) fn uses(&self, object: &ObjectKey, opens: &Opens) -> Uses {
        let mut uses = Uses::default();
        match self.files.get(object) {
            Some(FileOpens { more: Some(more), .. }) => uses = more.uses,
            Some(FileOpens { only, .. }) => {
                if let Ok(open) = opens.get(*only) {
                    uses.add(open.mode);
                }
            }
            None => {}
        }
        uses
    }

    /// The request to delete the file, if there is one.
    pub(crate) fn delete(&self, object: &ObjectKey) -> Option<&DeleteRequest> {
        self.files.get(object)?.more.as_ref()?.delete.as_ref()
    }

    /// Asks for a file that is open to be deleted, or no longer so.
    pub(crate) fn set_delete(
        &mut self,
        object: &ObjectKey,
        request: Option<DeleteRequest>,
        opens: &Opens,
    ) {
        if let Some(of) = self.files.get_mut(object) {
            of.more(opens).delete = request;
        }
    }

    /// Adds an open, which is not yet among `opens`. Gives the key that the file's opens share.
    pub(crate) fn add(
        &mut self,
        object: &ObjectKey,
        id: OpenId,
        mode: OpenMode,
        opens: &Opens,
    ) -> Arc<ObjectKey> {
        if let Some((key, _)) = self.files.get_key_value(object) {
            let key = Arc::clone(key);
            if let Some(of) = self.files.get_mut(object) {
                let more = of.more(opens);
                more.opens.insert(id);
                more.uses.add(mode);
            }
            return key;
        }
        let key = Arc::new(*object);
        self.files.insert(Arc::clone(&key), FileOpens { only: id, more: None });
        key
    }

    /// Takes an open away, which was in this mode.
    pub(crate) fn remove(&mut self, object: &ObjectKey, id: OpenId, mode: OpenMode) -> Left {
        let several =
            |of: &&mut FileOpens| of.more.as_ref().is_some_and(|more| more.opens.len() > 1);
        let Some(of) = self.files.get_mut(object).filter(several) else {
            let of = self.files.remove(object);
            return Left::None(of.and_then(|of| of.more).and_then(|more| more.delete));
        };
        if let Some(more) = &mut of.more {
            more.opens.remove(&id);
            more.uses.remove(mode);
            let only = more.opens.first().copied().filter(|_| more.opens.len() == 1);
            if let Some(only) = only.filter(|_| more.delete.is_none()) {
                *of = FileOpens { only, more: None };
            }
        }
        Left::Some
    }

    /// The opens of all files.
    pub(crate) fn all(&self) -> impl Iterator<Item = OpenId> {
        self.files.values().flat_map(|of| {
            let only = of.more.is_none().then_some(of.only);
            only.into_iter().chain(of.more.iter().flat_map(|more| more.opens.iter().copied()))
        })
    }
}

/// The opens that a file has left.
#[derive(Debug)]
pub(crate) enum Left {
    /// At least one.
    Some,
    /// None. With the request to delete the file, if there is one.
    None(Option<DeleteRequest>),
}
