//! A blocking connection to a share for everything outside the measured interval: making files,
//! laying them out, opening them, reading them back; and for the campaigns.

use super::status::login_failed;
use crate::control::Control;
use crate::engine::net::{Blocking, Ports, Waits, connect};
use crate::engine::{Limit, Limits};
use crate::error::BenchError;
use crate::target::{SmbSecurity, SmbTarget};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use weir_crypto::Provider;
use weir_smb::auth::nt_hash;
use weir_smb::le::Truncated;
use weir_smb::wire::netbios::{self, Step};
use weir_smb::wire::{CreateResponse, ReadResponse, Status, WireError, WriteResponse, output};
use weir_smb_client::{Channel, ClientError, Login, Progress, Request, Security, Setup};

const RECEIVE_BYTES: usize = 256 * 1024;
/// Compounds in flight of [`Session::ahead`].
const WINDOW: usize = 32;
/// Credits that a session for a window of large requests asks for.
const CREDITS: u16 = 512;

/// One response, kept.
#[derive(Debug)]
pub struct Reply {
    /// The outcome.
    pub status: Status,
    message: Vec<u8>,
}

impl Reply {
    /// The answer to a CREATE that succeeded.
    ///
    /// # Errors
    /// [`WireError`] if it is none.
    pub fn created(&self) -> Result<CreateResponse, WireError> {
        CreateResponse::decode(&self.message).map(|(response, _)| response)
    }

    /// The bytes that a WRITE wrote.
    ///
    /// # Errors
    /// [`WireError`] if it is no answer to one.
    pub fn written(&self) -> Result<u32, WireError> {
        WriteResponse::decode(&self.message).map(|response| response.count)
    }

    /// The data of a READ that succeeded.
    pub(super) fn data(&self) -> Result<&[u8], WireError> {
        ReadResponse::decode(&self.message).map(|response| response.data)
    }

    /// The buffer that a query brought.
    pub(super) fn output(&self) -> Result<&[u8], WireError> {
        output(&self.message)
    }
}

/// The responses to a compound, in the order of its requests.
pub type Replies = Vec<Reply>;

/// The outcome of a compound: the first status that is none of success, and none of a query that
/// has a part of the answer.
#[must_use]
pub fn outcome(replies: &Replies) -> Status {
    let failed = replies.iter().find(|reply| reply.status.is_error());
    failed.map_or(Status::SUCCESS, |reply| reply.status)
}

/// Responses that have come, of those to one compound.
struct Pending<T> {
    item: T,
    replies: Vec<Option<Reply>>,
}

/// A blocking connection. Compounds may be sent ahead; responses come in any order.
pub struct Session {
    connection: Blocking,
    channel: Channel<Provider>,
    out: Vec<u8>,
    received: Received,
}

impl Session {
    /// Connects to `address` of `target`, logs in, and connects to the share.
    ///
    /// # Errors
    /// [`BenchError`] if the server can't be reached or refuses a step.
    pub fn open(
        target: &SmbTarget,
        (address, source): (SocketAddr, Option<IpAddr>),
    ) -> Result<Self, BenchError> {
        Self::open_for(target, (address, source), CREDITS, &Waits::default())
    }

    /// Connects to the first address of `target` as [`Session::open`], with the time limits
    /// `waits`.
    pub(super) fn of(target: &SmbTarget, waits: &Waits) -> Result<Self, BenchError> {
        Self::open_for(target, (target.address, None), CREDITS, waits)
    }

    /// Connects as [`Session::open`], for requests in flight of so many credits together.
    pub(super) fn open_for(
        target: &SmbTarget,
        (address, source): (SocketAddr, Option<IpAddr>),
        credits: u16,
        waits: &Waits,
    ) -> Result<Self, BenchError> {
        let stream = connect(address, source, Ports::Any)?;
        let mut connection = Blocking::new(stream, (address, "SMB"), waits)?;
        let (mut out, mut received) = (Vec::new(), Received::default());
        let login = login(target, address, credits)?;
        let failed = |error| login_failed(target, address, &error);
        let mut setup = Setup::begin(Provider, login, &mut out).map_err(failed)?;
        let channel = loop {
            send(&mut connection, &mut out)?;
            let frame = received.frame(&mut connection)?;
            match setup.take(frame, &mut out).map_err(failed)? {
                Progress::More(next) => setup = *next,
                Progress::Done(channel) => break channel,
            }
        };
        Ok(Self { connection, channel, out, received })
    }

