//! From a record to the work it makes: RPC programs, volumes and rights.

use super::super::{Begun, Cx, Job, Preparation, Prepared, ProtocolError};
use super::job::{RpcJob, refuse};
use super::{PeerExports, RpcSession, lock_call, managed, rights, rights_on, set_groups};
use crate::clock::seconds_since_1970;
use crate::limits::LOCK_ARGS_BYTES_MAX;
use crate::op_name::OpName;
use crate::sync::Arc;
use crate::worker::Request;
use weir_catalog::ExportRule;
use weir_core::{FileHandle, OpClass, Shared};
use weir_drc::{DrcEntry, Lookup};
use weir_nfs::nlm::Peer;
use weir_nfs::rpc::{self, AcceptError, AuthStat, Call, Refusal, RejectReason, Rejection};
use weir_nfs::v3::wire::Status;
use weir_nfs::v3::{self, Route};
use weir_nfs::{
    PROGRAM_MOUNT, PROGRAM_NFS, PROGRAM_NFSACL, PROGRAM_NLM, PROGRAM_NSM, PROGRAM_RPCBIND, acl,
    mount,
};
use weir_process::LookUp;

/// A call on an object: the object, and the kind of the call.
#[derive(Clone, Copy)]
struct Routed {
    handle: FileHandle,
    op: OpName,
    class: OpClass,
    /// Bytes that a READ or WRITE can move.
    bytes: u64,
    /// The call must not be executed twice.
    non_idempotent: bool,
}

/// The relation of a call to those before it.
enum Recognized {
    /// The call is to be executed.
    New(Option<DrcEntry>),
    /// The call is a retransmission; its reply is here, or will be sent once it exists.
    Repeated(Option<Vec<u8>>),
}

impl RpcSession {
    /// See [`super::super::Session::begin`].
    // In the loop of its worker, its variables make that of every record slower.
    #[inline(never)]
    pub(in super::super) fn begin(
        &mut self,
        mut cx: Cx<'_>,
        record: Shared,
    ) -> Result<Begun, ProtocolError> {
        let call = match Call::parse_after(record, &mut cx.common.rpc) {
            Ok(call) => call,
            Err(Refusal::Drop) => return Err(ProtocolError::NotACall),
            Err(Refusal::Reply(rejection)) => return Ok(cx.reject(&rejection)),
        };
        match (call.program, call.version) {
            (PROGRAM_NFS, v3::VERSION) => Ok(self.nfs3(cx, call)),
            (PROGRAM_NFSACL, acl::VERSION) => Ok(self.nfsacl(cx, call)),
            (PROGRAM_NFS | PROGRAM_NFSACL, _) => Ok(cx.refuse(&call, NFS_MISMATCH)),
            (PROGRAM_MOUNT, _) => Ok(cx.mount(&call)),
            (PROGRAM_NLM | PROGRAM_NSM, _) => cx.ask_lock_manager(call),
            (PROGRAM_RPCBIND, _) => cx.portmap(&call),
            _ => Ok(cx.refuse(&call, AcceptError::ProgramUnavailable)),
        }
    }

    fn nfs3(&self, mut cx: Cx<'_>, call: Call) -> Begun {
        let Ok(route) = Route::of(call.procedure, &call.args) else {
            return cx.refuse(&call, AcceptError::GarbageArgs);
        };
        let (Some(wire), Some(op)) = (route.handle, OpName::nfs3(call.procedure)) else {
            return Begun::Reply(v3::null(&call, cx.buffers.reply(64)));
        };
        let Ok(handle) = cx.engine.keys.open(wire) else {
            return cx.fail(&call, Status::BADHANDLE);
        };
        let (class, bytes) = (route.class, route.bytes.into());
        let non_idempotent = route.non_idempotent;
        self.take(cx, call, Routed { handle, op, class, bytes, non_idempotent })
    }

