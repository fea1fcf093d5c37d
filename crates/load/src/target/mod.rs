//! The target of a measurement: an NFS export, an SMB share, or a path.

mod path;
mod smb;
mod targets;

pub use path::PathTarget;
pub use smb::{Password, SmbSecurity, SmbTarget};
pub use targets::Targets;

use crate::error::BenchError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The port of NFS, RFC 1813 §2.1.
const NFS_PORT: u16 = 2049;
/// The machine name of clients, unless another one is given.
const MACHINE: &str = "weir-bench";
/// Clients of a loopback target that have addresses of their own.
const LOOPBACK_CLIENTS: u32 = 60_000;

/// The target of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// An export, by the NFSv3 protocol.
    Nfs(NfsTarget),
    /// A share, by SMB 3.1.1.
    Smb(SmbTarget),
    /// A directory of a mounted file system.
    Path(PathTarget),
}

/// An NFSv3 export and who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsTarget {
    /// The server's address for NFS.
    pub address: SocketAddr,
    /// More addresses of the same server. Clients are dealt to all of them in turn, this first
    /// one first; files are laid out through the first.
    pub more: Vec<SocketAddr>,
    /// The port of MOUNT on the first address. Without one, MOUNT is asked for on the port of NFS,
    /// and where that does not serve it on the port that the port mapper names.
    pub mount_port: Option<u16>,
    /// The export, with its leading slash.
    pub export: String,
    /// User in the AUTH_SYS credential.
    pub uid: u32,
    /// Group in the AUTH_SYS credential.
    pub gid: u32,
    /// Source addresses for the simulated clients, which take them in turn. Empty: chosen from
    /// 127.0.1.0/16 for several clients of a loopback IPv4 target, left to the system otherwise.
    pub sources: Vec<IpAddr>,
    /// The machine name in the AUTH_SYS credential (RFC 5531 §8.2); several clients add their
    /// numbers to it.
    pub machine: String,
    /// Connections leave from source ports below 1024, as exports with the option `secure` demand.
    pub resvport: bool,
}

impl NfsTarget {
    /// An export on one address, asked for as the superuser.
    #[must_use]
    pub fn new(address: SocketAddr, export: impl Into<String>) -> Self {
        Self {
            address,
            more: Vec::new(),
            mount_port: None,
            export: export.into(),
            uid: 0,
            gid: 0,
            sources: Vec::new(),
            machine: MACHINE.to_owned(),
            resvport: false,
        }
    }

    /// Reads `nfs://HOST[,HOST...][:PORT]/EXPORT[?mountport=PORT&uid=N&gid=N&resvport=1]`. A port
    /// behind the last host is that of all hosts that have none of their own. Host names are
    /// resolved now; the first address of each is taken. MOUNT is asked for on the first host.
    ///
    /// # Errors
    /// [`BenchError::Target`] says what is wrong with the text.
    pub fn parse(url: &str) -> Result<Self, BenchError> {
        let rest = url.strip_prefix("nfs://").ok_or_else(|| {
            refuse(url, "it must start with nfs://, as in nfs://127.0.0.1:2049/vol")
        })?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let slash = place
            .find('/')
            .ok_or_else(|| refuse(url, "the export is missing, as in nfs://127.0.0.1/vol"))?;
        let (hosts, export) = place.split_at(slash);
        let refuse = |why: &str| refuse(url, why);
        let mut addresses = resolve_all(hosts, NFS_PORT, refuse)?.into_iter();
        let first = addresses.next().ok_or_else(|| refuse("the host is missing"))?;
        let mut target = Self::new(first, export);
        target.more = addresses.collect();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let number = || {
                value.parse::<u32>().map_err(|_| {
                    refuse(&format!("the value of {key:?} must be a number, not {value:?}"))
                })
            };
            match key {
                "mountport" => {
                    let port = u16::try_from(number()?);
                    target.mount_port = Some(port.map_err(|_| refuse("mountport is over 65535"))?);
                }
                "resvport" => match number()? {
                    value @ (0 | 1) => target.resvport = value == 1,
                    _ => return Err(refuse("resvport is 0 or 1")),
                },
                "uid" => target.uid = number()?,
                "gid" => target.gid = number()?,
                _ => {
                    let known = "known are mountport, uid, gid and resvport";
                    return Err(refuse(&format!("the option {key:?} is unknown; {known}")));
                }
            }
        }
        Ok(target)
    }

    /// The addresses of server and clients.
    #[must_use]
    pub(crate) fn addresses(&self) -> Addresses<'_> {
        Addresses { first: self.address, more: &self.more, sources: &self.sources }
    }

    /// The source address of client `index` of `clients`; `None` leaves it to the system.
    #[must_use]
    pub fn source(&self, index: u32, clients: u32) -> Option<IpAddr> {
        self.addresses().source(index, clients)
    }

    /// The machine name of client `index` of `clients`: the one with which it calls.
    #[must_use]
    pub fn machine_of(&self, index: u32, clients: u32) -> String {
        if clients == 1 { self.machine.clone() } else { format!("{}-{}", self.machine, index + 1) }
    }
}

