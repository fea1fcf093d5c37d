//! The programs the tests need: checked, and installed from the package registries if missing.

use crate::process;
use anyhow::{Result, bail};
use std::process::Command;

/// Where the one tool that comes from crates.io is kept.
pub(crate) const CARGO_DENY: &str = "target/tools/bin/cargo-deny";
const CARGO_DENY_VERSION: &str = "0.20.2";

/// Debian packages by a program each brings.
const PACKAGES: [(&str, &str); 9] = [
    ("cc", "gcc"),
    ("c++", "g++"),
    ("make", "make"),
    ("ip", "iproute2"),
    ("linux.uml", "user-mode-linux"),
    ("modprobe", "kmod"),
    ("busybox", "busybox-static"),
    ("mount.nfs", "nfs-common"),
    ("nfs-cp", "libnfs-utils"),
];

/// Checks the toolchain, then installs what is missing where it can.
///
/// # Errors
/// What is missing and can't be installed, and how to get it.
pub(crate) fn run() -> Result<()> {
    println!("{}", process::output("rustc", &["--version"])?.trim());
    println!("{}", process::output("cargo", &["--version"])?.trim());
    install_packages()?;
    install_cargo_deny()
}

/// Installs the pinned cargo-deny unless it is there. Without its own fetcher of databases and in
/// the dev profile it builds in a minute, and checks this workspace in a second.
pub(crate) fn install_cargo_deny() -> Result<()> {
    let present = process::output(CARGO_DENY, &["--version"]).unwrap_or_default();
    if present.trim().ends_with(CARGO_DENY_VERSION) {
        return Ok(());
    }
    println!("installing cargo-deny {CARGO_DENY_VERSION} into target/tools");
    let version = format!("cargo-deny@{CARGO_DENY_VERSION}");
    let mut install = Command::new("cargo");
    install.args(["install", "--locked", "--quiet", "--debug", "--no-default-features", &version]);
    install.args(["--root=target/tools", "--target-dir=target/tools/build"]);
    if !process::succeeds(&mut install)? {
        bail!("cargo-deny {CARGO_DENY_VERSION} could not be installed from crates.io");
    }
    Ok(())
}

fn install_packages() -> Result<()> {
    let missing: Vec<&str> = missing_packages();
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing from apt: {}", missing.join(" "));
    if process::exists("apt-get") && is_root()? {
        let quiet = ["-qq", "-o", "Dpkg::Use-Pty=0"];
        // A failed update still leaves the lists that are there; the install decides.
        process::succeeds(Command::new("apt-get").args(quiet).arg("update"))?;
        let mut install = Command::new("apt-get");
        install.args(quiet).args(["install", "--yes", "--no-install-recommends"]).args(&missing);
        process::succeeds(install.env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    for (program, package) in PACKAGES.iter().filter(|(program, _)| !process::exists(program)) {
        println!("missing: {program} (Debian package {package}); suites that need it will fail");
    }
    Ok(())
}

fn missing_packages() -> Vec<&'static str> {
    PACKAGES
        .iter()
        .filter(|(program, _)| !process::exists(program))
        .map(|(_, package)| *package)
        .collect()
}

/// Does this process run as the superuser?
pub(crate) fn is_root() -> Result<bool> {
    Ok(process::output("id", &["-u"])?.trim() == "0")
}
