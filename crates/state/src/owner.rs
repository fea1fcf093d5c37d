//! The owners of locks: clients, and owners within them, as opaque bytes.

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
    /// The protocol for tests of the server.
    #[cfg(feature = "testing")]
    Test,
}

/// A client: what dies as one when a machine goes away. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Client {
    protocol: Protocol,
    /// The origin, before the name, so that the order puts all clients of an origin side by side.
    origin: Origin,
    id: Arc<[u8]>,
}

impl Client {
    /// The client with the identity `id` in `protocol`. Bounds count its requests against `origin`,
    /// which must be the same for the same `id`.
    #[must_use]
    pub fn new(protocol: Protocol, origin: Origin, id: &[u8]) -> Self {
        Self { protocol, origin, id: id.into() }
    }

    /// The origin of its requests.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The protocol that knows it.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The protocol's identity of the client.
    #[must_use]
    pub fn id(&self) -> &[u8] {
        &self.id
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.protocol, self.id.escape_ascii())
    }
}

/// An owner: those whose locks never conflict with each other (a process, an open file). It belongs
/// to a client and is gone with it. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(Arc<Identity>);

/// The order puts all owners of a client side by side.
#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Identity {
    client: Client,
    name: Box<[u8]>,
}

impl Owner {
    /// The owner that `client` calls `name`.
    #[must_use]
    pub fn new(client: Client, name: &[u8]) -> Self {
        Self(Arc::new(Identity { client, name: name.into() }))
    }

    /// The client it belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The client's name for the owner.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.0.name
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({:?}, {})", self.0.client, self.0.name.escape_ascii())
    }
}
