//! The load of a volume in the last seconds: its operations by name, its clients, and its kind.
//! The rules of kinds are in [`weir_qos::load`]; the counts come from the data plane, which is
//! asked again at the time of the question.

use super::volume::Watched;
use crate::limits::LOAD_CLIENTS_MAX;
use crate::plane::{OperationCount, Plane, VolumeConnection, VolumeUses};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use weir_api::{ClientLoad, Load, OperationRate};
use weir_catalog::Volume;
use weir_core::OpClass;
use weir_qos::load::small_below;
use weir_qos::{Cost, LoadFacts, LoadKind};

/// Looks, of one second each, between two marks.
const LOOKS: u64 = 5;
/// Marks that are kept: the oldest is 10 to 15 s old.
const MARKS: usize = 3;
/// The shortest period that has rates and kinds: the requests of the first moments say nothing.
const SECONDS_MIN: f64 = 5.0;
/// A second, in nanoseconds.
const SECOND: f64 = 1e9;

/// The uses of a volume at the last marks, oldest first. The newest mark lists all open
/// connections. An older mark lists only the connections whose counts changed until the next mark,
/// with zero counts if they were opened after it; the others had the counts of the next mark.
#[derive(Debug, Default)]
pub(super) struct Marks(VecDeque<VolumeUses>);

impl Marks {
    /// Takes a mark, if it is time for one. A volume that is not active has none.
    pub(super) fn look(
        &mut self,
        number: u64,
        is_active: bool,
        uses: impl FnOnce() -> Option<VolumeUses>,
    ) {
        if !is_active {
            self.0 = VecDeque::new();
            return;
        }
        if !self.0.is_empty() && !number.is_multiple_of(LOOKS) {
            return;
        }
        let Some(uses) = uses() else { return };
        if let Some(last) = self.0.back_mut() {
            last.connections = changed(&last.connections, &uses.connections);
        }
        self.0.push_back(uses);
        if self.0.len() > MARKS {
            self.0.pop_front();
        }
    }

    /// The number of connections in each mark.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> Vec<usize> {
        self.0.iter().map(|uses| uses.connections.len()).collect()
    }

    /// The counts of each connection at the oldest mark: zero if it was opened between two marks.
    fn connections(&self) -> HashMap<u64, &VolumeConnection> {
        // An older mark comes later, and replaces a newer one.
        let marks = self.0.iter().rev();
        marks.flat_map(|uses| &uses.connections).map(|one| (one.connection, one)).collect()
    }
}

/// The counts `before` of the connections whose counts are others `now`. A connection that was not
/// there before had none.
fn changed(before: &[VolumeConnection], now: &[VolumeConnection]) -> Vec<VolumeConnection> {
    let before: HashMap<_, _> = before.iter().map(|one| (one.connection, *one)).collect();
    let old = |one: &VolumeConnection| {
        let none = VolumeConnection { operations: 0, bytes: 0, ..*one };
        Some(before.get(&one.connection).copied().unwrap_or(none)).filter(|old| old != one)
    };
    now.iter().filter_map(old).collect()
}

impl Watched {
    /// The load since the oldest mark.
    pub(super) fn load(&self, plane: &dyn Plane, volume: &Volume) -> Option<Load> {
        let before = self.marks.0.front()?;
        let now = plane.volume_uses(volume.id)?;
        Some(load(Counted::between(before, &self.marks.connections(), &now), volume))
    }
}

/// The counts between two moments.
struct Counted {
    operations: Vec<OperationCount>,
    connections: Vec<VolumeConnection>,
    /// Nanoseconds that requests were in the server, together.
    latency_nanos: u64,
    facts: LoadFacts,
}

impl Counted {
    /// The growth from `before`, when the connections had these counts, to `now`.
    fn between(
        before: &VolumeUses,
        connections: &HashMap<u64, &VolumeConnection>,
        now: &VolumeUses,
    ) -> Self {
        let counts = before.operations.iter().map(|one| ((one.protocol, one.operation), one));
        let counts: BTreeMap<_, _> = counts.collect();
        let operations = now.operations.iter().map(|one| {
            let old = counts.get(&(one.protocol, one.operation));
            OperationCount {
                answered: grown(one.answered, old.map_or(0, |old| old.answered)),
                failed: grown(one.failed, old.map_or(0, |old| old.failed)),
                ..*one
            }
        });
        let operations: Vec<_> = operations.filter(|one| one.answered > 0).collect();
        let connections = now.connections.iter().map(|one| {
            let old = connections.get(&one.connection);
            VolumeConnection {
                operations: grown(one.operations, old.map_or(0, |old| old.operations)),
                bytes: grown(one.bytes, old.map_or(0, |old| old.bytes)),
                ..*one
            }
        });
        let connections: Vec<_> = connections.filter(|one| one.operations > 0).collect();
        let sum = |of: fn(OpClass) -> bool| {
            let of = operations.iter().filter(|one| of(one.class));
            of.map(|one| one.answered).sum()
        };
        let facts = LoadFacts {
            nanos: now.at.0.saturating_sub(before.at.0),
            data: Cost {
                bytes: grown(now.bytes, before.bytes),
                operations: sum(|class| matches!(class, OpClass::Read | OpClass::Write)),
            },
            commits: sum(|class| class == OpClass::Commit),
            metadata: sum(|class| matches!(class, OpClass::Null | OpClass::Metadata)),
            busiest_connection: connections.iter().map(|one| one.operations).max().unwrap_or(0),
            file: now.file,
        };
        let latency_nanos = grown(now.latency_nanos, before.latency_nanos);
        Self { operations, connections, latency_nanos, facts }
    }
}

