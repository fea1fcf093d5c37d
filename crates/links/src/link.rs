//! One link: a connection to another gateway, or to the helper on its machine, over which frames
//! travel in both directions.

use crate::frames::{Frames, TooLong, framed};
use crate::hello::{Answer, Hello, Malformed};
use crate::identity::{Identity, QUESTIONS, role_of};
use crate::name::{Name, Role};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsStream;
use weir_cluster::{GatewayId, Life, Version};

/// Time for a connection, its handshake and the introduction, all together.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// Time from the first byte of a frame to its last, and for a frame to be taken by the peer.
pub const FRAME_TIME: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const READ_BYTES_MAX: usize = 16 << 10;

/// A connection of two gateways for questions, after the introduction.
pub type Stream = TlsStream<TcpStream>;

/// A link to another gateway, or to the helper on its machine.
#[derive(Debug)]
pub struct Link {
    peer: Peer,
    version: Version,
    is_for_questions: bool,
    /// The receiving half.
    pub incoming: Incoming,
    /// The sending half.
    pub outgoing: Outgoing,
}

/// The other end of a link. Its role and its gateway are proved by its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The role.
    pub role: Role,
    /// The life, with the number that it says; of a helper, its gateway with the number 0.
    pub life: Life,
}

impl Peer {
    /// Its name.
    #[must_use]
    pub fn name(self) -> Name {
        Name { role: self.role, gateway: self.life.gateway }
    }
}

/// The receiving half of a link.
#[derive(Debug)]
pub struct Incoming {
    stream: ReadHalf<TlsStream<TcpStream>>,
    frames: Frames,
    /// When the frame has to be complete of which a part was received.
    due: Option<Instant>,
}

/// The sending half of a link.
#[derive(Debug)]
pub struct Outgoing(WriteHalf<TlsStream<TcpStream>>);

/// A link that could not be opened, or that ended.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(#[from] io::Error),
    /// The peer has another key file.
    #[error("the peer has the key file of another cluster")]
    OtherCluster,
    /// The peer belongs to the cluster and is another than the dialled one.
    #[error("the peer is not {0}")]
    OtherName(Name),
    /// The peer did not do in time what it had to.
    #[error("the peer took more than {} s for {what}", limit.as_secs())]
    Slow {
        /// The time that it had.
        limit: Duration,
        /// The thing that took longer.
        what: &'static str,
    },
    /// The peer refuses the link.
    #[error("the peer refuses the link: {0}")]
    Refused(String),
    /// The peer takes links for words alone.
    #[error("the peer runs a version that takes no questions")]
    NoQuestions,
    /// The introduction is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A frame is too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The peer closed the link within a frame or before it introduced itself.
    #[error("the peer closed the link in the middle of a message")]
    Cut,
}

impl Link {
    /// Opens a link to `to` at `address`.
    ///
    /// # Errors
    /// There is no connection, the peer is another or of another cluster, it refuses the link, or
    /// all of this takes longer than [`HANDSHAKE_TIME`].
    pub async fn dial(own: &Identity, to: Name, address: SocketAddr) -> Result<Self, LinkError> {
        Self::dial_for(own, false, to, address).await
    }

    /// Opens a connection for questions to the gateway `to`, whose links are at `address`.
    ///
    /// # Errors
    /// As those of [`Self::dial`]; [`LinkError::NoQuestions`] if the peer takes none.
    pub async fn ask(
        own: &Identity,
        to: GatewayId,
        address: SocketAddr,
    ) -> Result<Stream, LinkError> {
        let to = Name { role: Role::Server, gateway: to };
        let link = Self::dial_for(own, true, to, address).await?;
        Ok(link.into_stream())
    }

    /// Opens a link, or a connection for questions if it `asks`.
    async fn dial_for(
        own: &Identity,
        asks: bool,
        to: Name,
        address: SocketAddr,
    ) -> Result<Self, LinkError> {
        let connector = if asks { own.asking() } else { own.connector() };
        let opening = async {
            let tcp = TcpStream::connect(address).await?;
            tcp.set_nodelay(true)?;
            let name = ServerName::try_from(to.in_certificate()).map_err(io::Error::other)?;
            let secured = connector.connect(name, tcp).await;
            let secured = secured.map_err(|error| named(error, Some(to)))?;
            if asks && !agrees_on_questions(secured.get_ref().1.alpn_protocol()) {
                return Err(LinkError::NoQuestions);
            }
            let mut ends = halves(secured.into());
            ends.1.send(&Hello::of(own.life()).encode()).await?;
            let answer = ends.0.receive().await.map_err(|error| told(error, to))?;
            match Answer::decode(&answer.ok_or(LinkError::Cut)?)? {
                Answer::Welcome { from, .. } if from.gateway != to.gateway => Err(Malformed.into()),
                Answer::Welcome { from, version } => {
                    Ok(Self::of(Peer { role: to.role, life: from }, (version, asks), ends))
                }
                Answer::Refusal { reason } => Err(LinkError::Refused(reason)),
            }
        };
        in_time(opening).await
    }

