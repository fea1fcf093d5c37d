use super::*;
use crate::fscc::FileClass;
use crate::fscc::client::decode_file;
use crate::ops::testing::{Reply, TestHost, TestServer, utf16, wire_path};
use crate::security::{Ace, Dacl, Descriptor, Sid};
use crate::wire::{
    AccessMask, Command, CreateOptions, FileAttributes, FileId, Payload, QueryInfoFlags,
    SecurityInformation as Parts, output,
};
use proptest::prelude::*;
use std::rc::Rc;
use std::vec::Vec;
use weir_core::testing::block_on;
use weir_core::{Acl, AclKind, Credentials, Store};

fn ask(
    host: &TestHost,
    file: FileId,
    (info_type, class): (InfoType, u8),
    security: Parts,
    max_output: u32,
) -> Reply {
    let request = QueryInfoRequest {
        info_type,
        class,
        max_output,
        input: Payload { bytes: &[], at: 0 },
        security,
        flags: QueryInfoFlags::empty(),
        file,
    };
    let encode = |out: &mut Vec<u8>| request.encode(out);
    host.call(Command::QueryInfo, encode, async |cx, out| query_info(cx, out).await)
}

fn bytes(reply: &Reply) -> Vec<u8> {
    output(reply.ok()).unwrap().to_vec()
}

fn of_file(host: &TestHost, file: FileId, class: u8, max: u32) -> Reply {
    ask(host, file, (InfoType::FILE, class), Parts::empty(), max)
}

fn of_volume(host: &TestHost, file: FileId, class: u8, max: u32) -> Reply {
    ask(host, file, (InfoType::FILESYSTEM, class), Parts::empty(), max)
}

fn security(host: &TestHost, file: FileId, parts: Parts, max: u32) -> Reply {
    ask(host, file, (InfoType::SECURITY, 0), parts, max)
}

const CLASSES: [u8; 15] = [4, 5, 6, 7, 8, 14, 16, 17, 18, 22, 28, 34, 35, 48, 59];

fn tree() -> (Rc<TestServer>, TestHost) {
    let server = TestServer::new();
    server.dir("dir", 0o755, 7);
    server.file("dir/Größe", &[1; 10], 0o644, 7);
    let ann = server.session(7);
    (server, ann)
}

#[test]
fn a_file_shows_its_values_and_its_open_s() {
    let (server, ann) = tree();
    let access = AccessMask::READ_ATTRIBUTES | AccessMask::DELETE;
    let file = ann.open("dir/Größe", access);
    ann.with(&ann.opened(file), |state| state.position = 77);
    ann.opened(file).mode.set(CreateOptions::WRITE_THROUGH);
    let all = bytes(&of_file(&ann, file, 18, 1000));
    let (info, open) = decode_file(FileClass::All, &all).unwrap().unwrap();
    let (_, attr) = server.object("dir/Größe");
    assert_eq!((info.size, info.allocated, info.index), (10, 4096, attr.fileid));
    assert_eq!((info.attributes, info.links), (FileAttributes::ARCHIVE, 1));
    assert_eq!((open.access, open.position, open.mode), (access, 77, 2));
    assert_eq!(open.name, wire_path("dir/Größe"));
    let name = bytes(&of_file(&ann, file, 48, 1000));
    assert_eq!(name[4..], wire_path("dir/Größe"));
    let stream = bytes(&of_file(&ann, file, 22, 1000));
    assert_eq!(
        (&stream[8..16], &stream[24..]),
        (&[10, 0, 0, 0, 0, 0, 0, 0][..], &utf16("::$DATA")[..])
    );
    block_on(ann.set_delete_pending(ann.opened(file).shared, true)).unwrap();
    let standard = bytes(&of_file(&ann, file, 5, 1000));
    let (info, _) = decode_file(FileClass::Standard, &standard).unwrap().unwrap();
    assert!(info.delete_pending && info.links == 0);
}

#[test]
fn a_directory_has_no_stream_and_the_root_no_name() {
    let (_server, ann) = tree();
    let root = ann.open("", AccessMask::READ_ATTRIBUTES);
    assert_eq!(bytes(&of_file(&ann, root, 22, 1000)), b"");
    assert_eq!(bytes(&of_file(&ann, root, 48, 1000)), [0; 4]);
    let all = bytes(&of_file(&ann, root, 18, 1000));
    let (info, open) = decode_file(FileClass::All, &all).unwrap().unwrap();
    assert_eq!((info.attributes, open.name), (FileAttributes::DIRECTORY, &[][..]));
}

