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

/// The largest buffer that the kernel gives a TCP connection by itself: the third number of
/// `net.ipv4.tcp_rmem` or `tcp_wmem`.
pub(super) fn buffer_max(which: &str) -> Option<u64> {
    let text = read_to_string(format!("/proc/sys/net/ipv4/tcp_{which}")).ok()?;
    text.split_whitespace().nth(2)?.parse().ok()
}

/// The memory that this process may use, in bytes: that of the machine, or less if its control
/// group has a limit, as in a container. The limit covers the page cache too.
pub(super) fn memory() -> Option<u64> {
    let kibibytes = field("/proc/meminfo", "MemTotal")?;
    let machine = kibibytes.split(' ').next()?.parse::<u64>().ok()?.checked_mul(1024)?;
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    Some(group_limits(Path::new("/sys/fs/cgroup"), &groups).fold(machine, u64::min))
}

/// The memory limits of the control groups in a text as cgroups(7) describes it, and of the groups
/// around them, below the `mount` of their file systems. Version 1 shows a group without a limit
/// as one with more than any machine has.
fn group_limits(mount: &Path, groups: &str) -> impl Iterator<Item = u64> {
    let groups = groups.lines().filter_map(move |line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        if controllers.is_empty() {
            return Some((mount.to_owned(), path, "memory.max"));
        }
        let memory = controllers.split(',').any(|one| one == "memory");
        memory.then(|| (mount.join("memory"), path, "memory.limit_in_bytes"))
    });
    let files = groups.flat_map(|(root, path, file)| {
        // The last ancestor of a relative path is the empty one: the root, as a container sees it.
        let around = Path::new(path.trim_start_matches('/')).ancestors();
        around.map(move |group| root.join(group).join(file))
    });
    files.filter_map(|file| read_to_string(file).ok()?.trim().parse().ok())
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
    fn the_memory_of_a_control_group_is_limited_by_it_and_by_those_around_it() {
        let mount = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let file = mount.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        put("system.slice/memory.max", "2147483648\n");
        put("system.slice/weir.service/memory.max", "max\n");
        put("memory/memory.limit_in_bytes", "1073741824\n");
        put("memory/docker/a/memory.limit_in_bytes", "9223372036854771712\n");
        put("cpu/memory.limit_in_bytes", "5\n");
        let limits = |groups| group_limits(mount.path(), groups).collect::<Vec<_>>();
        assert_eq!(limits("0::/system.slice/weir.service\n"), [2 << 30]);
        assert!(limits("0::/\n").is_empty(), "the root has no limit");
        let first = "5:cpu,cpuacct:/\n3:memory:/docker/a\n";
        assert_eq!(limits(first), [9_223_372_036_854_771_712, 1 << 30]);
        // A container sees its group as the root, although its path is another one.
        put("memory.max", "1000\n");
        assert_eq!(limits("0::/gone/elsewhere\n"), [1000]);
        assert!(limits("nonsense\n3\n").is_empty());
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
