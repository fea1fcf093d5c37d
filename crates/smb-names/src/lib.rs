//! Names: UTF-16 on the wire, bytes in the store (MS-FSCC §2.1.5).
//!
//! A store's name is any bytes but `/` and NUL, a name on the wire is UTF-16 without a few
//! characters. [`to_wire`] and [`to_store`] map the names of the store to part of those of the
//! wire, and back without loss; [`Path`] is a path of a request, checked; [`Pattern`] is the search
//! pattern of a listing.
//!
//! Short names (8.3) are never made: no client of dialect 3.1.1 needs them, and they would have to
//! be unique in each directory.
//!
//! Not here: the search for a name without regard to case in a directory, which belongs to whoever
//! knows the directory.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

extern crate alloc;

mod limits;
mod mapping;
mod path;
mod pattern;
mod places;

pub use limits::{NAME_UNITS_MAX, PATH_COMPONENTS_MAX, PATH_UNITS_MAX, PATTERN_UNITS_MAX};
pub use mapping::{to_store, to_wire, wire_letters};
pub use path::Path;
pub use pattern::Pattern;

/// Why a name, path or pattern of a request is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A path begins with a separator: STATUS_INVALID_PARAMETER (MS-SMB2 §3.3.5.9).
    #[error("the path begins with a separator")]
    LeadingSeparator,
    /// Not UTF-16: an odd number of bytes, or half of a surrogate pair. STATUS_OBJECT_NAME_INVALID,
    /// as all others but [`NameError::LeadingSeparator`].
    #[error("the name is not UTF-16")]
    NotUtf16,
    /// A component is empty: two separators follow each other.
    #[error("a component is empty")]
    Empty,
    /// A character that no name has (MS-FSCC §2.1.5.1).
    #[error("the name has a forbidden character")]
    Forbidden,
    /// A colon: the name of a stream (MS-FSCC §2.1.5.3), of which files here have none but their
    /// data.
    #[error("the name is that of a stream")]
    Stream,
    /// `.` or `..`, which are no components on the wire (MS-FSCC §2.1.5.1).
    #[error("a component is `.` or `..`")]
    Dots,
    /// A component, a path or a pattern is over its bound.
    #[error("the name is too long")]
    TooLong,
}
