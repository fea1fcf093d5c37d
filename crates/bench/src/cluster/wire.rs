//! The messages between coordinator and worker, and their form on the wire: a byte for the kind of
//! the message, four for its length, and the message as JSON. The kind bounds the length before
//! anything is allocated. The order of messages is the business of the two sides.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use weir_core::text::brief;
use weir_load::engine::{Record, Window};
use weir_load::target::Targets;
use weir_load::workload::Workload;
use weir_results::Machine;

/// Version of the protocol. All versions can parse each other's greetings, and nothing else.
pub const PROTOCOL: u32 = 4;

/// Failures that are told of what follows a load.
const FAILURES_MAX: usize = 100;
/// Bytes that are read before more memory is taken.
const CHUNK: usize = 64 << 10;

/// The kinds of messages, which bound their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Before both sides know each other's version.
    Greeting = 1,
    /// Most of them.
    Control = 2,
    /// The loads of a step.
    Prepare = 3,
    /// The record of a load.
    Record = 4,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Greeting, Self::Control, Self::Prepare, Self::Record];

    /// Longest message of this kind, in bytes.
    #[must_use]
    pub const fn bytes_max(self) -> usize {
        match self {
            Self::Greeting => 16 << 10,
            Self::Control => 1 << 20,
            Self::Prepare => 16 << 20,
            Self::Record => 64 << 20,
        }
    }

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// A message of one of the two sides.
pub trait Message: Serialize + DeserializeOwned + Send + 'static {
    /// Sent where nothing else was for a while.
    const ALIVE: Self;

    /// The message's kind.
    fn kind(&self) -> Kind;

    /// Itself, with no text that could do harm where it is shown.
    #[must_use]
    fn tamed(self) -> Self {
        self
    }
}

/// A load of a step that a worker takes part in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assigned {
    /// The load's number in the step.
    pub load: u32,
    /// With the worker's part.
    pub workload: Workload,
}

/// The step that a worker is to make ready for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    /// Number of the step; later orders and reports carry it.
    pub step: u32,
    /// The targets of the loads.
    pub targets: Targets,
    /// With what.
    pub loads: Vec<Assigned>,
}

/// The identity of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Version of the program.
    pub program: String,
    /// The worker's own name.
    pub name: String,
    /// The worker's machine.
    pub machine: Machine,
}

/// From the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The first message.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// Version of the program.
        program: String,
    },
    /// A request for the time of the clock.
    Probe {
        /// The coordinator's clock, given back as it is.
        sent_ns: u64,
    },
    /// Connect, and lay out the files of the part.
    Prepare(Box<Preparation>),
    /// Everybody has laid out: look up what others made.
    Attach {
        /// Number of the step.
        step: u32,
    },
    /// Begin.
    Start {
        /// Number of the step.
        step: u32,
        /// Time of the start, by the worker's own clock.
        at_ns: u64,
    },
    /// Stop the load now, and report what was measured.
    Stop {
        /// Number of the step.
        step: u32,
    },
    /// Everybody has ended: verify and clear away.
    Finish {
        /// Number of the step.
        step: u32,
    },
    /// The step does not take place: clear away.
    Discard {
        /// Number of the step.
        step: u32,
    },
    /// Nothing but a sign of life.
    Alive,
    /// The end of all messages.
    Bye,
}

/// From a worker.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// No.
    Refused {
        /// [`PROTOCOL`].
        protocol: u32,
        /// Why.
        why: String,
    },
    /// At your service.
    Welcome(Box<Welcome>),
    /// The answer to [`Order::Probe`].
    Pong {
        /// Time of sending, as in the probe.
        sent_ns: u64,
        /// Time at which the probe came, by the worker's clock.
        received_ns: u64,
        /// Time at which this message left, by the worker's clock.
        answered_ns: u64,
    },
    /// Laying out.
    Layout {
        /// Number of the step.
        step: u32,
        /// Bytes written, or files made where nothing is written.
        done: u64,
        /// Of so many.
        total: u64,
    },
    /// Files are laid out.
    Prepared {
        /// Number of the step.
        step: u32,
    },
    /// Ready to start.
    Attached {
        /// Number of the step.
        step: u32,
    },
    /// The step can't go on here.
    Failed {
        /// Number of the step.
        step: u32,
        /// Why.
        why: String,
    },
    /// The operations of the last 100 ms.
    Window {
        /// Number of the step.
        step: u32,
        /// All of the worker's loads together.
        window: Window,
    },
    /// The record of a load.
    Record {
        /// Number of the step.
        step: u32,
        /// Number of the load in the step.
        load: u32,
        /// The worker's part of it.
        record: Box<Record>,
    },
    /// The load is over, and all records are sent.
    Ended {
        /// Number of the step.
        step: u32,
        /// Milliseconds by which it began too late.
        late_ms: u64,
    },
    /// The work after the load is done.
    Finished {
        /// Number of the step.
        step: u32,
        /// The failures in it, with the load's number.
        failures: Vec<(u32, String)>,
    },
    /// The worker was told to end, by somebody at its machine. What it has follows.
    Leaving {
        /// Why.
        why: String,
    },
    /// Nothing but a sign of life.
    Alive,
}

