//! NEGOTIATE and SESSION_SETUP (MS-SMB2 §3.3.5.4, §3.3.5.5): what is agreed on, and who logs in.

use super::super::{Begun, Cx};
use super::answer::{Answer, frame_of};
use super::begin::{Element, proved};
use super::ending::{Admitted, Ending, Outcome};
use super::sums::{Holder, SumAccount};
use super::user_session::{LoginOrigin, NewSession, UserSession};
use super::{Delayed, SmbError, SmbServer, SmbSession, Stage};
use crate::limits::LOGINS_CONNECTION_MAX;
use crate::sync::{Arc, lock, oneshot};
use std::net::IpAddr;
use weir_catalog::{User, folded};
use weir_control::logins::LoginEvent;
use weir_core::{Mono, Origin};
use weir_crypto::Provider;
use weir_qos::ClientKey;
use weir_smb::auth::{Acceptor, Account, Login, Next, Reason, Refused};
use weir_smb::conn::{LONGEST, Negotiated, upgrade};
use weir_smb::crypto::{Derivation, Preauth, Role};
use weir_smb::frame;
use weir_smb::wire::netbios::PREFIX_BYTES;
use weir_smb::wire::{
    Command, Header, HeaderFlags, SecurityMode, SessionFlags, SessionSetupFlags,
    SessionSetupRequest, SessionSetupResponse, Status, TreeOrAsync,
};
use weir_state::{Client, Protocol};

/// A login that goes on.
pub(super) struct HalfLogin {
    session_id: u64,
    acceptor: Acceptor,
    preauth: Preauth,
}

/// One request of a login.
struct Setup<'a> {
    element: &'a Element,
    request: SessionSetupRequest<'a>,
    /// The session that sealed it.
    sealed: Option<&'a Arc<UserSession>>,
    half: HalfLogin,
    /// The session that it renews.
    renewed: Option<Arc<UserSession>>,
}

/// The end of a login. It is not answered before the time `at`.
enum Verdict {
    Admitted { at: Mono, user: Arc<User>, login: Login },
    Refused { at: Mono, status: Status, reason: String },
}

/// Why a login is refused.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Login(#[from] Reason),
    #[error("too many failed logins before it")]
    TooMany,
    #[error("the user is gone or disabled")]
    Disabled,
}

impl Refusal {
    /// The word for the reason, in the audit log.
    const fn word(self) -> &'static str {
        match self {
            Self::Login(reason) => reason.word(),
            Self::TooMany => "too_many_failures",
            Self::Disabled => "disabled",
        }
    }
}

impl SmbSession {
    /// The response that tells a client of SMB1 to begin again.
    pub(super) fn upgrade_reply(&self) -> Result<Vec<u8>, SmbError> {
        let header = Header {
            credit_charge: 0,
            status: Status::SUCCESS,
            command: Ok(Command::Negotiate),
            credits: 1,
            flags: HeaderFlags::empty(),
            next_command: 0,
            message_id: 0,
            tree: TreeOrAsync::Tree(0),
            session_id: 0,
            signature: [0; 16],
        };
        self.window.take(&header, 0)?;
        let mut bytes = frame::begin(Vec::with_capacity(256), false);
        upgrade(&self.smb.greeting, SmbServer::now(), &mut bytes);
        let answer = Answer::new(&header, Status::SUCCESS, bytes, None);
        Ok(frame_of(&self.window, vec![answer], None)?)
    }

    /// Answers NEGOTIATE.
    pub(super) fn negotiate(&mut self, element: &Element) -> Result<Begun, SmbError> {
        let Element { header, message } = element;
        let mut bytes = frame::begin(Vec::with_capacity(512), false);
        let (greeting, now) = (&self.smb.greeting, SmbServer::now());
        // Nobody has keys to sign it with (MS-SMB2 §3.3.5.2.4).
        let negotiated = if header.flags.contains(HeaderFlags::SIGNED) {
            Err(Status::INVALID_PARAMETER)
        } else {
            Negotiated::of(&Provider, greeting, message, now, &mut bytes)
        };
        match negotiated {
            Ok(mut negotiated) => {
                let answer = Answer::new(header, Status::SUCCESS, bytes, None);
                let frame = frame_of(&self.window, vec![answer], None)?;
                negotiated.preauth.update(&Provider, frame.get(PREFIX_BYTES..).unwrap_or(&[]));
                self.stage = Stage::Negotiated(Box::new(negotiated));
                Ok(Begun::Reply(frame))
            }
            Err(status) => {
                let answer = Answer::error(header, status, false, None);
                Ok(Begun::Reply(frame_of(&self.window, vec![answer], None)?))
            }
        }
    }

