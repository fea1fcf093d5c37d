//! File handles: what a client holds to name an object, sealed so that it can't be forged.
//!
//! Layout, version 2 (big-endian, at most 64 bytes):
//!
//! ```text
//! version: u8 = 2 | key length: u8 | volume: u32 | snapshot: u32 | birth: u32 | key | MAC: 8 bytes
//! ```
//!
//! Version 1 had no birth; its handles are understood as before, and no new ones are made.
//!
//! The MAC is SipHash-2-4 over everything before it, keyed with 128 bits that the data directory
//! keeps. All volumes of a pool share one file system, so without it a client of one volume could
//! name another's inodes.

use crate::error::{FsError, FsResult};
use crate::id::{SnapshotId, VolumeId};
use crate::limits::{HANDLE_BYTES_MAX, OBJECT_KEY_BYTES_MAX};
use core::cmp::Ordering;
use core::fmt;
use core::hash::Hasher;
use siphasher::sip::SipHasher24;

const VERSION: u8 = 2;
const VERSION_WITHOUT_BIRTH: u8 = 1;
/// Version, key length, volume and snapshot.
const HEAD_WITHOUT_BIRTH: usize = 10;
const HEAD: usize = HEAD_WITHOUT_BIRTH + 4;
const MAC: usize = 8;
const HEAD_AND_MAC: u8 = 22;
const _: () = assert!(HEAD_AND_MAC as usize == HEAD + MAC);
const _: () = assert!(HEAD_AND_MAC as usize + OBJECT_KEY_BYTES_MAX == HANDLE_BYTES_MAX);

/// A store's own name for an object, opaque to everyone else: at most
/// [`OBJECT_KEY_BYTES_MAX`] bytes, stable across restarts.
///
/// File systems use the place of an object that is gone again, and after a power cut some give the
/// new object in it the very name of the old one. So a key carries the object's *birth* beside
/// that name. Keys are equal if their names are; whether the object is still the one that was
/// meant is what [`ObjectKey::may_be`] tells.
#[derive(Clone, Copy)]
pub struct ObjectKey {
    /// The name, and zeroes behind it.
    bytes: [u8; OBJECT_KEY_BYTES_MAX],
    len: u8,
    birth: u32,
}

impl ObjectKey {
    /// Wraps `bytes`, of an object of unknown birth.
    ///
    /// # Errors
    /// [`FsError::BadHandle`] if they are too many.
    pub fn new(bytes: &[u8]) -> FsResult<Self> {
        let mut own = [0; OBJECT_KEY_BYTES_MAX];
        own.get_mut(..bytes.len()).ok_or(FsError::BadHandle)?.copy_from_slice(bytes);
        let len = u8::try_from(bytes.len()).map_err(|_| FsError::BadHandle)?;
        Ok(Self { bytes: own, len, birth: 0 })
    }

    /// The key of an object with this birth: any digest of the time at which it was made, 0 where
    /// that is not known.
    #[must_use]
    pub fn born(self, birth: u32) -> Self {
        Self { birth, ..self }
    }

    /// The object's birth: a digest of the time at which it was made, 0 where that is not known.
    #[must_use]
    pub fn birth(&self) -> u32 {
        self.birth
    }

    /// Can this and `other` be keys of one object? Not if both births are known and differ.
    #[inline]
    #[must_use]
    pub fn may_be(&self, other: &Self) -> bool {
        self == other && (self.birth == other.birth || self.birth == 0 || other.birth == 0)
    }

    /// The bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

impl PartialEq for ObjectKey {
    // The bytes beyond the length are zero, so all can be compared: that needs no loop.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.bytes == other.bytes
    }
}

impl Eq for ObjectKey {}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl core::hash::Hash for ObjectKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.as_bytes());
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|b| write!(f, "{b:02x}"))?;
        write!(f, "@{:08x}", self.birth)
    }
}

/// The content of a handle whose seal is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileHandle {
    /// The volume the object is in.
    pub volume: VolumeId,
    /// The snapshot it is seen through.
    pub snapshot: SnapshotId,
    /// The store's name for it.
    pub key: ObjectKey,
}

/// A sealed handle, ready for the wire.
#[derive(Clone, Copy)]
pub struct Sealed {
    bytes: [u8; HANDLE_BYTES_MAX],
    len: u8,
}

impl Sealed {
    /// The bytes for the wire, at most [`HANDLE_BYTES_MAX`].
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

/// The secret that seals handles. It lives in the data directory, readable by its owner alone;
/// losing it makes every client's handles stale.
#[derive(Clone)]
pub struct HandleKey {
    hasher: SipHasher24,
}

impl HandleKey {
    /// A key from 16 random bytes.
    #[must_use]
    pub fn new(secret: &[u8; 16]) -> Self {
        Self { hasher: SipHasher24::new_with_key(secret) }
    }

    /// Seals `handle` for the wire.
    #[must_use]
    pub fn seal(&self, handle: &FileHandle) -> Sealed {
        let key = handle.key.as_bytes();
        let mut bytes = [0; HANDLE_BYTES_MAX];
        bytes[0] = VERSION;
        bytes[1] = handle.key.len;
        bytes[2..6].copy_from_slice(&handle.volume.0.to_be_bytes());
        bytes[6..HEAD_WITHOUT_BIRTH].copy_from_slice(&handle.snapshot.0.to_be_bytes());
        bytes[HEAD_WITHOUT_BIRTH..HEAD].copy_from_slice(&handle.key.birth.to_be_bytes());
        let end = HEAD + key.len();
        bytes[HEAD..end].copy_from_slice(key);
        let mac = self.mac(&bytes[..end]);
        bytes[end..end + MAC].copy_from_slice(&mac.to_be_bytes());
        Sealed { bytes, len: handle.key.len + HEAD_AND_MAC }
    }

