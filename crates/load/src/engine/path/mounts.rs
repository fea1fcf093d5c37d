//! The connections of a mounted file system, as the kernel shows them: the transports of an NFS
//! mount in `/proc/self/mountstats`, the channels of an SMB session in `/proc/fs/cifs/DebugData`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The mount that holds a path, as the kernel shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// The mount point.
    pub(super) point: PathBuf,
    /// The type of the file system: `nfs`, `cifs`, `ext4`.
    pub(super) kind: String,
    /// Its TCP connections; `None` if it has none, or the kernel does not show them.
    pub(super) connections: Option<u32>,
    /// Local ports of its connections, where the kernel shows them.
    pub(super) ports: BTreeSet<u16>,
}

/// The mount that holds `path`, if the kernel shows it.
pub(super) fn of(path: &Path) -> Option<Mount> {
    let path = path.canonicalize().ok()?;
    let stats = std::fs::read_to_string("/proc/self/mountstats").ok()?;
    let (mut mount, source) = innermost(&stats, &path)?;
    if matches!(mount.kind.as_str(), "cifs" | "smb3") {
        let data = std::fs::read_to_string("/proc/fs/cifs/DebugData").unwrap_or_default();
        mount.connections = channels(&data, &source);
    }
    Some(mount)
}

/// The mount in `stats` with the longest mount point above `path`, of those the last, and its
/// source. The form is that of `nfs_show_stats` in the kernel: a line `device SOURCE mounted on
/// POINT with fstype KIND`, and for NFS further lines, among them one `xprt:` for each transport.
fn innermost(stats: &str, path: &Path) -> Option<(Mount, String)> {
    let mut best: Option<(Mount, String)> = None;
    let mut is_open = false;
    for line in stats.lines() {
        if let Some((source, mount)) = header(line) {
            let depth = |mount: &Mount| mount.point.components().count();
            let is_deeper = best.as_ref().is_none_or(|(other, _)| depth(&mount) >= depth(other));
            is_open = path.starts_with(&mount.point) && is_deeper;
            if is_open {
                best = Some((mount, source));
            }
        } else if is_open
            && let Some(words) = line.trim_start().strip_prefix("xprt:")
            && let Some((mount, _)) = &mut best
        {
            mount.connections = Some(mount.connections.unwrap_or(0) + 1);
            // Kind of transport, then its local port; 0 if it is not a reserved one.
            let port = words.split_whitespace().nth(1).and_then(|port| port.parse::<u16>().ok());
            mount.ports.extend(port.filter(|port| *port > 0));
        }
    }
    best
}

/// The source and the mount in the first line of a mount's statistics.
fn header(line: &str) -> Option<(String, Mount)> {
    let (source, rest) = match line.strip_prefix("no device mounted on ") {
        Some(rest) => ("", rest),
        None => line.strip_prefix("device ")?.split_once(" mounted on ")?,
    };
    let (point, rest) = rest.split_once(" with fstype ")?;
    let kind = rest.split_whitespace().next()?.to_owned();
    let point = PathBuf::from(unescaped(point));
    Some((unescaped(source), Mount { point, kind, connections: None, ports: BTreeSet::new() }))
}

/// Blanks and backslashes are written as octal numbers (`seq_path(9)`).
fn unescaped(text: &str) -> String {
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    codes.iter().fold(text.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

/// The channels of the session that has the share `source` (`//HOST/SHARE`): the first and those
/// that the kernel lists as extra ones.
fn channels(data: &str, source: &str) -> Option<u32> {
    // A mount of a directory below the share has it in its source.
    let mut parts = source.trim_start_matches('/').splitn(3, '/');
    let share = format!("\\\\{}\\{}", parts.next()?, parts.next()?);
    let mut channels = 1;
    for line in data.lines().map(str::trim) {
        let numbered = line.split_once(") ").filter(|(n, _)| n.parse::<u32>().is_ok());
        if let Some(extra) = line.strip_prefix("Extra Channels:") {
            channels = 1 + extra.trim().parse::<u32>().ok()?;
        } else if let Some((_, rest)) = numbered {
            if rest.starts_with("Address:") || rest.starts_with("Name:") {
                channels = 1;
            }
            let name = rest.split(" Mounts:").next().unwrap_or_default();
            if name.eq_ignore_ascii_case(&share) {
                return Some(channels);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = include_str!("testdata/mountstats");
    const CIFS: &str = include_str!("testdata/cifs-debug-data");

    fn connections(path: &str) -> (String, Option<u32>, Vec<u16>) {
        let (mount, _) = innermost(STATS, Path::new(path)).unwrap();
        (mount.kind, mount.connections, mount.ports.into_iter().collect())
    }

    #[test]
    fn transports_of_an_nfs_mount_are_its_connections() {
        assert_eq!(connections("/mnt/one/dir"), ("nfs".into(), Some(1), vec![795]));
        let four = connections("/mnt/my vol");
        assert_eq!(four, ("nfs".into(), Some(4), vec![773, 811, 868, 1001]));
        assert_eq!(connections("/mnt/four"), ("nfs4".into(), Some(2), vec![]));
    }

    #[test]
    fn the_innermost_mount_counts_and_others_have_no_connections() {
        assert_eq!(connections("/home"), ("ext4".into(), None, vec![]));
        assert_eq!(connections("/mnt/one/local/x"), ("tmpfs".into(), None, vec![]));
        assert_eq!(connections("/mnt/onemore"), ("ext4".into(), None, vec![]));
        assert_eq!(innermost("", Path::new("/")), None);
    }

    #[test]
    fn extra_channels_of_an_smb_session_are_counted() {
        assert_eq!(channels(CIFS, "//192.168.1.80/files"), Some(2));
        assert_eq!(channels(CIFS, "//192.168.1.80/files/below/it"), Some(2));
        assert_eq!(channels(CIFS, "//CVXDFAVB1/dfsroot"), Some(1));
        assert_eq!(channels(CIFS, "//other/share"), None);
        assert_eq!(channels(CIFS, "//host"), None);
    }

    #[test]
    fn the_mounts_of_this_machine_can_be_read() {
        let here = of(Path::new("/proc")).unwrap();
        assert_eq!((here.kind.as_str(), here.connections), ("proc", None));
    }
}
