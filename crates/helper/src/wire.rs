//! The messages between a server and the helper of its machine, and their bytes. Plain data. Not
//! here: the socket, and the messages about addresses, which have their own bytes
//! (`weir_address::Frames`) and are carried as they are.
//!
//! A message is in a frame of a link ([`weir_links::framed`]): the version (`u8`), the kind (`u8`),
//! the number of the request (`u32`, 0 if there is none), and the fields. Numbers are big-endian.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use weir_cluster::timing::GATEWAYS_MAX;
use weir_cluster::{GatewayId, Life, MachineId};

/// The version of the messages, those about addresses included. The helper outlives servers, so
/// that of a version of Weir may serve a server of another: as long as this number is the same.
/// Otherwise each refuses the other with words, and the helper has to be restarted while the server
/// is stopped. The helper's first message has its version.
const VERSION: u8 = 1;

/// Longest text in a message, in bytes. Beyond: it is cut.
const WORDS_BYTES_MAX: usize = 1024;

mod kind {
    pub(super) const ANNOUNCE: u8 = 1;
    pub(super) const ATTACH: u8 = 2;
    pub(super) const NOTE: u8 = 3;
    pub(super) const UNNOTE: u8 = 4;
    pub(super) const FOLLOW: u8 = 5;

    pub(super) const WELCOME: u8 = 129;
    pub(super) const DONE: u8 = 130;
    pub(super) const ATTACHED: u8 = 131;
    pub(super) const REFUSED: u8 = 132;

    /// Bytes of the messages about addresses, in both directions.
    pub(super) const ADDRESS: u8 = 64;
}

/// A message of the server to the helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToHelper {
    /// A request, with the number for its answer.
    Request(u32, Request),
    /// Bytes of requests for addresses.
    Address(Vec<u8>),
}

/// A request of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// The process that sends this is this life.
    Announce(MachineId, Life),
    /// The process that sends this is this life, which was announced before if it was.
    Attach(MachineId, Life),
    /// A life of another gateway is being condemned.
    Note(Life),
    /// That is over.
    Unnote(Life),
    /// The servers of the other gateways, and where they take links.
    Follow(BTreeMap<GatewayId, SocketAddr>),
}

/// A message of the helper to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToServer {
    /// The helper has a descriptor of the process; now the process may announce itself.
    Welcome,
    /// The request was carried out.
    Done(u32),
    /// The process is attached.
    Attached {
        /// The number of the request.
        number: u32,
        /// The helper knows the life.
        known: bool,
    },
    /// The request was refused; with number 0, the link ends.
    Refused {
        /// The number of the request.
        number: u32,
        /// The reason, for a person.
        words: String,
        /// The reason, for the program.
        why: Why,
    },
    /// Bytes of reports about addresses.
    Address(Vec<u8>),
}

/// Reasons of refusals that a program tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// None of the others.
    Other,
    /// Another process is served, and has not ended.
    Busy,
    /// The helper does not know the life that sent the request.
    UnknownLife,
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    /// They are of another version.
    #[error(
        "version {0} of the link between server and helper, and this program has version \
         {VERSION}: restart the helper, then the server"
    )]
    Version(u8),
    /// They are no message.
    #[error("a message between server and helper is malformed")]
    Malformed,
}

