//! The messages between server and helper, and their frames on the link. Plain data: bytes in,
//! values out. Not here: the socket.
//!
//! A frame is its length in bytes without this field (`u32`), the version (`u8`), the kind of the
//! message (`u8`), the number of the request (`u32`), and the message. All numbers are big-endian;
//! an address is its family (4 or 6) and its bytes.

use crate::limits::{FRAME_BYTES_MAX, TICKLES_PER_REQUEST_MAX, WORDS_BYTES_MAX};
use crate::place::{Interface, InvalidPlace, Place};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use weir_core::Mono;

/// The version of the frames and messages here. The frames of a server reach the helper over the
/// link of `weir-helper`, and these two may be of different versions of Weir during an upgrade. So
/// whoever changes this version changes that of the link as well: it is compared before anything
/// is served, and the refusal says what to restart.
const VERSION: u8 = 1;

/// Bytes of a frame before the message: version, kind, number.
const HEADER_BYTES: usize = 6;

/// Requests of the server to the helper. Each gets one [`Report::Done`] or [`Report::Refused`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Hold an address until a moment ([`crate::now`]), unless that is renewed. The address is
    /// added and announced. If it is held already, the lease is renewed, and a silence ends.
    Hold {
        /// The address, and its place.
        place: Place,
        /// The end of the lease.
        until: Mono,
    },
    /// Hold all held addresses until this moment. Never shortens a lease.
    Renew {
        /// The end of the lease.
        until: Mono,
    },
    /// Let nothing leave from an address until [`Request::Hold`] asks for it again. It stays, with
    /// its connections, until it is released or its lease ends. Done if it is not held. A helper
    /// that does not know this request refuses it in words.
    Silence {
        /// The address.
        address: IpAddr,
    },
    /// Remove an address now, and end its connections. Done if it is not held.
    Release {
        /// The address.
        address: IpAddr,
    },
    /// Make clients of an earlier machine reconnect: send each a segment that it answers, for which
    /// it gets a reset. Once more some times later, in case it was lost.
    Tickle {
        /// The address of the server, which must be held, with its port.
        local: SocketAddr,
        /// The clients' addresses and ports.
        clients: Vec<SocketAddr>,
    },
}

/// Reports of the helper to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The request of this number was carried out.
    Done {
        /// The number that [`crate::HelperLink::send`] returned.
        number: u32,
    },
    /// The request of this number was not carried out, or not completely.
    Refused {
        /// The number of the request; 0 if it could not be read.
        number: u32,
        /// The reason, for a person.
        words: String,
    },
    /// An address was removed since its lease ended.
    Ended {
        /// The address.
        address: IpAddr,
    },
    /// An address is held, or was removed, but something that belongs to it failed.
    Failed {
        /// The address.
        address: IpAddr,
        /// The failure, for a person.
        words: String,
    },
}

/// A message with the number of its request; 0 for a report that answers none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered<T> {
    /// The number.
    pub number: u32,
    /// The message.
    pub message: T,
}

/// Why a frame cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A length that no frame has: the frames after it cannot be found.
    #[error("a frame of {0} bytes: it has {HEADER_BYTES} to {FRAME_BYTES_MAX}")]
    Length(u32),
    /// Another version: its messages mean something else.
    #[error("version {0} of the link is not known; this program has version {VERSION}")]
    Version(u8),
    /// The message of this request cannot be used; the frames after it can.
    #[error("{words}")]
    Message {
        /// The number of the request.
        number: u32,
        /// The fault, for a person.
        words: String,
    },
}

/// A frame as it was received: the kind of its message, the number of the request, and the message.
#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    kind: u8,
    number: u32,
    message: &'a [u8],
}

/// Received bytes, which come in any pieces, and the frames in them.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Bytes at the front that were taken out.
    taken: usize,
}

impl Frames {
    /// Appends received bytes. The caller takes the frames out before it receives more, so that
    /// never more is kept than a frame and one receive.
    pub fn push(&mut self, received: &[u8]) {
        self.bytes.drain(..self.taken.min(self.bytes.len()));
        self.taken = 0;
        self.bytes.extend_from_slice(received);
    }

