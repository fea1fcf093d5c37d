//! The NFSv3 engine: a client in user space that needs no mount and no privilege, with many
//! connections from many addresses.

mod ahead;
mod calls;
mod conn;
mod files;
mod inbox;
mod layout;
mod mount;
mod outbox;
mod reply;
mod session;
mod status;
mod timers;
mod verify;
mod worker;

use super::job::{Job, Made};
use super::{Layingout, Plan, Worker, check_room};
use crate::error::BenchError;
use crate::target::NfsTarget;
use crate::workload::{DEPTH_MAX, Layout, Workload};
use calls::Handles;
use conn::Conn;
use inbox::HEAD_BYTES;
use session::connect;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_core::Credentials;
use weir_core::rng::mix;
use weir_nfs::client::Caller;
use weir_nfs::v3::wire::Status;
use worker::NfsWorker;

pub use ahead::FollowUp;
pub use layout::room;
pub use mount::mount;
pub use session::Session;
pub use status::name as status_name;

/// The name that credentials carry.
const MACHINE: &[u8] = b"weir-bench";

/// The files of a run.
pub(super) struct Files {
    target: NfsTarget,
    caller: Caller,
    sources: Vec<Option<IpAddr>>,
    root: Box<[u8]>,
    handles: Arc<Handles>,
    created_directory: bool,
    /// Names of the files that this load made and that need not stay.
    made: Vec<String>,
}

impl Files {
    /// Mounts the export and makes the directory and the files, as the layout says.
    pub(super) fn prepare(
        target: &NfsTarget,
        plan: &Plan,
        progress: &mut Layingout<'_>,
    ) -> Result<Self, BenchError> {
        let workload = &plan.workload;
        let caller = Caller::sys(&Credentials::new(target.uid, target.gid), MACHINE);
        // Of several processes each has the address of its machine, unless they are told.
        let here = workload.part.is_some_and(|part| part.of > 1)
            && target.sources.is_empty()
            && !target.address.ip().is_loopback();
        let clients = if here { 1 } else { workload.clients };
        let sources = (0..workload.clients)
            .map(|client| target.source(client, clients))
            .collect::<Result<Vec<_>, _>>()?;
        let root = mount(target, caller.clone())?;
        let mut session = Session::open(target.address, None, caller.clone())?.patient();
        for further in &target.more {
            // A wrong address is told before anything is made.
            drop(connect(*further, None)?);
        }
        let limits = layout::limits(&mut session, &root)?;
        limits.check(workload)?;
        let (directory, created_directory) =
            layout::directory(&mut session, &root, &workload.directory)?;
        let mut files = Self {
            target: target.clone(),
            caller,
            sources,
            root,
            handles: Arc::new(Handles::new(directory, plan.files.len())),
            created_directory,
            made: Vec::new(),
        };
        let made = files.make(&mut session, plan, limits, progress);
        if made.is_err() {
            // The first failure is the one to tell.
            drop(files.remove_files(plan, &[]));
            drop(files.remove_directory(plan, false));
        }
        made.map(|()| files)
    }

    fn make(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        limits: layout::Limits,
        progress: &mut Layingout<'_>,
    ) -> Result<(), BenchError> {
        let workload = &plan.workload;
        let handles = Arc::make_mut(&mut self.handles);
        if self.created_directory {
            check_room(workload, || room(session, &self.root))?;
        }
        let made = (&mut self.made, self.created_directory);
        files::make(session, plan, handles, made, progress)?;
        if let Layout::Written { block_bytes } = workload.layout {
            let block_bytes = block_bytes.min(limits.write_bytes_max);
            layout::write(session, handles, plan, block_bytes, progress)?;
        }
        Ok(())
    }

    /// Looks up the files that others made.
    pub(super) fn attach(&mut self, plan: &Plan) -> Result<(), BenchError> {
        let wanted = files::unknown(plan, &self.handles);
        if wanted.is_empty() {
            return Ok(());
        }
        files::find(&mut self.session()?, plan, wanted, Arc::make_mut(&mut self.handles))
    }

    /// Connects, and deals jobs and connections to the threads.
    pub(super) fn workers(&self, plan: &Plan) -> Result<Vec<Worker>, BenchError> {
        let workload = &plan.workload;
        let mut workers: Vec<NfsWorker> = (0..workload.threads)
            .map(|_| NfsWorker {
                plan: plan.clone(),
                caller: self.caller.clone(),
                handles: Arc::clone(&self.handles),
                jobs: Vec::new(),
                conns: Vec::new(),
            })
            .collect();
        let count = workers.len();
        for (index, unit) in units(workload).into_iter().enumerate() {
            if let Some(worker) = workers.get_mut(index % count) {
                self.equip(worker, plan, &unit)?;
            }
        }
        workers.retain(|worker| !worker.conns.is_empty());
        Ok(workers
            .into_iter()
            .map(|worker| -> Worker {
                Box::new(move |schedule, control, recorder| {
                    worker.run(schedule, &control, recorder)
                })
            })
            .collect())
    }

