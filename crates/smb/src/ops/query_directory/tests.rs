use super::*;
use crate::fscc::FileInfo;
use crate::fscc::client::DirectoryEntries;
use crate::ops::testing::{Reply, Running, TestHost, TestServer, utf16};
use crate::wire::{Command, FileAttributes, FileId};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::string::{String, ToString};
use weir_core::testing::block_on;
use weir_core::{Acl, AclKind, Credentials};

const LIST: AccessMask = AccessMask::LIST_DIRECTORY;
const NONE: QueryDirectoryFlags = QueryDirectoryFlags::empty();
const SINGLE: QueryDirectoryFlags = QueryDirectoryFlags::RETURN_SINGLE_ENTRY;
const RESTART: QueryDirectoryFlags = QueryDirectoryFlags::RESTART_SCANS;
const REOPEN: QueryDirectoryFlags = QueryDirectoryFlags::REOPEN;

struct Dir {
    host: TestHost,
    id: FileId,
    class: u8,
    max: u32,
}

impl Dir {
    fn of(host: &TestHost, path: &str) -> Self {
        Self { host: host.clone(), id: host.open(path, LIST), class: 37, max: 1 << 16 }
    }

    fn start(&self, pattern: &str, flags: QueryDirectoryFlags) -> Running {
        let pattern = utf16(pattern);
        let request = QueryDirectoryRequest {
            class: self.class,
            flags,
            file_index: 0,
            file: self.id,
            pattern: &pattern,
            max_output: self.max,
        };
        let encode = |out: &mut Vec<u8>| request.encode(out);
        let operation =
            async |cx: &Context<'_, _>, out: &mut Vec<u8>| query_directory(cx, out).await;
        self.host.start(Command::QueryDirectory, encode, operation)
    }

    fn reply(&self, pattern: &str, flags: QueryDirectoryFlags) -> Reply {
        let mut running = self.start(pattern, flags);
        loop {
            if let Some(reply) = running.poll() {
                return reply;
            }
        }
    }

    fn ask(&self, pattern: &str, flags: QueryDirectoryFlags) -> Result<Vec<String>, Status> {
        let reply = self.reply(pattern, flags);
        match &reply.outcome {
            Ok(_) => Ok(entries(&reply, self.class).into_iter().map(|(name, _)| name).collect()),
            Err(failure) => Err(failure.status),
        }
    }

    /// All names, by as many requests as it takes.
    fn all(&self, pattern: &str, flags: QueryDirectoryFlags) -> Vec<String> {
        let mut names = Vec::new();
        loop {
            match self.ask(pattern, flags) {
                Ok(more) => names.extend(more),
                Err(status) => {
                    assert_eq!(status, Status::NO_MORE_FILES);
                    return names;
                }
            }
        }
    }
}

fn entries(reply: &Reply, class: u8) -> Vec<(String, FileInfo)> {
    let class = DirectoryClass::from_wire(class).unwrap();
    let bytes = crate::wire::output(reply.ok()).unwrap();
    let entry = |entry: Result<crate::fscc::client::DirectoryEntry<'_>, _>| {
        let entry = entry.unwrap();
        let units = entry.name.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
        (String::from_utf16(&units.collect::<Vec<_>>()).unwrap(), entry.file)
    };
    DirectoryEntries::new(class, bytes).map(entry).collect()
}

fn names(names: &[&str]) -> Result<Vec<String>, Status> {
    Ok(names.iter().map(ToString::to_string).collect())
}

fn tree() -> (Rc<TestServer>, TestHost) {
    let server = TestServer::new();
    server.dir("d", 0o755, 7);
    for name in ["a.txt", "B.txt", "b.txt", "c"] {
        server.file(&std::format!("d/{name}"), name.as_bytes(), 0o644, 7);
    }
    let ann = server.session(7);
    (server, ann)
}

#[test]
fn a_long_search_lets_other_requests_go_on() {
    let (server, ann) = tree();
    for number in 0..3000 {
        server.file(&std::format!("d/{number}"), b"", 0o644, 7);
    }
    let mut running = Dir::of(&ann, "d").start("x*", NONE);
    let mut pauses = 0;
    let reply = loop {
        match running.poll() {
            Some(reply) => break reply,
            None => pauses += 1,
        }
    };
    assert_eq!((reply.status(), pauses), (Status::NO_SUCH_FILE, 2), "3004 names in looks of 1024");
}

