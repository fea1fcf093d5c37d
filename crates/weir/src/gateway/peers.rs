//! The clients that are connected to the addresses of a gateway, as its next homes have to know
//! them: a client whose request was received and not answered waits in silence, until the next home
//! makes it connect anew.
//!
//! Each gateway keeps its connections in a row of etcd, `/weir/CLUSTER/peers/GATEWAY`. A row that
//! is old or missing delays clients and harms nobody. Not here: the segments that make clients
//! connect anew (`weir-address`).

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use weir_etcd::{Connection, EtcdError, Write};

/// Most connections in a row. The clients of others find out by themselves.
const CONNECTIONS_MAX: usize = 4096;
/// Most bytes of all rows that are read.
const ROWS_BYTES_MAX: usize = 16 << 20;
/// Time for which clients of an address stay known after it has left.
const LEFT_KEPT: Duration = Duration::from_secs(60);
/// The version of a row.
const VERSION: u16 = 1;
/// The state of an established connection in the tables of the kernel (proc(5), `/proc/net/tcp`).
const ESTABLISHED: &str = "01";

/// Connections by the address and port of the server.
pub(super) type Connections = BTreeMap<SocketAddr, BTreeSet<SocketAddr>>;

/// A row of etcd.
#[derive(Serialize, Deserialize)]
struct Row {
    version: u16,
    connections: Connections,
}

/// The rows of a cluster.
pub(super) struct Peers {
    connection: Connection,
    prefix: String,
    own: String,
    ports: BTreeSet<u16>,
    kept: Mutex<Kept>,
    /// Is called with all connections of the own row, each time that etcd has a new one.
    on_record: Box<dyn Fn(Connections) + Send + Sync>,
}

/// The addresses that a gateway has.
pub(super) struct Here {
    /// The addresses that it serves.
    pub(super) held: BTreeSet<IpAddr>,
    /// The addresses that it removes, whose connections may have been ended.
    pub(super) leaving: BTreeSet<IpAddr>,
}

/// The connections of the own row.
#[derive(Debug, Default)]
struct Kept {
    known: Connections,
    /// The connections that etcd has, as far as is known.
    told: Option<Connections>,
    /// Addresses that are not served here any more, whose clients their next homes have to know.
    left: BTreeMap<IpAddr, Instant>,
}

impl Kept {
    /// Takes the connections that there are to addresses here, while the addresses `held` are
    /// served. The clients of an address that left stay known until its next home has had the time
    /// to read them. If this gateway is the next home, they stay known for one look more.
    fn note(&mut self, held: &BTreeSet<IpAddr>, connected: Connections, now: Instant) {
        let left = &mut self.left;
        for address in self.known.keys().map(SocketAddr::ip).filter(|known| !held.contains(known)) {
            left.entry(address).or_insert(now);
        }
        left.retain(|_, since| now.duration_since(*since) < LEFT_KEPT);
        self.known.retain(|local, _| left.contains_key(&local.ip()));
        left.retain(|address, _| !held.contains(address));
        // The clients of addresses that left come last: a row may have no room for all.
        self.known = bounded(connected.into_iter().chain(std::mem::take(&mut self.known)));
    }
}

impl Peers {
    /// The rows of the cluster `cluster`. The own one is that of the gateway with this number, for
    /// connections to `ports`. `on_record` is called with all connections of the own row, each
    /// time that etcd has a new one.
    pub(super) fn new(
        connection: Connection,
        cluster: &str,
        number: u16,
        ports: BTreeSet<u16>,
        on_record: impl Fn(Connections) + Send + Sync + 'static,
    ) -> Self {
        let prefix = format!("/weir/{cluster}/peers/");
        let own = format!("{prefix}{number:05}");
        let (kept, on_record) = (Mutex::default(), Box::new(on_record));
        Self { connection, prefix, own, ports, kept, on_record }
    }

    /// Brings the own row up to date: the connections to the addresses that are `here`. A failure
    /// delays clients only, and the next look writes the row again.
    pub(super) async fn look(&self, here: impl FnOnce() -> Here) {
        let mut kept = self.kept.lock().await;
        // Asked now: an address that left while this waited keeps the clients that it had.
        let Here { held, leaving } = here();
        match self.connected(&held | &leaving).await {
            Ok(connected) => kept.note(&held, connected, Instant::now()),
            Err(error) => tracing::debug!(%error, "the connections of clients are not known"),
        }
        if kept.told.as_ref() != Some(&kept.known) {
            match self.tell(kept.known.clone()).await {
                Ok(()) => {
                    kept.told = Some(kept.known.clone());
                    (self.on_record)(kept.known.clone());
                }
                Err(error) => tracing::debug!(%error, "etcd does not have the newest clients"),
            }
        }
    }

