//! Limits beyond MiB/s as clients meet them. What came together is decided at one moment, so these
//! tests know who had to wait without looking at a clock.

use crate::peer::{Peer, encoded};
use crate::test_server::TestServer;
use weir_nfs::client::Reply;
use weir_nfs::v3::wire::{FileHandle3, ReadArgs, Res};

/// A number of the volume's live counters.
fn live(server: &TestServer, counter: &str) -> u64 {
    let shown = server.weir(&["--output", "json", "volume", "show", "good"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    shown["live"][counter].as_u64().unwrap()
}

/// Sends `calls` READs of `count` bytes at once and waits for all of the answers.
fn read_at_once(peer: &mut Peer, file: &[u8], calls: u32, count: u32) {
    let args = ReadArgs { file: FileHandle3(file), offset: 0, count };
    let flood: Vec<u8> = (0..calls).flat_map(|call| encoded(1000 + call, &args)).collect();
    peer.send(&flood);
    for _ in 0..calls {
        let reply = peer.receive();
        let answer = Reply::parse(&reply).unwrap().results::<ReadArgs<'_>>().unwrap();
        assert!(matches!(answer, Res::Ok(_)), "a limit delays and never refuses");
    }
}

#[test]
fn operations_are_limited_beside_bytes() {
    let server = TestServer::start();
    let mut peer = Peer::mount(&server);
    let file = peer.create(b"file");
    read_at_once(&mut peer, &file, 20, 0);
    assert_eq!(live(&server, "delayed_ops"), 0, "nothing limits what moves no byte");
    server.weir(&["volume", "set", "good", "--max-iops", "20"]);
    // One of them may go at once, and no more than the 50 ms beside it; an empty READ counts too.
    read_at_once(&mut peer, &file, 20, 0);
    assert!(live(&server, "delayed_ops") >= 15, "{}", live(&server, "delayed_ops"));
    // What isn't a READ or WRITE is free.
    let before = live(&server, "delayed_ops");
    for _ in 0..50 {
        peer.attributes(&file);
    }
    assert_eq!(live(&server, "delayed_ops"), before);
    server.weir(&["volume", "set", "good", "--max-iops", "none"]);
    read_at_once(&mut peer, &file, 20, 0);
    assert_eq!(live(&server, "delayed_ops"), before);
    assert_eq!(live(&server, "read_ops"), 60);
}

#[test]
fn where_there_are_bursts_every_operation_counts() {
    let server = TestServer::start();
    let mut peer = Peer::mount(&server);
    let file = peer.create(b"file");
    server.weir(&["pool", "set", "pool", "--qos", "provisioned-v1"]);
    let shown = server.weir(&["volume", "show", "good"]);
    assert!(shown.contains("IOPS, bursts of 10000") && shown.contains("credits"), "{shown}");
    for _ in 0..5 {
        peer.attributes(&file);
    }
    assert_eq!(live(&server, "delayed_ops"), 0);
    // Names and attributes are operations too; COMMIT is free, as ever.
    server.weir(&["volume", "set", "good", "--max-iops", "20"]);
    for _ in 0..20 {
        peer.attributes(&file);
    }
    assert!(live(&server, "delayed_ops") >= 10, "{}", live(&server, "delayed_ops"));
}

#[test]
fn credits_survive_a_crash_and_are_not_filled_by_it() {
    let mut server = TestServer::start();
    let pool = ["pool", "create", "share", "--qos", "provisioned-v2", "--size", "1TiB"];
    server.weir(&pool);
    let volume = ["volume", "create", "good", "--pool", "share", "--quota", "64GiB"];
    server.weir(&[&volume[..], &["--iops", "3000"]].concat());
    const FULL: u64 = 25_200_000;
    assert_eq!(live(&server, "credits"), FULL, "full at birth");
    // They are kept about a second after that, less what can be spent until they are kept next.
    let mut left = FULL;
    for wait in 1..20 {
        std::thread::sleep(std::time::Duration::from_secs(wait));
        server.restart("KILL");
        left = live(&server, "credits");
        if left < FULL {
            break;
        }
    }
    assert!((FULL - 20 * 7_000..FULL).contains(&left), "{left}");
    server.restart("TERM");
    let then = live(&server, "credits");
    assert!((left..=FULL).contains(&then), "{then} after {left}");
}