    /// Answers SESSION_SETUP.
    pub(super) fn session_setup(
        &mut self,
        cx: &mut Cx<'_>,
        element: &Element,
        sealed: Option<&Arc<UserSession>>,
    ) -> Result<Begun, SmbError> {
        let window = Arc::clone(&self.window);
        let refuse = |status| {
            let answer = Answer::error(&element.header, status, sealed.is_some(), None);
            Ok(Begun::Reply(frame_of(&window, vec![answer], sealed)?))
        };
        if self.delayed.len() >= LOGINS_CONNECTION_MAX {
            return refuse(Status::REQUEST_NOT_ACCEPTED);
        }
        let Ok(request) = SessionSetupRequest::decode(&element.message) else {
            return refuse(Status::INVALID_PARAMETER);
        };
        if request.flags.contains(SessionSetupFlags::BINDING) {
            return refuse(Status::REQUEST_NOT_ACCEPTED);
        }
        let (mut half, renewed) = match self.half_login(element, sealed) {
            Ok(found) => found,
            Err(status) => return refuse(status),
        };
        half.preauth.update(&Provider, &element.message);
        let mut setup = Setup { element, request, sealed, half, renewed };
        let snapshot = Arc::clone(cx.view.load().snapshot());
        let smb = Arc::clone(&self.smb);
        let lookup = |name: &str, _domain: &str| smb.nt_hash(snapshot.user_named(name)?);
        let token = setup.request.token.bytes;
        let next = setup.half.acceptor.step(&Provider, token, SmbServer::now(), lookup);
        let verdict = match next {
            Next::Continue(token) => return self.go_on(setup, &token),
            Next::Done(login) => self.admitted(cx, login),
            Next::Refused(refused) => self.refused(cx, refused),
        };
        let (at, outcome) = match verdict {
            Verdict::Admitted { at, user, login } => {
                let admitted = self.logged_in(cx, &setup, &user, login);
                (at, admitted.map_or_else(Outcome::Refused, Outcome::Admitted))
            }
            Verdict::Refused { at, status, reason } => {
                tracing::warn!(peer = %cx.peer, %reason, "login over SMB refused");
                (at, Outcome::Refused(status))
            }
        };
        let ending = Ending {
            smb: Arc::clone(&self.smb),
            sessions: Arc::clone(&self.sessions),
            window: Arc::clone(&self.window),
            peer: cx.peer,
            time: at,
            header: element.header,
            sealed: sealed.cloned(),
            renewed: setup.renewed,
        };
        let due = self.hold_back(at, cx.now);
        let reply = Box::pin(ending.run(outcome, due));
        Ok(Begun::Await { reply, holds: 0, requests: 1 })
    }

    /// Has a login held back until the time `at`; nothing if that is not later than `now`.
    fn hold_back(&mut self, at: Mono, now: Mono) -> Option<oneshot::Receiver<()>> {
        (at > now).then(|| {
            let (due, held) = oneshot::channel();
            self.delayed.push(Delayed { at, due });
            held
        })
    }