#[test]
fn a_listing_has_the_directory_its_parent_and_everything_once() {
    let (_server, ann) = tree();
    for class in [1, 2, 3, 12, 37, 38, 60, 78, 79, 80, 81] {
        let dir = Dir { class, ..Dir::of(&ann, "d") };
        let listed = dir.ask("*", NONE).unwrap();
        assert_eq!(listed[..2], [".", ".."], "class {class}");
        let rest: BTreeSet<_> = listed[2..].iter().map(String::as_str).collect();
        assert_eq!(rest, BTreeSet::from(["a.txt", "B.txt", "b.txt", "c"]));
        assert_eq!(listed.len(), 6);
        assert_eq!(dir.ask("*", NONE), Err(Status::NO_MORE_FILES));
        assert_eq!(dir.ask("*", NONE), Err(Status::NO_MORE_FILES));
    }
}

#[test]
fn entries_show_their_objects() {
    let (server, ann) = tree();
    server.symlink("d/link", "c");
    let reply = Dir::of(&ann, "d").reply("", NONE);
    for (name, file) in entries(&reply, 37) {
        let path = std::format!("d/{name}");
        let attr = match &*name {
            "." => server.object("d").1,
            ".." => server.object("").1,
            _ => server.object(&path).1,
        };
        assert_eq!(file.index, attr.fileid, "{name}");
        let (size, attributes) = match &*name {
            "." | ".." => (0, FileAttributes::DIRECTORY),
            "link" => (0, FileAttributes::REPARSE_POINT),
            _ => (name.len() as u64, FileAttributes::ARCHIVE),
        };
        assert_eq!((file.size, file.attributes), (size, attributes), "{name}");
    }
}

#[test]
fn the_first_pattern_stays_until_the_listing_begins_anew() {
    let (_server, ann) = tree();
    let dir = Dir::of(&ann, "d");
    assert_eq!(dir.ask("*.txt", SINGLE).unwrap().len(), 1);
    let more = dir.ask("c", NONE).unwrap();
    assert_eq!(more.len(), 2, "{more:?}");
    assert_eq!(dir.ask("c", NONE), Err(Status::NO_MORE_FILES));
    assert_eq!(dir.ask("", RESTART).unwrap().len(), 3, "the same pattern again");
    assert_eq!(dir.ask("c", RESTART), names(&["c"]));
    assert_eq!(dir.ask("none", RESTART), Err(Status::NO_MORE_FILES), "not the first time");
    assert_eq!(dir.ask("none", REOPEN), Err(Status::NO_SUCH_FILE));
    assert_eq!(dir.ask("", REOPEN).unwrap().len(), 6);
    let fresh = Dir::of(&ann, "d");
    assert_eq!(fresh.ask("x*", NONE), Err(Status::NO_SUCH_FILE));
    assert_eq!(fresh.ask("x*", NONE), Err(Status::NO_MORE_FILES));
}

#[test]
fn a_pattern_without_wildcards_is_a_name_exactly_or_folded() {
    let (_server, ann) = tree();
    let ask = |pattern: &str| Dir::of(&ann, "d").ask(pattern, NONE);
    assert_eq!(ask("b.txt"), names(&["b.txt"]));
    assert_eq!(ask("B.txt"), names(&["B.txt"]));
    assert_eq!(ask("A.TXT"), names(&["a.txt"]));
    assert_eq!(ask("."), names(&["."]));
    assert_eq!(ask(".."), names(&[".."]));
    assert_eq!(ask("none"), Err(Status::NO_SUCH_FILE));
    assert_eq!(ask(&"x".repeat(255)), Err(Status::NO_SUCH_FILE));
    let both = Dir::of(&ann, "d").ask("B?txt", NONE).unwrap();
    assert_eq!(both.len(), 2, "names that differ in case are all listed");
}