impl ToHelper {
    /// The bytes of the message.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (number, request) = match self {
            Self::Request(number, request) => (*number, request),
            Self::Address(bytes) => return [begin(kind::ADDRESS, 0), bytes.clone()].concat(),
        };
        match request {
            Request::Announce(machine, life) => {
                let mut bytes = begin(kind::ANNOUNCE, number);
                bytes.extend(machine.0.to_be_bytes());
                put_life(&mut bytes, *life);
                bytes
            }
            Request::Attach(machine, life) => {
                let mut bytes = begin(kind::ATTACH, number);
                bytes.extend(machine.0.to_be_bytes());
                put_life(&mut bytes, *life);
                bytes
            }
            Request::Note(life) => {
                let mut bytes = begin(kind::NOTE, number);
                put_life(&mut bytes, *life);
                bytes
            }
            Request::Unnote(life) => {
                let mut bytes = begin(kind::UNNOTE, number);
                put_life(&mut bytes, *life);
                bytes
            }
            Request::Follow(servers) => {
                let mut bytes = begin(kind::FOLLOW, number);
                for (gateway, address) in servers {
                    bytes.extend(gateway.0.to_be_bytes());
                    put_address(&mut bytes, *address);
                }
                bytes
            }
        }
    }

    /// The message in `bytes`.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let (kind, number, mut rest) = head(bytes)?;
        let request = match kind {
            kind::ADDRESS if number == 0 => return Ok(Self::Address(rest.0.to_vec())),
            kind::ANNOUNCE => Request::Announce(rest.machine()?, rest.life()?),
            kind::ATTACH => Request::Attach(rest.machine()?, rest.life()?),
            kind::NOTE => Request::Note(rest.life()?),
            kind::UNNOTE => Request::Unnote(rest.life()?),
            kind::FOLLOW => Request::Follow(rest.servers()?),
            _ => return Err(WireError::Malformed),
        };
        rest.end()?;
        Ok(Self::Request(number, request))
    }
}

impl ToServer {
    /// The bytes of the message.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Welcome => begin(kind::WELCOME, 0),
            Self::Done(number) => begin(kind::DONE, *number),
            Self::Attached { number, known } => {
                let mut bytes = begin(kind::ATTACHED, *number);
                bytes.push((*known).into());
                bytes
            }
            Self::Refused { number, words, why } => {
                let mut bytes = begin(kind::REFUSED, *number);
                bytes.push(match why {
                    Why::Other => 0,
                    Why::Busy => 1,
                    Why::UnknownLife => 2,
                });
                let end = words.floor_char_boundary(WORDS_BYTES_MAX);
                bytes.extend(words.get(..end).unwrap_or(words).as_bytes());
                bytes
            }
            Self::Address(bytes) => [begin(kind::ADDRESS, 0), bytes.clone()].concat(),
        }
    }

    /// The message in `bytes`.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let (kind, number, mut rest) = head(bytes)?;
        let message = match kind {
            kind::ADDRESS if number == 0 => return Ok(Self::Address(rest.0.to_vec())),
            kind::WELCOME if number == 0 => Self::Welcome,
            kind::DONE => Self::Done(number),
            kind::ATTACHED => match rest.take()? {
                [known @ 0..=1] => Self::Attached { number, known: known == 1 },
                _ => return Err(WireError::Malformed),
            },
            kind::REFUSED => {
                let why = match rest.take()? {
                    [0] => Why::Other,
                    [1] => Why::Busy,
                    [2] => Why::UnknownLife,
                    _ => return Err(WireError::Malformed),
                };
                let words = std::str::from_utf8(rest.0).map_err(|_| WireError::Malformed)?;
                let words = words.to_owned();
                rest.0 = &[];
                Self::Refused { number, words, why }
            }
            _ => return Err(WireError::Malformed),
        };
        rest.end()?;
        Ok(message)
    }
}

fn begin(kind: u8, number: u32) -> Vec<u8> {
    let mut bytes = vec![VERSION, kind];
    bytes.extend(number.to_be_bytes());
    bytes
}

fn put_life(bytes: &mut Vec<u8>, life: Life) {
    bytes.extend(life.gateway.0.to_be_bytes());
    bytes.extend(life.number.to_be_bytes());
}

fn put_address(bytes: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            bytes.push(4);
            bytes.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes.push(6);
            bytes.extend(ip.octets());
        }
    }
    bytes.extend(address.port().to_be_bytes());
}

/// The kind of a message, its number, and its fields.
fn head(bytes: &[u8]) -> Result<(u8, u32, Rest<'_>), WireError> {
    let mut rest = Rest(bytes);
    match rest.take()? {
        [VERSION] => {}
        [version] => return Err(WireError::Version(version)),
    }
    let [kind] = rest.take()?;
    let number = u32::from_be_bytes(rest.take()?);
    Ok((kind, number, rest))
}

