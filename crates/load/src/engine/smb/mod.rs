//! The SMB engine: a client in user space that needs no mount and no privilege. Each connection has
//! a session and a tree connect of its own, and the files of its jobs open.

mod channel;
mod files;
mod requests;
mod session;
mod status;
mod top;
mod verify;

pub use session::{
    Replies as SmbReplies, Reply as SmbReply, Session as SmbSession, outcome as smb_outcome,
};
pub use top::SmbTop;

use super::job::Made;
use super::net::{self, Opened, Ports, Seat, Waits};
use super::share::Role;
use super::{Layingout, Plan, Worker, check_room};
use crate::control::Control;
use crate::error::BenchError;
use crate::target::SmbTarget;
use crate::workload::{Layout, Operation, Workload};
use channel::{SmbChannel, SmbRecords, frame_bytes_max};
use requests::Names;
use session::Session;
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_smb::conn::CREDITS_MAX;
use weir_smb::wire::{AccessMask, Status, charge_for};

/// Messages of the longest compound of a load.
const COMPOUND_MAX: u16 = 3;

/// The files of a run.
pub(super) struct Files {
    target: SmbTarget,
    /// The control of the run.
    control: Control,
    sources: Vec<Option<IpAddr>>,
    created_directory: bool,
    /// Names of the files that this load made and that need not stay.
    made: Vec<String>,
}

impl Files {
    /// Connects and makes the directory and the files, as the layout says.
    pub(super) fn prepare(
        target: &SmbTarget,
        plan: &Plan,
        progress: &mut Layingout<'_>,
    ) -> Result<Self, BenchError> {
        let workload = &plan.workload;
        let sources = net::sources(workload, &target.addresses());
        let control = progress.control.clone();
        let mut session = Session::of(target, &Waits::checking(&control))?;
        for further in &target.more {
            // A wrong address is told before anything is made.
            drop(net::connect(*further, None, Ports::Any)?);
        }
        session.limits().check(workload)?;
        session.set_waits(Waits::working(&control));
        let path = path(target, &workload.directory);
        let created_directory = files::directory(&mut session, &path)?;
        let (target, made) = (target.clone(), Vec::new());
        let mut files = Self { target, control, sources, created_directory, made };
        let made = files.make(&mut session, plan, progress);
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
        progress: &mut Layingout<'_>,
    ) -> Result<(), BenchError> {
        let workload = &plan.workload;
        let mut names = self.names(plan);
        if self.created_directory {
            let top = path(&self.target, "");
            check_room(workload, || files::room(session, &top))?;
        }
        let made = (&mut self.made, self.created_directory);
        files::make(session, plan, &mut names, made, progress)?;
        if let Layout::Written { block_bytes } = workload.layout {
            files::write(session, &mut names, plan, block_bytes, progress)?;
        }
        Ok(())
    }

    /// Checks the files that others made.
    pub(super) fn attach(&self, plan: &Plan) -> Result<(), BenchError> {
        let mut wanted = files::all(plan)
            .filter(|(file, number)| file.spec.role == Role::Find && plan.workload.uses(*number))
            .peekable();
        if wanted.peek().is_none() {
            return Ok(());
        }
        let mut names = self.names(plan);
        let mut session = self.session(&Waits::checking(&self.control))?;
        files::check(&mut session, &mut names, wanted.map(|(file, _)| file))
    }

    /// Connects, and deals jobs and connections to the threads.
    pub(super) fn workers(&self, plan: &Plan) -> Result<Vec<Worker>, BenchError> {
        let addresses = self.target.addresses();
        net::workers(plan, &addresses, &self.sources, |seat| self.open(plan, seat))
    }