    fn nfsacl(&self, mut cx: Cx<'_>, call: Call) -> Begun {
        let Ok(handle) = acl::handle(call.procedure, &call.args) else {
            return cx.refuse(&call, AcceptError::GarbageArgs);
        };
        let (Some(wire), Some(op)) = (handle, OpName::nfsacl(call.procedure)) else {
            return Begun::Reply(acl::null(&call, cx.buffers.reply(64)));
        };
        let Ok(handle) = cx.engine.keys.open(wire) else {
            return cx.fail(&call, Status::BADHANDLE);
        };
        let (class, bytes) = (OpClass::Metadata, 0);
        let non_idempotent = acl::non_idempotent(call.procedure);
        self.take(cx, call, Routed { handle, op, class, bytes, non_idempotent })
    }

    /// Takes up a call on an object, if the caller has any rights there.
    fn take(&self, mut cx: Cx<'_>, mut call: Call, routed: Routed) -> Begun {
        let Routed { handle, op, class, bytes, non_idempotent } = routed;
        let volumes = cx.view.load();
        let Some(served) = volumes.by_id(handle.volume) else {
            // The client sends it again, to the server that has the volume's address by then.
            if volumes.is_elsewhere(handle.volume) {
                return Begun::Nothing;
            }
            return cx.fail(&call, Status::STALE);
        };
        let mut lookup: Option<(LookUp, ExportRule)> = None;
        if let Some(groups) = &cx.engine.groups
            && let Some((uid, rule)) = managed(&served.config, cx.peer, &call.credential)
        {
            match groups.known(uid, cx.now) {
                Some(groups) => set_groups(&mut call.credential, groups),
                None => lookup = Some((groups.look_up(uid), rule.clone())),
            }
        }
        let Some(rights) = rights_on(&served.config, cx.peer, &call.credential) else {
            return cx.deny(&call);
        };
        let (volume, nfs) = (Arc::clone(&served.volume), Arc::clone(&served.nfs));
        let cost = volume.gate.cost(class, bytes);
        let entry = match self.recognize(&mut cx, &call, class, non_idempotent) {
            Recognized::New(entry) => entry,
            Recognized::Repeated(reply) => return reply.map_or(Begun::Nothing, Begun::Reply),
        };
        let fingerprints = self.drc.fingerprints();
        let job = Box::new(RpcJob { nfs, rights, handle, call, entry, fingerprints });
        let (connection, client, arrived) = (cx.connection, self.client, cx.arrived);
        let request = move |job| Request {
            connection,
            client,
            volume,
            op,
            class,
            cost,
            arrived,
            job: Job::Rpc(job),
        };
        match lookup {
            None => Begun::Request(request(job)),
            Some((lookup, rule)) => Begun::Prepare(with_groups(lookup, rule, job, request)),
        }
    }

    /// Looks `call` up in the duplicate request cache.
    fn recognize(
        &self,
        cx: &mut Cx<'_>,
        call: &Call,
        class: OpClass,
        non_idempotent: bool,
    ) -> Recognized {
        let (waiter, drc) = (cx.connection, &self.drc);
        if non_idempotent {
            let (key, buffers) = (drc.fingerprints().of(call), &mut cx.buffers);
            let copy = |reply: &[u8]| {
                let mut buffer = buffers.reply(reply.len());
                buffer.extend_from_slice(reply);
                buffer
            };
            return match drc.look_up(key, waiter, cx.now, copy) {
                Lookup::New(entry) => Recognized::New(Some(entry)),
                Lookup::Bypass => Recognized::New(None),
                Lookup::InProgress => {
                    cx.engine.counters.repetition_dropped();
                    Recognized::Repeated(None)
                }
                Lookup::Cached(reply) => {
                    cx.engine.counters.repetition_answered();
                    Recognized::Repeated(Some(reply))
                }
            };
        }
        if class != OpClass::Write || !drc.has_data_underway() {
            return Recognized::New(None);
        }
        if let Some(entry) = drc.meet(drc.fingerprints().of_data(call), waiter) {
            return Recognized::New(entry);
        }
        cx.engine.counters.repetition_dropped();
        Recognized::Repeated(None)
    }
}