#[test]
fn some_classes_need_access() {
    let (_server, ann) = tree();
    let bare = ann.open("dir/Größe", AccessMask::SYNCHRONIZE);
    for class in CLASSES {
        let wanted = match class {
            4 | 18 | 34 | 35 => Status::ACCESS_DENIED,
            _ => Status::SUCCESS,
        };
        assert_eq!(of_file(&ann, bare, class, 1000).status(), wanted, "class {class}");
    }
    assert_eq!(of_file(&ann, bare, 15, 1000).status(), Status::ACCESS_DENIED);
    let eas = ann.open("dir/Größe", AccessMask::READ_EA);
    assert_eq!(of_file(&ann, eas, 15, 1000).status(), Status::NO_EAS_ON_FILE);
    assert_eq!(of_file(&ann, bare, 21, 1000).status(), Status::OBJECT_NAME_NOT_FOUND);
    let short = ann.open("dir", AccessMask::SYNCHRONIZE);
    assert_eq!(of_file(&ann, short, 21, 3).status(), Status::INFO_LENGTH_MISMATCH);
    assert_eq!(of_file(&ann, short, 21, 8).status(), Status::BUFFER_OVERFLOW);
    assert_eq!(of_file(&ann, short, 21, 10).status(), Status::SUCCESS);
    for class in [0, 1, 10, 200] {
        assert_eq!(of_file(&ann, bare, class, 1000).status(), Status::INVALID_INFO_CLASS);
    }
}

#[test]
fn too_small_a_buffer_is_refused_or_gets_the_beginning() {
    let (_server, ann) = tree();
    let file = ann.open("dir/Größe", AccessMask::READ_ATTRIBUTES);
    let check = |least: u32, get: &dyn Fn(u32) -> Reply| {
        let whole = bytes(&get(1000));
        let length = u32::try_from(whole.len()).unwrap();
        for max in 0..=length {
            let reply = get(max);
            let wanted = match max {
                _ if max < least => Status::INFO_LENGTH_MISMATCH,
                _ if max < length => Status::BUFFER_OVERFLOW,
                _ => Status::SUCCESS,
            };
            assert_eq!(reply.status(), wanted, "{max} of {}", whole.len());
            if max >= least {
                assert_eq!(bytes(&reply), whole[..max as usize]);
            }
        }
    };
    for (class, least) in
        CLASSES.into_iter().zip([40, 24, 8, 4, 4, 8, 4, 4, 104, 32, 16, 56, 8, 8, 24])
    {
        check(least, &|max| of_file(&ann, file, class, max));
    }
    for (class, least) in [(1, 24), (3, 24), (4, 8), (5, 16), (6, 48), (7, 32), (8, 64), (11, 28)] {
        check(least, &|max| of_volume(&ann, file, class, max));
    }
    ann.response_max.set(8 + 110);
    assert_eq!(of_file(&ann, file, 18, 1000).status(), Status::BUFFER_OVERFLOW);
    assert_eq!(of_file(&ann, file, 18, IO_BYTES_MAX + 1).status(), Status::INVALID_PARAMETER);
}

#[test]
fn the_volume_is_the_quota_under_the_share_s_name() {
    let (server, ann) = tree();
    let file = ann.open("dir", AccessMask::empty());
    let volume = bytes(&of_volume(&ann, file, 1, 1000));
    assert_eq!((&volume[8..12], &volume[18..]), (&[1, 0, 0, 0][..], &utf16("vol")[..]));
    let stat = block_on(server.store.fs_stat()).unwrap();
    let size = bytes(&of_volume(&ann, file, 7, 1000));
    let number = |at: usize| u64::from_le_bytes(size[at..at + 8].try_into().unwrap());
    assert_eq!(number(0), stat.total_bytes / 4096);
    assert_eq!((number(8), number(16)), (stat.available_bytes / 4096, stat.free_bytes / 4096));
    let attributes = bytes(&of_volume(&ann, file, 5, 1000));
    assert_eq!(
        (&attributes[..8], &attributes[12..]),
        (&[0xCE, 0, 0x40, 0, 255, 0, 0, 0][..], &utf16("NTFS")[..])
    );
    assert_eq!(of_volume(&ann, file, 2, 1000).status(), Status::INVALID_INFO_CLASS);
}

