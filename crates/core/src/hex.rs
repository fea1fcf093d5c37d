//! Bytes as text, two hexadecimal digits each.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// The text of `bytes`, in small letters.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string can't fail.
        let _never = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of a text; `None` if it is none of bytes.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    pairs.iter().map(byte).collect::<Option<_>>().filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_were_written() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
        assert_eq!((encode(&[0x81, 0, 0xff]).as_str(), decode("")), ("8100ff", Some(Vec::new())));
        for wrong in ["1", "0g", "+1", "é", "012"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
