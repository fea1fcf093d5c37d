//! READDIR and READDIRPLUS: sizes kept to the byte, and every entry seen exactly once.

use crate::world::{ALICE, BOB, Client, Handle, World, at, failed, ok};
use std::collections::BTreeSet;
use weir_core::FsError;
use weir_core::store::CreateHow;
use weir_core::testing::block_on;
use weir_core::{Name, SetAttr, Store};
use weir_nfs::v3::wire::{FileHandle3, ReaddirArgs, ReaddirplusArgs, RemoveArgs, Status};

const ENTRIES: usize = 10_000;

/// A result without entries: attributes, verifier, end of the list, end of the directory.
const FRAME: u32 = 88 + 8 + 4 + 4;

fn readdir(dir: &Handle, cookie: u64, count: u32) -> ReaddirArgs<'_> {
    ReaddirArgs { dir: FileHandle3(dir), cookie, cookie_verifier: [0; 8], count }
}

fn readdirplus(dir: &Handle, cookie: u64, dir_count: u32, max_count: u32) -> ReaddirplusArgs<'_> {
    let cookie_verifier = [0; 8];
    ReaddirplusArgs { dir: FileHandle3(dir), cookie, cookie_verifier, dir_count, max_count }
}

/// A page of a directory as a client takes it in.
struct Page {
    names: Vec<(Vec<u8>, u64)>,
    eof: bool,
}

#[derive(Clone, Copy)]
enum Way {
    Readdir { count: u32 },
    Plus { dir_count: u32, max_count: u32 },
}

impl Way {
    /// One page; it checks that the result is as large as allowed at most.
    fn page(self, client: &Client<'_>, dir: &Handle, cookie: u64) -> Page {
        match self {
            Self::Readdir { count } => {
                let answer = client.call(&readdir(dir, cookie, count));
                assert!(answer.results_bytes() <= count as usize);
                let page = ok(answer.results());
                let names = page.entries.iter().map(|entry| (entry.name.to_vec(), entry.cookie));
                Page { names: names.collect(), eof: page.eof }
            }
            Self::Plus { dir_count, max_count } => {
                let answer = client.call(&readdirplus(dir, cookie, dir_count, max_count));
                assert!(answer.results_bytes() <= max_count as usize);
                let page = ok(answer.results());
                for entry in page.entries.iter() {
                    assert_eq!(entry.attributes.unwrap().fileid, entry.fileid);
                    assert!(client.world.volume.keys.open(entry.handle.unwrap().0).is_ok());
                }
                let names = page.entries.iter().map(|entry| (entry.name.to_vec(), entry.cookie));
                Page { names: names.collect(), eof: page.eof }
            }
        }
    }
}

const WAYS: [Way; 6] = [
    Way::Readdir { count: 200 },
    Way::Readdir { count: 4096 },
    Way::Readdir { count: u32::MAX },
    Way::Plus { dir_count: 512, max_count: 4096 },
    Way::Plus { dir_count: 8192, max_count: 8192 },
    Way::Plus { dir_count: u32::MAX, max_count: u32::MAX },
];

/// A directory of names of many lengths, made behind the protocol.
fn crowded(world: &World) -> (Handle, BTreeSet<Vec<u8>>) {
    let alice = world.client(ALICE);
    let dir = alice.mkdir(&world.root(), "crowd", 0o755);
    let volume = &world.volume;
    let key = volume.keys.open(&dir).unwrap().key;
    let object = block_on(volume.store.resolve(&key)).unwrap();
    let mut names = BTreeSet::from([b".".to_vec(), b"..".to_vec()]);
    for i in 0..ENTRIES {
        let name = format!("{i}{}", "x".repeat(i * 7 % 40)).into_bytes();
        let how = CreateHow::Guarded(SetAttr::default());
        block_on(volume.store.create(&object, Name::new(&name).unwrap(), &how, &ALICE)).unwrap();
        names.insert(name);
    }
    (dir, names)
}

