//! The identity of a client of NLM: an address and the name it gives itself. The address alone is
//! not enough, since hosts share one behind a translator; the name alone anybody can say.

use crate::limits::NLM_NAME_BYTES_MAX;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use weir_core::Origin;
use weir_state::{Client, Owner, Protocol};

/// A host that asks for locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host {
    /// The host's address; IPv4 is never in its mapped form.
    pub address: IpAddr,
    /// The host's name for itself, at most 1,024 bytes.
    pub name: Vec<u8>,
}

const ADDRESS_BYTES: usize = 16;
/// Leads the names of owners of locks, and those of owners of shares, which have no process.
const OF_LOCKS: u8 = 0;
const OF_SHARES: u8 = 1;

impl Host {
    /// The host called `name` at `address`.
    #[must_use]
    pub fn new(address: IpAddr, name: &[u8]) -> Self {
        let name = name.get(..NLM_NAME_BYTES_MAX).unwrap_or(name).to_vec();
        Self { address: address.to_canonical(), name }
    }

    /// The host as the table of locks knows it.
    #[must_use]
    pub fn client(&self) -> Client {
        let address = match self.address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let id = [&address.octets()[..], &self.name].concat();
        Client::new(Protocol::Nlm, Origin::of(self.address), &id)
    }

    /// The host that the table knows as `client`; `None` if it is another protocol's.
    #[must_use]
    pub fn of(client: &Client) -> Option<Self> {
        if client.protocol() != Protocol::Nlm {
            return None;
        }
        let (address, name) = client.id().split_first_chunk::<ADDRESS_BYTES>()?;
        Some(Self::new(IpAddr::V6(Ipv6Addr::from(*address)), name))
    }

    /// The host's owner of locks with this process and these opaque bytes.
    pub(super) fn owner(&self, svid: u32, oh: &[u8]) -> Owner {
        Owner::new(self.client(), &[&[OF_LOCKS][..], &svid.to_be_bytes(), oh].concat())
    }

    /// The host's owner of shares with these opaque bytes.
    pub(super) fn sharer(&self, oh: &[u8]) -> Owner {
        Owner::new(self.client(), &[&[OF_SHARES][..], oh].concat())
    }
}

/// The process and the words of an owner of locks; `None` if it is another protocol's.
#[must_use]
pub fn process(owner: &Owner) -> Option<(u32, &[u8])> {
    if owner.client().protocol() != Protocol::Nlm {
        return None;
    }
    let (kind, rest) = owner.name().split_first()?;
    let (svid, oh) = rest.split_first_chunk()?;
    (*kind == OF_LOCKS).then_some((u32::from_be_bytes(*svid), oh))
}

/// Do these names mean the same host? A host may leave out its domain in one message and tell it in
/// another; case does not matter.
#[must_use]
pub fn same_name(one: &[u8], other: &[u8]) -> bool {
    let qualified = |name: &[u8]| name.contains(&b'.');
    let short = |name: &[u8]| name.split(|byte| *byte == b'.').next().unwrap_or(&[]).to_vec();
    if qualified(one) == qualified(other) {
        return one.eq_ignore_ascii_case(other);
    }
    short(one).eq_ignore_ascii_case(&short(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn a_host_reads_back_from_its_client() {
        for address in ["10.1.2.3", "fd00::7"] {
            let host = Host::new(address.parse().unwrap(), b"client-1");
            assert_eq!(Host::of(&host.client()), Some(host));
        }
    }

    #[test]
    fn a_mapped_address_is_the_address() {
        let v4 = Ipv4Addr::new(10, 1, 2, 3);
        let (plain, mapped) = (IpAddr::V4(v4), IpAddr::V6(v4.to_ipv6_mapped()));
        assert_eq!(Host::new(plain, b"a"), Host::new(mapped, b"a"));
    }

    #[test]
    fn locks_and_shares_have_different_owners() {
        let host = Host::new(IpAddr::V4(Ipv4Addr::LOCALHOST), b"a");
        let owner = host.owner(7, b"oh");
        assert_eq!(process(&owner), Some((7, &b"oh"[..])));
        assert_eq!(process(&host.sharer(b"\0\0\0\x07oh")), None);
    }

    #[test]
    fn a_domain_may_be_left_out() {
        assert!(same_name(b"one.example.org", b"ONE"));
        assert!(same_name(b"one", b"one.example.org"));
        assert!(!same_name(b"one.example.org", b"one.example.com"));
        assert!(!same_name(b"one", b"two"));
        assert!(!same_name(b"one", b""));
    }
}
