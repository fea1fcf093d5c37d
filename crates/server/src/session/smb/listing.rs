//! The sessions and opens of SMB as an operator lists them, and their end by an operator's hand.
//!
//! Nothing is locked for longer than one session or one open takes to be copied. Not here: the
//! tables of all protocols, which the caller reads.

use super::server::SmbServer;
use super::tree;
use super::user_session::{FileOpen, UserSession};
use crate::clock::SystemClock;
use crate::limits::PATH_LISTED_BYTES_MAX;
use crate::sync::Arc;
use std::net::IpAddr;
use std::time::SystemTime;
use weir_control::plane::{LockOwner, Object, SmbOpen, SmbSession, Uses};
use weir_core::hex;
use weir_core::{Clock, Mono, ObjectKey};
use weir_smb::crypto::Cipher;
use weir_state::{OpenFile, OpenId, Owner, Sharing};

/// One moment on the server's clock and on the calendar's.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    now: Mono,
    calendar: SystemTime,
}

impl Moment {
    /// The present.
    pub(crate) fn now(clock: SystemClock) -> Self {
        Self { now: clock.now(), calendar: SystemTime::now() }
    }

    /// The calendar's time of an earlier moment.
    fn time_of(self, at: Mono) -> SystemTime {
        self.calendar.checked_sub(self.now.since(at)).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

impl SmbServer {
    /// At most `most` sessions with ids above `after`, in order.
    pub(crate) fn list_sessions(&self, after: u64, most: usize, moment: Moment) -> Vec<SmbSession> {
        let sessions = self.sessions(after, most);
        sessions.iter().map(|session| session_as_listed(session, moment)).collect()
    }

    /// Ends a session with all that it holds. Gives the session as it was.
    pub(crate) async fn close_session(&self, id: u64, moment: Moment) -> Option<SmbSession> {
        let session = self.session(id)?;
        let listed = session_as_listed(&session, moment);
        tree::end_session(self, &session).await;
        Some(listed)
    }

    /// An open of the shared tables as it is listed, with what its session knows of it. None for an
    /// open of another protocol.
    pub(crate) fn list_open(
        &self,
        open: &OpenFile,
        delete_pending: bool,
        moment: Moment,
    ) -> Option<SmbOpen> {
        let session = Self::session_id(&open.client)?;
        let (holder, file) = self.holder_of(session, open.id);
        Some(SmbOpen {
            id: open.id.0,
            volume: open.file.volume,
            object: object(&open.file.object, file.as_deref()),
            session,
            holder,
            mask: file.as_ref().map_or(0, |file| file.open.granted.bits()),
            access: uses(open.mode.access),
            sharing: uses(open.mode.share),
            delete_pending: delete_pending || open.delete_on_close,
            since: file.map(|file| moment.time_of(file.since)),
        })
    }

    /// Closes an open, with its locks, and deletes its file if it is to be. False if it is closed
    /// already.
    pub(crate) async fn close_open(&self, session: u64, open: OpenId) -> bool {
        let Some(session) = self.session(session) else { return false };
        let Some(open) = session.take(FileOpen::id_of(open)) else { return false };
        tree::close_all(self, &session, vec![open]).await;
        true
    }

    /// The owner of a lock, and its file with the path by which the owner knows it. None for an
    /// owner of another protocol.
    pub(crate) fn list_owner(
        &self,
        owner: &Owner,
        file: &ObjectKey,
    ) -> Option<(LockOwner, Object)> {
        let (session, open) = (Self::session_id(owner.client())?, owner.open()?);
        let (holder, known) = self.holder_of(session, open);
        Some((LockOwner::Smb { open: open.0, session, holder }, object(file, known.as_deref())))
    }

    /// The user and the client's address of a session, and an open of it.
    fn holder_of(
        &self,
        session: u64,
        open: OpenId,
    ) -> (Option<(String, IpAddr)>, Option<Arc<FileOpen>>) {
        let Some(session) = self.holder(session) else { return (None, None) };
        (Some((session.name.clone(), session.peer)), session.numbered(open))
    }
}

fn session_as_listed(session: &UserSession, moment: Moment) -> SmbSession {
    let (trees, opens) = session.holds();
    let (used, encrypts) = session.last_use();
    let origin = session.origin;
    SmbSession {
        id: session.id,
        user: session.name.clone(),
        client: session.peer,
        connection: origin.connection,
        signing: origin.signing.name(),
        must_sign: session.must_sign,
        cipher: origin.cipher.map(Cipher::name),
        encrypts,
        since: moment.time_of(origin.since),
        idle_seconds: moment.now.since(used).as_secs(),
        trees,
        opens: opens as u64,
    }
}

/// An object, with the path of an open of it.
fn object(key: &ObjectKey, open: Option<&FileOpen>) -> Object {
    Object {
        key: hex::encode(key.as_bytes()),
        path: open.map(|open| open.with(|state| shortened(state.path()))),
    }
}

/// A path of at most [`PATH_LISTED_BYTES_MAX`] bytes, and an ellipsis for the rest.
fn shortened(path: &[u8]) -> Vec<u8> {
    let Some((first, [next, ..])) = path.split_at_checked(PATH_LISTED_BYTES_MAX) else {
        return path.to_vec();
    };
    // Of a letter in UTF-8 that is cut, its beginning is left out too.
    let is_inside = |byte: u8| byte & 0xc0 == 0x80;
    let whole = match first.iter().rposition(|&byte| !is_inside(byte)) {
        Some(start) if is_inside(*next) => start,
        _ => first.len(),
    };
    [first.get(..whole).unwrap_or(first), "…".as_bytes()].concat()
}

fn uses(sharing: Sharing) -> Uses {
    Uses {
        read: sharing.contains(Sharing::READ),
        write: sharing.contains(Sharing::WRITE),
        delete: sharing.contains(Sharing::DELETE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_cut_between_letters() {
        let most = PATH_LISTED_BYTES_MAX;
        let path = |name: &str, length: usize| {
            let mut path = vec![b'a'; length];
            path.extend_from_slice(name.as_bytes());
            path
        };
        assert_eq!(shortened(b"a/b"), b"a/b");
        assert_eq!(shortened(&path("", most)), path("", most));
        assert_eq!(shortened(&path("b", most)), path("…", most));
        assert_eq!(shortened(&path("äb", most - 1)), path("…", most - 1));
        assert_eq!(shortened(&path("äb", most - 2)), path("ä…", most - 2));
        let broken = vec![0x80; most + 1];
        assert_eq!(shortened(&broken).len(), most + "…".len());
    }
}
