//! Frames that are not one request on a volume: compounds, whose elements are carried out one after
//! another, each under a permit of its own, and requests on no volume.
//!
//! An element that waits for a second gets an interim response in a frame of its own. The final
//! responses of all elements leave in one frame, when the last element is done (MS-SMB2 §3.3.4.1.3
//! leaves it to the server what it compounds).

use super::accounts::Accounts;
use super::aim::{Aim, OnTree, Target};
use super::answer::{Answer, sendable};
use super::begin::Element;
use super::connected::Connected;
use super::host::SmbHost;
use super::pending::{Pending, PendingList, Waiting};
use super::server::SmbServer;
use super::user_session::UserSession;
use super::window::Window;
use super::{job, pipes, tree};
use crate::clock::SystemClock;
use crate::engine::{Asked, ServedSet};
use crate::sync::Arc;
use crate::worker::{IoGenerations, NoPermit, Permits, ToGates, give_way};
use std::future::Future;
use std::net::IpAddr;
use weir_control::logins::LoginEvent;
use weir_core::{Clock, Mono};
use weir_gate::ConnId;
use weir_smb::frame;
use weir_smb::route::Route;
use weir_smb::wire::{Command, Empty, FileId, Header, HeaderFlags, Status, TreeOrAsync};

/// Bytes of the requests of one frame and of the largest responses to them. Beyond: the rest of its
/// elements are refused, so that the frame with the responses has a bound too.
const COMPOUND_BYTES_MAX: usize = 4 << 20;

/// Elements of a frame that are carried out before other connections of the worker have their turn.
const ELEMENTS_TURN_MAX: usize = 16;

/// The surroundings of a frame.
pub(super) struct Ground {
    pub(super) smb: Arc<SmbServer>,
    pub(super) sessions: Arc<Connected>,
    pub(super) window: Arc<Window>,
    pub(super) pending: Arc<PendingList>,
    pub(super) clock: SystemClock,
    pub(super) served: Arc<ServedSet>,
    pub(super) io: IoGenerations,
    pub(super) to_gates: ToGates,
    pub(super) connection: ConnId,
    pub(super) peer: IpAddr,
    /// Time at which the frame arrived.
    pub(super) arrived: Mono,
    /// The session that sealed the frame.
    pub(super) sealed: Option<Arc<UserSession>>,
}

/// The values that an element of a related compound takes over from the one before it
/// (MS-SMB2 §3.3.5.2.7.2).
#[derive(Default)]
struct Related {
    session_id: u64,
    tree_id: u32,
    /// The open that it used or made, or why there is none.
    file: Option<Result<FileId, Status>>,
}

/// An element that was carried out.
struct Ended {
    status: Status,
    bytes: Vec<u8>,
    session: Option<Arc<UserSession>>,
    tree_id: u32,
    file: Option<FileId>,
}

/// Bytes that the elements of a frame hold while it is carried out: all of them themselves, and one
/// at a time what its operation holds beside.
pub(super) fn held_bytes(elements: &[Element]) -> usize {
    let (mut sum, mut beside) = (0, 0);
    for element in elements {
        let bytes = bytes_of(element);
        sum += bytes.lasting;
        beside = beside.max(bytes.beside);
    }
    sum.min(COMPOUND_BYTES_MAX) + beside
}

/// Bytes that an element may hold.
struct BytesOf {
    /// Bytes of the element and of the largest response to it, until the frame is answered.
    lasting: usize,
    /// Bytes that its operation holds beside these.
    beside: usize,
}

fn bytes_of(element: &Element) -> BytesOf {
    let Element { header, message } = element;
    let route = header.command.ok().and_then(|one| Route::of(one, header, message).ok());
    let bytes = |of: fn(Route) -> u32| route.map_or(0, |route| of(route) as usize);
    BytesOf {
        lasting: message.len() + bytes(|route| route.response_bytes),
        beside: bytes(|route| route.held_bytes),
    }
}

