//! What to measure: an NFS export or a path.

use crate::error::BenchError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// The port of NFS, RFC 1813 §2.1.
const NFS_PORT: u16 = 2049;

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// An export, by the NFSv3 protocol.
    Nfs(NfsTarget),
    /// A directory of a mounted file system.
    Path(PathBuf),
}

/// An NFSv3 export and who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsTarget {
    /// Where NFS is served.
    pub address: SocketAddr,
    /// Where MOUNT is served.
    pub mount_address: SocketAddr,
    /// The export, with its leading slash.
    pub export: String,
    /// User in the AUTH_SYS credential.
    pub uid: u32,
    /// Group in the AUTH_SYS credential.
    pub gid: u32,
    /// Source addresses for the simulated clients, in order. Empty: chosen from 127.0.1.0/16 for
    /// several clients of a loopback IPv4 target, left to the system otherwise.
    pub sources: Vec<IpAddr>,
}

impl NfsTarget {
    /// An export on one address, MOUNT on the same port, asked for as the superuser.
    #[must_use]
    pub fn new(address: SocketAddr, export: impl Into<String>) -> Self {
        Self {
            address,
            mount_address: address,
            export: export.into(),
            uid: 0,
            gid: 0,
            sources: Vec::new(),
        }
    }

    /// Reads `nfs://HOST[:PORT]/EXPORT[?mountport=PORT&uid=N&gid=N]`. Host names are resolved
    /// now; the first address is taken.
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
        let (host, export) = place.split_at(slash);
        let mut target = Self::new(resolve(url, host)?, export);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let number = value.parse::<u32>().map_err(|_| {
                refuse(url, &format!("the value of {key:?} must be a number, not {value:?}"))
            })?;
            match key {
                "mountport" => target.mount_address.set_port(
                    u16::try_from(number).map_err(|_| refuse(url, "mountport is over 65535"))?,
                ),
                "uid" => target.uid = number,
                "gid" => target.gid = number,
                _ => return Err(refuse(url, &format!("{key:?} is none of mountport, uid, gid"))),
            }
        }
        Ok(target)
    }

    /// The source address of client `index` of `clients`; `None` leaves it to the system.
    ///
    /// # Errors
    /// [`BenchError::Workload`] if there are fewer addresses than clients.
    pub(crate) fn source(&self, index: u32, clients: u32) -> Result<Option<IpAddr>, BenchError> {
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(address) = self.sources.get(position) {
            return Ok(Some(*address));
        }
        if clients == 1 {
            return Ok(None);
        }
        if !self.sources.is_empty() {
            let given = self.sources.len();
            return Err(BenchError::Workload(format!(
                "{clients} clients need {clients} source addresses, not {given}"
            )));
        }
        match self.address.ip() {
            IpAddr::V4(ip) if ip.is_loopback() && clients <= 60_000 => {
                let [_, _, high, low] =
                    (0x0100 + index / 250 * 256 + index % 250 + 1).to_be_bytes();
                Ok(Some(IpAddr::from([127, 0, high, low])))
            }
            _ => Err(BenchError::Workload(format!(
                "several clients need source addresses: name {clients} addresses of this machine \
                 with --source (only IPv4 loopback targets get them by themselves)"
            ))),
        }
    }
}

fn resolve(url: &str, host: &str) -> Result<SocketAddr, BenchError> {
    let bare = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, NFS_PORT));
    }
    let named = if host.contains(':') { host.to_owned() } else { format!("{host}:{NFS_PORT}") };
    let mut found = named
        .to_socket_addrs()
        .map_err(|error| refuse(url, &format!("{host:?} is no address: {error}")))?;
    found.next().ok_or_else(|| refuse(url, &format!("{host:?} has no address")))
}

fn refuse(url: &str, why: &str) -> BenchError {
    BenchError::Target(format!("{url:?} is no NFS target: {why}"))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nfs(nfs) => write!(f, "nfs://{}{}", nfs.address, nfs.export),
            Self::Path(path) => write!(f, "{}", path.display()),
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
        assert_eq!(target.mount_address, "127.0.0.1:7".parse().unwrap());
        assert_eq!((target.export.as_str(), target.uid, target.gid), ("/vol/a", 5, 6));
        let six = NfsTarget::parse("nfs://[::1]/v").unwrap();
        assert_eq!(six.address, "[::1]:2049".parse().unwrap());
    }

    #[test]
    fn wrong_urls_say_what_is_wrong() {
        let message = |url| NfsTarget::parse(url).unwrap_err().to_string();
        assert!(message("127.0.0.1:/vol").contains("must start with nfs://"));
        assert!(message("nfs://127.0.0.1").contains("export is missing"));
        assert!(message("nfs://127.0.0.1/v?mountport=x").contains("must be a number"));
        assert!(message("nfs://127.0.0.1/v?port=1").contains("none of mountport"));
    }

    #[test]
    fn many_clients_get_distinct_loopback_addresses_with_no_zero_or_broadcast_byte() {
        let target = NfsTarget::parse("nfs://127.0.0.1/v").unwrap();
        let all: std::collections::BTreeSet<_> =
            (0..1000).map(|i| target.source(i, 1000).unwrap().unwrap()).collect();
        assert_eq!(all.len(), 1000);
        assert!(all.contains(&"127.0.1.1".parse().unwrap()));
        assert!(all.contains(&"127.0.2.1".parse().unwrap()));
        assert_eq!(target.source(0, 1).unwrap(), None);
    }

    #[test]
    fn remote_targets_want_their_sources_named() {
        let mut target = NfsTarget::parse("nfs://192.0.2.1/v").unwrap();
        assert!(target.source(0, 2).is_err());
        target.sources = vec!["192.0.2.7".parse().unwrap()];
        assert!(target.source(0, 2).unwrap().is_some());
        assert!(target.source(1, 2).unwrap_err().to_string().contains("2 source addresses"));
    }
}