impl Target {
    /// A sentence for the results if several of `clients` have one source address.
    #[must_use]
    pub fn shared_source(&self, clients: u32) -> Option<String> {
        let addresses = match self {
            Self::Nfs(target) => target.addresses(),
            Self::Smb(target) => target.addresses(),
            Self::Path(_) => return None,
        };
        addresses.shared(clients)
    }
}

/// The addresses of a server, and those of its clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses<'a> {
    /// The server's first address.
    pub(crate) first: SocketAddr,
    /// More addresses of the same server.
    pub(crate) more: &'a [SocketAddr],
    /// The clients' addresses, in order, if they are given.
    pub(crate) sources: &'a [IpAddr],
}

impl Addresses<'_> {
    /// The address that client `index` talks to.
    pub(crate) fn of_client(&self, index: u32) -> SocketAddr {
        let place = usize::try_from(index).unwrap_or(0) % (self.more.len() + 1);
        let further = place.checked_sub(1).and_then(|place| self.more.get(place));
        further.copied().unwrap_or(self.first)
    }

    /// The source address of client `index` of `clients`; `None` leaves it to the system.
    pub(crate) fn source(&self, index: u32, clients: u32) -> Option<IpAddr> {
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(place) = position.checked_rem(self.sources.len()) {
            return self.sources.get(place).copied();
        }
        if clients == 1 || !self.are_chosen() {
            return None;
        }
        let index = index % LOOPBACK_CLIENTS;
        let [_, _, high, low] = (0x0100 + index / 250 * 256 + index % 250 + 1).to_be_bytes();
        Some(IpAddr::from([127, 0, high, low]))
    }

    /// Are source addresses chosen here? Any address of 127.0.0.0/8 belongs to the machine.
    fn are_chosen(&self) -> bool {
        self.sources.is_empty() && matches!(self.first.ip(), IpAddr::V4(ip) if ip.is_loopback())
    }

    /// A sentence if several of `clients` have one address.
    fn shared(&self, clients: u32) -> Option<String> {
        let given = self.sources.len();
        let enough = usize::try_from(clients).unwrap_or(usize::MAX) <= given.max(1);
        if enough || self.are_chosen() {
            return None;
        }
        let addresses = match given {
            0 => "the one source address that the system chooses".to_owned(),
            1 => "the one source address given with --source".to_owned(),
            several => format!("the {several} source addresses given with --source"),
        };
        Some(format!(
            "{clients} simulated clients share {addresses}: each has its own connections, ports \
             and machine name, but a server that distinguishes clients by address sees fewer of \
             them; --source gives more addresses of this machine, --worker more machines"
        ))
    }
}

/// The addresses of `hosts`, separated by commas. A port behind the last is that of all hosts that
/// have none of their own; without one it is `port`.
fn resolve_all(
    hosts: &str,
    port: u16,
    refuse: impl Fn(&str) -> BenchError,
) -> Result<Vec<SocketAddr>, BenchError> {
    let last = hosts.rsplit(',').next().unwrap_or(hosts);
    let common = match port_of(last) {
        None => port,
        Some(port) => {
            port.parse().map_err(|_| refuse(&format!("{port:?} is not a port number")))?
        }
    };
    let addresses: Vec<SocketAddr> =
        hosts.split(',').map(|host| resolve(host, common, &refuse)).collect::<Result<_, _>>()?;
    let mut different = std::collections::HashSet::new();
    match addresses.iter().find(|address| !different.insert(**address)) {
        Some(twice) => Err(refuse(&format!("{twice} is there twice"))),
        None => Ok(addresses),
    }
}

/// The port in `HOST:PORT` or `[ADDRESS]:PORT`.
fn port_of(host: &str) -> Option<&str> {
    let outside = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
    let bare = host.parse::<std::net::Ipv6Addr>().is_ok();
    if bare { None } else { outside.rsplit_once(':').map(|(_, port)| port) }
}

fn resolve(
    host: &str,
    port: u16,
    refuse: impl Fn(&str) -> BenchError,
) -> Result<SocketAddr, BenchError> {
    if host.is_empty() {
        return Err(refuse("a host is missing"));
    }
    let bare = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    let named = if host.contains(':') { host.to_owned() } else { format!("{host}:{port}") };
    let mut found = named
        .to_socket_addrs()
        .map_err(|error| refuse(&format!("{host:?} is not an address: {error}")))?;
    found.next().ok_or_else(|| refuse(&format!("{host:?} has no address")))
}