/// Fields that were not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, behind) = self.0.split_first_chunk::<N>().ok_or(WireError::Malformed)?;
        self.0 = behind;
        Ok(*taken)
    }

    fn machine(&mut self) -> Result<MachineId, WireError> {
        self.take().map(u64::from_be_bytes).map(MachineId)
    }

    fn gateway(&mut self) -> Result<GatewayId, WireError> {
        self.take().map(u16::from_be_bytes).map(GatewayId)
    }

    fn life(&mut self) -> Result<Life, WireError> {
        Ok(Life { gateway: self.gateway()?, number: u32::from_be_bytes(self.take()?) })
    }

    fn address(&mut self) -> Result<SocketAddr, WireError> {
        let ip: IpAddr = match self.take()? {
            [4] => Ipv4Addr::from(self.take::<4>()?).into(),
            [6] => Ipv6Addr::from(self.take::<16>()?).into(),
            _ => return Err(WireError::Malformed),
        };
        Ok(SocketAddr::new(ip, u16::from_be_bytes(self.take()?)))
    }

    /// At most as many as a cluster has, in the order of their numbers.
    fn servers(&mut self) -> Result<BTreeMap<GatewayId, SocketAddr>, WireError> {
        let mut servers = BTreeMap::new();
        while !self.0.is_empty() {
            let (gateway, address) = (self.gateway()?, self.address()?);
            let is_in_order = servers.last_key_value().is_none_or(|(last, _)| *last < gateway);
            if servers.len() >= GATEWAYS_MAX || !is_in_order {
                return Err(WireError::Malformed);
            }
            servers.insert(gateway, address);
        }
        Ok(servers)
    }

    fn end(&self) -> Result<(), WireError> {
        if self.0.is_empty() { Ok(()) } else { Err(WireError::Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    fn lives() -> impl Strategy<Value = Life> {
        (any::<u16>(), any::<u32>())
            .prop_map(|(gateway, number)| Life { gateway: GatewayId(gateway), number })
    }

    fn requests() -> impl Strategy<Value = Request> {
        let machine = || any::<u64>().prop_map(MachineId);
        let address = (any::<IpAddr>(), any::<u16>()).prop_map(SocketAddr::from);
        prop_oneof![
            (machine(), lives()).prop_map(|(machine, life)| Request::Announce(machine, life)),
            (machine(), lives()).prop_map(|(machine, life)| Request::Attach(machine, life)),
            lives().prop_map(Request::Note),
            lives().prop_map(Request::Unnote),
            btree_map(any::<u16>().prop_map(GatewayId), address, 0..=GATEWAYS_MAX)
                .prop_map(Request::Follow),
        ]
    }

    fn to_helper() -> impl Strategy<Value = ToHelper> {
        prop_oneof![
            (any::<u32>(), requests()).prop_map(|(number, of)| ToHelper::Request(number, of)),
            vec(any::<u8>(), 0..99).prop_map(ToHelper::Address),
        ]
    }

    fn to_server() -> impl Strategy<Value = ToServer> {
        let why = prop_oneof![Just(Why::Other), Just(Why::Busy), Just(Why::UnknownLife)];
        prop_oneof![
            Just(ToServer::Welcome),
            any::<u32>().prop_map(ToServer::Done),
            (any::<u32>(), any::<bool>())
                .prop_map(|(number, known)| ToServer::Attached { number, known }),
            (any::<u32>(), ".{0,40}", why).prop_map(|(number, words, why)| ToServer::Refused {
                number,
                words,
                why
            }),
            vec(any::<u8>(), 0..99).prop_map(ToServer::Address),
        ]
    }

    proptest! {
        #[test]
        fn messages_are_read_as_they_were_written(asked in to_helper(), said in to_server()) {
            let bytes = asked.encode();
            prop_assert_eq!(ToHelper::decode(&bytes), Ok(asked));
            let bytes = said.encode();
            prop_assert_eq!(ToServer::decode(&bytes), Ok(said));
        }

        #[test]
        fn no_bytes_are_misread(bytes in vec(any::<u8>(), 0..60)) {
            let near = [[VERSION].as_slice(), &bytes].concat();
            for bytes in [bytes, near] {
                if let Ok(message) = ToHelper::decode(&bytes) {
                    prop_assert_eq!(message.encode(), bytes.clone());
                }
                if let Ok(message) = ToServer::decode(&bytes) {
                    prop_assert_eq!(message.encode(), bytes);
                }
            }
        }
    }

    /// Bytes of commit db8735a3: a helper of that version may serve a server of this one, and the
    /// other way round.
    #[test]
    fn the_bytes_of_the_first_version_stay_the_same() {
        let life = Life { gateway: GatewayId(1), number: 2 };
        let machine = MachineId(0x0102_0304_0506_0708);
        let servers = [(GatewayId(3), "10.0.1.3:7450".parse().unwrap())].into();
        let asked: [(Request, &[u8]); 5] = [
            (
                Request::Announce(machine, life),
                &[1, 1, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 0, 0, 2],
            ),
            (
                Request::Attach(machine, life),
                &[1, 2, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 0, 0, 2],
            ),
            (Request::Note(life), &[1, 3, 0, 0, 0, 7, 0, 1, 0, 0, 0, 2]),
            (Request::Unnote(life), &[1, 4, 0, 0, 0, 7, 0, 1, 0, 0, 0, 2]),
            (Request::Follow(servers), &[1, 5, 0, 0, 0, 7, 0, 3, 4, 10, 0, 1, 3, 0x1d, 0x1a]),
        ];
        for (request, bytes) in asked {
            let message = ToHelper::Request(7, request);
            assert_eq!(message.encode(), bytes);
            assert_eq!(ToHelper::decode(bytes), Ok(message));
        }
        let refused = |why| ToServer::Refused { number: 7, words: "no".to_owned(), why };
        let said: [(ToServer, &[u8]); 7] = [
            (ToServer::Welcome, &[1, 129, 0, 0, 0, 0]),
            (ToServer::Done(7), &[1, 130, 0, 0, 0, 7]),
            (ToServer::Attached { number: 7, known: true }, &[1, 131, 0, 0, 0, 7, 1]),
            (refused(Why::Other), &[1, 132, 0, 0, 0, 7, 0, b'n', b'o']),
            (refused(Why::Busy), &[1, 132, 0, 0, 0, 7, 1, b'n', b'o']),
            (refused(Why::UnknownLife), &[1, 132, 0, 0, 0, 7, 2, b'n', b'o']),
            (ToServer::Address(vec![9]), &[1, 64, 0, 0, 0, 0, 9]),
        ];
        for (message, bytes) in said {
            assert_eq!(message.encode(), bytes);
            assert_eq!(ToServer::decode(bytes), Ok(message));
        }
    }

    #[test]
    fn the_first_message_of_another_version_says_what_to_do() {
        let refused = ToServer::decode(&[2, 129, 0, 0, 0, 0, 5]).unwrap_err();
        assert_eq!(refused, WireError::Version(2));
        assert!(refused.to_string().contains("restart the helper, then the server"), "{refused}");
    }

    #[test]
    fn another_version_is_told_apart_and_no_list_is_longer_than_a_cluster() {
        assert_eq!(ToHelper::decode(&[9, 1]), Err(WireError::Version(9)));
        let address = "192.0.2.1:1".parse().unwrap();
        let many = (0..=u16::try_from(GATEWAYS_MAX).unwrap()).map(|n| (GatewayId(n), address));
        let many = ToHelper::Request(1, Request::Follow(many.collect())).encode();
        assert_eq!(ToHelper::decode(&many), Err(WireError::Malformed));
        let words = "ä".repeat(WORDS_BYTES_MAX);
        let long = ToServer::Refused { number: 1, words, why: Why::Other }.encode();
        assert!(long.len() <= WORDS_BYTES_MAX + 7);
        assert!(ToServer::decode(&long).is_ok());
    }
}
