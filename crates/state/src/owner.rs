//! The owners of locks: clients, and owners within them, as opaque bytes or as open files.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use weir_core::Origin;

/// The protocol that chose the bytes of a client or an owner, so that no two protocols can mean
/// the same one by accident. Another protocol is one more variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// NLM, the lock manager beside NFSv3.
    Nlm,
    /// SMB. A client is a session, and its owners are its opens.
    Smb,
    /// The protocol for tests of the server.
    #[cfg(feature = "testing")]
    Test,
}

/// A client: what dies as one when a machine goes away. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Client(Arc<Peer>);

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Peer {
    protocol: Protocol,
    /// The origin, before the name, so that the order puts all clients of an origin side by side.
    origin: Origin,
    id: Box<[u8]>,
}

impl Client {
    /// The client with the identity `id` in `protocol`. Bounds count its requests against `origin`,
    /// which must be the same for the same `id`.
    #[must_use]
    pub fn new(protocol: Protocol, origin: Origin, id: &[u8]) -> Self {
        Self(Arc::new(Peer { protocol, origin, id: id.into() }))
    }

    /// The origin of its requests.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.0.origin
    }

    /// The protocol that knows it.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.0.protocol
    }

    /// The protocol's identity of the client.
    #[must_use]
    pub fn id(&self) -> &[u8] {
        &self.0.id
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.0.protocol, self.0.id.escape_ascii())
    }
}

/// Names an open file. Never used twice as long as the server runs, and later opens have greater
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpenId(pub u64);

/// An owner of locks: a name that a client chose for one of its processes, or one of its opens. It
/// belongs to a client and is gone with it. Cheap to clone.
///
/// The locks of a named owner follow POSIX: they never conflict with each other, and join and
/// split. Those of an open follow MS-FSA: each stays the range that it was taken as, and an
/// exclusive one conflicts with the open's own locks too.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(Arc<Identity>);

/// The order puts all owners of a client side by side.
#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Identity {
    client: Client,
    name: Box<[u8]>,
    open: Option<OpenId>,
}

impl Owner {
    /// The owner that `client` calls `name`.
    #[must_use]
    pub fn new(client: Client, name: &[u8]) -> Self {
        Self(Arc::new(Identity { client, name: name.into(), open: None }))
    }

    /// The owner that is the open `open` of `client`.
    #[must_use]
    pub fn of_open(client: Client, open: OpenId) -> Self {
        Self(Arc::new(Identity { client, name: Box::default(), open: Some(open) }))
    }

    /// The owner in place of `self` that belongs to this equal value of its client.
    pub(crate) fn with_client(&self, client: Client) -> Self {
        let (name, open) = (self.0.name.clone(), self.0.open);
        Self(Arc::new(Identity { client, name, open }))
    }

    /// The open that it is, if it is one.
    #[must_use]
    pub fn open(&self) -> Option<OpenId> {
        self.0.open
    }

    /// The client it belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The client's name for the owner; none for an open.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.0.name
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.open {
            Some(open) => write!(f, "Owner({:?}, {open:?})", self.0.client),
            None => write!(f, "Owner({:?}, {})", self.0.client, self.0.name.escape_ascii()),
        }
    }
}
