//! The words after a volume was created or shared: the commands by which clients reach it, and the
//! obstacles that a new operator would meet.

use std::net::{IpAddr, SocketAddr};
use weir_api::{Protocol, ServerInfo, Volume};

/// The port that SMB clients use by default.
const SMB_PORT: u16 = 445;

/// The lines about a volume for NFS clients; none if NFS is not among its protocols.
pub(crate) fn over_nfs(volume: &Volume, server: &ServerInfo) -> Vec<String> {
    if !volume.sharing.protocols.contains(&Protocol::Nfs) {
        return Vec::new();
    }
    let command = |address| mount_command(at(volume, address), &volume.name, server.locks);
    let command = addresses(&server.nfs).map(command).next();
    command
        .map_or_else(Vec::new, |command| vec!["Mount it with:".to_owned(), format!("  {command}")])
}

/// The lines about a volume for SMB clients; none if SMB is not among its protocols.
pub(crate) fn over_smb(volume: &Volume, server: &ServerInfo) -> Vec<String> {
    if !volume.sharing.protocols.contains(&Protocol::Smb) {
        return Vec::new();
    }
    let command = |address| connect_command(at(volume, address), &volume.name);
    match addresses(&server.smb).map(command).next() {
        Some(command) => vec!["Connect to its share with:".to_owned(), format!("  {command}")],
        None => vec![
            "The server does not serve SMB: start it with --smb, such as --smb 0.0.0.0:445."
                .to_owned(),
        ],
    }
}

/// The lines about a share that no user can write to; none if some may. No SMB user is root, and
/// the digit of the group is the mask if there is an access control list.
pub(crate) fn read_only(volume: &Volume) -> Vec<String> {
    let Volume { name, sharing, top: Some(top), .. } = volume else { return Vec::new() };
    let roots = top.uid == 0 && top.mode.bits() & 0o022 == 0;
    if !roots || !sharing.protocols.contains(&Protocol::Smb) {
        return Vec::new();
    }
    vec![
        "No SMB user can write to it yet: its top directory belongs to root. Give it to a user with:".to_owned(),
        format!("  weir volume set {name} --owner USER"),
    ]
}

fn addresses(listened: &[String]) -> impl Iterator<Item = SocketAddr> {
    listened.iter().filter_map(|address| address.parse().ok())
}

/// The address of a volume of a cluster, on the port that the server listens on; else `listened`.
fn at(volume: &Volume, listened: SocketAddr) -> SocketAddr {
    let own = volume.address.as_ref().and_then(|address| address.parse().ok());
    own.map_or(listened, |ip| SocketAddr::new(ip, listened.port()))
}

/// The command that mounts `volume` from the server at `address`, which serves `locks` or not.
fn mount_command(address: SocketAddr, volume: &str, locks: bool) -> String {
    let (host, port) = (address.ip(), address.port());
    let host = match host {
        _ if host.is_unspecified() => "SERVER".to_owned(),
        _ if host.is_ipv6() => format!("[{host}]"),
        _ => host.to_string(),
    };
    let protocol = if host.starts_with('[') { "tcp6" } else { "tcp" };
    let lock = if locks { "lock" } else { "nolock" };
    format!(
        "mount -t nfs -o vers=3,proto={protocol},mountproto={protocol},port={port},mountport={port},{lock} {host}:/{volume} /mnt"
    )
}

/// The command that connects to the share of `volume` on the server at `address`.
fn connect_command(address: SocketAddr, volume: &str) -> String {
    let host = match address.ip() {
        IpAddr::V4(host) if !host.is_unspecified() => host.to_string(),
        _ => "SERVER".to_owned(),
    };
    let port = match address.port() {
        SMB_PORT => String::new(),
        port => format!(" -p {port}"),
    };
    format!("smbclient //{host}/{volume} -U USER{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_hint_names_host_port_and_protocol() {
        let hint = |address: &str| mount_command(address.parse().unwrap(), "v", false);
        assert_eq!(
            hint("127.0.0.1:2049"),
            "mount -t nfs -o vers=3,proto=tcp,mountproto=tcp,port=2049,mountport=2049,nolock 127.0.0.1:/v /mnt"
        );
        assert!(hint("[::1]:20490").contains("proto=tcp6,mountproto=tcp6,port=20490"));
        assert!(hint("[::1]:20490").ends_with("[::1]:/v /mnt"));
        assert!(hint("0.0.0.0:1").ends_with("SERVER:/v /mnt"));
        let locks = mount_command("127.0.0.1:2049".parse().unwrap(), "v", true);
        assert!(locks.contains("mountport=2049,lock 127.0.0.1:/v"), "{locks}");
    }

    #[test]
    fn the_hint_for_a_share_names_host_and_port() {
        let hint = |address: &str| connect_command(address.parse().unwrap(), "v");
        assert_eq!(hint("0.0.0.0:445"), "smbclient //SERVER/v -U USER");
        assert_eq!(hint("127.0.0.1:4450"), "smbclient //127.0.0.1/v -U USER -p 4450");
        assert_eq!(hint("[::1]:445"), "smbclient //SERVER/v -U USER");
    }
}