#[test]
fn every_entry_is_seen_exactly_once() {
    let world = World::new();
    let alice = world.client(ALICE);
    let (dir, names) = crowded(&world);
    for way in WAYS {
        let (mut seen, mut total, mut cookie, mut eof) = (BTreeSet::new(), 0, 0, false);
        while !eof {
            let page = way.page(&alice, &dir, cookie);
            assert!(page.eof || !page.names.is_empty(), "no page without progress");
            cookie = page.names.last().map_or(cookie, |(_, cookie)| *cookie);
            total += page.names.len();
            seen.extend(page.names.into_iter().map(|(name, _)| name));
            eof = page.eof;
        }
        assert_eq!((total, &seen), (names.len(), &names));
        assert!(way.page(&alice, &dir, cookie).names.is_empty());
    }
}

#[test]
fn removals_between_pages_hide_nothing_else() {
    let world = World::new();
    let alice = world.client(ALICE);
    let (dir, mut names) = crowded(&world);
    for way in [Way::Readdir { count: 1024 }, Way::Plus { dir_count: 4096, max_count: 8192 }] {
        let mut removed = BTreeSet::new();
        let (mut seen, mut cookie, mut eof, mut pages) = (Vec::new(), 0, false, 0usize);
        while !eof && pages < 60 {
            let page = way.page(&alice, &dir, cookie);
            cookie = page.names.last().map_or(cookie, |(_, cookie)| *cookie);
            // The entries just listed, the last first, as `rm -r` removes them; and one still to
            // come.
            let doomed = page.names.iter().rev().take(3).map(|(name, _)| name.clone());
            let ahead = names.iter().nth(pages * 97 % names.len()).cloned();
            for name in doomed.chain(ahead).filter(|name| name[0] != b'.') {
                let text = String::from_utf8(name.clone()).unwrap();
                if alice.call(&RemoveArgs { object: at(&dir, &text) }).status.is_ok() {
                    names.remove(&name);
                    removed.insert(name);
                }
            }
            seen.extend(page.names.into_iter().map(|(name, _)| name));
            eof = page.eof;
            pages += 1;
        }
        while !eof {
            let page = way.page(&alice, &dir, cookie);
            cookie = page.names.last().map_or(cookie, |(_, cookie)| *cookie);
            seen.extend(page.names.into_iter().map(|(name, _)| name));
            eof = page.eof;
        }
        let distinct: BTreeSet<_> = seen.iter().cloned().collect();
        assert_eq!(distinct.len(), seen.len(), "nothing twice");
        assert!(removed.len() > 100);
        let missing: Vec<_> = names.difference(&distinct).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(distinct.iter().all(|name| names.contains(name) || removed.contains(name)));
    }
}

#[test]
fn a_page_holds_as_many_entries_as_fit_to_the_byte() {
    let world = World::new();
    let alice = world.client(ALICE);
    let dir = alice.mkdir(&world.root(), "d", 0o755);
    alice.create(&dir, "four", 0o644);
    // The flag, file id, name with its length, cookie; and for READDIRPLUS attributes and handle.
    let entry = 4 + 8 + (4 + 4) + 8;
    for (count, entries) in [(FRAME + entry, 1), (FRAME + 3 * entry - 1, 2), (FRAME + 3 * entry, 3)]
    {
        let page = Way::Readdir { count }.page(&alice, &dir, 0);
        assert_eq!((page.names.len(), page.eof), (entries, entries == 3), "{count}");
    }
    let handle = 4 + 4 + u32::try_from(dir.len().next_multiple_of(4)).unwrap();
    let plus = entry + 88 + handle;
    for (max_count, entries) in
        [(FRAME + plus, 1), (FRAME + 3 * plus - 1, 2), (FRAME + 3 * plus, 3)]
    {
        let way = Way::Plus { dir_count: 1 << 16, max_count };
        let page = way.page(&alice, &dir, 0);
        assert_eq!((page.names.len(), page.eof), (entries, entries == 3), "{max_count}");
    }
    // File id, name with its length, cookie count against `dircount`; the first always goes.
    for (dir_count, entries) in [(0, 1), (47, 1), (48, 2), (71, 2), (72, 3)] {
        let page = Way::Plus { dir_count, max_count: 1 << 16 }.page(&alice, &dir, 0);
        assert_eq!(page.names.len(), entries, "{dir_count}");
    }
}

