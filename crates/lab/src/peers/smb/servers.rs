//! Weir with a share, and a private smbd, on the same directory and for the same user.

use super::super::servers::{POOL_TEBIBYTES, Peer, VOLUME_GIBIBYTES, loopback, volume_directory};
use crate::disk::Disk;
use crate::process::{Process, run};
use crate::server::{Settings, TestServer};
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use weir_load::{Password, SmbSecurity, SmbTarget, Target};
use weir_report::Series;

/// The programs of an smbd, and the Debian package that brings them.
pub(crate) const PROGRAMS: [(&str, &str); 3] =
    [("smbd", "samba"), ("smbpasswd", "samba-common-bin"), ("openssl", "openssl")];

/// The port of smbd; nothing else listens in the namespace.
const PORT: u16 = 14_450;
const SHARE: &str = "peer";
const USER: &str = "peeruser";
const PASSWORD: &str = "a password of the peers";
const UID: u32 = 40_000;

fn target(address: std::net::SocketAddr) -> Target {
    let password = Password::new(PASSWORD.to_owned());
    let target = SmbTarget::new(address, SHARE, USER, password);
    Target::Smb(SmbTarget { security: SmbSecurity::None, ..target })
}

/// Weir with one volume as a share in which the user may write, and the directory of that volume.
pub(super) fn weir(exe: &Path, disk: &Disk, logs: &Path) -> Result<(Peer, PathBuf)> {
    let data = disk.path().join("weir");
    let settings = Settings::temporary(exe, data.clone(), logs.join("weir-smb.log"))?;
    let settings = Settings { durability: "process", smb: true, ..settings };
    let (server, operator) = TestServer::start_new(settings)?;
    operator.make_pool("peers", POOL_TEBIBYTES, None)?;
    operator.make_volume(SHARE, "peers", VOLUME_GIBIBYTES)?;
    operator.share(SHARE)?;
    operator.make_user(USER, UID, PASSWORD)?;
    let directory = volume_directory(&data)?;
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777))?;
    for above in directory.ancestors().take_while(|above| above.starts_with(disk.path())) {
        reachable(above)?;
    }
    let (target, pid) = (target(server.smb_address()), server.pid()?);
    Ok((Peer::new(Series::Weir, target, pid, Vec::new(), Some(server)), directory))
}

/// Lets the user pass a directory on the way to the volume: smbd walks the path as the user.
fn reachable(directory: &Path) -> Result<()> {
    let mut permissions = directory.metadata()?.permissions();
    permissions.set_mode(permissions.mode() | 0o011);
    std::fs::set_permissions(directory, permissions)
        .with_context(|| format!("cannot open {}", directory.display()))
}

/// smbd on `directory`.
pub(super) fn smbd(directory: &Path, work: &Path) -> Result<Peer> {
    let state = work.join("samba");
    for part in ["private", "lock", "state", "cache", "pid", "ncalrpc"] {
        let part = state.join(part);
        std::fs::create_dir_all(&part)
            .with_context(|| format!("cannot make {}", part.display()))?;
    }
    let configuration = state.join("smb.conf");
    std::fs::write(&configuration, configure(directory, &state))?;
    introduce(&state, &configuration)?;
    let log = state.join("smbd.log");
    let output = File::create(&log)?;
    let mut server = Process::start(
        Command::new("smbd")
            .args(["--foreground", "--no-process-group", "--debug-stdout", "--configfile"])
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output),
    )?;
    server.wait_for_port(loopback(PORT), &log)?;
    let pid = server.pid();
    Ok(Peer::new(Series::Smbd, target(loopback(PORT)), pid, vec![server], None))
}

fn configure(directory: &Path, state: &Path) -> String {
    include_str!("smbd.conf")
        .replace("@PORT@", &PORT.to_string())
        .replace("@STATE@", &state.to_string_lossy())
        .replace("@SHARE@", SHARE)
        .replace("@DIRECTORY@", &directory.to_string_lossy())
}

/// smbd knows a user only if the machine does: it does in this mount namespace, and nobody outside
/// sees it.
fn introduce(state: &Path, configuration: &Path) -> Result<()> {
    let entries = [
        ("passwd", format!("{USER}:x:{UID}:{UID}::/nonexistent:/usr/sbin/nologin\n")),
        ("group", format!("{USER}:x:{UID}:\n")),
    ];
    for (name, line) in entries {
        let (known, own) = (Path::new("/etc").join(name), state.join(name));
        let text = std::fs::read_to_string(&known)
            .with_context(|| format!("cannot read {}", known.display()))?;
        std::fs::write(&own, text + &line)?;
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o644))?;
        run(Command::new("mount").arg("--bind").arg(&own).arg(&known))?;
    }
    let mut command = Command::new("smbpasswd");
    command.arg("-c").arg(configuration).args(["-s", "-a", USER]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().context("cannot start smbpasswd")?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(format!("{PASSWORD}\n{PASSWORD}\n").as_bytes())?;
    }
    let status = child.wait()?;
    ensure!(status.success(), "smbpasswd could not add the user: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smbd_is_configured_completely() {
        let text = configure(Path::new("/srv/here"), Path::new("/var/state"));
        assert!(!text.contains('@'), "{text}");
        assert!(text.contains("path = /srv/here\n") && text.contains("smb ports = 14450\n"));
    }
}