    /// Takes over a connection that another gateway dialled, or the helper on its machine. A helper
    /// takes none from helpers.
    ///
    /// # Errors
    /// The peer is none of this cluster, introduces itself wrongly, is refused, or takes longer
    /// than [`HANDSHAKE_TIME`].
    pub async fn accept(own: &Identity, tcp: TcpStream) -> Result<Self, LinkError> {
        let opening = async {
            tcp.set_nodelay(true)?;
            let secured = own.acceptor().accept(tcp).await;
            let secured = secured.map_err(|error| named(error, None))?;
            let proof = secured.get_ref().1.peer_certificates().and_then(|all| all.first());
            let proof = proof.cloned();
            let asks = agrees_on_questions(secured.get_ref().1.alpn_protocol());
            let mut ends = halves(secured.into());
            let hello = Hello::decode(&ends.0.receive().await?.ok_or(LinkError::Cut)?)?;
            let role = proof.and_then(|proof| role_of(&proof, hello.from.gateway));
            let answer = match role {
                Some(Role::Helper) if own.role() == Role::Helper => {
                    refusal("this is a helper, too")
                }
                Some(Role::Helper) if asks => refusal("helpers ask nothing"),
                Some(_) => hello.answer(own.life()),
                None => refusal("your certificate is that of another gateway"),
            };
            ends.1.send(&answer.encode()).await?;
            match (answer, role) {
                (Answer::Welcome { version, .. }, Some(role)) => {
                    Ok(Self::of(Peer { role, life: hello.from }, (version, asks), ends))
                }
                (Answer::Refusal { reason }, _) => {
                    ends.1.close().await;
                    Err(LinkError::Refused(reason))
                }
                (Answer::Welcome { .. }, None) => Err(Malformed.into()),
            }
        };
        in_time(opening).await
    }

    fn of(
        peer: Peer,
        (version, is_for_questions): (Version, bool),
        (incoming, outgoing): (Incoming, Outgoing),
    ) -> Self {
        Self { peer, version, is_for_questions, incoming, outgoing }
    }

    /// Has the peer opened it for questions?
    pub(crate) fn is_for_questions(&self) -> bool {
        self.is_for_questions
    }

    /// The connection itself. No byte behind the introduction has been read.
    pub(crate) fn into_stream(self) -> Stream {
        self.incoming.stream.unsplit(self.outgoing.0)
    }

    /// The other end.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// The version of the messages on this link.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }
}

impl Incoming {
    /// The next message, or none if the peer has closed the link. There is no limit to the time
    /// before a message. A call that is dropped loses nothing.
    ///
    /// # Errors
    /// The connection failed, or the peer sent a frame that is too long, took too long for one, or
    /// closed the link within one.
    pub async fn receive(&mut self) -> Result<Option<Vec<u8>>, LinkError> {
        let mut space = [0; READ_BYTES_MAX];
        loop {
            if let Some(message) = self.frames.take()? {
                self.due = None;
                return Ok(Some(message));
            }
            let wanted = self.frames.wanted()?.min(READ_BYTES_MAX);
            let reading = self.stream.read(space.get_mut(..wanted).unwrap_or_default());
            let count = match self.due {
                None => reading.await?,
                Some(due) => {
                    let late = |_| LinkError::Slow { limit: FRAME_TIME, what: "a message" };
                    timeout_at(due, reading).await.map_err(late)??
                }
            };
            if count == 0 {
                return if self.frames.is_partial() { Err(LinkError::Cut) } else { Ok(None) };
            }
            self.frames.feed(space.get(..count).unwrap_or_default());
            self.due.get_or_insert_with(|| Instant::now() + FRAME_TIME);
        }
    }
}

impl Outgoing {
    /// Sends `message`. A call that is dropped may leave a part of the message sent: close the link
    /// then.
    ///
    /// # Errors
    /// The message is too long, the connection failed, or the peer does not take it in
    /// [`FRAME_TIME`].
    pub async fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        let frame = framed(message)?;
        let sending = async {
            self.0.write_all(&frame).await?;
            self.0.flush().await
        };
        let late = |_| LinkError::Slow { limit: FRAME_TIME, what: "taking a message" };
        Ok(timeout(FRAME_TIME, sending).await.map_err(late)??)
    }

    /// Tells the peer that nothing more is sent. Errors mean that the link is closed already.
    pub async fn close(&mut self) {
        let _ = timeout(FRAME_TIME, self.0.shutdown()).await;
    }
}

fn halves(stream: TlsStream<TcpStream>) -> (Incoming, Outgoing) {
    let (reading, writing) = tokio::io::split(stream);
    (Incoming { stream: reading, frames: Frames::default(), due: None }, Outgoing(writing))
}

/// Have both agreed in the handshake that the connection is for questions?
fn agrees_on_questions(protocol: Option<&[u8]>) -> bool {
    protocol == Some(QUESTIONS)
}

fn refusal(reason: &str) -> Answer {
    Answer::Refusal { reason: reason.to_owned() }
}

async fn in_time(
    opening: impl Future<Output = Result<Link, LinkError>>,
) -> Result<Link, LinkError> {
    let late = |_| LinkError::Slow { limit: HANDSHAKE_TIME, what: "its introduction" };
    timeout(HANDSHAKE_TIME, opening).await.map_err(late)?
}

/// The meaning of a failed handshake. `to` is the name that was dialled.
fn named(error: io::Error, to: Option<Name>) -> LinkError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match (inner, to) {
        (
            Some(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )),
            Some(to),
        ) => LinkError::OtherName(to),
        (
            Some(
                rustls::Error::InvalidCertificate(_)
                | rustls::Error::AlertReceived(
                    AlertDescription::UnknownCA | AlertDescription::DecryptError,
                ),
            ),
            _,
        ) => LinkError::OtherCluster,
        (Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)), _) => {
            LinkError::NoQuestions
        }
        _ => LinkError::Connection(error),
    }
}

/// The reason for which the first message after the handshake failed: the peer's objection to our
/// certificate comes then.
fn told(error: LinkError, to: Name) -> LinkError {
    match error {
        LinkError::Connection(error) => named(error, Some(to)),
        error => error,
    }
}

#[cfg(test)]
mod tests;
