//! From a record to what is to be done with it: RPC programs, volumes and rights.

use super::Close;
use super::conn::Conn;
use super::core::{Core, refuse, set_groups};
use super::holder::LookingUp;
use super::mount::PeerExports;
use super::request::{Asking, Request};
use crate::clock::seconds_since_1970;
use crate::engine;
use crate::groups::LookUp;
use crate::limits::LOCK_ARGS_BYTES_MAX;
use crate::locks::{Asked, AskedBy};
use crate::retransmit::{Came, Claim};
use crate::sync::Arc;
use weir_catalog::ExportRule;
use weir_core::{FileHandle, FsResult, Groups, OpClass, Shared};
use weir_nfs::nlm::Peer;
use weir_nfs::rpc::{self, AcceptError, AuthStat, Call, Refusal, RejectReason, Rejection};
use weir_nfs::v3::wire::Status;
use weir_nfs::v3::{self, Route};
use weir_nfs::{
    PROGRAM_MOUNT, PROGRAM_NFS, PROGRAM_NFSACL, PROGRAM_NLM, PROGRAM_NSM, PROGRAM_RPCBIND, acl,
    mount,
};
use weir_qos::Cost;

impl Core {
    /// Answers or starts the call in `record`.
    pub(super) fn dispatch(&mut self, conn: &mut Conn, record: Shared) -> Result<(), Close> {
        let call = match Call::parse(record) {
            Ok(call) => call,
            Err(Refusal::Drop) => return Err(self.misbehaved(conn, &"not an RPC call")),
            Err(Refusal::Reply(rejection)) => {
                let reply = rpc::reply::reject(self.buffers.reply(64), &rejection);
                conn.queue(reply);
                return Ok(());
            }
        };
        match (call.program, call.version) {
            (PROGRAM_NFS, v3::VERSION) => self.nfs3(conn, call),
            (PROGRAM_NFSACL, acl::VERSION) => self.nfsacl(conn, call),
            (PROGRAM_NFS | PROGRAM_NFSACL, _) => self.refuse(conn, &call, NFS_MISMATCH),
            (PROGRAM_MOUNT, _) => self.mount(conn, &call),
            (PROGRAM_NLM | PROGRAM_NSM, _) => return self.ask_lock_manager(conn, call),
            (PROGRAM_RPCBIND, _) => return self.portmap(conn, &call),
            _ => self.refuse(conn, &call, AcceptError::ProgramUnavailable),
        }
        Ok(())
    }

    fn refuse(&mut self, conn: &mut Conn, call: &Call, error: AcceptError) {
        let reply = rpc::reply::error(self.buffers.reply(64), call.xid, error);
        conn.queue(reply);
    }

    fn mount(&mut self, conn: &mut Conn, call: &Call) {
        let exports = PeerExports::new(&self.engine, self.view.load(), conn.peer);
        let reply = mount::serve(call, &exports, self.buffers.reply(256));
        conn.queue(reply);
    }

    /// Hands a call to the lock manager, whose reply comes by the inbox.
    fn ask_lock_manager(&mut self, conn: &mut Conn, mut call: Call) -> Result<(), Close> {
        let Some(door) = self.engine.locks.as_ref() else {
            self.refuse(conn, &call, AcceptError::ProgramUnavailable);
            return Ok(());
        };
        if call.args.len() > LOCK_ARGS_BYTES_MAX {
            self.refuse(conn, &call, AcceptError::GarbageArgs);
            return Ok(());
        }
        call.args = call.args.detach();
        let local = conn.socket.local_addr().map_err(|_| Close)?.ip().to_canonical();
        let (xid, peer) = (call.xid, Peer { address: conn.peer, local });
        let by = AskedBy::Connection(self.id_of(conn));
        if door.ask(Asked { call, peer, by }) {
            conn.in_flight += 1;
        } else {
            let reply = rpc::reply::error(self.buffers.reply(64), xid, AcceptError::SystemError);
            conn.queue(reply);
        }
        Ok(())
    }

