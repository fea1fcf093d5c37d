//! The path of a request: components apart, each checked.

use super::NameError;
use super::limits::{PATH_COMPONENTS_MAX, PATH_UNITS_MAX};
use super::mapping::to_store;
use alloc::vec::Vec;
use weir_core::Name;

/// A path from the root of a share, in names of the store. No component is `.` or `..`, so it
/// leads nowhere else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path {
    /// The components with `/` between them, which no name holds.
    joined: Vec<u8>,
    /// Ends in a separator.
    directory: bool,
}

impl Path {
    /// Checks a path from the wire: UTF-16, little-endian, separators `\`. The empty one is the
    /// root.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn parse(wire: &[u8]) -> Result<Self, NameError> {
        if wire.len() / 2 > PATH_UNITS_MAX {
            return Err(NameError::TooLong);
        }
        let (units, odd) = wire.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(NameError::NotUtf16);
        }
        let units = match units {
            [] => return Ok(Self::default()),
            [SEPARATOR, ..] => return Err(NameError::LeadingSeparator),
            units => units,
        };
        let (units, directory) = match units.split_last() {
            Some((&SEPARATOR, before)) => (before, true),
            _ => (units, false),
        };
        let mut joined = Vec::with_capacity(units.len());
        for (count, component) in (1_usize..).zip(units.split(|unit| *unit == SEPARATOR)) {
            if count > PATH_COMPONENTS_MAX {
                return Err(NameError::TooLong);
            }
            if count > 1 {
                joined.push(b'/');
            }
            to_store(component.as_flattened(), &mut joined)?;
        }
        Ok(Self { joined, directory })
    }

    /// Is this the root of the share?
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.joined.is_empty()
    }

    /// Does the path end in a separator, and so name a directory if anything (MS-FSA §2.1.5.1)?
    #[must_use]
    pub fn names_directory(&self) -> bool {
        self.directory
    }

    /// The components from the root on.
    pub fn components(&self) -> impl Iterator<Item = Name<'_>> {
        names(&self.joined)
    }

    /// The components of the directory that the last one is in, and the last one; nothing for the
    /// root.
    #[must_use]
    pub fn split_last(&self) -> Option<(impl Iterator<Item = Name<'_>>, Name<'_>)> {
        let last = self.joined.rsplit(|byte| *byte == b'/').next()?;
        let before = self.joined.len().checked_sub(last.len())?;
        let directory = self.joined.get(..before)?;
        Some((names(directory), Name::new(last).ok()?))
    }
}

const SEPARATOR: [u8; 2] = [b'\\', 0];

/// The names in `joined`, which are all valid; the empty path has none.
fn names(joined: &[u8]) -> impl Iterator<Item = Name<'_>> {
    joined.split(|byte| *byte == b'/').filter_map(|name| Name::new(name).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Path, NameError> {
        Path::parse(&text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>())
    }

    fn parts(path: &Path) -> Vec<&[u8]> {
        path.components().map(Name::as_bytes).collect()
    }

    #[test]
    fn a_path_is_split_at_its_separators() {
        let path = parse("a\\größe\\x\u{F022}y").unwrap();
        assert_eq!(parts(&path), [&b"a"[..], "größe".as_bytes(), b"x:y"]);
        assert!(!path.is_root() && !path.names_directory());
        let (directory, last) = path.split_last().unwrap();
        assert_eq!(directory.map(Name::as_bytes).collect::<Vec<_>>(), parts(&path)[..2]);
        assert_eq!(last.as_bytes(), b"x:y");
        let path = parse("a\\").unwrap();
        assert!(path.names_directory());
        let (directory, last) = path.split_last().unwrap();
        assert_eq!((directory.count(), last.as_bytes()), (0, &b"a"[..]));
    }

    #[test]
    fn the_empty_path_is_the_root() {
        let root = parse("").unwrap();
        assert!(root.is_root() && root.split_last().is_none());
        assert_eq!(root.components().count(), 0);
    }

    #[test]
    fn paths_that_are_none_are_refused() {
        for (path, error) in [
            ("\\", NameError::LeadingSeparator),
            ("\\a", NameError::LeadingSeparator),
            ("a\\\\b", NameError::Empty),
            ("a\\\\", NameError::Empty),
            ("a\\..\\b", NameError::Dots),
            ("..", NameError::Dots),
            (".\\a", NameError::Dots),
            ("a\\.\\", NameError::Dots),
            ("a/../b", NameError::Forbidden),
            ("a:$DATA", NameError::Stream),
            ("a\\b::$DATA", NameError::Stream),
            ("a\0b", NameError::Forbidden),
        ] {
            assert_eq!(parse(path), Err(error), "{path:?}");
        }
        assert_eq!(Path::parse(b"a"), Err(NameError::NotUtf16));
        assert_eq!(Path::parse(&[0, 0xD8, b'\\', 0, 0, 0xDC]), Err(NameError::NotUtf16));
    }

    #[test]
    fn length_and_depth_are_bounded() {
        assert!(parse(&"a\\".repeat(PATH_COMPONENTS_MAX)).is_ok());
        assert_eq!(parse(&"a\\".repeat(PATH_COMPONENTS_MAX + 1)), Err(NameError::TooLong));
        let long = "a".repeat(255) + "\\";
        let whole = PATH_UNITS_MAX / long.len();
        assert!(parse(&long.repeat(whole)).is_ok());
        assert_eq!(parse(&long.repeat(whole + 1)), Err(NameError::TooLong));
        assert_eq!(parse(&"a".repeat(32_768)), Err(NameError::TooLong));
    }

    proptest! {
        #[test]
        fn components_are_names_and_lead_nowhere_else(sent in "[a.\\\\:\u{F029}é]{0,20}") {
            if let Ok(path) = parse(&sent) {
                let separators = sent.trim_end_matches('\\').matches('\\').count();
                let expected = if sent.is_empty() { 0 } else { separators + 1 };
                prop_assert_eq!(path.components().count(), expected);
                prop_assert!(path.components().all(|name| !name.is_special()));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(sent in any::<Vec<u8>>()) {
            let _ = Path::parse(&sent);
        }
    }
}
