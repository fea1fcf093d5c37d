//! The owner and the permissions of a volume's top directory: as an operator sets them, and as NFS
//! clients see and change them.

use crate::peer::Peer;
use crate::test_server::TestServer;
use serde_json::Value;
use weir_nfs::client::Reply;
use weir_nfs::v3::wire::{Fattr3, FileHandle3, GetattrArgs, Res, Sattr3, SetattrArgs, Status};

const CREATE: [&str; 6] = ["--pool", "pool", "--quota", "1GiB", "--throughput", "1MiB/s"];

fn create(server: &TestServer, name: &str, options: &[&str]) -> String {
    server.weir(&[&["volume", "create", name][..], &CREATE, options].concat())
}

/// The row of the top directory that a volume is shown with.
fn row(server: &TestServer, name: &str) -> String {
    let shown = server.weir(&["volume", "show", name]);
    let row = shown.lines().find_map(|line| line.strip_prefix("top directory"));
    row.unwrap_or_else(|| panic!("{shown}")).trim().to_owned()
}

/// The attributes of the top directory as a client gets them.
fn attributes(peer: &mut Peer) -> Fattr3 {
    let root = peer.root.clone();
    let reply = peer.call(&GetattrArgs { object: FileHandle3(&root) });
    match Reply::parse(&reply).unwrap().results::<GetattrArgs<'_>>().unwrap() {
        Res::Ok(found) => found.attributes,
        Res::Fail(status, ()) => panic!("{status:?}"),
    }
}

fn owner_and_mode(peer: &mut Peer) -> (u32, u32, u32) {
    let found = attributes(peer);
    (found.uid, found.gid, found.mode)
}

fn with_accounts() -> TestServer {
    let server = TestServer::start();
    server.weir(&["user", "create", "anna", "--uid", "5001", "--no-password"]);
    server.weir(&["group", "create", "staff", "--gid", "50"]);
    server
}

#[test]
fn a_volume_is_made_for_its_owner_also_through_a_crash() {
    let mut server = with_accounts();
    let plain = create(&server, "plain", &["--protocols", "nfs,smb"]);
    assert!(plain.contains("weir volume set plain --owner USER"), "{plain}");
    assert_eq!(row(&server, "plain"), "owner root, group root, mode 0755");
    let options = ["--protocols", "nfs,smb", "--owner", "anna", "--group", "50", "--mode", "2770"];
    let made = create(&server, "team", &options);
    let told = "; top directory: owner anna (5001), group staff (50), mode 2770\n";
    assert!(made.contains(told) && !made.contains("weir volume set"), "{made}");
    server.restart("KILL");
    let mut peer = Peer::mount_at(server.address(), b"/team");
    assert_eq!(owner_and_mode(&mut peer), (5001, 50, 0o2770));
    let audit = server.weir(&["--output", "json", "audit"]);
    let top = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        record["request"]["top"].clone()
    };
    let asked = serde_json::json!({ "owner": "anna", "gid": 50, "mode": "2770" });
    assert!(audit.lines().any(|line| top(line) == asked), "{audit}");
}

#[test]
fn a_top_directory_is_changed_under_clients_and_by_them() {
    let server = with_accounts();
    let mut peer = Peer::mount(&server);
    let before = attributes(&mut peer);
    let set = server.weir(&["volume", "set", "good", "--owner", "ANNA", "--mode", "750"]);
    assert!(set.ends_with("; top directory: owner anna (5001), group root, mode 0750\n"), "{set}");
    assert_eq!(owner_and_mode(&mut peer), (5001, 0, 0o750));
    let time = |found: &Fattr3| (found.ctime.seconds, found.ctime.nseconds);
    assert!(time(&attributes(&mut peer)) >= time(&before));
    let root = peer.root.clone();
    let new_attributes = Sattr3 { uid: Some(7), mode: Some(0o711), ..Sattr3::NONE };
    let args = SetattrArgs { object: FileHandle3(&root), new_attributes, guard: None };
    let reply = peer.call(&args);
    let done = Reply::parse(&reply).unwrap().results::<SetattrArgs<'_>>().unwrap();
    assert_eq!(done.status(), Status::OK);
    assert_eq!(row(&server, "good"), "owner 7, group root, mode 0711");
    let plan = server.weir(&["volume", "set", "good", "--group", "staff", "--dry-run"]);
    assert!(plan.contains("group staff (50)"), "{plan}");
    assert_eq!(row(&server, "good"), "owner 7, group root, mode 0711");
    server.weir(&["volume", "set", "good", "--owner", "0", "--group", "0", "--mode", "0755"]);
    assert_eq!(owner_and_mode(&mut peer), (0, 0, 0o755));
}

#[test]
fn a_change_that_makes_no_sense_is_refused_and_nothing_is_changed() {
    let server = with_accounts();
    server.volume("good", "1GiB");
    for (status, told, options) in [
        (1, "user \"ben\" does not exist: create it with", &["--owner", "ben"][..]),
        (1, "group \"anna\" does not exist", &["--group", "anna"]),
        (1, "uid 4294967295 cannot be assigned", &["--owner", "4294967295"]),
        (2, "octal", &["--mode", "0890"]),
    ] {
        let set = server.try_weir(&[&["volume", "set", "good"][..], options].concat());
        let args = [&["volume", "create", "other"][..], &CREATE, options].concat();
        for output in [set, server.try_weir(&args)] {
            let complaint = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(status), "{complaint}");
            assert!(complaint.contains(told), "{complaint}");
        }
    }
    assert_eq!(row(&server, "good"), "owner root, group root, mode 0755");
    assert!(!server.weir(&["volume", "list"]).contains("other"));
}