    /// A connection that has the files of its jobs open.
    fn open(&self, plan: &Plan, seat: &Seat<'_>) -> Result<Opened<SmbChannel>, BenchError> {
        let workload = &plan.workload;
        let credits = credits(workload, seat.depth);
        let place = (seat.address, seat.source);
        let waits = Waits::checking(&self.control);
        let mut session = Session::open_for(&self.target, place, credits, &waits)?;
        let mut names = self.names(plan);
        let visited = files::all(plan).filter(|(_, number)| {
            workload.opens_files() && seat.jobs.iter().any(|job| workload.visits(*job, *number))
        });
        let opens = files::open(&mut session, &mut names, visited, access(workload))?;
        let is_whole = workload.verify_reads || session.channel().needs_whole_frames();
        let longest = usize::try_from(workload.request_bytes_max()).unwrap_or(0);
        let whole = is_whole.then(|| frame_bytes_max(longest));
        let (stream, channel) = session.into_parts();
        let channel = SmbChannel::new(plan.clone(), channel, opens, names, whole);
        Ok((stream, channel, SmbRecords::new(whole)))
    }

    /// The clients' source addresses.
    pub(super) fn client_names(&self) -> Vec<String> {
        net::names(&self.sources)
    }

    /// The number of the load's connections to each address.
    pub(super) fn addresses(&self, workload: &Workload) -> BTreeMap<String, u64> {
        net::counts(workload, &self.target.addresses())
    }

    /// A FLUSH of every file that this process works on.
    pub(super) fn sync(&self, plan: &Plan) -> Result<(), BenchError> {
        files::sync(&mut self.working()?, &mut self.names(plan), plan)
    }

    /// Removes the files that the preparation made, and what jobs left.
    pub(super) fn remove_files(&self, plan: &Plan, left: &[Made]) -> Result<(), BenchError> {
        let mut session = self.working()?;
        let made = self.made.iter().map(|name| (name.clone(), false));
        let left = left.iter().map(|made| (made.name(), made.directory));
        files::remove(&mut session, &mut self.names(plan), made.chain(left))
    }

    /// Removes the directory if the preparation made it and it need not stay.
    pub(super) fn remove_directory(&self, plan: &Plan, keep: bool) -> Result<(), BenchError> {
        if keep || !self.created_directory {
            return Ok(());
        }
        let path = path(&self.target, &plan.workload.directory);
        let mut session = self.working()?;
        // A file goes when its last open is closed, and the server learns by itself that the
        // connections of the load have ended.
        let occupied =
            super::remove_patiently(true, || files::remove_directory(&mut session, &path))?;
        if occupied {
            let action = format!("removing the directory {path}");
            return Err(status::refused(&action, Status::DIRECTORY_NOT_EMPTY));
        }
        Ok(())
    }

    /// Does the server answer within `waits`, and let the user into the share?
    pub(super) fn reach(&self, waits: &Waits) -> Result<(), BenchError> {
        self.session(waits).map(drop)
    }

    /// A session that changes something at the server.
    fn working(&self) -> Result<Session, BenchError> {
        self.session(&Waits::working(&self.control))
    }

    fn session(&self, waits: &Waits) -> Result<Session, BenchError> {
        Session::of(&self.target, waits)
    }

    fn names(&self, plan: &Plan) -> Names {
        Names::below(&path(&self.target, &plan.workload.directory))
    }
}

/// The path of a directory of the suite below the target's, from the root of the share; parts of
/// both have `/` between them.
fn path(target: &SmbTarget, directory: &str) -> String {
    let parts = target.directory.split('/').chain(directory.split('/'));
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\\")
}

/// Credits for so many operations in flight.
fn credits(workload: &Workload, depth: usize) -> u16 {
    let each = charge_for(workload.request_bytes_max()).max(COMPOUND_MAX);
    let all = u64::from(each).saturating_mul(depth as u64);
    u16::try_from(all.min(CREDITS_MAX)).unwrap_or(u16::MAX)
}

/// The access that the load needs to its files.
fn access(workload: &Workload) -> AccessMask {
    let mut access = AccessMask::READ_ATTRIBUTES;
    let mixes = workload.operation == Operation::Mix;
    access.set(AccessMask::READ_DATA, workload.reads() || mixes);
    access.set(AccessMask::WRITE_DATA, workload.writes() || mixes);
    access.set(AccessMask::WRITE_ATTRIBUTES, mixes);
    access
}
