//! The machine that the server runs on, as a condition of what is measured there. What can't be
//! found out is left out; nothing depends on it.

use crate::config::NamespaceDurability;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::fs::read_to_string;
use std::path::Path;
use weir_catalog::Machine;

/// This machine, with the file system of `directory`. Reads files of `/proc`.
pub(super) fn describe(directory: &Path, durability: NamespaceDurability) -> Machine {
    let line = |path: &str| read_to_string(path).unwrap_or_default().trim().to_owned();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    Machine {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: line("/proc/sys/kernel/hostname"),
        kernel: line("/proc/sys/kernel/osrelease"),
        processor: field("/proc/cpuinfo", "model name").unwrap_or_default(),
        processors: u32::try_from(processors).unwrap_or(0),
        memory_bytes: memory().unwrap_or(0),
        file_system: file_system(directory).unwrap_or_default(),
        durability: match durability {
            NamespaceDurability::Power => "power",
            NamespaceDurability::Process => "process",
        }
        .to_owned(),
    }
}

/// The text behind the colon in the first line of `path` that begins with `name`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Bytes of memory.
pub(super) fn memory() -> Option<u64> {
    let kibibytes = field("/proc/meminfo", "MemTotal")?;
    kibibytes.split(' ').next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Kind and source of the file system that `directory` is on: "xfs /dev/sdb".
fn file_system(directory: &Path) -> Option<String> {
    let found = statx(CWD, directory, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    let mounts = read_to_string("/proc/self/mountinfo").ok()?;
    mounted(&mounts, found.stx_mnt_id)
}

/// Kind and source of the mount `id` in a text as proc(5) describes it: its number is first, and
/// behind a hyphen come kind and source.
fn mounted(mounts: &str, id: u64) -> Option<String> {
    let is_it = |line: &&str| line.split(' ').next().and_then(|it| it.parse().ok()) == Some(id);
    let (_, behind) = mounts.lines().find(is_it)?.split_once(" - ")?;
    let mut words = behind.split(' ');
    Some(format!("{} {}", words.next()?, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_its_number() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                      222 22 0:5 / /srv rw - xfs /dev/sdb rw,attr2\n";
        assert_eq!(mounted(mounts, 222).as_deref(), Some("xfs /dev/sdb"));
        assert_eq!(mounted(mounts, 22).as_deref(), Some("ext4 /dev/sda1"));
        assert_eq!(mounted(mounts, 2), None);
    }

    #[test]
    fn this_machine_has_a_kernel_memory_and_a_file_system() {
        let here = describe(Path::new("/"), NamespaceDurability::Process);
        assert!(!here.kernel.is_empty() && here.memory_bytes > 0 && here.processors > 0);
        assert!(here.file_system.contains(' '), "{}", here.file_system);
        assert_eq!(
            (here.durability.as_str(), here.version.as_str()),
            ("process", env!("CARGO_PKG_VERSION"))
        );
        assert_eq!(describe(Path::new("/nowhere"), NamespaceDurability::Power).file_system, "");
    }
}
