//! The API's connections over TCP: how many there may be, and which one gives way to a newcomer.
//! Plain data under one mutex, with time as an argument; `listen` has the sockets.
//!
//! A connection *waits* while no whole request of it is there: in its handshake, in a request's
//! head or body, or between requests. While it waits it may be closed for a newcomer, so that
//! connections that say nothing keep nobody out. A connection whose request is being answered is
//! never closed for another.

use crate::limits::{
    API_BODIES_ORIGIN_MAX, API_BODY_CREDIT, API_CONNECTIONS_MAX, API_CONNECTIONS_ORIGIN_MAX,
};
use crate::sync::{Arc, Mutex, lock};
use std::collections::HashMap;
use tokio::task::AbortHandle;
use weir_core::Mono;
use weir_core::Origin;
use weir_core::origin::Counts;

/// All connections of the API over TCP.
#[derive(Default)]
pub(super) struct Connections {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    all: HashMap<u64, Connection>,
    /// The connections by origin.
    counts: Counts,
    serial: u64,
}

struct Connection {
    origin: Origin,
    state: State,
    /// Does it wait with [`API_BODY_CREDIT`]?
    credited: bool,
    task: Option<AbortHandle>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No whole request is there, since then.
    Waits(Mono),
    /// A request is being answered.
    Answers,
}

/// A connection's place among them, which ends with it.
pub(super) struct Place {
    connections: Arc<Connections>,
    id: u64,
}

impl Connections {
    /// Gives a new connection from `origin` its place. Where its origin has as many as it may, the
    /// one of them that has waited longest is closed; where all are taken, that of the origin that
    /// has the most. `None` if those all have requests that are being answered.
    pub(super) fn enter(self: &Arc<Self>, origin: Origin, now: Mono) -> Option<Place> {
        let mut table = lock(&self.table);
        if table.counts.of(origin) >= API_CONNECTIONS_ORIGIN_MAX {
            table.close_one(origin)?;
        } else if table.all.len() >= API_CONNECTIONS_MAX {
            table.close_any()?;
        }
        table.serial += 1;
        let id = table.serial;
        table.all.insert(
            id,
            Connection { origin, state: State::Waits(now), credited: false, task: None },
        );
        table.counts.add(origin);
        Some(Place { connections: Arc::clone(self), id })
    }

    /// Closes a connection that waits, to have its descriptor.
    pub(super) fn shed(&self) {
        // There may be none; then other descriptors must become free.
        let _closed = lock(&self.table).close_any();
    }

    /// The number of connections.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.table).all.len()
    }

    /// Says which task serves the connection at `place`.
    pub(super) fn served_by(&self, place: u64, task: AbortHandle) {
        if let Some(connection) = lock(&self.table).all.get_mut(&place) {
            connection.task = Some(task);
        } else {
            // The connection was closed before its task began.
            task.abort();
        }
    }
}

impl Table {
    /// Closes the connection of `origin` that has waited longest.
    fn close_one(&mut self, origin: Origin) -> Option<()> {
        let waits = |(id, connection): (&u64, &Connection)| match connection.state {
            State::Waits(since) if connection.origin == origin => Some((since, *id)),
            _ => None,
        };
        let (_, id) = self.all.iter().filter_map(waits).min()?;
        let closed = self.remove(id)?;
        if let Some(task) = closed.task {
            task.abort();
        }
        Some(())
    }

    /// Closes the connection that has waited longest, of the origin that has the most of those with
    /// a connection that waits.
    fn close_any(&mut self) -> Option<()> {
        let waits = |connection: &&Connection| matches!(connection.state, State::Waits(_));
        let waiting = self.all.values().filter(waits).map(|connection| connection.origin);
        let most = waiting.max_by_key(|origin| self.counts.of(*origin))?;
        self.close_one(most)
    }

    fn remove(&mut self, id: u64) -> Option<Connection> {
        let connection = self.all.remove(&id)?;
        self.counts.remove(connection.origin);
        Some(connection)
    }
}

impl Place {
    /// The connection's number, for [`Connections::served_by`].
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// A whole request is there: `false` if the connection was closed for another meanwhile.
    pub(super) fn answers(&self) -> bool {
        self.set(State::Answers, false)
    }

