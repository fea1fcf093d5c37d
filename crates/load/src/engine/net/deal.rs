//! Dealing jobs and connections to threads, and addresses to clients.

use super::conn::{Conn, Slots};
use super::worker::NetWorker;
use super::{Channel, Ports, connect};
use crate::engine::job::Job;
use crate::engine::{Plan, Worker};
use crate::error::BenchError;
use crate::target::Addresses;
use crate::workload::{DEPTH_MAX, Workload};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream};

/// A connection that is to be opened.
pub(in crate::engine) struct Seat<'a> {
    /// The jobs that use it.
    pub(in crate::engine) jobs: &'a [u32],
    /// Requests in flight, at most.
    pub(in crate::engine) depth: usize,
    /// The client.
    pub(in crate::engine) client: u32,
    /// The server's address.
    pub(in crate::engine) address: SocketAddr,
    /// The client's address; `None` leaves it to the system.
    pub(in crate::engine) source: Option<IpAddr>,
}

impl Seat<'_> {
    /// Connects.
    pub(in crate::engine) fn connect(&self, ports: Ports) -> Result<TcpStream, BenchError> {
        connect(self.address, self.source, ports)
    }
}

/// A connection, ready for the load.
pub(in crate::engine) type Opened<C> = (TcpStream, C, <C as Channel>::Records);

/// The source address of each client.
pub(in crate::engine) fn sources(
    workload: &Workload,
    addresses: &Addresses<'_>,
) -> Vec<Option<IpAddr>> {
    (0..workload.clients).map(|client| addresses.source(client, workload.clients)).collect()
}

/// The names of clients with these addresses: an address that only one has, otherwise a number.
pub(in crate::engine) fn names(sources: &[Option<IpAddr>]) -> Vec<String> {
    let is_own = |source: &IpAddr| sources.iter().flatten().filter(|ip| *ip == source).count() == 1;
    let name = |(number, source): (usize, &Option<IpAddr>)| match source {
        Some(ip) if is_own(ip) => ip.to_string(),
        _ if sources.len() > 1 => format!("client-{}", number + 1),
        _ => String::new(),
    };
    sources.iter().enumerate().map(name).collect()
}

/// The number of the load's connections to each address.
pub(in crate::engine) fn counts(
    workload: &Workload,
    addresses: &Addresses<'_>,
) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for ((_, address), connections) in pairs(workload, addresses) {
        *counts.entry(address.to_string()).or_default() += connections;
    }
    counts
}

/// The two ends of connections: a source address, if the system does not choose it, and an address
/// of the server.
pub(in crate::engine) type Pair = (Option<IpAddr>, SocketAddr);

/// The number of the load's connections between each two addresses.
pub(in crate::engine) fn pairs(
    workload: &Workload,
    addresses: &Addresses<'_>,
) -> BTreeMap<Pair, u64> {
    let mut pairs = BTreeMap::new();
    for unit in units(workload) {
        let source = addresses.source(unit.client, workload.clients);
        let pair = (source, addresses.of_client(unit.client));
        *pairs.entry(pair).or_default() += unit.connections as u64;
    }
    pairs
}

/// Checks that the connections can carry what the jobs keep in flight.
pub(in crate::engine) fn check(workload: &Workload) -> Result<(), BenchError> {
    units(workload).iter().try_for_each(|unit| depth(workload, unit).map(drop))
}

/// Requests that the jobs of `unit` keep in flight.
fn in_flight(workload: &Workload, unit: &Unit) -> usize {
    usize::try_from(workload.depth).unwrap_or(usize::MAX).saturating_mul(unit.jobs.len())
}

/// The most requests in flight on a connection of `unit`.
fn depth(workload: &Workload, unit: &Unit) -> Result<usize, BenchError> {
    let all = in_flight(workload, unit);
    // Requests that go round all connections may meet on one.
    let most = if all < unit.connections { all } else { all.div_ceil(unit.connections) };
    if most <= usize::try_from(DEPTH_MAX).unwrap_or(0) {
        return Ok(most);
    }
    Err(BenchError::Workload(format!(
        "{most} requests in flight on one connection are more than {DEPTH_MAX}: use more \
         connections, fewer jobs or less depth"
    )))
}