impl Message for Order {
    const ALIVE: Self = Self::Alive;

    fn kind(&self) -> Kind {
        match self {
            Self::Hello { .. } => Kind::Greeting,
            Self::Prepare(_) => Kind::Prepare,
            _ => Kind::Control,
        }
    }
}

impl Message for Report {
    const ALIVE: Self = Self::Alive;

    fn kind(&self) -> Kind {
        match self {
            Self::Refused { .. } | Self::Welcome(_) => Kind::Greeting,
            Self::Record { .. } => Kind::Record,
            _ => Kind::Control,
        }
    }

    fn tamed(mut self) -> Self {
        match &mut self {
            Self::Refused { why, .. } | Self::Failed { why, .. } | Self::Leaving { why } => {
                *why = brief(why);
            }
            Self::Welcome(welcome) => {
                let machine = &mut welcome.machine;
                let own = [&mut welcome.program, &mut welcome.name, &mut machine.name];
                let rest = [&mut machine.processor, &mut machine.kernel, &mut machine.system];
                own.into_iter().chain(rest).for_each(|text| *text = brief(text));
            }
            Self::Finished { failures, .. } => {
                failures.truncate(FAILURES_MAX);
                failures.iter_mut().for_each(|(_, what)| *what = brief(what));
            }
            Self::Record { record, .. } => record.tame(),
            _ => {}
        }
        self
    }
}

/// Why a message could not be had or sent.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The peer has closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// A message that is none of ours.
    #[error("the data received is not the protocol of `weir bench` workers (message type {0})")]
    Foreign(u8),
    /// A message that must not come now.
    #[error("unexpected message of type {0:?}")]
    Early(Kind),
    /// A message over its bound.
    #[error("a message of {bytes} bytes exceeds the maximum of {most} for type {kind:?}")]
    TooLong {
        /// The message's kind.
        kind: Kind,
        /// The message's length, in bytes.
        bytes: usize,
        /// The bound.
        most: usize,
    },
    /// A message that can't be read.
    #[error("cannot parse a message: {}", brief(&.0.to_string()))]
    Malformed(serde_json::Error),
}

/// The bytes of `message` on the wire.
///
/// # Errors
/// [`WireError::TooLong`], and [`WireError::Malformed`] for what JSON can't hold.
pub fn encode<M: Message>(message: &M) -> Result<Vec<u8>, WireError> {
    let kind = message.kind();
    let mut bytes = vec![kind as u8, 0, 0, 0, 0];
    serde_json::to_writer(&mut bytes, message).map_err(WireError::Malformed)?;
    let len = bytes.len().saturating_sub(5);
    let most = kind.bytes_max();
    let length = u32::try_from(len).ok().filter(|_| len <= most);
    let length = length.ok_or(WireError::TooLong { kind, bytes: len, most })?;
    if let Some(place) = bytes.get_mut(1..5) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(bytes)
}

/// Sends `message`.
///
/// # Errors
/// The errors of [`encode`], and [`WireError::Io`].
pub fn send<M: Message>(to: &mut (impl Write + ?Sized), message: &M) -> Result<(), WireError> {
    to.write_all(&encode(message)?)?;
    Ok(to.flush()?)
}

/// Waits for a message of a kind in `allowed`.
///
/// # Errors
/// [`WireError`] as soon as it is known that this is none.
pub fn receive<M: Message>(
    from: &mut (impl Read + ?Sized),
    allowed: &[Kind],
) -> Result<M, WireError> {
    let mut header = [0; 5];
    match from.read(&mut header)? {
        0 => return Err(WireError::Closed),
        read => exactly(from, header.get_mut(read..).unwrap_or_default())?,
    }
    let [kind, length @ ..] = header;
    let kind = Kind::of(kind).ok_or(WireError::Foreign(kind))?;
    if !allowed.contains(&kind) {
        return Err(WireError::Early(kind));
    }
    let (bytes, most) = (u32::from_be_bytes(length), kind.bytes_max());
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    if len > most {
        return Err(WireError::TooLong { kind, bytes: len, most });
    }
    // Memory is taken as bytes come: a length alone costs nothing.
    let mut body = Vec::with_capacity(len.min(CHUNK));
    from.take(u64::from(bytes)).read_to_end(&mut body)?;
    if body.len() < len {
        return Err(WireError::Closed);
    }
    let message: M = serde_json::from_slice(&body).map_err(WireError::Malformed)?;
    if message.kind() == kind { Ok(message.tamed()) } else { Err(WireError::Early(message.kind())) }
}