    /// The request was answered.
    pub(super) fn waits(&self, now: Mono) {
        self.set(State::Waits(now), false);
    }

    /// A body is under way whose sender may send it, or a large answer to a client that may have
    /// it. It takes longer than a request's head, so the connection counts as one that began to
    /// wait [`API_BODY_CREDIT`] later, unless [`API_BODIES_ORIGIN_MAX`] of its origin do already.
    pub(super) fn moves_body(&self, now: Mono) {
        let credited = {
            let table = lock(&self.connections.table);
            let Some(own) = table.all.get(&self.id) else { return };
            let alike = |other: &&Connection| other.credited && other.origin == own.origin;
            own.credited || table.all.values().filter(alike).count() < API_BODIES_ORIGIN_MAX
        };
        let since = if credited { now + API_BODY_CREDIT } else { now };
        self.set(State::Waits(since), credited);
    }

    fn set(&self, state: State, credited: bool) -> bool {
        let mut table = lock(&self.connections.table);
        let Some(connection) = table.all.get_mut(&self.id) else { return false };
        (connection.state, connection.credited) = (state, credited);
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.connections.table).remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(number: u32) -> Origin {
        Origin::of(std::net::Ipv4Addr::from(number).into())
    }

    fn is_there(place: &Place) -> bool {
        lock(&place.connections.table).all.contains_key(&place.id)
    }

    fn at(second: usize) -> Mono {
        Mono::from_secs(second as u64)
    }

    #[test]
    fn of_one_origin_the_one_that_waited_longest_gives_way() {
        let connections = Arc::new(Connections::default());
        let enter = |second| connections.enter(origin(1), at(second)).unwrap();
        let mut places: Vec<Place> = (0..API_CONNECTIONS_ORIGIN_MAX).map(enter).collect();
        places[0].waits(at(5000));
        assert!(places[1].answers());
        places[2].moves_body(at(2));
        let more: Vec<Place> = (1000..1004).map(enter).collect();
        assert_eq!(connections.len(), API_CONNECTIONS_ORIGIN_MAX);
        let closed = |place: &&Place| !is_there(place);
        let closed: Vec<u64> = places.iter().filter(closed).map(Place::id).collect();
        assert_eq!(closed, [4, 5, 6, 7], "not 1 to 3: fresh, answered, with a body under way");
        assert!(!places[4].answers(), "it learns so before it does anything");
        places.clear();
        assert_eq!(connections.len(), more.len());
    }

    #[test]
    fn where_all_is_taken_the_origin_with_most_gives_way_and_what_is_answered_does_not() {
        let connections = Arc::new(Connections::default());
        let enter = |from, second| connections.enter(origin(from), at(second));
        let few: Vec<Place> = (0..3).map(|_| enter(1, 0).unwrap()).collect();
        let mut many = Vec::new();
        while connections.len() < API_CONNECTIONS_MAX {
            let from = 2 + u32::try_from(many.len() / API_CONNECTIONS_ORIGIN_MAX).unwrap();
            many.push(enter(from, 10 + many.len()).unwrap());
        }
        let newcomers: Vec<Place> = (0..10).map(|number| enter(100 + number, 9).unwrap()).collect();
        assert!(few.iter().chain(&newcomers).all(is_there), "others are the greedy ones");
        assert_eq!(connections.len(), API_CONNECTIONS_MAX);
        for place in few.iter().chain(&newcomers).chain(&many) {
            place.answers();
        }
        assert!(enter(200, 5000).is_none());
        few[0].waits(at(5000));
        assert!(enter(200, 5000).is_some());
        assert!(!is_there(&few[0]));
    }

    #[test]
    fn bodies_under_way_leave_room_for_those_that_say_nothing_yet() {
        let connections = Arc::new(Connections::default());
        let enter = |second| connections.enter(origin(1), at(second)).unwrap();
        let places: Vec<Place> = (0..API_CONNECTIONS_ORIGIN_MAX).map(|_| enter(0)).collect();
        for place in &places {
            place.moves_body(at(0));
        }
        let newcomers: Vec<Place> = (0..100).map(|_| enter(1)).collect();
        assert!(newcomers.iter().all(is_there));
        let kept = places.iter().filter(|place| is_there(place)).count();
        assert_eq!(kept, API_CONNECTIONS_ORIGIN_MAX - 100);
    }
}
