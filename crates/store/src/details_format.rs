//! The form in which an object's details are kept, in the extended attribute [`NAME`]: a version
//! (1 byte, 1), what follows (1 byte), and then, each only if it differs from what the object has
//! without the attribute: the time of birth (bit 0; seconds since 1970 as 8 bytes, nanoseconds as
//! 4), and the DOS attributes (bit 1; 2 bytes, by the values of MS-FSCC §2.6). Little-endian.
//!
//! Where nothing differs there is no attribute, so objects that only NFS has seen have none.

use std::ffi::CStr;
use weir_core::{DosAttributes, Timestamp};

/// The extended attribute.
pub(crate) const NAME: &CStr = c"user.weir.dos";
/// Largest form, in bytes.
pub(crate) const BYTES_MAX: usize = 16;

const VERSION: u8 = 1;
const BIRTH: u8 = 1;
const DOS: u8 = 2;

/// The details that differ from those that an object has by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) birth: Option<Timestamp>,
    pub(crate) dos: Option<DosAttributes>,
}

impl Kept {
    /// Is there nothing to be kept?
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The form of the details.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BYTES_MAX);
        let flag = |there: bool, flag| if there { flag } else { 0 };
        out.extend([VERSION, flag(self.birth.is_some(), BIRTH) | flag(self.dos.is_some(), DOS)]);
        if let Some(Timestamp { secs, nanos }) = self.birth {
            out.extend(secs.to_le_bytes());
            out.extend(nanos.to_le_bytes());
        }
        if let Some(dos) = self.dos {
            out.extend(dos.bits().to_le_bytes());
        }
        out
    }

    /// Reads the details. `None` for anything that this version has not written.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (&[version, flags], mut rest) = bytes.split_first_chunk()?;
        if version != VERSION || flags & !(BIRTH | DOS) != 0 {
            return None;
        }
        let mut kept = Self::default();
        if flags & BIRTH != 0 {
            let (secs, after) = rest.split_first_chunk()?;
            let (nanos, after) = after.split_first_chunk()?;
            let (secs, nanos) = (i64::from_le_bytes(*secs), u32::from_le_bytes(*nanos));
            kept.birth = Some(Timestamp { secs, nanos }).filter(|_| nanos < 1_000_000_000);
            kept.birth?;
            rest = after;
        }
        if flags & DOS != 0 {
            let (bits, after) = rest.split_first_chunk()?;
            kept.dos = Some(DosAttributes::from_bits(u16::from_le_bytes(*bits))?);
            rest = after;
        }
        rest.is_empty().then_some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_form_is_as_documented() {
        let birth = Timestamp { secs: -2, nanos: 0x0102_0304 };
        let both =
            Kept { birth: Some(birth), dos: Some(DosAttributes::HIDDEN | DosAttributes::SPARSE) };
        let bytes = [1, 3, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 4, 3, 2, 1, 0x02, 0x02];
        assert_eq!((both.write(), bytes.len()), (bytes.to_vec(), BYTES_MAX));
        let dos = Kept { birth: None, ..both };
        assert_eq!(dos.write(), [1, 2, 0x02, 0x02]);
        for kept in [both, dos, Kept { dos: None, ..both }, Kept::default()] {
            let bytes = kept.write();
            assert_eq!(Kept::read(&bytes), Some(kept));
            for end in 0..bytes.len() {
                assert_eq!(Kept::read(&bytes[..end]), None, "cut to {end} bytes");
            }
            assert_eq!(Kept::read(&[&bytes[..], &[0]].concat()), None);
        }
        assert!(Kept::default().is_empty() && !dos.is_empty());
        for bad in [&[2, 2, 2, 2][..], &[1, 4], &[1, 2, 0x40, 0]] {
            assert_eq!(Kept::read(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn anything_that_is_read_is_written_again(bytes in proptest::collection::vec(0..4u8, 0..20)) {
            if let Some(kept) = Kept::read(&bytes) {
                prop_assert_eq!(kept.write(), bytes);
            }
        }
    }
}
