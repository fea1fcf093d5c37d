//! The mounts of clients, as MOUNT's DUMP shows them. Advice only: no right depends on it, and
//! clients that vanish leave their entry behind (RFC 1813 §5.2.2).

use crate::limits::MOUNTS_MAX;
use crate::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::net::IpAddr;

/// The list of mounts, at most [`MOUNTS_MAX`]; the oldest is forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    entries: Mutex<VecDeque<(IpAddr, String)>>,
}

impl Mounts {
    /// Notes that `host` mounted `path`.
    pub(crate) fn add(&self, host: IpAddr, path: &str) {
        let mut entries = lock(&self.entries);
        entries.retain(|(h, p)| !(*h == host && p == path));
        if entries.len() == MOUNTS_MAX {
            entries.pop_front();
        }
        entries.push_back((host, path.to_owned()));
    }

    /// Forgets one mount of `host`, or all with no path.
    pub(crate) fn remove(&self, host: IpAddr, path: Option<&str>) {
        lock(&self.entries).retain(|(h, p)| *h != host || path.is_some_and(|path| path != p));
    }

    /// All of them, oldest first.
    pub(crate) fn list(&self) -> Vec<(IpAddr, String)> {
        lock(&self.entries).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_unique_and_bounded() {
        let mounts = Mounts::default();
        let host = |n: u32| IpAddr::from(n.to_be_bytes());
        mounts.add(host(1), "/a");
        mounts.add(host(1), "/a");
        mounts.add(host(1), "/b");
        assert_eq!(mounts.list().len(), 2);
        mounts.remove(host(1), Some("/a"));
        assert_eq!(mounts.list(), [(host(1), "/b".to_owned())]);
        mounts.remove(host(1), None);
        assert!(mounts.list().is_empty());
        for n in 0..5000 {
            mounts.add(host(n), "/a");
        }
        assert_eq!(mounts.list().len(), MOUNTS_MAX);
        assert_eq!(mounts.list()[0].0, host(5000 - 4096));
    }
}
