//! As much of DER (X.690) as SPNEGO takes: elements with one-byte tags and definite lengths. Not a
//! validator: a length in more bytes than it needs is read all the same.

use super::Reason;
use alloc::vec::Vec;

pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const OID: u8 = 0x06;
pub(super) const ENUMERATED: u8 = 0x0A;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const GENERAL_STRING: u8 = 0x1B;
/// `[APPLICATION 0]`, constructed.
pub(super) const APPLICATION_0: u8 = 0x60;

/// The tag of `[number]`, constructed.
pub(super) const fn context(number: u8) -> u8 {
    0xA0 | number
}

pub(super) const MALFORMED: Reason = Reason::Malformed("SPNEGO token");

/// Elements that are left to read.
#[derive(Clone, Copy)]
pub(super) struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// The content of the next element, which must have `tag`.
    pub(super) fn take(&mut self, tag: u8) -> Result<&'a [u8], Reason> {
        self.take_if(tag)?.ok_or(MALFORMED)
    }

    /// The content of the next element if it has `tag`.
    pub(super) fn take_if(&mut self, tag: u8) -> Result<Option<&'a [u8]>, Reason> {
        match self.0.split_first() {
            Some((first, after)) if *first == tag => {
                let (length, after) = length(after)?;
                let (content, rest) = after.split_at_checked(length).ok_or(MALFORMED)?;
                self.0 = rest;
                Ok(Some(content))
            }
            _ => Ok(None),
        }
    }

    /// The elements in the next element.
    pub(super) fn enter(&mut self, tag: u8) -> Result<Self, Reason> {
        self.take(tag).map(Self)
    }

    /// The elements in the next element if it has `tag`.
    pub(super) fn enter_if(&mut self, tag: u8) -> Result<Option<Self>, Reason> {
        Ok(self.take_if(tag)?.map(Self))
    }
}

fn length(bytes: &[u8]) -> Result<(usize, &[u8]), Reason> {
    let (first, rest) = bytes.split_first().ok_or(MALFORMED)?;
    if *first < 0x80 {
        return Ok((usize::from(*first), rest));
    }
    // No length at all would be the indefinite form, which DER lacks.
    let count = usize::from(*first & 0x7F);
    if !(1..=4).contains(&count) {
        return Err(MALFORMED);
    }
    let (digits, rest) = rest.split_at_checked(count).ok_or(MALFORMED)?;
    let length = digits.iter().fold(0, |length: u32, digit| (length << 8) | u32::from(*digit));
    Ok((usize::try_from(length).map_err(|_| MALFORMED)?, rest))
}

/// An element of `parts` in a row.
pub(super) fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let digits = length.to_be_bytes();
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let digits = digits.get(zeros..).unwrap_or_default();
    let mut out = Vec::with_capacity(length.saturating_add(6));
    out.push(tag);
    match (digits, u8::try_from(digits.len())) {
        ([], _) => out.push(0),
        ([only], _) if *only < 0x80 => out.push(*only),
        (digits, count) => {
            // Not over 8, the digits of a length.
            out.push(0x80 | count.unwrap_or_default());
            out.extend_from_slice(digits);
        }
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths() {
        assert_eq!(element(4, &[]), [4, 0]);
        assert_eq!(element(4, &[b"a", b"bc"]), *b"\x04\x03abc");
        assert_eq!(element(4, &[&[0; 0x7F]])[..2], [4, 0x7F]);
        assert_eq!(element(4, &[&[0; 0x80]])[..3], [4, 0x81, 0x80]);
        assert_eq!(element(4, &[&[0; 0x100]])[..4], [4, 0x82, 1, 0]);
        assert_eq!(element(4, &[&[0; 0x1_0000]])[..5], [4, 0x83, 1, 0, 0]);
    }

    #[test]
    fn other_lengths_are_read_or_refused() {
        let take = |bytes: &'static [u8]| Der::new(bytes).take(4);
        assert_eq!(take(&[4, 0x81, 1, 9]), Ok(&[9][..]));
        assert_eq!(take(&[4, 0x84, 0, 0, 0, 1, 9]), Ok(&[9][..]));
        for refused in [
            &[][..],
            &[4],
            &[4, 1],
            &[5, 0],
            &[4, 0x80, 9, 0, 0],
            &[4, 0x81],
            &[4, 0x82, 1],
            &[4, 0x84, 0xFF, 0xFF, 0xFF, 0xFF, 9],
            &[4, 0x85, 0, 0, 0, 0, 1, 9],
            &[4, 0xFF, 9],
        ] {
            assert_eq!(take(refused), Err(MALFORMED), "{refused:?}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(content in prop::collection::vec(any::<u8>(), 0..70_000)) {
            let bytes = element(SEQUENCE, &[&content]);
            let mut der = Der::new(&bytes);
            prop_assert_eq!(der.take_if(OID), Ok(None));
            prop_assert_eq!(der.take(SEQUENCE), Ok(&content[..]));
            prop_assert!(der.rest().is_empty());
        }

        #[test]
        fn no_panic(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let _ = Der::new(&bytes).take(bytes.first().copied().unwrap_or(0));
        }
    }
}
