//! Messages that others sent, and payloads by our own encoders.

use crate::save;
use std::io::Result;
use weir_fuzz::smb::kinds::selector;
use weir_fuzz::smb::utf16;
use weir_smb::fscc::client::{encode_copy, encode_range, encode_zero_data};
use weir_smb::fscc::{
    Chunk, CopyResult, DirectoryClass, Disposition, FileClass, FileInfo, Listing, NtTime, OpenInfo,
    Range, SetBasic, SetInfo, Target, TimeChange, encode_ranges, encode_resume_key,
};
use weir_smb::security::{Ace, AceFlags, AceKind, Dacl, Descriptor, Sid};
use weir_smb::wire::samples::{self, hex};
use weir_smb::wire::{AccessMask, FileAttributes, HEADER_BYTES};

/// Saves the bytes of a kind.
pub(super) fn kind(kind: &str, name: &str, bytes: &[u8]) -> Result<()> {
    save("smb_message", name, &[&[selector(kind)][..], bytes].concat())
}

/// The kinds of the samples that have another name than their kind.
const KINDS: [(&str, &str); 7] = [
    ("create-lease-request", "create-request"),
    ("interim-response", "plain-error"),
    ("cancel-request", "empty"),
    ("echo-request", "empty"),
    ("query-info-response", "output-response"),
    ("buffer-too-small-response", "too-small-error"),
    ("close-response", "close-response"),
];

/// Samples that are no single message of SMB2.
const OTHERS: [&str; 4] =
    ["smb1-negotiate", "sealed-frame", "compound-request", "compound-response"];

pub(super) fn messages() -> Result<()> {
    for (name, sample) in samples::ALL {
        if OTHERS.contains(&name) {
            continue;
        }
        let other = KINDS.iter().find(|(own, _)| *own == name).map(|(_, kind)| *kind);
        kind(other.unwrap_or(name), name, &hex(sample)[HEADER_BYTES..])?;
    }
    kind("header", "header", &hex(samples::ECHO_REQUEST)[..HEADER_BYTES])?;
    kind("header", "header-async", &hex(samples::CANCEL_REQUEST)[..HEADER_BYTES])?;
    kind("set-info-response", "set-info-response", &[2, 0])?;
    let lease = [&[36, 0, 0, 0, 0, 0, 0, 0][..], &[5; 16], &[3, 0, 0, 0], &[0; 8]].concat();
    kind("oplock-break-request", "lease-break", &lease)?;
    let oplock = [&[24, 0, 1, 0, 0, 0, 0, 0][..], &[5; 16]].concat();
    kind("oplock-break-request", "oplock-break", &oplock)
}

pub(super) fn payloads() -> Result<()> {
    set_infos()?;
    shown()?;
    controls()?;
    names()?;
    descriptors()
}

fn set_infos() -> Result<()> {
    let name = utf16("d\\new");
    let target = Target { replace: true, posix: false, name: &name };
    let basic = SetBasic {
        created: TimeChange::from_wire(0x01d0_aecb_adf5_a1a1).expect("a time"),
        attributes: Some(FileAttributes::HIDDEN),
        ..SetBasic::default()
    };
    for (name, info) in [
        ("basic", SetInfo::Basic(basic)),
        ("rename", SetInfo::Rename(target)),
        ("rename-posix", SetInfo::Rename(Target { posix: true, ..target })),
        ("link", SetInfo::Link(target)),
        ("disposition", SetInfo::Disposition(Disposition::DELETE)),
        ("disposition-flags", SetInfo::Disposition(Disposition::all())),
        ("position", SetInfo::Position(7)),
        ("mode", SetInfo::Mode(2)),
        ("allocation", SetInfo::Allocation(4096)),
        ("end-of-file", SetInfo::EndOfFile(1)),
        ("valid-data-length", SetInfo::ValidDataLength(1)),
    ] {
        let mut bytes = vec![info.class()];
        info.encode(&mut bytes);
        kind("set-info", &format!("set-{name}"), &bytes)?;
    }
    Ok(())
}

fn file() -> FileInfo {
    FileInfo {
        created: NtTime(1 << 56),
        accessed: NtTime(2 << 56),
        written: NtTime(3 << 56),
        changed: NtTime(4 << 56),
        attributes: FileAttributes::ARCHIVE,
        size: 5000,
        allocated: 8192,
        links: 1,
        index: 99,
        ..FileInfo::default()
    }
}

