//! A small protocol for tests: the proof that another protocol needs a session and no change in
//! worker, gate or engine. Its records are lines; a request is a list of commands, each on a file
//! of any volume.
//!
//! | request | reply |
//! |---|---|
//! | `open VOLUME NAME` | `ok HANDLE` |
//! | `read HANDLE OFFSET COUNT` | `ok TEXT` |
//! | `write HANDLE OFFSET TEXT` | `ok COUNT` |
//! | `A; B; …` (a chain) | the replies, joined in the same way |
//!
//! Each element of a chain has a permit of its own, in its own volume.

mod command;
mod job;
mod tests;

pub(crate) use job::{ToyJob, ToyUnanswered};

use super::{Begun, Cx, Frame, Job, ProtocolError};
use crate::op_name::OpName;
use crate::sync::{Arc, Mutex, lock};
use crate::worker::Request;
use command::Command;
use job::Element;
use std::net::IpAddr;
use weir_core::{ObjectKey, Shared, VolumeId};
use weir_qos::{ClientKey, Cost};

/// The longest line.
const LINE_BYTES_MAX: usize = 4096;

/// A file that a client opened.
#[derive(Clone, Copy, Debug)]
struct Open {
    volume: VolumeId,
    file: ObjectKey,
}

/// The files that a session has open, by their handles.
type Opens = Arc<Mutex<Vec<Open>>>;

/// The state of one connection.
pub(crate) struct ToySession {
    opens: Opens,
    client: ClientKey,
}

impl ToySession {
    /// The session of a new connection from `peer`.
    pub(super) fn new(peer: IpAddr) -> Self {
        let client = match peer {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => address.into(),
        };
        Self { opens: Opens::default(), client: ClientKey(client) }
    }

    /// See [`super::Session::next`].
    pub(super) fn next(bytes: &[u8]) -> Result<Frame, ProtocolError> {
        match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => Ok(Frame::Whole { at: 0..end, consumed: end + 1 }),
            None if bytes.len() > LINE_BYTES_MAX => Err(ProtocolError::LongLine),
            None => Ok(Frame::NeedMore { total: None }),
        }
    }

    /// See [`super::Session::begin`].
    pub(super) fn begin(&self, mut cx: Cx<'_>, record: &Shared) -> Begun {
        let line = String::from_utf8_lossy(record);
        match self.request(&mut cx, &line) {
            Ok(request) => Begun::Request(request),
            Err(error) => Begun::Reply(format!("error {error}\n").into_bytes()),
        }
    }

    fn request(&self, cx: &mut Cx<'_>, line: &str) -> Result<Request, &'static str> {
        let served = cx.view.load();
        let mut elements = Vec::new();
        for part in line.split("; ") {
            let command = Command::parse(part).ok_or("no such command")?;
            let open = match command.handle() {
                Some(handle) => Some(*lock(&self.opens).get(handle).ok_or("no such handle")?),
                None => None,
            };
            let mounted = match (&command, open) {
                (_, Some(open)) => served.by_id(open.volume),
                (Command::Open { volume, .. }, None) => served.by_name(volume),
                _ => None,
            };
            let volume = Arc::clone(&mounted.ok_or("no such volume")?.volume);
            elements.push(Element { command, volume, file: open.map(|open| open.file) });
        }
        let [first, rest @ ..] = elements.as_slice() else { return Err("no command") };
        // The elements of a chain are charged one by one, when they begin.
        let (op, cost) = match rest {
            [] => (first.command.op(), first.command.cost()),
            [_, ..] => (OpName::TOY_CHAIN, Cost::ZERO),
        };
        let (volume, opens) = (Arc::clone(&first.volume), Arc::clone(&self.opens));
        Ok(Request {
            connection: cx.connection,
            client: self.client,
            volume,
            op,
            class: op.class(),
            cost,
            arrived: cx.arrived,
            job: Job::Toy(ToyJob { elements, opens }),
        })
    }
}
