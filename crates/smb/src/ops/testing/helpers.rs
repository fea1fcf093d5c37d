//! Helpers of the tests in this crate: files made as NFS makes them, opens without CREATE, and
//! requests of one command.

use super::*;
use crate::open::FileMode;
use crate::utf16::to_utf16;
use crate::wire::{Command, CreateOptions, TreeOrAsync};
use weir_core::store::{CreateHow, MakeKind, Stability};
use weir_core::testing::block_on;
use weir_core::{Attr, Name, SetAttr, Store as _};
use weir_state::Sharing;

impl TestServer {
    /// The directory of `path` (names with `/` between them), and the name in it.
    fn place<'p>(&self, path: &'p str) -> (MemObject, Name<'p>) {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        (self.object(dir).0, Name::new(name.as_bytes()).unwrap())
    }

    /// The object at `path` and its attributes, without following links.
    pub(crate) fn object(&self, path: &str) -> (MemObject, Attr) {
        self.find(path).unwrap_or_else(|| panic!("{path} is not there"))
    }

    /// The object at `path`, if it is there.
    pub(crate) fn find(&self, path: &str) -> Option<(MemObject, Attr)> {
        let mut object = self.store.root();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let name = Name::new(name.as_bytes()).unwrap();
            (object, _) = block_on(self.store.lookup(&object, name)).ok()?;
        }
        let attr = block_on(self.store.attr(&object)).ok()?;
        Some((object, attr))
    }

    /// Makes a file of `uid`, as NFS does it.
    pub(crate) fn file(&self, path: &str, data: &[u8], mode: u32, uid: u32) -> MemObject {
        let (dir, name) = self.place(path);
        let owner = (Some(uid), Some(uid));
        let set = SetAttr { mode: Some(mode), uid: owner.0, gid: owner.1, ..SetAttr::default() };
        let how = CreateHow::Guarded(set);
        let made = block_on(self.store.create(&dir, name, &how, &Credentials::ROOT)).unwrap();
        self.write(&made.object, data);
        made.object
    }

    /// Makes a directory of `uid`, as NFS does it.
    pub(crate) fn dir(&self, path: &str, mode: u32, uid: u32) -> MemObject {
        self.make(path, &MakeKind::Directory, mode, uid)
    }

    /// Makes a symbolic link, as NFS does it.
    pub(crate) fn symlink(&self, path: &str, target: &str) -> MemObject {
        self.make(path, &MakeKind::Symlink(target.as_bytes().to_vec()), 0o777, 0)
    }

    /// Makes an object of `uid`, as NFS does it.
    pub(crate) fn make(&self, path: &str, kind: &MakeKind, mode: u32, uid: u32) -> MemObject {
        let (dir, name) = self.place(path);
        let owner = (Some(uid), Some(uid));
        let set = SetAttr { mode: Some(mode), uid: owner.0, gid: owner.1, ..SetAttr::default() };
        block_on(self.store.make(&dir, name, kind, &set, &Credentials::ROOT)).unwrap().object
    }

    /// Removes a file, as NFS does it.
    pub(crate) fn remove(&self, path: &str) {
        let (dir, name) = self.place(path);
        block_on(self.store.remove(&dir, name, &Credentials::ROOT)).unwrap();
    }

    /// Renames, as NFS does it.
    pub(crate) fn rename(&self, from: &str, to: &str) {
        let (from, to) = (self.place(from), self.place(to));
        let cred = Credentials::ROOT;
        block_on(self.store.rename(&from.0, from.1, &to.0, to.1, &cred)).unwrap();
    }

    /// Writes to the front of a file, as NFS does it.
    pub(crate) fn write(&self, file: &MemObject, data: &[u8]) {
        let data = Shared::from(data.to_vec());
        block_on(self.store.write(file, 0, data, Stability::Unstable)).unwrap();
    }

    /// The whole content of a file.
    pub(crate) fn content(&self, path: &str) -> Vec<u8> {
        let (file, _) = self.object(path);
        block_on(self.store.read(&file, 0, u32::MAX, Vec::new())).unwrap().out
    }

    /// The number of opens that renames reach.
    pub(crate) fn kept(&self) -> usize {
        self.kept.borrow().len()
    }

    /// The number of opens of the object at `path`.
    pub(crate) fn opens_on(&self, path: &str) -> usize {
        let object = self.store.key(&self.object(path).0);
        self.tables.borrow().opens_on(&File { volume: VOLUME, object })
    }
}

