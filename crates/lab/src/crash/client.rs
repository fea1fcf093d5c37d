//! One simulated client: it works in a directory of its own, knows what it was answered, and goes
//! on by itself when its server was killed: it connects again, looks whether everything is there,
//! and sends again what was not answered, under the same number, as clients do. It sends some of
//! what was answered shortly before again, too, as a client does that did not get the reply. Every
//! answer must be that of a call which is carried out once.

use super::audit;
use super::choose::choose;
use super::journal::{Halt, Journal, Tally, broken, wrong};
use super::op::{DirEntry, Op, OpReply, location};
use super::tree::{Handle, Id, TOP, Tree};
use super::world::{TICK, World};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;
use weir_core::rng::Rng;
use weir_load::engine::{Session, status_name};
use weir_nfs::client::{CallError, Caller};
use weir_nfs::v3::wire::{
    DirOpArgs3, FileHandle3, LookupArgs, MkdirArgs, Res, Sattr3, StableHow, Status,
};

/// Answered changes of names that are sent again after a restart.
const ANSWERED: usize = 16;
/// Time between two looks of a client that only watches.
const WATCH: Duration = Duration::from_millis(50);
/// Numbers of calls begin here, out of the way of those that sessions count by themselves.
const FIRST_XID: u32 = 0x4000_0000;

/// A client's identity and work.
pub(super) struct Role {
    pub(super) number: u32,
    /// The volume's top directory.
    pub(super) root: Handle,
    pub(super) source: Option<IpAddr>,
    /// Operations after which it only watches; none: it works to the end.
    pub(super) operations_max: Option<u64>,
}

struct Pending {
    op: Op,
    xid: u32,
    /// Was it sent before, on another connection?
    again: bool,
}

/// A change of names that was answered.
struct Answered {
    op: Op,
    xid: u32,
    /// The call's record, as it was sent.
    record: Vec<u8>,
    /// The handle of the object that the call made, if the answer had one.
    handle: Option<Handle>,
}

impl Answered {
    /// Is `second` the same answer again?
    fn is_repeated_by(&self, second: &OpReply) -> bool {
        second.handle.is_none() || second.handle == self.handle
    }
}

/// A client.
pub(super) struct Client<'w> {
    journal: Journal<'w>,
    role: Role,
    caller: Caller,
    rng: Rng,
    tree: Option<Tree>,
    session: Option<Session>,
    pending: Vec<Pending>,
    answered: VecDeque<Answered>,
    /// Operations that come before anything new.
    next: VecDeque<Op>,
    xid: u32,
    directories: u32,
    first_id: Id,
    operations: u64,
}

impl<'w> Client<'w> {
    pub(super) fn new(world: &'w World, role: Role, caller: Caller) -> Self {
        let rng = Rng::new(weir_core::rng::mix(world.run ^ (u64::from(role.number) << 32)));
        Self {
            journal: Journal::new(world, role.number, world.durable_names),
            role,
            caller,
            rng,
            tree: None,
            session: None,
            pending: Vec::new(),
            answered: VecDeque::new(),
            next: VecDeque::new(),
            xid: FIRST_XID,
            directories: 0,
            first_id: TOP + 1,
            operations: 0,
        }
    }

    /// Works until the run is over.
    pub(super) fn run(mut self) -> Tally {
        while !self.journal.world.stopped() {
            let turn = self.turn();
            if self.journal.end_of_turn(turn) {
                self.leave();
            }
        }
        self.journal.tally
    }

    /// Gives up a connection to a server that is gone, or going.
    fn leave(&mut self) {
        if let Some(session) = self.session.take() {
            session.reset();
        }
    }

    fn turn(&mut self) -> Result<(), Halt> {
        if self.session.is_none() && !self.join()? {
            return Ok(());
        }
        if self.tree.is_none() {
            return self.begin();
        }
        let idle = self.role.operations_max.is_some_and(|most| self.operations >= most);
        if let Some(op) = self.next.pop_front() {
            return self.carry_out(vec![op]);
        }
        if self.journal.world.paused() {
            self.look()?;
            self.journal
                .world
                .used(self.role.number, self.tree.as_ref().and_then(Tree::used_blocks));
            self.journal.world.park();
            return Ok(());
        }
        if idle {
            std::thread::sleep(WATCH);
            return self.look();
        }
        let ops = self.tree.as_mut().map(|tree| choose(tree, &mut self.rng)).unwrap_or_default();
        self.carry_out(ops)
    }

