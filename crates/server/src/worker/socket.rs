//! The socket of a connection, and how the connection ends if the process ends.
//!
//! When a process is killed, the kernel ends its connections, and each client connects anew at
//! once: to an address that has no server until the next gateway holds it. A silent connection
//! ends without a segment to the client instead. Its socket has `SO_LINGER` of 0, so that the
//! kernel ends it with a reset, and a priority (socket(7), `SO_PRIORITY`) whose resets a rule of
//! the machine drops. The next gateway makes the client connect anew. A server that ends a silent
//! connection itself sets both options back before, so that the client gets the FIN.
//!
//! Not here: the rule (`weir-address`), and the clients of which the next gateway knows.

use rustix::io::Errno;
use rustix::net::Shutdown;
use socket2::SockRef;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::ops::Deref;
use std::time::Duration;

/// Clients by the address and port of the server that they are connected to.
pub(crate) type ByServer = BTreeMap<SocketAddr, BTreeSet<SocketAddr>>;

/// The connections that are to be silent.
#[derive(Default)]
pub(crate) struct Silent {
    pub(crate) connections: ByServer,
    /// The priority whose resets the rule drops.
    pub(crate) priority: u32,
}

impl Silent {
    fn has(&self, local: SocketAddr, client: SocketAddr) -> bool {
        self.connections.get(&local).is_some_and(|clients| clients.contains(&client))
    }
}

/// The socket of a connection.
pub(super) struct Socket {
    stream: TcpStream,
    ending: Ending,
}

/// How a connection ends if the process ends.
enum Ending {
    /// The client gets a FIN or a reset.
    Told,
    /// The client gets nothing. The socket had this priority before.
    Silent(u32),
    /// The server has ended the connection already.
    Past,
}

impl Socket {
    /// The socket of a connection that is not silent.
    pub(super) const fn new(stream: TcpStream) -> Self {
        Self { stream, ending: Ending::Told }
    }

    /// Makes the connection silent if it is one of these, and otherwise not silent.
    ///
    /// # Errors
    /// The kernel's. Then the client may get nothing when the connection ends.
    pub(super) fn silence(&mut self, silent: &Silent) -> io::Result<()> {
        if matches!(self.ending, Ending::Past) {
            return Ok(());
        }
        if !self.is_one_of(silent)? {
            return self.unsilence();
        }
        if matches!(self.ending, Ending::Told) {
            let options = SockRef::from(&self.stream);
            self.ending = Ending::Silent(options.priority()?);
            options.set_priority(silent.priority)?;
            options.set_linger(Some(Duration::ZERO))?;
        }
        Ok(())
    }

    fn is_one_of(&self, silent: &Silent) -> io::Result<bool> {
        Ok(!silent.connections.is_empty()
            && silent.has(self.stream.local_addr()?, self.stream.peer_addr()?))
    }

    fn unsilence(&mut self) -> io::Result<()> {
        if let Ending::Silent(before) = self.ending {
            self.ending = Ending::Told;
            let options = SockRef::from(&self.stream);
            options.set_priority(before)?;
            options.set_linger(None)?;
        }
        Ok(())
    }

    /// Prepares the end of the connection by the server: the client gets the FIN.
    fn prepare_end(&mut self) {
        if let Err(error) = self.unsilence() {
            tracing::warn!(%error, "a client may not get the end of its connection");
        }
        self.ending = Ending::Past;
    }

    /// Ends the server's direction of the connection with a FIN.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) fn end(&mut self) -> Result<(), Errno> {
        self.prepare_end();
        rustix::net::shutdown(&self.stream, Shutdown::Write)
    }
}

impl Deref for Socket {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.prepare_end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listed_connection_is_silent_until_the_server_ends_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let accept = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let listed = |client: &TcpStream| Silent {
            connections: BTreeMap::from([(
                client.peer_addr().unwrap(),
                BTreeSet::from([client.local_addr().unwrap()]),
            )]),
            priority: 4,
        };
        let of = |stream: &TcpStream| {
            let options = SockRef::from(stream);
            (options.priority().unwrap(), options.linger().unwrap())
        };
        let (told, silent) = ((0, None), (4, Some(Duration::ZERO)));
        let (client, stream) = accept();
        let (another, other_stream) = accept();
        let kept = stream.try_clone().unwrap();
        let mut socket = Socket::new(stream);
        let mut other = Socket::new(other_stream);
        other.silence(&listed(&client)).unwrap();
        assert_eq!(of(&other), told, "another client's");
        socket.silence(&listed(&client)).unwrap();
        socket.silence(&listed(&client)).unwrap();
        assert_eq!(of(&kept), silent);
        socket.silence(&listed(&another)).unwrap();
        assert_eq!(of(&kept), told, "it is not listed any more");
        socket.silence(&listed(&client)).unwrap();
        socket.end().unwrap();
        assert_eq!(of(&kept), told);
        socket.silence(&listed(&client)).unwrap();
        assert_eq!(of(&kept), told, "the server has ended it");
        other.silence(&listed(&another)).unwrap();
        let kept = other.try_clone().unwrap();
        assert_eq!(of(&kept), silent);
        drop(other);
        assert_eq!(of(&kept), told);
    }
}