    /// Changes the time limits for responses.
    pub(super) fn set_waits(&mut self, waits: Waits) {
        self.connection.set_waits(waits);
    }

    /// The connection, for the load.
    pub(super) fn into_parts(self) -> (TcpStream, Channel<Provider>) {
        (self.connection.into_stream(), self.channel)
    }

    /// The error of a wrong response.
    pub(super) fn wrong(&self, error: WireError) -> BenchError {
        protocol(self.connection.address(), &ClientError::from(error))
    }

    /// The server's limits (MS-SMB2 §2.2.4). The protocol has none for files.
    pub(super) fn limits(&self) -> Limits {
        let sizes = self.channel.sizes();
        Limits {
            read: Limit::new("MaxReadSize", u64::from(sizes.read)),
            write: Limit::new("MaxWriteSize", u64::from(sizes.write)),
            file: None,
        }
    }

    /// The protocol of the connection.
    pub(super) const fn channel(&self) -> &Channel<Provider> {
        &self.channel
    }

    /// Queues a compound. Gives the number of its requests, 0 if there are not enough credits yet.
    ///
    /// # Errors
    /// [`BenchError::Protocol`] if no frame can carry it.
    pub fn queue(&mut self, token: u32, requests: &[Request<'_>]) -> Result<usize, BenchError> {
        let queued = self.channel.queue(&mut self.out, token, requests);
        match queued {
            Ok(true) => Ok(requests.len()),
            Ok(false) => Ok(0),
            Err(error) => Err(protocol(self.connection.address(), &error)),
        }
    }

    /// Sends one compound and waits for its responses.
    ///
    /// # Errors
    /// [`BenchError`] of the connection.
    pub fn call(&mut self, requests: &[Request<'_>]) -> Result<Replies, BenchError> {
        let mut replies = None;
        self.ahead(
            &Control::new(),
            std::iter::once(()),
            |session, token, ()| session.queue(token, requests),
            |(), given| {
                replies = Some(given);
                Ok(None)
            },
        )?;
        replies.ok_or_else(|| {
            protocol(
                self.connection.address(),
                &ClientError::from(WireError::from(Truncated { needed: 1, left: 0 })),
            )
        })
    }

    /// Sends a compound for each of `items` (`ask` queues it under a token and says of how many
    /// requests it is) and lets `judge` read the responses, until all are there or `control` is
    /// told to stop. An item that `judge` gives back is asked about again.
    ///
    /// # Errors
    /// The first that `judge` gives, once all that was asked is answered, so that nothing happens
    /// at the server after this returned; or the connection's, if that came first.
    pub fn ahead<T>(
        &mut self,
        control: &Control,
        items: impl Iterator<Item = T>,
        mut ask: impl FnMut(&mut Self, u32, &T) -> Result<usize, BenchError>,
        mut judge: impl FnMut(T, Replies) -> Result<Option<T>, BenchError>,
    ) -> Result<(), BenchError> {
        let mut items = items.fuse();
        let mut pending: HashMap<u32, Pending<T>> = HashMap::with_capacity(WINDOW);
        let (mut again, mut failure, mut token) = (Vec::new(), None, 0_u32);
        loop {
            while failure.is_none() && !control.stopped() && pending.len() < WINDOW {
                let Some(item) = again.pop().or_else(|| items.next()) else { break };
                let requests = ask(self, token, &item)?;
                if requests == 0 {
                    again.push(item);
                    break;
                }
                let replies = (0..requests).map(|_| None).collect();
                pending.insert(token, Pending { item, replies });
                token = token.wrapping_add(1);
            }
            if pending.is_empty() {
                return match failure {
                    Some(failure) => Err(failure),
                    None if again.is_empty() || control.stopped() => Ok(()),
                    None => Err(BenchError::Protocol {
                        address: self.connection.address(),
                        detail: "the server permits no further request".to_owned(),
                    }),
                };
            }
            // The first failure is the one to tell.
            for (item, replies) in self.answers(&mut pending)? {
                match judge(item, replies) {
                    Ok(next) => again.extend(next),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
        }
    }

    /// Sends what is queued, and takes the next frame. Gives the items whose responses are
    /// complete.
    fn answers<T>(
        &mut self,
        pending: &mut HashMap<u32, Pending<T>>,
    ) -> Result<Vec<(T, Replies)>, BenchError> {
        send(&mut self.connection, &mut self.out)?;
        let address = self.connection.address();
        let frame = self.received.frame(&mut self.connection)?;
        let mut complete = Vec::new();
        let frame_bytes = frame.len();
        let taken = self.channel.take(frame, frame_bytes, |answer| {
            let Some(entry) = pending.get_mut(&answer.token) else { return Ok(()) };
            let reply = Reply { status: answer.status, message: answer.message().to_vec() };
            if let Some(place) = entry.replies.get_mut(answer.element) {
                *place = Some(reply);
            }
            if entry.replies.iter().all(Option::is_some)
                && let Some(entry) = pending.remove(&answer.token)
            {
                let replies: Replies = entry.replies.into_iter().flatten().collect();
                complete.push((entry.item, replies));
            }
            Ok::<_, ClientError>(())
        });
        taken.map_err(|error| protocol(address, &error))?;
        Ok(complete)
    }
}

fn login(target: &SmbTarget, address: SocketAddr, credits: u16) -> Result<Login, BenchError> {
    let password = target.password.text().ok_or_else(|| {
        BenchError::Target(format!(
            "{target} needs the password of {:?}: set WEIR_SMB_PASSWORD or use --smb-password-file",
            target.user
        ))
    })?;
    Ok(Login {
        user: target.user.clone(),
        hash: nt_hash(&Provider, password),
        server: address.ip().to_string(),
        share: target.share.clone(),
        security: match target.security {
            SmbSecurity::None => Security::None,
            SmbSecurity::Sign => Security::Sign,
            SmbSecurity::Seal => Security::Seal,
        },
        credits,
    })
}

fn send(connection: &mut Blocking, out: &mut Vec<u8>) -> Result<(), BenchError> {
    let sent = connection.write_all(out);
    out.clear();
    sent
}

/// Bytes that came in.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    consumed: usize,
}

impl Received {
    /// The next frame, without its prefix.
    fn frame(&mut self, connection: &mut Blocking) -> Result<&mut [u8], BenchError> {
        let at = loop {
            let waiting = self.bytes.get(self.consumed..).unwrap_or(&[]);
            match netbios::next(waiting) {
                Ok(Step::NeedMore { .. }) => self.receive(connection)?,
                Ok(Step::Frame { at }) => break at,
                Err(error) => return Err(protocol(connection.address(), &error.into())),
            }
        };
        connection.answered();
        let start = self.consumed;
        self.consumed += at.end;
        Ok(self.bytes.get_mut(start + at.start..start + at.end).unwrap_or(&mut []))
    }

    fn receive(&mut self, connection: &mut Blocking) -> Result<(), BenchError> {
        self.bytes.drain(..self.consumed);
        self.consumed = 0;
        let len = self.bytes.len();
        self.bytes.resize(len + RECEIVE_BYTES, 0);
        let received = connection.read(self.bytes.get_mut(len..).unwrap_or(&mut []));
        self.bytes.truncate(len + *received.as_ref().unwrap_or(&0));
        received.map(drop)
    }
}

/// The peer's answer is not what was asked for.
pub(super) fn protocol(address: SocketAddr, error: &ClientError) -> BenchError {
    BenchError::Protocol { address, detail: error.to_string() }
}