#[test]
fn the_descriptor_is_shown_by_parts() {
    let (server, ann) = tree();
    let dir = server.object("dir").0;
    let default = Acl::from_mode(0o750);
    let root = Credentials::ROOT;
    block_on(server.store.set_acl(&dir, AclKind::Default, Some(&default), &root)).unwrap();
    let file = ann.open("dir", AccessMask::READ_CONTROL);
    let get = |parts| Descriptor::decode(&bytes(&security(&ann, file, parts, 4096))).unwrap();
    let domain = Sid::domain([1, 2, 3]);
    let whole = get(Parts::OWNER | Parts::GROUP | Parts::DACL);
    assert_eq!((whole.owner, whole.group), (domain.member(1007), domain.member(2007)));
    let Dacl::List(entries) = &whole.dacl else { panic!("a list") };
    let sids: Vec<_> = entries.iter().map(|Ace { sid, .. }| *sid).collect();
    assert!(sids.contains(&Sid::EVERYONE) && sids.contains(&Sid::CREATOR_OWNER));
    let owner = get(Parts::OWNER);
    assert_eq!(owner, Descriptor { owner: whole.owner, ..Descriptor::default() });
    assert_eq!(get(Parts::LABEL), Descriptor::default());
}

#[test]
fn a_descriptor_needs_access_and_room() {
    let (_server, ann) = tree();
    let most = AccessMask::READ_ATTRIBUTES | AccessMask::READ_DATA;
    let blind = ann.open("dir", most);
    assert_eq!(security(&ann, blind, Parts::OWNER, 4096).status(), Status::ACCESS_DENIED);
    let file = ann.open("dir", AccessMask::READ_CONTROL);
    for parts in [Parts::SACL, Parts::SACL | Parts::OWNER, Parts::BACKUP] {
        assert_eq!(security(&ann, file, parts, 4096).status(), Status::ACCESS_DENIED);
    }
    let parts = Parts::OWNER | Parts::DACL;
    let needed = bytes(&security(&ann, file, parts, 4096)).len();
    let needed = u32::try_from(needed).unwrap();
    assert_eq!(security(&ann, file, parts, needed).status(), Status::SUCCESS);
    for max in [0, 1, needed - 1] {
        let data = needed.to_le_bytes().to_vec();
        let wanted = Failure { data, ..Status::BUFFER_TOO_SMALL.into() };
        assert_eq!(security(&ann, file, parts, max).outcome, Err(wanted));
    }
}

#[test]
fn other_kinds_of_information_do_not_exist() {
    let (_server, ann) = tree();
    let file = ann.open("dir", AccessMask::READ_ATTRIBUTES);
    let status = |kind| ask(&ann, file, (kind, 4), Parts::empty(), 100).status();
    assert_eq!(status(InfoType::QUOTA), Status::NOT_SUPPORTED);
    assert_eq!(status(InfoType(9)), Status::INVALID_PARAMETER);
    let gone = FileId { persistent: 9, volatile: 9 };
    assert_eq!(of_file(&ann, gone, 4, 100).status(), Status::FILE_CLOSED);
    let short =
        ann.call(Command::QueryInfo, |out| out.push(41), async |cx, out| query_info(cx, out).await);
    assert_eq!(short.status(), Status::INVALID_PARAMETER);
}

proptest! {
    #[test]
    fn no_query_panics_or_answers_more_than_asked_for(
        class: u8, kind in 0_u8..5, parts: u32, max in 0_u32..300, dir: bool,
    ) {
        let (_server, ann) = tree();
        let file = ann.open(if dir { "dir" } else { "dir/Größe" }, AccessMask::all());
        let parts = Parts::from_bits_retain(parts);
        let reply = ask(&ann, file, (InfoType(kind), class), parts, max);
        if reply.outcome.is_ok() {
            prop_assert!(bytes(&reply).len() <= max as usize);
        }
    }
}
