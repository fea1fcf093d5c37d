//! An address with its place on the machine, checked. Not here: whether the machine has that
//! interface.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Longest name of an interface in Linux, without the ending zero (`IFNAMSIZ`).
const INTERFACE_BYTES_MAX: usize = 15;

/// The name of a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface(String);

/// Where an address is on the machine that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    address: IpAddr,
    prefix: u8,
    interface: Interface,
}

/// Why an address cannot be held.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPlace {
    /// No unicast address of one machine on a network.
    #[error(
        "{0} is not an address that can move between machines: give a unicast address of a network, no loopback or link-local one"
    )]
    Address(IpAddr),
    /// A prefix that is longer than the address, or 0.
    #[error("a prefix of {prefix} bits does not fit {address}: give 1 to {max}")]
    Prefix {
        /// The address.
        address: IpAddr,
        /// The given length in bits.
        prefix: u8,
        /// The longest for this kind of address.
        max: u8,
    },
    /// A name that no interface can have.
    #[error("`{0}` cannot be the name of a network interface")]
    Interface(String),
}

impl Interface {
    /// Checks `name` as Linux does (`dev_valid_name`).
    ///
    /// # Errors
    /// [`InvalidPlace::Interface`]
    pub fn parse(name: &str) -> Result<Self, InvalidPlace> {
        let is_bad = |byte: u8| byte == b'/' || byte == b':' || !byte.is_ascii_graphic();
        let length = name.len();
        if length == 0
            || length > INTERFACE_BYTES_MAX
            || name == "."
            || name == ".."
            || name.bytes().any(is_bad)
        {
            return Err(InvalidPlace::Interface(name.escape_debug().collect()));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Place {
    /// `address` with a prefix of `prefix` bits on `interface`. 32 or 128 bits leave the routes of
    /// the machine as they are, and are right where it has an address of its own in that network.
    ///
    /// # Errors
    /// [`InvalidPlace`] if the address is no unicast address of a network, or the prefix does not
    /// fit.
    pub fn new(address: IpAddr, prefix: u8, interface: Interface) -> Result<Self, InvalidPlace> {
        let (movable, max) = match address {
            IpAddr::V4(v4) => {
                let bad = v4.is_unspecified()
                    || v4.is_loopback()
                    || v4.is_multicast()
                    || v4.is_broadcast()
                    || v4.is_link_local();
                (!bad, 32)
            }
            IpAddr::V6(v6) => (is_movable(v6), 128),
        };
        if !movable {
            return Err(InvalidPlace::Address(address));
        }
        if prefix == 0 || prefix > max {
            return Err(InvalidPlace::Prefix { address, prefix, max });
        }
        Ok(Self { address, prefix, interface })
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The length of its prefix in bits.
    #[must_use]
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// The interface that has it.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }
}

fn is_movable(address: Ipv6Addr) -> bool {
    !(address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address.is_unicast_link_local()
        || address.to_ipv4_mapped().is_some())
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} on {}", self.address, self.prefix, self.interface.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(address: &str, prefix: u8) -> Result<Place, InvalidPlace> {
        Place::new(address.parse().unwrap(), prefix, Interface::parse("eth0").unwrap())
    }

    #[test]
    fn names_that_no_interface_has_are_refused() {
        for name in ["eth0", "enp3s0f1", "bond0.17", "a", "fifteen-letters"] {
            assert_eq!(Interface::parse(name).unwrap().name(), name);
        }
        for name in ["", ".", "..", "a/b", "a b", "eth0:1", "sixteen--letters", "a\n", "ä"] {
            assert!(Interface::parse(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn only_unicast_addresses_of_networks_can_move() {
        for (address, prefix) in
            [("10.0.0.9", 32), ("192.0.2.1", 24), ("fd00::9", 128), ("2001:db8::1", 64)]
        {
            let shown = place(address, prefix).unwrap().to_string();
            assert_eq!(shown, format!("{address}/{prefix} on eth0"));
        }
        for address in [
            "0.0.0.0",
            "127.0.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "169.254.1.1",
            "::",
            "::1",
            "ff02::1",
            "fe80::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(matches!(place(address, 32), Err(InvalidPlace::Address(_))), "{address}");
        }
        for (address, prefix) in [("10.0.0.9", 0), ("10.0.0.9", 33), ("fd00::9", 129)] {
            assert!(matches!(place(address, prefix), Err(InvalidPlace::Prefix { .. })));
        }
    }
}
