//! NFSv3 over TCP to a server with its own volume.

mod calls;
mod connection;
mod lists;
mod server;

use crate::answer::{Answer, Body, Seen};
use crate::cursor::Cursor;
use crate::slots::Slots;
use crate::step::{Again, At, Op, Step, callers};
use connection::Connection;
pub(crate) use server::Host;
use std::fmt::Debug;
use weir_nfs::client::{Caller, Mnt, RemoteCall, Reply};
use weir_nfs::mount::wire::MntRes;
use weir_nfs::v3::wire::{DirOpArgs3, Fattr3, FileHandle3, NewObject, Res, WccData};

/// A client of a server, with two connections while the server runs.
pub(crate) struct Wire {
    pub(crate) host: Host,
    connections: Vec<Connection>,
    callers: Vec<Caller>,
    xid: u32,
    slots: Slots<Vec<u8>>,
    cursor: Option<Cursor<Vec<u8>>>,
    /// Of the last WRITE or COMMIT in this life of the server.
    verifier: Option<[u8; 8]>,
    complaints: Vec<String>,
    /// The number of the caller, and whether the call is sent once more.
    by: usize,
    again: Again,
}

impl Wire {
    pub(crate) fn new(host: Host) -> Self {
        let mut connections = vec![host.connect(), host.connect()];
        let callers: Vec<Caller> =
            callers().iter().map(|cred| Caller::sys(cred, b"model")).collect();
        let root = mount(&mut connections[0], &callers[0]);
        Self {
            host,
            connections,
            callers,
            xid: 1,
            slots: Slots::new(&root),
            cursor: None,
            verifier: None,
            complaints: Vec::new(),
            by: 0,
            again: Again::No,
        }
    }

    pub(crate) fn play(&mut self, step: &Step) -> Answer {
        (self.by, self.again) = (step.by, step.again);
        if let Some(cursor) = &mut self.cursor {
            cursor.touch(&step.op);
        }
        let mut answer = match &step.op {
            Op::Restart => self.restart(),
            Op::List { dir, with, bytes } => self.list(*dir, *with, *bytes),
            Op::Page { begin } => {
                self.page(*begin);
                Answer::ok(vec![], Body::Nothing)
            }
            Op::Getacl { object } => self.get_acl(*object),
            Op::Setacl { object, access, default } => self.set_acl(*object, *access, *default),
            _ => self.play_call(step),
        };
        answer.complaints.append(&mut self.complaints);
        answer
    }

    fn restart(&mut self) -> Answer {
        self.stop();
        self.host.restart();
        self.connections = vec![self.host.connect(), self.host.connect()];
        self.verifier = None;
        Answer::ok(vec![], Body::Nothing)
    }

    /// Stops the server, which would wait for its clients to close their connections.
    pub(crate) fn stop(&mut self) {
        self.connections.clear();
        self.host.stop();
    }

    /// Makes a call and returns the record that answers it.
    fn call<A: RemoteCall>(&mut self, args: &A) -> Vec<u8> {
        self.xid += 1;
        let mut bytes = Vec::new();
        self.callers[self.by].call(&mut bytes, self.xid, args);
        let record = self.connections[0].exchange(&bytes);
        let number = match self.again {
            Again::No => return record,
            Again::SameConnection => 0,
            Again::OtherConnection => 1,
        };
        let second = self.connections[number].exchange(&bytes);
        if second != record {
            self.complain(format!("sent again, it got another answer: {record:x?}, {second:x?}"));
        }
        record
    }

    /// The results in a record.
    fn results<'r, A: RemoteCall>(&mut self, record: &'r [u8]) -> A::Results<'r> {
        let reply = Reply::parse(record).unwrap();
        assert_eq!(reply.xid, self.xid);
        reply.results::<A>().unwrap()
    }

    fn complain(&mut self, what: String) {
        self.complaints.push(what);
    }

    fn handle(&self, slot: usize) -> Vec<u8> {
        self.slots.get(slot).clone()
    }

    /// Keeps an object that was found or made.
    fn keep(
        &mut self,
        into: usize,
        handle: Option<FileHandle3<'_>>,
        attr: Option<&Fattr3>,
    ) -> Body {
        let (Some(handle), Some(attr)) = (handle, attr) else {
            self.complain("no handle or attributes of an object".to_owned());
            return Body::Nothing;
        };
        let kind = Seen::of_wire(attr).kind;
        Body::Object(self.slots.fill(into, &handle.0.to_vec(), kind))
    }

    /// The answer to CREATE, MKDIR, SYMLINK and MKNOD.
    fn made(&mut self, into: usize, result: Res<NewObject<'_>, WccData>) -> Answer {
        match result {
            Res::Ok(made) => {
                let body = self.keep(into, made.object, made.attributes.as_ref());
                let told = vec![seen(made.attributes), self.after(&made.dir_wcc)];
                Answer::ok(told, body)
            }
            Res::Fail(status, wcc) => Answer::failed(status, vec![self.after(&wcc)]),
        }
    }

    /// The attributes after a change, which must not be older than those before.
    fn after(&mut self, wcc: &WccData) -> Option<Seen> {
        if let (Some(before), Some(after)) = (&wcc.before, &wcc.after) {
            let time = |time: weir_nfs::v3::wire::NfsTime3| (time.seconds, time.nseconds);
            if time(before.ctime) > time(after.ctime) {
                self.complain(format!("ctime went back: {before:?}, {after:?}"));
            }
        }
        seen(wcc.after)
    }

    /// The write verifier is the same in all answers of one life of the server.
    fn verify(&mut self, verifier: [u8; 8]) {
        let first = *self.verifier.get_or_insert(verifier);
        if first != verifier {
            self.complain(format!("the verifier was {first:x?} and is {verifier:x?}"));
        }
    }
}

fn mount(connection: &mut Connection, caller: &Caller) -> Vec<u8> {
    let mut bytes = Vec::new();
    caller.call(&mut bytes, 1, &Mnt(server::EXPORT.as_bytes()));
    let record = connection.exchange(&bytes);
    match Reply::parse(&record).unwrap().results::<Mnt<'_>>().unwrap() {
        MntRes::Ok(granted) => granted.handle.0.to_vec(),
        MntRes::Fail(status) => panic!("{status:?}"),
    }
}

fn seen(attr: Option<Fattr3>) -> Option<Seen> {
    attr.as_ref().map(Seen::of_wire)
}

/// The size before a change, of what has a size that is compared.
fn size_before(wcc: &WccData) -> Option<u64> {
    let sized = wcc.after.as_ref().is_some_and(|attr| Seen::of_wire(attr).size.is_some());
    wcc.before.as_ref().map(|before| before.size).filter(|_| sized)
}

fn location<'a>(dir: &'a [u8], at: &'a At) -> DirOpArgs3<'a> {
    DirOpArgs3 { dir: FileHandle3(dir), name: &at.name.0 }
}

/// An answer from a result whose failure has attributes.
fn answer<O: Debug>(
    result: Res<O, Option<Fattr3>>,
    ok: impl FnOnce(O) -> (Vec<Option<Seen>>, Body),
) -> Answer {
    match result {
        Res::Ok(done) => {
            let (told, body) = ok(done);
            Answer::ok(told, body)
        }
        Res::Fail(status, attributes) => Answer::failed(status, vec![seen(attributes)]),
    }
}