fn exactly(from: &mut (impl Read + ?Sized), bytes: &mut [u8]) -> Result<(), WireError> {
    from.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => WireError::Closed,
        _ => WireError::Io(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_load::target::Target;

    const ANY: [Kind; 4] = Kind::ALL;

    fn refused(bytes: &[u8], allowed: &[Kind]) -> WireError {
        receive::<Order>(&mut &*bytes, allowed).unwrap_err()
    }

    #[test]
    fn every_order_survives_the_wire() {
        let preparation = Preparation {
            step: 3,
            targets: Target::Path("/mnt".into()).into(),
            loads: vec![Assigned { load: 1, workload: Workload::default() }],
        };
        for order in [
            Order::Hello { protocol: 1, program: "0".into() },
            Order::Probe { sent_ns: u64::MAX },
            Order::Prepare(Box::new(preparation)),
            Order::Start { step: 1, at_ns: 7 },
            Order::Alive,
            Order::Bye,
        ] {
            let bytes = encode(&order).unwrap();
            assert_eq!(receive::<Order>(&mut &*bytes, &ANY).unwrap(), order);
        }
    }

    #[test]
    fn a_length_over_the_bound_is_refused_before_a_byte_of_it_is_read() {
        for (kind, most) in
            [(Kind::Greeting, 16 << 10), (Kind::Control, 1 << 20), (Kind::Record, 64 << 20)]
        {
            let mut header = vec![kind as u8];
            header.extend_from_slice(&u32::try_from(most + 1).unwrap().to_be_bytes());
            let error = refused(&header, &ANY);
            assert!(matches!(error, WireError::TooLong { bytes, .. } if bytes == most + 1));
        }
    }

    #[test]
    fn strangers_and_what_comes_too_early_are_told_apart() {
        assert!(matches!(refused(b"GET / HTTP/1.1\r\n", &ANY), WireError::Foreign(b'G')));
        let prepare = encode(&Order::Alive).unwrap();
        assert!(matches!(refused(&prepare, &[Kind::Greeting]), WireError::Early(Kind::Control)));
        // A small kind in the header does not let a message of another kind in.
        let mut disguised = encode(&Order::Bye).unwrap();
        disguised[0] = Kind::Greeting as u8;
        assert!(matches!(refused(&disguised, &[Kind::Greeting]), WireError::Early(Kind::Control)));
    }

    #[test]
    fn an_end_anywhere_is_an_end() {
        let bytes = encode(&Order::Bye).unwrap();
        for len in 0..bytes.len() {
            assert!(matches!(refused(&bytes[..len], &ANY), WireError::Closed), "{len}");
        }
        assert!(matches!(refused(&[2, 0, 0, 0, 1, b'{'], &ANY), WireError::Malformed(_)));
    }

    #[test]
    fn what_a_peer_says_commands_no_terminal() {
        let evil = br#"{"\u001b[2J":1}"#;
        let mut bytes = vec![Kind::Greeting as u8, 0, 0, 0, u8::try_from(evil.len()).unwrap()];
        bytes.extend_from_slice(evil);
        let error = refused(&bytes, &ANY).to_string();
        assert!(error.contains("[2J") && !error.contains('\u{1b}'), "{error:?}");
        let text = || "a\u{1b}]0;b\u{7}".repeat(1000);
        let bytes = encode(&Report::Failed { step: 1, why: text() }).unwrap();
        let Report::Failed { why, .. } = receive(&mut &*bytes, &ANY).unwrap() else {
            panic!("another message")
        };
        assert!(why.len() < 7000 && !why.contains(char::is_control), "{why:?}");
        let failures = (0..20).map(|load| (load, text())).collect();
        let bytes = encode(&Report::Finished { step: 1, failures }).unwrap();
        let Report::Finished { failures, .. } = receive(&mut &*bytes, &ANY).unwrap() else {
            panic!("another message")
        };
        assert!(failures.iter().all(|(_, what)| !what.contains(char::is_control)));
    }

    #[test]
    fn what_is_too_long_to_send_is_not_sent() {
        let why = "x".repeat(1 << 20);
        let error = encode(&Report::Failed { step: 1, why }).unwrap_err();
        assert!(error.to_string().contains("the maximum of 1048576"), "{error}");
    }
}
