//! The contract between protocols and storage, written as a specification.
//!
//! A [`Store`] is one volume. Protocol operations are generic over it and `async`: a store answers
//! at once what it can answer from memory (the future is ready on its first poll) and takes
//! everything that may block to threads of its own. Futures are polled on the worker that made
//! them and need not be `Send`; an operation that was started is carried out even if its future is
//! dropped.
//!
//! A store knows no protocol, no export rule and no performance contract. The right to read, write
//! and look up is decided before the store is called (see [`crate::access`]); calls that change
//! names or attributes carry the caller's [`Credentials`], and the store lets the kernel (or the
//! model) decide under that identity.
//!
//! A protocol that has decided before, such as SMB when an object was opened, passes
//! [`Credentials::ROOT`]: then the store decides nothing, and the outcome is as for a caller who
//! may do it. It passes the caller's own where an object is made, which belongs to that caller
//! then. A size is set by [`Store::set_size`], not by [`Store::set_attr`] as root: the superuser
//! keeps set-id bits that others lose.

use crate::acl::{Acl, AclKind};
use crate::attr::{Attr, Change, DeviceNumber, SetAttr};
use crate::buf::Shared;
use crate::cred::Credentials;
use crate::details::{Details, SetDetails};
use crate::error::FsResult;
use crate::handle::ObjectKey;
use crate::name::Name;
use crate::time::Timestamp;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::Future;
use core::ops::Range;

/// The stability that a write needs before it is answered (RFC 1813 §3.3.7, `stable_how`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stability {
    /// The data is in the kernel's page cache, nowhere less: it survives the server, not a power
    /// cut.
    Unstable,
    /// Data on stable storage, with the metadata needed to find it.
    DataSync,
    /// Data and metadata on stable storage.
    FileSync,
}

/// The way of a [`Store::write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteHow {
    /// The stability of the data.
    pub stability: Stability,
    /// Give the file's attributes around the write, which costs a look at them.
    pub gives_change: bool,
}

impl From<Stability> for WriteHow {
    fn from(stability: Stability) -> Self {
        Self { stability, gives_change: true }
    }
}

/// The answer to [`Store::read`].
#[derive(Debug)]
pub struct ReadDone {
    /// The buffer given, with the data appended.
    pub out: Vec<u8>,
    /// Bytes appended.
    pub count: u32,
    /// Does the data end at or after the end of the file?
    pub eof: bool,
    /// The file's attributes after the read.
    pub attr: Attr,
}

/// The answer to [`Store::write`].
#[derive(Clone, Copy, Debug)]
pub struct WriteDone {
    /// Bytes written, from the front of the data; fewer than given only where space ran out.
    pub count: u32,
    /// The stability of the data: at least the one asked for.
    pub committed: Stability,
    /// The file around the write; empty if the caller did not ask for it.
    pub change: Change,
}

/// The treatment of an existing name by [`Store::create`] (RFC 1813 §3.3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateHow {
    /// An existing regular file is opened, and truncated if a size of zero is set.
    Unchecked(SetAttr),
    /// An existing name is [`FsError::Exists`](crate::FsError::Exists).
    Guarded(SetAttr),
    /// Guarded, but a file that was made with the same verifier counts as just made. The store
    /// keeps the verifier in stable storage with the file (in its access and modification times, as
    /// the RFC suggests).
    Exclusive([u8; 8]),
}

/// The objects that [`Store::make`] makes besides regular files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MakeKind {
    /// A directory.
    Directory,
    /// A symbolic link with this target: 1 to 4,095 bytes without NUL.
    Symlink(Vec<u8>),
    /// A named pipe.
    Fifo,
    /// A local socket.
    Socket,
    /// A block device node.
    BlockDevice(DeviceNumber),
    /// A character device node.
    CharDevice(DeviceNumber),
}

/// An object that was found or made, and the directory around it.
#[derive(Clone, Debug)]
pub struct Made<O> {
    /// The object.
    pub object: O,
    /// The entry's attributes.
    pub attr: Attr,
    /// The directory around the operation.
    pub dir: Change,
}

/// An object that was found under a name that may differ in case.
#[derive(Clone, Debug)]
pub struct Folded<O> {
    /// The name as the directory has it.
    pub name: Box<[u8]>,
    /// The object.
    pub object: O,
    /// Its attributes.
    pub attr: Attr,
}