/// Carries out the elements of a frame. Gives the frame that answers them; nothing if the
/// connection is closed meanwhile, or has to be because it cannot be answered.
pub(super) async fn run(ground: Ground, elements: Vec<Element>) -> Option<Vec<u8>> {
    let mut related: Option<Related> = None;
    let mut answers = Vec::with_capacity(elements.len());
    let mut bytes = 0;
    // An element comes when those before it are done: their waits are no time of the server's.
    let mut arrived = Some(ground.arrived);
    for (number, mut element) in elements.into_iter().enumerate() {
        if number > 0 && number.is_multiple_of(ELEMENTS_TURN_MAX) {
            give_way().await;
        }
        let is_related = element.header.flags.contains(HeaderFlags::RELATED);
        let before = match (is_related, related.take()) {
            (true, Some(before)) => Some(before),
            (true, None) => {
                // The first element has nothing that it could be related to.
                answers.push(ground.refuse(&element.header, Status::INVALID_PARAMETER));
                continue;
            }
            (false, _) => None,
        };
        if let Some(before) = &before {
            element.header.session_id = before.session_id;
            element.header.tree = TreeOrAsync::Tree(before.tree_id);
        }
        let from_before = before.and_then(|before| before.file);
        bytes += bytes_of(&element).lasting;
        let pending = Pending::new();
        let ended = if bytes > COMPOUND_BYTES_MAX {
            ground.beyond_bound(&element)
        } else {
            let work = ground.carry_out(&element, from_before, arrived.take(), &pending);
            ground.listed(&element.header, &pending, work).await?
        };
        let mut header = element.header;
        header.tree = TreeOrAsync::Tree(ended.tree_id);
        let session = ended.session.as_ref();
        // There is nothing to relate to in an element without a valid session.
        related = session.map(|_| Related {
            session_id: header.session_id,
            tree_id: ended.tree_id,
            file: handed_on(&header, &ended, from_before),
        });
        let answer = Answer::new(&header, ended.status, ended.bytes, session);
        answers.push(answer.after(&pending));
    }
    sendable(&ground.window, answers, ground.sealed.as_ref(), ground.peer)
}

/// The open that an element hands on to the next one. A failed CREATE hands on its status. Any
/// other failed element hands on the open that it named, so that a CLOSE after it closes that open.
fn handed_on(
    header: &Header,
    ended: &Ended,
    before: Option<Result<FileId, Status>>,
) -> Option<Result<FileId, Status>> {
    match ended.file {
        Some(file) => Some(Ok(file)),
        None if ended.status.is_error() && header.command == Ok(Command::Create) => {
            Some(Err(ended.status))
        }
        None => before,
    }
}

impl Ground {
    fn refuse(&self, header: &Header, status: Status) -> Answer {
        let session = self.sessions.find(header.session_id);
        Answer::error(header, status, self.sealed.is_some(), session.as_ref())
    }

    /// Refuses an element of a compound that is too large.
    fn beyond_bound(&self, element: &Element) -> Ended {
        let status = Status::INSUFFICIENT_RESOURCES;
        Ended {
            status,
            bytes: job::Carried::refused(self.sealed.is_some(), status).bytes,
            session: self.sessions.find(element.header.session_id),
            tree_id: element.header.tree_id(),
            file: None,
        }
    }

    /// Does the `work` of an element, which is in the list of requests that wait while it does.
    async fn listed<T>(
        &self,
        header: &Header,
        pending: &Arc<Pending>,
        work: impl Future<Output = T>,
    ) -> T {
        let element = Waiting { header, sealed: self.sealed.as_ref(), pending };
        self.pending.during(element, || self.clock.now(), work).await
    }

    /// The session of an element that proves it.
    fn proved(&self, element: &Element) -> Result<Arc<UserSession>, Status> {
        let (Element { header, message }, sealed) = (element, self.sealed.as_ref());
        self.sessions.proved(self.arrived, header, message, sealed)
    }

    /// Carries one element out, which came at `arrived`, or when those before it were done; `None`
    /// if the connection is closed.
    async fn carry_out(
        &self,
        element: &Element,
        before: Option<Result<FileId, Status>>,
        arrived: Option<Mono>,
        pending: &Arc<Pending>,
    ) -> Option<Ended> {
        let Element { header, message } = element;
        let tree_id = header.tree_id();
        let sealed = self.sealed.is_some();
        let mut bytes = frame::begin(Vec::with_capacity(256), sealed);
        let mut ended = Ended {
            status: Status::SUCCESS,
            bytes: Vec::new(),
            session: None,
            tree_id,
            file: None,
        };
        let done = match header.command {
            Err(_) => {
                ended.session = self.proved(element).ok();
                Err(Status::INVALID_PARAMETER)
            }
            Ok(Command::Echo) => self.echo(element, &mut ended, &mut bytes),
            Ok(Command::Negotiate | Command::SessionSetup | Command::Cancel) => {
                Err(Status::INVALID_PARAMETER)
            }
            Ok(command) => match self.proved(element) {
                Err(status) => Err(status),
                Ok(session) => {
                    ended.session = Some(Arc::clone(&session));
                    match command {
                        Command::Logoff | Command::TreeDisconnect if empty(element).is_err() => {
                            Err(Status::INVALID_PARAMETER)
                        }
                        Command::Logoff => self.log_off(&session, &mut bytes).await,
                        Command::TreeConnect => {
                            tree::connect(&session, &self.served, message, &mut bytes)
                                .map(|id| ended.tree_id = id)
                        }
                        Command::TreeDisconnect => {
                            self.disconnect(&session, tree_id, &mut bytes).await
                        }
                        command => {
                            let (served, session) = (&*self.served, &session);
                            let on = OnTree { served, session, element, sealed, command, before };
                            let on_tree = self.on_tree(on, arrived, pending, bytes).await?;
                            ended.status = on_tree.status;
                            ended.bytes = on_tree.bytes;
                            ended.file = on_tree.file;
                            return Some(ended);
                        }
                    }
                }
            },
        };
        match done {
            Ok(()) => ended.bytes = bytes,
            Err(status) => {
                ended.status = status;
                ended.bytes = job::error_body(bytes, sealed, status, &[]);
            }
        }
        Some(ended)
    }