    /// Proves and opens a handle from the wire.
    ///
    /// # Errors
    /// [`FsError::BadHandle`] for anything this key did not seal.
    pub fn open(&self, wire: &[u8]) -> FsResult<FileHandle> {
        let (&version, rest) = wire.split_first().ok_or(FsError::BadHandle)?;
        let &len = rest.first().ok_or(FsError::BadHandle)?;
        let head = match version {
            VERSION => HEAD,
            VERSION_WITHOUT_BIRTH => HEAD_WITHOUT_BIRTH,
            _ => return Err(FsError::BadHandle),
        };
        let end = head + usize::from(len);
        if wire.len() != end + MAC {
            return Err(FsError::BadHandle);
        }
        let (signed, mac) = wire.split_at(end);
        let mac: [u8; MAC] = mac.try_into().map_err(|_| FsError::BadHandle)?;
        if self.mac(signed) != u64::from_be_bytes(mac) {
            return Err(FsError::BadHandle);
        }
        let word = |at: usize| {
            let bytes = signed.get(at..at + 4).and_then(|b| b.try_into().ok());
            bytes.map(u32::from_be_bytes).ok_or(FsError::BadHandle)
        };
        let birth = if version == VERSION { word(HEAD_WITHOUT_BIRTH)? } else { 0 };
        let key = ObjectKey::new(signed.get(head..).unwrap_or(&[]))?.born(birth);
        Ok(FileHandle { volume: VolumeId(word(2)?), snapshot: SnapshotId(word(6)?), key })
    }

    /// A number that peers can't know, the same in every process that has this key. `purpose` tells
    /// it from others; it is text, so it is none of the handles that are sealed.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> u64 {
        self.mac(purpose.as_bytes())
    }

    fn mac(&self, bytes: &[u8]) -> u64 {
        self.hasher.hash(bytes)
    }
}

impl fmt::Debug for HandleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandleKey(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> HandleKey {
        HandleKey::new(&[7; 16])
    }

    proptest! {
        #[test]
        fn opens_what_it_sealed(volume: u32, snapshot: u32, birth: u32,
                                key_bytes in proptest::collection::vec(any::<u8>(), 0..=OBJECT_KEY_BYTES_MAX)) {
            let object = ObjectKey::new(&key_bytes).unwrap().born(birth);
            let handle = FileHandle { volume: VolumeId(volume), snapshot: SnapshotId(snapshot), key: object };
            let opened = key().open(key().seal(&handle).as_bytes()).unwrap();
            prop_assert_eq!(opened, handle);
            prop_assert_eq!(opened.key.birth, birth);
        }

        #[test]
        fn refuses_any_altered_bit(bit in 0usize..8 * 30, secret: [u8; 16]) {
            let handle = FileHandle {
                volume: VolumeId(3), snapshot: SnapshotId::LIVE, key: ObjectKey::new(&[9; 8]).unwrap(),
            };
            let mut wire = key().seal(&handle).as_bytes().to_vec();
            wire[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(key().open(&wire), Err(FsError::BadHandle));
            if secret != [7; 16] {
                wire[bit / 8] ^= 1 << (bit % 8);
                prop_assert_eq!(HandleKey::new(&secret).open(&wire), Err(FsError::BadHandle));
            }
        }

        #[test]
        fn never_panics(wire in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(key().open(&wire), Err(FsError::BadHandle));
        }
    }

    #[test]
    fn the_layout_is_version_2() {
        let handle = FileHandle {
            volume: VolumeId(0x0102_0304),
            snapshot: SnapshotId::LIVE,
            key: ObjectKey::new(&[0xaa]).unwrap().born(0x0506_0708),
        };
        let sealed = HandleKey::new(&[0; 16]).seal(&handle);
        assert_eq!(&sealed.as_bytes()[..15], [2, 1, 1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8, 0xaa]);
        assert_eq!(sealed.as_bytes().len(), 23);
    }

    #[test]
    fn a_handle_of_version_1_is_understood_and_says_nothing_of_the_birth() {
        // A handle that the version of Weir that made these sealed, with a secret of sixteen
        // sevens.
        let wire = [
            1, 8, 0, 0, 0, 3, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 75, 42, 213, 123, 66, 46, 138, 20,
        ];
        let opened = key().open(&wire).unwrap();
        let object = ObjectKey::new(&[9; 8]).unwrap();
        let expected = FileHandle { volume: VolumeId(3), snapshot: SnapshotId::LIVE, key: object };
        assert_eq!((opened, opened.key.birth), (expected, 0));
        assert!(opened.key.may_be(&object.born(7)));
        for bit in 0..8 * wire.len() {
            let mut altered = wire;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key().open(&altered), Err(FsError::BadHandle), "bit {bit}");
        }
    }

    #[test]
    fn keys_with_two_known_births_are_of_two_objects() {
        let key = ObjectKey::new(&[9; 8]).unwrap();
        assert!(key.born(5).may_be(&key.born(5)));
        assert!(!key.born(5).may_be(&key.born(6)));
        assert!(key.born(5).may_be(&key) && key.may_be(&key.born(5)));
        assert!(!key.born(5).may_be(&ObjectKey::new(&[8; 8]).unwrap().born(5)));
        assert_eq!(key.born(5), key.born(6), "the same name");
    }
}
