//! The NFSv3 engine: a client in user space that needs no mount and no privilege, with many
//! connections from many addresses.

mod ahead;
mod calls;
mod channel;
mod files;
mod inbox;
mod layout;
mod mount;
mod reply;
mod session;
mod status;
mod verifiers;
mod verify;

use super::job::Made;
use super::net::{self, Opened, Ports, Seat, Waits};
use super::{Layingout, Limits, Plan, Worker, check_room};
use crate::control::Control;
use crate::error::BenchError;
use crate::target::NfsTarget;
use crate::workload::{Layout, Stability, Workload};
use calls::{Encoder, Handles};
use channel::{NfsChannel, Shown};
use inbox::{HEAD_BYTES, RpcRecords};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use verifiers::{News, Verifiers};
use weir_core::Credentials;
use weir_core::rng::mix;
use weir_nfs::client::Caller;
use weir_nfs::v3::wire::Status;

pub use ahead::FollowUp;
pub use layout::{limits, room};
pub use mount::mount;
pub use session::Session;
pub use status::name as status_name;

/// The files of a run.
pub(super) struct Files {
    target: NfsTarget,
    caller: Caller,
    /// The control of the run.
    control: Control,
    sources: Vec<Option<IpAddr>>,
    root: Box<[u8]>,
    /// The address of MOUNT.
    mounted_at: SocketAddr,
    handles: Arc<Handles>,
    created_directory: bool,
    /// Names of the files that this load made and that need not stay.
    made: Vec<String>,
    verifiers: Arc<Verifiers>,
}

