//! The sessions of one connection: few, and read by each request.

use super::user_session::UserSession;
use crate::limits::SESSIONS_CONNECTION_MAX;
use crate::sync::{Arc, Mutex, lock};

/// The sessions.
#[derive(Default)]
pub(super) struct Connected(Mutex<Vec<Arc<UserSession>>>);

impl Connected {
    /// The session with this id.
    pub(super) fn find(&self, id: u64) -> Option<Arc<UserSession>> {
        lock(&self.0).iter().find(|session| session.id == id && !session.has_ended()).cloned()
    }

    /// Adds a session; false if there are as many as may be.
    pub(super) fn add(&self, session: &Arc<UserSession>) -> bool {
        let mut sessions = lock(&self.0);
        sessions.retain(|session| !session.has_ended());
        let fits = sessions.len() < SESSIONS_CONNECTION_MAX;
        if fits {
            sessions.push(Arc::clone(session));
        }
        fits
    }

    /// Takes all sessions out.
    pub(super) fn take_all(&self) -> Vec<Arc<UserSession>> {
        std::mem::take(&mut *lock(&self.0))
    }
}
