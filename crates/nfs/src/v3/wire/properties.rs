//! Properties of every wire type over random values: what is written is read back the same, to
//! the last byte.

use super::samples::encoded;
use super::*;
use crate::xdr::{Decode, List, Reader, Writer, decode};
use alloc::vec::Vec;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Writes `$value`, reads it back and compares.
macro_rules! survives {
    ($value:expr) => {{
        let value = $value;
        let bytes = encoded(&value);
        let mut input = Reader::new(&bytes);
        let mut read = Ok(value);
        assert!(read.is_ok());
        read = Decode::decode(&mut input);
        prop_assert_eq!(read, Ok(value));
        prop_assert_eq!(input.finish(), Ok(()));
    }};
}

prop_compose! {
    fn time()(seconds: u32, nseconds: u32) -> NfsTime3 {
        NfsTime3 { seconds, nseconds }
    }
}

prop_compose! {
    fn fattr()(
        (file_type, mode, nlink, uid, gid) in any::<(u32, u32, u32, u32, u32)>(),
        (size, used, fsid, fileid) in any::<(u64, u64, u64, u64)>(),
        (specdata1, specdata2) in any::<(u32, u32)>(),
        (atime, mtime, ctime) in (time(), time(), time()),
    ) -> Fattr3 {
        let rdev = SpecData3 { specdata1, specdata2 };
        let file_type = FileType(file_type);
        Fattr3 {
            file_type, mode, nlink, uid, gid, size, used, rdev, fsid, fileid, atime, mtime, ctime,
        }
    }
}

prop_compose! {
    fn wcc()(
        before in option::of((any::<u64>(), time(), time())),
        after in option::of(fattr()),
    ) -> WccData {
        let before = before.map(|(size, mtime, ctime)| WccAttr { size, mtime, ctime });
        WccData { before, after }
    }
}

fn set_time() -> impl Strategy<Value = SetTime3> {
    prop_oneof![
        Just(SetTime3::DontChange),
        Just(SetTime3::ToServerTime),
        time().prop_map(SetTime3::ToClientTime),
    ]
}

prop_compose! {
    fn sattr()(
        (mode, uid, gid, size) in any::<(Option<u32>, Option<u32>, Option<u32>, Option<u64>)>(),
        atime in set_time(),
        mtime in set_time(),
    ) -> Sattr3 {
        Sattr3 { mode, uid, gid, size, atime, mtime }
    }
}

fn how() -> impl Strategy<Value = CreateHow3> {
    prop_oneof![
        sattr().prop_map(CreateHow3::Unchecked),
        sattr().prop_map(CreateHow3::Guarded),
        any::<[u8; 8]>().prop_map(CreateHow3::Exclusive),
    ]
}

prop_compose! {
    fn device()(attributes in sattr(), specdata1: u32, specdata2: u32) -> DeviceData3 {
        DeviceData3 { attributes, spec: SpecData3 { specdata1, specdata2 } }
    }
}

fn node() -> impl Strategy<Value = MknodData3> {
    prop_oneof![
        device().prop_map(MknodData3::CharDevice),
        device().prop_map(MknodData3::BlockDevice),
        sattr().prop_map(MknodData3::Socket),
        sattr().prop_map(MknodData3::Fifo),
        Just(MknodData3::Other(FileType::REG)),
    ]
}

fn stable() -> impl Strategy<Value = StableHow> {
    prop_oneof![Just(StableHow::Unstable), Just(StableHow::DataSync), Just(StableHow::FileSync)]
}

fn failure() -> impl Strategy<Value = Status> {
    (1..=u32::MAX).prop_map(Status)
}

fn handle() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=64)
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=300)
}