    /// Takes the next request out, if it is complete.
    ///
    /// # Errors
    /// [`FrameError`]; only after [`FrameError::Message`] there is a next one.
    pub fn request(&mut self) -> Result<Option<Numbered<Request>>, FrameError> {
        let Some(Frame { kind, number, message }) = self.next()? else { return Ok(None) };
        let request = read_request(kind, message);
        let message = request.map_err(|words| FrameError::Message { number, words })?;
        Ok(Some(Numbered { number, message }))
    }

    /// Takes the next report out, if it is complete.
    ///
    /// # Errors
    /// [`FrameError`]; only after [`FrameError::Message`] there is a next one.
    pub fn report(&mut self) -> Result<Option<Report>, FrameError> {
        let Some(Frame { kind, number, message }) = self.next()? else { return Ok(None) };
        read_report(kind, number, message)
            .map(Some)
            .map_err(|words| FrameError::Message { number, words })
    }

    fn next(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let rest = self.bytes.get(self.taken..).unwrap_or_default();
        let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length);
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        if !(HEADER_BYTES..=FRAME_BYTES_MAX).contains(&bytes) {
            return Err(FrameError::Length(length));
        }
        if let Some(version) = rest.first().filter(|version| **version != VERSION) {
            return Err(FrameError::Version(*version));
        }
        let Some(([_, kind, a, b, c, d], message)) =
            rest.get(..bytes).and_then(|frame| frame.split_first_chunk::<HEADER_BYTES>())
        else {
            return Ok(None);
        };
        self.taken += 4 + bytes;
        Ok(Some(Frame { kind: *kind, number: u32::from_be_bytes([*a, *b, *c, *d]), message }))
    }
}

mod kind {
    pub(super) const HOLD: u8 = 1;
    pub(super) const RENEW: u8 = 2;
    pub(super) const RELEASE: u8 = 3;
    pub(super) const TICKLE: u8 = 4;
    pub(super) const SILENCE: u8 = 5;

    pub(super) const DONE: u8 = 129;
    pub(super) const REFUSED: u8 = 130;
    pub(super) const ENDED: u8 = 131;
    pub(super) const FAILED: u8 = 132;
}

impl Numbered<Request> {
    /// The frame of this request. A name or a list that is longer than the limits makes a frame
    /// that the helper refuses.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        match &self.message {
            Request::Hold { place, until } => {
                let mut out = Writer::new(kind::HOLD, self.number);
                out.address(place.address());
                out.0.push(place.prefix());
                out.0.extend(until.0.to_be_bytes());
                out.text(place.interface().name());
                out.finish()
            }
            Request::Renew { until } => {
                let mut out = Writer::new(kind::RENEW, self.number);
                out.0.extend(until.0.to_be_bytes());
                out.finish()
            }
            Request::Silence { address } => {
                let mut out = Writer::new(kind::SILENCE, self.number);
                out.address(*address);
                out.finish()
            }
            Request::Release { address } => {
                let mut out = Writer::new(kind::RELEASE, self.number);
                out.address(*address);
                out.finish()
            }
            Request::Tickle { local, clients } => {
                let mut out = Writer::new(kind::TICKLE, self.number);
                out.socket(*local);
                let count = u16::try_from(clients.len()).unwrap_or(u16::MAX);
                out.0.extend(count.to_be_bytes());
                for client in clients {
                    out.socket(*client);
                }
                out.finish()
            }
        }
    }
}

impl Report {
    /// The frame of this report.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        match self {
            Self::Done { number } => Writer::new(kind::DONE, *number).finish(),
            Self::Refused { number, words } => {
                let mut out = Writer::new(kind::REFUSED, *number);
                out.text(words);
                out.finish()
            }
            Self::Ended { address } => {
                let mut out = Writer::new(kind::ENDED, 0);
                out.address(*address);
                out.finish()
            }
            Self::Failed { address, words } => {
                let mut out = Writer::new(kind::FAILED, 0);
                out.address(*address);
                out.text(words);
                out.finish()
            }
        }
    }
}

/// A frame in the making.
struct Writer(Vec<u8>);

impl Writer {
    fn new(kind: u8, number: u32) -> Self {
        let mut out = vec![0, 0, 0, 0, VERSION, kind];
        out.extend(number.to_be_bytes());
        Self(out)
    }

    fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(v4) => {
                self.0.push(4);
                self.0.extend(v4.octets());
            }
            IpAddr::V6(v6) => {
                self.0.push(6);
                self.0.extend(v6.octets());
            }
        }
    }

    fn socket(&mut self, socket: SocketAddr) {
        self.address(socket.ip());
        self.0.extend(socket.port().to_be_bytes());
    }

    /// Text of at most [`WORDS_BYTES_MAX`] bytes, cut between two letters.
    fn text(&mut self, text: &str) {
        let text = text.get(..text.floor_char_boundary(WORDS_BYTES_MAX)).unwrap_or(text);
        self.0.extend(text.as_bytes());
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len().saturating_sub(4)).unwrap_or(u32::MAX);
        if let Some(field) = self.0.first_chunk_mut::<4>() {
            *field = length.to_be_bytes();
        }
        self.0
    }
}

/// A message while it is read. What is missing is an error in words.
struct Reader<'a>(&'a [u8]);

const TRUNCATED: &str = "the message ends too early";

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn port(&mut self) -> Result<u16, String> {
        self.array().map(u16::from_be_bytes)
    }

    fn moment(&mut self) -> Result<Mono, String> {
        self.array().map(|bytes| Mono(u64::from_be_bytes(bytes)))
    }

    fn address(&mut self) -> Result<IpAddr, String> {
        match self.byte()? {
            4 => self.array::<4>().map(|bytes| Ipv4Addr::from(bytes).into()),
            6 => self.array::<16>().map(|bytes| Ipv6Addr::from(bytes).into()),
            family => Err(format!("no family of addresses has the number {family}")),
        }
    }

    fn socket(&mut self) -> Result<SocketAddr, String> {
        Ok(SocketAddr::new(self.address()?, self.port()?))
    }

    /// The rest, as text.
    fn text(&mut self) -> Result<&'a str, String> {
        let text = std::mem::take(&mut self.0);
        if text.len() > WORDS_BYTES_MAX {
            return Err(format!("a text of {} bytes: at most {WORDS_BYTES_MAX}", text.len()));
        }
        std::str::from_utf8(text).map_err(|_| "a text that is not UTF-8".to_owned())
    }

    fn finish(self) -> Result<(), String> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(format!("{more} bytes follow the message")),
        }
    }
}

fn read_request(kind: u8, message: &[u8]) -> Result<Request, String> {
    let mut reader = Reader(message);
    let request = match kind {
        kind::HOLD => {
            let (address, prefix) = (reader.address()?, reader.byte()?);
            let until = reader.moment()?;
            let words = |invalid: InvalidPlace| invalid.to_string();
            let interface = Interface::parse(reader.text()?).map_err(words)?;
            Request::Hold { place: Place::new(address, prefix, interface).map_err(words)?, until }
        }
        kind::RENEW => Request::Renew { until: reader.moment()? },
        kind::RELEASE => Request::Release { address: reader.address()? },
        kind::TICKLE => read_tickle(&mut reader)?,
        kind::SILENCE => Request::Silence { address: reader.address()? },
        kind => return Err(format!("there is no request of kind {kind}")),
    };
    reader.finish()?;
    Ok(request)
}

fn read_tickle(reader: &mut Reader<'_>) -> Result<Request, String> {
    let local = reader.socket()?;
    let count = usize::from(u16::from_be_bytes(reader.array()?));
    if count > TICKLES_PER_REQUEST_MAX {
        return Err(format!("{count} clients: at most {TICKLES_PER_REQUEST_MAX} in one request"));
    }
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let client = reader.socket()?;
        if client.is_ipv4() != local.is_ipv4() {
            return Err(format!("{client} cannot be a client of {local}"));
        }
        clients.push(client);
    }
    Ok(Request::Tickle { local, clients })
}

