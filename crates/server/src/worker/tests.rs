//! A worker without a thread: the test has it do one round after the other, and looks at its sums
//! after each.

use super::testing::sockets;
use super::{EVENTS, Message, OriginLoad, Worker};
use crate::Server;
use crate::admission::Origin;
use crate::inbox::Inbox;
use crate::limits::{
    RECEIVED_BYTES_ORIGIN_MAX, RECEIVED_BYTES_WORKER_MAX, RECV_LARGE_BYTES, RECV_SMALL_BYTES,
};
use crate::session::smb::testing::{Ask, Client};
use crate::session::{Protocol, Session};
use crate::sync::{Arc, mpsc};
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::rc::Rc;
use weir_control::ServerConfig;
use weir_core::Mono;
use weir_smb::wire::Status;

/// A server, and a worker that it does not know.
struct Fixture {
    worker: Worker,
    inbox: Arc<Inbox<Message>>,
    server: Server,
    _directory: tempfile::TempDir,
}

impl Fixture {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = ServerConfig {
            data: directory.path().to_owned(),
            nfs: vec!["127.0.0.1:0".parse().unwrap()],
            api: vec![],
            ..ServerConfig::default()
        };
        let server = Server::start(&config).unwrap();
        let inbox = Inbox::new().unwrap();
        let mut worker = Worker::new(0, Arc::clone(server.engine()), Arc::clone(&inbox)).unwrap();
        // No record is given up, however slow this machine is.
        worker.sweep_at = Mono(u64::MAX);
        Self { worker, inbox, server, _directory: directory }
    }

    /// A connection of RPC that seems to come from the address `10.0.0.last`.
    fn connect(&self, last: u8) -> TcpStream {
        self.connect_by(Protocol::Rpc, last)
    }

    fn connect_by(&self, protocol: Protocol, last: u8) -> TcpStream {
        let (client, socket) = sockets();
        let (engine, peer) = (self.server.engine(), SocketAddr::from(([10, 0, 0, last], 1)));
        engine.admission.enter(peer.ip());
        let session = Session::new(protocol, engine, peer);
        self.inbox.post(Message::Connection(socket, peer, session));
        client
    }

    fn origin(&mut self, last: u8) -> Rc<OriginLoad> {
        self.worker.state.loads.of(Origin::of(IpAddr::from([10, 0, 0, last])))
    }

    fn received_bytes(&self) -> usize {
        self.worker.state.loads.worker().received.get()
    }

    /// A round of the worker, which does not sleep.
    fn round(&mut self) {
        self.inbox.post(Message::RollCall(mpsc::channel(1).0));
        self.worker.round(&mut Vec::with_capacity(EVENTS)).unwrap();
    }
}

/// Five addresses, each of which alone wants more than it may hold, together want more than a
/// worker may hold. Then a sixth one comes.
#[test]
fn received_bytes_stay_within_their_bounds_and_each_address_receives_a_large_record() {
    const GREEDY: u8 = 5;
    const CONNECTIONS: usize = 110;
    let mut fixture = Fixture::start();
    let small = usize::from(GREEDY) * CONNECTIONS * RECV_SMALL_BYTES;
    // One connection may exceed the bounds, and each address has its one record.
    let bound = RECEIVED_BYTES_WORKER_MAX + (2 + usize::from(GREEDY)) * RECV_LARGE_BYTES + small;
    let bound_of_origin =
        RECEIVED_BYTES_ORIGIN_MAX + RECV_LARGE_BYTES + CONNECTIONS * RECV_SMALL_BYTES;
    let round = |fixture: &mut Fixture| {
        fixture.round();
        let received = fixture.received_bytes();
        assert!(received <= bound, "{received} bytes are held of {bound}");
        for last in 1..=GREEDY {
            let received = fixture.origin(last).received.get();
            assert!(received <= bound_of_origin, "{received} of {bound_of_origin} for {last}");
        }
    };
    let mark = (0x8000_0000u32 | 1 << 20).to_be_bytes();
    let part = [&mark[..], &[0; 40 << 10]].concat();
    let mut greedy: Vec<TcpStream> = Vec::new();
    for last in 1..=GREEDY {
        for _ in 0..CONNECTIONS {
            let mut client = fixture.connect(last);
            client.write_all(&part).unwrap();
            greedy.push(client);
        }
        round(&mut fixture);
    }
    // No further record fits.
    while fixture.received_bytes() + RECV_LARGE_BYTES <= RECEIVED_BYTES_WORKER_MAX {
        round(&mut fixture);
    }
    let mut late = fixture.connect(GREEDY + 1);
    late.write_all(&part).unwrap();
    while fixture.origin(GREEDY + 1).received.get() < RECV_LARGE_BYTES {
        round(&mut fixture);
    }
    // The records grow, and still no others have begun.
    for client in &mut greedy {
        client.write_all(&[0; 20 << 10]).unwrap();
    }
    for _ in 0..50 {
        round(&mut fixture);
    }
    fixture.server.stop().unwrap();
}

/// Each of them counts in the turn of its connection, and a long compound gives way to others.
#[test]
fn the_requests_of_a_compound_count_one_by_one() {
    const REQUESTS: usize = 100;
    let mut fixture = Fixture::start();
    let mut client = Client::over(fixture.connect_by(Protocol::Smb, 1));
    client.send(&[Ask::negotiate()]);
    fixture.round();
    fixture.round();
    assert_eq!(client.receive().status(), Status::SUCCESS);
    // Credits for both.
    for _ in 0..4 {
        client.send(&[Ask::echo()]);
        fixture.round();
        fixture.round();
        client.receive();
    }
    let compound = || (0..REQUESTS).map(|_| Ask::echo()).collect::<Vec<_>>();
    client.send(&compound());
    client.send(&compound());
    let (mut most, mut rounds) = (0, 0);
    for _ in 0..10 * REQUESTS {
        fixture.round();
        most = most.max(fixture.worker.state.round.requests);
        rounds += usize::from(fixture.worker.state.preparing.len() > 0);
    }
    assert!(most >= REQUESTS, "{most} requests in a round");
    assert!(rounds >= REQUESTS / 16, "{rounds} rounds with a compound under way");
    for _ in 0..2 {
        assert_eq!(client.receive_frame().unwrap().len(), REQUESTS);
    }
    fixture.server.stop().unwrap();
}