    /// The connections that are established to `addresses` of this machine.
    ///
    /// # Errors
    /// The kernel's tables cannot be read.
    async fn connected(&self, addresses: BTreeSet<IpAddr>) -> io::Result<Connections> {
        let ports = self.ports.clone();
        let read = move || {
            let mut found = Connections::new();
            for (table, width) in [("/proc/net/tcp", 8), ("/proc/net/tcp6", 32)] {
                let text = fs::read_to_string(table)?;
                let lines = text.lines().skip(1).filter_map(|line| established(line, width));
                for (local, client) in lines {
                    if ports.contains(&local.port()) && addresses.contains(&local.ip()) {
                        found.entry(local).or_default().insert(client);
                    }
                }
            }
            Ok(bounded(found))
        };
        spawn_blocking(read).await.map_err(io::Error::other)?
    }

    /// Writes the own row.
    ///
    /// # Errors
    /// etcd's.
    async fn tell(&self, connections: Connections) -> Result<(), EtcdError> {
        let row = Row { version: VERSION, connections };
        // Maps of plain values always have a text.
        let value = serde_json::to_vec(&row).unwrap_or_default();
        let write = Write::Put { key: self.own.clone(), value, lease: 0 };
        self.connection.commit(&[], &[write]).await.map(drop)
    }

    /// The clients of `address` that any gateway had, by the address with the port.
    ///
    /// # Errors
    /// etcd's.
    pub(super) async fn clients_of(&self, address: IpAddr) -> Result<Connections, EtcdError> {
        let rows = self.connection.range(&self.prefix, ROWS_BYTES_MAX).await?;
        let mut found = Connections::new();
        for pair in rows.pairs {
            let Some(row) = read(&pair.value) else { continue };
            for (local, clients) in row.connections {
                if local.ip() == address {
                    found.entry(local).or_default().extend(clients);
                }
            }
        }
        Ok(bounded(found))
    }
}

/// A row, unless it is damaged or of another version: then there are no clients to help.
fn read(value: &[u8]) -> Option<Row> {
    let row: Row = serde_json::from_slice(value).ok()?;
    (row.version == VERSION).then_some(row)
}

/// The first [`CONNECTIONS_MAX`] of them.
fn bounded(all: impl IntoIterator<Item = (SocketAddr, BTreeSet<SocketAddr>)>) -> Connections {
    let mut found = Connections::new();
    let mut room = CONNECTIONS_MAX;
    let each = all
        .into_iter()
        .flat_map(|(local, clients)| clients.into_iter().map(move |client| (local, client)));
    for (local, client) in each {
        if room == 0 {
            break;
        }
        room -= usize::from(found.entry(local).or_default().insert(client));
    }
    found
}

/// The ends of a connection in a line of a table of the kernel, if it is established. Addresses
/// have `width` hexadecimal digits.
fn established(line: &str, width: usize) -> Option<(SocketAddr, SocketAddr)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, client, state) = (words.next()?, words.next()?, words.next()?);
    (state == ESTABLISHED).then_some(())?;
    Some((socket(local, width)?, socket(client, width)?))
}

