//! The registered programs: the server's own, which stay, and a bounded number of others'.

use super::Netid;
use crate::limits::RPCBIND_ENTRIES_MAX;
use alloc::vec::Vec;
use core::net::SocketAddr;

/// A program at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The program.
    pub program: u32,
    /// The program's version.
    pub version: u32,
    /// The transport it is reached by.
    pub netid: Netid,
    /// The program's address; an unspecified one stands for every address of the machine.
    pub address: SocketAddr,
}

impl Entry {
    /// Does it name the same service, be it elsewhere?
    fn is_same(&self, other: &Self) -> bool {
        (self.program, self.version, self.netid) == (other.program, other.version, other.netid)
    }
}

/// The registrations of one portmapper.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    own: Vec<Entry>,
    others: Vec<Entry>,
}

impl Registry {
    /// A registry of the server's `own` programs, which nobody can change.
    #[must_use]
    pub const fn new(own: Vec<Entry>) -> Self {
        Self { own, others: Vec::new() }
    }

    /// Everything registered.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.own.iter().chain(&self.others)
    }

    /// Registers `entry`; `false` if the service is registered elsewhere already, or if
    /// [`RPCBIND_ENTRIES_MAX`] others are. To register the same again is no failure.
    pub fn set(&mut self, entry: Entry) -> bool {
        if let Some(known) = self.iter().find(|known| known.is_same(&entry)) {
            return known.address == entry.address;
        }
        let room = self.others.len() < RPCBIND_ENTRIES_MAX;
        if room {
            self.others.push(entry);
        }
        room
    }

    /// Forgets a program's version on one transport, or on all with no `netid`; `false` if nothing
    /// was registered that may be forgotten.
    pub fn unset(&mut self, program: u32, version: u32, netid: Option<Netid>) -> bool {
        let before = self.others.len();
        self.others.retain(|entry| {
            (entry.program, entry.version) != (program, version)
                || netid.is_some_and(|netid| netid != entry.netid)
        });
        self.others.len() < before
    }

    /// The program in exactly this version.
    #[must_use]
    pub fn exactly(&self, program: u32, version: u32, netid: Netid) -> Option<&Entry> {
        self.iter()
            .find(|entry| (entry.program, entry.version, entry.netid) == (program, version, netid))
    }

    /// The program in this version, or else in its highest: a caller of another version is told at
    /// that address which versions there are (RFC 1833 §2.2.1 and §3.2, GETADDR and GETPORT).
    #[must_use]
    pub fn find(&self, program: u32, version: u32, netid: Netid) -> Option<&Entry> {
        let of_program =
            self.iter().filter(|entry| entry.program == program && entry.netid == netid);
        self.exactly(program, version, netid)
            .or_else(|| of_program.max_by_key(|entry| entry.version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(program: u32, version: u32, port: u16) -> Entry {
        let address = SocketAddr::new([0, 0, 0, 0].into(), port);
        Entry { program, version, netid: Netid::Tcp, address }
    }

    #[test]
    fn others_come_and_go_and_the_servers_own_stay() {
        let mut registry = Registry::new(Vec::from([entry(100_003, 3, 2049)]));
        assert!(registry.set(entry(100_003, 3, 2049)));
        assert!(!registry.set(entry(100_003, 3, 666)), "taken over");
        assert!(!registry.unset(100_003, 3, None), "the server's own was forgotten");
        assert!(registry.set(entry(100_021, 4, 700)));
        assert!(!registry.set(entry(100_021, 4, 701)));
        assert!(!registry.unset(100_021, 4, Some(Netid::Udp)));
        assert!(registry.unset(100_021, 4, Some(Netid::Tcp)));
        assert!(registry.set(entry(100_021, 4, 701)));
        assert_eq!(registry.iter().count(), 2);
    }

    #[test]
    fn the_number_of_others_is_bounded() {
        let mut registry = Registry::default();
        let kept = (0..1000).filter(|program| registry.set(entry(*program, 1, 9))).count();
        assert_eq!(kept, RPCBIND_ENTRIES_MAX);
        assert!(registry.unset(5, 1, None) && registry.set(entry(2000, 1, 9)));
    }

    #[test]
    fn another_version_is_found_unless_the_exact_one_is_wanted() {
        let registry = Registry::new(Vec::from([entry(1, 1, 10), entry(1, 3, 30)]));
        let find = |version| registry.find(1, version, Netid::Tcp).map(|entry| entry.version);
        assert_eq!((find(1), find(2), find(3)), (Some(1), Some(3), Some(3)));
        assert_eq!(registry.exactly(1, 2, Netid::Tcp), None);
        assert_eq!(registry.find(1, 1, Netid::Tcp6), None);
    }
}