fn shown() -> Result<()> {
    let name = utf16("d\\f");
    let access = AccessMask::FILE_GENERIC_READ;
    let open = OpenInfo { access, name: &name, ..OpenInfo::default() };
    for number in [4, 5, 34, 18] {
        let class = FileClass::from_wire(number).expect("a class");
        let mut bytes = vec![number];
        class.encode(&file(), &open, &mut bytes);
        kind("file-info", &format!("file-info-{number}"), &bytes)?;
    }
    for number in [1, 2, 3, 12, 37, 38, 60] {
        let class = DirectoryClass::from_wire(number).expect("a class");
        let mut bytes = vec![number];
        let mut listing = Listing::new(class, 4096, &bytes);
        for name in [".", "..", "file", "größe: 1"] {
            assert!(listing.push(&file(), name.as_bytes(), &mut bytes));
        }
        kind("directory", &format!("directory-{number}"), &bytes)?;
    }
    Ok(())
}

fn controls() -> Result<()> {
    let range = Range { offset: 4096, length: 8192 };
    let mut bytes = Vec::new();
    encode_zero_data(range, &mut bytes);
    kind("zero-data", "zero-data", &bytes)?;
    let mut bytes = Vec::new();
    encode_range(range, &mut bytes);
    kind("allocated-ranges-request", "allocated-ranges-request", &bytes)?;
    let mut bytes = Vec::new();
    assert!(encode_ranges([range, range], 64, &mut bytes));
    kind("allocated-ranges", "allocated-ranges", &bytes)?;
    let mut bytes = Vec::new();
    encode_resume_key(&[3; 24], &mut bytes);
    kind("resume-key", "resume-key", &bytes)?;
    let chunks = [Chunk { source: 0, target: 1 << 20, length: 1 << 20 }; 3];
    let mut bytes = Vec::new();
    encode_copy(&[3; 24], &chunks, &mut bytes);
    kind("copy-chunks", "copy-chunks", &bytes)?;
    let mut bytes = Vec::new();
    CopyResult::BOUNDS.encode(&mut bytes);
    kind("copy-result", "copy-result", &bytes)
}

fn names() -> Result<()> {
    kind("path", "path", &utf16("dir\\größe\\x\u{f022}y\\"))?;
    kind("path", "path-bytes", &utf16("\u{ef80}\u{efff}\\a. b\u{f029}"))?;
    for (name, pattern, store) in [
        ("all", "*", "anything"),
        ("dos", "<.t>\"x", "a.b.txt"),
        ("stars", "*a*?b*", "xxaxxb"),
        ("plain", "GRÖßE", "größe"),
    ] {
        let pattern = utf16(pattern);
        let length = u16::try_from(pattern.len()).expect("a short pattern").to_be_bytes();
        let bytes = [&length[..], &pattern, store.as_bytes()].concat();
        kind("pattern", &format!("pattern-{name}"), &bytes)?;
    }
    kind("store-name", "store-name", b"a:b\xff\x01 \xef\x80\xa2.")
}

fn descriptors() -> Result<()> {
    let allow = |sid, mask, flags| Ace {
        kind: AceKind::Allow,
        flags: AceFlags::from_bits_retain(flags),
        mask: AccessMask::from_bits_retain(mask),
        sid,
    };
    let user = Sid::domain([1, 2, 3]).member(1007).expect("a short one");
    let group = Sid::unix_group(7);
    let lists = [
        ("null", Dacl::Null),
        (
            "list",
            Dacl::List(vec![
                allow(user, 0x001f_01ff, 0),
                allow(group, 0x0012_00a9, 0),
                allow(Sid::unix_user(5), 0x0012_0089, 0),
                allow(Sid::EVERYONE, 0x0012_0089, 0),
            ]),
        ),
        (
            "inherited",
            Dacl::List(vec![
                allow(Sid::CREATOR_OWNER, 0x001f_01ff, 11),
                allow(Sid::EVERYONE, 0x0012_0089, 3),
            ]),
        ),
        // A mode in the form of NFS servers on Windows.
        ("mode", Dacl::List(vec![allow(Sid::new(5, &[88, 3, 0o640]).unwrap(), 0, 0)])),
        ("deny", Dacl::List(vec![Ace { kind: AceKind::Deny, ..allow(Sid::EVERYONE, 2, 0) }])),
    ];
    for (name, dacl) in lists {
        let descriptor = Descriptor { owner: Some(user), group: Some(group), dacl };
        let mut bytes = Vec::new();
        descriptor.encode(&mut bytes).expect("a short list");
        kind("descriptor", &format!("descriptor-{name}"), &bytes)?;
        let set = [&[1, 0xa4][..], &bytes].concat();
        kind("descriptor-of-file", &format!("descriptor-of-file-{name}"), &set)?;
        kind("descriptor-of-directory", &format!("descriptor-of-directory-{name}"), &set)?;
    }
    Ok(())
}