impl Reply {
    /// The response, which must not be a failure.
    #[track_caller]
    pub(crate) fn ok(&self) -> &[u8] {
        assert!(self.outcome.is_ok(), "{:?}", self.outcome);
        &self.message
    }
}

/// A header with this command and status.
pub(crate) fn header(command: Command, status: Status) -> Header {
    Header {
        credit_charge: 1,
        status,
        command: Ok(command),
        credits: 1,
        flags: HeaderFlags::empty(),
        next_command: 0,
        message_id: 1,
        tree: TreeOrAsync::Tree(1),
        session_id: 1,
        signature: [0; 16],
    }
}

/// A path with `/` between its names as it is on the wire.
pub(crate) fn wire_path(path: &str) -> Vec<u8> {
    to_utf16(&path.replace('/', "\\"))
}

impl TestHost {
    /// Begins a request: `encode` appends its body, `operation` carries it out.
    pub(crate) fn start(
        &self,
        command: Command,
        encode: impl FnOnce(&mut Vec<u8>),
        operation: impl AsyncFnOnce(&Context<'_, Self>, &mut Vec<u8>) -> Outcome + 'static,
    ) -> Running {
        let header = header(command, Status::SUCCESS);
        let mut message = Vec::new();
        header.encode(&mut message);
        encode(&mut message);
        self.send(message, None, operation).unwrap()
    }

    /// Carries a request out, which must not wait.
    #[track_caller]
    pub(crate) fn call(
        &self,
        command: Command,
        encode: impl FnOnce(&mut Vec<u8>),
        operation: impl AsyncFnOnce(&Context<'_, Self>, &mut Vec<u8>) -> Outcome + 'static,
    ) -> Reply {
        self.start(command, encode, operation).poll().expect("the request waits")
    }

    /// Opens the object at `path` with `granted` and everything shared, without CREATE.
    #[track_caller]
    pub(crate) fn open(&self, path: &str, granted: AccessMask) -> FileId {
        self.open_as(path, granted, Sharing::all(), CreateOptions::empty())
    }

    /// Opens the object at `path` without CREATE.
    #[track_caller]
    pub(crate) fn open_as(
        &self,
        path: &str,
        granted: AccessMask,
        share: Sharing,
        options: CreateOptions,
    ) -> FileId {
        let (object, attr) = self.server.object(path);
        let key = self.server.store.key(&object);
        let mut access = Sharing::empty();
        let read = AccessMask::READ_DATA | AccessMask::EXECUTE;
        let write = AccessMask::WRITE_DATA | AccessMask::APPEND_DATA;
        access.set(Sharing::READ, granted.intersects(read));
        access.set(Sharing::WRITE, granted.intersects(write));
        access.set(Sharing::DELETE, granted.contains(AccessMask::DELETE));
        let mode = OpenMode { access, share };
        let shared = block_on(self.reserve(&key, mode)).unwrap();
        let place = (!path.is_empty()).then(|| {
            let (dir, name) = self.server.place(path);
            Place { dir, name: name.as_bytes().into() }
        });
        let (id, kind, tree) = (FileId::default(), attr.kind, self.tree());
        let mode = FileMode::of(options);
        let open = Open { id, tree, object, key, kind, granted, options, mode, shared };
        let state = OpenState::new(place, path.as_bytes().into());
        self.keep(open, state).unwrap().id
    }

    /// An open of the session.
    #[track_caller]
    pub(crate) fn opened(&self, id: FileId) -> TestOpen {
        self.find(id).expect("an open of the session")
    }
}

#[test]
fn sessions_share_files_and_tables_but_not_opens() {
    let server = TestServer::new();
    server.file("a", b"data", 0o644, 7);
    let (ann, bob) = (server.session(7), server.session(8));
    let id = ann.open("a", AccessMask::READ_DATA);
    assert!(ann.find(id).is_some() && bob.find(id).is_none());
    assert_eq!((server.opens_on("a"), server.content("a")), (1, b"data".to_vec()));
    let open = ann.take(id).unwrap();
    block_on(ann.close(open.shared));
    assert_eq!(server.opens(), 0);
}
