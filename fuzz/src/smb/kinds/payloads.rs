//! Payloads: information classes, controls and names.

use weir_core::Name;
use weir_smb::fscc::client::{
    DirectoryEntries, decode_file, decode_ranges, decode_resume_key, encode_copy, encode_range,
    encode_zero_data,
};
use weir_smb::fscc::{
    COPY_BYTES_MAX, COPY_CHUNK_BYTES_MAX, COPY_CHUNKS_MAX, CopyChunks, CopyResult, DirectoryClass,
    FileClass, Listing, SetInfo, encode_ranges, encode_resume_key, query_ranges, zero_data,
};
use weir_smb::names::{Path, Pattern, to_store, to_wire};

/// The class in front of the bytes, whose number is kept.
fn class<T>(bytes: &[u8], of: impl Fn(u8) -> Option<T>) -> Option<(u8, T, &[u8])> {
    let (number, rest) = bytes.split_first()?;
    Some((*number, of(*number)?, rest))
}

pub(super) fn set_info(bytes: &[u8]) -> Option<Vec<u8>> {
    let (number, rest) = bytes.split_first()?;
    let value = SetInfo::decode(*number, rest).ok()??;
    let mut again = vec![value.class()];
    value.encode(&mut again);
    assert_eq!(SetInfo::decode(again[0], &again[1..]), Ok(Some(value)));
    Some(again)
}

/// The first encoding may differ in values that a server never shows: space that is not whole
/// clusters, no attributes at all.
pub(super) fn file_info(bytes: &[u8]) -> Option<Vec<u8>> {
    let (number, class, rest) = class(bytes, FileClass::from_wire)?;
    let (file, open) = decode_file(class, rest).ok()??;
    let mut again = vec![number];
    class.encode(&file, &open, &mut again);
    Some(again)
}

pub(super) fn directory(bytes: &[u8]) -> Option<Vec<u8>> {
    let (number, class, rest) = class(bytes, DirectoryClass::from_wire)?;
    let mut again = vec![number];
    let mut listing = Listing::new(class, usize::MAX, &again);
    let mut name = Vec::new();
    for entry in DirectoryEntries::new(class, rest) {
        let entry = entry.ok()?;
        name.clear();
        if to_store(entry.name, &mut name).is_ok() {
            assert!(listing.push(&entry.file, &name, &mut again), "there is no bound");
        }
    }
    Some(again)
}

pub(super) fn copy_chunks(bytes: &[u8]) -> Option<Vec<u8>> {
    let copy = CopyChunks::decode(bytes).ok()?;
    let chunks: Vec<_> = copy.chunks().collect();
    assert!(chunks.len() <= usize::try_from(COPY_CHUNKS_MAX).expect("64 bits"));
    assert!(chunks.iter().all(|chunk| (1..=COPY_CHUNK_BYTES_MAX).contains(&chunk.length)));
    assert!(chunks.iter().map(|chunk| chunk.length).sum::<u32>() <= COPY_BYTES_MAX);
    let mut again = Vec::new();
    encode_copy(&copy.key, &chunks, &mut again);
    let decoded = CopyChunks::decode(&again).expect("our requests can be read");
    assert_eq!(decoded.key, copy.key);
    assert!(decoded.chunks().eq(chunks));
    Some(again)
}

pub(super) fn copy_result(bytes: &[u8]) -> Option<Vec<u8>> {
    let value = CopyResult::decode(bytes).ok()?;
    let mut again = Vec::new();
    value.encode(&mut again);
    assert_eq!(CopyResult::decode(&again), Ok(value));
    Some(again)
}

pub(super) fn zero_range(bytes: &[u8]) -> Option<Vec<u8>> {
    let range = zero_data(bytes).ok()?;
    let mut again = Vec::new();
    encode_zero_data(range, &mut again);
    assert_eq!(zero_data(&again), Ok(range));
    Some(again)
}

pub(super) fn query_range(bytes: &[u8]) -> Option<Vec<u8>> {
    let range = query_ranges(bytes).ok()?;
    let mut again = Vec::new();
    encode_range(range, &mut again);
    assert_eq!(query_ranges(&again), Ok(range));
    Some(again)
}

pub(super) fn ranges(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut again = Vec::new();
    assert!(encode_ranges(decode_ranges(bytes), usize::MAX, &mut again));
    assert!(decode_ranges(&again).eq(decode_ranges(bytes)));
    Some(again)
}

pub(super) fn resume_key(bytes: &[u8]) -> Option<Vec<u8>> {
    let key = decode_resume_key(bytes).ok()?;
    let mut again = Vec::new();
    encode_resume_key(&key, &mut again);
    assert_eq!(decode_resume_key(&again), Ok(key));
    Some(again)
}

/// No component leads elsewhere, and the path in its canonical form is the same one.
pub(super) fn path(bytes: &[u8]) -> Option<Vec<u8>> {
    let path = Path::parse(bytes).ok()?;
    let mut again = Vec::new();
    for component in path.components() {
        let name = component.as_bytes();
        assert!(!component.is_special() && !name.iter().any(|byte| matches!(byte, 0 | b'/')));
        if !again.is_empty() {
            again.extend_from_slice(b"\\\0");
        }
        to_wire(name, &mut again);
    }
    if path.names_directory() {
        again.extend_from_slice(b"\\\0");
    }
    if let Some((before, last)) = path.split_last() {
        assert!(before.chain([last]).eq(path.components()));
    }
    assert_eq!(path.is_root(), path.components().next().is_none());
    assert_eq!(Path::parse(&again).as_ref(), Ok(&path));
    Some(again)
}

/// A pattern (its length in front) and a name of the store. A plain name matches itself, in the
/// form in which a listing shows it.
pub(super) fn pattern(bytes: &[u8]) -> Option<Vec<u8>> {
    let ([high, low], rest) = bytes.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
    let (sent, name) = rest.split_at(length);
    let pattern = Pattern::parse(sent).ok()?;
    let matches = pattern.matches(name);
    assert!(matches || !pattern.is_all());
    if let Some(own) = pattern.name() {
        let mut shown = Vec::new();
        to_wire(own, &mut shown);
        assert!(pattern.matches(own) || shown != sent);
    }
    None
}

/// A name of the store comes back from its form on the wire.
pub(super) fn store_name(bytes: &[u8]) -> Option<Vec<u8>> {
    let name = Name::new(bytes).ok().filter(|name| !name.is_special())?;
    let (mut wire, mut again) = (Vec::new(), Vec::new());
    to_wire(name.as_bytes(), &mut wire);
    assert_eq!(to_store(&wire, &mut again), Ok(()));
    assert_eq!(again, bytes);
    Some(again)
}