    fn portmap(&mut self, conn: &mut Conn, call: &Call) -> Result<(), Close> {
        let from = conn.socket.peer_addr().map_err(|_| Close)?;
        let local = conn.socket.local_addr().map_err(|_| Close)?.ip();
        let (now, room) = (seconds_since_1970(), self.buffers.reply(256));
        conn.queue(self.engine.portmap.serve(call, from, local, true, now, room));
        Ok(())
    }

    fn nfs3(&mut self, conn: &mut Conn, call: Call) {
        let route = match Route::of(call.procedure, &call.args) {
            Ok(route) => route,
            Err(_) => return self.refuse(conn, &call, AcceptError::GarbageArgs),
        };
        let Some(wire) = route.handle else {
            let reply = v3::null(&call, self.buffers.reply(64));
            return conn.queue(reply);
        };
        let Ok(handle) = self.engine.keys.open(wire) else {
            return self.fail(conn, &call, Status::BADHANDLE);
        };
        let (class, once) = (route.class, route.once);
        let cost = match class {
            OpClass::Read | OpClass::Write => Cost::of(route.bytes.into()),
            OpClass::Null | OpClass::Metadata | OpClass::Commit => Cost::ZERO,
        };
        self.take(conn, call, handle, class, cost, once);
    }

    fn nfsacl(&mut self, conn: &mut Conn, call: Call) {
        let wire = match acl::handle(call.procedure, &call.args) {
            Ok(Some(wire)) => wire,
            Ok(None) => {
                let reply = acl::null(&call, self.buffers.reply(64));
                return conn.queue(reply);
            }
            Err(_) => return self.refuse(conn, &call, AcceptError::GarbageArgs),
        };
        let Ok(handle) = self.engine.keys.open(wire) else {
            return self.fail(conn, &call, Status::BADHANDLE);
        };
        let once = acl::once(call.procedure);
        self.take(conn, call, handle, OpClass::Metadata, Cost::ZERO, once);
    }

    /// Takes up a call on the object that `handle` names, if the caller has any rights there.
    fn take(
        &mut self,
        conn: &mut Conn,
        call: Call,
        handle: FileHandle,
        class: OpClass,
        cost: Cost,
        once: bool,
    ) {
        let Some(mounted) = self.view.load().by_id(handle.volume) else {
            return self.fail(conn, &call, Status::STALE);
        };
        let mut call = call;
        let mut lookup: Option<(LookUp, ExportRule)> = None;
        if let Some(groups) = &self.engine.groups
            && let Some((uid, rule)) = mounted.managed(conn.peer, &call.credential)
        {
            match groups.known(uid, self.now) {
                Some(groups) => set_groups(&mut call.credential, groups),
                None => lookup = Some((groups.look_up(uid), rule.clone())),
            }
        }
        let Some(rights) = mounted.rights(conn.peer, &call.credential) else {
            return self.deny(conn, &call);
        };
        let volume = Arc::clone(&mounted.volume);
        let counts = class == OpClass::Metadata && volume.gate.counts_metadata();
        let cost = if counts { Cost::of(0) } else { cost };
        let claim = match self.recognize(conn, &call, class, once) {
            Recognized::New(claim) => claim,
            Recognized::Repeated => return,
        };
        let request = Request {
            connection: self.id_of(conn),
            client: conn.client,
            volume,
            rights,
            handle,
            call,
            class,
            cost,
            file: None,
            arrived: self.batch,
            passed: self.now,
            claim,
        };
        match lookup {
            None => self.admit(conn, request),
            Some((lookup, rule)) => self.look_up(conn, lookup, rule, request),
        }
    }

