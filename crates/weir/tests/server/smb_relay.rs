//! A relay in front of a server of SMB, which may meddle with requests that are neither signed nor
//! sealed.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use weir_smb::wire::netbios::{self, Step};

/// Numbers of commands (MS-SMB2 §2.2.1.2).
pub(crate) const FLUSH: u16 = 7;
pub(crate) const READ: u16 = 8;
pub(crate) const WRITE: u16 = 9;
/// Places in a message: in its header (MS-SMB2 §2.2.1.2), and in READ and WRITE alike (§2.2.19 and
/// §2.2.21).
const COMMAND: usize = 12;
const NEXT_COMMAND: usize = 20;
const LENGTH: usize = 68;
const OFFSET: usize = 72;

/// Looks at each request: its command and the message, which it may change. `false` ends the
/// connection.
pub(crate) type Hook = Arc<dyn Fn(u16, &mut [u8]) -> bool + Send + Sync>;

/// Passes the frames of clients on to the server at `server`. Gives the address of the relay.
pub(crate) fn relay(server: SocketAddr, hook: Hook) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(server).unwrap();
            server.set_nodelay(true).unwrap();
            client.set_nodelay(true).unwrap();
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                drop(std::io::copy(&mut from, &mut to));
                drop(to.shutdown(Shutdown::Both));
            });
            let hook = Arc::clone(&hook);
            std::thread::spawn(move || {
                requests(&client, &server, &hook);
                drop(server.shutdown(Shutdown::Both));
            });
        }
    });
    address
}

/// Passes requests on until the client, the server or the hook ends it.
fn requests(mut client: &TcpStream, mut server: &TcpStream, hook: &Hook) {
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    while let Ok(len) = client.read(&mut chunk)
        && len > 0
    {
        bytes.extend_from_slice(&chunk[..len]);
        while let Step::Frame { at } = netbios::next(&bytes).unwrap() {
            let end = at.end;
            if !messages(&mut bytes[at], hook) || server.write_all(&bytes[..end]).is_err() {
                return;
            }
            bytes.drain(..end);
        }
    }
}

fn messages(frame: &mut [u8], hook: &Hook) -> bool {
    let mut rest = frame;
    loop {
        let command = u16::from_le_bytes(rest[COMMAND..COMMAND + 2].try_into().unwrap());
        let next = u32::from_le_bytes(rest[NEXT_COMMAND..NEXT_COMMAND + 4].try_into().unwrap());
        if !hook(command, rest) {
            return false;
        }
        match next as usize {
            0 => return true,
            next => rest = &mut rest[next..],
        }
    }
}

/// Cuts a READ or WRITE to at most `most` bytes.
pub(crate) fn cut(message: &mut [u8], most: u32) {
    let length = u32::from_le_bytes(message[LENGTH..LENGTH + 4].try_into().unwrap());
    message[LENGTH..LENGTH + 4].copy_from_slice(&length.min(most).to_le_bytes());
}

/// The offset of a READ or WRITE.
pub(crate) fn offset(message: &[u8]) -> u64 {
    u64::from_le_bytes(message[OFFSET..OFFSET + 8].try_into().unwrap())
}

/// Moves a READ or WRITE elsewhere.
pub(crate) fn redirect(message: &mut [u8], to: u64) {
    message[OFFSET..OFFSET + 8].copy_from_slice(&to.to_le_bytes());
}
