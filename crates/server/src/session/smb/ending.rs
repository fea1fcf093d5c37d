//! The end of a login (MS-SMB2 §3.3.5.5.3): the session begins, goes on or ends when the login is
//! answered, and not before.
//!
//! A client knows the keys of its new session before it has the answer. Were the session there
//! while the answer is held back, a request signed with those keys would tell a right password from
//! a wrong one without the wait. Not here: the verdict on the login, and the time of its answer.

use super::super::Prepared;
use super::answer::{Answer, sendable};
use super::connected::Connected;
use super::server::SmbServer;
use super::tree;
use super::user_session::UserSession;
use super::window::Window;
use crate::sync::{Arc, lock, oneshot};
use std::net::IpAddr;
use weir_control::logins::LoginEvent;
use weir_core::Mono;
use weir_smb::frame;
use weir_smb::wire::{Header, SessionFlags, SessionSetupResponse, Status};

/// The surroundings of the end of a login.
pub(super) struct Ending {
    pub(super) smb: Arc<SmbServer>,
    pub(super) sessions: Arc<Connected>,
    pub(super) window: Arc<Window>,
    pub(super) peer: IpAddr,
    /// Time of the answer.
    pub(super) time: Mono,
    /// The header of the last request of the login.
    pub(super) header: Header,
    /// The session that sealed it.
    pub(super) sealed: Option<Arc<UserSession>>,
    /// The session that it renews. It signs the answer.
    pub(super) renewed: Option<Arc<UserSession>>,
}

/// The outcome of a login.
pub(super) enum Outcome {
    /// The user has proved the password.
    Admitted(Admitted),
    /// The login is refused. The session that it was to renew ends.
    Refused(Status),
}

/// A login whose user has proved the password.
pub(super) struct Admitted {
    /// The new session, or the one that is renewed.
    pub(super) session: Arc<UserSession>,
    /// The account's folded name.
    pub(super) account: String,
    /// The last token of the server.
    pub(super) token: Vec<u8>,
    /// The id of the session that the client says it had before; 0 for none.
    pub(super) previous: u64,
}

impl Ending {
    /// Ends the login once `due` says that its time has come, or at once, and answers it, unless
    /// the connection is closed before.
    pub(super) async fn run(
        self,
        outcome: Outcome,
        due: Option<oneshot::Receiver<()>>,
    ) -> Prepared {
        if let Some(due) = due
            && due.await.is_err()
        {
            return Prepared::Nothing;
        }
        let answer = match outcome {
            Outcome::Admitted(admitted) => self.admit(admitted).await,
            Outcome::Refused(status) => {
                // A session that is not renewed ends (MS-SMB2 §3.3.5.5.3).
                if let Some(session) = self.renewed.clone() {
                    tree::end_session(&self.smb, &session).await;
                }
                self.refuse(status)
            }
        };
        let frame = sendable(&self.window, vec![answer], self.sealed.as_ref(), self.peer);
        frame.map_or(Prepared::Broken, Prepared::Reply)
    }

    async fn admit(&self, admitted: Admitted) -> Answer {
        let Admitted { session, account, token, previous } = admitted;
        lock(&self.smb.throttle).succeeded(&account, self.peer, self.time);
        if self.renewed.is_none() {
            if !self.sessions.add(&session) {
                self.smb.report_login(
                    self.peer,
                    Some(&session.name),
                    LoginEvent::Refused { reason: "no_room" },
                );
                return self.refuse(Status::INSUFFICIENT_RESOURCES);
            }
            self.smb.add(&session);
            tracing::info!(user = %session.name, peer = %self.peer, "logged in over SMB");
        }
        let event = LoginEvent::LoggedIn { session: session.id, renewed: self.renewed.is_some() };
        self.smb.report_login(self.peer, Some(&session.name), event);
        let previous = self
            .smb
            .session(previous)
            .filter(|previous| previous.rid == session.rid && previous.id != session.id);
        if let Some(previous) = previous {
            tree::end_session(&self.smb, &previous).await;
        }
        let mut bytes = frame::begin(Vec::with_capacity(256), self.sealed.is_some());
        let (flags, token) = (SessionFlags::empty(), token.as_slice());
        SessionSetupResponse { flags, token }.encode(&mut bytes);
        let mut answer = Answer::new(&self.header, Status::SUCCESS, bytes, Some(&session));
        answer.header.session_id = session.id;
        // The last response is signed whatever was agreed (MS-SMB2 §3.3.5.5.3).
        answer.signed = Some(session);
        answer
    }

    fn refuse(&self, status: Status) -> Answer {
        Answer::error(&self.header, status, self.sealed.is_some(), self.renewed.as_ref())
    }
}
