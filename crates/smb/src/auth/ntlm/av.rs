//! Pairs of an id and a value in CHALLENGE and in the response (MS-NLMP §2.2.2.1).

use crate::auth::Reason;
use crate::le::{Reader, Truncated};
use alloc::vec::Vec;

pub(super) const END: u16 = 0;
pub(super) const NETBIOS_COMPUTER: u16 = 1;
pub(super) const NETBIOS_DOMAIN: u16 = 2;
pub(super) const DNS_COMPUTER: u16 = 3;
pub(super) const DNS_DOMAIN: u16 = 4;
pub(super) const FLAGS: u16 = 6;
pub(super) const TIMESTAMP: u16 = 7;

/// In the value of [`FLAGS`]: the AUTHENTICATE message has a MIC.
pub(super) const HAS_MIC: u32 = 2;

/// Appends a pair. Values are shorter than 64 KiB by the bounds on names.
pub(super) fn put(out: &mut Vec<u8>, id: u16, value: &[u8]) {
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(value);
}

/// Pairs that are left to read.
pub(super) struct Pairs<'a>(Reader<'a>);

impl<'a> Pairs<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(Reader::new(bytes))
    }

    /// The next pair; `None` at the end that a pair marks. What follows it is padding.
    pub(super) fn next(&mut self) -> Result<Option<(u16, &'a [u8])>, Reason> {
        self.step().map_err(|_| Reason::Malformed("list of NTLM's pairs"))
    }

    fn step(&mut self) -> Result<Option<(u16, &'a [u8])>, Truncated> {
        let mut input = self.0;
        let id = input.u16()?;
        if id == END {
            return Ok(None);
        }
        let length = input.u16()?;
        let value = input.bytes(length.into())?;
        self.0 = input;
        Ok(Some((id, value)))
    }
}

/// Do the pairs announce a MIC? Any that does counts.
pub(super) fn has_mic(pairs: &[u8]) -> Result<bool, Reason> {
    let mut pairs = Pairs::new(pairs);
    let mut has_mic = false;
    while let Some((id, value)) = pairs.next()? {
        if id == FLAGS {
            let value = value.try_into().map_err(|_| Reason::Malformed("flags of NTLM's pairs"))?;
            has_mic |= u32::from_le_bytes(value) & HAS_MIC != 0;
        }
    }
    Ok(has_mic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_flag_is_found_among_others() {
        let pairs = |flags: &[u32]| {
            let mut out = Vec::new();
            put(&mut out, NETBIOS_DOMAIN, b"D\0");
            for flags in flags {
                put(&mut out, FLAGS, &flags.to_le_bytes());
            }
            put(&mut out, TIMESTAMP, &[6; 8]);
            put(&mut out, END, &[]);
            out.extend([6, 0, 4, 0, 2, 0, 0, 0]);
            out
        };
        assert_eq!(has_mic(&pairs(&[])), Ok(false));
        assert_eq!(has_mic(&pairs(&[1, 4])), Ok(false));
        assert_eq!(has_mic(&pairs(&[2])), Ok(true));
        assert_eq!(has_mic(&pairs(&[6, 0])), Ok(true));
    }

    #[test]
    fn lists_without_an_end_are_refused() {
        let mut out = Vec::new();
        put(&mut out, FLAGS, &2u32.to_le_bytes());
        put(&mut out, END, &[]);
        for len in 0..out.len() - 2 {
            assert!(has_mic(&out[..len]).is_err(), "{len}");
        }
        out[2] = 3;
        assert!(has_mic(&out).is_err());
    }

    proptest! {
        #[test]
        fn no_panic(bytes in prop::collection::vec(0..8u8, 0..60)) {
            let _ = has_mic(&bytes);
        }
    }
}
