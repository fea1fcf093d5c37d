//! Values on the command line, read the same way everywhere.

use weir_core::units::{parse_bytes, parse_rate};

/// A size, such as `1.5TiB`, in bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

/// A ceiling in bytes per second, or `none`.
pub(crate) fn ceiling_rate(text: &str) -> Result<Ceiling, String> {
    if text == "none" { Ok(Ceiling(None)) } else { rate(text).map(|most| Ceiling(Some(most))) }
}

/// A ceiling in operations a second, or `none`.
pub(crate) fn ceiling_iops(text: &str) -> Result<Ceiling, String> {
    if text == "none" { Ok(Ceiling(None)) } else { iops(text).map(|most| Ceiling(Some(most))) }
}

/// A ceiling that is set or taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ceiling(pub(crate) Option<u64>);

/// Operations a second of a volume's own, or `auto`.
pub(crate) fn own_iops(text: &str) -> Result<Own, String> {
    if text == "auto" { Ok(Own(None)) } else { iops(text).map(|own| Own(Some(own))) }
}

/// What a volume is given, or what it has without that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Own(pub(crate) Option<u64>);

/// Operations a second, such as `1600`.
pub(crate) fn iops(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is no number of operations a second: write 1600"))
}

/// A rate, such as `48MiB/s`, in bytes per second.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    parse_rate(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_is_a_value_or_none() {
        assert_eq!(ceiling_rate("none"), Ok(Ceiling(None)));
        assert_eq!(ceiling_rate("1MiB/s"), Ok(Ceiling(Some(1 << 20))));
        assert_eq!(ceiling_iops("none"), Ok(Ceiling(None)));
        assert_eq!(ceiling_iops("1600"), Ok(Ceiling(Some(1600))));
        assert_eq!((own_iops("auto"), own_iops("16")), (Ok(Own(None)), Ok(Own(Some(16)))));
        assert!(ceiling_iops("16k").unwrap_err().contains("write 1600"));
        assert!(ceiling_rate("10").unwrap_err().contains("no unit"));
    }
}
