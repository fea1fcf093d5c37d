//! The programs that the comparison needs beside those of every campaign, their versions, and files
//! in memory.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;
use weir_lab::process::run;
use weir_lab::sandbox;

/// Programs, and the Debian packages that bring them.
const PROGRAMS: [(&str, &str); 2] = [("ganesha.nfsd", "nfs-ganesha"), ("rpcbind", "rpcbind")];

/// Ganesha's part that serves CephFS.
const MODULES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/ganesha/libfsalceph.so",
    "/usr/lib/aarch64-linux-gnu/ganesha/libfsalceph.so",
    "/usr/lib64/ganesha/libfsalceph.so",
];

/// GiB of the tmpfs for the files of the cluster: three OSDs, monitors, etcd.
const FILES_GIB: u64 = 14;
/// GiB of memory for that, and for the processes.
const MEMORY_GIB: u64 = 20;

/// Checks that everything is here.
///
/// # Errors
/// Says what is missing, and how to get it.
pub(crate) fn check() -> Result<()> {
    if !cfg!(feature = "peers") {
        bail!("this program was built without its feature `peers`; make cluster-peers builds it");
    }
    sandbox::programs("comparisons of clusters", &PROGRAMS)?;
    if !MODULES.iter().any(|place| Path::new(place).exists()) {
        bail!("comparisons of clusters need Ganesha's module: apt-get install nfs-ganesha-ceph");
    }
    let text = std::fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
    let gib = memory_gib(&text).context("/proc/meminfo has another form")?;
    if gib < MEMORY_GIB {
        bail!(
            "comparisons of clusters need {MEMORY_GIB} GiB of memory, and this machine has {gib}"
        );
    }
    Ok(())
}

/// The memory of the machine (proc_meminfo(5)), in whole GiB.
fn memory_gib(text: &str) -> Option<u64> {
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    kib.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib >> 20)
}

/// Has everything below `work` kept in memory, until the namespace of mounts ends.
///
/// # Errors
/// In the words of `mount`.
pub(super) fn keep_in_memory(work: &Path) -> Result<()> {
    let size = format!("size={FILES_GIB}g");
    run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(work))
}

/// The versions of the programs that are compared, as they tell them.
pub(super) fn versions() -> Vec<String> {
    let told = [("ganesha.nfsd", "-v"), ("ceph", "--version"), ("uname", "-sr")];
    told.iter().filter_map(|(program, option)| version(program, option)).collect()
}

/// The first line that a program prints with an option.
fn version(program: &str, option: &str) -> Option<String> {
    let output = Command::new(program).arg(option).output().ok()?;
    let line = String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_whole_gib() {
        assert_eq!(memory_gib("MemTotal:       24689940 kB\nMemFree: 1 kB\n"), Some(23));
        assert_eq!(memory_gib("MemFree: 1 kB\n"), None);
        assert_eq!(memory_gib("MemTotal: many kB\n"), None);
    }

    #[test]
    fn a_version_is_one_line() {
        assert!(version("uname", "-s").unwrap().starts_with("Linux"));
        assert_eq!(version("true", "--none"), None);
        assert_eq!(version("no-such-program-here", "-v"), None);
    }
}
