//! A small protocol for tests: the proof that another protocol needs a session and no change in
//! worker, gate or engine. Its records are lines; a request is a list of commands, each on a file
//! of any volume.
//!
//! | request | reply |
//! |---|---|
//! | `open VOLUME NAME` | `ok HANDLE` |
//! | `read HANDLE OFFSET COUNT` | `ok TEXT` |
//! | `write HANDLE OFFSET TEXT` | `ok COUNT` |
//! | `break HANDLE` | none: it cannot be sent, and the connection is closed |
//! | `lock HANDLE` | `ok granted`, or `ok waits`, and later the server's call |
//! | `unlock HANDLE` | `ok unlocked` |
//! | `A; B; …` (a chain) | the replies, joined in the same way |
//!
//! When a lock is granted that was waited for, the server calls the client by `call NUMBER granted
//! HANDLE`, and the client answers `done NUMBER`.
//!
//! Each element of a chain has a permit of its own, in its own volume.

mod command;
mod job;
mod locks;
mod tests;

pub(crate) use job::{ToyJob, ToyUnanswered};
pub(crate) use locks::ToyWaiter;

use super::{Begun, Cx, Frame, Job, ProtocolError};
use crate::engine::Engine;
use crate::op_name::OpName;
use crate::sync::{Arc, Mutex, lock};
use crate::worker::Request;
use command::Command;
use job::Element;
use locks::{Calls, ConnectionLocks};
use std::net::IpAddr;
use weir_core::{ObjectKey, Shared, VolumeId};
use weir_gate::ConnId;
use weir_qos::{ClientKey, Cost};
use weir_state::GrantId;

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
    calls: Calls,
    client: ClientKey,
}

impl ToySession {
    /// The session of a new connection from `peer`.
    pub(super) fn new(peer: IpAddr) -> Self {
        let client = match peer {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => address.into(),
        };
        Self { opens: Opens::default(), calls: Calls::default(), client: ClientKey(client) }
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
        if let Some(number) = line.strip_prefix("done ").and_then(|number| number.parse().ok()) {
            return self.called(&cx, number);
        }
        match self.request(&mut cx, &line) {
            Ok(request) => Begun::Request(request),
            Err(error) => Begun::Reply(format!("error {error}\n").into_bytes()),
        }
    }

    /// The client has answered a call of the server's.
    fn called(&self, cx: &Cx<'_>, number: u64) -> Begun {
        if !lock(&self.calls).remove(&number) {
            return Begun::Reply(b"error no such call\n".to_vec());
        }
        cx.engine.locks.tables().taken(GrantId(number));
        Begun::Nothing
    }

    /// See [`super::Session::close`].
    pub(super) fn close(self, engine: &Engine, connection: ConnId) {
        locks::release(&engine.locks, connection);
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
        let locks = ConnectionLocks {
            locks: Arc::clone(&cx.engine.locks),
            connection: cx.connection,
            calls: Arc::clone(&self.calls),
        };
        Ok(Request {
            connection: cx.connection,
            client: self.client,
            volume,
            op,
            class: op.class(),
            cost,
            arrived: cx.arrived,
            job: Job::Toy(ToyJob { elements, opens, locks }),
        })
    }
}