impl Cx<'_> {
    fn reject(&mut self, rejection: &Rejection) -> Begun {
        Begun::Reply(rpc::reply::reject(self.buffers.reply(64), rejection))
    }

    fn refuse(&mut self, call: &Call, error: AcceptError) -> Begun {
        Begun::Reply(rpc::reply::error(self.buffers.reply(64), call.xid, error))
    }

    fn fail(&mut self, call: &Call, status: Status) -> Begun {
        Begun::Reply(refuse(call, status, self.buffers.reply(256)))
    }

    /// No rule of the volume lets this caller in. A flavor we don't speak is told so, since a
    /// client then tries another; an address without a rule gets NFS3ERR_ACCES.
    fn deny(&mut self, call: &Call) -> Begun {
        if !matches!(call.credential, rpc::Credential::Other(_)) {
            return self.fail(call, Status::ACCES);
        }
        let reason = RejectReason::AuthError(AuthStat::TOOWEAK);
        self.reject(&Rejection { xid: call.xid, reason })
    }

    fn mount(&mut self, call: &Call) -> Begun {
        let exports = PeerExports::new(self.engine, self.view.load(), self.peer);
        Begun::Reply(mount::serve(call, &exports, self.buffers.reply(256)))
    }

    /// Hands a call to the lock manager.
    fn ask_lock_manager(&mut self, mut call: Call) -> Result<Begun, ProtocolError> {
        let Some(nlm) = self.engine.nlm.as_ref() else {
            return Ok(self.refuse(&call, AcceptError::ProgramUnavailable));
        };
        if call.args.len() > LOCK_ARGS_BYTES_MAX {
            return Ok(self.refuse(&call, AcceptError::GarbageArgs));
        }
        call.args = call.args.detach();
        let local = self.socket.local_addr().map_err(|_| ProtocolError::Disconnected)?;
        let peer = Peer { address: self.peer, local: local.ip().to_canonical() };
        let reply = lock_call(self.engine, nlm, self.view.load(), call, peer);
        let reply = Box::pin(async move { Prepared::Reply(reply.await) });
        Ok(Begun::Await { reply, holds: 0, requests: 1 })
    }

    fn portmap(&mut self, call: &Call) -> Result<Begun, ProtocolError> {
        let from = self.socket.peer_addr().map_err(|_| ProtocolError::Disconnected)?;
        let local = self.socket.local_addr().map_err(|_| ProtocolError::Disconnected)?.ip();
        let (now, room) = (seconds_since_1970(), self.buffers.reply(256));
        Ok(Begun::Reply(self.engine.portmap.serve(call, from, local, true, now, room)))
    }
}

/// Looks the caller's groups up before the request is admitted, so that it isn't charged for before
/// it can be carried out. If they can't be had, the client is to try again later.
fn with_groups(
    lookup: LookUp,
    rule: ExportRule,
    mut job: Box<RpcJob>,
    request: impl FnOnce(Box<RpcJob>) -> Request + 'static,
) -> Preparation {
    Box::pin(async move {
        let status = match lookup.await {
            Ok(groups) => {
                set_groups(&mut job.call.credential, groups);
                match rights(&rule, &job.call.credential) {
                    Some(rights) => {
                        job.rights = rights;
                        return Prepared::Admit(request(job));
                    }
                    None => Status::ACCES,
                }
            }
            Err(error) => error.into(),
        };
        let reply = refuse(&job.call, status, Vec::with_capacity(256));
        Prepared::Refuse(request(job), reply)
    })
}

/// NFSACL has the version of the NFS it goes with.
const NFS_MISMATCH: AcceptError =
    AcceptError::ProgramMismatch { low: v3::VERSION, high: v3::VERSION };
const _: () = assert!(acl::VERSION == v3::VERSION);