fn refuse(url: &str, why: &str) -> BenchError {
    BenchError::Target(format!("{url:?} is not an NFS target: {why}"))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nfs(nfs) => {
                write!(f, "nfs://{}", nfs.address)?;
                for address in &nfs.more {
                    write!(f, ",{address}")?;
                }
                f.write_str(&nfs.export)
            }
            Self::Smb(smb) => smb.fmt(f),
            Self::Path(path) => path.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_in_full() {
        let target =
            NfsTarget::parse("nfs://127.0.0.1:2050/vol/a?mountport=7&uid=5&gid=6").unwrap();
        assert_eq!(target.address, "127.0.0.1:2050".parse().unwrap());
        assert_eq!((target.mount_port, target.resvport), (Some(7), false));
        assert_eq!((target.export.as_str(), target.uid, target.gid), ("/vol/a", 5, 6));
        let six = NfsTarget::parse("nfs://[::1]/v").unwrap();
        assert_eq!(six.address, "[::1]:2049".parse().unwrap());
        assert_eq!(six.mount_port, None);
        assert!(NfsTarget::parse("nfs://[::1]/v?resvport=1").unwrap().resvport);
        assert!(!NfsTarget::parse("nfs://[::1]/v?resvport=0").unwrap().resvport);
    }

    #[test]
    fn several_hosts_share_the_port_behind_the_last_and_clients_take_them_in_turn() {
        let target = NfsTarget::parse("nfs://127.0.0.1,127.0.0.2:99,127.0.0.3:2050/vol").unwrap();
        let all = [0, 1, 2, 3].map(|client| target.addresses().of_client(client).to_string());
        assert_eq!(all, ["127.0.0.1:2050", "127.0.0.2:99", "127.0.0.3:2050", "127.0.0.1:2050"]);
        let text = Target::Nfs(target.clone()).to_string();
        assert_eq!(text, "nfs://127.0.0.1:2050,127.0.0.2:99,127.0.0.3:2050/vol");
        assert_eq!(NfsTarget::parse(&text).unwrap(), target);
        let six = NfsTarget::parse("nfs://[::1],[::2]:7/v").unwrap();
        assert_eq!((six.address.port(), six.more), (7, vec!["[::2]:7".parse().unwrap()]));
    }

    #[test]
    fn wrong_urls_say_what_is_wrong() {
        let message = |url: &str| NfsTarget::parse(url).unwrap_err().to_string();
        assert!(message("127.0.0.1:/vol").contains("must start with nfs://"));
        assert!(message("nfs://127.0.0.1").contains("export is missing"));
        assert!(message("nfs://127.0.0.1/v?mountport=x").contains("must be a number"));
        assert!(message("nfs://127.0.0.1/v?resvport=2").contains("resvport is 0 or 1"));
        for unknown in ["port=1", "mountproto=tcp", "ro"] {
            let url = format!("nfs://127.0.0.1/v?{unknown}");
            let told = message(&url);
            let name = unknown.split('=').next().unwrap();
            assert!(told.contains(&format!("the option {name:?} is unknown; known")), "{told}");
        }
        assert!(message("nfs://127.0.0.1,127.0.0.1/v").contains("there twice"));
        assert!(message("nfs://127.0.0.1,,127.0.0.2/v").contains("a host is missing"));
        assert!(message("nfs://127.0.0.1:x/v").contains("not a port number"));
    }

    #[test]
    fn many_clients_get_distinct_loopback_addresses_with_no_zero_or_broadcast_byte() {
        let target = NfsTarget::parse("nfs://127.0.0.1/v").unwrap();
        let all: std::collections::BTreeSet<_> =
            (0..1000).map(|i| target.source(i, 1000).unwrap()).collect();
        assert_eq!(all.len(), 1000);
        assert!(all.contains(&"127.0.1.1".parse().unwrap()));
        assert!(all.contains(&"127.0.2.1".parse().unwrap()));
        assert_eq!(target.source(0, 1), None);
        assert_eq!(Target::Nfs(target).shared_source(1000), None);
    }

    #[test]
    fn clients_of_a_remote_target_take_the_given_addresses_in_turn_or_share_one() {
        let mut target = NfsTarget::parse("nfs://192.0.2.1/v").unwrap();
        let shared =
            |target: &NfsTarget, clients| Target::Nfs(target.clone()).shared_source(clients);
        assert_eq!([0, 1].map(|client| target.source(client, 2)), [None, None]);
        assert!(shared(&target, 2).unwrap().contains("one source address that the system"));
        assert_eq!(shared(&target, 1), None);
        target.sources = vec!["192.0.2.7".parse().unwrap(), "192.0.2.8".parse().unwrap()];
        let all = [0, 1, 2].map(|client| target.source(client, 3).unwrap().to_string());
        assert_eq!(all, ["192.0.2.7", "192.0.2.8", "192.0.2.7"]);
        assert_eq!(shared(&target, 2), None);
        assert!(shared(&target, 3).unwrap().contains("the 2 source addresses"));
    }

    #[test]
    fn each_client_has_a_machine_name() {
        let target = NfsTarget::parse("nfs://192.0.2.1/v").unwrap();
        assert_eq!(target.machine_of(0, 1), "weir-bench");
        assert_eq!(
            [0, 31].map(|client| target.machine_of(client, 32)),
            ["weir-bench-1", "weir-bench-32"]
        );
    }
}