    /// Gives a worker the jobs and connections of `unit`.
    fn equip(&self, worker: &mut NfsWorker, plan: &Plan, unit: &Unit) -> Result<(), BenchError> {
        let workload = &plan.workload;
        let first = worker.jobs.len();
        for index in &unit.jobs {
            worker.jobs.push(Job::new(workload, *index, &plan.common));
        }
        let depth = usize::try_from(workload.depth).unwrap_or(0);
        // Each job in turn takes one place on the next connection.
        let places: Vec<usize> = (0..depth).flat_map(|_| first..first + unit.jobs.len()).collect();
        let most = places.len().div_ceil(unit.connections);
        if most > usize::try_from(DEPTH_MAX).unwrap_or(0) {
            return Err(BenchError::Workload(format!(
                "{most} requests in flight on one connection are more than {DEPTH_MAX}: use more \
                 connections, fewer jobs or less depth"
            )));
        }
        let client = usize::try_from(unit.client).unwrap_or(0);
        let source = self.sources.get(client).copied().flatten();
        let address = self.target.address_of(unit.client);
        let whole = workload.verify_reads.then(|| record_bytes_max(workload));
        for number in 0..unit.connections {
            let stream = connect(address, source)?;
            let slots = places.iter().skip(number).step_by(unit.connections).copied();
            let place = (u64::from(unit.client) << 32) | u64::from(stream_port(&stream));
            let sequence = u32::try_from(mix(plan.run ^ place) >> 32).unwrap_or(0);
            let conn = Conn::new((stream, address), slots, sequence, whole);
            let mut conn = conn.map_err(|source| BenchError::Connection { address, source })?;
            conn.delay_ns = delay_ns(workload, unit.client);
            worker.conns.push(conn);
        }
        Ok(())
    }

    /// The clients' source addresses.
    pub(super) fn client_names(&self) -> Vec<String> {
        let name = |source: &Option<IpAddr>| source.map_or_else(String::new, |ip| ip.to_string());
        self.sources.iter().map(name).collect()
    }

    /// The number of the load's connections to each address.
    pub(super) fn addresses(&self, workload: &Workload) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for unit in units(workload) {
            let address: SocketAddr = self.target.address_of(unit.client);
            *counts.entry(address.to_string()).or_default() += unit.connections as u64;
        }
        counts
    }

    /// A COMMIT of every file that this process works on.
    pub(super) fn sync(&self, plan: &Plan) -> Result<(), BenchError> {
        let mut session = self.session()?;
        layout::commit(&mut session, &self.handles, plan)
    }

    /// Removes the files that the preparation made, and what jobs left.
    pub(super) fn remove_files(&self, plan: &Plan, left: &[Made]) -> Result<(), BenchError> {
        let mut session = self.session()?;
        let directory = &self.handles.directory;
        let made = self.made.iter().map(|name| (name.clone(), false));
        let left = left.iter().map(|made| (made.name(), made.directory));
        files::remove(&mut session, directory, made.chain(left))?;
        if plan.keep_directory || !self.created_directory {
            return mount::unmount(&self.target, self.caller.clone());
        }
        Ok(())
    }

    /// Removes the directory if the preparation made it and it need not stay, and unmounts.
    pub(super) fn remove_directory(&self, plan: &Plan, keep: bool) -> Result<(), BenchError> {
        if keep || !self.created_directory {
            return Ok(());
        }
        let wanted = &plan.workload.directory;
        let mut session = self.session()?;
        let occupied = super::remove_patiently(&plan.workload, || {
            layout::remove_directory(&mut session, &self.root, wanted)
        })?;
        if occupied {
            return Err(layout::not_removed(wanted, Status::NOTEMPTY));
        }
        mount::unmount(&self.target, self.caller.clone())
    }

    fn session(&self) -> Result<Session, BenchError> {
        Ok(Session::open(self.target.address, None, self.caller.clone())?.patient())
    }
}

/// The longest reply to a read of the load.
fn record_bytes_max(workload: &Workload) -> usize {
    HEAD_BYTES + usize::try_from(workload.request_bytes_max()).unwrap_or(0).next_multiple_of(4)
}

/// The network distance added to `client`.
fn delay_ns(workload: &Workload, client: u32) -> u64 {
    let delays = &workload.client_delays_us;
    let place = usize::try_from(client).unwrap_or(0).checked_rem(delays.len());
    place.and_then(|place| delays.get(place)).map_or(0, |us| us.saturating_mul(1000))
}

fn stream_port(stream: &std::net::TcpStream) -> u16 {
    stream.local_addr().map_or(0, |address| address.port())
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
