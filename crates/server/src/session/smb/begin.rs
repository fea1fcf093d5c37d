//! From a record to the work it makes (MS-SMB2 §3.3.5.1, §3.3.5.2): seals, chains, message ids and
//! signatures.

use super::super::{Begun, Cx, Job, Prepared, ProtocolError};
use super::accounts::Accounts;
use super::aim::{Aim, OnTree, Target};
use super::answer::{Answer, frame_of};
use super::chain::{self, Ground};
use super::job::SmbJob;
use super::pending::{Cancelled, Pending};
use super::user_session::UserSession;
use super::{SmbError, SmbSession, Stage};
use crate::op_name::OpName;
use crate::sync::Arc;
use crate::worker::{Request, ToGates};
use weir_core::Shared;
use weir_crypto::Provider;
use weir_smb::crypto::Transform;
use weir_smb::frame;
use weir_smb::ops;
use weir_smb::wire::{
    Chain, Command, Empty, Header, HeaderFlags, Protocol, Smb1Negotiate, Status, TreeOrAsync,
};

/// Room for the frame that answers an ECHO, sealed or not.
const ECHO_BYTES: usize = 160;

/// One request of a frame.
#[derive(Clone, Debug)]
pub(super) struct Element {
    /// Its header.
    pub(super) header: Header,
    /// The request, from its header on.
    pub(super) message: Shared,
}

impl SmbSession {
    /// See [`super::super::Session::begin`].
    pub(in super::super) fn begin(
        &mut self,
        cx: Cx<'_>,
        record: &Shared,
    ) -> Result<Begun, ProtocolError> {
        let begun = match Protocol::of(record).map_err(SmbError::from)? {
            Protocol::Smb2 => self.frame(cx, record, None),
            Protocol::Sealed => {
                let (session, frame) = self.open(record)?;
                self.frame(cx, &frame, Some(session))
            }
            Protocol::Smb1 => self.upgrade(record),
            Protocol::Compressed => Err(SmbError::Compressed),
        };
        Ok(begun?)
    }

    /// Tells a client of SMB1 to begin again with SMB2 (MS-SMB2 §3.3.5.3).
    fn upgrade(&mut self, record: &[u8]) -> Result<Begun, SmbError> {
        if !matches!(self.stage, Stage::Fresh) {
            return Err(SmbError::OutOfOrder);
        }
        let offer = Smb1Negotiate::decode(record)?;
        if !offer.offers_smb2_any {
            return Err(SmbError::NoDialect);
        }
        self.stage = Stage::Upgraded;
        Ok(Begun::Reply(self.upgrade_reply()?))
    }

    /// Opens a sealed frame. Gives the session that sealed it, and the messages.
    fn open(&self, record: &[u8]) -> Result<(Arc<UserSession>, Shared), SmbError> {
        let transform = Transform::parse(record)?;
        let session = self.sessions.find(transform.session_id).ok_or(SmbError::NoSession)?;
        let keys = session.sealing.as_ref().ok_or(SmbError::NoSession)?;
        let mut bytes = record.to_vec();
        let length = keys.open(&mut bytes)?.len();
        let at = bytes.len() - length;
        Ok((session, Shared::from(bytes).skip(at)))
    }

