//! A directory of many entries: made, listed in both ways and emptied, in memory that does not
//! grow with their number.
//!
//! With 20,000 entries and few objects held open; `make wide` does the same with a million.

use crate::peer::Peer;
use crate::test_server::TestServer;
use weir_nfs::client::Reply;
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, MkdirArgs, ReaddirArgs, ReaddirplusArgs,
    RemoveArgs, Res, RmdirArgs, Sattr3,
};

const ENTRIES: u32 = 20_000;

/// Calls sent before their replies are read.
const DEPTH: u32 = 128;

/// The memory that the server may hold beyond the earlier, in KiB: the allocator leaves up to 2 MiB
/// with each of its 64 threads for the disk, and objects held open take about 1 KiB each.
const GROWTH_KIB_MAX: u64 = 192 << 10;

struct Wide {
    server: TestServer,
    peer: Peer,
    dir: Vec<u8>,
    /// Of pipelined calls; those made one by one have smaller ones.
    xid: u32,
}

impl Wide {
    fn start(settings: &[(&str, &str)]) -> Self {
        let server = TestServer::start_with(settings);
        let mut peer = Peer::mount(&server);
        let root = peer.root.clone();
        let location = DirOpArgs3 { dir: FileHandle3(&root), name: b"wide" };
        let reply = peer.call(&MkdirArgs { location, attributes: Sattr3::NONE });
        let dir = match Reply::parse(&reply).unwrap().results::<MkdirArgs<'_>>().unwrap() {
            Res::Ok(made) => made.object.unwrap().0.to_vec(),
            Res::Fail(status, _) => panic!("{status:?}"),
        };
        Self { server, peer, dir, xid: 1 << 31 }
    }

    /// Calls for every entry, so many at a time; each call must succeed.
    fn for_all(&mut self, phase: &str, call: impl Fn(u32, &[u8], &[u8]) -> Vec<u8>) {
        let dir = self.dir.clone();
        for first in (0..ENTRIES).step_by(DEPTH as usize) {
            let last = (first + DEPTH).min(ENTRIES);
            let mut bytes = Vec::new();
            for number in first..last {
                self.xid += 1;
                bytes.extend(call(self.xid, &dir, name(number).as_bytes()));
            }
            self.peer.send(&bytes);
            for _ in first..last {
                let reply = self.peer.receive();
                let body = Reply::parse(&reply).unwrap().body.unwrap();
                assert_eq!(body[..4], [0; 4], "{phase}");
            }
        }
    }

    /// Every name must come once: `page` gives what follows a cookie, and whether that is all.
    fn list(
        &mut self,
        phase: &str,
        page: impl Fn(&mut Peer, &[u8], u64, &mut dyn FnMut(&[u8], u64)) -> bool,
    ) {
        let mut seen = vec![false; ENTRIES as usize];
        let mut cookie = 0;
        loop {
            let from = cookie;
            let done = page(&mut self.peer, &self.dir.clone(), from, &mut |name, next| {
                cookie = next;
                if let Some(number) = number(name) {
                    assert!(!std::mem::replace(&mut seen[number], true), "{number} came twice");
                }
            });
            if done {
                break;
            }
            assert_ne!(cookie, from, "a page without entries");
        }
        assert!(seen.iter().all(|seen| *seen), "{phase} has left names out");
    }
}

fn name(number: u32) -> String {
    format!("a-name-of-the-usual-length-{number:08}")
}

fn number(name: &[u8]) -> Option<usize> {
    str::from_utf8(name).ok()?.strip_prefix("a-name-of-the-usual-length-")?.parse().ok()
}

#[test]
fn a_wide_directory_is_made_listed_and_emptied_in_bounded_memory() {
    let mut wide = Wide::start(&[
        ("WEIR_NAMESPACE_DURABILITY", "process"),
        ("WEIR_CACHED_OBJECTS_MAX", "1000"),
    ]);
    let before = wide.server.resident_kib();
    wide.for_all("CREATE", |xid, dir, name| {
        let location = DirOpArgs3 { dir: FileHandle3(dir), name };
        let how = CreateHow3::Guarded(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
        crate::peer::encoded(xid, &CreateArgs { location, how })
    });
    wide.list("READDIR", |peer, dir, cookie, each| {
        let (dir, cookie_verifier) = (FileHandle3(dir), [0; 8]);
        let reply = peer.call(&ReaddirArgs { dir, cookie, cookie_verifier, count: 64 << 10 });
        match Reply::parse(&reply).unwrap().results::<ReaddirArgs<'_>>().unwrap() {
            Res::Ok(page) => {
                page.entries.iter().for_each(|entry| each(entry.name, entry.cookie));
                page.eof
            }
            Res::Fail(status, _) => panic!("{status:?}"),
        }
    });
    wide.list("READDIRPLUS", |peer, dir, cookie, each| {
        let (dir, cookie_verifier) = (FileHandle3(dir), [0; 8]);
        let (dir_count, max_count) = (64 << 10, 64 << 10);
        let args = ReaddirplusArgs { dir, cookie, cookie_verifier, dir_count, max_count };
        let reply = peer.call(&args);
        match Reply::parse(&reply).unwrap().results::<ReaddirplusArgs<'_>>().unwrap() {
            Res::Ok(page) => {
                for entry in page.entries.iter() {
                    assert!(entry.attributes.is_some() && entry.handle.is_some());
                    each(entry.name, entry.cookie);
                }
                page.eof
            }
            Res::Fail(status, _) => panic!("{status:?}"),
        }
    });
    wide.for_all("REMOVE", |xid, dir, name| {
        let object = DirOpArgs3 { dir: FileHandle3(dir), name };
        crate::peer::encoded(xid, &RemoveArgs { object })
    });
    let root = wide.peer.root.clone();
    let object = DirOpArgs3 { dir: FileHandle3(&root), name: b"wide" };
    let reply = wide.peer.call(&RmdirArgs { object });
    let removed = Reply::parse(&reply).unwrap().results::<RmdirArgs<'_>>().unwrap();
    assert!(matches!(removed, Res::Ok(_)), "empty: {removed:?}");
    let after = wide.server.resident_kib();
    assert!(after < before + GROWTH_KIB_MAX, "the server grew from {before} to {after} KiB");
}
