//! The socket of a connection, and how the connection ends if the process does.
//!
//! The kernel ends the connections of a process that is killed, and the client connects anew at once:
//! to an address that has no server until the next gateway holds it. A marked connection ends in
//! silence instead: a rule of the machine drops what ends a connection with this mark, the priority
//! of the socket (socket(7), `SO_PRIORITY`), and the next gateway makes the client connect anew. A
//! server that lives takes the mark back before it ends the connection.
//!
//! Not here: the rule (`weir-address`), and the clients of which the next gateway knows.

use rustix::io::Errno;
use rustix::net::Shutdown;
use socket2::SockRef;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::ops::Deref;

/// Connections that are to end in silence, by the address and port of the server.
pub(crate) struct Silent {
    /// The clients of each address with its port.
    pub(crate) connections: BTreeMap<SocketAddr, BTreeSet<SocketAddr>>,
    /// The priority of their sockets.
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
    /// The priority of before, if the connection is marked.
    marked: Option<u32>,
}

impl Socket {
    /// A socket without a mark.
    pub(super) const fn new(stream: TcpStream) -> Self {
        Self { stream, marked: None }
    }

    /// Marks the connection if it is one of these.
    ///
    /// # Errors
    /// The kernel's; the connection ends as others do.
    pub(super) fn mark(&mut self, silent: &Silent) -> io::Result<()> {
        if self.marked.is_none() && silent.has(self.stream.local_addr()?, self.stream.peer_addr()?)
        {
            let options = SockRef::from(&self.stream);
            let before = options.priority()?;
            options.set_priority(silent.priority)?;
            self.marked = Some(before);
        }
        Ok(())
    }

    /// Takes the mark back: what comes next ends the connection, and the client has to hear of it.
    fn unmark(&mut self) {
        let Some(before) = self.marked.take() else { return };
        if let Err(error) = SockRef::from(&self.stream).set_priority(before) {
            tracing::warn!(%error, "a client has to find out by itself that its connection ends");
        }
    }

    /// Tells the client that no more comes.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) fn end(&mut self) -> Result<(), Errno> {
        self.unmark();
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
        self.unmark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listed_connection_is_marked_until_the_server_ends_it() {
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
        let (client, stream) = accept();
        let (_other, other_stream) = accept();
        let kept = stream.try_clone().unwrap();
        let priority = || SockRef::from(&kept).priority().unwrap();
        let mut socket = Socket::new(stream);
        let mut other = Socket::new(other_stream);
        other.mark(&listed(&client)).unwrap();
        assert_eq!(SockRef::from(&*other).priority().unwrap(), 0, "another client's");
        socket.mark(&listed(&client)).unwrap();
        socket.mark(&listed(&client)).unwrap();
        assert_eq!(priority(), 4);
        socket.end().unwrap();
        assert_eq!(priority(), 0);
        socket.mark(&listed(&client)).unwrap();
        assert_eq!(priority(), 4);
        drop(socket);
        assert_eq!(priority(), 0);
    }
}