/// The load of a volume without requests.
pub(super) fn nothing(volume: &Volume) -> Load {
    Load { small_below_bytes: small_below(&volume.limits), ..Load::default() }
}

/// Is the period too short for rates?
pub(super) fn is_young(load: &Load) -> bool {
    load.seconds < SECONDS_MIN
}

/// The load of a volume with these counts.
fn load(counted: Counted, volume: &Volume) -> Load {
    let Counted { mut operations, connections, latency_nanos, facts } = counted;
    let young = Load { seconds: part(facts.nanos, 1_000_000_000), ..nothing(volume) };
    if is_young(&young) {
        return young;
    }
    operations.sort_by_key(|one| std::cmp::Reverse(one.answered));
    let rate = |count: u64| part(count, facts.nanos) * SECOND;
    let operations = operations.iter().map(|one| OperationRate {
        protocol: one.protocol.to_owned(),
        operation: one.operation.to_owned(),
        per_second: rate(one.answered),
        errors_per_second: rate(one.failed),
    });
    let clients = by_client(&connections);
    let listed = clients.iter().take(LOAD_CLIENTS_MAX).map(|one| ClientLoad {
        address: one.address.to_string(),
        protocol: one.protocol.to_owned(),
        connections: one.connections,
        operations_per_second: rate(one.operations),
        bytes_per_second: whole(rate(one.bytes)),
    });
    let all = facts.operations();
    Load {
        kinds: facts.kinds(&volume.limits).into_iter().map(word).collect(),
        operations_per_second: rate(all),
        metadata_share: part(facts.metadata, all),
        mean_request_bytes: facts.mean_bytes(),
        in_flight: part(latency_nanos, facts.nanos),
        busiest_connection_share: part(facts.busiest_connection, all).min(1.0),
        one_file_share: part(facts.file.at_least, facts.file.of),
        operations: operations.collect(),
        clients_total: clients.len() as u64,
        connections_total: connections.len() as u64,
        clients: listed.collect(),
        ..young
    }
}

/// A client's use of a volume over one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) address: IpAddr,
    pub(crate) protocol: &'static str,
    pub(crate) connections: u64,
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
}

/// The clients that have these connections, those with the most operations first.
pub(crate) fn by_client(connections: &[VolumeConnection]) -> Vec<Client> {
    let mut clients: BTreeMap<_, Client> = BTreeMap::new();
    for VolumeConnection { address, protocol, operations, bytes, .. } in connections {
        let (address, protocol) = (*address, *protocol);
        let client = clients.entry((address, protocol)).or_insert(Client {
            address,
            protocol,
            connections: 0,
            operations: 0,
            bytes: 0,
        });
        client.connections += 1;
        client.operations = client.operations.saturating_add(*operations);
        client.bytes = client.bytes.saturating_add(*bytes);
    }
    let mut clients: Vec<_> = clients.into_values().collect();
    clients.sort_by_key(|client| std::cmp::Reverse(client.operations));
    clients
}

const fn word(kind: LoadKind) -> weir_api::LoadKind {
    match kind {
        LoadKind::MetadataHeavy => weir_api::LoadKind::MetadataHeavy,
        LoadKind::OneConnection => weir_api::LoadKind::OneConnection,
        LoadKind::OneFile => weir_api::LoadKind::OneFile,
        LoadKind::SmallRequests => weir_api::LoadKind::SmallRequests,
    }
}

/// The growth of a count. One that is lower began anew.
const fn grown(now: u64, before: u64) -> u64 {
    match now.checked_sub(before) {
        Some(grown) => grown,
        None => now,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a part is read to a few digits")]
fn part(of: u64, all: u64) -> f64 {
    of as f64 / all.max(1) as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are not negative"
)]
fn whole(rate: f64) -> u64 {
    rate.round() as u64
}
