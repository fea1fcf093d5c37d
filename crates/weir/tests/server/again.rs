//! Calls that change names and are sent again after the server was killed, as clients do that never
//! got the reply.

use crate::peer::{Peer, encoded};
use crate::test_server::TestServer;
use std::io::Read;
use std::net::Shutdown;
use weir_nfs::client::Reply;
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, LinkArgs, LookupArgs, MkdirArgs, MknodArgs,
    MknodData3, NewObject, RemoveArgs, RenameArgs, Res, RmdirArgs, Sattr3, Status, SymlinkArgs,
    WccData,
};

const SET: Sattr3 = Sattr3 { mode: Some(0o755), ..Sattr3::NONE };

/// The outcome in a reply: the handle of the object made, or the error.
type Outcome = Result<Option<Vec<u8>>, Status>;

fn made(result: Res<NewObject<'_>, WccData>) -> Outcome {
    match result {
        Res::Ok(made) => Ok(made.object.map(|handle| handle.0.to_vec())),
        Res::Fail(status, _) => Err(status),
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is called like those that take results apart"
)]
fn done<O, F>(result: Res<O, F>) -> Outcome {
    match result {
        Res::Ok(_) => Ok(None),
        Res::Fail(status, _) => Err(status),
    }
}

fn at<'a>(dir: &'a [u8], name: &'a str) -> DirOpArgs3<'a> {
    DirOpArgs3 { dir: FileHandle3(dir), name: name.as_bytes() }
}

/// A change of names, as a whole record, and how its reply is read.
struct Change {
    what: &'static str,
    record: Vec<u8>,
    outcome: fn(&[u8]) -> Outcome,
}

macro_rules! change {
    ($xid:expr, $args:ident $fields:tt, $read:expr) => {
        Change {
            what: stringify!($args),
            record: encoded($xid, &$args $fields),
            outcome: |record| {
                let read: fn(_) -> Outcome = $read;
                read(Reply::parse(record).unwrap().results::<$args<'_>>().unwrap())
            },
        }
    };
}

/// Changes of each sort in `dir`, numbered from `xid` on, of which none can succeed twice but the
/// exclusive CREATE; `file` is one that is there already.
fn changes(xid: u32, dir: &[u8], file: &[u8]) -> Vec<Change> {
    let guarded = CreateHow3::Guarded(SET);
    let exclusive = CreateHow3::Exclusive([9; 8]);
    let pipe = MknodData3::Fifo(SET);
    vec![
        change!(xid, CreateArgs { location: at(dir, "guarded"), how: guarded }, made),
        change!(xid + 1, CreateArgs { location: at(dir, "exclusive"), how: exclusive }, made),
        change!(xid + 2, MkdirArgs { location: at(dir, "dir"), attributes: SET }, made),
        change!(
            xid + 3,
            SymlinkArgs { location: at(dir, "link"), attributes: SET, data: b"target" },
            made
        ),
        change!(xid + 4, MknodArgs { location: at(dir, "pipe"), what: pipe }, made),
        change!(xid + 5, LinkArgs { file: FileHandle3(file), link: at(dir, "name") }, done),
        change!(xid + 6, RenameArgs { from: at(dir, "guarded"), to: at(dir, "renamed") }, done),
        change!(xid + 7, RemoveArgs { object: at(dir, "name") }, done),
        change!(xid + 8, RmdirArgs { object: at(dir, "dir") }, done),
    ]
}

fn ask(peer: &mut Peer, change: &Change) -> Outcome {
    peer.send(&change.record);
    (change.outcome)(&peer.receive())
}

fn names(peer: &mut Peer, dir: &[u8]) -> Vec<bool> {
    let all = ["guarded", "exclusive", "dir", "link", "pipe", "name", "renamed"];
    let there = |name| {
        let reply = peer.call(&LookupArgs { what: at(dir, name) });
        let results = Reply::parse(&reply).unwrap().results::<LookupArgs<'_>>().unwrap();
        matches!(results, Res::Ok(_))
    };
    all.map(there).to_vec()
}

#[test]
fn a_change_whose_reply_was_lost_with_the_server_is_answered_by_the_next_one() {
    for durability in ["power", "process"] {
        let mut server = TestServer::start_with(&[("WEIR_NAMESPACE_DURABILITY", durability)]);
        let mut peer = Peer::mount(&server);
        let (root, file) = (peer.root.clone(), peer.create(b"file"));
        let changes = changes(1000, &root, &file);
        let first: Vec<Outcome> = changes.iter().map(|change| ask(&mut peer, change)).collect();
        assert!(first.iter().all(Result::is_ok), "{durability}: {first:?}");
        let before = names(&mut peer, &root);
        // The last is under way when the server is killed.
        let more = change!(2000, RemoveArgs { object: at(&root, "pipe") }, done);
        peer.send(&more.record);
        // A connection that is closed in an orderly way would have its replies forgotten.
        let mut lost = vec![peer];
        for life in 0..2 {
            server.restart("KILL");
            lost.push(Peer::from(server.connect()));
            let peer = lost.last_mut().unwrap();
            for (change, first) in changes.iter().zip(&first) {
                assert_eq!(ask(peer, change), *first, "{durability}, {life}: {}", change.what);
            }
            assert_eq!(ask(peer, &more), Ok(None), "done or not, it is done once");
            let mut after = before.clone();
            after[4] = false;
            assert_eq!(names(peer, &root), after);
            // A call with the same number and other arguments is another call.
            let other = change!(1007, RemoveArgs { object: at(&root, "name") }, done);
            assert_eq!(ask(peer, &other), Ok(None), "the same call");
            let other = change!(1007, RemoveArgs { object: at(&root, "nobody") }, done);
            assert_eq!(ask(peer, &other), Err(Status::NOENT));
        }
    }
}

#[test]
fn what_a_client_has_taken_is_forgotten_across_a_restart_too() {
    let mut server = TestServer::start();
    let mut peer = Peer::mount(&server);
    let root = peer.root.clone();
    peer.create(b"one");
    let remove = change!(1000, RemoveArgs { object: at(&root, "one") }, done);
    assert_eq!(ask(&mut peer, &remove), Ok(None));
    // The server closes its end after it has forgotten the replies that the client took. A call
    // that came before that would be answered from memory, and the reply be kept for its own
    // connection.
    peer.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(peer.stream.read(&mut [0]).unwrap(), 0, "the server closed the connection");
    let mut next = Peer::mount_at(server.address(), b"/good");
    assert_eq!(ask(&mut next, &remove), Err(Status::NOENT));
    next.create(b"one");
    server.restart("KILL");
    let mut peer = Peer::from(server.connect());
    let again = ask(&mut peer, &remove);
    assert_eq!(again, Ok(None));
    let gone = names(&mut peer, &root);
    assert_eq!(gone, [false; 7]);
    let lookup = peer.call(&LookupArgs { what: at(&root, "one") });
    let found = Reply::parse(&lookup).unwrap().results::<LookupArgs<'_>>().unwrap();
    assert!(matches!(found, Res::Fail(Status::NOENT, _)), "it was carried out");
}