    /// Takes up the messages of a frame, which was `sealed` by a session or not.
    fn frame(
        &mut self,
        mut cx: Cx<'_>,
        frame: &Shared,
        sealed: Option<Arc<UserSession>>,
    ) -> Result<Begun, SmbError> {
        let chain = Chain::decode(frame)?;
        let mut elements = Vec::with_capacity(1);
        let mut session_id = 0;
        for element in chain.iter() {
            let header = element.header;
            if !header.flags.contains(HeaderFlags::RELATED) {
                session_id = header.session_id;
            }
            if header.flags.contains(HeaderFlags::RESPONSE) {
                return Err(SmbError::Response);
            }
            if header.command == Ok(Command::Cancel) {
                continue;
            }
            let message = frame.slice(element.at);
            if ops::ends_connection(&header, &message) {
                return Err(SmbError::Validation);
            }
            if sealed.is_none() && self.is_unprotected(&header, session_id) {
                return Err(SmbError::Unprotected);
            }
            self.window.take(&header, cx.parked)?;
            elements.push(Element { header, message });
        }
        if elements.is_empty() {
            return match &self.stage {
                Stage::Negotiated(_) => self.cancel(cx.to_gates, &chain),
                Stage::Fresh | Stage::Upgraded => Err(SmbError::OutOfOrder),
            };
        }
        match (&self.stage, elements.as_slice()) {
            (Stage::Negotiated(_), [one]) => match one.header.command {
                Ok(Command::Negotiate) => Err(SmbError::OutOfOrder),
                Ok(Command::SessionSetup) => self.session_setup(&mut cx, one, sealed.as_ref()),
                Ok(Command::Echo) => self.echo(&mut cx, one, sealed.as_ref()),
                _ => self.single(cx, elements, sealed),
            },
            (Stage::Negotiated(_), _) => Ok(self.chain(&mut cx, elements, sealed)),
            (_, [one]) if one.header.command == Ok(Command::Negotiate) => self.negotiate(one),
            _ => Err(SmbError::OutOfOrder),
        }
    }

    /// Is a request that came unsealed a TREE_CONNECT without a signature, of a session? It ends
    /// the connection (MS-SMB2 §3.3.5.7), since somebody may have chosen the share on the way. If
    /// all requests of the session must be signed, it is refused like every other one.
    fn is_unprotected(&self, header: &Header, session_id: u64) -> bool {
        header.command == Ok(Command::TreeConnect)
            && !header.flags.contains(HeaderFlags::SIGNED)
            && self.sessions.find(session_id).is_some_and(|session| !session.must_sign)
    }

    /// Takes up a frame of one message.
    fn single(
        &mut self,
        mut cx: Cx<'_>,
        elements: Vec<Element>,
        sealed: Option<Arc<UserSession>>,
    ) -> Result<Begun, SmbError> {
        let [element @ Element { header, message }] = elements.as_slice() else {
            return Ok(self.chain(&mut cx, elements, sealed));
        };
        let (Ok(command), TreeOrAsync::Tree(_)) = (header.command, header.tree) else {
            return Ok(self.chain(&mut cx, elements, sealed));
        };
        if OpName::smb(command).is_none() {
            return Ok(self.chain(&mut cx, elements, sealed));
        }
        let refuse = |status, session: Option<&Arc<UserSession>>| {
            let answer = Answer::error(header, status, sealed.is_some(), session);
            Ok(Begun::Reply(frame_of(&self.window, vec![answer], sealed.as_ref())?))
        };
        let session = match self.sessions.proved(cx.arrived, header, message, sealed.as_ref()) {
            Ok(session) => session,
            Err(status) => return refuse(status, None),
        };
        let served = cx.view.load();
        let on_tree = OnTree {
            served,
            session: &session,
            element,
            sealed: sealed.is_some(),
            command,
            before: None,
        };
        let aim = match on_tree.aim() {
            Ok(Target::Volume(aim)) => aim,
            Ok(Target::Pipes) => return Ok(self.chain(&mut cx, elements, sealed)),
            Err(status) => return refuse(status, Some(&session)),
        };
        let Aim { volume, share, user, op, route, cost, file, .. } = aim;
        let (connection, arrived) = (cx.connection, cx.arrived);
        let (client, class) = (session.key, route.class);
        let accounts = Accounts(Arc::clone(served.snapshot()));
        let job = SmbJob {
            smb: Arc::clone(&self.smb),
            window: Arc::clone(&self.window),
            session,
            share,
            user,
            accounts,
            element: element.clone(),
            command,
            file,
            route,
            sealed,
            pending: Pending::new(),
        };
        let job = Job::Smb(Box::new(job));
        Ok(Begun::Request(Request { connection, client, volume, op, class, cost, arrived, job }))
    }

