//! Bytes that are no messages, connections that say nothing, and users that may not connect. None
//! of them keeps the helper from its work.

use crate::bed::{Bed, Other, WAIT, alone, has_address, helper_address, wait_for, within};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

/// Messages that no server sends, as they are on the socket.
const NONSENSE: [&[u8]; 6] = [
    &[0xff; 100],
    // A length beyond the longest.
    &[0, 1, 0, 1, 1, 1],
    // Another version.
    &[0, 0, 0, 6, 9, 1, 0, 0, 0, 1],
    // A message that is cut.
    &[0, 0, 0, 7, 1, 1, 0, 0, 0, 1, 0],
    // No message.
    &[0, 0, 0, 0],
    // A note before the process has said which life it is.
    &[0, 0, 0, 12, 1, 3, 0, 0, 0, 1, 0, 2, 0, 0, 0, 1],
];

#[test]
fn nonsense_at_its_sockets_keeps_the_helper_from_nothing() {
    alone("hostile::nonsense");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn nonsense() {
    let bed = Bed::new();
    let _helper = bed.helper();
    let mut two = Other::new(&bed, "two");
    let mode = std::fs::metadata(bed.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut server = bed.server(1, "announce", &[&two]);
    assert_eq!(server.says(), "announced");
    assert_eq!(server.ask("hold"), "done");
    for bytes in NONSENSE {
        let mut local = UnixStream::connect(bed.socket()).unwrap();
        local.set_read_timeout(Some(WAIT)).unwrap();
        local.write_all(bytes).unwrap();
        // It is welcome, and then cut off.
        let mut said = Vec::new();
        drop(local.read_to_end(&mut said));
        assert_eq!(said.get(..10), Some(&[0, 0, 0, 6, 1, 129, 0, 0, 0, 0][..]));
        within("three", || {
            let mut strange = TcpStream::connect(helper_address()).unwrap();
            strange.set_read_timeout(Some(WAIT)).unwrap();
            strange.write_all(bytes).unwrap();
            strange.shutdown(std::net::Shutdown::Write).unwrap();
            drop(strange.read_to_end(&mut Vec::new()));
        });
        assert_eq!(server.ask("renew"), "done");
    }
    // Connections that say nothing, more than there are places.
    let silent: Vec<UnixStream> =
        (0..40).filter_map(|_| UnixStream::connect(bed.socket()).ok()).collect();
    let strangers: Vec<TcpStream> = within("three", || {
        (0..200).filter_map(|_| TcpStream::connect(helper_address()).ok()).collect()
    });
    assert_eq!(server.ask("renew"), "done");
    let (word, _) = two.asks(WAIT).unwrap();
    assert!(word.runs);
    server.process.kill();
    assert!(!two.hears().runs);
    assert!(!has_address());
    // The next life gets in, although they are there: they are cut off when their time is over.
    let mut next = None;
    wait_for("the next life", || {
        let mut server = bed.server(2, "announce", &[&two]);
        let announced = server.says() == "announced";
        next = Some(server);
        announced
    });
    drop((silent, strangers, next));
}

#[test]
fn a_server_that_sends_nonsense_loses_its_addresses_and_runs_on() {
    alone("hostile::server");
}

/// The server is this process.
#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn server() {
    let bed = Bed::new();
    let _helper = bed.helper();
    let mut two = Other::new(&bed, "two");
    let announce =
        [&[0, 0, 0, 20, 1, 1, 0, 0, 0, 1][..], &[0, 0, 0, 0, 0, 0, 0, 77], &[0, 1, 0, 0, 0, 1]]
            .concat();
    let attach = {
        let mut bytes = announce.clone();
        bytes[5] = 2;
        bytes
    };
    for (turn, first) in [announce, attach.clone(), attach].iter().enumerate() {
        let mut link;
        loop {
            link = UnixStream::connect(bed.socket()).unwrap();
            link.set_read_timeout(Some(WAIT)).unwrap();
            let mut welcome = [0; 10];
            link.read_exact(&mut welcome).unwrap();
            link.write_all(first).unwrap();
            // The link before may not have ended completely.
            let mut answer = [0; 6];
            link.read_exact(&mut answer).unwrap();
            if answer[5] != 132 {
                break;
            }
        }
        let hold = [
            &[0, 0, 0, 34, 1, 64, 0, 0, 0, 0][..],
            &[0, 0, 0, 24, 1, 1, 0, 0, 0, 9, 4, 10, 81, 0, 100, 32],
            &(weir_address::now().0 + 50_000_000_000).to_be_bytes(),
            b"eth0",
        ]
        .concat();
        link.write_all(&hold).unwrap();
        wait_for("the address", has_address);
        let nonsense: &[u8] = match turn {
            0 => &[0xff; 100],
            // No frame of a request for an address.
            1 => &[0, 0, 0, 12, 1, 64, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0],
            // It says again who it is.
            _ => first,
        };
        link.write_all(nonsense).unwrap();
        drop(link.read_to_end(&mut Vec::new()));
        assert!(!has_address(), "the link ends when they are gone");
        let (word, _) = two.asks(WAIT).unwrap();
        assert!(word.runs && word.life.number == 1, "its process has not ended");
    }
}

#[test]
fn a_process_of_another_user_is_not_served() {
    alone("hostile::other_user");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn other_user() {
    let bed = Bed::new();
    let _helper = bed.helper();
    let path = bed.socket();
    // As if the mode of the socket and its directory let them in.
    for opened in [path.as_path(), path.parent().unwrap()] {
        std::fs::set_permissions(opened, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let said = std::thread::scope(|scope| {
        let as_nobody = || {
            let nobody = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            let mut stream = UnixStream::connect(&path).unwrap();
            let mut said = String::new();
            stream.set_read_timeout(Some(WAIT)).unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            said.push_str(&String::from_utf8_lossy(&bytes));
            said
        };
        scope.spawn(as_nobody).join().unwrap()
    });
    assert!(said.contains("user 65534 may not be the server"), "{said:?}");
}
