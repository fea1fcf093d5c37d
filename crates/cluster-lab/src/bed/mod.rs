//! The bed of a cluster: a bridge with machines (network namespaces), etcd and Ceph on one of them,
//! and gateways. Not here: what is expected of them.

pub(crate) mod clock;
mod engines;
mod gateway;
mod network;
mod operator;

pub(crate) use engines::Engines;
pub(crate) use gateway::{Gateway, NFS_PORT, Programs};
pub(crate) use network::{
    CLIENTS, Cut, Machine, Network, Side, address_of, cable, cluster_address,
};
pub(crate) use operator::Operator;

use anyhow::{Result, bail, ensure};
use std::path::Path;
use weir_lab::sandbox;

/// Programs that a cluster needs, and the Debian packages that bring them.
const PROGRAMS: [(&str, &str); 14] = [
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
    ("python3", "python3"),
    ("nft", "nftables"),
    ("etcd", "etcd-server"),
    ("etcdctl", "etcd-client"),
    ("ceph-mon", "ceph-mon"),
    ("ceph-mgr", "ceph-mgr"),
    ("ceph-osd", "ceph-osd"),
    ("ceph-mds", "ceph-mds"),
    ("ceph-authtool", "ceph-common"),
    ("monmaptool", "ceph-common"),
    ("ceph", "ceph-common"),
    ("cc", "gcc"),
];

/// Libraries, likewise.
const LIBRARIES: [(&str, &str); 2] =
    [("libcephfs.so.2", "libcephfs2"), ("librados.so.2", "librados2")];

/// Places of libraries.
const LIBRARY_DIRECTORIES: [&str; 4] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];

/// Checks that this machine has everything that a cluster needs.
///
/// # Errors
/// Says what is missing, and how to get it.
pub(crate) fn requirements() -> Result<()> {
    ensure!(sandbox::is_root(), "campaigns with a cluster need root: they make network namespaces");
    sandbox::programs("campaigns with a cluster", &PROGRAMS)?;
    for (library, package) in LIBRARIES {
        let is_there = |place: &&str| Path::new(place).join(library).exists();
        if !LIBRARY_DIRECTORIES.iter().any(is_there) {
            bail!("campaigns with a cluster need {library}: apt-get install {package}");
        }
    }
    Ok(())
}