#[test]
fn names_that_windows_forbids_are_listed_in_their_mapping() {
    let server = TestServer::new();
    server.dir("d", 0o755, 7);
    server.file("d/a:b", b"", 0o644, 7);
    server.file("d/end ", b"", 0o644, 7);
    let ann = server.session(7);
    let listed: BTreeSet<_> = Dir::of(&ann, "d").all("*", NONE).into_iter().collect();
    let wanted = [".", "..", "a\u{F022}b", "end\u{F028}"].map(String::from);
    assert_eq!(listed, BTreeSet::from(wanted));
    assert_eq!(Dir::of(&ann, "d").ask("A\u{F022}B", NONE), names(&["a\u{F022}b"]));
}

#[test]
fn the_client_s_buffer_the_response_and_the_server_bound_a_page() {
    let (_server, ann) = tree();
    let all = Dir::of(&ann, "d").all("*", NONE);
    for flags in [NONE, SINGLE] {
        let dir = Dir { max: 250, ..Dir::of(&ann, "d") };
        assert_eq!(dir.all("*", flags), all, "in pages");
    }
    ann.response_max.set(8 + 250);
    let dir = Dir::of(&ann, "d");
    assert_eq!(dir.ask("*", NONE).unwrap().len(), 2);
    assert_eq!(dir.all("*", NONE), all[2..]);
    let dir = Dir { max: IO_BYTES_MAX + 1, ..Dir::of(&ann, "d") };
    assert_eq!(dir.ask("*", NONE), Err(Status::INVALID_PARAMETER));
}

#[test]
fn a_buffer_for_less_than_an_entry_is_of_no_length() {
    let (_server, ann) = tree();
    let short = Dir { max: 103, ..Dir::of(&ann, "d") };
    assert_eq!(short.ask("*", NONE), Err(Status::INFO_LENGTH_MISMATCH));
    let tight = Dir { max: 104 + 2, ..Dir::of(&ann, "d") };
    assert_eq!(tight.ask("*", NONE), names(&["."]));
    assert_eq!(tight.ask("*", NONE), Err(Status::INFO_LENGTH_MISMATCH), "of `..`");
    let wide = Dir { max: 1 << 16, ..tight };
    assert_eq!(wide.ask("*", SINGLE), names(&[".."]), "nothing was lost");
}

#[test]
fn what_cannot_be_listed_is_refused() {
    let (_server, ann) = tree();
    let dir = Dir::of(&ann, "d");
    let ask = |id, class, pattern: &str| {
        Dir { host: ann.clone(), id, class, max: 4096 }.ask(pattern, NONE)
    };
    assert_eq!(ask(dir.id, 4, "*"), Err(Status::INVALID_INFO_CLASS));
    assert_eq!(ask(dir.id, 37, "a\\b"), Err(Status::OBJECT_NAME_INVALID));
    assert_eq!(ask(dir.id, 37, &"*".repeat(256)), Err(Status::OBJECT_NAME_INVALID));
    let file = ann.open("d/c", LIST);
    assert_eq!(ask(file, 37, "*"), Err(Status::INVALID_PARAMETER));
    let blind = ann.open("d", AccessMask::READ_ATTRIBUTES);
    assert_eq!(ask(blind, 37, "*"), Err(Status::ACCESS_DENIED));
    let gone = FileId { persistent: 9, volatile: 9 };
    assert_eq!(ask(gone, 37, "*"), Err(Status::FILE_CLOSED));
    let error = dir.host.call(
        Command::QueryDirectory,
        |out| out.push(33),
        async |cx, out| query_directory(cx, out).await,
    );
    assert_eq!(error.status(), Status::INVALID_PARAMETER);
}

#[test]
fn a_user_who_may_not_search_sees_names_alone() {
    let (server, _) = tree();
    server.dir("half", 0o744, 7);
    server.file("half/f", b"", 0o644, 7);
    let bob = server.session(8);
    assert_eq!(Dir::of(&bob, "half").all("*", NONE), [".", ".."]);
    let dir = Dir { class: 12, ..Dir::of(&bob, "half") };
    assert_eq!(dir.all("*", NONE), [".", "..", "f"]);
    assert_eq!(Dir::of(&bob, "half").ask("f", NONE), Err(Status::NO_SUCH_FILE));
}

