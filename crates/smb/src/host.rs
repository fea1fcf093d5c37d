//! The door between operations and the server around them: the store of the volume, the opens of
//! the session, and the state on which all protocols agree.
//!
//! Operations are generic over a [`Host`], so that they run in tests over a store in memory. Not
//! here: sockets, clocks, threads and contracts, which only the server has.

use crate::open::{Ending, Open, OpenState, Place, Renamed};
use crate::security::Identities;
use crate::wire::{AccessMask, FileId, Status};
use alloc::string::String;
use core::future::Future;
use core::ops::Deref;
use weir_core::{Credentials, ObjectKey, OpClass, Store, VolumeId};
use weir_state::{Mode, OpenId, OpenMode, Range, Refused, Span};

/// An object of the store of a volume.
pub type ObjectOf<V> = <<V as Volume>::Store as Store>::Object;

/// A volume as SMB shows it.
#[derive(Clone, Debug)]
pub struct Share {
    /// The volume.
    pub volume: VolumeId,
    /// The name of the share, which is the volume's.
    pub name: String,
    /// The access that the share rules leave at most.
    pub maximal: AccessMask,
    /// Names that a caller may not open are not listed.
    pub access_based_enumeration: bool,
}

/// A user who has logged in.
#[derive(Clone, Debug)]
pub struct User {
    /// The user's identity on files.
    pub credentials: Credentials,
}

/// A lock or unlock of one range (MS-SMB2 §2.2.26.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeLock {
    /// The range.
    pub span: Span,
    /// Its mode.
    pub mode: Mode,
}

/// A volume and its opens in the tables that all protocols share, for those that end opens: also
/// sessions that end without a request.
///
/// Futures are polled on the worker that made them and need not be `Send`.
pub trait Volume {
    /// The store of the volume.
    type Store: Store;

    /// The store of the volume.
    fn store(&self) -> &Self::Store;

    /// The lock of the names of a file, until this is dropped.
    type NamesLock<'a>
    where
        Self: 'a;

    /// Locks the names of the file `key` against renames and deletions of other requests over SMB.
    /// A request locks the names of one file at a time.
    fn lock_names(&self, key: &ObjectKey) -> impl Future<Output = Self::NamesLock<'_>>;

    /// Closes an open of the file `key` in the tables, with its locks. Requests that waited for
    /// locks of this open end. If it is the last open of a file that is to be deleted, it lasts
    /// until [`Volume::close`] instead, and no client can open the file; with `names_locked`, by
    /// [`Volume::lock_names`], this gives the name to remove. `place` gives the name by which the
    /// open was made, and must lock nothing but the open. See [`Deletes`](crate::open::Deletes).
    fn begin_close(
        &self,
        open: OpenId,
        key: &ObjectKey,
        place: impl Fn() -> Option<Place<ObjectOf<Self>>>,
        names_locked: bool,
    ) -> impl Future<Output = Ending<ObjectOf<Self>>>;

    /// Closes an open in the tables, with its locks, and deletes nothing.
    fn close(&self, open: OpenId) -> impl Future<Output = ()>;
}

/// The surroundings of the operations of one request: one session, one tree connect.
pub trait Host: Volume {
    /// A counted reference to an open.
    type Open: Deref<Target = Open<ObjectOf<Self>>> + Clone;
    /// A data operation under way: locks and deny modes that come later are answered once it is
    /// dropped.
    type Io;
    /// Permission to carry out a part of a request under the contract of the volume.
    type Permit: Permit;

    /// The tree's volume.
    fn share(&self) -> &Share;

    /// The session's user.
    fn user(&self) -> &User;

    /// The users and groups of the server.
    fn identities(&self) -> &dyn Identities;

    /// The open with this id, if it belongs to the session and was opened through the tree.
    fn find(&self, id: FileId) -> Option<Self::Open>;

    /// The open with this id, if it belongs to the session and was opened through any tree of the
    /// volume: a copy may have its source in another.
    fn find_source(&self, id: FileId) -> Option<Self::Open>;

    /// The tree connect of the request, by its id.
    fn tree(&self) -> u32;

    /// Keeps an open in the session under a new id, which replaces the one in `open`. `None` if the
    /// session, or the server, has as many as it may.
    fn keep(
        &self,
        open: Open<ObjectOf<Self>>,
        state: OpenState<ObjectOf<Self>>,
    ) -> Option<Self::Open>;

    /// Takes an open out of the session, so that no other request finds it. Renames reach it until
    /// it is closed. `None` if another request did.
    fn take(&self, id: FileId) -> Option<Self::Open>;

