//! The state that clients have at the data plane: sessions, opens and locks, to be listed and
//! closed. Not here: their configuration, which is the catalogue's.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::SystemTime;
use weir_core::VolumeId;

/// A session of SMB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmbSession {
    /// Its id, as its client knows it.
    pub id: u64,
    /// The user's name when the user logged in.
    pub user: String,
    /// The client's address.
    pub client: IpAddr,
    /// The number of its connection: sessions with the same one share a connection.
    pub connection: u64,
    /// The algorithm of signatures, by the name that the standard gives it.
    pub signing: &'static str,
    /// Must requests be signed that are not encrypted?
    pub must_sign: bool,
    /// The cipher, if the client can encrypt.
    pub cipher: Option<&'static str>,
    /// Was the last request encrypted?
    pub encrypts: bool,
    /// Time of the login.
    pub since: SystemTime,
    /// Seconds since the last request.
    pub idle_seconds: u64,
    /// The volumes that it is connected to; `None` for `IPC$`.
    pub trees: Vec<Option<VolumeId>>,
    /// The number of its opens of files.
    pub opens: u64,
}

/// A file or directory that an SMB client has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmbOpen {
    /// Its id, as its client knows it.
    pub id: u64,
    /// The volume.
    pub volume: VolumeId,
    /// The object.
    pub object: Object,
    /// The session.
    pub session: u64,
    /// The user and the client's address; `None` if the session is just ending.
    pub holder: Option<(String, IpAddr)>,
    /// The access that was granted, as a mask of MS-SMB2 §2.2.13.1.
    pub mask: u32,
    /// The use of the file that other opens must agree with.
    pub access: Uses,
    /// The use that other opens may make of the file meanwhile.
    pub sharing: Uses,
    /// Will the file be deleted when its last open is closed?
    pub delete_pending: bool,
    /// Time at which it was opened; `None` if it is just being made.
    pub since: Option<SystemTime>,
}

/// A file or directory of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The store's key of it, in hexadecimal.
    pub key: String,
    /// The path from the top directory, as the store's bytes with `/` between the names, if some
    /// open of it knows that.
    pub path: Option<Vec<u8>>,
}

/// The uses of a file about which opens agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Read or execute its data.
    pub read: bool,
    /// Write its data.
    pub write: bool,
    /// Delete or rename it.
    pub delete: bool,
}

/// A byte-range lock, or a request that waits for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its ID for operators: the same as long as the lock exists, and no other lock's as long as
    /// the server runs.
    pub id: String,
    /// The volume.
    pub volume: VolumeId,
    /// The file.
    pub object: Object,
    /// The owner.
    pub owner: LockOwner,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes; `None` if it reaches to the end of the file.
    pub length: Option<u64>,
    /// Is it held by one owner alone?
    pub exclusive: bool,
    /// Is it only a request, which waits for the lock?
    pub waits: bool,
}

/// The owner of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockOwner {
    /// A process of a host, over NLM.
    Nlm {
        /// The host's address.
        address: IpAddr,
        /// The host's name for itself.
        host: Vec<u8>,
        /// The host's number of the process.
        process: Option<u32>,
    },
    /// An open of SMB.
    Smb {
        /// The open's id.
        open: u64,
        /// The session.
        session: u64,
        /// The user and the client's address; `None` if the session is just ending.
        holder: Option<(String, IpAddr)>,
    },
}

/// A step that may have to wait for the disk. It can be polled on any thread, but on one only.
pub type Step<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The state that clients have at the data plane. Each list is given in parts of at most `most`
/// entries, each after a given one, so that no part holds up the data plane.
pub trait ClientState {
    /// The SMB sessions with ids above `after`, in the order of their ids.
    fn smb_sessions(&self, after: u64, most: usize) -> Vec<SmbSession>;

    /// Ends an SMB session with its tree connects, opens and locks. Its client's next request on it
    /// is refused. Gives the session as it was; `None` if there is none with this id.
    fn close_smb_session(&self, id: u64) -> Step<'_, Option<SmbSession>>;

    /// The opens of SMB clients with ids above `after`, in the order of their ids.
    fn smb_opens(&self, after: u64, most: usize) -> Vec<SmbOpen>;

    /// Closes an SMB client's open, and releases its locks. The client's next request on it is
    /// refused. Gives the open as it was; `None` if there is none with this id.
    fn close_smb_open(&self, id: u64) -> Step<'_, Option<SmbOpen>>;

    /// The locks of the clients of all protocols after the one with the key `after`, or from the
    /// first one on, each with its key, in the order of keys. `None` if `after` is no key.
    fn locks(&self, after: Option<&str>, most: usize) -> Option<Vec<(String, Lock)>>;

    /// Releases a lock of a client of any protocol, however many times it is held, or ends the wait
    /// of a request for one as if its client had cancelled it. NFS clients are not informed. Gives
    /// the lock as it was; `None` if there is none with this ID. Costs as much as to list all
    /// locks.
    fn close_lock(&self, id: &str) -> Option<Lock>;
}
