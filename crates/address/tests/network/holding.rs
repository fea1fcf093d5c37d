//! An address is held for as long as its lease, and no longer, whatever stops or ends.

use crate::bed::{
    ADDRESSES, END, ENDING, Gateway, PORT, READY, accept, address_of, alone, connect, has, ip,
    listen, machines, until_in, wait_for, within,
};
use rustix::process::Signal;
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use weir_address::{Request, SILENT_END_PRIORITY};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_address_is_held_while_its_lease_is_renewed() {
    alone("holding::renewed");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn renewed() {
    machines();
    let mut gateway = Gateway::start("one");
    let (first, second) = (until_in(15 * SECOND), until_in(40 * SECOND));
    for address in ADDRESSES {
        assert!(!has("one", address));
        gateway.hold(address, first);
        assert!(has("one", address));
    }
    gateway.ask(Request::Renew { until: second }).unwrap();
    wait_for("the end of the first lease", || weir_address::now() > first + 3 * SECOND);
    for address in ADDRESSES {
        let present = has("one", address);
        // On a machine that stood still for all of the second lease nothing can be said.
        assert!(present || weir_address::now() > second, "{address} ended with the first lease");
    }
    for address in ADDRESSES {
        wait_for("the end of the second lease", || !has("one", address));
        assert!(weir_address::now() >= second, "{address} ended before its lease");
    }
    for address in ADDRESSES {
        gateway.tells_the_end_of(address);
    }
    let released = gateway.ask(Request::Release { address: address_of(ADDRESSES[0]) });
    assert_eq!(released, Ok(()), "it is gone already");
    // It can be held again.
    gateway.hold(ADDRESSES[0], until_in(50 * SECOND));
    assert!(has("one", ADDRESSES[0]));
}

#[test]
fn a_stopped_machine_s_address_ends_and_nothing_is_sent_from_it() {
    alone("holding::stopped");
}

/// The server is this process; that it writes although the lease has ended stands for the kernel,
/// which goes on sending what a stopped server wrote before.
#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn stopped() {
    machines();
    let mut gateway = Gateway::start("one");
    let listener = listen("one");
    let until = until_in(30 * SECOND);
    let mut connections = Vec::new();
    for address in ADDRESSES {
        gateway.hold(address, until);
        let client = connect(address);
        connections.push((client, accept(&listener)));
    }
    gateway.signal(Signal::STOP);
    for (client, served) in &mut connections {
        let mut received = [0; 5];
        served.write_all(b"early").unwrap();
        client.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"early");
    }
    for address in ADDRESSES {
        wait_for("the kernel to remove it", || !has("one", address));
        assert!(weir_address::now() >= until, "{address} ended before its lease");
    }
    for (client, served) in &mut connections {
        // An error is as good: the kernel has noticed.
        drop(served.write_all(b"late"));
        client.set_read_timeout(Some(2 * SECOND)).unwrap();
        let received = client.read(&mut [0; 5]).map_err(|error| error.kind());
        assert_eq!(received, Err(ErrorKind::WouldBlock), "{:?}", served.local_addr());
    }
    gateway.signal(Signal::CONT);
    for address in ADDRESSES {
        gateway.tells_the_end_of(address);
    }
    for (_, served) in &mut connections {
        let error = served.read(&mut [0; 5]).unwrap_err().kind();
        assert_ne!(error, ErrorKind::WouldBlock, "its connections end");
    }
}

