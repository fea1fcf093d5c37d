//! Sessions, opens and locks of clients, which exist only while the server runs.

use crate::words::{FileUse, LockMode, Protocol};
use serde::{Deserialize, Serialize};

/// An SMB session: a user who has logged in on a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SmbSession {
    /// ID, as in the messages of the protocol.
    pub id: u64,
    /// Name of the user at the time of the login.
    pub user: String,
    /// Address of the client.
    pub client: String,
    /// Number of the connection; sessions with the same number share a connection.
    pub connection: u64,
    /// Dialect of the protocol.
    pub dialect: String,
    /// Signing algorithm.
    pub signing: String,
    /// Whether requests that are not encrypted must be signed.
    pub signing_required: bool,
    /// Cipher; absent if the client does not support encryption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cipher: Option<String>,
    /// Whether the last request was encrypted.
    pub encrypted: bool,
    /// Time of the login: RFC 3339, UTC.
    pub since: String,
    /// Seconds since the last request.
    pub idle_seconds: u64,
    /// Names of the shares that the session is connected to.
    pub shares: Vec<String>,
    /// Number of open files and directories.
    pub opens: u64,
}

/// A file or directory that an SMB client has open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SmbOpen {
    /// ID, as in the messages of the protocol.
    pub id: u64,
    /// Name of the volume.
    pub volume: String,
    /// Path from the top directory of the volume, as the client opened or renamed it; empty for the
    /// top directory. Bytes that are not UTF-8 are replaced. Absent while the file is being opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Key by which the server knows the file, in hexadecimal; the same in the list of locks.
    pub file: String,
    /// ID of the session.
    pub session: u64,
    /// Name of the user; absent while the session ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Address of the client; absent while the session ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Use of the file by this open; empty if it is open for its attributes only.
    pub access: Vec<FileUse>,
    /// Granted access mask of the protocol.
    pub access_mask: u32,
    /// Use of the file that other opens may make in the meantime.
    pub sharing: Vec<FileUse>,
    /// Whether the file will be deleted when it is closed.
    pub delete_pending: bool,
    /// Time of opening: RFC 3339, UTC; absent while the file is being opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// A byte-range lock of an SMB or NFS client, or a request that waits for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileLock {
    /// ID: the same as long as the lock exists and the server runs. The range of an NFS client's
    /// process has the same ID as long as it begins at the same byte.
    pub id: String,
    /// Name of the volume.
    pub volume: String,
    /// Path from the top directory of the volume, as in the list of opens; absent for locks of NFS
    /// clients, which name files by handles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Key by which the server knows the file, in hexadecimal; the same in the list of opens.
    pub file: String,
    /// Protocol of the owner.
    pub protocol: Protocol,
    /// Address of the client; absent while its session ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Name that the client gave (NFS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Process on the client that the client named (NFS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Name of the user (SMB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// ID of the session (SMB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// ID of the open that owns the lock (SMB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u64>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes; absent if the lock reaches to the end of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Mode.
    pub mode: LockMode,
    /// Whether the lock is not held, but waited for.
    pub waiting: bool,
}
