//! Backing up, losing, and restoring the catalogue of a running server, as an operator does.

use crate::peer::Peer;
use crate::test_server::TestServer;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use weir_nfs::client::Reply;
use weir_nfs::v3::wire::{FileHandle3, GetattrArgs, Res};

/// Complaint of a command that must fail with 1, as its code and message.
fn refused(server: &TestServer, args: &[&str]) -> (String, String) {
    let output = server.try_weir(&[&["--output", "json"][..], args].concat());
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {complaint}");
    let error: Value = serde_json::from_str(&complaint).unwrap();
    let text = |key: &str| error[key].as_str().unwrap().to_owned();
    (text("code"), text("message"))
}

fn json(server: &TestServer, args: &[&str]) -> Value {
    serde_json::from_str(&server.weir(&[&["--output", "json"][..], args].concat())).unwrap()
}

fn answers(peer: &mut Peer, handle: &[u8]) -> bool {
    let reply = peer.call(&GetattrArgs { object: FileHandle3(handle) });
    matches!(Reply::parse(&reply).unwrap().results::<GetattrArgs<'_>>().unwrap(), Res::Ok(_))
}

#[test]
fn a_lost_catalogue_comes_back_and_handles_of_clients_stay_valid() {
    let mut server = TestServer::start();
    let mut peer = Peer::mount(&server);
    let handle = peer.create(b"file");
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("weir.backup");
    let file = file.to_str().unwrap();
    let told = server.weir(&["catalog", "backup", file]);
    assert!(told.contains("1 pools, 1 volumes"), "{told}");
    let mode = std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert_eq!(json(&server, &["catalog", "check"])["findings"], Value::Array(vec![]));

    let (code, message) = refused(&server, &["catalog", "backup", file]);
    assert_eq!(code, "client");
    assert!(message.contains("--overwrite"), "{message}");
    let made = json(&server, &["catalog", "backup", "--overwrite", file]);
    assert_eq!(made["backup"]["volumes"], 1);
    assert_eq!(place.path().read_dir().unwrap().count(), 1);
    assert_eq!(refused(&server, &["catalog", "restore", "--replace", file]).0, "locked");

    server.stop("KILL");
    assert_eq!(refused(&server, &["catalog", "restore", file]).0, "catalog_exists");
    for name in ["weir.db", "weir.db-wal", "handle.key"] {
        std::fs::remove_file(server.data().join(name)).unwrap();
    }
    assert_eq!(refused(&server, &["catalog", "check"]).0, "no_catalog");
    let restored = json(&server, &["catalog", "restore", file]);
    assert_eq!((&restored["kept"], &restored["findings"]), (&Value::Null, &Value::Array(vec![])));
    server.serve_again();
    assert!(answers(&mut Peer::mount_at(server.address(), b"/good"), &handle));
    server.stop("TERM");
    assert_eq!(json(&server, &["catalog", "check"])["ok"], true);
}

#[test]
fn a_check_ends_with_1_where_a_volume_could_not_be_served() {
    let mut server = TestServer::start();
    server.volume("good", "1TiB");
    let format = server.data().join("pools/1/volumes/1/meta/format");
    std::fs::write(&format, "weir-volume 99\n").unwrap();
    // The server runs: what it has open it goes on to serve.
    let output = server.try_weir(&["catalog", "check"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(told.contains("error: volume good:") && told.contains("format 99"), "{told}");
    server.stop("TERM");
    assert_eq!(refused(&server, &["catalog", "check"]).1, "the catalogue has an error");
    std::fs::remove_dir_all(server.data().join("pools/1/volumes/1")).unwrap();
    let output = server.try_weir(&["--output", "json", "catalog", "check"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["findings"][0]["code"], "volume_away");
}

#[test]
fn a_damaged_catalogue_does_not_replace_a_good_backup() {
    let mut server = TestServer::start();
    for number in 0..100 {
        let name = format!("volume-with-quite-a-long-name-{number}");
        let contract = ["--pool", "pool", "--quota", "1GiB", "--throughput", "1MiB/s"];
        server.weir(&[&["volume", "create", &name][..], &contract].concat());
    }
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("weir.backup");
    server.weir(&["catalog", "backup", file.to_str().unwrap()]);
    server.stop("TERM");
    let good = std::fs::read(&file).unwrap();
    let path = server.data().join("weir.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 8192 * 4096;
    bytes[middle..middle + 4096].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let again = ["catalog", "backup", "--overwrite", file.to_str().unwrap()];
    let (_, message) = refused(&server, &again);
    assert!(message.contains("the catalogue is damaged"), "{message}");
    assert_eq!(std::fs::read(&file).unwrap(), good);
    server.weir(&["catalog", "check", "--backup", file.to_str().unwrap()]);
}

#[test]
fn a_backup_with_a_changed_key_of_handles_is_refused() {
    let mut server = TestServer::start();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("weir.backup");
    let name = file.to_str().unwrap();
    server.weir(&["catalog", "backup", name]);
    let told = server.weir(&["catalog", "check", "--backup", name]);
    assert!(told.contains("checksum correct"), "{told}");
    assert_eq!(json(&server, &["catalog", "check"])["ok"], true);
    server.stop("TERM");
    let key = std::fs::read(server.data().join("handle.key")).unwrap();
    let good = std::fs::read(&file).unwrap();
    let at = good.windows(key.len()).position(|bytes| bytes == key).unwrap();
    let mut damaged = good.clone();
    damaged[at + 7] ^= 1;
    std::fs::write(&file, &damaged).unwrap();
    for args in
        [&["catalog", "check", "--backup", name][..], &["catalog", "restore", "--replace", name]]
    {
        let (code, message) = refused(&server, args);
        assert_eq!(code, "damaged_backup");
        assert!(message.contains("use another"), "{message}");
    }
    assert_eq!(std::fs::read(server.data().join("handle.key")).unwrap(), key);
    assert!(!server.data().join("replaced-1").exists());
    std::fs::write(&file, good).unwrap();
    server.weir(&["catalog", "restore", "--replace", name]);
    assert!(server.data().join("replaced-1").exists());
}
