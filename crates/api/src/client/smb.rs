//! Requests about sessions, opens and locks.

use super::{Client, Dry, NOTHING, Pages, Result};
use crate::routes;
use crate::{FileLock, SmbOpen, SmbSession};
use hyper::Method;

impl Client {
    /// All SMB sessions, page by page.
    #[must_use]
    pub const fn smb_sessions(&self) -> Pages<'_, SmbSession> {
        Pages::new(self, routes::SMB_SESSIONS)
    }

    /// Ends an SMB session, and closes its opens. Returns the session before its end.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn close_smb_session(&self, id: u64) -> Result<SmbSession> {
        let path = routes::path(routes::SMB_SESSION, &id.to_string());
        self.send(Method::DELETE, &path, NOTHING, Dry::No).await
    }

    /// All opens of SMB clients, page by page.
    #[must_use]
    pub const fn smb_opens(&self) -> Pages<'_, SmbOpen> {
        Pages::new(self, routes::SMB_OPENS)
    }

    /// Closes an open of an SMB client, and releases its locks. Returns the open before its end.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn close_smb_open(&self, id: u64) -> Result<SmbOpen> {
        let path = routes::path(routes::SMB_OPEN, &id.to_string());
        self.send(Method::DELETE, &path, NOTHING, Dry::No).await
    }

    /// All byte-range locks of SMB and NFS clients, page by page.
    #[must_use]
    pub const fn locks(&self) -> Pages<'_, FileLock> {
        Pages::new(self, routes::LOCKS)
    }

    /// Releases a byte-range lock, or cancels a request that waits for one. Returns the lock before
    /// its end.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn close_lock(&self, id: &str) -> Result<FileLock> {
        let path = routes::path(routes::LOCK, id);
        self.send(Method::DELETE, &path, NOTHING, Dry::No).await
    }
}
