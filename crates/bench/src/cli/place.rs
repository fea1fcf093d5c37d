//! The target as given on the command line: user, group, password, addresses and transport.

use clap::{Args, ValueEnum};
use std::io::Read;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use weir_load::error::BenchError;
use weir_load::target::{NfsTarget, Password, PathTarget, SmbSecurity, SmbTarget, Target, Targets};

/// User, group and addresses of the client.
#[derive(Args, Clone, Debug, Default)]
pub struct WhoArgs {
    /// User ID for requests [default: from the URL, or the current user].
    #[arg(long, value_name = "N", help_heading = "Client")]
    pub uid: Option<u32>,
    /// Group ID for requests [default: from the URL, or the current group].
    #[arg(long, value_name = "N", help_heading = "Client")]
    pub gid: Option<u32>,
    /// Source addresses of the clients, which take them round-robin [default: for a target in
    /// 127.0.0.0/8 one for each client, otherwise the one that the system chooses].
    #[arg(long, value_name = "ADDR", value_delimiter = ',', help_heading = "Client")]
    pub source: Vec<IpAddr>,
    /// Additional addresses of the same server; clients are assigned to all addresses round-robin.
    /// They can also be given in the URL, as nfs://10.0.0.4,10.0.0.5/vol.
    #[arg(long, value_name = "ADDR", value_delimiter = ',', help_heading = "Client")]
    pub addresses: Vec<IpAddr>,
    /// Additional mounts of the same file system, for a path; each mount is one client, and clients
    /// are assigned to all mounts round-robin.
    #[arg(long, value_name = "DIR", value_delimiter = ',', help_heading = "Client")]
    pub mounts: Vec<PathBuf>,
    /// Protection of the messages of an SMB target.
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Security::Sign,
          help_heading = "Client")]
    pub smb_security: Security,
    /// File whose first line is the password of the SMB user [default: the environment variable
    /// WEIR_SMB_PASSWORD].
    #[arg(long, value_name = "FILE", help_heading = "Client")]
    pub smb_password_file: Option<PathBuf>,
}

/// Longest file of a password that is read, in bytes.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// Protection of SMB messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Security {
    /// No protection, beyond the login.
    None,
    /// Signatures.
    #[default]
    Sign,
    /// Encryption.
    Seal,
}

impl From<Security> for SmbSecurity {
    fn from(security: Security) -> Self {
        match security {
            Security::None => Self::None,
            Security::Sign => Self::Sign,
            Security::Seal => Self::Seal,
        }
    }
}

/// The first line of `file`.
fn password_of(file: &Path) -> Result<Password, BenchError> {
    let refuse = |source| BenchError::Path { path: file.to_owned(), source, hint: "" };
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(refuse)?;
    opened.take(PASSWORD_BYTES_MAX).read_to_end(&mut bytes).map_err(refuse)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok(line) if !line.is_empty() => Ok(Password::new(line.to_owned())),
        _ => Err(BenchError::Target(format!("{} holds no password", file.display()))),
    }
}

/// Host and export of a text in the form of mount(8), `HOST:/EXPORT`, if there is nothing of that
/// name.
fn of_mount(text: &str) -> Option<(&str, &str)> {
    let at = text.find(":/")?;
    let (host, export) = (text.get(..at)?, text.get(at + 1..)?);
    let is_host = !host.is_empty() && !host.contains('/') && !Path::new(text).exists();
    is_host.then_some((host, export))
}

impl WhoArgs {
    /// The target given by `text`.
    ///
    /// # Errors
    /// [`BenchError::Target`] if it is neither a URL nor a path.
    pub fn target(&self, text: &str) -> Result<Target, BenchError> {
        if text.starts_with("smb://") {
            return self.smb(text).map(Target::Smb);
        }
        if !text.starts_with("nfs://") {
            if text.contains("://") {
                let message = format!("{text:?} is none of nfs://…, smb://… and a directory");
                return Err(BenchError::Target(message));
            }
            if let Some((host, export)) = of_mount(text) {
                let message =
                    format!("{text:?} is not a directory: did you mean nfs://{host}{export}?");
                return Err(BenchError::Target(message));
            }
            let (root, more) = (PathBuf::from(text), self.mounts.clone());
            return Ok(Target::Path(PathTarget { root, more }));
        }
        let mut target = NfsTarget::parse(text)?;
        let in_url = |key: &str| text.contains(key);
        if let Some(uid) = self.uid {
            target.uid = uid;
        } else if !in_url("uid=") {
            target.uid = rustix::process::geteuid().as_raw();
        }
        if let Some(gid) = self.gid {
            target.gid = gid;
        } else if !in_url("gid=") {
            target.gid = rustix::process::getegid().as_raw();
        }
        target.sources.clone_from(&self.source);
        let port = target.address.port();
        let further = self.addresses.iter().map(|ip| SocketAddr::new(*ip, port));
        target.more.extend(further.filter(|address| *address != target.address));
        Ok(Target::Nfs(target))
    }

    fn smb(&self, text: &str) -> Result<SmbTarget, BenchError> {
        let mut target = SmbTarget::parse(text)?;
        if target.user.is_empty() {
            target.user = std::env::var("USER").map_err(|_| {
                BenchError::Target(format!("{text:?} names no user, as in smb://alice@host/share"))
            })?;
        }
        target.password = match &self.smb_password_file {
            Some(file) => password_of(file)?,
            None => Password::from_environment(),
        };
        target.security = self.smb_security.into();
        target.sources.clone_from(&self.source);
        let port = target.address.port();
        let further = self.addresses.iter().map(|ip| SocketAddr::new(*ip, port));
        target.more.extend(further.filter(|address| *address != target.address));
        Ok(target)
    }
}