#[test]
fn a_share_may_hide_what_its_user_cannot_open() {
    let (server, _) = tree();
    server.file("d/own", b"", 0o600, 8);
    server.file("d/closed", b"", 0o600, 7);
    let listed = server.file("d/listed", b"", 0o640, 7);
    let acl = Acl::from_mode(0o040).with_mode(0o640);
    block_on(server.store.set_acl(&listed, AclKind::Access, Some(&acl), &Credentials::ROOT))
        .unwrap();
    let bob = server.session_on(8, |share| share.access_based_enumeration = true);
    for class in [37, 12] {
        let dir = Dir { class, ..Dir::of(&bob, "d") };
        let seen: BTreeSet<_> = dir.all("*", NONE).into_iter().collect();
        let wanted = [".", "..", "B.txt", "a.txt", "b.txt", "c", "own"].map(String::from);
        assert_eq!(seen, BTreeSet::from(wanted), "class {class}");
    }
    assert_eq!(Dir::of(&bob, "d").ask("closed", NONE), Err(Status::NO_SUCH_FILE));
    assert_eq!(Dir::of(&bob, "d").ask("o*", NONE), names(&["own"]));
    let all = server.session(8);
    assert!(Dir::of(&all, "d").all("*", NONE).contains(&"closed".to_string()));
}

#[test]
fn requests_on_one_listing_wait_for_each_other() {
    let (_server, ann) = tree();
    let dir = Dir { max: 250, ..Dir::of(&ann, "d") };
    let open = ann.opened(dir.id);
    let held = block_on(Turn::wait(&ann, &open));
    let (mut second, mut third) = (dir.start("*", NONE), dir.start("*", NONE));
    assert!(second.poll().is_none() && third.poll().is_none());
    drop(second);
    drop(held);
    let got = entries(&third.poll().unwrap(), 37);
    assert_eq!(got.len(), 2, "the first two, as the dropped request took nothing");
    assert_eq!(dir.all("*", NONE).len(), 4);
}

#[test]
fn a_directory_that_was_removed_is_told() {
    let server = TestServer::new();
    server.dir("d", 0o755, 7);
    let ann = server.session(7);
    let dir = Dir::of(&ann, "d");
    let name = Name::new(b"d").unwrap();
    block_on(server.store.remove_dir(&server.store.root(), name, &Credentials::ROOT)).unwrap();
    assert_eq!(dir.ask("*", NONE), Err(Status::FILE_DELETED));
}

#[test]
fn a_directory_larger_than_a_look_at_it_is_searched_to_its_end() {
    let server = TestServer::new();
    server.dir("d", 0o755, 7);
    for number in 0..3000 {
        server.file(&std::format!("d/f{number}"), b"", 0o644, 7);
    }
    let ann = server.session(7);
    assert_eq!(Dir::of(&ann, "d").ask("*zz", NONE), Err(Status::NO_SUCH_FILE));
    assert_eq!(Dir::of(&ann, "d").all("*", NONE).len(), 3002);
    assert_eq!(Dir { max: IO_BYTES_MAX, ..Dir::of(&ann, "d") }.all("f2??", NONE).len(), 100);
}

proptest! {
    #[test]
    fn pages_of_every_size_give_the_same_names(
        files in proptest::collection::btree_set("[a-z]{1,20}", 0..30),
        max in 150_u32..2000, class in prop_oneof![Just(1_u8), Just(12), Just(37), Just(60)],
        single: bool,
    ) {
        let server = TestServer::new();
        server.dir("d", 0o755, 7);
        for file in &files {
            server.file(&std::format!("d/{file}"), b"", 0o644, 7);
        }
        let ann = server.session(7);
        let dir = Dir { max, class, ..Dir::of(&ann, "d") };
        let listed = dir.all("*", if single { SINGLE } else { NONE });
        prop_assert_eq!(listed.len(), files.len() + 2);
        let rest: BTreeSet<_> = listed.into_iter().skip(2).collect();
        prop_assert_eq!(rest, files);
    }
}