    /// Looks at, or changes, the part of an open that changes. Must not be nested.
    fn with<R>(
        &self,
        open: &Self::Open,
        act: impl FnOnce(&mut OpenState<ObjectOf<Self>>) -> R,
    ) -> R;

    /// The number of renames over SMB so far. A rename counts before it is applied to opens: an
    /// open that is kept while this number changes may have a name that is not its file's any more.
    fn renames(&self) -> u64;

    /// Counts a rename of the file of `open`, and applies it to `open`, to all other opens of the
    /// file in all sessions, and to the name by which the file is to be deleted. The caller has the
    /// names of the file locked since before the rename.
    fn apply_rename(
        &self,
        open: &Self::Open,
        renamed: Renamed<'_, ObjectOf<Self>>,
    ) -> impl Future<Output = ()>;

    /// Is an object below the directory at `path` open in any session (see
    /// [`OpenState::is_below`])?
    fn any_open_below(&self, path: &[u8]) -> impl Future<Output = bool>;

    /// Opens a file in the tables that all protocols share (MS-FSA §2.1.5.1.2.2). If the open keeps
    /// others from reading or writing, data operations that began before it have ended when this
    /// is ready.
    ///
    /// # Errors
    /// [`Refused::Sharing`], [`Refused::DeletePending`], [`Refused::Full`], [`Refused::NoVolume`].
    fn reserve(
        &self,
        file: &ObjectKey,
        mode: OpenMode,
    ) -> impl Future<Output = Result<OpenId, Refused>>;

    /// Has a file set to be deleted when this open is closed, or not. Until then others may open it
    /// too.
    ///
    /// # Errors
    /// [`Refused::Closed`].
    fn set_delete_on_close(
        &self,
        open: OpenId,
        delete: bool,
    ) -> impl Future<Output = Result<(), Refused>>;

    /// Has a file deleted when its last open is closed, or not.
    ///
    /// # Errors
    /// [`Refused::Closed`].
    fn set_delete_pending(
        &self,
        open: OpenId,
        delete: bool,
    ) -> impl Future<Output = Result<(), Refused>>;

    /// Is the file to be deleted when its last open is closed?
    fn is_delete_pending(&self, file: &ObjectKey) -> impl Future<Output = bool>;

    /// The number of opens of the file.
    fn opens_on(&self, file: &ObjectKey) -> impl Future<Output = usize>;

    /// Takes all of these locks for an open, or none. With `wait`, and one lock, waits for it; the
    /// host ends the wait if the client cancels the request. Data operations that began before are
    /// ended when this is ready.
    ///
    /// # Errors
    /// [`Status::LOCK_NOT_GRANTED`], [`Status::CANCELLED`], [`Status::INSUFFICIENT_RESOURCES`], or
    /// [`Status::RANGE_NOT_LOCKED`] if the open is closed meanwhile, as Windows has it.
    fn lock(
        &self,
        open: &Self::Open,
        locks: &[RangeLock],
        wait: bool,
    ) -> impl Future<Output = Result<(), Status>>;

    /// Gives up locks of an open, one after another, each of exactly a range that it holds.
    ///
    /// # Errors
    /// [`Status::RANGE_NOT_LOCKED`] at the first that it does not hold; those before it are given
    /// up (MS-SMB2 §3.3.5.14.1).
    fn unlock(&self, open: &Self::Open, spans: &[Span])
    -> impl Future<Output = Result<(), Status>>;

    /// Begins to read (`Shared`) or write (`Exclusive`) the bytes of an open's file; `None` for an
    /// operation on no bytes.
    ///
    /// # Errors
    /// [`Status::FILE_LOCK_CONFLICT`] if a lock of another owner stands in the way.
    fn begin_io(
        &self,
        open: &Self::Open,
        range: Option<Range>,
        mode: Mode,
    ) -> impl Future<Output = Result<Self::Io, Status>>;

    /// Waits until the contract of the volume admits a part of this request, of at most `bytes`.
    ///
    /// # Errors
    /// [`Status::CANCELLED`], [`Status::INSUFFICIENT_RESOURCES`].
    fn admit(
        &self,
        file: &ObjectKey,
        class: OpClass,
        bytes: u32,
    ) -> impl Future<Output = Result<Self::Permit, Status>>;
}

/// Permission to carry out a part of a request. Dropped without an end, it returns its charge.
pub trait Permit {
    /// The part is carried out, and moved so many bytes.
    fn end(self, moved: u64, ok: bool);
}
