//! The names that a CHALLENGE gives.

use super::av;
use crate::limits::{DNS_NAME_UNITS_MAX, NETBIOS_NAME_UNITS_MAX};
use crate::utf16::to_utf16;
use alloc::vec::Vec;

/// The names of the server. It is its own domain, as any server without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerNames {
    /// The NetBIOS name in UTF-16.
    pub(super) target: Vec<u8>,
    /// All names as pairs, without the end.
    pub(super) pairs: Vec<u8>,
}

impl ServerNames {
    /// Takes the NetBIOS name, which clients expect in upper case, and the DNS name. `None`: one is
    /// empty or too long.
    #[must_use]
    pub fn new(netbios: &str, dns: &str) -> Option<Self> {
        let netbios = bounded(netbios, NETBIOS_NAME_UNITS_MAX)?;
        let dns = bounded(dns, DNS_NAME_UNITS_MAX)?;
        let mut pairs = Vec::new();
        av::put(&mut pairs, av::NETBIOS_DOMAIN, &netbios);
        av::put(&mut pairs, av::NETBIOS_COMPUTER, &netbios);
        av::put(&mut pairs, av::DNS_DOMAIN, &dns);
        av::put(&mut pairs, av::DNS_COMPUTER, &dns);
        Some(Self { target: netbios, pairs })
    }
}

fn bounded(name: &str, units_max: usize) -> Option<Vec<u8>> {
    let units = name.encode_utf16().count();
    (1..=units_max).contains(&units).then(|| to_utf16(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_bounds() {
        assert!(ServerNames::new("", "a").is_none());
        assert!(ServerNames::new("A", "").is_none());
        assert!(ServerNames::new(&"A".repeat(15), &"a".repeat(255)).is_some());
        assert!(ServerNames::new(&"A".repeat(16), "a").is_none());
        assert!(ServerNames::new("A", &"a".repeat(256)).is_none());
    }
}
