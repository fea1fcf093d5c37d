//! The last line of a backup: a checksum over everything before it. It finds damage, not forgery:
//! whoever can write the file can write the checksum.
//!
//! The line is text after the database, where SQLite reads nothing, so that a backup can be checked
//! and opened with other tools too:
//!
//! ```text
//! \nweir-backup-sha256:<64 hexadecimal digits>\n
//! ```

use ring::digest::{SHA256, digest};
use std::fmt::Write as _;

const WORD: &[u8] = b"\nweir-backup-sha256:";
const DIGITS: usize = 64;
/// Length of the line, in bytes.
const LENGTH: usize = WORD.len() + DIGITS + 1;

/// The checksum's verdict on a file.
pub(crate) enum Seal<'a> {
    /// The bytes before the line match the checksum.
    Whole {
        /// The bytes before the line.
        content: &'a [u8],
        /// The checksum: SHA-256 in hexadecimal digits.
        sha256: String,
    },
    /// The bytes do not match, or the line itself is damaged.
    Broken,
    /// The file has no such line.
    Missing,
}

/// Appends the line to `content`.
pub(crate) fn close(mut content: Vec<u8>) -> Vec<u8> {
    let digits = sha256(&content);
    content.extend_from_slice(WORD);
    content.extend_from_slice(digits.as_bytes());
    content.push(b'\n');
    content
}

/// Reads the line at the end of `bytes`, and checks the checksum.
pub(crate) fn open(bytes: &[u8]) -> Seal<'_> {
    let Some((content, line)) =
        bytes.len().checked_sub(LENGTH).and_then(|at| bytes.split_at_checked(at))
    else {
        return Seal::Missing;
    };
    let Some(digits) = line.strip_prefix(WORD).and_then(|rest| rest.strip_suffix(b"\n")) else {
        return Seal::Missing;
    };
    let sha256 = sha256(content);
    // The digits must be in lower case, as the server writes them: digits in capitals are damage.
    if digits == sha256.as_bytes() { Seal::Whole { content, sha256 } } else { Seal::Broken }
}

fn sha256(content: &[u8]) -> String {
    let mut digits = String::with_capacity(DIGITS);
    for byte in digest(&SHA256, content).as_ref() {
        // Writing to a string can't fail.
        let _never = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_vouches_for_what_is_before_it() {
        // The example of FIPS 180-4.
        let sealed = close(b"abc".to_vec());
        let wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sealed, format!("abc\nweir-backup-sha256:{wanted}\n").as_bytes());
        let Seal::Whole { content, sha256 } = open(&sealed) else { panic!("it is whole") };
        assert_eq!((content, sha256.as_str()), (&b"abc"[..], wanted));
        assert!(matches!(open(b"abc"), Seal::Missing));
        assert!(matches!(open(b""), Seal::Missing));
        assert!(matches!(open(&close(Vec::new())), Seal::Whole { content: b"", .. }));
    }

    #[test]
    fn whatever_bit_is_changed_it_no_longer_does() {
        let sealed = close(b"abc".to_vec());
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(open(&changed), Seal::Whole { .. }), "{bit}");
        }
    }
}
