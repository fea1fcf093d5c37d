//! The servers of the NFS rows, on the same directory.

use crate::campaign::this_program;
use crate::disk::Disk;
use crate::network::CAMPAIGN_NETWORK;
use crate::process::Process;
use crate::server::{Settings, TestServer};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use weir_load::{NfsTarget, Target};
use weir_report::Series;

/// Ganesha's ports; nothing else listens in the namespace.
const GANESHA: (u16, u16) = (12_049, 12_050);
/// The port mapper's port (RFC 1833 §1).
const PORT_MAPPER: u16 = 111;
/// A pool and a volume whose contract never binds: 16,000 MiB/s at the Ultra level.
pub(super) const POOL_TEBIBYTES: u64 = 256;
pub(super) const VOLUME_GIBIBYTES: u64 = 125 * 1024;

/// A server under comparison, running.
#[derive(Debug)]
pub struct Peer {
    /// Which it is.
    pub(crate) series: Series,
    /// The server's target.
    pub target: Target,
    /// The server's process id.
    pub pid: u32,
    _guards: Vec<Process>,
    _server: Option<TestServer>,
}

/// A server as one row measures it.
#[derive(Clone, Debug)]
pub(super) struct Side {
    /// The server.
    pub(super) series: Series,
    /// The target of the load.
    pub(super) target: Target,
    /// The server's process id.
    pub(super) pid: u32,
}

/// The addresses on which a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Loopback alone.
    Loopback,
    /// All addresses of the machine.
    Everywhere,
}

impl Peer {
    /// A running server.
    pub(super) const fn new(
        series: Series,
        target: Target,
        pid: u32,
        guards: Vec<Process>,
        server: Option<TestServer>,
    ) -> Self {
        Self { series, target, pid, _guards: guards, _server: server }
    }

    /// The server's target at other addresses of its machine; the target itself if `addresses` is
    /// empty.
    pub fn target_at(&self, addresses: &[Ipv4Addr]) -> Target {
        let mut target = self.target.clone();
        if let (Target::Nfs(nfs), Some((first, more))) = (&mut target, addresses.split_first()) {
            nfs.address.set_ip((*first).into());
            let port = nfs.address.port();
            nfs.more = more.iter().map(|address| (*address, port).into()).collect();
        }
        target
    }

    /// The server as a row measures it.
    pub(super) fn side(&self) -> Side {
        Side { series: self.series, target: self.target.clone(), pid: self.pid }
    }
}

/// Weir on a data directory `name` in `disk`, with one volume, and the directory of that volume.
pub(crate) fn weir(
    exe: &Path,
    disk: &Disk,
    logs: &Path,
    name: &str,
    durability: &'static str,
    reach: Reach,
) -> Result<(Peer, PathBuf)> {
    let everywhere = reach == Reach::Everywhere;
    let data = disk.path().join(name);
    let log = logs.join(format!("{name}.log"));
    let settings = Settings::temporary(exe, data.clone(), log)?;
    let settings = Settings { durability, everywhere, ..settings };
    let (server, operator) = TestServer::start_new(settings)?;
    operator.make_pool("peers", POOL_TEBIBYTES, None)?;
    operator.make_volume("peer", "peers", VOLUME_GIBIBYTES)?;
    if everywhere {
        operator.allow("peer", CAMPAIGN_NETWORK)?;
    }
    let directory = volume_directory(&data)?;
    let target = Target::Nfs(NfsTarget::new(server.address(), "/peer"));
    let pid = server.pid()?;
    Ok((Peer::new(Series::Weir, target, pid, Vec::new(), Some(server)), directory))
}

/// The directory that holds the files of the only volume under `data`.
pub(super) fn volume_directory(data: &Path) -> Result<PathBuf> {
    let mut pending = vec![data.to_owned()];
    while let Some(dir) = pending.pop() {
        if dir.file_name().is_some_and(|name| name == "volumes") {
            for entry in std::fs::read_dir(&dir)?.flatten() {
                let root = entry.path().join("root");
                if root.is_dir() {
                    return Ok(root);
                }
            }
        }
        let inner = std::fs::read_dir(&dir)?.flatten().map(|entry| entry.path());
        pending.extend(inner.filter(|path| path.is_dir()));
    }
    bail!("no volume directory under {}", data.display())
}

