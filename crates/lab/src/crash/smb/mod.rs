//! SMB clients, which run beside the NFS clients. Each has its own session and its own directory,
//! and uses opens, write-through, FLUSH, locks and deletion on close. Its data and names are
//! compared over NFS.
//!
//! A request without a response is not retransmitted, because SMB has no duplicate request cache:
//! the client finds out whether the server executed the request, and continues from that state.
//!
//! An answered change survives a killed server. Data and names survive a power cut if a FLUSH or a
//! request of a write-through open has covered them; of the rest, any part may survive.

mod choose;
mod names;
mod op;

use super::audit::{self, Observed};
use super::content::{self, BLOCK};
use super::journal::{Halt, Journal, Tally, broken, wrong};
use super::op::{Op, OpReply};
use super::tree::{Handle, Id, TOP, Tree};
use super::watcher;
use super::world::{TICK, World};
use choose::choose;
use names::Names;
use op::{Opened, Opens, SmbOp};
use std::collections::VecDeque;
use std::net::IpAddr;
use weir_core::rng::{Rng, mix};
use weir_load::engine::{Session, SmbReplies, SmbReply, SmbSession, smb_outcome, status_name};
use weir_load::error::BenchError;
use weir_load::{Control, SmbTarget};
use weir_nfs::v3::wire::{
    DirOpArgs3, FileHandle3, LookupArgs, MkdirArgs, Res, Sattr3, SetattrArgs, StableHow, Status,
};
use weir_smb_client::{Data, Request, Write};

/// The identity of every SMB client on files.
pub(super) const UID: u32 = 1000;
/// The attributes of a client's directory.
const DIRECTORY: Sattr3 =
    Sattr3 { mode: Some(0o755), uid: Some(UID), gid: Some(UID), ..Sattr3::NONE };

/// The parameters of an SMB client.
pub(super) struct SmbRole {
    pub(super) number: u32,
    pub(super) target: SmbTarget,
    /// The volume's top directory, as NFS knows it.
    pub(super) root: Handle,
    pub(super) source: Option<IpAddr>,
}

/// The connections of a client: SMB for its operations, NFS for the comparisons.
struct Connection {
    smb: SmbSession,
    nfs: Session,
}

/// A client.
pub(super) struct SmbClient<'w> {
    journal: Journal<'w>,
    role: SmbRole,
    rng: Rng,
    connection: Option<Connection>,
    tree: Option<Tree>,
    /// The path of the tree in the share.
    top: String,
    names: Names,
    opens: Opens,
    /// A change of names without a response.
    pending: Option<Op>,
    next: VecDeque<SmbOp>,
    directories: u32,
    first_id: Id,
}

impl<'w> SmbClient<'w> {
    pub(super) fn new(world: &'w World, role: SmbRole) -> Self {
        Self {
            journal: Journal::new(world, role.number, false),
            rng: Rng::new(mix(world.run ^ (u64::from(role.number) << 32))),
            role,
            connection: None,
            tree: None,
            top: String::new(),
            names: Names::default(),
            opens: Opens::new(),
            pending: None,
            next: VecDeque::new(),
            directories: 0,
            first_id: TOP + 1,
        }
    }

    /// Carries out operations until the run ends.
    pub(super) fn run(mut self) -> Tally {
        while !self.journal.world.stopped() {
            let turn = self.turn();
            if self.journal.end_of_turn(turn) {
                self.disconnect();
            }
        }
        self.journal.tally
    }

    /// Drops the connections to a server that has ended or is ending, and all opens with them.
    fn disconnect(&mut self) {
        if let Some(Connection { nfs, .. }) = self.connection.take() {
            nfs.reset();
        }
        self.opens.clear();
        self.next.clear();
    }

    fn turn(&mut self) -> Result<(), Halt> {
        if self.connection.is_none() && !self.reconnect()? {
            return Ok(());
        }
        if self.tree.is_none() {
            return self.begin();
        }
        if self.next.is_empty() && self.journal.world.paused() {
            self.compare_all()?;
            let used = self.tree.as_ref().and_then(Tree::used_blocks);
            self.journal.world.used(self.role.number, used);
            self.journal.world.park();
            return Ok(());
        }
        if self.next.is_empty()
            && let Some(tree) = &mut self.tree
        {
            let open: Vec<Id> = self.opens.keys().copied().collect();
            self.next = choose(tree, &open, &mut self.rng).into();
        }
        match self.next.front() {
            Some(SmbOp::Write { .. }) => self.write(),
            _ => match self.next.pop_front() {
                Some(op) => self.carry_out(&op),
                None => Ok(()),
            },
        }
    }