    /// Connects to the server of the present life, looks whether all is there, and sends again
    /// what was not answered. `false`: the run ends.
    fn join(&mut self) -> Result<bool, Halt> {
        loop {
            let Some(life) = self.journal.world.life_after(self.journal.life).map_err(wrong)?
            else {
                return Ok(false);
            };
            match Session::open(self.journal.world.address, self.role.source, self.caller.clone()) {
                Ok(session) => {
                    self.session = Some(session);
                    self.journal.life = life;
                    break;
                }
                // The server is still starting, or was killed meanwhile.
                Err(_) if !self.journal.world.stopped() => std::thread::sleep(TICK),
                Err(_) => return Ok(false),
            }
        }
        self.journal.note(|| "connected".to_owned());
        self.journal.tally.in_doubt +=
            self.pending.iter().filter(|pending| !pending.again).count() as u64;
        if self.journal.take_cut() {
            match &mut self.tree {
                Some(tree) => tree.power_cut(),
                None => self.journal.names_lost = false,
            }
        }
        if self.journal.names_lost {
            return self.after_cut().map(|()| true);
        }
        self.look()?;
        self.ask_again()?;
        self.send_again()?;
        Ok(true)
    }

    /// Looks for the files by their handles, since names may be lost, and then begins anew.
    fn after_cut(&mut self) -> Result<(), Halt> {
        let (Some(tree), Some(session)) = (&self.tree, &mut self.session) else { return Ok(()) };
        // An object that is being removed or replaced may be gone.
        let mut after = tree.clone();
        self.pending.iter().for_each(|pending| after.apply(&pending.op, None));
        let mut left = tree.clone();
        left.objects.retain(|id, _| after.objects.contains_key(id));
        let source = self.journal.world.source(self.role.number);
        let found = audit::compare_files(session, &left, source);
        let compared = self.journal.seen(found)?.map_err(Halt::Wrong)?;
        self.journal.compared(compared);
        self.first_id = left.next;
        self.tree = None;
        self.journal.names_lost = false;
        self.pending.clear();
        self.answered.clear();
        self.next.clear();
        Ok(())
    }

    /// Makes the client's directory and begins to work in it.
    fn begin(&mut self) -> Result<(), Halt> {
        let name = format!("client-{}-{}", self.role.number, self.directories);
        let location = DirOpArgs3 { dir: FileHandle3(&self.role.root), name: name.as_bytes() };
        let attributes = Sattr3 { mode: Some(0o755), ..Sattr3::NONE };
        let session = self.session.as_mut().ok_or(Halt::Lost)?;
        let made = session
            .call(&MkdirArgs { location, attributes }, |result| match result {
                Res::Ok(made) => Ok(made.object.map(|handle| Handle::from(handle.0))),
                Res::Fail(status, _) => Err(status),
            })
            .map_err(broken)?;
        let handle = match made {
            Ok(Some(handle)) => handle,
            Ok(None) | Err(Status::EXIST) => self.handle_of(location_of(&self.role.root, &name))?,
            Err(status) => {
                return Err(self.journal.refused(&format!("making {name}"), &status_name(status)));
            }
        };
        self.directories += 1;
        self.tree = Some(Tree::new(handle, self.first_id));
        Ok(())
    }