/// The treatment of an existing name by [`Store::rename_this`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// It is [`FsError::Exists`](crate::FsError::Exists).
    No,
    /// It is replaced, as by [`Store::rename`].
    Yes,
}

/// The parts of a file that hold data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// The ranges, in order, neither empty nor touching.
    pub ranges: Vec<Range<u64>>,
    /// Is there more than was asked for?
    pub more: bool,
}

/// The properties of each entry that [`Store::read_dir`] is to tell beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// Nothing.
    Names,
    /// The key and the attributes.
    Attributes,
    /// The details too.
    Details,
}

/// One entry of a directory.
#[derive(Clone, Debug)]
pub struct DirEntry {
    /// The name: at most 255 bytes, not necessarily UTF-8. `.` and `..` are listed too.
    pub name: Box<[u8]>,
    /// The object's file id.
    pub fileid: u64,
    /// Pass this to continue after the entry. Never 0; stable while the directory exists.
    pub cookie: u64,
    /// Key and attributes where asked for and where the object could still be found.
    pub object: Option<(ObjectKey, Attr)>,
    /// The details where asked for and where `object` is given.
    pub details: Option<Details>,
}

/// Part of a directory, in the store's own order.
#[derive(Clone, Debug)]
pub struct DirPage {
    /// The entries, at most as many as asked for.
    pub entries: Vec<DirEntry>,
    /// Was the last entry the directory's last?
    pub eof: bool,
    /// The directory's attributes.
    pub attr: Attr,
}

/// Space and names of the volume, all in the terms of its quota (RFC 1813 §3.3.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsStat {
    /// The quota, in bytes.
    pub total_bytes: u64,
    /// Bytes not in use.
    pub free_bytes: u64,
    /// Bytes that a write may still take: the lesser of quota and disk.
    pub available_bytes: u64,
    /// File slots in all.
    pub total_files: u64,
    /// File slots not in use.
    pub free_files: u64,
}