/// Opens the connections, and deals them and the jobs to the threads.
pub(in crate::engine) fn workers<C: Channel>(
    plan: &Plan,
    addresses: &Addresses<'_>,
    sources: &[Option<IpAddr>],
    open: impl Fn(&Seat<'_>) -> Result<Opened<C>, BenchError>,
) -> Result<Vec<Worker>, BenchError> {
    let workload = &plan.workload;
    let mut workers: Vec<NetWorker<C>> = (0..workload.threads)
        .map(|_| NetWorker { plan: plan.clone(), jobs: Vec::new(), conns: Vec::new() })
        .collect();
    let count = workers.len();
    for (index, unit) in units(workload).into_iter().enumerate() {
        if let Some(worker) = workers.get_mut(index % count) {
            let client = usize::try_from(unit.client).unwrap_or(0);
            let source = sources.get(client).copied().flatten();
            equip(worker, plan, &unit, (addresses.of_client(unit.client), source), &open)?;
        }
    }
    workers.retain(|worker| !worker.conns.is_empty());
    Ok(workers
        .into_iter()
        .map(|worker| -> Worker {
            Box::new(move |schedule, halt, recorder| worker.run(schedule, &halt, recorder))
        })
        .collect())
}

/// Gives a worker the jobs and connections of `unit`.
fn equip<C: Channel>(
    worker: &mut NetWorker<C>,
    plan: &Plan,
    unit: &Unit,
    (address, source): (SocketAddr, Option<IpAddr>),
    open: &impl Fn(&Seat<'_>) -> Result<Opened<C>, BenchError>,
) -> Result<(), BenchError> {
    let workload = &plan.workload;
    let first = worker.jobs.len();
    for index in &unit.jobs {
        worker.jobs.push(Job::new(workload, *index, &plan.common));
    }
    let most = depth(workload, unit)?;
    let (jobs, conns) = (first..first + unit.jobs.len(), worker.conns.len());
    let places: Vec<usize> = (0..workload.depth).flat_map(|_| jobs.clone()).collect();
    let seat = Seat { jobs: &unit.jobs, depth: most, client: unit.client, address, source };
    for slots in slots(&places, unit.connections, conns) {
        let (stream, channel, records) = open(&seat)?;
        let conn = Conn::new((stream, address), (channel, records), slots);
        let mut conn = conn.map_err(|source| BenchError::Connection { address, source })?;
        conn.delay_ns = delay_ns(workload, unit.client);
        worker.conns.push(conn);
    }
    Ok(())
}

/// The slots of so many connections, the first of which is at the place `first` of the worker. Each
/// of `jobs` takes one place, the jobs in turn on the next connection. Where there are fewer jobs
/// than connections, each goes round all of them, an operation on each, as requests do on the
/// transports of a Linux mount with `nconnect`.
fn slots(jobs: &[usize], connections: usize, first: usize) -> Vec<Slots> {
    let rotate = jobs.len() < connections;
    let of = |number: usize| {
        if rotate {
            let begins = number.min(jobs.len())..(number + 1).min(jobs.len());
            let next = first + (number + 1) % connections;
            return Slots { jobs: jobs.to_vec(), first: begins, next };
        }
        let own: Vec<usize> = jobs.iter().skip(number).step_by(connections).copied().collect();
        Slots { first: 0..own.len(), jobs: own, next: first + number }
    };
    (0..connections).map(of).collect()
}

/// The network distance added to `client`.
fn delay_ns(workload: &Workload, client: u32) -> u64 {
    let delays = &workload.client_delays_us;
    let place = usize::try_from(client).unwrap_or(0).checked_rem(delays.len());
    place.and_then(|place| delays.get(place)).map_or(0, |us| us.saturating_mul(1000))
}

/// Jobs and connections of one client that belong together: no other job uses the connections.
#[derive(Debug, PartialEq, Eq)]
struct Unit {
    client: u32,
    jobs: Vec<u32>,
    connections: usize,
}

/// The smallest units that this process's part of the load falls into. Jobs of different processes
/// that would share connections in one process have them apart.
fn units(workload: &Workload) -> Vec<Unit> {
    let mut units = Vec::new();
    for client in 0..workload.clients {
        let jobs: Vec<u32> = (client..workload.jobs)
            .step_by(usize::try_from(workload.clients).unwrap_or(1))
            .collect();
        let connections = usize::try_from(workload.connections).unwrap_or(1);
        let parts = jobs.len().min(connections);
        for part in 0..parts {
            let jobs = jobs.iter().skip(part).step_by(parts).copied();
            let jobs: Vec<u32> = jobs.filter(|job| workload.has_job(*job)).collect();
            if !jobs.is_empty() {
                let connections = (connections - part).div_ceil(parts);
                units.push(Unit { client, jobs, connections });
            }
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_jobs_and_together_they_have_all() {
        use crate::workload::Part;
        let load = Workload { jobs: 10, clients: 3, connections: 2, ..Workload::default() };
        let mut seen = Vec::new();
        for index in 0..4 {
            let part = Some(Part { index, of: 4 });
            for unit in units(&Workload { part, ..load.clone() }) {
                assert!(unit.jobs.iter().all(|job| job % 4 == index && job % 3 == unit.client));
                seen.extend(unit.jobs);
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn clients_are_named_by_address_where_it_is_their_own() {
        let ip = |text: &str| Some(text.parse().unwrap());
        assert_eq!(names(&[ip("10.0.0.1"), ip("10.0.0.2")]), ["10.0.0.1", "10.0.0.2"]);
        let some = [ip("10.0.0.1"), ip("10.0.0.2"), ip("10.0.0.1")];
        assert_eq!(names(&some), ["client-1", "10.0.0.2", "client-3"]);
        assert_eq!(names(&[None, None]), ["client-1", "client-2"]);
        assert_eq!(names(&[None]), [""]);
    }

    #[test]
    fn distances_are_dealt_to_the_clients_in_turn() {
        let load = |delays: &[u64]| Workload {
            clients: 5,
            client_delays_us: delays.to_vec(),
            ..Workload::default()
        };
        let of = |load: &Workload| [0, 1, 2, 3, 4].map(|client| delay_ns(load, client) / 1000);
        assert_eq!(of(&load(&[10, 500])), [10, 500, 10, 500, 10]);
        assert_eq!(of(&load(&[])), [0; 5]);
    }

    #[test]
    fn each_request_has_its_connection_or_goes_round_all_of_them() {
        let fixed = slots(&[7, 8, 7], 2, 5);
        let of = |jobs: &[usize], first, next| Slots { jobs: jobs.to_vec(), first, next };
        assert_eq!(fixed, [of(&[7, 7], 0..2, 5), of(&[8], 0..1, 6)]);
        let round = slots(&[7, 7], 3, 5);
        let both = |first, next| of(&[7, 7], first, next);
        assert_eq!(round, [both(0..1, 6), both(1..2, 7), both(2..2, 5)]);
    }

    #[test]
    fn a_connection_must_carry_what_may_meet_on_it() {
        let of = |depth, connections| {
            let load = Workload { depth, connections, ..Workload::default() };
            depth_of(&load)
        };
        assert_eq!([of(1, 4), of(3, 4), of(4, 4), of(5, 4), of(16, 1)], [1, 3, 1, 2, 16]);
    }

    fn depth_of(load: &Workload) -> usize {
        depth(load, &units(load)[0]).unwrap()
    }

    fn unit(client: u32, jobs: &[u32], connections: usize) -> Unit {
        Unit { client, jobs: jobs.to_vec(), connections }
    }

    #[test]
    fn jobs_and_connections_are_dealt_to_clients_with_none_left_over() {
        let of = |jobs, clients, connections| {
            units(&Workload { jobs, clients, connections, ..Workload::default() })
        };
        assert_eq!(of(4, 1, 4).len(), 4);
        assert_eq!(of(1, 1, 4), [unit(0, &[0], 4)]);
        assert_eq!(of(2, 1, 5), [unit(0, &[0], 3), unit(0, &[1], 2)]);
        assert_eq!(
            of(5, 2, 2),
            [unit(0, &[0, 4], 1), unit(0, &[2], 1), unit(1, &[1], 1), unit(1, &[3], 1)]
        );
        for (jobs, clients, connections) in [(40, 40, 1), (7, 3, 2), (9, 1, 9), (5, 5, 3)] {
            let all = of(jobs, clients, connections);
            let total: usize = all.iter().map(|unit| unit.connections).sum();
            assert_eq!(total, usize::try_from(clients * connections).unwrap());
            assert_eq!(all.iter().map(|unit| unit.jobs.len()).sum::<usize>(), jobs as usize);
        }
    }
}
