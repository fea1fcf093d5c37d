//! The charge of a request in credits.

/// The credits of a request of which the larger payload, sent or expected, has `bytes` bytes: one
/// for each begun 64 KiB, at least one (MS-SMB2 §3.3.5.2.5).
#[inline]
#[must_use]
pub const fn charge_for(bytes: u32) -> u16 {
    // The shift leaves sixteen bits; the saturation meets only requests far beyond every bound.
    let [low, high, ..] = (bytes.saturating_sub(1) >> 16).to_le_bytes();
    u16::from_le_bytes([low, high]).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_begun_64_kibibytes_cost_one_credit() {
        for (bytes, charge) in [
            (0, 1),
            (1, 1),
            (65_536, 1),
            (65_537, 2),
            (131_072, 2),
            (1 << 20, 16),
            ((1 << 20) + 1, 17),
            (u32::MAX, u16::MAX),
        ] {
            assert_eq!(charge_for(bytes), charge, "{bytes} bytes");
        }
    }
}