    /// The login that a request belongs to, and the session that it renews.
    fn half_login(
        &mut self,
        element: &Element,
        sealed: Option<&Arc<UserSession>>,
    ) -> Result<(HalfLogin, Option<Arc<UserSession>>), Status> {
        let Stage::Negotiated(negotiated) = &self.stage else {
            return Err(Status::INVALID_PARAMETER);
        };
        let id = element.header.session_id;
        let renewed = self.sessions.find(id);
        if let Some(session) = &renewed {
            proved(session, &element.header, &element.message, sealed)?;
        }
        if let Some(at) = self.logins.iter().position(|half| half.session_id == id) {
            return Ok((self.logins.remove(at), renewed));
        }
        let session_id = match id {
            0 => self.smb.next_session(),
            id if renewed.is_some() => id,
            _ => return Err(Status::USER_SESSION_DELETED),
        };
        let acceptor = Acceptor::new(Arc::clone(&self.smb.names));
        let preauth = negotiated.preauth.clone();
        Ok((HalfLogin { session_id, acceptor, preauth }, renewed))
    }

    /// Answers a token that is not the last.
    fn go_on(&mut self, setup: Setup<'_>, token: &[u8]) -> Result<Begun, SmbError> {
        let Setup { element, sealed, mut half, renewed, .. } = setup;
        let mut bytes = frame::begin(Vec::with_capacity(512), sealed.is_some());
        SessionSetupResponse { flags: SessionFlags::empty(), token }.encode(&mut bytes);
        let (status, renewed) = (Status::MORE_PROCESSING_REQUIRED, renewed.as_ref());
        let mut answer = Answer::new(&element.header, status, bytes, renewed);
        answer.header.session_id = half.session_id;
        let frame = frame_of(&self.window, vec![answer], sealed)?;
        half.preauth.update(&Provider, frame.get(PREFIX_BYTES..).unwrap_or(&[]));
        if self.logins.len() >= LOGINS_CONNECTION_MAX {
            self.logins.remove(0);
        }
        self.logins.push(half);
        Ok(Begun::Reply(frame))
    }

    /// The verdict on a login that proved the password.
    fn admitted(&self, cx: &mut Cx<'_>, login: Login) -> Verdict {
        let account = folded(&login.account.user);
        let at = lock(&self.smb.throttle).answer_at(&account, cx.peer, cx.now);
        let Some(at) = at else {
            return self.failed(cx, &login.account.user, Refusal::TooMany);
        };
        let user = cx.view.load().snapshot().user_named(&login.account.user).cloned();
        match user.filter(|user| user.enabled) {
            Some(user) => Verdict::Admitted { at, user, login },
            None => self.failed(cx, &login.account.user, Refusal::Disabled),
        }
    }

    /// The verdict on a login that is refused.
    fn refused(&self, cx: &Cx<'_>, Refused { reason, account }: Refused) -> Verdict {
        // A token that names nobody guesses no password.
        let Some(Account { user, .. }) = account else {
            self.smb.report_login(cx.peer, None, LoginEvent::Refused { reason: reason.word() });
            let (status, reason) = (status_of(reason), reason.to_string());
            return Verdict::Refused { at: cx.now, status, reason };
        };
        self.failed(cx, &user, reason.into())
    }

    fn failed(&self, cx: &Cx<'_>, user: &str, reason: Refusal) -> Verdict {
        self.smb.report_login(cx.peer, Some(user), LoginEvent::Refused { reason: reason.word() });
        let account = folded(user);
        let mut throttle = lock(&self.smb.throttle);
        // One more that is held back for too long is refused unseen, and costs no more.
        let at = throttle.answer_at(&account, cx.peer, cx.now);
        if at.is_some() {
            throttle.failed(&account, cx.peer, cx.now);
        }
        let at = at.unwrap_or(cx.now + LONGEST);
        let status = match reason {
            Refusal::Login(reason) => status_of(reason),
            Refusal::TooMany | Refusal::Disabled => Status::LOGON_FAILURE,
        };
        let reason = format!("{account:?}: {reason}");
        Verdict::Refused { at, status, reason }
    }

    /// The session of a user who has logged in: the one that is renewed, or a new one.
    ///
    /// # Errors
    /// A [`Status`] to answer.
    fn logged_in(
        &self,
        cx: &Cx<'_>,
        setup: &Setup<'_>,
        user: &User,
        login: Login,
    ) -> Result<Admitted, Status> {
        let session = match &setup.renewed {
            Some(session) if session.rid == user.rid => Arc::clone(session),
            Some(_) => {
                let event = LoginEvent::Refused { reason: "other_user" };
                self.smb.report_login(cx.peer, Some(&user.name), event);
                return Err(Status::ACCESS_DENIED);
            }
            None => self.new_session(cx, setup, user, &login)?,
        };
        Ok(Admitted {
            session,
            account: folded(&login.account.user),
            token: login.token,
            previous: setup.request.previous_session_id,
        })
    }

