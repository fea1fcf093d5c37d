//! A network and a mount namespace of its own: Ganesha insists on a port mapper, which must not
//! meet the machine's, and mounts should go when the run does.

use super::disk::run;
use anyhow::{Context, Result, bail};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the runner needs besides Weir, and the Debian package that brings it.
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
pub(super) fn check() -> Result<()> {
    let mut missing = Vec::new();
    let mut packages = Vec::new();
    for (program, package) in PROGRAMS {
        if find(program).is_none() {
            missing.push(program);
            packages.push(package);
        }
    }
    if !VFS_PLACES.iter().any(|place| Path::new(place).exists()) {
        missing.push("Ganesha's VFS module");
        packages.push("nfs-ganesha-vfs");
    }
    if !missing.is_empty() {
        bail!(
            "the comparison needs {}: apt-get install {}",
            missing.join(", "),
            packages.join(" ")
        );
    }
    if !rustix::process::geteuid().is_root() {
        bail!("the comparison mounts file systems and starts Ganesha: run it as root");
    }
    Ok(())
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(system)
        .map(|dir| dir.join(program))
        .find(|file| file.exists())
}

/// Becomes this very program again, inside namespaces of its own, with `--inside` added.
///
/// # Errors
/// Returns only if that fails.
pub(super) fn enter() -> Result<()> {
    let own = std::env::current_exe().context("can't find this program")?;
    let error = Command::new("unshare")
        .args(["--net", "--mount", "--propagation", "private", "--"])
        .arg(own)
        .arg("--inside")
        .args(std::env::args_os().skip(1))
        .exec();
    Err(error).context("can't run unshare")
}

/// Makes the fresh namespaces usable: loopback up, and a private `/run` for the port mapper's
/// socket. Names of addresses resolve only where an address besides 127.0.0.1 exists, hence one
/// of those kept for documentation (RFC 5737).
pub(super) fn furnish() -> Result<()> {
    run(Command::new("ip").args(["link", "set", "lo", "up"]))?;
    run(Command::new("ip").args(["addr", "add", "192.0.2.1/32", "dev", "lo"]))?;
    run(Command::new("mount").args(["-t", "tmpfs", "tmpfs", "/run"]))?;
    std::fs::create_dir_all("/run/rpcbind").context("can't make /run/rpcbind")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_the_usual_places() {
        assert!(find("ls").is_some());
        assert!(find("no-such-program-here").is_none());
    }
}
