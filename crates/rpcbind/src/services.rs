//! Our services that clients look up, and their addresses.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use weir_nfs::rpcbind::{self, Entry, Netid};
use weir_nfs::{
    PROGRAM_MOUNT, PROGRAM_NFS, PROGRAM_NFSACL, PROGRAM_NLM, PROGRAM_NSM, PROGRAM_RPCBIND, acl,
    mount, nlm, nsm, v3,
};

/// A program and version that clients look for, and whether over UDP too.
type Service = (u32, u32, bool);

const PROGRAMS: [Service; 5] = [
    (PROGRAM_NFS, v3::VERSION, false),
    (PROGRAM_NFSACL, acl::VERSION, false),
    (PROGRAM_MOUNT, mount::VERSION, true),
    (PROGRAM_NLM, nlm::VERSION, true),
    (PROGRAM_NSM, nsm::VERSION, true),
];

const PORTMAPPER: [Service; 3] = [
    (PROGRAM_RPCBIND, rpcbind::PORTMAP, true),
    (PROGRAM_RPCBIND, rpcbind::RPCBIND_3, true),
    (PROGRAM_RPCBIND, rpcbind::RPCBIND_4, true),
];

/// Our programs at the addresses that NFS is served on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services {
    addresses: Vec<SocketAddr>,
}

impl Services {
    /// Of a server that listens on `nfs`. A portmapper names one port for each family of addresses:
    /// where several are listened on, the first is named.
    pub fn new(nfs: &[SocketAddr]) -> Self {
        Self { addresses: [true, false].iter().filter_map(|four| one_of(nfs, *four)).collect() }
    }

    /// The registrations to make with a portmapper.
    pub fn entries(&self) -> Vec<Entry> {
        let at = |address: &SocketAddr| entries(*address, &PROGRAMS);
        self.addresses.iter().flat_map(at).collect()
    }

    /// The registrations of our own portmapper, with itself.
    pub fn with_portmapper(&self) -> Vec<Entry> {
        let at = |address: &SocketAddr| {
            let own = SocketAddr::new(address.ip(), rpcbind::PORT);
            [entries(*address, &PROGRAMS), entries(own, &PORTMAPPER)].concat()
        };
        self.addresses.iter().flat_map(at).collect()
    }
}

fn entries(address: SocketAddr, services: &[Service]) -> Vec<Entry> {
    let both = |(program, version, udp): &Service| {
        let on = |stream| {
            let netid = Netid::of(&address.ip(), stream);
            Entry { program: *program, version: *version, netid, address }
        };
        std::iter::once(on(true)).chain(udp.then(|| on(false)))
    };
    services.iter().flat_map(both).collect()
}

/// The address of IPv4 (`four`) or IPv6 to name: the only one, or all addresses at the first port.
fn one_of(nfs: &[SocketAddr], four: bool) -> Option<SocketAddr> {
    let mut of_family = nfs.iter().filter(|address| address.is_ipv4() == four);
    let first = of_family.next()?;
    let Some(second) = of_family.next() else { return Some(*first) };
    if second.port() != first.port() || of_family.any(|other| other.port() != first.port()) {
        tracing::warn!(
            port = first.port(),
            "clients that use a portmapper find only the first port; specify other ports when mounting"
        );
    }
    let all: IpAddr =
        if four { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    Some(SocketAddr::new(all, first.port()))
}

/// The addresses of our own portmapper: every address that NFS listens on.
pub fn portmapper_addresses(nfs: &[SocketAddr]) -> Vec<SocketAddr> {
    let addresses: BTreeMap<IpAddr, SocketAddr> =
        nfs.iter().map(|nfs| (nfs.ip(), SocketAddr::new(nfs.ip(), rpcbind::PORT))).collect();
    addresses.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(addresses: &[&str]) -> Vec<SocketAddr> {
        addresses.iter().map(|address| address.parse().unwrap()).collect()
    }

    fn found(services: &Services, netid: Netid) -> Vec<(u32, String)> {
        let entries = services.entries();
        let of = entries.iter().filter(|entry| entry.netid == netid);
        of.map(|entry| (entry.program, entry.address.to_string())).collect()
    }

    #[test]
    fn nfs_is_registered_for_tcp_alone() {
        let services = Services::new(&at(&["10.0.0.1:2049"]));
        let place = || "10.0.0.1:2049".to_owned();
        let tcp = found(&services, Netid::Tcp);
        assert_eq!(tcp[0], (PROGRAM_NFS, place()));
        assert!(tcp.contains(&(PROGRAM_MOUNT, place())));
        assert!(found(&services, Netid::Udp).iter().all(|(program, _)| *program != PROGRAM_NFS));
        assert!(found(&services, Netid::Tcp6).is_empty());
    }

    #[test]
    fn several_addresses_of_a_family_are_told_as_all() {
        let services = Services::new(&at(&["10.0.0.1:2049", "[::1]:2050", "10.0.0.2:2049"]));
        assert_eq!(found(&services, Netid::Tcp)[0].1, "0.0.0.0:2049");
        assert_eq!(found(&services, Netid::Tcp6)[0].1, "[::1]:2050");
    }

    #[test]
    fn our_own_portmapper_lists_itself_on_port_111_of_each_address() {
        let nfs = at(&["10.0.0.1:2049", "10.0.0.1:2050", "[::]:2049"]);
        assert_eq!(portmapper_addresses(&nfs), at(&["10.0.0.1:111", "[::]:111"]));
        let entries = Services::new(&nfs).with_portmapper();
        let own = entries.iter().filter(|entry| entry.program == PROGRAM_RPCBIND);
        assert_eq!(own.clone().count(), 3 * 2 * 2);
        assert!(own.clone().all(|entry| entry.address.port() == 111));
    }
}