    /// Answers an ECHO that came alone, which waits for nothing. It needs no session; but one that
    /// names a session must be of it.
    fn echo(
        &self,
        cx: &mut Cx<'_>,
        element: &Element,
        sealed: Option<&Arc<UserSession>>,
    ) -> Result<Begun, SmbError> {
        let Element { header, message } = element;
        let is_sealed = sealed.is_some();
        let session = match header.session_id {
            0 => Ok(None),
            _ => self.sessions.proved(cx.arrived, header, message, sealed).map(Some),
        };
        let answer = match session {
            Err(status) => Answer::error(header, status, is_sealed, None),
            Ok(session) if Empty::decode(message).is_err() => {
                Answer::error(header, Status::INVALID_PARAMETER, is_sealed, session.as_ref())
            }
            Ok(session) => {
                let mut bytes = frame::begin(cx.buffers.reply(ECHO_BYTES), is_sealed);
                Empty.encode(&mut bytes);
                Answer::new(header, Status::SUCCESS, bytes, session.as_ref())
            }
        };
        Ok(Begun::Reply(frame_of(&self.window, vec![answer], sealed)?))
    }

    /// Has the messages of a frame carried out one after another.
    fn chain(
        &self,
        cx: &mut Cx<'_>,
        elements: Vec<Element>,
        sealed: Option<Arc<UserSession>>,
    ) -> Begun {
        let ground = Ground {
            smb: Arc::clone(&self.smb),
            sessions: Arc::clone(&self.sessions),
            window: Arc::clone(&self.window),
            pending: Arc::clone(&self.pending),
            clock: cx.engine.clock,
            served: Arc::clone(cx.view.load()),
            io: cx.io.clone(),
            to_gates: cx.to_gates.clone(),
            connection: cx.connection,
            peer: cx.peer,
            arrived: cx.arrived,
            sealed,
        };
        let (holds, requests) = (chain::held_bytes(&elements), elements.len());
        let reply = async move {
            chain::run(ground, elements).await.map_or(Prepared::Broken, Prepared::Reply)
        };
        Begun::Await { reply: Box::pin(reply), holds, requests }
    }

    /// Cancels requests (MS-SMB2 §3.3.5.16). There is no response to that; a request that is
    /// answered because of it is answered in a frame of its own.
    fn cancel(&self, to_gates: &ToGates, chain: &Chain<'_>) -> Result<Begun, SmbError> {
        let mut frames = Vec::new();
        for element in chain.iter() {
            let header = element.header;
            let id = match header.tree {
                TreeOrAsync::Async(id) => id,
                TreeOrAsync::Tree(_) => header.message_id,
            };
            if let Some(cancelled) = self.pending.cancel(id) {
                let Cancelled { header, is_async, sealed, at_gate } = cancelled;
                at_gate.into_iter().for_each(|at| to_gates.cancel(at));
                let session = self.sessions.find(header.session_id);
                let (status, is_sealed) = (Status::CANCELLED, sealed.is_some());
                let answer = Answer::error(&header, status, is_sealed, session.as_ref());
                let answer = if is_async { answer.in_async_form() } else { answer };
                frames.extend(frame_of(&self.window, vec![answer], sealed.as_ref())?);
            }
        }
        Ok(if frames.is_empty() { Begun::Nothing } else { Begun::Reply(frames) })
    }
}

/// Is a request really one of `session`: sealed or signed by it, where that is asked for?
pub(super) fn proved(
    session: &Arc<UserSession>,
    header: &Header,
    message: &Shared,
    sealed: Option<&Arc<UserSession>>,
) -> Result<(), Status> {
    match sealed {
        Some(sealed) if Arc::ptr_eq(sealed, session) => Ok(()),
        Some(_) => Err(Status::ACCESS_DENIED),
        None if header.flags.contains(HeaderFlags::SIGNED) => {
            let signed = session.signing.verify(&Provider, message);
            signed.map_err(|_| Status::ACCESS_DENIED)
        }
        None if session.must_sign => Err(Status::ACCESS_DENIED),
        None => Ok(()),
    }
}