#[test]
fn a_page_too_small_for_one_entry_is_refused() {
    let world = World::new();
    let alice = world.client(ALICE);
    let dir = alice.mkdir(&world.root(), "d", 0o755);
    let attr = Some(alice.attr(&dir));
    for count in [0, FRAME - 1, FRAME, FRAME + 27] {
        let answer = alice.call(&readdir(&dir, 0, count));
        assert_eq!(failed(answer.results()), (Status::TOOSMALL, attr), "{count}");
        let answer = alice.call(&readdirplus(&dir, 0, 1 << 16, count));
        assert_eq!(failed(answer.results()), (Status::TOOSMALL, attr), "{count}");
    }
    let last = Way::Readdir { count: 4096 }.page(&alice, &dir, 0).names[1].1;
    let end = Way::Readdir { count: FRAME }.page(&alice, &dir, last);
    assert!(end.eof && end.names.is_empty());
}

#[test]
fn no_page_is_larger_than_the_size_preferred() {
    let world = World::new();
    let alice = world.client(ALICE);
    let (dir, _) = crowded(&world);
    let answer = alice.call(&readdir(&dir, 0, u32::MAX));
    assert!((60 << 10..=64 << 10).contains(&answer.results_bytes()));
    let answer = alice.call(&readdirplus(&dir, 0, u32::MAX, u32::MAX));
    assert!((60 << 10..=64 << 10).contains(&answer.results_bytes()));
}

#[test]
fn listing_asks_for_the_right_to() {
    let world = World::new();
    let (alice, bob) = (world.client(ALICE), world.client(BOB));
    let root = world.root();
    let closed = alice.mkdir(&root, "closed", 0o711);
    let file = alice.create(&root, "f", 0o644);
    for (client, dir, status) in [(bob, &closed, Status::ACCES), (alice, &file, Status::NOTDIR)] {
        let attr = Some(alice.attr(dir));
        let answer = client.call(&readdir(dir, 0, 4096));
        assert_eq!(failed(answer.results()), (status, attr));
        let answer = client.call(&readdirplus(dir, 0, 4096, 4096));
        assert_eq!(failed(answer.results()), (status, attr));
    }
    alice.fail_after(2, FsError::Io);
    assert_eq!(alice.call(&readdir(&root, 0, 4096)).status, Status::IO);
}

#[test]
fn who_may_list_but_not_search_gets_names_without_handles() {
    let world = World::new();
    let (alice, bob) = (world.client(ALICE), world.client(BOB));
    let dir = alice.mkdir(&world.root(), "d", 0o744);
    alice.create(&dir, "f", 0o644);
    let answer = bob.call(&readdirplus(&dir, 0, 4096, 4096));
    let page = ok(answer.results());
    assert_eq!(page.entries.iter().count(), 3);
    assert!(page.entries.iter().all(|e| e.handle.is_none() && e.attributes.is_none()));
}

#[test]
fn cookies_of_another_verifier_are_bad() {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let foreign = ReaddirArgs { cookie_verifier: [1; 8], ..readdir(&root, 2, 4096) };
    assert_eq!(alice.call(&foreign).status, Status::BAD_COOKIE);
    let start = ReaddirArgs { cookie: 0, ..foreign };
    assert_eq!(alice.call(&start).status, Status::OK, "at the start it means nothing");
    let never_given = alice.call(&readdir(&root, 1 << 40, 4096));
    assert_eq!(never_given.status, Status::BAD_COOKIE);
    let plus = ReaddirplusArgs { cookie_verifier: [1; 8], ..readdirplus(&root, 2, 4096, 4096) };
    assert_eq!(alice.call(&plus).status, Status::BAD_COOKIE);
}

#[test]
fn the_dots_of_the_top_are_the_top() {
    let world = World::new();
    let root = world.root();
    let answer = world.client(ALICE).call(&readdirplus(&root, 0, 4096, 4096));
    let page = ok(answer.results());
    let names: Vec<_> = page.entries.iter().map(|entry| entry.name.to_vec()).collect();
    assert_eq!(names, [b".".to_vec(), b"..".to_vec()]);
    let top: BTreeSet<_> = page.entries.iter().map(|entry| entry.handle.unwrap().0).collect();
    assert_eq!(top, BTreeSet::from([&root[..]]), "the top is its own parent");
}
