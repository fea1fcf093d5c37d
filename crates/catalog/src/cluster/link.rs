//! A gateway's connection of its database with the shared store: following the changes of others,
//! and publishing its own.
//!
//! A guarded change replaces the head, and its guard is the revision at which the gateway knows the
//! head; so of two changes at once one is refused, and made again on top of the other. Where the
//! answer is lost, the head is written again unchanged: after that the lost transaction can no
//! longer be carried out, and `last/GATEWAY` tells whether it was ([`Link::settle`]).

use super::capture;
use super::document::{Documents, Place, ROWS, decode, encode, hex, row_error};
use super::envelope::{self, Chunk, Head, Intent, Last};
use super::key::{ClusterKey, Secret};
use super::store::{
    Changes, ClusterStore, Decision, Guard, Listing, OPERATIONS_MAX, Operation, StoreError,
    TRANSACTION_BYTES_MAX,
};
use super::tables::{Guarded, counted};
use super::vault::{self, Vault};
use crate::directory;
use crate::error::{CatalogError, ClusterError, Result};
use crate::schema::newest_format;
use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How often a transaction whose answer was lost is looked for or sent again.
pub(super) const TRIES: usize = 3;
const NAME_CHARS_MAX: usize = 64;

/// The guard of a life, which can be set once for all clones.
#[derive(Clone, Debug, Default)]
pub struct LifeGuard(Arc<OnceLock<Guard>>);

impl LifeGuard {
    pub(crate) fn get(&self) -> Option<&Guard> {
        self.0.get()
    }

    /// Sets the guard. The first one stays.
    pub(crate) fn set(&self, guard: Guard) {
        self.0.get_or_init(|| guard);
    }
}

impl From<Guard> for LifeGuard {
    fn from(guard: Guard) -> Self {
        Self(Arc::new(OnceLock::from(guard)))
    }
}

/// The place of a gateway in a cluster.
#[derive(Clone)]
pub struct ClusterPlace {
    /// The store that the gateways share.
    pub store: Arc<dyn ClusterStore>,
    /// The name of the cluster.
    pub cluster: String,
    /// The name of the gateway. No two processes that run have the same, which `life` ensures.
    pub gateway: String,
    /// The guard of everything that the gateway writes: it holds as long as this life of it is a
    /// member. A life that is no member yet has none, and gets it
    /// ([`Catalog::guard_by`](crate::Catalog::guard_by)) before it becomes one.
    pub life: LifeGuard,
    /// The key of the cluster.
    pub key: ClusterKey,
}

impl fmt::Debug for ClusterPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cluster, gateway) = (&self.cluster, &self.gateway);
        f.debug_struct("ClusterPlace")
            .field("cluster", cluster)
            .field("gateway", gateway)
            .finish_non_exhaustive()
    }
}

impl ClusterPlace {
    /// The prefix of the catalogue's keys.
    ///
    /// # Errors
    /// `BadName`.
    pub(crate) fn prefix(&self) -> Result<String> {
        check_name(&self.gateway)?;
        prefix_of(&self.cluster)
    }
}

/// The prefix of the keys of this cluster's catalogue.
///
/// # Errors
/// `BadName`.
pub(crate) fn prefix_of(cluster: &str) -> Result<String> {
    check_name(cluster)?;
    Ok(format!("/weir/{cluster}/catalog/"))
}

fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(plain) {
        let name = name.chars().take(NAME_CHARS_MAX).collect();
        return Err(ClusterError::BadName { name }.into());
    }
    Ok(())
}

/// The part of the catalogue that applied documents changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nothing that a snapshot has, but its generation.
    Nothing,
    /// One volume.
    Volume(u32),
    /// Users and groups.
    Accounts,
    /// Anything.
    Everything,
}

/// A change that the shared store has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// The revision of its only transaction.
    at: Option<u64>,
}

