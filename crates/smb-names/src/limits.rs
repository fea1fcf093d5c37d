//! Bounds on names. Beyond each: [`NameError::TooLong`](super::NameError::TooLong).

use weir_core::limits::NAME_BYTES_MAX;

/// Longest component of a path, in UTF-16 code units (MS-FSCC §2.1.5.2). The store's own bound of
/// [`NAME_BYTES_MAX`] bytes holds too.
pub const NAME_UNITS_MAX: usize = 255;

/// Longest path, in UTF-16 code units (MS-FSCC §2.1.5).
pub const PATH_UNITS_MAX: usize = 32_760;

/// Most components of a path. Each costs a look-up in the store; real trees are far from it.
pub const PATH_COMPONENTS_MAX: usize = 256;

/// Longest search pattern, in UTF-16 code units. A longer one says nothing about any name that a
/// shorter one can't.
pub const PATTERN_UNITS_MAX: usize = NAME_UNITS_MAX;

const _: () = assert!(NAME_BYTES_MAX <= NAME_UNITS_MAX, "every name of a store fits on the wire");
