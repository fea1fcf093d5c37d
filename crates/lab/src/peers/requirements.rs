//! The requirements of comparisons on the machine and on their namespaces: Ganesha requires a
//! port mapper, which must be separate from the machine's.

use crate::process::run;
use crate::sandbox::{self, loopback_up};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// The programs that the runner needs besides Weir, and the Debian packages that bring them.
const PROGRAMS: [(&str, &str); 8] = [
    ("ganesha.nfsd", "nfs-ganesha"),
    ("rpcbind", "rpcbind"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mount", "mount"),
    ("umount", "mount"),
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
];

/// Ganesha's part that serves local directories: a file of the package `nfs-ganesha-vfs`.
const VFS_PLACES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/ganesha/libfsalvfs.so",
    "/usr/lib/aarch64-linux-gnu/ganesha/libfsalvfs.so",
    "/usr/lib64/ganesha/libfsalvfs.so",
];

/// Checks that everything needed is here.
///
/// # Errors
/// Names all that is missing, and how to get it.
pub(crate) fn check() -> Result<()> {
    sandbox::programs("comparisons", &[&PROGRAMS[..], &super::smb::PROGRAMS].concat())?;
    if !VFS_PLACES.iter().any(|place| Path::new(place).exists()) {
        bail!("comparisons need Ganesha's VFS module: apt-get install nfs-ganesha-vfs");
    }
    if !sandbox::is_root() {
        bail!("the comparison mounts file systems and starts Ganesha: run it as root");
    }
    Ok(())
}

/// Makes the fresh namespaces usable: loopback up, and a private `/run` for the port mapper's
/// socket. Names of addresses resolve only where an address besides 127.0.0.1 exists, hence one
/// of those kept for documentation (RFC 5737).
pub(crate) fn furnish() -> Result<()> {
    loopback_up()?;
    run(Command::new("ip").args(["addr", "add", "192.0.2.1/32", "dev", "lo"]))?;
    run(Command::new("mount").args(["-t", "tmpfs", "tmpfs", "/run"]))?;
    std::fs::create_dir_all("/run/rpcbind").context("can't make /run/rpcbind")
}
