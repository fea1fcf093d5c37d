//! The sessions of one connection: few, and read by each request.

use super::begin::proved;
use super::user_session::UserSession;
use crate::limits::SESSIONS_CONNECTION_MAX;
use crate::sync::{Arc, Mutex, lock};
use weir_core::{Mono, Shared};
use weir_smb::wire::{Header, Status};

/// The sessions.
pub(super) struct Connected(Mutex<Option<Vec<Arc<UserSession>>>>);

impl Default for Connected {
    /// The sessions of a new connection.
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Connected {
    /// The session with this id.
    pub(super) fn find(&self, id: u64) -> Option<Arc<UserSession>> {
        let sessions = lock(&self.0);
        let mut sessions = sessions.iter().flatten();
        sessions.find(|session| session.id == id && !session.has_ended()).cloned()
    }

    /// The session of a request that came at `arrived`, if its signature or its seal is that of the
    /// session (MS-SMB2 §3.3.5.2.4, §3.3.5.2.9).
    ///
    /// # Errors
    /// A [`Status`] to answer.
    pub(super) fn proved(
        &self,
        arrived: Mono,
        header: &Header,
        message: &Shared,
        sealed: Option<&Arc<UserSession>>,
    ) -> Result<Arc<UserSession>, Status> {
        let session = self.find(header.session_id).ok_or(Status::USER_SESSION_DELETED)?;
        proved(&session, header, message, sealed)?;
        session.used(arrived, sealed.is_some());
        Ok(session)
    }

    /// Adds a session; false if there are as many as may be, or the connection is closed.
    pub(super) fn add(&self, session: &Arc<UserSession>) -> bool {
        let mut sessions = lock(&self.0);
        let Some(sessions) = sessions.as_mut() else { return false };
        sessions.retain(|session| !session.has_ended());
        let fits = sessions.len() < SESSIONS_CONNECTION_MAX;
        if fits {
            sessions.push(Arc::clone(session));
        }
        fits
    }

    /// Has any of them a file open?
    pub(super) fn hold_opens(&self) -> bool {
        lock(&self.0).iter().flatten().any(|session| session.holds_opens())
    }

    /// Takes all sessions out, because the connection is closed. A login that ends after this adds
    /// none.
    pub(super) fn take_all(&self) -> Vec<Arc<UserSession>> {
        lock(&self.0).take().unwrap_or_default()
    }
}
