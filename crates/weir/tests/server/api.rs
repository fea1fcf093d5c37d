//! The API of the built server over TCP, beside clients that say nothing.

use crate::held::free_address;
use crate::peer::raise_descriptor_limit;
use crate::test_server::{TestServer, connect};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

const SILENT: usize = 2000;

/// A server whose API is at an address that is known.
fn server() -> (TestServer, SocketAddr) {
    let (api, held) = free_address();
    let server = TestServer::start_with(&[("WEIR_API", &api.to_string())]);
    drop(held);
    (server, api)
}

/// The status line of the answer to one request; it fails if that takes a minute.
fn status(mut stream: impl Read + Write, request: &[u8]) -> String {
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    // The server may close what it has not read, so the rest may be cut off.
    let _all = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

fn healthy(api: SocketAddr) -> bool {
    let request = b"GET /healthz HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n";
    status(connect(api), request).contains("200")
}

/// Was the connection closed by the server?
fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

#[test]
fn two_thousand_silent_connections_delay_no_request() {
    assert!(raise_descriptor_limit() > 2 * SILENT as u64);
    let (server, api) = server();
    let mut silent: Vec<TcpStream> = (0..SILENT).map(|_| connect(api)).collect();
    assert!(healthy(api), "from the same address as the silent ones");
    // None of them took a place for itself: the first ones were closed for others, in order, long
    // before the 10 s in which a head may come.
    let open = silent.iter().skip_while(|stream| is_closed(stream)).count();
    assert!((100..=256).contains(&open), "{open} are open");
    // Renewed over and over, with half a request.
    for (round, silent) in silent.iter_mut().enumerate() {
        let mut stream = connect(api);
        stream.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
        *silent = stream;
        if round % 100 == 0 {
            assert!(healthy(api), "round {round}");
        }
    }
    server.weir(&["volume", "list"]);
}

#[test]
fn a_body_in_chunks_that_is_too_large_is_told_so() {
    let (server, _) = server();
    let head = "POST /v1/pools HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\
        Content-Type: application/json\r\n";
    let large = "x".repeat(300 << 10);
    let whole = format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len()
    );
    let announced = format!("{head}Content-Length: {}\r\n\r\n", large.len());
    let small = format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\n{{\"n\r\n0\r\n\r\n");
    for (request, told) in [(whole, "413"), (announced, "413"), (small, "400")] {
        let socket = UnixStream::connect(server.data().join("api.sock")).unwrap();
        let told_now = status(socket, request.as_bytes());
        assert!(told_now.contains(told), "{told_now}");
    }
}