/// An address with its port: words of 32 bits in the order of this machine's bytes.
fn socket(text: &str, width: usize) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    (address.len() == width && address.is_ascii()).then_some(())?;
    let word = |at: usize| u32::from_str_radix(address.get(8 * at..8 * (at + 1))?, 16).ok();
    let ip = match width {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?.to_ne_bytes())),
        _ => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?.to_ne_bytes());
            }
            IpAddr::from(Ipv6Addr::from(bytes))
        }
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_kernel_is_read() {
        let line =
            "   1: 0500000A:0801 0D004D0A:034D 01 00000000:00000000 02:000A7D10 00000000 0 0 1 2";
        let (local, client) = established(line, 8).unwrap();
        assert_eq!(local, "10.0.0.5:2049".parse().unwrap());
        assert_eq!(client, "10.77.0.13:845".parse().unwrap());
        let listening = line.replace(" 01 ", " 0A ");
        assert_eq!(established(&listening, 8), None);
        let line =
            "0: 000000FD000000000000000005000000:0801 000000FD000000000000000006000000:0400 01 0";
        let (local, client) = established(line, 32).unwrap();
        assert_eq!(local, "[fd00::5]:2049".parse().unwrap(), "{client}");
        for damaged in ["", "1: 0500000A:0801", "1: 0500000A 0D004D0A:034D 01", "1: x:1 y:2 01"] {
            assert_eq!(established(damaged, 8), None, "{damaged:?}");
        }
    }

    #[test]
    fn connections_of_this_process_are_found_and_no_others() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let client = std::net::TcpStream::connect(local).unwrap();
        let _accepted = listener.accept().unwrap();
        let settings = weir_etcd::Settings {
            endpoints: vec!["http://127.0.0.1:1".to_owned()],
            ..weir_etcd::Settings::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let find = |port: u16, address: &str| {
            let connection = Connection::new(&settings).unwrap();
            let peers = Peers::new(connection, "c", 1, BTreeSet::from([port]), drop);
            let addresses = BTreeSet::from([address.parse().unwrap()]);
            runtime.block_on(peers.connected(addresses)).unwrap()
        };
        let found = find(local.port(), "127.0.0.1");
        let clients = BTreeSet::from([client.local_addr().unwrap()]);
        assert_eq!(found, Connections::from([(local, clients)]));
        assert_eq!(find(local.port(), "127.0.0.2"), Connections::new());
    }

    #[test]
    fn clients_of_an_address_stay_known_for_a_while_after_it_left() {
        let (here, other): (SocketAddr, SocketAddr) =
            ("10.0.0.5:2049".parse().unwrap(), "10.0.0.6:2049".parse().unwrap());
        let client = |port| BTreeSet::from([SocketAddr::new([10, 0, 1, 1].into(), port)]);
        let (both, one) = (BTreeSet::from([here.ip(), other.ip()]), BTreeSet::from([other.ip()]));
        let begun = Instant::now();
        let mut kept = Kept::default();
        kept.note(&both, Connections::from([(here, client(1)), (other, client(2))]), begun);
        kept.note(&one, Connections::from([(other, client(3))]), begun);
        let known = Connections::from([(here, client(1)), (other, client(3))]);
        assert_eq!(kept.known, known, "the one that left, and the newest of the one that is here");
        kept.note(&one, Connections::from([(other, client(3))]), begun + LEFT_KEPT);
        assert_eq!(kept.known, Connections::from([(other, client(3))]));
        kept.note(&both, Connections::new(), begun + LEFT_KEPT);
        assert_eq!(kept.known, Connections::new(), "what is here is read anew");
    }

    #[test]
    fn clients_of_an_address_that_leaves_and_comes_back_stay_known() {
        let here: SocketAddr = "10.0.0.5:2049".parse().unwrap();
        let client = |ports: &[u16]| {
            let clients = ports.iter().map(|port| SocketAddr::new([10, 0, 1, 1].into(), *port));
            Connections::from([(here, clients.collect())])
        };
        let (held, nothing) = (BTreeSet::from([here.ip()]), BTreeSet::new());
        let now = Instant::now();
        let mut kept = Kept::default();
        kept.note(&held, client(&[1]), now);
        kept.note(&nothing, client(&[2]), now);
        assert_eq!(kept.known, client(&[1, 2]), "it is leaving, and has a new client");
        kept.note(&nothing, Connections::new(), now);
        assert_eq!(kept.known, client(&[1, 2]), "its connections have been ended");
        kept.note(&held, client(&[3]), now);
        assert_eq!(kept.known, client(&[1, 2, 3]), "they may have to be told that it is back");
        kept.note(&held, client(&[3]), now);
        assert_eq!(kept.known, client(&[3]));
    }

    #[test]
    fn a_row_has_room_for_the_clients_of_addresses_that_are_here_first() {
        let client = |port| BTreeSet::from([SocketAddr::new([10, 0, 1, 1].into(), port)]);
        let (here, other): (SocketAddr, SocketAddr) =
            ("10.0.0.5:2049".parse().unwrap(), "10.0.0.6:2049".parse().unwrap());
        let (both, one) = (BTreeSet::from([here.ip(), other.ip()]), BTreeSet::from([other.ip()]));
        let begun = Instant::now();
        let mut kept = Kept::default();
        let many = || (0..CONNECTIONS_MAX).map(|port| u16::try_from(port).unwrap());
        let clients = || many().flat_map(client).collect::<BTreeSet<_>>();
        kept.note(&both, Connections::from([(here, clients())]), begun);
        kept.note(&one, Connections::from([(other, client(1))]), begun);
        assert_eq!(kept.known[&other], client(1), "that of the address that is still here");
        assert_eq!(kept.known.values().map(BTreeSet::len).sum::<usize>(), CONNECTIONS_MAX);
    }

    #[test]
    fn a_row_is_read_as_it_was_written_and_is_bounded() {
        let local: SocketAddr = "10.0.0.5:2049".parse().unwrap();
        let many = (0..5000_u16).map(|port| SocketAddr::new([10, 0, 1, 1].into(), port));
        let connections = bounded(Connections::from([(local, many.collect())]));
        assert_eq!(connections.values().map(BTreeSet::len).sum::<usize>(), CONNECTIONS_MAX);
        let value = serde_json::to_vec(&Row { version: VERSION, connections: connections.clone() });
        assert_eq!(read(&value.unwrap()).unwrap().connections, connections);
        // Of commit db8735a3.
        let landed =
            r#"{"version":1,"connections":{"10.0.0.5:2049":["10.0.1.1:700","10.0.1.1:701"]}}"#;
        let row = read(landed.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&row).unwrap(), landed);
        let newer = serde_json::to_vec(&Row { version: 2, connections }).unwrap();
        assert!(read(&newer).is_none() && read(b"{").is_none());
    }
}
