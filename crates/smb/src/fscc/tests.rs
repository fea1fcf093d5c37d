//! Tests of the information classes: layouts from the specification, both ways, and hostile bytes.

use super::client::*;
use super::*;
use crate::wire::{AccessMask, FileAttributes};
use proptest::prelude::*;

fn file() -> FileInfo {
    FileInfo {
        created: NtTime(0x0101),
        accessed: NtTime(0x0202),
        written: NtTime(0x0303),
        changed: NtTime(0x0404),
        attributes: FileAttributes::ARCHIVE,
        size: 0x1234,
        allocated: 0x1234,
        links: 3,
        delete_pending: true,
        directory: false,
        index: 0x1122_3344_5566_7788,
        ea_size: 9,
        reparse_tag: 0,
    }
}

const NAME: &[u8] = b"a\0\\\0b\0";

fn open() -> OpenInfo<'static> {
    OpenInfo {
        access: AccessMask::FILE_GENERIC_READ,
        position: 7,
        mode: 2,
        name: NAME,
        volume: 0x99,
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

const TIMES: &str = "0101000000000000 0202000000000000 0303000000000000 0404000000000000";
const SIZES: &str = "0020000000000000 3412000000000000";

fn encoded(class: FileClass) -> Vec<u8> {
    let mut out = vec![0xEE];
    class.encode(&file(), &open(), &mut out);
    assert_eq!(out.remove(0), 0xEE);
    out
}

#[test]
fn classes_of_a_file_are_laid_out_as_specified() {
    let basic = format!("{TIMES} 20000000 00000000");
    let standard = format!("{SIZES} 03000000 01 00 0000");
    let rest = "8877665544332211 09000000 89001200 0700000000000000 02000000 00000000";
    for (number, bytes) in [
        (4, basic.clone()),
        (5, standard.clone()),
        (6, "8877665544332211".into()),
        (7, "09000000".into()),
        (8, "89001200".into()),
        (14, "0700000000000000".into()),
        (16, "02000000".into()),
        (17, "00000000".into()),
        (18, format!("{basic} {standard} {rest} 08000000 5c00 61005c006200")),
        (
            22,
            "00000000 0e000000 3412000000000000 0020000000000000 3a003a00240044004100540041\
                00"
            .into(),
        ),
        (28, "3412000000000000 0000 00 00 00 000000".into()),
        (34, format!("{TIMES} {SIZES} 20000000 00000000")),
        (35, "20000000 00000000".into()),
        (48, "06000000 61005c006200".into()),
        (59, "9900000000000000 8877665544332211 0000000000000000".into()),
    ] {
        let class = FileClass::from_wire(number).unwrap();
        assert_eq!(encoded(class), hex(&bytes), "{class:?}");
        let name = match class {
            FileClass::All => 2 + NAME.len(),
            FileClass::NormalizedName => NAME.len(),
            FileClass::Stream => 14,
            _ => 0,
        };
        assert_eq!(encoded(class).len(), class.fixed_bytes() + name, "{class:?}");
    }
    for number in [0, 1, 9, 10, 13, 15, 19, 20, 21, 255] {
        assert_eq!(FileClass::from_wire(number), None, "{number}");
    }
}

#[test]
fn a_directory_has_no_stream() {
    let mut out = Vec::new();
    let directory = FileInfo { directory: true, ..file() };
    FileClass::Stream.encode(&directory, &open(), &mut out);
    assert_eq!(out, []);
}

#[test]
fn classes_of_entries_are_laid_out_as_specified() {
    let head = "00000000 00000000";
    let attributes = format!("{TIMES} 3412000000000000 0020000000000000 20000000");
    let id = "8877665544332211";
    let short = "00 00 000000000000000000000000000000000000000000000000";
    for (number, bytes) in [
        (1, format!("{head} {attributes} 04000000 6100f400")),
        (2, format!("{head} {attributes} 04000000 09000000 6100f400")),
        (3, format!("{head} {attributes} 04000000 09000000 {short} 6100f400")),
        (12, format!("{head} 04000000 6100f400")),
        (37, format!("{head} {attributes} 04000000 09000000 {short} 0000 {id} 6100f400")),
        (38, format!("{head} {attributes} 04000000 09000000 00000000 {id} 6100f400")),
        (
            60,
            format!(
                "{head} {attributes} 04000000 09000000 00000000 {id} 0000000000000000 6100f400"
            ),
        ),
        (78, format!("{head} {attributes} 04000000 09000000 00000000 {id} 6100f400")),
        (79, format!("{head} {attributes} 04000000 09000000 00000000 {id} {short} 6100f400")),
        (
            80,
            format!(
                "{head} {attributes} 04000000 09000000 00000000 {id} {id} 0000000000000000 6100f400"
            ),
        ),
        (
            81,
            format!(
                "{head} {attributes} 04000000 09000000 00000000 {id} {id} 0000000000000000 {short}
                6100f400"
            ),
        ),
    ] {
        let class = DirectoryClass::from_wire(number).unwrap();
        let mut out = Vec::new();
        assert!(Listing::new(class, 200, &out).push(&file(), "aô".as_bytes(), &mut out));
        assert_eq!(out, hex(&bytes), "{class:?}");
        assert_eq!(out.len(), class.fixed_bytes() + 4, "{class:?}");
    }
    assert_eq!(DirectoryClass::from_wire(50), None);
    let link = FileInfo { reparse_tag: 0xA000_000C, ..file() };
    let mut out = Vec::new();
    assert!(Listing::new(DirectoryClass::Full, 200, &out).push(&link, b"a", &mut out));
    assert_eq!(out[64..68], 0xA000_000C_u32.to_le_bytes());
}

#[test]
fn a_listing_ends_where_the_next_entry_does_not_fit() {
    let mut out = vec![0xEE; 3];
    let mut listing = Listing::new(DirectoryClass::Names, 16 + 16 + 14, &out);
    assert!(listing.is_empty());
    assert!(!listing.push(&file(), &[b'x'; 30], &mut out));
    assert_eq!((out.len(), listing.is_empty()), (3, true), "left as it was");
    assert!(listing.push(&file(), b"a", &mut out));
    assert!(listing.push(&file(), b"b", &mut out));
    assert!(!listing.push(&file(), b"cd", &mut out));
    assert!(listing.push(&file(), b"c", &mut out), "to the last byte");
    let expected = "10000000 00000000 02000000 61000000 \
                    10000000 00000000 02000000 62000000 \
                    00000000 00000000 02000000 6300";
    assert_eq!(out[3..], hex(expected));
}

#[test]
fn classes_of_a_file_system_are_laid_out_as_specified() {
    let volume = VolumeInfo {
        created: NtTime(0x0101),
        serial: 0x0A0B_0C0D,
        label: "vö",
        kind: "NTFS",
        attributes: FsAttributes::CASE_PRESERVED_NAMES | FsAttributes::SPARSE_FILES,
        object_id: [7; 16],
        total: 3 * 4096 + 1,
        available: 4096,
        free: 2 * 4096,
    };
    let (total, available) = ("0300000000000000", "0100000000000000");
    let none = "ff".repeat(16);
    for (number, bytes) in [
        (1, "0101000000000000 0d0c0b0a 04000000 00 00 7600f600".into()),
        (3, format!("{total} {available} 08000000 00020000")),
        (4, "07000000 20000000".into()),
        (5, "42000000 ff000000 08000000 4e00540046005300".into()),
        (6, format!("{} {none} 00000000 00000000", "00".repeat(24))),
        (7, format!("{total} {available} 0200000000000000 08000000 00020000")),
        (8, format!("{} {}", "07".repeat(16), "00".repeat(48))),
        (11, "00020000 00100000 00100000 00100000 03000000 00000000 00000000".into()),
    ] {
        let class = VolumeClass::from_wire(number).unwrap();
        let mut out = Vec::new();
        class.encode(&volume, &mut out);
        assert_eq!(out, hex(&bytes), "{class:?}");
        let name = match class {
            VolumeClass::Volume => 4,
            VolumeClass::Attribute => 8,
            _ => 0,
        };
        assert_eq!(out.len(), class.fixed_bytes() + name, "{class:?}");
    }
    assert_eq!(VolumeClass::from_wire(2), None);
}

#[test]
fn what_is_set_is_read_as_specified() {
    let set = |class, text: &str| SetInfo::decode(class, hex(text).leak());
    let time = "0100000000000000";
    let basic = format!("0000000000000000 {time} ffffffffffffffff feffffffffffffff 21000000");
    let expected = SetBasic {
        created: TimeChange::Keep,
        accessed: TimeChange::To(NtTime(1)),
        written: TimeChange::Stop,
        changed: TimeChange::Resume,
        attributes: Some(FileAttributes::READONLY | FileAttributes::ARCHIVE),
    };
    assert_eq!(set(4, &basic), Ok(Some(SetInfo::Basic(expected))));
    assert_eq!(set(4, &basic[..60]), Err(InfoError::Length));
    let wrong = basic.replace("feff", "fdff");
    assert_eq!(set(4, &wrong), Err(InfoError::Value), "-3 has no meaning");
    let nothing = SetInfo::Basic(SetBasic::default());
    assert_eq!(set(4, &"00".repeat(40)), Ok(Some(nothing)));
    let target = Target { replace: true, posix: false, name: NAME };
    let rename = "01aaaaaaaaaaaaaa 0000000000000000 06000000 61005c006200 ffff";
    assert_eq!(set(10, rename), Ok(Some(SetInfo::Rename(target))));
    assert_eq!(set(11, rename), Ok(Some(SetInfo::Link(target))));
    let rename_ex = "02000000 00000000 0000000000000000 06000000 61005c006200";
    let posix = Target { replace: false, posix: true, ..target };
    assert_eq!(set(65, rename_ex), Ok(Some(SetInfo::Rename(posix))));
    for (class, text, error) in [
        (10, "0100000000000000 0100000000000000 06000000 61005c006200", InfoError::Value),
        (10, "0100000000000000 0000000000000000 08000000 61005c006200", InfoError::Value),
        (10, "0100000000000000 0000000000000000 ffffffff 61005c006200", InfoError::Value),
        (10, "0100000000000000 0000000000000000 00000000 ffff", InfoError::Value),
        (10, "0100000000000000 0000000000000000 0000", InfoError::Length),
        (13, "", InfoError::Length),
        (20, "ffffffffffffffff", InfoError::Value),
        (20, "00000000000000", InfoError::Length),
        (64, "20000000", InfoError::Value),
    ] {
        assert_eq!(set(class, text), Err(error), "{class} {text}");
    }
    assert_eq!(set(13, "01"), Ok(Some(SetInfo::Disposition(Disposition::DELETE))));
    let flags = Disposition::DELETE | Disposition::POSIX_SEMANTICS;
    assert_eq!(set(64, "03000000"), Ok(Some(SetInfo::Disposition(flags))));
    let most = i64::MAX as u64;
    assert_eq!(set(20, "ffffffffffffff7f"), Ok(Some(SetInfo::EndOfFile(most))));
    for class in [0, 5, 15, 18, 72, 255] {
        assert_eq!(set(class, &"00".repeat(100)), Ok(None), "{class}");
    }
}

#[test]
fn long_targets_are_refused() {
    let name = vec![b'a'; TARGET_BYTES_MAX + 2];
    let target = |name| SetInfo::Rename(Target { replace: false, posix: false, name });
    let mut out = Vec::new();
    target(&name).encode(&mut out);
    assert_eq!(SetInfo::decode(10, &out), Err(InfoError::Value));
    out.clear();
    target(&name[2..]).encode(&mut out);
    assert_eq!(SetInfo::decode(10, &out), Ok(Some(target(&name[2..]))));
}

#[test]
fn ranges_do_not_overflow() {
    let most = i64::MAX.cast_unsigned();
    let two = |a: u64, b: u64| [a.to_le_bytes(), b.to_le_bytes()].concat();
    assert_eq!(zero_data(&two(5, 9)), Ok(Range { offset: 5, length: 4 }));
    assert_eq!(zero_data(&two(5, 4)), Err(InfoError::Value));
    assert_eq!(zero_data(&two(5, u64::MAX)), Err(InfoError::Value));
    assert_eq!(zero_data(&two(5, 9)[..15]), Err(InfoError::Length));
    assert_eq!(query_ranges(&two(5, most - 5)), Ok(Range { offset: 5, length: most - 5 }));
    assert_eq!(query_ranges(&two(5, most - 4)), Err(InfoError::Value));
    assert_eq!(query_ranges(&two(u64::MAX, 1)), Err(InfoError::Value));
    assert!(set_sparse(&[]) && set_sparse(&[1]) && !set_sparse(&[0]));
}

#[test]
fn ranges_are_answered_as_far_as_they_fit() {
    let ranges = [Range { offset: 0, length: 1 }, Range { offset: 5, length: 2 }];
    for (max, count) in [(0, 0), (15, 0), (16, 1), (31, 1), (32, 2), (100, 2)] {
        let mut out = Vec::new();
        assert_eq!(encode_ranges(ranges, max, &mut out), count == 2, "{max}");
        assert!(decode_ranges(&out).eq(ranges.into_iter().take(count)), "{max}");
    }
}

#[test]
fn answers_of_controls_have_their_size() {
    let mut out = Vec::new();
    encode_resume_key(&[5; 24], &mut out);
    assert_eq!(out.len(), RESUME_KEY_BYTES);
    assert_eq!(decode_resume_key(&out), Ok([5; 24]));
    out.clear();
    encode_object_id(&[1; 16], &[2; 16], &mut out);
    assert_eq!(out, [[1; 16], [2; 16], [1; 16], [0; 16]].concat());
}

#[test]
fn copies_are_bounded() {
    let chunk = |length| Chunk { source: 1, target: 2, length };
    let decoded = |chunks: &[Chunk]| {
        let mut out = Vec::new();
        encode_copy(&[3; 24], chunks, &mut out);
        CopyChunks::decode(&out).map(|copy| copy.chunks().collect::<Vec<_>>())
    };
    let full = [chunk(COPY_CHUNK_BYTES_MAX); 16];
    assert_eq!(decoded(&full), Ok(full.to_vec()));
    assert_eq!(decoded(&[&full[..], &[chunk(1)]].concat()), Err(CopyError::Bounds));
    assert_eq!(decoded(&[chunk(COPY_CHUNK_BYTES_MAX + 1)]), Err(CopyError::Bounds));
    assert_eq!(decoded(&[chunk(0)]), Err(CopyError::Bounds));
    assert_eq!(decoded(&[chunk(1); 256]).map(|chunks| chunks.len()), Ok(256));
    assert_eq!(decoded(&[chunk(1); 257]), Err(CopyError::Bounds));
    let mut out = Vec::new();
    encode_copy(&[3; 24], &[chunk(1), chunk(2)], &mut out);
    assert_eq!(CopyChunks::decode(&out[..out.len() - 1]), Err(CopyError::Short));
    assert_eq!(CopyChunks::decode(&out[..31]), Err(CopyError::Short));
    out[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(CopyChunks::decode(&out), Err(CopyError::Bounds));
    out.clear();
    CopyResult::BOUNDS.encode(&mut out);
    assert_eq!(out, hex("00010000 00001000 00000001"));
    assert_eq!(CopyResult::decode(&out), Ok(CopyResult::BOUNDS));
}

prop_compose! {
    fn any_file()(
        times in any::<[i64; 4]>(),
        (size, clusters, links, index) in (any::<u64>(), 0..1_u64 << 40, any::<u32>(), any::<u64>()),
        (delete_pending, directory, ea_size) in any::<(bool, bool, u32)>(),
        attributes in 1..=u32::MAX,
    ) -> FileInfo {
        let [created, accessed, written, changed] = times.map(NtTime);
        FileInfo {
            created, accessed, written, changed, size, links, delete_pending, directory, index,
            ea_size,
            attributes: FileAttributes::from_bits_retain(attributes).shown(),
            allocated: clusters * CLUSTER_BYTES,
            reparse_tag: 0,
        }
    }
}

fn time_change() -> impl Strategy<Value = TimeChange> {
    (-2..=i64::MAX).prop_filter_map("a change", TimeChange::from_wire)
}

fn set_info() -> impl Strategy<Value = SetInfo<'static>> {
    let basic = (proptest::array::uniform4(time_change()), any::<Option<u32>>());
    let target = (any::<bool>(), any::<bool>(), prop::collection::vec(any::<u8>(), 1..50))
        .prop_map(|(replace, posix, name)| Target { replace, posix, name: name.leak() });
    let size = 0..=i64::MAX.cast_unsigned();
    prop_oneof![
        basic.prop_map(|([created, accessed, written, changed], bits)| {
            let attributes = bits.filter(|bits| *bits != 0).map(FileAttributes::from_bits_retain);
            SetInfo::Basic(SetBasic { created, accessed, written, changed, attributes })
        }),
        target.clone().prop_map(SetInfo::Rename),
        target.prop_map(|target| SetInfo::Link(Target { posix: false, ..target })),
        (0..32_u32).prop_map(|bits| SetInfo::Disposition(Disposition::from_bits_retain(bits))),
        any::<u32>().prop_map(SetInfo::Mode),
        size.clone().prop_map(SetInfo::Position),
        size.clone().prop_map(SetInfo::Allocation),
        size.clone().prop_map(SetInfo::EndOfFile),
        size.prop_map(SetInfo::ValidDataLength),
    ]
}

fn directory_class() -> impl Strategy<Value = DirectoryClass> {
    prop::sample::select(&[1, 2, 3, 12, 37, 38, 60, 78, 79, 80, 81][..])
        .prop_filter_map("a class", DirectoryClass::from_wire)
}

proptest! {
    #[test]
    fn queries_survive(
        file in any_file(),
        (access, position, mode) in any::<(u32, u64, u32)>(),
        name in any::<Vec<u8>>(),
    ) {
        let access = AccessMask::from_bits_retain(access);
        let open = OpenInfo { access, position, mode, name: &name, volume: 0 };
        let mut out = Vec::new();
        FileClass::All.encode(&file, &open, &mut out);
        prop_assert_eq!(decode_file(FileClass::All, &out), Ok(Some((file, open))));
        prop_assert_eq!(
            decode_file(FileClass::All, &out[..out.len() - 1]),
            Err(InfoError::Length)
        );
        for class in [FileClass::Basic, FileClass::Standard, FileClass::NetworkOpen] {
            out.clear();
            class.encode(&file, &open, &mut out);
            let (read, _) = decode_file(class, &out).unwrap().unwrap();
            let (basic, standard) = (class != FileClass::Standard, class != FileClass::Basic);
            prop_assert!(!basic || (read.created, read.changed) == (file.created, file.changed));
            prop_assert!(!basic || read.attributes == file.attributes);
            prop_assert!(!standard || (read.size, read.allocated) == (file.size, file.allocated));
        }
    }

    #[test]
    fn listings_survive(
        class in directory_class(),
        entries in prop::collection::vec((any_file(), "[a-z]{1,9}"), 0..6),
        max in 0..600_usize,
    ) {
        let mut out = Vec::new();
        let mut listing = Listing::new(class, max, &out);
        let fit = entries.iter().take_while(|(file, name)| listing.push(file, name.as_bytes(), &mut out));
        let fit = fit.count();
        prop_assert!(out.len() <= max);
        prop_assert_eq!(listing.is_empty(), fit == 0);
        let read: Result<Vec<_>, _> = DirectoryEntries::new(class, &out).collect();
        let read = read.unwrap();
        prop_assert_eq!(read.len(), fit);
        for (read, (file, name)) in read.iter().zip(&entries) {
            let wire: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            prop_assert_eq!(read.name, &wire);
            let times = |file: &FileInfo| (file.created, file.accessed, file.written, file.changed);
            if class.shows_attributes() {
                prop_assert_eq!(times(&read.file), times(file));
                prop_assert_eq!(read.file.size, file.size);
                prop_assert_eq!(read.file.allocated, file.allocated);
                prop_assert_eq!(read.file.attributes, file.attributes);
            }
        }
    }

    #[test]
    fn sets_survive(set in set_info()) {
        let mut out = Vec::new();
        set.encode(&mut out);
        prop_assert_eq!(SetInfo::decode(set.class(), &out), Ok(Some(set)));
        prop_assert!(SetInfo::decode(set.class(), &out[..0]).is_err());
    }

    #[test]
    fn no_bytes_make_it_panic(class: u8, bytes in any::<Vec<u8>>()) {
        let _ = SetInfo::decode(class, &bytes);
        let _ = (zero_data(&bytes), query_ranges(&bytes), set_sparse(&bytes));
        let _ = CopyChunks::decode(&bytes).map(|copy| copy.chunks().count());
        let _ = (CopyResult::decode(&bytes), decode_resume_key(&bytes));
        prop_assert!(decode_ranges(&bytes).count() <= bytes.len() / 16);
        if let Some(class) = FileClass::from_wire(class) {
            let _ = decode_file(class, &bytes);
        }
        if let Some(class) = DirectoryClass::from_wire(class) {
            prop_assert!(DirectoryEntries::new(class, &bytes).count() <= bytes.len());
        }
    }
}