proptest! {
    #[test]
    fn arguments(
        (fh, fh_b) in (handle(), handle()),
        (name, name_b) in (name(), name()),
        (attributes, guard) in (sattr(), option::of(time())),
        (how, what, stable) in (how(), node(), stable()),
        (long, verifier) in any::<(u64, [u8; 8])>(),
        (a, b) in any::<(u32, u32)>(),
    ) {
        let (object, other) = (FileHandle3(&fh), FileHandle3(&fh_b));
        let (location, to) = (
            DirOpArgs3 { dir: object, name: &name },
            DirOpArgs3 { dir: other, name: &name_b },
        );
        survives!(GetattrArgs { object });
        survives!(SetattrArgs { object, new_attributes: attributes, guard });
        survives!(LookupArgs { what: location });
        survives!(AccessArgs { object, access: AccessBits::from_bits_retain(a) });
        survives!(ReadlinkArgs { symlink: object });
        survives!(ReadArgs { file: object, offset: long, count: a });
        survives!(WriteArgs { file: object, offset: long, count: a, stable, data: &name });
        survives!(WriteHead { file: object, offset: long, count: a, stable, data_len: b });
        survives!(CreateArgs { location, how });
        survives!(MkdirArgs { location, attributes });
        survives!(SymlinkArgs { location, attributes, data: &name_b });
        survives!(MknodArgs { location, what });
        survives!(RemoveArgs { object: location });
        survives!(RmdirArgs { object: location });
        survives!(RenameArgs { from: location, to });
        survives!(LinkArgs { file: object, link: to });
        let (dir, cookie, cookie_verifier) = (object, long, verifier);
        survives!(ReaddirArgs { dir, cookie, cookie_verifier, count: a });
        survives!(ReaddirplusArgs { dir, cookie, cookie_verifier, dir_count: a, max_count: b });
        survives!(FsStatArgs { root: object });
        survives!(FsInfoArgs { root: object });
        survives!(PathconfArgs { object });
        survives!(CommitArgs { file: object, offset: long, count: a });
    }

    #[test]
    fn results_about_one_object(
        (fh, data) in (handle(), name()),
        (fattr, attributes) in (fattr(), option::of(fattr())),
        (wcc, wcc_b) in (wcc(), wcc()),
        (status, committed) in (failure(), stable()),
        verifier: [u8; 8],
        (count, eof) in any::<(u32, bool)>(),
    ) {
        let object = FileHandle3(&fh);
        let new = NewObject { object: Some(object), attributes, dir_wcc: wcc };
        survives!(GetattrRes::Ok(GetattrOk { attributes: fattr }));
        survives!(GetattrRes::Fail(status, ()));
        survives!(SetattrRes::Ok(wcc));
        survives!(SetattrRes::Fail(status, wcc));
        survives!(LookupRes::Ok(LookupOk { object, attributes, dir_attributes: Some(fattr) }));
        survives!(LookupRes::Fail(status, attributes));
        let access = AccessBits::from_bits_retain(count);
        survives!(AccessRes::Ok(AccessOk { attributes, access }));
        survives!(ReadlinkRes::Ok(ReadlinkOk { attributes, data: &data }));
        survives!(ReadRes::Ok(ReadOk { attributes, count, eof, data: &data }));
        survives!(WriteRes::Ok(WriteOk { file_wcc: wcc, count, committed, verifier }));
        survives!(CreateRes::Ok(new));
        survives!(MkdirRes::Ok(NewObject { object: None, ..new }));
        survives!(SymlinkRes::Fail(status, wcc));
        survives!(MknodRes::Fail(status, wcc));
        survives!(RemoveRes::Ok(wcc));
        survives!(RmdirRes::Fail(status, wcc));
        survives!(RenameRes::Ok(RenameWcc { from_dir_wcc: wcc, to_dir_wcc: wcc_b }));
        let link = LinkAttributes { file_attributes: attributes, link_dir_wcc: wcc };
        survives!(LinkRes::Fail(status, link));
        survives!(CommitRes::Ok(CommitOk { file_wcc: wcc, verifier }));
    }

    #[test]
    fn results_about_a_file_system(
        attributes in option::of(fattr()),
        time_delta in time(),
        words: [u32; 8],
        longs: [u64; 6],
        flags: [bool; 4],
    ) {
        let [rtmax, rtpref, rtmult, wtmax, wtpref, wtmult, dtpref, bits] = words;
        let [total_bytes, free_bytes, available_bytes, total_files, free_files, available_files] =
            longs;
        let [no_trunc, chown_restricted, case_insensitive, case_preserving] = flags;
        survives!(FsStatRes::Ok(FsStatOk {
            attributes, total_bytes, free_bytes, available_bytes, total_files, free_files,
            available_files, invarsec: bits,
        }));
        let properties = FsProperties::from_bits_retain(bits);
        survives!(FsInfoRes::Ok(FsInfoOk {
            attributes, rtmax, rtpref, rtmult, wtmax, wtpref, wtmult, dtpref,
            maxfilesize: total_bytes, time_delta, properties,
        }));
        survives!(PathconfRes::Ok(PathconfOk {
            attributes, linkmax: rtmax, name_max: wtmax, no_trunc, chown_restricted,
            case_insensitive, case_preserving,
        }));
    }

    #[test]
    fn directory_lists(
        entries in vec((any::<u64>(), name(), any::<u64>(), option::of(fattr()), handle()), 0..5),
        dir_attributes in option::of(fattr()),
        cookie_verifier: [u8; 8],
        eof: bool,
    ) {
        let (mut plain, mut plus) = (Writer::default(), Writer::default());
        let mut list = ListWriter::begin(&mut plain, dir_attributes, cookie_verifier, 1 << 20);
        let mut list_plus = ListWriter::begin(&mut plus, dir_attributes, cookie_verifier, 1 << 20);
        for (fileid, name, cookie, attributes, fh) in &entries {
            let (fileid, cookie, attributes) = (*fileid, *cookie, *attributes);
            let handle = Some(FileHandle3(fh));
            let entry = Entry3 { fileid, name, cookie };
            prop_assert!(list.push(&entry));
            let entry = EntryPlus3 { fileid, name, cookie, attributes, handle };
            prop_assert!(list_plus.push(&entry));
        }
        list.finish(eof);
        list_plus.finish(eof);
        let res: ReaddirRes<'_> = decode(plain.as_bytes()).unwrap();
        survives!(res);
        let res: ReaddirplusRes<'_> = decode(plus.as_bytes()).unwrap();
        survives!(res);
        let Res::Ok(ok) = res else { panic!("not a success") };
        prop_assert_eq!((ok.dir_attributes, ok.eof), (dir_attributes, eof));
        prop_assert!(ok.entries.iter().map(|entry| entry.name).eq(entries.iter().map(|e| &e.1[..])));
    }

    #[test]
    fn lists_without_an_end_are_refused(count in 0usize..40, tail in 0usize..4) {
        let mut bytes = Vec::new();
        for _ in 0..count {
            bytes.extend(encoded(&Some(Entry3 { fileid: 1, name: b"n", cookie: 2 })));
        }
        bytes.resize(bytes.len() + tail, 0);
        prop_assert!(decode::<List<'_, Entry3<'_>>>(&bytes).is_err());
    }
}
