//! An address that moves: the network learns where it is, and its clients reconnect.

use crate::bed::{
    ADDRESSES, Gateway, PORT, accept, address_of, alone, client_knows, connect, hardware, has, ip,
    listen, machines, until_in, wait_for,
};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;
use weir_address::{Report, Request};

const LEASE: Duration = Duration::from_secs(55);

#[test]
fn a_silent_client_learns_where_the_address_is_now() {
    alone("moving::announced");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn announced() {
    machines();
    let (mut one, mut two) = (Gateway::start("one"), Gateway::start("two"));
    let (first, second) = (hardware("one"), hardware("two"));
    let _listener = listen("one");
    for address in ADDRESSES {
        one.hold(address, until_in(LEASE));
        // From now on the client knows it, and sends nothing that would make it ask again.
        let _client = connect(address);
        wait_for("the client to know it", || client_knows(address, &first));
        one.ask(Request::Release { address: address_of(address) }).unwrap();
        two.hold(address, until_in(LEASE));
        wait_for("the client to know it on the other machine", || client_knows(address, &second));
        assert!(!client_knows(address, &first));
    }
}

#[test]
fn clients_of_a_dead_machine_are_reset_and_reconnect() {
    alone("moving::tickled");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn tickled() {
    machines();
    tickle_clients();
}

#[test]
fn clients_behind_a_firewall_that_follows_connections_reconnect() {
    alone("moving::tickled_through_firewall");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn tickled_through_firewall() {
    machines();
    // As in ufw's rules.
    nft("add table inet f; \
         add chain inet f in { type filter hook input priority 0; }; \
         add rule inet f in ct state invalid drop");
    tickle_clients();
}

#[test]
fn clients_behind_a_translation_of_ports_reconnect() {
    alone("moving::tickled_through_translation");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn tickled_through_translation() {
    machines();
    nft("add table inet f; \
         add chain inet f out { type nat hook postrouting priority 100; }; \
         add rule inet f out meta l4proto tcp masquerade to :10000-20000");
    tickle_clients();
}

/// Adds rules to the network of the client.
fn nft(rules: &str) {
    let mut nft = Command::new("ip");
    nft.args(["netns", "exec", "client", "nft", rules]);
    assert!(nft.status().expect("nft, of nftables, is needed").success());
}

/// Moves the addresses of a machine that is gone to another one, which tickles their clients.
fn tickle_clients() {
    let (mut one, mut two) = (Gateway::start("one"), Gateway::start("two"));
    let (on_one, on_two) = (listen("one"), listen("two"));
    let mut clients = Vec::new();
    for address in ADDRESSES {
        one.hold(address, until_in(LEASE));
        let mut client = connect(address);
        let mut served = accept(&on_one);
        client.write_all(b"hello").unwrap();
        served.read_exact(&mut [0; 5]).unwrap();
        clients.push((address, client, served));
    }
    // The machine is gone, without a word to its clients.
    ip("-n one link set eth0 down");
    for (address, client, served) in &mut clients {
        two.hold(address, until_in(LEASE));
        let local = SocketAddr::new(address_of(address), PORT);
        let known = served.peer_addr().unwrap();
        let known = vec![SocketAddr::new(known.ip().to_canonical(), known.port())];
        two.ask(Request::Tickle { local, clients: known }).unwrap();
        let error = client.read(&mut [0]).unwrap_err().kind();
        assert_eq!(error, ErrorKind::ConnectionReset, "{address}");
        let mut client = connect(address);
        let mut served = accept(&on_two);
        served.write_all(b"again").unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
    }
}

#[test]
fn an_address_moves_to_and_fro() {
    alone("moving::to_and_fro");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn to_and_fro() {
    machines();
    let mut gateways = [Gateway::start("one"), Gateway::start("two")];
    let servers = [listen("one"), listen("two")];
    for turn in 0..6 {
        let at = turn % 2;
        for address in ADDRESSES {
            gateways[at].hold(address, until_in(LEASE));
            let mut client = connect(address);
            let mut served = accept(&servers[at]);
            served.write_all(b"here").unwrap();
            client.read_exact(&mut [0; 4]).unwrap();
            gateways[at].ask(Request::Release { address: address_of(address) }).unwrap();
        }
    }
}

#[test]
fn the_hook_is_run_and_its_failures_are_told() {
    alone("moving::hooked");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn hooked() {
    machines();
    let work = tempfile::tempdir().unwrap();
    let (hook, record) = (work.path().join("hook"), work.path().join("record"));
    let script = format!(
        "#!/bin/sh\necho \"$@\" >>{}\ncase $1-$2 in add-*.101) exit 3 ;; add-*.102) sleep 1000 ;; esac\n",
        record.display()
    );
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let recorded = || fs::read_to_string(&record).unwrap_or_default();
    let mut gateway = Gateway::start_with("one", &hook);
    gateway.hold("10.80.0.100", until_in(LEASE));
    gateway.ask(Request::Release { address: address_of("10.80.0.100") }).unwrap();
    let expected = "add 10.80.0.100 eth0\nremove 10.80.0.100 eth0\n";
    wait_for("both runs", || recorded() == expected);
    for (address, words) in [("10.80.0.101", "exit status: 3"), ("10.80.0.102", "took too long")] {
        gateway.hold(address, until_in(LEASE));
        // Nothing waits for the hook.
        assert!(has("one", address));
        let Report::Failed { address: of, words: told } = gateway.told() else { panic!() };
        assert!(of == address_of(address) && told.contains(words), "{of}: {told}");
        assert!(has("one", address), "its failure changes nothing");
    }
    gateway.link.stream().shutdown(std::net::Shutdown::Both).unwrap();
    wait_for("the runs at the end", || {
        let removed = |address: &str| recorded().contains(&format!("remove {address} eth0"));
        removed("10.80.0.101") && removed("10.80.0.102")
    });
}
