//! Locks of the protocol for tests, and the calls that the server makes when one is granted.

use crate::engine::{ServedVolume, Workers};
use crate::session::{Locks, Waiter, deliver};
use crate::sync::{Arc, Mutex, lock};
use crate::worker::Message;
use std::collections::BTreeSet;
use weir_core::{Clock, ObjectKey, Origin};
use weir_gate::ConnId;
use weir_state::{Ask, Client, File, GrantId, Locked, Mode, Owner, Protocol, Range};

/// The server's calls that the client has not answered.
pub(super) type Calls = Arc<Mutex<BTreeSet<u64>>>;

/// The way of one connection to the locks.
#[derive(Clone)]
pub(super) struct ConnectionLocks {
    pub(super) locks: Arc<Locks>,
    pub(super) connection: ConnId,
    pub(super) calls: Calls,
}

/// A connection that waits for the lock of a file.
pub(crate) struct ToyWaiter {
    calls: Calls,
    connection: ConnId,
    handle: usize,
    workers: Arc<Workers>,
}

impl ToyWaiter {
    /// Calls the client: it has the lock.
    pub(crate) fn granted(self, id: GrantId) {
        let ConnId { worker, token } = self.connection;
        lock(&self.calls).insert(id.0);
        let call = format!("call {} granted {}\n", id.0, self.handle);
        self.workers.post(worker, Message::Send(token, call.into_bytes()));
    }
}

impl ConnectionLocks {
    /// Locks a whole file, or waits for it.
    pub(super) fn lock(&self, volume: &ServedVolume, file: ObjectKey, handle: usize) -> String {
        let waiter = ToyWaiter {
            calls: Arc::clone(&self.calls),
            connection: self.connection,
            handle,
            workers: Arc::clone(&volume.workers),
        };
        let (ask, mut grants) = (self.ask(volume, file), Vec::new());
        let (now, waiter) = (volume.clock().now(), Some(Waiter::Toy(waiter)));
        let locked = self.locks.tables().lock(now, &ask, false, waiter, &mut grants);
        deliver(grants);
        match locked {
            Ok(Locked::Granted) => "granted".to_owned(),
            Ok(Locked::Waits) => "waits".to_owned(),
            Err(refused) => format!("{refused:?}"),
        }
    }

    /// Unlocks a whole file.
    pub(super) fn unlock(&self, volume: &ServedVolume, file: ObjectKey) {
        let (Ask { file, owner, range, .. }, mut grants) = (self.ask(volume, file), Vec::new());
        let unlocked = self.locks.tables().unlock(&file, &owner, range, &mut grants);
        deliver(grants);
        assert!(unlocked.is_ok());
    }

    fn ask(&self, volume: &ServedVolume, object: ObjectKey) -> Ask {
        let owner = Owner::new(client(self.connection), b"");
        let file = File { volume: volume.id, object };
        Ask { file, owner, range: Range::ALL, mode: Mode::Exclusive }
    }
}

/// Ends everything that a connection holds or waits for.
pub(super) fn release(locks: &Locks, connection: ConnId) {
    let mut grants = Vec::new();
    locks.tables().release_client(&client(connection), &mut grants);
    deliver(grants);
}

/// The client of a connection, as the tables of locks know it.
fn client(connection: ConnId) -> Client {
    Client::new(Protocol::Test, Origin::default(), &connection.token.to_be_bytes())
}