#[test]
fn a_released_address_is_gone_with_its_connections() {
    alone("holding::released");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn released() {
    machines();
    let mut gateway = Gateway::start("one");
    let listener = listen("one");
    let own = connect("10.80.0.1");
    let mut own = (own, accept(&listener));
    for address in ADDRESSES {
        gateway.hold(address, until_in(50 * SECOND));
        let _client = connect(address);
        let mut served = accept(&listener);
        gateway.ask(Request::Release { address: address_of(address) }).unwrap();
        assert!(!has("one", address));
        let error = served.read(&mut [0]).unwrap_err().kind();
        assert_ne!(error, ErrorKind::WouldBlock, "its connections end");
    }
    own.0.write_all(b"x").unwrap();
    own.1.read_exact(&mut [0]).unwrap();
}

#[test]
fn nothing_leaves_from_a_silenced_address_until_it_is_held_again() {
    alone("holding::silenced");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn silenced() {
    machines();
    let mut gateway = Gateway::start("one");
    let listener = listen("one");
    for address in ADDRESSES {
        let until = until_in(50 * SECOND);
        gateway.hold(address, until);
        let mut client = connect(address);
        let mut served = accept(&listener);
        gateway.ask(Request::Silence { address: address_of(address) }).unwrap();
        gateway.ask(Request::Renew { until }).unwrap();
        served.write_all(b"x").unwrap();
        client.set_read_timeout(Some(SECOND / 4)).unwrap();
        let error = client.read(&mut [0]).unwrap_err().kind();
        assert_eq!(error, ErrorKind::WouldBlock, "its connections stay, and nothing is received");
        assert!(has("one", address));
        gateway.hold(address, until);
        client.set_read_timeout(Some(30 * SECOND)).unwrap();
        client.read_exact(&mut [0]).unwrap();
    }
    let unknown = Request::Silence { address: address_of("10.80.0.99") };
    gateway.ask(unknown).unwrap();
}

/// Has the connection end in silence, or again as others do.
fn silence(socket: &TcpStream, silent: bool) {
    let socket = SockRef::from(socket);
    socket.set_priority(if silent { SILENT_END_PRIORITY } else { 0 }).unwrap();
    socket.set_linger(Some(Duration::ZERO)).unwrap();
}

/// A connection on which a byte has come back.
fn connected(address: &str, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let mut client = connect(address);
    let mut served = accept(listener);
    served.write_all(b"x").unwrap();
    client.read_exact(&mut [0]).unwrap();
    (client, served)
}

/// How a read of a client fails.
fn read(client: &mut TcpStream) -> ErrorKind {
    client.read(&mut [0]).unwrap_err().kind()
}

/// Whether the client hears nothing for a while.
fn hears_nothing(client: &mut TcpStream) -> bool {
    client.set_read_timeout(Some(SECOND / 10)).unwrap();
    read(client) == ErrorKind::WouldBlock
}

#[test]
fn connections_end_in_silence_if_the_server_wanted_it() {
    alone("holding::in_silence");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn in_silence() {
    machines();
    let mut gateway = Gateway::start("one");
    let listener = listen("one");
    for address in ADDRESSES {
        gateway.hold(address, until_in(50 * SECOND));
        let (mut told, served) = connected(address, &listener);
        silence(&served, true);
        silence(&served, false);
        drop(served);
        assert_eq!(read(&mut told), ErrorKind::ConnectionReset, "{address}: not wanted any more");
        let (mut silent, served) = connected(address, &listener);
        silence(&served, true);
        drop(served);
        assert!(hears_nothing(&mut silent), "{address}");
        // Resets stay here for a moment only.
        wait_for("an answer to the client", || {
            silent.write_all(b"x").is_err() || !hears_nothing(&mut silent)
        });
    }
    let (mut client, served) = connected("10.80.0.1", &listener);
    silence(&served, true);
    drop(served);
    assert_eq!(read(&mut client), ErrorKind::ConnectionReset, "its address is not the helper's");
}

#[test]
fn an_address_that_is_released_is_no_end_of_a_server() {
    alone("holding::released_with_connections");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn released_with_connections() {
    machines();
    let mut gateway = Gateway::start("one");
    let listener = listen("one");
    for address in ADDRESSES {
        gateway.hold(address, until_in(50 * SECOND));
        let (_client, served) = connected(address, &listener);
        silence(&served, true);
        gateway.ask(Request::Release { address: address_of(address) }).unwrap();
        // Otherwise its clients would hear nothing for a moment if it returned at once.
        for family in ["ip", "ip6"] {
            let mut nft = Command::new("ip");
            nft.args(["netns", "exec", "one", "nft", "list", "set", family, "weir-address"]);
            let listed = nft.arg("ended").output().expect("nft, of nftables, is needed");
            let listed = String::from_utf8(listed.stdout).unwrap();
            assert!(listed.contains("timeout") && !listed.contains("elements"), "{listed}");
        }
    }
}

#[test]
fn a_server_that_has_ended_neither_answers_nor_refuses() {
    alone("holding::server_ended");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn server_ended() {
    machines();
    let mut gateway = Gateway::start("one");
    for address in ADDRESSES {
        gateway.hold(address, until_in(50 * SECOND));
        wait_for("an attempt within the time of silence", || {
            let begin = weir_address::now();
            let outcome = end_of_server(address);
            let in_time = weir_address::now().since(begin) < SECOND / 2;
            assert!(!in_time || outcome == (ErrorKind::TimedOut, true), "{address}: {outcome:?}");
            wait_for("the end of silence", || refusal(address) == ErrorKind::ConnectionRefused);
            in_time
        });
    }
}

/// Ends a server at `address`: what a client hears that connects then, and whether one that was
/// connected hears nothing.
fn end_of_server(address: &str) -> (ErrorKind, bool) {
    let listener = listen("one");
    let (mut silent, first) = connected(address, &listener);
    let (mut told, second) = connected(address, &listener);
    silence(&first, true);
    silence(&second, false);
    drop((listener, first));
    silent.write_all(b"x").unwrap();
    let refusal = refusal(address);
    drop(second);
    assert_eq!(read(&mut told), ErrorKind::ConnectionReset, "{address}: no other home knows it");
    (refusal, hears_nothing(&mut silent))
}

/// Connects a client to `address`, where nobody listens: its error.
fn refusal(address: &str) -> ErrorKind {
    let to = SocketAddr::new(address_of(address), PORT);
    within("client", || TcpStream::connect_timeout(&to, SECOND / 10).unwrap_err().kind())
}

/// The time for which the helper of a server waits for the end of the server's process: longer than
/// any stall of a busy machine, and shorter than the leases.
const PATIENT: Duration = Duration::from_secs(45);

/// A server on the first machine, once it holds its addresses. It ends when there is a file `end`.
fn server(work: &Path) -> Child {
    let ready = work.join("ready");
    let mut command = Command::new("ip");
    command.args(["netns", "exec", "one"]).arg(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "server_process", "--nocapture"]);
    command.env(READY, &ready).env(END, work.join("end"));
    command.env(ENDING, PATIENT.as_secs().to_string());
    let server = command.stdout(Stdio::null()).spawn().unwrap();
    wait_for("the server to hold its addresses", || ready.exists());
    for address in ADDRESSES {
        assert!(has("one", address));
    }
    server
}

#[test]
fn connections_that_a_server_had_not_accepted_when_it_ended_are_reset() {
    alone("holding::not_accepted");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn not_accepted() {
    machines();
    let work = tempfile::tempdir().unwrap();
    let mut server = server(work.path());
    let mut clients = ADDRESSES.map(connect);
    for client in &mut clients {
        client.write_all(b"a request").unwrap();
    }
    std::fs::write(work.path().join("end"), "").unwrap();
    for client in &mut clients {
        let error = client.read(&mut [0]).unwrap_err().kind();
        assert_eq!(error, ErrorKind::ConnectionReset, "no client waits for an answer");
    }
    server.wait().unwrap();
    for address in ADDRESSES {
        wait_for("the helper to remove it", || !has("one", address));
    }
}

#[test]
fn addresses_are_gone_when_the_server_is_killed() {
    alone("holding::server_killed");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn server_killed() {
    machines();
    let work = tempfile::tempdir().unwrap();
    let mut server = server(work.path());
    let patience_ends = until_in(PATIENT);
    server.kill().unwrap();
    server.wait().unwrap();
    for address in ADDRESSES {
        wait_for("the helper to remove it", || !has("one", address));
    }
    assert!(weir_address::now() < patience_ends, "the helper waited for a process that had ended");
}

#[test]
fn addresses_are_gone_when_the_link_is_closed() {
    alone("holding::link_closed");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn link_closed() {
    machines();
    let mut gateway = Gateway::start("one");
    let leases_end = until_in(50 * SECOND);
    for address in ADDRESSES {
        gateway.hold(address, leases_end);
    }
    gateway.link.stream().shutdown(std::net::Shutdown::Both).unwrap();
    for address in ADDRESSES {
        wait_for("the helper to remove it", || !has("one", address));
    }
    assert!(weir_address::now() < leases_end, "not their leases ended them");
    // The guard goes with the helper: the machine may have the address as its own.
    ip("-n one addr add 10.80.0.100/32 dev eth0");
    let listener = listen("one");
    let _client = connect("10.80.0.100");
    accept(&listener);
}

/// A measurement, not a test: how long after the end of the lease the last byte is received from a
/// stopped machine, and how long after it the kernel removes the address.
#[test]
#[ignore = "a measurement: see docs/decisions/0068-addresses-of-gateways.md"]
fn lateness() {
    machines();
    let mut gateway = Gateway::start("one");
    let listener = listen("one");
    for turn in 0..20_u32 {
        for address in ADDRESSES {
            let until = until_in(2 * SECOND + turn * Duration::from_millis(97));
            gateway.hold(address, until);
            let mut client = connect(address);
            let mut served = accept(&listener);
            served.set_nodelay(true).unwrap();
            gateway.signal(Signal::STOP);
            client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            let receiver = std::thread::spawn(move || {
                let mut last = weir_address::now();
                while client.read(&mut [0; 64]).is_ok_and(|length| length > 0) {
                    last = weir_address::now();
                }
                last
            });
            while weir_address::now() < until + Duration::from_millis(100) {
                drop(served.write(b"x"));
                sleep(Duration::from_micros(200));
            }
            while has("one", address) {
                sleep(Duration::from_millis(2));
            }
            let removed = weir_address::now().since(until).as_millis();
            let last = receiver.join().unwrap();
            let byte = i128::from(last.0) - i128::from(until.0);
            println!("{address}: last byte {} µs, removed {removed} ms", byte / 1000);
            gateway.signal(Signal::CONT);
            gateway.tells_the_end_of(address);
        }
    }
}
