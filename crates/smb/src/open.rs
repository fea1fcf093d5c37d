//! The opens of a session (MS-SMB2 §3.3.1.10). Not here: the table of them and its lock, which are
//! the host's, and what opens of all protocols must agree on, which is `weir_state`'s.

use crate::names::Pattern;
use crate::wire::{AccessMask, CreateOptions, FileId};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::Waker;
use weir_core::{FileKind, ObjectKey, Store};
use weir_state::{Closed, File, Grant, OpenId, Tables};

/// A file or directory that a client has open. Nothing of this part but the mode ever changes.
#[derive(Debug)]
pub struct Open<O> {
    /// The name that the client has for the open.
    pub id: FileId,
    /// The tree connect through which it was opened.
    pub tree: u32,
    /// The object, held open.
    pub object: O,
    /// The store's key of the object.
    pub key: ObjectKey,
    /// The kind of the object. A symbolic link is one only where the client asked for the link
    /// itself.
    pub kind: FileKind,
    /// The access that was granted when it was opened. Later operations are decided by it alone.
    pub granted: AccessMask,
    /// The options with which it was opened.
    pub options: CreateOptions,
    /// The mode, which decides whether writes are stable before they are answered.
    pub mode: FileMode,
    /// The number of the open in the tables that all protocols share.
    pub shared: OpenId,
}

impl<O> Open<O> {
    /// Is it a directory?
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }

    /// Do writes through this open have to be on stable storage before they are answered?
    #[must_use]
    pub fn is_write_through(&self) -> bool {
        self.mode.get().contains(CreateOptions::WRITE_THROUGH)
    }
}

/// The mode of an open (MS-FSCC §2.4.31): those options of its CREATE that its client can ask for
/// afterwards, and some of which it can change. Each WRITE looks at it, so it has no lock.
#[derive(Debug)]
pub struct FileMode(AtomicU32);

impl FileMode {
    /// The mode of an open with these options.
    #[must_use]
    pub const fn of(options: CreateOptions) -> Self {
        let mode = CreateOptions::WRITE_THROUGH
            .union(CreateOptions::SEQUENTIAL_ONLY)
            .union(CreateOptions::NO_INTERMEDIATE_BUFFERING)
            .union(CreateOptions::SYNCHRONOUS_IO_ALERT)
            .union(CreateOptions::SYNCHRONOUS_IO_NONALERT)
            .union(CreateOptions::DELETE_ON_CLOSE);
        Self(AtomicU32::new(options.intersection(mode).bits()))
    }

    /// The mode now. Requests that are carried out at the same time as a change have either mode.
    #[must_use]
    #[inline]
    pub fn get(&self) -> CreateOptions {
        CreateOptions::from_bits_retain(self.0.load(Ordering::Relaxed))
    }

    /// Changes the mode.
    pub fn set(&self, mode: CreateOptions) {
        self.0.store(mode.bits(), Ordering::Relaxed);
    }
}

/// The part of an open that changes.
#[derive(Clone, Debug)]
pub struct OpenState<O> {
    /// The name by which the object was opened, or to which it was renamed over SMB since; `None`
    /// for the top directory of the volume.
    pub place: Option<Place<O>>,
    path: Box<[u8]>,
    /// The position that the client set (MS-FSCC §2.4.40), which nothing uses but the client.
    pub position: u64,
    /// The listing of a directory that is under way.
    pub listing: Option<Listing>,
}

impl<O> OpenState<O> {
    /// The state of a new open by this name and path (see [`OpenState::path`]).
    #[must_use]
    pub fn new(place: Option<Place<O>>, path: Box<[u8]>) -> Self {
        Self { place, path, position: 0, listing: None }
    }

    /// The path from the top directory to the object, as the store's bytes with `/` between the
    /// names; empty for the top directory. Changes of names by other protocols do not change it.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Is the object below the directory at the path `dir`?
    #[must_use]
    pub fn is_below(&self, dir: &[u8]) -> bool {
        self.path.strip_prefix(dir).is_some_and(|rest| rest.first() == Some(&b'/'))
    }
}

/// A rename of an object, for the opens of it.
#[derive(Clone, Copy, Debug)]
pub struct Renamed<'a, O> {
    /// The name that the object had.
    pub from: &'a Place<O>,
    /// The name that it has now.
    pub to: &'a Place<O>,
    /// The path of that name.
    pub path: &'a [u8],
}