/// The transport to a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// Description for reports.
    pub(super) transport: String,
    /// Whether the server is on this machine.
    pub(super) server_is_here: bool,
    /// Whether the target is a path.
    pub(super) on_path: bool,
}

impl Reach {
    /// The transports from this machine to `targets`. A server counts as here if one of them is.
    pub(super) fn of_all(targets: &Targets) -> Self {
        let all: Vec<Self> = targets.iter().map(|(_, target)| Self::of(target)).collect();
        let mut transports: Vec<String> = all.iter().map(|one| one.transport.clone()).collect();
        transports.dedup();
        Self {
            transport: transports.join("; "),
            server_is_here: all.iter().any(|one| one.server_is_here),
            on_path: all.iter().any(|one| one.on_path),
        }
    }

    /// The transport from this machine to `target`.
    pub(super) fn of(target: &Target) -> Self {
        match target {
            Target::Nfs(nfs) => Self {
                transport: match nfs.more.len() {
                    0 => "NFSv3 over TCP from user space".to_owned(),
                    more => format!("NFSv3 over TCP from user space, {} addresses", more + 1),
                },
                server_is_here: is_here(nfs.address.ip()),
                on_path: false,
            },
            Target::Smb(smb) => Self {
                transport: match smb.more.len() {
                    0 => format!("SMB 3.1.1 over TCP from user space, {}", smb.security.words()),
                    more => format!(
                        "SMB 3.1.1 over TCP from user space, {}, {} addresses",
                        smb.security.words(),
                        more + 1
                    ),
                },
                server_is_here: is_here(smb.address.ip()),
                on_path: false,
            },
            Target::Path(path) => {
                let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
                let path = path.root.canonicalize().unwrap_or_else(|_| path.root.clone());
                on_path(&mounts, &path)
            }
        }
    }
}

/// Whether `ip` is an address of this machine. Only such an address can be bound.
fn is_here(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

/// The mount that contains `path` (proc_pid_mountinfo(5)): the last one with the longest mount
/// point.
fn on_path(mounts: &str, path: &Path) -> Reach {
    let mut best: Option<(usize, Reach)> = None;
    for line in mounts.lines() {
        let Some((first, second)) = line.split_once(" - ") else { continue };
        let (mut first, mut second) = (first.split(' ').skip(4), second.split(' '));
        let (Some(point), Some(options)) = (first.next(), first.next()) else { continue };
        let (Some(kind), Some(source)) = (second.next(), second.next()) else { continue };
        let more = second.next().unwrap_or("");
        let point = point.replace("\\040", " ");
        if !path.starts_with(&point) || best.as_ref().is_some_and(|(len, _)| *len > point.len()) {
            continue;
        }
        let remote = ["nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "fuse.sshfs", "glusterfs"];
        let reach = Reach {
            transport: format!("path on {kind} ({options},{more}) from {source}"),
            server_is_here: !remote.contains(&kind),
            on_path: true,
        };
        best = Some((point.len(), reach));
    }
    let unknown = || Reach { transport: "path".to_owned(), server_is_here: false, on_path: true };
    best.map_or_else(unknown, |(_, reach)| reach)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
40 22 0:35 / /mnt/my\\040vol rw,noatime shared:9 - nfs 10.0.0.4:/vol rw,vers=3,nconnect=4
";

    #[test]
    fn a_path_is_reached_over_the_innermost_mount() {
        let nfs = on_path(MOUNTS, Path::new("/mnt/my vol/dir"));
        assert!(!nfs.server_is_here && nfs.on_path);
        assert_eq!(
            nfs.transport,
            "path on nfs (rw,noatime,rw,vers=3,nconnect=4) from 10.0.0.4:/vol"
        );
        let disk = on_path(MOUNTS, Path::new("/mnt/other"));
        assert!(disk.server_is_here && disk.transport.contains("ext4"), "{disk:?}");
        assert_eq!(on_path("", Path::new("/mnt")).transport, "path");
    }

    #[test]
    fn a_target_in_the_form_of_mount_is_told_as_a_url() {
        let refused = |text: &str| match WhoArgs::default().target(text) {
            Err(error) => error.to_string(),
            Ok(target) => panic!("{target:?}"),
        };
        assert!(refused("10.0.0.4:/vol/a").ends_with("did you mean nfs://10.0.0.4/vol/a?"));
        assert!(refused("[fd00::1]:/vol").ends_with("did you mean nfs://[fd00::1]/vol?"));
        for path in ["/mnt/a:/b", "vol", "a:b"] {
            assert!(matches!(WhoArgs::default().target(path), Ok(Target::Path(_))), "{path}");
        }
    }

    #[test]
    fn further_addresses_of_a_server_are_added_once() {
        let who = WhoArgs {
            addresses: vec!["10.0.0.4".parse().unwrap(), "10.0.0.5".parse().unwrap()],
            uid: Some(7),
            ..WhoArgs::default()
        };
        let Target::Nfs(target) = who.target("nfs://10.0.0.4:2050/vol").unwrap() else {
            panic!("an NFS target")
        };
        assert_eq!(target.more, ["10.0.0.5:2050".parse().unwrap()]);
        assert_eq!(target.uid, 7);
        let transport = Reach::of(&Target::Nfs(target)).transport;
        assert!(transport.ends_with("2 addresses"), "{transport}");
    }

    #[test]
    fn loopback_is_here_and_documentation_is_not() {
        assert!(is_here("127.0.0.9".parse().unwrap()));
        assert!(!is_here("192.0.2.1".parse().unwrap()));
    }
}