    /// Answers ECHO, which needs no session; but one that names a session must be of it.
    fn echo(&self, element: &Element, ended: &mut Ended, out: &mut Vec<u8>) -> Result<(), Status> {
        if element.header.session_id != 0 {
            ended.session = Some(self.proved(element)?);
        }
        empty(element)?;
        Empty.encode(out);
        Ok(())
    }

    async fn log_off(&self, session: &UserSession, out: &mut Vec<u8>) -> Result<(), Status> {
        let event = LoginEvent::LoggedOff { session: session.id };
        self.smb.report_login(self.peer, Some(&session.name), event);
        tree::end_session(&self.smb, session).await;
        Empty.encode(out);
        Ok(())
    }

    async fn disconnect(
        &self,
        session: &UserSession,
        tree: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Status> {
        let opens = session.disconnect(tree).ok_or(Status::NETWORK_NAME_DELETED)?;
        tree::close_all(&self.smb, session, opens).await;
        Empty.encode(out);
        Ok(())
    }

    /// Carries out a request on a volume or a pipe; `None` if the connection is closed.
    async fn on_tree(
        &self,
        on: OnTree<'_>,
        arrived: Option<Mono>,
        pending: &Arc<Pending>,
        bytes: Vec<u8>,
    ) -> Option<job::Carried> {
        let OnTree { session, element, sealed, command, .. } = on;
        let (related, tree) = (on.related(), element.header.tree_id());
        let refuse = |status| Some(job::Carried::refused(sealed, status));
        let aim = match on.aim() {
            Ok(Target::Volume(aim)) => aim,
            Ok(Target::Pipes) => {
                let (smb, served) = (&self.smb, &self.served);
                let pipes = pipes::Pipes { smb, session, served, tree_id: tree };
                return Some(pipes.carry_out(element, related, bytes, sealed));
            }
            Err(status) => return refuse(status),
        };
        let Aim { volume, share, user, op, route, cost, file, open } = aim;
        let permits = Permits::new(self.connection, session.key, &self.to_gates);
        let arrived = arrived.unwrap_or_else(|| volume.clock().now());
        let asked = Asked { op, class: route.class, cost, arrived };
        let refused = match pending.unless_cancelled(permits.ask(&volume, asked, file)).await {
            Some(Ok(permit)) => Ok(permit),
            Some(Err(NoPermit::Closed)) => return None,
            Some(Err(NoPermit::Busy)) => Err(Status::INSUFFICIENT_RESOURCES),
            None => Err(Status::CANCELLED),
        };
        let mut permit = match refused {
            Ok(permit) => permit,
            Err(status) => {
                return Some(job::Carried { file: open, ..job::Carried::refused(sealed, status) });
            }
        };
        if route.waits {
            permit.set_aside(volume.clock().now());
        }
        let host = SmbHost {
            smb: Arc::clone(&self.smb),
            session: Arc::clone(session),
            tree,
            share,
            user,
            volume,
            accounts: Accounts(Arc::clone(self.served.snapshot())),
            io: self.io.clone(),
            permits,
            pending: Arc::clone(pending),
        };
        let carried = job::carry_out(&host, command, element, related, bytes, sealed).await;
        permit.end(carried.moved, !carried.status.is_error());
        Some(carried)
    }
}

/// Checks that a request has the body of those without fields.
fn empty(element: &Element) -> Result<(), Status> {
    let decoded = Empty::decode(&element.message);
    decoded.map(|_| ()).map_err(|_| Status::INVALID_PARAMETER)
}
