//! Sockets for tests of the code around them.

use std::net::{TcpListener, TcpStream};

/// A client's socket, and the server's end of its connection, which does not block.
pub(super) fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    (client, socket)
}