impl Files {
    /// Mounts the export and makes the directory and the files, as the layout says.
    pub(super) fn prepare(
        target: &NfsTarget,
        plan: &Plan,
        progress: &mut Layingout<'_>,
    ) -> Result<Self, BenchError> {
        let workload = &plan.workload;
        let caller = caller(target, &target.machine);
        let sources = net::sources(workload, &target.addresses());
        let control = progress.control.clone();
        let checking = Waits::checking(&control);
        let mounted = mount::find(target, &caller, &checking)?;
        let root = mounted.handle;
        let mut session = Session::of(target, caller.clone(), &checking)?.patient();
        for further in &target.more {
            // A wrong address is told before anything is made.
            drop(net::connect(*further, None, Ports::of(target))?);
        }
        let limits = limits(&mut session, &root)?;
        limits.check(workload)?;
        session.set_waits(Waits::working(&control));
        let (directory, created_directory) =
            layout::directory(&mut session, &root, &workload.directory)?;
        let mut files = Self {
            target: target.clone(),
            caller,
            control,
            sources,
            root,
            mounted_at: mounted.at,
            handles: Arc::new(Handles::new(directory, plan.files.len())),
            created_directory,
            made: Vec::new(),
            verifiers: Arc::default(),
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
        limits: Limits,
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
            let block_bytes = limits.longest_write(block_bytes);
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
        let mut session = self.session(&Waits::checking(&self.control))?;
        files::find(&mut session, plan, wanted, Arc::make_mut(&mut self.handles))
    }

    /// Connects, and deals jobs and connections to the threads.
    pub(super) fn workers(&self, plan: &Plan) -> Result<Vec<Worker>, BenchError> {
        let addresses = self.target.addresses();
        net::workers(plan, &addresses, &self.sources, |seat| self.open(plan, seat))
    }

    fn open(&self, plan: &Plan, seat: &Seat<'_>) -> Result<Opened<NfsChannel>, BenchError> {
        let stream = seat.connect(Ports::of(&self.target))?;
        let place = (u64::from(seat.client) << 32) | u64::from(stream_port(&stream));
        let sequence = u32::try_from(mix(plan.run ^ place) >> 32).unwrap_or(0);
        let whole = plan.workload.verify_reads.then(|| record_bytes_max(&plan.workload));
        let machine = self.target.machine_of(seat.client, plan.workload.clients);
        let encoder = Encoder {
            plan: plan.clone(),
            caller: caller(&self.target, &machine),
            handles: Arc::clone(&self.handles),
            made: HashMap::new(),
            turn: 0,
        };
        let records = whole.map_or_else(RpcRecords::heads, RpcRecords::whole);
        let all = Arc::clone(&self.verifiers);
        let unstable = plan.workload.stability == Stability::Unstable;
        let shown = Shown { all, address: seat.address, unstable, last: None };
        Ok((stream, NfsChannel::new(encoder, sequence, whole, shown), records))
    }

    /// The clients' source addresses.
    pub(super) fn client_names(&self) -> Vec<String> {
        net::names(&self.sources)
    }

    /// The number of the load's connections to each address.
    pub(super) fn addresses(&self, workload: &Workload) -> BTreeMap<String, u64> {
        net::counts(workload, &self.target.addresses())
    }

    /// A COMMIT of every file that this process works on.
    pub(super) fn sync(&self, plan: &Plan) -> Result<(), BenchError> {
        let used: Vec<usize> = layout::used(plan).collect();
        self.commit(plan, &used)
    }

    fn commit(&self, plan: &Plan, files: &[usize]) -> Result<(), BenchError> {
        let mut session = self.working()?;
        let mut see = |verifier| {
            if self.verifiers.see(self.target.address, verifier) == News::Changed
                && let Some(ledger) = &plan.common.ledger
            {
                ledger.expose();
            }
        };
        layout::commit(&mut session, &self.handles, plan, files, &mut see)
    }

    /// Failures that the write verifiers show, in words, with their number. With `ask`, the server
    /// is asked for its verifier once more, by a COMMIT.
    pub(super) fn lost_writes(&self, plan: &Plan, ask: bool) -> Vec<(String, u64)> {
        let last = layout::used(plan).next_back();
        if ask
            && self.verifiers.are_known()
            && let Some(file) = last
        {
            // A server that does not answer has shown that already.
            drop(self.commit(plan, &[file]));
        }
        let words = |(address, count): (SocketAddr, usize)| {
            let what = format!(
                "the write verifier of {address} changed: the server restarted, and may have lost \
                 writes that were not committed"
            );
            (what, count as u64)
        };
        self.verifiers.changes().into_iter().map(words).collect()
    }

    /// Removes the files that the preparation made, and what jobs left.
    pub(super) fn remove_files(&self, plan: &Plan, left: &[Made]) -> Result<(), BenchError> {
        let mut session = self.working()?;
        let directory = &self.handles.directory;
        let made = self.made.iter().map(|name| (name.clone(), false));
        let left = left.iter().map(|made| (made.name(), made.directory));
        files::remove(&mut session, directory, made.chain(left))?;
        if plan.keep_directory || !self.created_directory {
            return self.unmount();
        }
        Ok(())
    }

    /// Removes the directory if the preparation made it and it need not stay, and unmounts.
    pub(super) fn remove_directory(&self, plan: &Plan, keep: bool) -> Result<(), BenchError> {
        if keep || !self.created_directory {
            return Ok(());
        }
        let wanted = &plan.workload.directory;
        let mut session = self.working()?;
        let occupied = super::remove_patiently(plan.workload.part.is_some(), || {
            layout::remove_directory(&mut session, &self.root, wanted)
        })?;
        if occupied {
            return Err(layout::not_removed(wanted, Status::NOTEMPTY));
        }
        self.unmount()
    }

    fn unmount(&self) -> Result<(), BenchError> {
        let waits = Waits::working(&self.control);
        mount::unmount(&self.target, &self.caller, &waits, self.mounted_at)
    }

    /// Does the server answer within `waits`, and know the directory?
    pub(super) fn reach(&self, waits: &Waits) -> Result<(), BenchError> {
        let mut session = self.session(waits)?;
        layout::attributes(&mut session, &self.handles.directory)
    }

    /// A session that changes something at the server.
    fn working(&self) -> Result<Session, BenchError> {
        self.session(&Waits::working(&self.control))
    }

    fn session(&self, waits: &Waits) -> Result<Session, BenchError> {
        Ok(Session::of(&self.target, self.caller.clone(), waits)?.patient())
    }
}

/// A caller on the machine of this name.
fn caller(target: &NfsTarget, machine: &str) -> Caller {
    Caller::sys(&Credentials::new(target.uid, target.gid), machine.as_bytes())
}

/// The longest reply to a read of the load.
fn record_bytes_max(workload: &Workload) -> usize {
    HEAD_BYTES + usize::try_from(workload.request_bytes_max()).unwrap_or(0).next_multiple_of(4)
}

fn stream_port(stream: &std::net::TcpStream) -> u16 {
    stream.local_addr().map_or(0, |address| address.port())
}