    /// Connects to the current server process and compares everything. Gives false if the run ends.
    fn reconnect(&mut self) -> Result<bool, Halt> {
        let world = self.journal.world;
        loop {
            let Some(life) = world.life_after(self.journal.life).map_err(wrong)? else {
                return Ok(false);
            };
            match self.connect() {
                Ok(connection) => {
                    self.connection = Some(connection);
                    self.journal.life = life;
                    break;
                }
                // The server is still starting, or was killed meanwhile.
                Err(_) if !world.stopped() => std::thread::sleep(TICK),
                Err(_) => return Ok(false),
            }
        }
        self.journal.note(|| "connected".to_owned());
        if self.journal.take_cut() {
            match &mut self.tree {
                Some(tree) => {
                    tree.power_cut();
                    self.names.power_cut();
                }
                None => self.journal.names_lost = false,
            }
        }
        self.journal.tally.in_doubt += u64::from(self.pending.is_some());
        if self.journal.names_lost {
            return self.after_cut().map(|()| true);
        }
        self.compare_all()?;
        Ok(true)
    }

    fn connect(&self) -> Result<Connection, BenchError> {
        let SmbRole { target, source, .. } = &self.role;
        let smb = SmbSession::open(target, (target.address, *source))?;
        let nfs = Session::open(self.journal.world.address, *source, watcher::caller())?;
        Ok(Connection { smb, nfs })
    }