    /// Compares everything with what the server shows.
    fn look(&mut self) -> Result<(), Halt> {
        let (Some(tree), Some(session)) = (&self.tree, &mut self.session) else { return Ok(()) };
        let source = self.journal.world.source(self.role.number);
        let observed = audit::observe(session, tree.handle(TOP));
        let revived = match &observed {
            Ok(_) => audit::revived(session, &tree.gone),
            Err(_) => Ok(Vec::new()),
        };
        let observed = self.journal.seen(observed)?;
        let revived = self.journal.seen(revived)?;
        let Some(tree) = &self.tree else { return Ok(()) };
        let mut outcome = audit::compare(tree, &observed, source);
        // A change of names in doubt may have been made, whole.
        if outcome.is_err() && !self.pending.is_empty() {
            let mut after = tree.clone();
            self.pending.iter().for_each(|pending| after.apply(&pending.op, None));
            if let Ok(compared) = audit::compare(&after, &observed, source) {
                outcome = Ok(compared);
                self.journal.tally.were_done += 1;
            }
        }
        let compared = outcome.map_err(|mut what| {
            let doubt = self.pending.iter().map(|pending| format!("in doubt: {:?}", pending.op));
            what.extend(doubt);
            Halt::Wrong(what)
        })?;
        if !revived.is_empty() {
            return Err(Halt::Wrong(revived));
        }
        self.journal.compared(compared);
        Ok(())
    }

    fn carry_out(&mut self, ops: Vec<Op>) -> Result<(), Halt> {
        for op in ops {
            if let Some(tree) = &mut self.tree {
                tree.sent(&op);
            }
            self.xid += 1;
            self.pending.push(Pending { op, xid: self.xid, again: false });
        }
        self.exchange()
    }

    fn send_again(&mut self) -> Result<(), Halt> {
        self.pending.iter_mut().for_each(|pending| pending.again = true);
        self.exchange()
    }

    /// Sends recently answered calls again: the answers must be the same, and nothing else may
    /// change.
    fn ask_again(&mut self) -> Result<(), Halt> {
        let Some(session) = &mut self.session else { return Ok(()) };
        for Answered { record, .. } in &self.answered {
            session.queue_as(|_, out| out.extend_from_slice(record));
        }
        for _ in 0..self.answered.len() {
            let session = self.session.as_mut().ok_or(Halt::Lost)?;
            let answered = &self.answered;
            let again = session.answer(|reply| {
                let Some(first) = answered.iter().find(|first| first.xid == reply.xid) else {
                    return Ok(Err(format!("an answer to nothing that was asked ({})", reply.xid)));
                };
                Ok(match first.op.answer(reply) {
                    Ok(Ok(second)) if first.is_repeated_by(&second) => Ok(()),
                    other => Err(format!("{:?}, answered before, now: {other:?}", first.op)),
                })
            });
            let again = again.map_err(broken)?;
            if self.journal.is_cut() {
                return Err(Halt::Lost);
            }
            again.map_err(wrong)?;
        }
        if !self.answered.is_empty() {
            self.journal.tally.asked_again += self.answered.len() as u64;
            self.look()?;
        }
        Ok(())
    }

    /// Keeps an answered change of names, to be sent again.
    fn keep(&mut self, op: &Op, xid: u32, handle: Option<&Handle>) {
        let Some(tree) = self.tree.as_ref().filter(|_| op.changes_names()) else { return };
        let mut record = Vec::new();
        let source = self.journal.world.source(self.role.number);
        op.encode(tree, source, &self.caller, &mut record, xid);
        if self.answered.len() == ANSWERED {
            self.answered.pop_front();
        }
        self.answered.push_back(Answered { op: op.clone(), xid, record, handle: handle.cloned() });
    }

    /// Sends all that is pending, and takes the answers.
    fn exchange(&mut self) -> Result<(), Halt> {
        let (Some(tree), Some(session)) = (&self.tree, &mut self.session) else { return Ok(()) };
        let source = self.journal.world.source(self.role.number);
        for Pending { op, xid, .. } in &self.pending {
            session.queue_as(|caller, out| op.encode(tree, source, caller, out, *xid));
        }
        while !self.pending.is_empty() {
            let session = self.session.as_mut().ok_or(Halt::Lost)?;
            let pending = &self.pending;
            let answered = session.answer(|reply| {
                let found = pending.iter().position(|pending| pending.xid == reply.xid);
                let Some((at, asked)) = found.and_then(|at| Some((at, pending.get(at)?))) else {
                    return Ok(Err(format!("an answer to nothing that was asked ({})", reply.xid)));
                };
                Ok(match asked.op.answer(reply) {
                    Ok(answer) => Ok((at, answer)),
                    Err(CallError::Refused(why)) => Err(format!("{:?}: {why}", asked.op)),
                    Err(error) => Err(format!("{:?}: {error}", asked.op)),
                })
            });
            let (at, answer) = answered.map_err(broken)?.map_err(wrong)?;
            // A reply after the power cut counts for nothing.
            if self.journal.is_cut() {
                return Err(Halt::Lost);
            }
            self.answered(at, answer)?;
        }
        Ok(())
    }

