//! The programs the tests need: checked, and installed from the package registries if missing.

use crate::process;
use anyhow::{Context, Result, bail};
use std::fs;
use std::process::Command;

/// The directory of the tools that come from crates.io.
pub(crate) const CARGO_DENY: &str = "target/tools/bin/cargo-deny";
const CARGO_DENY_VERSION: &str = "0.20.2";
pub(crate) const PJDFSTEST: &str = "target/tools/bin/pjdfstest";
const PJDFSTEST_VERSION: &str = "0.2.2";

/// A program (or a file by its whole path) and the Debian package that brings it.
type Needed = (&'static str, &'static str);

/// For `make test`.
const FOR_TESTS: [Needed; 44] = [
    ("cc", "gcc"),
    ("c++", "g++"),
    ("make", "make"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("losetup", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("xfs_io", "xfsprogs"),
    ("linux.uml", "user-mode-linux"),
    ("modprobe", "kmod"),
    ("busybox", "busybox-static"),
    ("mount.nfs", "nfs-common"),
    ("nfs-cp", "libnfs-utils"),
    ("rpcbind", "rpcbind"),
    ("setfacl", "acl"),
    ("dh", "debhelper"),
    ("dpkg-buildpackage", "dpkg-dev"),
    ("lintian", "lintian"),
    ("mandoc", "mandoc"),
    ("debootstrap", "debootstrap"),
    ("systemd-nspawn", "systemd-container"),
    ("curl", "curl"),
    ("openssl", "openssl"),
    ("chromium", "chromium"),
    // Texts have a size only where there is a font.
    ("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "fonts-dejavu-core"),
    ("python3", "python3"),
    // Its part that makes virtual environments is no program.
    ("/usr/lib/python3.11/ensurepip/__init__.py", "python3-venv"),
    ("jq", "jq"),
    ("smbclient", "smbclient"),
    ("smbtorture", "samba-testsuite"),
    ("mount.cifs", "cifs-utils"),
    // For the client of etcd: its messages are compiled, with definitions of a package of its own.
    ("protoc", "protobuf-compiler"),
    ("/usr/include/google/protobuf/descriptor.proto", "libprotobuf-dev"),
    ("etcd", "etcd-server"),
    ("etcdctl", "etcd-client"),
    // For volumes on CephFS.
    ("ceph-mon", "ceph-mon"),
    ("ceph-mgr", "ceph-mgr"),
    ("ceph-osd", "ceph-osd"),
    ("ceph-mds", "ceph-mds"),
    ("ceph", "ceph-common"),
    ("/usr/lib/x86_64-linux-gnu/libcephfs.so.2", "libcephfs2"),
    ("/usr/lib/x86_64-linux-gnu/librados.so.2", "librados2"),
    // pjdfstest is linked with it.
    ("/usr/include/sys/acl.h", "libacl1-dev"),
];

/// For `make peers`: the servers to compare with (Ganesha's file system module is a package without
/// a program), the measure of ciphers, and tools for the file systems to compare on.
const FOR_PEERS: [Needed; 9] = [
    ("ganesha.nfsd", "nfs-ganesha"),
    ("ganesha.nfsd", "nfs-ganesha-vfs"),
    ("rpcbind", "rpcbind"),
    ("smbd", "samba"),
    ("smbpasswd", "samba-common-bin"),
    ("openssl", "openssl"),
    ("ip", "iproute2"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.ext4", "e2fsprogs"),
];

/// For the campaigns of clusters: the engines, and what the client of etcd is built with. The
/// libraries of Ceph are loaded at run time.
const FOR_CLUSTER: [Needed; 15] = [
    ("protoc", "protobuf-compiler"),
    ("/usr/include/google/protobuf/descriptor.proto", "libprotobuf-dev"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("python3", "python3"),
    ("etcd", "etcd-server"),
    ("etcdctl", "etcd-client"),
    ("ceph-mon", "ceph-mon"),
    ("ceph-mgr", "ceph-mgr"),
    ("ceph-osd", "ceph-osd"),
    ("ceph-mds", "ceph-mds"),
    ("ceph-authtool", "ceph-common"),
    ("ceph", "ceph-common"),
    ("/usr/share/doc/libcephfs2/copyright", "libcephfs2"),
    ("/usr/share/doc/librados2/copyright", "librados2"),
];

/// For `make smb-cephfs`, beside those for clusters: the clients, and the client of Ceph that shows
/// the files to them.
const FOR_SMB_CEPHFS: [Needed; 4] = [
    ("smbclient", "smbclient"),
    ("smbtorture", "samba-testsuite"),
    ("ceph-fuse", "ceph-fuse"),
    ("/usr/lib/python3.11/ensurepip/__init__.py", "python3-venv"),
];

/// For `make cluster-peers`, beside those of every campaign of clusters: the server to compare
/// with. Its module for CephFS is a package without a program.
const FOR_CLUSTER_PEERS: [Needed; 3] = [
    ("ganesha.nfsd", "nfs-ganesha"),
    ("/usr/share/doc/nfs-ganesha-ceph/copyright", "nfs-ganesha-ceph"),
    ("rpcbind", "rpcbind"),
];

/// For `make deb`.
const FOR_DEB: [Needed; 2] = [("dh", "debhelper"), ("dpkg-buildpackage", "dpkg-dev")];

/// Prepares for `make deb`.
///
/// # Errors
/// The missing things that can't be installed.
pub(crate) fn deb() -> Result<()> {
    require(&FOR_DEB)
}

/// Prepares for `make peers`.
///
/// # Errors
/// The missing things that can't be installed.
pub(crate) fn peers() -> Result<()> {
    require(&FOR_PEERS)
}

/// Prepares for `make cluster-demo`, `make cluster-faults` and `make cluster-crash`.
///
/// # Errors
/// The missing things that can't be installed.
pub(crate) fn cluster() -> Result<()> {
    require(&FOR_CLUSTER)
}

/// Prepares for `make smb-cephfs`.
///
/// # Errors
/// The missing things that can't be installed.
pub(crate) fn smb_cephfs() -> Result<()> {
    require(&[&FOR_CLUSTER[..], &FOR_SMB_CEPHFS].concat())
}

/// Prepares for `make cluster-peers`.
///
/// # Errors
/// The missing things that can't be installed.
pub(crate) fn cluster_peers() -> Result<()> {
    require(&[&FOR_CLUSTER[..], &FOR_CLUSTER_PEERS].concat())
}

/// Prepares for `make conformance`.
///
/// # Errors
/// The missing things that can't be installed.
pub(crate) fn conformance() -> Result<()> {
    require(&[&FOR_TESTS[..], &FOR_PEERS].concat())?;
    install_pjdfstest()
}

fn require(needed: &[Needed]) -> Result<()> {
    match install_packages(needed)?.as_slice() {
        [] => Ok(()),
        missing => bail!("not to be had: {}", missing.join(", ")),
    }
}

/// Prepares for `make test`: tells the toolchain, then installs what is missing where it can. What
/// stays missing is told; the suites that need it will fail.
///
/// # Errors
/// If there is no toolchain or cargo-deny can't be had.
pub(crate) fn tests() -> Result<()> {
    println!("{}", process::output("rustc", &["--version"])?.trim());
    println!("{}", process::output("cargo", &["--version"])?.trim());
    for missing in install_packages(&FOR_TESTS)? {
        println!("missing: {missing}; suites that need it will fail");
    }
    if let Err(error) = install_pjdfstest() {
        println!("missing: pjdfstest ({error:#}); the suite that needs it will fail");
    }
    install_cargo_deny()
}

fn install_pjdfstest() -> Result<()> {
    install_tool(PJDFSTEST, "pjdfstest", PJDFSTEST_VERSION, &[])
}

/// Installs the pinned cargo-deny unless it is there. Without its own fetcher of databases and in
/// the dev profile it builds in a minute, and checks this workspace in a second.
pub(crate) fn install_cargo_deny() -> Result<()> {
    install_tool(CARGO_DENY, "cargo-deny", CARGO_DENY_VERSION, &["--no-default-features"])
}

/// Installs a program from crates.io as `path`, unless it is there in this version.
fn install_tool(path: &str, name: &str, version: &str, options: &[&str]) -> Result<()> {
    let present = process::output(path, &["--version"]).unwrap_or_default();
    if present.trim().ends_with(version) {
        return Ok(());
    }
    println!("installing {name} {version} into target/tools");
    let mut install = Command::new("cargo");
    install.args(["install", "--locked", "--quiet", "--debug"]).args(options);
    install.args(["--root=target/tools", "--target-dir=target/tools/build"]);
    install.env("CARGO_PROFILE_DEV_DEBUG", "0");
    if !process::succeeds(install.arg(format!("{name}@{version}")))? {
        bail!("{name} {version} could not be installed from crates.io");
    }
    fs::remove_dir_all("target/tools/build").context("removing what built the tool")
}

/// Installs what is missing of `needed` where this user may, and gives what is missing still.
fn install_packages(needed: &[Needed]) -> Result<Vec<String>> {
    let missing = || needed.iter().filter(|(program, _)| !process::exists(program));
    let packages: Vec<&str> = missing().map(|(_, package)| *package).collect();
    if !packages.is_empty() && process::exists("apt-get") && is_root()? {
        println!("installing from apt: {}", packages.join(" "));
        let quiet = ["-qq", "-o", "Dpkg::Use-Pty=0"];
        // A failed update still leaves the lists that are there; the install decides.
        process::succeeds(Command::new("apt-get").args(quiet).arg("update"))?;
        let mut install = Command::new("apt-get");
        install.args(quiet).args(["install", "--yes", "--no-install-recommends"]).args(&packages);
        process::succeeds(install.env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    Ok(missing()
        .map(|(program, package)| format!("{program} (Debian package {package})"))
        .collect())
}

/// Does this process run as the superuser?
pub(crate) fn is_root() -> Result<bool> {
    Ok(process::output("id", &["-u"])?.trim() == "0")
}