/// One volume's tree of objects.
///
/// Errors common to all operations: [`Stale`](crate::FsError::Stale) when the object is gone,
/// [`Io`](crate::FsError::Io) when the device failed, [`Busy`](crate::FsError::Busy) when a bound
/// of the store is reached. Operations that change anything answer once the change is as durable
/// as the volume is configured to make it.
pub trait Store: 'static {
    /// An object held open for use: cheap to clone, alive until dropped.
    type Object: Clone + 'static;

    /// The volume's top directory.
    fn root(&self) -> Self::Object;

    /// The key that [`Store::resolve`] will find this object by, also after a restart.
    fn key(&self, object: &Self::Object) -> ObjectKey;

    /// The object with this key. Ready at once if it is in the handle cache.
    ///
    /// # Errors
    /// `Stale` if it is gone; `BadHandle` if the key can't be one of this store's.
    fn resolve(&self, key: &ObjectKey) -> impl Future<Output = FsResult<Self::Object>>;

    /// The object's attributes. Ready at once if they are cached.
    fn attr(&self, object: &Self::Object) -> impl Future<Output = FsResult<Attr>>;

    /// The object's attributes and details. Ready at once if they are cached.
    ///
    /// # Errors
    /// The errors common to all.
    fn details(&self, object: &Self::Object) -> impl Future<Output = FsResult<(Attr, Details)>>;

    /// Sets details as `cred`, who must be the owner or may write. Answers attributes and details
    /// afterwards.
    ///
    /// # Errors
    /// `AccessDenied`; `NotSupported` for anything but regular files and directories; `NoSpace`,
    /// `ReadOnly`.
    fn set_details(
        &self,
        object: &Self::Object,
        set: &SetDetails,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Attr, Details)>>;

    /// The object called `name` in `dir`, and its attributes. `.` is `dir`; `..` its parent, and
    /// at the top the top itself. Symbolic links are returned, never followed.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`.
    fn lookup(
        &self,
        dir: &Self::Object,
        name: Name<'_>,
    ) -> impl Future<Output = FsResult<(Self::Object, Attr)>>;

    /// As [`Store::lookup`]; if there is no such name, the one that differs from it in case alone
    /// ([`crate::fold`]). Of several of those the one whose bytes come first. Tells the name too.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`.
    fn lookup_folded(
        &self,
        dir: &Self::Object,
        name: Name<'_>,
    ) -> impl Future<Output = FsResult<Folded<Self::Object>>>;

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `WrongKind` if it is none.
    fn read_link(&self, object: &Self::Object) -> impl Future<Output = FsResult<Vec<u8>>>;

    /// Appends up to `count` bytes of the file from `offset` on to `out`. Fewer only at the end of
    /// the file. Ready at once if the data is in the page cache.
    ///
    /// # Errors
    /// `IsDirectory` or `WrongKind` if it is no regular file.
    fn read(
        &self,
        object: &Self::Object,
        offset: u64,
        count: u32,
        out: Vec<u8>,
    ) -> impl Future<Output = FsResult<ReadDone>>;

    /// Writes `data` at `offset`. UNSTABLE data is in the page cache when this is answered.
    ///
    /// # Errors
    /// `IsDirectory`, `WrongKind`, `TooLarge`, `NoSpace`, `QuotaExceeded`; nothing was written
    /// then.
    fn write(
        &self,
        object: &Self::Object,
        offset: u64,
        data: Shared,
        how: impl Into<WriteHow>,
    ) -> impl Future<Output = FsResult<WriteDone>>;

    /// Cuts a file to `size` bytes, or grows it with a hole. The right to is decided before, as for
    /// a write, which it counts as: set-id bits go, and the next commit makes it stable.
    ///
    /// # Errors
    /// `IsDirectory`, `WrongKind`, `TooLarge`, `NoSpace`.
    fn set_size(&self, object: &Self::Object, size: u64) -> impl Future<Output = FsResult<Change>>;

    /// Makes the bytes `from..to` of a file read as zeros, as far as the file reaches, and holes of
    /// them where they are whole blocks. Its size stays. It counts as a write, as
    /// [`Store::set_size`] does.
    ///
    /// # Errors
    /// `IsDirectory`, `WrongKind`; `NotSupported` where the store has no holes.
    fn zero_range(
        &self,
        object: &Self::Object,
        from: u64,
        to: u64,
    ) -> impl Future<Output = FsResult<Change>>;

    /// The parts of `from..to` that hold data, at most `ranges_max` of them, as far as the file
    /// reaches. Ready at once for a file that is known to have no holes.
    ///
    /// # Errors
    /// `IsDirectory`, `WrongKind`.
    fn allocated_ranges(
        &self,
        object: &Self::Object,
        from: u64,
        to: u64,
        ranges_max: usize,
    ) -> impl Future<Output = FsResult<Allocated>>;

    /// Makes everything that was written to the file before this call safe from a power cut.
    fn commit(&self, object: &Self::Object) -> impl Future<Output = FsResult<Change>>;

    /// Makes everything that was done to an object before this call safe from a power cut: data and
    /// attributes of any object, and the names in a directory. On some file systems a name is safe
    /// only with its directory.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    fn stabilize(&self, object: &Self::Object) -> impl Future<Output = FsResult<()>>;

    /// The number of times that data answered as [`Unstable`](Stability::Unstable) may have been
    /// lost although the server did not restart (a failed sync). A protocol that promises its
    /// clients to tell them (RFC 1813 §3.3.7, write verifier) tells them whenever this moves.
    fn lost_writes(&self) -> u64 {
        0
    }

    /// Sets attributes as `cred`. With `guard`, only if the object's ctime is that.
    ///
    /// A size is set for those who may write, and always for the owner: a store knows no open
    /// files, so a protocol that does not give the owner this right has to refuse it before.
    ///
    /// # Errors
    /// `NotPermitted`, `AccessDenied`, `NotSync` (guard), `Invalid`, `NoSpace`.
    fn set_attr(
        &self,
        object: &Self::Object,
        set: &SetAttr,
        guard: Option<Timestamp>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>>;

    /// An access control list of the object, and the attributes that go with it. Ready at once for
    /// the access list of an object whose attributes are cached.
    ///
    /// # Errors
    /// The errors common to all.
    fn acl(
        &self,
        object: &Self::Object,
        kind: AclKind,
    ) -> impl Future<Output = FsResult<(Attr, Option<Acl>)>>;

    /// Sets one of the object's lists as `cred`, or removes it. An access list brings its
    /// permission bits with it, and is not kept if it says no more than those; removing one leaves
    /// them as they are. Answers the attributes afterwards.
    ///
    /// # Errors
    /// `NotPermitted` (neither owner nor superuser), `AccessDenied` (a default list for what is no
    /// directory), `NotSupported` (symbolic links, or the store keeps no lists), `NoSpace`.
    fn set_acl(
        &self,
        object: &Self::Object,
        kind: AclKind,
        acl: Option<&Acl>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Attr>>;

    /// Makes or opens a regular file as `cred`.
    ///
    /// # Errors
    /// `AccessDenied`, `Exists`, `IsDirectory` (unchecked, on a directory), `NotDirectory`,
    /// `NoSpace`.
    fn create(
        &self,
        dir: &Self::Object,
        name: Name<'_>,
        how: &CreateHow,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Made<Self::Object>>>;

    /// Makes a directory, link or special file as `cred`, with `set` applied.
    ///
    /// # Errors
    /// `AccessDenied`, `NotPermitted` (device nodes), `Exists`, `NotDirectory`, `NoSpace`.
    fn make(
        &self,
        dir: &Self::Object,
        name: Name<'_>,
        kind: &MakeKind,
        set: &SetAttr,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Made<Self::Object>>>;

    /// Removes a name that is no directory, as `cred`.
    ///
    /// # Errors
    /// `NotFound`, `IsDirectory`, `AccessDenied`, `NotPermitted` (sticky).
    fn remove(
        &self,
        dir: &Self::Object,
        name: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>>;

    /// Removes an empty directory, as `cred`.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`, `NotEmpty`, `Invalid` (`.`), `Exists` (`..`), `AccessDenied`.
    fn remove_dir(
        &self,
        dir: &Self::Object,
        name: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>>;

    /// Removes a name as `cred`, if it leads to `object` still: the name of an empty directory, or
    /// one of the names of anything else. Whatever else goes on in `dir`, never the name of another
    /// object.
    ///
    /// # Errors
    /// `NotFound` if the name is gone or leads to another object, `NotEmpty`, `Invalid` (`.` and
    /// `..`), `AccessDenied`, `NotPermitted` (sticky).
    fn remove_this(
        &self,
        dir: &Self::Object,
        name: Name<'_>,
        object: &Self::Object,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>>;

    /// Renames as `cred`, replacing what `to` names if it is of the same sort. Gives the changes of
    /// both directories, in that order (the same twice if they are one).
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `NotEmpty`, `NotDirectory`, `IsDirectory`, `Invalid` (into itself),
    /// `AccessDenied`.
    fn rename(
        &self,
        from_dir: &Self::Object,
        from: Name<'_>,
        to_dir: &Self::Object,
        to: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Change, Change)>>;

    /// Renames as [`Store::rename`] does, if `from` leads to `object` still, and with `replace`
    /// deciding about an existing name. To the very name that it has, nothing changes. If another
    /// name of the same object is in the way, `Replace::Yes` leaves both, as `rename` does.
    ///
    /// # Errors
    /// The errors of `rename`; `NotFound` also if the name leads to another object.
    fn rename_this(
        &self,
        object: &Self::Object,
        from: (&Self::Object, Name<'_>),
        to: (&Self::Object, Name<'_>),
        replace: Replace,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Change, Change)>>;

    /// Gives `object` one more name, as `cred`. Answers its attributes and the directory's change.
    ///
    /// # Errors
    /// `Exists`, `IsDirectory` (a directory has one name), `TooManyLinks`, `AccessDenied`.
    fn link(
        &self,
        object: &Self::Object,
        dir: &Self::Object,
        name: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Attr, Change)>>;

    /// Entries of `dir` after `cookie` (0: from the start), at most `entries_max` and about
    /// `name_bytes_max` bytes of names, with what is wanted of their objects.
    ///
    /// # Errors
    /// `NotDirectory`; `BadCookie` where the store can tell.
    fn read_dir(
        &self,
        dir: &Self::Object,
        cookie: u64,
        entries_max: usize,
        name_bytes_max: usize,
        want: Want,
    ) -> impl Future<Output = FsResult<DirPage>>;

    /// The volume's space.
    fn fs_stat(&self) -> impl Future<Output = FsResult<FsStat>>;
}