fn read_report(kind: u8, number: u32, message: &[u8]) -> Result<Report, String> {
    let mut reader = Reader(message);
    let report = match kind {
        kind::DONE => Report::Done { number },
        kind::REFUSED => Report::Refused { number, words: reader.text()?.to_owned() },
        kind::ENDED => Report::Ended { address: reader.address()? },
        kind::FAILED => {
            Report::Failed { address: reader.address()?, words: reader.text()?.to_owned() }
        }
        kind => return Err(format!("there is no report of kind {kind}")),
    };
    reader.finish()?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(address: &str) -> Request {
        let place = Place::new(address.parse().unwrap(), 32, Interface::parse("eth0").unwrap());
        Request::Hold { place: place.unwrap(), until: Mono(0x0102_0304_0506_0708) }
    }

    fn requests() -> Vec<Request> {
        let socket = |text: &str| -> SocketAddr { text.parse().unwrap() };
        vec![
            hold("10.0.0.9"),
            hold("fd00::9"),
            Request::Renew { until: Mono(7) },
            Request::Silence { address: "10.0.0.9".parse().unwrap() },
            Request::Release { address: "fd00::9".parse().unwrap() },
            Request::Tickle { local: socket("10.0.0.9:2049"), clients: vec![] },
            Request::Tickle {
                local: socket("[fd00::9]:445"),
                clients: vec![socket("[fd00::1]:700"), socket("[fd00::2]:701")],
            },
        ]
    }

    fn reports() -> Vec<Report> {
        let address = "10.0.0.9".parse().unwrap();
        vec![
            Report::Done { number: 9 },
            Report::Refused { number: 0, words: "no".to_owned() },
            Report::Ended { address },
            Report::Failed { address, words: "the hook".to_owned() },
        ]
    }

    /// Bytes of commit db8735a3: a helper of that version may serve a server of this one, and the
    /// other way round.
    #[test]
    fn the_frames_of_the_first_version_stay_the_same() {
        let requests: [(Request, &[u8]); 3] = [
            (
                Request::Renew { until: Mono(7) },
                &[0, 0, 0, 14, 1, 2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 7],
            ),
            (
                Request::Release { address: "10.0.0.9".parse().unwrap() },
                &[0, 0, 0, 11, 1, 3, 0, 0, 0, 9, 4, 10, 0, 0, 9],
            ),
            (
                Request::Tickle {
                    local: "10.0.0.9:2049".parse().unwrap(),
                    clients: vec!["10.0.0.1:700".parse().unwrap()],
                },
                &[
                    0, 0, 0, 22, 1, 4, 0, 0, 0, 9, 4, 10, 0, 0, 9, 8, 1, 0, 1, 4, 10, 0, 0, 1, 2,
                    188,
                ],
            ),
        ];
        for (message, bytes) in requests {
            let request = Numbered { number: 9, message };
            assert_eq!(request.frame(), bytes);
            let mut frames = Frames::default();
            frames.push(bytes);
            assert_eq!(frames.request().unwrap(), Some(request));
        }
        let landed: [&[u8]; 4] = [
            &[0, 0, 0, 6, 1, 129, 0, 0, 0, 9],
            &[0, 0, 0, 8, 1, 130, 0, 0, 0, 0, b'n', b'o'],
            &[0, 0, 0, 11, 1, 131, 0, 0, 0, 0, 4, 10, 0, 0, 9],
            b"\0\0\0\x13\x01\x84\0\0\0\0\x04\x0a\0\0\x09the hook",
        ];
        for (report, bytes) in reports().into_iter().zip(landed) {
            assert_eq!(report.frame(), bytes);
            let mut frames = Frames::default();
            frames.push(bytes);
            assert_eq!(frames.report().unwrap(), Some(report));
        }
    }

    #[test]
    fn a_frame_is_as_documented() {
        let request = Numbered { number: 0x0a0b_0c0d, message: hold("10.0.0.9") };
        let expected = [
            &[0, 0, 0, 24, 1, 1, 0x0a, 0x0b, 0x0c, 0x0d][..],
            &[4, 10, 0, 0, 9, 32, 1, 2, 3, 4, 5, 6, 7, 8],
            b"eth0",
        ]
        .concat();
        assert_eq!(request.frame(), expected);
        let message = Request::Silence { address: "10.0.0.9".parse().unwrap() };
        let expected = [0, 0, 0, 11, 1, 5, 0, 0, 0, 2, 4, 10, 0, 0, 9];
        assert_eq!(Numbered { number: 2, message }.frame(), expected);
    }

    #[test]
    fn messages_survive_the_link_in_any_pieces() {
        let mut bytes = Vec::new();
        for (number, message) in (1..).zip(requests()) {
            bytes.extend(Numbered { number, message }.frame());
        }
        for piece in [1, 3, 7, bytes.len()] {
            let mut frames = Frames::default();
            let mut received = Vec::new();
            for bytes in bytes.chunks(piece) {
                frames.push(bytes);
                while let Some(request) = frames.request().unwrap() {
                    received.push(request.message);
                }
            }
            assert_eq!(received, requests(), "in pieces of {piece} bytes");
        }
        let mut frames = Frames::default();
        for report in reports() {
            frames.push(&report.frame());
            assert_eq!(frames.report(), Ok(Some(report)));
        }
        assert_eq!(frames.report(), Ok(None));
    }

    #[test]
    fn a_message_that_is_cut_or_too_long_is_refused_and_the_next_one_read() {
        for message in requests() {
            let whole = Numbered { number: 3, message }.frame();
            for length in 10..whole.len() {
                let mut cut = whole[..length].to_vec();
                cut[3] = u8::try_from(length - 4).unwrap();
                let mut frames = Frames::default();
                frames.push(&cut);
                frames.push(
                    &Numbered { number: 4, message: Request::Renew { until: Mono(1) } }.frame(),
                );
                match frames.request() {
                    // A shorter name of an interface is a name too.
                    Ok(Some(read)) => assert!(matches!(read.message, Request::Hold { .. })),
                    other => assert!(
                        matches!(other, Err(FrameError::Message { number: 3, .. })),
                        "{other:?}"
                    ),
                }
                assert_eq!(frames.request().unwrap().unwrap().number, 4);
            }
        }
        let mut longer = Numbered { number: 3, message: Request::Renew { until: Mono(1) } }.frame();
        longer.push(0);
        longer[3] += 1;
        let mut frames = Frames::default();
        frames.push(&longer);
        assert!(matches!(frames.request(), Err(FrameError::Message { number: 3, .. })));
    }

    #[test]
    fn lengths_and_versions_that_are_not_ours_end_the_link() {
        for length in [0, 5, 32 * 1024 + 1, u32::MAX] {
            let mut frames = Frames::default();
            frames.push(&length.to_be_bytes());
            assert_eq!(frames.request(), Err(FrameError::Length(length)), "before its bytes");
        }
        let mut frames = Frames::default();
        frames.push(&[0, 0, 0, 6, 2]);
        assert_eq!(frames.request(), Err(FrameError::Version(2)));
    }

    #[test]
    fn what_is_no_request_is_refused_in_words() {
        let refused = |kind: u8, message: &[u8]| read_request(kind, message).unwrap_err();
        assert_eq!(refused(9, &[]), "there is no request of kind 9");
        assert_eq!(refused(kind::RELEASE, &[5, 1]), "no family of addresses has the number 5");
        let loopback = [&[4, 127, 0, 0, 1, 32][..], &[0; 8], b"lo"].concat();
        assert!(refused(kind::HOLD, &loopback).contains("127.0.0.1"));
        let name = [&[4, 10, 0, 0, 1, 32][..], &[0; 8], b"\xff"].concat();
        assert!(refused(kind::HOLD, &name).contains("UTF-8"));
        let count = [&[4, 10, 0, 0, 1, 8, 1][..], &[0xff, 0xff]].concat();
        assert!(refused(kind::TICKLE, &count).contains("65535 clients"));
        let mixed = [&[4, 10, 0, 0, 1, 8, 1, 0, 1, 6][..], &[0; 18]].concat();
        assert!(refused(kind::TICKLE, &mixed).contains("cannot be a client of 10.0.0.1:2049"));
    }

    #[test]
    fn long_words_are_cut_between_letters() {
        let words = "ä".repeat(WORDS_BYTES_MAX);
        let mut frames = Frames::default();
        frames.push(&Report::Refused { number: 1, words: format!("x{words}") }.frame());
        let Ok(Some(Report::Refused { words, .. })) = frames.report() else { panic!() };
        assert_eq!(words.len(), WORDS_BYTES_MAX - 1);
    }
}