    /// Makes the client's directory over NFS, as root, who may change its owner.
    fn begin(&mut self) -> Result<(), Halt> {
        let name = format!("smb-{}-{}", self.role.number, self.directories);
        let location = DirOpArgs3 { dir: FileHandle3(&self.role.root), name: name.as_bytes() };
        let making = MkdirArgs { location, attributes: DIRECTORY };
        let nfs = &mut self.connection.as_mut().ok_or(Halt::Lost)?.nfs;
        let made = nfs.call(&making, |result| match result {
            Res::Ok(_) | Res::Fail(Status::EXIST, _) => Ok(()),
            Res::Fail(status, _) => Err(status),
        });
        let refused = |journal: &Journal<'_>, status| {
            journal.refused(&format!("making {name}"), &status_name(status))
        };
        made.map_err(broken)?.map_err(|status| refused(&self.journal, status))?;
        let handle = find(nfs, &self.role.root, &name).map_err(broken)?;
        let handle = handle.map_err(|status| refused(&self.journal, status))?;
        self.top = name;
        // A MKDIR that was cut short may have made it without its owner.
        self.set_owner(&handle)?;
        self.directories += 1;
        self.tree = Some(Tree::new(handle, self.first_id));
        Ok(())
    }

    /// Makes the client's user the owner of its directory.
    fn set_owner(&mut self, directory: &Handle) -> Result<(), Halt> {
        let nfs = &mut self.connection.as_mut().ok_or(Halt::Lost)?.nfs;
        let object = FileHandle3(directory);
        let giving = SetattrArgs { object, new_attributes: DIRECTORY, guard: None };
        let given = nfs.call(&giving, |result| match result {
            Res::Ok(_) => Ok(()),
            Res::Fail(status, _) => Err(status),
        });
        given.map_err(broken)?.map_err(|status| {
            self.journal.refused(&format!("giving {} away", self.top), &status_name(status))
        })
    }

    /// After a power cut that may have lost names: compares what must have survived, and continues
    /// with the tree that the server shows.
    fn after_cut(&mut self) -> Result<(), Halt> {
        let (Some(tree), Some(connection)) = (&self.tree, &mut self.connection) else {
            return Ok(());
        };
        let nfs = &mut connection.nfs;
        let top = match find(nfs, &self.role.root, &self.top).map_err(broken)? {
            Ok(handle) => Some(handle),
            Err(Status::NOENT) => None,
            Err(status) => {
                let what = format!("looking {} up", self.top);
                return Err(self.journal.refused(&what, &status_name(status)));
            }
        };
        let observed = match &top {
            Some(handle) => audit::observe(nfs, handle),
            None => Ok(Observed::default()),
        };
        let observed = self.journal.seen(observed)?;
        let source = self.journal.world.source(self.role.number);
        let compared = self.names.compare(tree, &observed, source).map_err(Halt::Wrong)?;
        self.journal.compared(compared);
        match &top {
            // The power cut may have lost the directory's owner too.
            Some(handle) => self.set_owner(handle)?,
            // The directory was made over NFS: its name is durable if the volume's mode says so.
            None if self.journal.world.durable_names => {
                return Err(wrong(format!("{} is gone", self.top)));
            }
            None => {}
        }
        let Some(tree) = &self.tree else { return Ok(()) };
        let adopted = self.names.adopt(tree, &observed, source);
        (self.first_id, self.pending) = (adopted.next, None);
        self.journal.names_lost = false;
        self.tree = top.and(Some(adopted));
        Ok(())
    }

    /// Compares the tree with what the server shows over NFS, with or without the change that has
    /// no response.
    fn compare_all(&mut self) -> Result<(), Halt> {
        let (Some(tree), Some(connection)) = (&self.tree, &mut self.connection) else {
            return Ok(());
        };
        let source = self.journal.world.source(self.role.number);
        let observed = audit::observe(&mut connection.nfs, tree.handle(TOP));
        let revived = match &observed {
            Ok(_) => audit::revived(&mut connection.nfs, &tree.gone),
            Err(_) => Ok(Vec::new()),
        };
        let observed = self.journal.seen(observed)?;
        let revived = self.journal.seen(revived)?;
        let Some(mut tree) = self.tree.clone() else { return Ok(()) };
        let mut outcome = audit::compare(&tree, &observed, source);
        if outcome.is_err()
            && let Some(op) = &self.pending
        {
            let mut after = tree.clone();
            after.apply(op, None);
            if let Ok(compared) = audit::compare(&after, &observed, source) {
                outcome = Ok(compared);
                tree = after;
                self.journal.tally.were_done += 1;
            }
        }
        let compared = outcome.map_err(|mut what| {
            what.extend(self.pending.iter().map(|op| format!("in doubt: {op:?}")));
            Halt::Wrong(what)
        })?;
        if !revived.is_empty() {
            return Err(Halt::Wrong(revived));
        }
        self.pending = None;
        tree.learn(&observed, source);
        self.tree = Some(tree);
        self.journal.compared(compared);
        Ok(())
    }

    /// Sends all consecutive WRITEs at the head of the queue at once.
    fn write(&mut self) -> Result<(), Halt> {
        let is_write = |op: &SmbOp| matches!(op, SmbOp::Write { .. });
        let count = self.next.iter().take_while(|op| is_write(op)).count();
        let burst: Vec<SmbOp> = self.next.drain(..count).collect();
        let (Some(tree), Some(connection)) = (&mut self.tree, &mut self.connection) else {
            return Ok(());
        };
        burst.iter().filter_map(SmbOp::change).for_each(|change| tree.sent(&change));
        let source = self.journal.world.source(self.role.number);
        let opens = &self.opens;
        let mut answered = Vec::new();
        let ended = connection.smb.ahead(
            &Control::new(),
            burst.into_iter(),
            |session, token, op| {
                let SmbOp::Write { file, first, count, number, through } = op else { return Ok(0) };
                let Some(open) = opens.get(file) else { return Ok(0) };
                let name = source.file_base + file;
                let from = (source.run, source.payload);
                let bytes = content::bytes(from, name, (*first, *count), *number);
                let offset = u64::from(*first) * BLOCK;
                let data = Data { here: [&bytes, &[]], behind: 0 };
                let write = Write { file: open.id, offset, through: *through, data };
                session.queue(token, &[Request::Write(write)])
            },
            |op, replies| {
                answered.push((op, replies));
                Ok(None)
            },
        );
        for (op, replies) in answered {
            self.answered(&op, &replies)?;
        }
        ended.map_err(broken)
    }

    /// Carries out an operation other than WRITE.
    fn carry_out(&mut self, op: &SmbOp) -> Result<(), Halt> {
        let (Some(tree), Some(connection)) = (&mut self.tree, &mut self.connection) else {
            return Ok(());
        };
        if let Some(change) = op.change() {
            tree.sent(&change);
            self.names.sent(tree, &change);
            self.pending = change.changes_names().then_some(change);
        }
        let answer = op.carry_out(&mut connection.smb, (tree, &self.top), &self.opens);
        let replies = answer.map_err(broken)?;
        self.answered(op, &replies)
    }

    /// Checks and records the responses to an operation.
    fn answered(&mut self, op: &SmbOp, replies: &SmbReplies) -> Result<(), Halt> {
        // A response after the power cut proves nothing.
        if self.journal.is_cut() {
            return Err(Halt::Lost);
        }
        let status = smb_outcome(replies);
        self.journal.note(|| format!("{op:?}: {status}"));
        if status.is_error() {
            return Err(self.journal.refused(&format!("{op:?}"), &status));
        }
        *self.journal.tally.operations.entry(op.word()).or_default() += 1;
        let Some(mut tree) = self.tree.take() else { return Ok(()) };
        let taken = self.take(op, replies, &mut tree);
        self.tree = Some(tree);
        taken
    }

    /// Records a successful operation in the tree, the opens and the stable names.
    fn take(&mut self, op: &SmbOp, replies: &SmbReplies, tree: &mut Tree) -> Result<(), Halt> {
        let stable = self.made_stable(op, tree);
        self.take_opens(op, replies, tree)?;
        if let Some(change) = op.change() {
            let committed = match &change {
                Op::Write { count, .. } => {
                    let bytes = replies.first().and_then(|reply| reply.written().ok());
                    if bytes.map(u64::from) != Some(u64::from(*count) * BLOCK) {
                        return Err(wrong(format!("{op:?} was answered with {bytes:?} bytes")));
                    }
                    let is_stable = stable.is_some();
                    let how = if is_stable { StableHow::FileSync } else { StableHow::Unstable };
                    Some((how, *count))
                }
                _ => None,
            };
            tree.done(&change, &OpReply { committed, ..OpReply::default() }, None, false);
            self.pending = None;
        }
        if let SmbOp::FlushDirectory { dir } = op {
            self.names.stable_directory(tree, *dir);
        }
        let Some((file, path)) = stable else { return Ok(()) };
        // Other WRITEs may be in flight beside this one, so it covers only its own bytes.
        if !matches!(op, SmbOp::Write { .. })
            && let Some(content) = tree.content(file)
        {
            content.flushed();
        }
        self.names.stable(tree, file, &path);
        if let SmbOp::Rename { from, .. } = op {
            self.names.stable_removal(&tree.path(from));
        }
        Ok(())
    }

    /// The file that an operation on `tree` makes stable when it succeeds, with the name it makes
    /// stable.
    fn made_stable(&self, op: &SmbOp, tree: &Tree) -> Option<(Id, String)> {
        let open = |file: &Id| self.opens.get(file);
        let through = |file: &Id| {
            let open = open(file).filter(|open| open.through)?;
            Some((*file, open.path.clone()))
        };
        let first = |file: &Id| tree.paths(*file).into_iter().next();
        match op {
            SmbOp::Make { id, at, through: true } => Some((*id, tree.path(at))),
            SmbOp::Open { file, through: true } => Some((*file, first(file)?)),
            SmbOp::Write { file, through: true, .. } | SmbOp::Flush { file } => {
                let path = open(file).map(|open| open.path.clone());
                Some((*file, path.or_else(|| first(file))?))
            }
            SmbOp::Write { file, .. } | SmbOp::Size { file, .. } => through(file),
            SmbOp::Link { file, at } => Some((through(file)?.0, tree.path(at))),
            SmbOp::Rename { from, to } => {
                let (file, path) = through(&tree.find(from)?)?;
                (path == tree.path(from)).then(|| (file, tree.path(to)))
            }
            _ => None,
        }
    }

    /// Records the opens of a successful operation. `tree` has the names before the operation.
    fn take_opens(&mut self, op: &SmbOp, replies: &SmbReplies, tree: &Tree) -> Result<(), Halt> {
        let (file, path, through) = match op {
            SmbOp::Make { id, at, through } => (*id, Some(tree.path(at)), *through),
            SmbOp::Open { file, through } => {
                (*file, tree.paths(*file).into_iter().next(), *through)
            }
            SmbOp::Close { file } => {
                self.opens.remove(file);
                return Ok(());
            }
            SmbOp::Rename { from, to } => {
                let (old, new) = (tree.path(from), tree.path(to));
                let by_it = self.opens.values_mut().filter(|open| open.path == old);
                by_it.for_each(|open| open.path.clone_from(&new));
                return Ok(());
            }
            _ => return Ok(()),
        };
        let Some(Ok(created)) = replies.first().map(SmbReply::created) else {
            return Err(wrong(format!("{op:?} was answered with no open")));
        };
        let (id, path) = (created.file, path.unwrap_or_default());
        self.opens.insert(file, Opened { id, path, through });
        Ok(())
    }
}

/// The handle of a name in a directory.
fn find(nfs: &mut Session, dir: &[u8], name: &str) -> Result<Result<Handle, Status>, BenchError> {
    let what = DirOpArgs3 { dir: FileHandle3(dir), name: name.as_bytes() };
    nfs.call(&LookupArgs { what }, |result| match result {
        Res::Ok(found) => Ok(Handle::from(found.object.0)),
        Res::Fail(status, _) => Err(status),
    })
}