    fn new_session(
        &self,
        cx: &Cx<'_>,
        Setup { half, request, .. }: &Setup<'_>,
        user: &User,
        login: &Login,
    ) -> Result<Arc<UserSession>, Status> {
        let Stage::Negotiated(negotiated) = &self.stage else {
            return Err(Status::INVALID_PARAMETER);
        };
        let keys = Derivation::new(&Provider, &login.session_key, &half.preauth);
        let sealing = negotiated.cipher.map(|cipher| keys.sealing(cipher, Role::Server));
        let sealing = sealing.transpose().map_err(|_| Status::INSUFFICIENT_RESOURCES)?;
        let origin = Origin::of(cx.peer);
        let holder = Holder::Client { user: user.rid, origin };
        Ok(Arc::new(UserSession::new(NewSession {
            id: half.session_id,
            rid: user.rid,
            name: user.name.clone(),
            client: Client::new(Protocol::Smb, origin, &half.session_id.to_be_bytes()),
            key: client_key(user.rid, cx.peer),
            peer: cx.peer,
            signing: keys.signing(negotiated.signing, Role::Server),
            sealing,
            must_sign: self.smb.greeting.signing_required
                || negotiated.client_requires_signing
                || request.security_mode.contains(SecurityMode::SIGNING_REQUIRED),
            pipe_bytes: SumAccount::new(holder, &self.smb.pipe_bytes),
            path_bytes: SumAccount::new(holder, &self.smb.path_bytes),
            origin: LoginOrigin {
                connection: cx.connection.serial(),
                signing: negotiated.signing,
                cipher: negotiated.cipher,
                since: cx.now,
            },
        })))
    }
}

/// The status of a refused login. A token is malformed whatever account it names; of all other
/// refusals a client learns no more than that the login failed.
const fn status_of(reason: Reason) -> Status {
    match reason {
        Reason::Malformed(_) => Status::INVALID_PARAMETER,
        Reason::OutOfOrder
        | Reason::NoMechanism
        | Reason::Weak
        | Reason::Anonymous
        | Reason::OldResponse
        | Reason::UnknownUser
        | Reason::WrongProof
        | Reason::WrongMic
        | Reason::WrongListMic
        | Reason::NoListMic
        | Reason::NoRandom => Status::LOGON_FAILURE,
    }
}

/// The identity among which gates share fairly: a user at an address, so that neither the sessions
/// nor the connections of a user get more than one. It is no address of a client of NFS, since no
/// unicast address of IPv6 begins with these bits.
fn client_key(rid: u32, peer: IpAddr) -> ClientKey {
    let address = match peer {
        IpAddr::V4(address) => u64::from(u32::from(address)),
        IpAddr::V6(address) => {
            let bytes = u128::from(address).to_be_bytes();
            let halves = bytes.as_chunks().0.iter().copied().map(u64::from_be_bytes);
            halves.fold(0, |both, half| both ^ half)
        }
    };
    ClientKey(0xffff << 112 | u128::from(rid) << 64 | u128::from(address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_client_is_a_user_at_an_address() {
        let peers = ["127.0.0.1", "127.0.0.2", "fd00::1", "fd00:0:0:1::1"];
        let peers = peers.map(|peer| peer.parse::<IpAddr>().unwrap());
        let keys = || peers.iter().flat_map(|peer| [1000, 1001].map(|rid| client_key(rid, *peer)));
        let different: HashSet<ClientKey> = keys().chain(keys()).collect();
        assert_eq!(different.len(), 8);
        let is_unicast = |key: &ClientKey| key.0 >> 112 != 0xffff;
        assert!(!different.iter().any(is_unicast), "an address of a client of NFS");
    }
}
