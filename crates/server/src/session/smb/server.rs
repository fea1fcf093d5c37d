//! The state that the SMB sessions of all connections share: the sessions themselves, the counts
//! of failed logins, and what the server says about itself.

use super::sums::Sum;
use super::user_session::UserSession;
use crate::clock::time_of_day;
use crate::limits::{PATH_BYTES, PIPE_BYTES};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;
use weir_catalog::Catalog;
use weir_control::logins::{Login, LoginEvent, Logins};
use weir_crypto::Provider;
use weir_smb::auth::ntlm::ServerNames;
use weir_smb::auth::{NtHash, hint};
use weir_smb::conn::{Greeting, Throttle};
use weir_smb::crypto::{Crypto, NoRandom};
use weir_smb::fscc::NtTime;
use weir_smb::limits::IO_BYTES_MAX;
use weir_smb::open::Deletes;
use weir_smb::wire::FileId;
use weir_state::{Client, Protocol};
use weir_store::VolumeObject;

/// The most letters of a NetBIOS name.
const NETBIOS_NAME_MAX: usize = 15;

/// The name of a server whose host name is none that clients can be told.
const NAME: &str = "WEIR";

/// The shared state.
pub(crate) struct SmbServer {
    pub(super) greeting: Greeting,
    pub(super) names: Arc<ServerNames>,
    /// The server's name, as the list of shares gives it.
    pub(super) name: String,
    pub(super) throttle: Mutex<Throttle>,
    /// Bytes that the pipes of all sessions hold.
    pub(super) pipe_bytes: Arc<Sum>,
    /// Bytes of the paths of the opens of all sessions, without those that do not count.
    pub(super) path_bytes: Arc<Sum>,
    /// The number of renames so far.
    pub(super) renames: AtomicU64,
    /// The logins, for the audit log.
    pub(crate) logins: Arc<Logins>,
    catalog: Arc<Catalog>,
    sessions: Mutex<BTreeMap<u64, Arc<UserSession>>>,
    /// The names of files that are to be deleted when the last of their opens is closed. Locked
    /// after the tables of opens.
    pub(super) deletes: Mutex<Deletes<VolumeObject>>,
    next_session: AtomicU64,
    next_pipe: AtomicU64,
}

impl SmbServer {
    /// The state of a server without sessions, with the users of `catalog`.
    ///
    /// # Errors
    /// [`NoRandom`].
    pub(crate) fn new(catalog: Arc<Catalog>, signing_required: bool) -> Result<Self, NoRandom> {
        let mut random = [0; 32];
        Provider.random(&mut random)?;
        let [guid, session] = [0, 16].map(|at| {
            let mut part = [0; 16];
            part.copy_from_slice(&random[at..at + 16]);
            part
        });
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let (name, names) = names(&host);
        let greeting =
            Greeting { guid, signing_required, io_bytes_max: IO_BYTES_MAX, token: hint() };
        // Ids of sessions begin anywhere, so that those of an earlier server are not met again.
        let first = u64::from_le_bytes(*session.first_chunk().unwrap_or(&[0; 8])) >> 16;
        Ok(Self {
            greeting,
            names: Arc::new(names),
            name,
            throttle: Mutex::default(),
            pipe_bytes: Arc::new(Sum::new(PIPE_BYTES)),
            path_bytes: Arc::new(Sum::new(PATH_BYTES)),
            renames: AtomicU64::new(0),
            logins: Arc::default(),
            catalog,
            sessions: Mutex::default(),
            deletes: Mutex::default(),
            next_session: AtomicU64::new(first.max(1)),
            next_pipe: AtomicU64::new(1),
        })
    }

    /// The present in units of 100 ns since 1601.
    pub(super) fn now() -> u64 {
        u64::try_from(NtTime::from(time_of_day()).0).unwrap_or(0)
    }

    /// The NT hash of a user's password, if the user may log in.
    pub(super) fn nt_hash(&self, user: &weir_catalog::User) -> Option<NtHash> {
        let sealed = user.password.as_ref().filter(|_| user.enabled)?;
        match self.catalog.sealer().open(user.rid, sealed) {
            Ok(hash) => Some(NtHash(hash)),
            Err(error) => {
                tracing::warn!(user = %user.name, %error, "a user cannot log in");
                None
            }
        }
    }

    /// An id for a new session, which no other has.
    pub(super) fn next_session(&self) -> u64 {
        self.next_session.fetch_add(1, Ordering::Relaxed)
    }

    /// An id for a new open of a pipe, which no other open has. Those of files are their numbers in
    /// the tables of opens, which have not this bit.
    pub(super) fn next_pipe(&self) -> FileId {
        let id = 1 << 63 | self.next_pipe.fetch_add(1, Ordering::Relaxed);
        FileId { persistent: id, volatile: id }
    }

    /// Reports a login from `client` to the audit log.
    pub(super) fn report_login(&self, client: IpAddr, account: Option<&str>, event: LoginEvent) {
        self.logins.report(Login { account: account.map(str::to_owned), client, event });
    }

    /// A user has logged in.
    pub(super) fn add(&self, session: &Arc<UserSession>) {
        lock(&self.sessions).insert(session.id, Arc::clone(session));
    }

    /// Removes a session that is over and whose opens are all closed.
    pub(super) fn remove_if_empty(&self, session: &UserSession) {
        if session.is_empty() {
            lock(&self.sessions).remove(&session.id);
        }
    }

    /// The id of the session that the shared tables know as `client`. `None` for a client of
    /// another protocol.
    pub(super) fn session_id(client: &Client) -> Option<u64> {
        let id = client.id().try_into().ok().filter(|_| client.protocol() == Protocol::Smb);
        id.map(u64::from_be_bytes)
    }

    /// The session with this id, unless it is over.
    pub(super) fn session(&self, id: u64) -> Option<Arc<UserSession>> {
        self.holder(id).filter(|session| !session.has_ended())
    }

    /// The session with this id, also if it is over and its opens are about to be closed.
    pub(super) fn holder(&self, id: u64) -> Option<Arc<UserSession>> {
        lock(&self.sessions).get(&id).cloned()
    }

    /// At most `most` sessions with ids above `after` that are not over, in the order of their ids.
    pub(super) fn sessions(&self, after: u64, most: usize) -> Vec<Arc<UserSession>> {
        let above = (Bound::Excluded(after), Bound::Unbounded);
        lock(&self.sessions)
            .range(above)
            .map(|(_, session)| session)
            .filter(|session| !session.has_ended())
            .take(most)
            .cloned()
            .collect()
    }
}

/// The NetBIOS name, and all names, of the host called `host`.
fn names(host: &str) -> (String, ServerNames) {
    let first = host.split('.').next().unwrap_or(host);
    let netbios: String = first.to_uppercase().chars().take(NETBIOS_NAME_MAX).collect();
    match ServerNames::new(&netbios, &host.to_lowercase()) {
        Some(names) => (netbios, names),
        None => names(NAME),
    }
}
