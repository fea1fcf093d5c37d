//! The NFSv3 engine: a client in user space that needs no mount and no privilege, with many
//! connections from many addresses.

mod calls;
mod conn;
mod inbox;
mod layout;
mod mount;
mod outbox;
mod reply;
mod session;
mod status;
mod verify;
mod worker;

use super::job::{Job, file_name};
use super::{Layingout, Plan, Worker};
use crate::error::BenchError;
use crate::rng::mix;
use crate::target::NfsTarget;
use crate::workload::{DEPTH_MAX, Layout, Workload};
use calls::Handles;
use conn::Conn;
use session::connect;
use std::net::IpAddr;
use std::sync::Arc;
use weir_core::Credentials;
use weir_nfs::client::Caller;
use worker::NfsWorker;

pub(crate) use mount::mount;
pub(crate) use session::Session;
pub(crate) use status::name as status_name;

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
        let sources = (0..workload.clients)
            .map(|client| target.source(client, workload.clients))
            .collect::<Result<Vec<_>, _>>()?;
        let root = mount(target, caller.clone())?;
        let mut session = Session::open(target.address, None, caller.clone())?;
        let limits = layout::limits(&mut session, &root)?;
        limits.check(workload)?;
        let (directory, created_directory) =
            layout::directory(&mut session, &root, &workload.directory)?;
        let mut files = Self {
            target: target.clone(),
            caller,
            sources,
            root,
            handles: Arc::new(Handles::new(directory)),
            created_directory,
        };
        let made = files.make(&mut session, plan, limits, progress);
        if made.is_err() {
            // The first failure is the one to tell.
            drop(files.clean_up(plan));
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
        if !workload.needs_files() {
            return Ok(());
        }
        let mut handles = Handles::new(self.handles.directory.clone());
        let size = if workload.operation.moves_data() { workload.file_bytes } else { 0 };
        let mut result = Ok(());
        for number in 0..workload.files {
            let made = layout::file(session, &handles.directory, &file_name(number), plan, size);
            match made {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.handles = Arc::new(handles);
        result?;
        if let Layout::Written { block_bytes } = workload.layout {
            let block_bytes = block_bytes.min(limits.write_bytes_max);
            layout::write(session, &self.handles, plan, size, block_bytes, progress)?;
        }
        Ok(())
    }

    /// Connects, and deals jobs and connections to the threads.
    pub(super) fn workers(&self, plan: &Plan) -> Result<Vec<Worker>, BenchError> {
        let workload = &plan.workload;
        let mut workers: Vec<NfsWorker> = (0..workload.threads)
            .map(|_| NfsWorker {
                plan: plan.clone(),
                address: self.target.address,
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
            worker.jobs.push(Job::new(workload, *index, plan.run, plan.ledger.clone()));
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
        for number in 0..unit.connections {
            let stream = connect(self.target.address, source)?;
            let slots = places.iter().skip(number).step_by(unit.connections).copied();
            let place = (u64::from(unit.client) << 32) | u64::from(stream_port(&stream));
            let sequence = u32::try_from(mix(plan.run ^ place) >> 32).unwrap_or(0);
            let conn = Conn::new(stream, slots, sequence).map_err(|source| {
                BenchError::Connection { address: self.target.address, source }
            })?;
            worker.conns.push(conn);
        }
        Ok(())
    }

    /// The clients' source addresses.
    pub(super) fn client_names(&self) -> Vec<String> {
        let name = |source: &Option<IpAddr>| source.map_or_else(String::new, |ip| ip.to_string());
        self.sources.iter().map(name).collect()
    }

    /// Removes what the preparation made, and unmounts.
    pub(super) fn clean_up(&self, plan: &Plan) -> Result<(), BenchError> {
        let mut session = self.session()?;
        let with_directory = self.created_directory;
        layout::remove(&mut session, &self.root, plan, &self.handles, with_directory)?;
        mount::unmount(&self.target, self.caller.clone())
    }

    fn session(&self) -> Result<Session, BenchError> {
        Session::open(self.target.address, None, self.caller.clone())
    }
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

/// The smallest units the load falls into.
fn units(workload: &Workload) -> Vec<Unit> {
    let mut units = Vec::new();
    for client in 0..workload.clients {
        let jobs: Vec<u32> = (client..workload.jobs)
            .step_by(usize::try_from(workload.clients).unwrap_or(1))
            .collect();
        let connections = usize::try_from(workload.connections).unwrap_or(1);
        let parts = jobs.len().min(connections);
        for part in 0..parts {
            units.push(Unit {
                client,
                jobs: jobs.iter().skip(part).step_by(parts).copied().collect(),
                connections: (connections - part).div_ceil(parts),
            });
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

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