/// Ganesha's configuration for a directory of a local file system.
pub(crate) const LOCAL: &str = include_str!("ganesha.conf");

/// Ganesha on `directory`, and the port mapper it asks for; their files are in `work`. The
/// configuration is `template`, with the places in it filled in. Its first export is `/peer`.
///
/// # Errors
/// If one of them does not answer in time.
pub fn ganesha(template: &str, directory: &Path, work: &Path, reach: Reach) -> Result<Peer> {
    let log = work.join("ganesha.log");
    let mapper_log = work.join("rpcbind.log");
    let output = File::create(&mapper_log)?;
    let mut mapper = Process::start(
        Command::new("rpcbind")
            .arg("-f")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output),
    )?;
    mapper.wait_for_port(loopback(PORT_MAPPER), &mapper_log)?;
    let state = work.join("ganesha-state");
    std::fs::create_dir_all(&state)?;
    let configuration = work.join("ganesha.conf");
    std::fs::write(&configuration, configure(template, directory, &state, reach))?;
    let mut server = Process::start(
        Command::new("ganesha.nfsd")
            .arg("-F")
            .arg("-f")
            .arg(&configuration)
            .arg("-L")
            .arg(&log)
            .arg("-p")
            .arg(work.join("ganesha.pid"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )?;
    server.wait_for_port(loopback(GANESHA.1), &log)?;
    server.wait_for_port(loopback(GANESHA.0), &log)?;
    let mut target = NfsTarget::new(loopback(GANESHA.0), "/peer");
    target.mount_port = Some(GANESHA.1);
    let pid = server.pid();
    Ok(Peer::new(Series::Ganesha, Target::Nfs(target), pid, vec![server, mapper], None))
}

fn configure(template: &str, directory: &Path, state: &Path, reach: Reach) -> String {
    let address = match reach {
        Reach::Loopback => Ipv4Addr::LOCALHOST,
        Reach::Everywhere => Ipv4Addr::UNSPECIFIED,
    };
    template
        .replace("@ADDRESS@", &address.to_string())
        .replace("@NFS_PORT@", &GANESHA.0.to_string())
        .replace("@MOUNT_PORT@", &GANESHA.1.to_string())
        .replace("@STATE@", &state.to_string_lossy())
        .replace("@EXPORT@", &directory.to_string_lossy())
}

/// The bare loop on `directory`.
pub(super) fn bare(directory: &Path) -> Result<Peer> {
    let mut command = Command::new(this_program()?);
    command.args(["bare", "--dir"]).arg(directory).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut process = Process::start(&mut command)?;
    let output = process.child().stdout.take().context("the bare loop has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let address: SocketAddr = line
        .trim()
        .strip_prefix("listening on ")
        .and_then(|address| address.parse().ok())
        .with_context(|| format!("the bare loop said {line:?} and not where it listens"))?;
    let (target, pid) = (Target::Nfs(NfsTarget::new(address, "/")), process.pid());
    Ok(Peer::new(Series::Bare, target, pid, vec![process], None))
}

pub(super) fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ganesha_is_configured_completely() {
        let text =
            configure(LOCAL, Path::new("/srv/here"), Path::new("/var/state"), Reach::Loopback);
        assert!(!text.contains('@') && text.contains("Path = \"/srv/here\";"));
        assert!(text.contains("NFS_Port = 12049;") && text.contains("MNT_Port = 12050;"));
    }

    #[test]
    fn finds_the_volume_wherever_the_pool_lies() {
        let data = tempfile::tempdir().unwrap();
        assert!(volume_directory(data.path()).is_err());
        let root = data.path().join("pools/1/volumes/7/root");
        std::fs::create_dir_all(&root).unwrap();
        assert_eq!(volume_directory(data.path()).unwrap(), root);
    }
}