    fn answered(&mut self, at: usize, answer: Result<OpReply, Status>) -> Result<(), Halt> {
        let Some(Pending { op, xid, .. }) = self.pending.get(at) else { return Ok(()) };
        let (op, xid) = (op.clone(), *xid);
        self.journal.note(|| match &answer {
            Ok(_) => format!("{op:?}: done"),
            Err(status) => format!("{op:?}: {}", status_name(*status)),
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(Status::JUKEBOX) => {
                self.pending.swap_remove(at);
                self.next.push_front(op);
                std::thread::sleep(TICK);
                return Ok(());
            }
            Err(status) => {
                return Err(self.journal.refused(&format!("{op:?}"), &status_name(status)));
            }
        };
        let handle = match (answer.handle.clone(), op.makes()) {
            (None, Some(at)) => Some(self.look_up(at)?),
            (handle, _) => handle,
        };
        self.keep(&op, xid, handle.as_ref());
        self.pending.swap_remove(at);
        *self.journal.tally.operations.entry(op.word()).or_default() += 1;
        self.operations += 1;
        self.note_done(&op, &answer, handle)
    }

    /// Takes a success into the tree.
    fn note_done(&mut self, op: &Op, answer: &OpReply, handle: Option<Handle>) -> Result<(), Halt> {
        let Some(tree) = &mut self.tree else { return Ok(()) };
        if let Op::Write { stable, count, .. } = op {
            let (committed, bytes) = answer.committed.unwrap_or((StableHow::Unstable, 0));
            let whole = u64::from(bytes) == u64::from(*count) * super::content::BLOCK;
            if !whole || (committed as u32) < *stable as u32 {
                return Err(wrong(format!(
                    "{op:?} was answered with {bytes} bytes, {committed:?}"
                )));
            }
        }
        let again = tree.done(op, answer, handle, self.journal.world.durable_names);
        self.journal.tally.rewritten_blocks += again.len() as u64;
        let Op::Commit { file } = op else { return Ok(()) };
        for (first, number) in &again {
            let (file, first, number) = (*file, *first, *number);
            let stable = StableHow::Unstable;
            self.next.push_back(Op::Write { file, first, count: 1, number, stable });
        }
        if !again.is_empty() {
            self.next.push_back(op.clone());
        }
        Ok(())
    }

    fn look_up(&mut self, at: &DirEntry) -> Result<Handle, Halt> {
        let Some(tree) = &self.tree else { return Err(Halt::Lost) };
        let DirOpArgs3 { dir, name } = location(tree, at);
        let (dir, name) = (Handle::from(dir.0), String::from_utf8_lossy(name).into_owned());
        self.handle_of(location_of(&dir, &name))
    }

    fn handle_of(&mut self, (dir, name): (Handle, String)) -> Result<Handle, Halt> {
        let session = self.session.as_mut().ok_or(Halt::Lost)?;
        let what = DirOpArgs3 { dir: FileHandle3(&dir), name: name.as_bytes() };
        let found = session
            .call(&LookupArgs { what }, |result| match result {
                Res::Ok(found) => Ok(Handle::from(found.object.0)),
                Res::Fail(status, _) => Err(status),
            })
            .map_err(broken)?;
        found.map_err(|status| {
            self.journal.refused(&format!("looking {name} up"), &status_name(status))
        })
    }
}

fn location_of(dir: &[u8], name: &str) -> (Handle, String) {
    (dir.into(), name.to_owned())
}