    /// Has the caller's groups looked up before the request is admitted, so that it isn't charged
    /// for before it can be carried out.
    fn look_up(&mut self, conn: &mut Conn, lookup: LookUp, rule: ExportRule, request: Request) {
        conn.in_flight += 1;
        let asking = Asking { request, rule, _counted: LookingUp::new(&conn.holder) };
        if let Some((groups, asking)) = self.lookups.start(Box::pin(lookup), asking, |_| {}) {
            self.looked_up(conn, groups, asking);
        }
    }

    /// Admits a request whose caller's groups are known now. If they can't be had, the client is to
    /// try again later.
    pub(super) fn looked_up(&mut self, conn: &mut Conn, groups: FsResult<Groups>, asking: Asking) {
        conn.in_flight -= 1;
        self.mark(conn);
        let Asking { mut request, rule, .. } = asking;
        let status = match groups {
            Ok(groups) => {
                set_groups(&mut request.call.credential, groups);
                match engine::rights(&rule, &request.call.credential) {
                    Some(rights) => return self.admit(conn, Request { rights, ..request }),
                    None => Status::ACCES,
                }
            }
            Err(error) => error.into(),
        };
        let mut claim = request.claim.take();
        if claim.as_mut().is_some_and(|claim| !claim.begin()) {
            // Another connection of the client sent it too, and its turn came first.
            return;
        }
        let reply = refuse(&request.call, status, self.buffers.reply(256));
        if let Some(claim) = claim {
            self.answer_others((request.volume.id, request.connection), claim, &reply);
        }
        conn.queue(reply);
    }

    /// Finds out whether `call` is one that came before and needs no second carrying out, and
    /// answers it if that can be done now.
    fn recognize(
        &mut self,
        conn: &mut Conn,
        call: &Call,
        class: OpClass,
        once: bool,
    ) -> Recognized {
        let asker = self.id_of(conn);
        if once {
            let (key, buffers) = (conn.caller.prints().of(call), &mut self.buffers);
            let copy = |reply: &[u8]| {
                let mut buffer = buffers.reply(reply.len());
                buffer.extend_from_slice(reply);
                buffer
            };
            match conn.caller.arrive(key, asker, self.now, copy) {
                Came::New(claim) => return Recognized::New(Some(claim)),
                Came::Apart => return Recognized::New(None),
                Came::Underway => self.engine.counters.repetition_dropped(),
                Came::Answered(reply) => {
                    self.engine.counters.repetition_answered();
                    conn.queue(reply);
                }
            }
            return Recognized::Repeated;
        }
        if class != OpClass::Write || !conn.caller.has_data_underway() {
            return Recognized::New(None);
        }
        let key = conn.caller.prints().of_data(call);
        match conn.caller.meet(key, asker) {
            Some(claim) => Recognized::New(claim),
            None => {
                self.engine.counters.repetition_dropped();
                Recognized::Repeated
            }
        }
    }

    fn fail(&mut self, conn: &mut Conn, call: &Call, status: Status) {
        let reply = refuse(call, status, self.buffers.reply(256));
        conn.queue(reply);
    }

    /// No rule of the volume lets this caller in. A flavor we don't speak is told so, since a
    /// client then tries another; an address without a rule gets NFS3ERR_ACCES.
    fn deny(&mut self, conn: &mut Conn, call: &Call) {
        if !matches!(call.credential, rpc::Credential::Other(_)) {
            return self.fail(conn, call, Status::ACCES);
        }
        let reason = RejectReason::AuthError(AuthStat::TOOWEAK);
        let rejection = Rejection { xid: call.xid, reason };
        let reply = rpc::reply::reject(self.buffers.reply(64), &rejection);
        conn.queue(reply);
    }
}

/// The relation of a call to those before it.
enum Recognized {
    /// The call is to be carried out.
    New(Option<Claim>),
    /// The call came before: nothing is left to do.
    Repeated,
}

/// NFSACL has the version of the NFS it goes with.
const NFS_MISMATCH: AcceptError =
    AcceptError::ProgramMismatch { low: v3::VERSION, high: v3::VERSION };
const _: () = assert!(acl::VERSION == v3::VERSION);