impl<O: Clone> Renamed<'_, O> {
    /// Changes name and path of an open of the object, if it was made by the old name. `has_room`
    /// decides whether the open may hold a path of so many bytes; if not, it keeps the old path.
    pub fn apply<S: Store<Object = O>>(
        &self,
        store: &S,
        state: &mut OpenState<O>,
        has_room: impl FnOnce(usize) -> bool,
    ) {
        let Some(place) = state.place.as_mut().filter(|place| self.is_of(store, place)) else {
            return;
        };
        *place = self.to.clone();
        if has_room(self.path.len()) {
            state.path = self.path.into();
        }
    }

    /// Is `place` the old name?
    fn is_of<S: Store<Object = O>>(&self, store: &S, place: &Place<O>) -> bool {
        let from = self.from;
        place.name == from.name && store.key(&place.dir) == store.key(&from.dir)
    }
}

/// The name of an object in its directory.
#[derive(Clone, Debug)]
pub struct Place<O> {
    /// The directory.
    pub dir: O,
    /// The name.
    pub name: Box<[u8]>,
}

/// The names of files that are to be deleted when their last open is closed. It is the name by
/// which the open was made that asked for the deletion, and not that of the last open: whoever asks
/// may delete no name in a directory of others. There is one of these beside the tables of opens.
#[derive(Debug)]
pub struct Deletes<O> {
    /// By file, the open that asked and was closed since.
    names: BTreeMap<File, (OpenId, Place<O>)>,
}

/// An open that is to be closed.
#[derive(Clone, Copy, Debug)]
pub struct Closing<'a, P> {
    /// Its number in the tables.
    pub open: OpenId,
    /// Its file.
    pub file: &'a File,
    /// Gives the name by which the open was made, or to which it was renamed. It is asked for under
    /// the lock of the tables: a rename that is applied later finds the file in [`Deletes`].
    pub place: P,
    /// The caller has the names of the file locked: no rename of it is under way.
    pub names_locked: bool,
}

/// The way in which an open ends.
#[derive(Debug)]
#[must_use = "a file may have to be deleted"]
pub enum Ending<O> {
    /// It is the last one of a file that is to be deleted, and not closed: the names of the file
    /// are to be locked first.
    Due,
    /// It is the last one of a file that is to be deleted: this name is to be removed, and then the
    /// open closed.
    Deletes(Place<O>),
    /// It is closed.
    Closed,
}

impl<O> Default for Deletes<O> {
    fn default() -> Self {
        Self { names: BTreeMap::new() }
    }
}

impl<O: Clone> Deletes<O> {
    /// Ends an open in the tables, as far as that goes before the file is deleted. Gives also the
    /// requests that are to be answered, if it is closed now.
    pub fn end<W>(
        &mut self,
        tables: &mut Tables<W>,
        closing: Closing<'_, impl Fn() -> Option<Place<O>>>,
        grants: &mut Vec<Grant<W>>,
    ) -> (Ending<O>, Option<Closed<W>>) {
        let Closing { open, file, place, names_locked } = closing;
        if let Some(request) = tables.delete_due(open) {
            if !names_locked {
                return (Ending::Due, None);
            }
            let earlier = self.names.remove(file).filter(|(asked, _)| *asked == request.open);
            let own = || if request.open == open { place() } else { None };
            if let Some(place) = earlier.map(|(_, place)| place).or_else(own) {
                return (Ending::Deletes(place), None);
            }
        }
        let closed = tables.close_file(open, grants);
        match &closed {
            // The request to delete the file was withdrawn, or the volume is gone.
            None | Some(Closed { last: true, .. }) => {
                self.names.remove(file);
            }
            Some(Closed { leaves_delete: true, .. }) => {
                if let Some(place) = place() {
                    self.names.insert(*file, (open, place));
                }
            }
            Some(_) => {}
        }
        (Ending::Closed, closed)
    }

    /// Applies a rename of `file` to the name by which it is to be deleted. The rename was applied
    /// to the opens of the file before: one that is closed meanwhile leaves its name here.
    pub fn apply_rename<S: Store<Object = O>>(
        &mut self,
        store: &S,
        file: &File,
        renamed: &Renamed<'_, O>,
    ) {
        if let Some((_, place)) = self.names.get_mut(file)
            && renamed.is_of(store, place)
        {
            *place = renamed.to.clone();
        }
    }
}

/// The listing of a directory, which QUERY_DIRECTORY requests carry on one after another
/// (MS-SMB2 §3.3.5.18).
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Its pattern and position; nothing until the first request has said what it looks for.
    pub scan: Option<Scan>,
    /// Is a request carrying it on?
    pub busy: bool,
    /// The requests that wait until that one is done.
    pub waiting: Vec<Waker>,
}

/// A listing between two requests.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The pattern of the first request.
    pub pattern: Pattern,
    /// The position after the last entry that was returned.
    pub next: Next,
}

/// A position in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The directory itself, as `.`.
    Dot,
    /// The parent, as `..`.
    DotDot,
    /// The entries after this cookie of the store.
    After(u64),
    /// Nothing more.
    End,
}