/// The state of the shared store as far as it is applied to the database.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The revision up to which everything is applied.
    pub(super) revision: u64,
    pub(crate) head: Head,
    /// The revision of the head.
    pub(super) head_revision: u64,
    /// The intent with its revision, while a large change is under way.
    pub(super) intent: Option<(Intent, u64)>,
    /// The revision of the last change of this gateway, which the database has already.
    own: Option<u64>,
}

/// A database that follows the shared store. Used under the lock of the database.
pub(crate) struct Link {
    pub(super) place: ClusterPlace,
    pub(super) prefix: String,
    vault: Vault,
    state: Mutex<State>,
}

impl Link {
    /// Fills `db` from the shared store. A large change that is valid is completed first.
    ///
    /// # Errors
    /// `Missing`, `Row`, `Newer`, `Unreachable`, `BadName`, those of `check`.
    pub(crate) fn open<T>(
        place: ClusterPlace,
        db: &mut Connection,
        check: impl FnOnce(&Transaction<'_>, Reach) -> Result<T>,
    ) -> Result<(Self, T)> {
        let prefix = place.prefix()?;
        let (state, documents) = listed(&place, &prefix)?;
        let vault = Vault::of(&place)?;
        let link = Self { place, prefix, vault, state: Mutex::new(state) };
        let documents = match link.state().intent {
            Some((intent, _)) if intent.valid => {
                link.resolve()?;
                let (state, documents) = listed(&link.place, &link.prefix)?;
                link.remember(state);
                documents
            }
            _ => documents,
        };
        let made = applied(db, &link.state().head, &Batch::All(&documents), check)?;
        Ok((link, made))
    }

    /// The state of the shared store as far as it is known.
    pub(crate) fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// The key in the store of `path`.
    pub(super) fn key(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Applies what happened in the shared store up to now. `check` looks at the database before
    /// anything is valid; its result is given if something was applied. If the documents are
    /// refused, the database stays as it was.
    ///
    /// # Errors
    /// `Replaced`, `Row`, `Newer`, `Unreachable`, those of `check`.
    pub(crate) fn follow<T>(
        &self,
        db: &mut Connection,
        check: impl Fn(&Transaction<'_>, Reach) -> Result<T>,
    ) -> Result<Option<T>> {
        let before = self.state();
        let changes = match self.place.store.changes(&self.prefix, before.revision) {
            Ok(changes) => changes,
            Err(StoreError::Compacted) => return self.reload(db, check).map(Some),
            Err(error) => return Err(error.into()),
        };
        let steps = gathered(&before, &self.prefix, changes);
        let done = steps.and_then(|steps| match steps {
            Steps::Listed => self.reload(db, &check).map(Some),
            Steps::None(state) => {
                self.remember(state);
                Ok(None)
            }
            Steps::Some(state, steps) => {
                check_instance(&before, &state)?;
                let made = applied(db, &state.head, &Batch::Steps(&steps), &check)?;
                self.remember(state);
                Ok(Some(made))
            }
        });
        match done {
            // It may have been corrected since.
            Err(CatalogError::Cluster(ClusterError::Row { .. } | ClusterError::Newer { .. })) => {
                self.reload(db, check).map(Some)
            }
            done => done,
        }
    }

    /// Fills the database again with everything that the shared store has.
    fn reload<T>(
        &self,
        db: &mut Connection,
        check: impl FnOnce(&Transaction<'_>, Reach) -> Result<T>,
    ) -> Result<T> {
        let (state, documents) = listed(&self.place, &self.prefix)?;
        check_instance(&self.state(), &state)?;
        let made = applied(db, &state.head, &Batch::All(&documents), check)?;
        self.remember(state);
        Ok(made)
    }

    /// Publishes what `tx` touched. When it returns without an error the change is valid, and `tx`
    /// is to be committed and the result given to [`Self::sent`].
    ///
    /// # Errors
    /// `Overtaken` if the change must be made again after [`Self::follow`]; `NotMember`, `Undone`,
    /// `NotYet`, `TooLarge`, `Unreachable`: nothing was changed; `InDoubt`.
    pub(crate) fn publish(&self, tx: &Transaction<'_>) -> Result<Sent> {
        let documents = capture::touched(tx)?;
        let state = self.state();
        let generation: u64 = tx.query_row("SELECT generation FROM meta", [], |row| row.get(0))?;
        let operations = self.operations(&documents, state.head.format)?;
        let by_head = documents.values().any(|(place, _)| place.table.guarded == Guarded::ByHead);
        if generation == state.head.generation && !by_head {
            let life: Vec<_> = self.place.life.get().cloned().into_iter().collect();
            for group in grouped(operations, OPERATIONS_MAX, TRANSACTION_BYTES_MAX) {
                self.insist(&life, &group, self.not_member())?;
            }
            return Ok(Sent::default());
        }
        if state.intent.is_some() {
            return Err(ClusterError::Overtaken.into());
        }
        let counters = capture::counters(tx)?;
        self.send(&state, &Head { generation, counters, ..state.head.clone() }, operations)
    }

    /// Notes that the database has a change that was published.
    pub(crate) fn sent(&self, sent: Sent) {
        let own = sent.at.or(self.state().own);
        self.remember(State { own, ..self.state() });
    }

    /// Carries out a guarded change: `operations` with this head.
    ///
    /// # Errors
    /// The errors of [`Self::publish`].
    pub(crate) fn send(
        &self,
        state: &State,
        head: &Head,
        operations: Vec<Operation>,
    ) -> Result<Sent> {
        let change = hex(&directory::random::<16>()?);
        let mut all = self.heading(head, &change)?;
        let bytes: usize = all.iter().chain(&operations).map(Operation::bytes).sum();
        if all.len() + operations.len() > OPERATIONS_MAX || bytes > TRANSACTION_BYTES_MAX {
            return self.send_large(state, head, operations, &change);
        }
        all.extend(operations);
        let at = self.decide(None, &all, &change, state.head_revision)?;
        Ok(Sent { at: Some(at) })
    }

    /// The operations that make `change` the last one, and this gateway's.
    pub(super) fn heading(&self, head: &Head, change: &str) -> Result<Vec<Operation>> {
        let (change, gateway) = (change.to_owned(), self.place.gateway.clone());
        let last = envelope::write(&Last::of(&change))?;
        let head = envelope::write(&Head { change, gateway, ..head.clone() }.stored())?;
        Ok(vec![
            Operation::Put { key: self.key("head"), value: head },
            Operation::Put { key: self.last(), value: last },
        ])
    }

    fn last(&self) -> String {
        self.key(&format!("last/{}", self.place.gateway))
    }

    /// The operations that write `documents`.
    pub(crate) fn operations(&self, documents: &Documents, format: u32) -> Result<Vec<Operation>> {
        let operation = |(path, (place, document)): (&String, &(Place, _))| {
            let key = self.key(path);
            Ok(match document {
                Some(document) => Operation::Put { key, value: encode(place, document, format)? },
                None => Operation::Delete { key },
            })
        };
        documents.iter().map(operation).collect()
    }

    pub(crate) const fn place(&self) -> &ClusterPlace {
        &self.place
    }

    /// The secrets of the cluster.
    pub(crate) fn vault(&self) -> Vault {
        self.vault.clone()
    }

    /// Carries out a transaction that replaces the head, which was at `head_revision`, in the name
    /// of `change`. Gives its revision.
    pub(super) fn decide(
        &self,
        more: Option<&Guard>,
        operations: &[Operation],
        change: &str,
        head_revision: u64,
    ) -> Result<u64> {
        let head = Guard::At { key: self.key("head"), revision: head_revision };
        let guards: Vec<_> =
            [&head].into_iter().chain(more).chain(self.place.life.get()).cloned().collect();
        match self.place.store.commit(&guards, operations) {
            Ok(Decision::At(revision)) => Ok(revision),
            Ok(Decision::Refused) => {
                let head = self.place.store.get(&self.key("head")).ok().flatten();
                let held = head.is_some_and(|head| head.revision == head_revision);
                // If the head held, it was the other guard.
                let over = held && more.is_none() && self.place.life.get().is_some();
                Err(if over { self.not_member() } else { ClusterError::Overtaken }.into())
            }
            Err(StoreError::Unknown(_)) => self.settle(change, head_revision),
            Err(error) => Err(error.into()),
        }
    }

    /// Finds out whether the transaction of `change` was carried out. While the head is where it
    /// was, it still may be; so the head is written again as it is, also by a life that is over:
    /// that changes nothing, and tells whether its last change was made.
    fn settle(&self, change: &str, head_revision: u64) -> Result<u64> {
        let (store, key) = (&self.place.store, self.key("head"));
        for _ in 0..TRIES {
            let Ok(found) = store.get(&key) else { continue };
            match found {
                Some(head) if head.revision == head_revision => {
                    let guard = Guard::At { key: key.clone(), revision: head_revision };
                    let again = Operation::Put { key: key.clone(), value: head.value };
                    // The head tells in the next turn whether this was carried out.
                    let _seen_next = store.commit(&[guard], &[again]);
                }
                _ => {
                    let Ok(last) = store.get(&self.last()) else { continue };
                    return match last {
                        Some(last) if self.is_of(&last.value, change)? => Ok(last.revision),
                        _ => Err(ClusterError::Overtaken.into()),
                    };
                }
            }
        }
        Err(ClusterError::InDoubt.into())
    }

    fn is_of(&self, last: &[u8], change: &str) -> Result<bool> {
        Ok(envelope::read::<Last>(&self.last(), last)?.change == change)
    }

    /// Carries out a transaction that may be carried out twice, until there is an answer.
    pub(super) fn insist(
        &self,
        guards: &[Guard],
        operations: &[Operation],
        refused: ClusterError,
    ) -> Result<()> {
        let mut lost = false;
        for _ in 0..TRIES {
            match self.place.store.commit(guards, operations) {
                Ok(Decision::At(_)) => return Ok(()),
                Ok(Decision::Refused) => return Err(refused.into()),
                Err(StoreError::Unavailable(_)) if lost => {}
                Err(StoreError::Unknown(_)) => lost = true,
                Err(error) => return Err(error.into()),
            }
        }
        Err(ClusterError::InDoubt.into())
    }

    pub(super) fn not_member(&self) -> ClusterError {
        ClusterError::NotMember { gateway: self.place.gateway.clone() }
    }
}

/// Refuses another catalogue than the one that this gateway serves.
fn check_instance(before: &State, after: &State) -> Result<()> {
    match before.head.instance == after.head.instance {
        true => Ok(()),
        false => Err(ClusterError::Replaced.into()),
    }
}

/// `operations` in groups within these bounds. One that is larger by itself is a group too.
pub(super) fn grouped(
    operations: Vec<Operation>,
    count_max: usize,
    bytes_max: usize,
) -> Vec<Vec<Operation>> {
    let mut groups: Vec<Vec<Operation>> = Vec::new();
    let mut bytes = 0;
    for operation in operations {
        let more = operation.bytes();
        match groups.last_mut().filter(|group| group.len() < count_max && bytes + more <= bytes_max)
        {
            Some(group) => {
                group.push(operation);
                bytes += more;
            }
            None => {
                groups.push(vec![operation]);
                bytes = more;
            }
        }
    }
    groups
}

/// Everything that the shared store has: the head with its state, and all documents.
fn listed(place: &ClusterPlace, prefix: &str) -> Result<(State, Documents)> {
    read_listing(place, prefix, &place.store.range(prefix)?)
}

/// Fills `db` with the catalogue as the shared store has it at one revision, and gives the secrets
/// of that revision as they are sealed there. A large change that is valid is completed first.
///
/// # Errors
/// The errors of [`Link::open`]; `Busy` if large changes come one after another.
pub(crate) fn copy(place: &ClusterPlace, db: &mut Connection) -> Result<Vec<(Secret, String)>> {
    let prefix = place.prefix()?;
    for _ in 0..TRIES {
        let listing = place.store.range(&prefix)?;
        let (state, documents) = read_listing(place, &prefix, &listing)?;
        if state.intent.is_some_and(|(intent, _)| intent.valid) {
            // Its chunks may have secrets.
            Link::open(place.clone(), db, |_, _| Ok(()))?;
            continue;
        }
        applied(db, &state.head, &Batch::All(&documents), |_, _| Ok(()))?;
        return vault::sealed(&prefix, &listing);
    }
    Err(ClusterError::Busy { gateway: place.gateway.clone() }.into())
}

fn read_listing(
    place: &ClusterPlace,
    prefix: &str,
    listing: &Listing,
) -> Result<(State, Documents)> {
    let (mut head, mut intent, mut documents) = (None, None, Documents::new());
    let mut chunks = Vec::new();
    for pair in &listing.pairs {
        let path = pair.key.strip_prefix(prefix).unwrap_or(&pair.key);
        match Kind::of(path) {
            Kind::Head => head = Some((read_head(path, &pair.value)?, pair.revision)),
            Kind::Intent => intent = Some((envelope::read(path, &pair.value)?, pair.revision)),
            Kind::Row => insert(&mut documents, path, Some(pair.value.as_slice()))?,
            Kind::Staged => chunks.push((path, &pair.value)),
            Kind::Other => {}
            Kind::Foreign => return Err(foreign(path)),
        }
    }
    let missing = || ClusterError::Missing { cluster: place.cluster.clone() };
    let (head, head_revision) = head.ok_or_else(missing)?;
    let intent: Option<(Intent, u64)> = intent;
    if let Some((Intent { change, valid: true, .. }, _)) = &intent {
        let own = format!("staged/{change}/");
        for (path, value) in chunks.iter().filter(|(path, _)| path.starts_with(&own)) {
            for staged in envelope::read::<Chunk>(path, value)?.staged {
                if Kind::of(&staged.key) == Kind::Row {
                    let value = staged.value.map(|value| value.to_string().into_bytes());
                    insert(&mut documents, &staged.key, value.as_deref())?;
                }
            }
        }
    }
    documents.retain(|_, (_, document)| document.is_some());
    let revision = listing.revision;
    Ok((State { revision, head, head_revision, intent, own: None }, documents))
}

/// The kinds of keys, without the prefix of the catalogue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Head,
    Intent,
    Row,
    Staged,
    /// The last change of a gateway, or a secret.
    Other,
    Foreign,
}

impl Kind {
    fn of(path: &str) -> Self {
        match path {
            "head" => Self::Head,
            "intent" => Self::Intent,
            _ if path.starts_with(ROWS) => Self::Row,
            _ if path.starts_with("staged/") => Self::Staged,
            _ if path.starts_with("last/") || path.starts_with("secrets/") => Self::Other,
            _ => Self::Foreign,
        }
    }
}

fn foreign(path: &str) -> CatalogError {
    row_error(path, "no catalogue has such a key").into()
}

fn read_head(path: &str, value: &[u8]) -> Result<Head> {
    let head: Head = envelope::read(path, value)?;
    let known = newest_format();
    if head.format > known {
        let (found, known) = (head.format.into(), known.into());
        return Err(ClusterError::Newer { key: path.to_owned(), found, known }.into());
    }
    let countable = i64::try_from(head.generation).is_ok();
    let counted = head.counters.len() == counted(head.format);
    if !countable || !counted || head.counters.iter().any(|&counter| counter < 0) {
        return Err(row_error(path, "its numbers are out of bounds").into());
    }
    Ok(head.complete())
}

fn insert(documents: &mut Documents, path: &str, value: Option<&[u8]>) -> Result<()> {
    let place = Place::parse(path)?;
    let document = value.map(|value| decode(&place, value, newest_format())).transpose()?;
    documents.insert(path.to_owned(), (place, document));
    Ok(())
}

/// The events since a state, as they are to be applied.
enum Steps {
    /// The database is to be filled again: a large change became valid.
    Listed,
    /// The database has everything.
    None(State),
    /// The documents of each revision, in order.
    Some(State, Vec<Documents>),
}

fn gathered(before: &State, prefix: &str, changes: Changes) -> Result<Steps> {
    let mut state = State { revision: changes.revision, ..before.clone() };
    let mut steps: Vec<(u64, Documents)> = Vec::new();
    for event in changes.events {
        let path = event.key.strip_prefix(prefix).unwrap_or(&event.key);
        let value = event.value.as_deref();
        match (Kind::of(path), value) {
            (Kind::Head, Some(value)) => {
                state.head = read_head(path, value)?;
                state.head_revision = event.revision;
            }
            (Kind::Head, None) => return Err(row_error(path, "it was deleted").into()),
            (Kind::Intent, Some(value)) => {
                let intent: Intent = envelope::read(path, value)?;
                if intent.valid {
                    return Ok(Steps::Listed);
                }
                state.intent = Some((intent, event.revision));
            }
            (Kind::Intent, None) => state.intent = None,
            (Kind::Row, _) if before.own == Some(event.revision) => {}
            (Kind::Row, value) => {
                if steps.last().is_none_or(|(revision, _)| *revision != event.revision) {
                    steps.push((event.revision, Documents::new()));
                }
                if let Some((_, documents)) = steps.last_mut() {
                    insert(documents, path, value)?;
                }
            }
            (Kind::Staged | Kind::Other, _) => {}
            (Kind::Foreign, _) => return Err(foreign(path)),
        }
    }
    // A change of this gateway is in the database already, with its generation.
    let own = before.own == Some(state.head_revision);
    if steps.is_empty() && (own || state.head.generation == before.head.generation) {
        return Ok(Steps::None(state));
    }
    Ok(Steps::Some(state, steps.into_iter().map(|(_, documents)| documents).collect()))
}

fn reach(steps: &[Documents]) -> Reach {
    let mut reach = Reach::Nothing;
    for (place, _) in steps.iter().flat_map(|documents| documents.values()) {
        let one = match (place.table.name, place.key.first()) {
            ("accounts", _) => Reach::Accounts,
            ("volumes", Some(Value::Integer(id))) => {
                u32::try_from(*id).map_or(Reach::Everything, Reach::Volume)
            }
            ("levels" | "pools" | "addresses" | "gateways" | "calibrations" | "volumes", _) => {
                Reach::Everything
            }
            _ => Reach::Nothing,
        };
        reach = match (reach, one) {
            (Reach::Nothing, one) | (one, Reach::Nothing) => one,
            (reach, one) if reach == one => one,
            _ => Reach::Everything,
        };
    }
    reach
}

/// The documents to apply.
enum Batch<'a> {
    /// All that there are.
    All(&'a Documents),
    /// The documents of each change, in order.
    Steps(&'a [Documents]),
}

/// Applies documents in one transaction, all or nothing.
fn applied<T>(
    db: &mut Connection,
    head: &Head,
    batch: &Batch<'_>,
    check: impl FnOnce(&Transaction<'_>, Reach) -> Result<T>,
) -> Result<T> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.pragma_update(None, "defer_foreign_keys", "ON")?;
    let reach = match batch {
        Batch::All(documents) => {
            capture::empty(&tx)?;
            capture::apply(&tx, documents)?;
            Reach::Everything
        }
        Batch::Steps(steps) => {
            steps.iter().try_for_each(|documents| capture::apply(&tx, documents))?;
            reach(steps)
        }
    };
    tx.execute("INSERT OR IGNORE INTO nsm VALUES (1, -1)", [])?;
    capture::set_counters(&tx, &head.counters)?;
    tx.execute(
        "UPDATE meta SET generation = ?1, instance = ?2",
        params![head.generation, head.instance],
    )?;
    let refused = |what: String| CatalogError::from(row_error(ROWS, &what));
    let made = check(&tx, reach).map_err(|error| match error {
        CatalogError::Damaged(what) => refused(what),
        CatalogError::Database(error) => refused(error.to_string()),
        error => error,
    })?;
    // References that lead nowhere show here.
    tx.commit().map_err(|error| refused(error.to_string()))?;
    Ok(made)
}
