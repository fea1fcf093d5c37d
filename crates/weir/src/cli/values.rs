//! Values on the command line, read the same way everywhere.

use weir_core::units::{parse_bytes, parse_rate};

/// A size, such as `1.5TiB`, in bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

/// A rate, such as `48MiB/s`, in bytes per second.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    parse_rate(text).map_err(|error| error.to_string())
}
