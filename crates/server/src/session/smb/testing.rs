//! A server, and clients of SMB that log in to it over sockets, for tests of the session layer.
//! Requests are built by a client's encoders, sent in frames of one or more, and their responses
//! read back.

use super::super::Protocol;
use crate::Server;
use crate::admission::Decision;
use crate::engine::ServedVolume;
use crate::sync::Arc;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::time::Duration;
use weir_catalog::{
    Catalog, Mode, NewPool, NewUser, NewVolume, PoolChange, Protocols, SharingChange, VolumeChange,
};
use weir_control::ServerConfig;
use weir_control::config::SmbSigning;
use weir_core::testing::block_on;
use weir_core::{Credentials, SetAttr, Store};
use weir_crypto::Provider;
use weir_smb::auth::{Account, Initiator, nt_hash};
use weir_smb::crypto::{
    Cipher, Derivation, Preauth, Role, SealKeys, SigningAlgorithm, SigningKey, TRANSFORM_BYTES,
    Transform,
};
use weir_smb::fscc::{SetInfo, Target};
use weir_smb::utf16::to_utf16;
use weir_smb::wire::{
    AccessMask, Capabilities, Chain, ChainWriter, Channel, CloseFlags, CloseRequest, Command,
    ControlCode, CreateContexts, CreateDisposition, CreateOptions, CreateRequest, CreateResponse,
    Dialect, Empty, FileAttributes, FileId, Header, HeaderFlags, ImpersonationLevel, InfoType,
    IoctlFlags, IoctlRequest, LockFlags, LockRange, LockRequest, NegotiateContext,
    NegotiateContexts, NegotiateRequest, Numbers, OplockLevel, Payload, QueryInfoFlags,
    QueryInfoRequest, ReadFlags, ReadRequest, SecurityInformation, SecurityMode, SessionSetupFlags,
    SessionSetupRequest, SessionSetupResponse, SetInfoRequest, ShareAccess, Status,
    TreeConnectFlags, TreeConnectRequest, TreeOrAsync, WriteFlags, WriteRequest,
};
use weir_state::Use;

const TIB: u64 = 1 << 40;
/// The quota of the volume `tiny`, from which its contract follows.
const TINY_BYTES: u64 = 1 << 20;
const USER: &str = "ann";
const PASSWORD: &str = "secret of ann";

/// Credits that each request asks for.
const CREDITS: u16 = 64;

/// The cipher that clients offer.
const CIPHER: Cipher = Cipher::Aes128Gcm;

/// A server with the shares `tiny`, whose contract is spent by one request, and `open`, whose
/// contract never binds, and one user.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    _directory: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(settings: impl FnOnce(&mut ServerConfig)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = ServerConfig {
            data: directory.path().to_owned(),
            nfs: vec!["127.0.0.1:0".parse().unwrap()],
            smb: vec!["127.0.0.1:0".parse().unwrap()],
            smb_signing: SmbSigning::Offered,
            api: vec![],
            grace_period: Duration::ZERO,
            ..ServerConfig::default()
        };
        settings(&mut config);
        {
            let catalog = Catalog::open_with(directory.path(), config.minimums()).unwrap();
            let (name, level) = ("pool".to_owned(), "standard".to_owned());
            let pool = NewPool { name, level, size_bytes: 1000 * TIB, ..NewPool::default() };
            catalog.create_pool(&pool, Mode::Commit).unwrap();
            for (name, quota_bytes) in [("tiny", TINY_BYTES), ("open", 900 * TIB)] {
                catalog.create_volume(&new_volume(name, quota_bytes), Mode::Commit).unwrap();
            }
            let (name, groups) = (USER.to_owned(), Vec::new());
            let user = NewUser { name, uid: 1000, gid: None, groups, enabled: true };
            catalog.create_user(&user, Mode::Commit).unwrap();
            let hash = nt_hash(&Provider, PASSWORD).0;
            catalog.set_password(USER, &hash, Mode::Commit).unwrap();
        }
        let fixture = Self { server: Server::start(&config).unwrap(), _directory: directory };
        ["tiny", "open"].into_iter().for_each(|volume| fixture.open_to_all(volume));
        fixture
    }

    /// Makes a volume whose contract never binds.
    pub(crate) fn create(&self, name: &str) {
        let catalog = self.server.catalog();
        catalog.create_volume(&new_volume(name, TIB), Mode::Commit).unwrap();
        self.server.plane().apply(catalog.snapshot()).unwrap();
        self.open_to_all(name);
    }

    fn open_to_all(&self, volume: &str) {
        let volume = self.volume(volume);
        let (store, set) = (&volume.store, SetAttr { mode: Some(0o777), ..SetAttr::default() });
        block_on(store.set_attr(&store.root(), &set, None, &Credentials::ROOT)).unwrap();
    }

    /// Waits until no connection is left, and nothing that clients had opened or locked.
    pub(crate) fn until_nobody_is_left(&self) {
        let engine = self.server.engine();
        while engine.admission.connections() > 0 || engine.locks.tables().used() != Use::default() {
            std::thread::yield_now();
        }
    }

    /// A volume as it is served.
    pub(crate) fn volume(&self, name: &str) -> Arc<ServedVolume> {
        let mut view = self.server.engine().view();
        Arc::clone(&view.load().by_name(name).unwrap().volume)
    }

    /// A connection without a session.
    pub(crate) fn connect(&self) -> Client {
        self.connect_from(1)
    }

    /// A connection without a session, which seems to come from the address `127.0.0.last`.
    pub(crate) fn connect_from(&self, last: u8) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (served, mut peer) = listener.accept().unwrap();
        peer.set_ip([127, 0, 0, last].into());
        served.set_nonblocking(true).unwrap();
        let engine = self.server.engine();
        match engine.admission.enter(peer.ip()) {
            Decision::Accept => {}
            Decision::AcceptAndEvict(eviction) => engine.evict(&eviction),
            Decision::RejectOrigin | Decision::Reject => panic!("the connection is refused"),
        }
        engine.adopt(served, peer, Protocol::Smb);
        Client::over(socket)
    }

    /// A connection with a session, connected to the share.
    pub(crate) fn log_in(&self, share: &str) -> Client {
        let mut client = self.connect();
        client.log_in();
        client.tree(share);
        client
    }

    /// Waits until so many requests wait at the gate of `volume`.
    pub(crate) fn until_waiting(&self, volume: &str, requests: u64) {
        while self.live(volume).waiting != requests {
            std::thread::yield_now();
        }
    }

    pub(crate) fn live(&self, volume: &str) -> weir_control::plane::VolumeLive {
        let id = self.server.catalog().snapshot().volume_named(volume).unwrap().id;
        self.server.plane().volume_live(id).unwrap()
    }

    /// Changes a volume.
    pub(crate) fn change(&self, volume: &str, change: &VolumeChange) {
        let catalog = self.server.catalog();
        catalog.change_volume(volume, change, Some(0), Mode::Commit).unwrap();
        self.server.plane().apply(catalog.snapshot()).unwrap();
    }

    /// Changes the pool of the volumes.
    pub(crate) fn change_pool(&self, change: &PoolChange) {
        let catalog = self.server.catalog();
        catalog.change_pool("pool", change, Mode::Commit).unwrap();
        self.server.plane().apply(catalog.snapshot()).unwrap();
    }

    /// Gives the volume `tiny` a contract that lets everything through.
    pub(crate) fn lift(&self) {
        self.set_quota("tiny", 90 * TIB);
    }

    /// Gives the volume `tiny` its own contract again.
    pub(crate) fn tighten(&self) {
        self.set_quota("tiny", TINY_BYTES);
    }

    fn set_quota(&self, volume: &str, bytes: u64) {
        let change = VolumeChange { quota_bytes: Some(bytes), ..VolumeChange::default() };
        self.change(volume, &change);
    }
}

fn new_volume(name: &str, quota_bytes: u64) -> NewVolume {
    let protocols = Protocols::new(true, true);
    let sharing = SharingChange { protocols, ..SharingChange::default() };
    let (name, pool) = (name.to_owned(), "pool".to_owned());
    NewVolume { name, pool, quota_bytes, sharing, ..NewVolume::default() }
}

/// A request: its command, and its body.
pub(crate) struct Ask {
    pub(crate) command: Command,
    pub(crate) body: Vec<u8>,
    /// Takes session, tree connect and open over from the request before it in its frame.
    pub(crate) related: bool,
    pub(crate) charge: u16,
}

impl Ask {
    pub(crate) fn new(command: Command, encode: impl FnOnce(&mut Vec<u8>)) -> Self {
        // Offsets in a body are counted from its header.
        let mut body = Vec::new();
        encode(&mut body);
        Self { command, body, related: false, charge: 1 }
    }

    pub(crate) fn related(self) -> Self {
        Self { related: true, ..self }
    }

    pub(crate) fn charge(self, charge: u16) -> Self {
        Self { charge, ..self }
    }

    /// NEGOTIATE of the dialect 3.1.1.
    pub(crate) fn negotiate() -> Self {
        let (hash, dialect) = (1u16.to_le_bytes(), Dialect::SMB_3_1_1.0.to_le_bytes());
        let hashes = Numbers::new(&hash);
        let cipher = (CIPHER as u16).to_le_bytes();
        let mut buffer = Vec::new();
        let contexts = [
            NegotiateContext::PreauthIntegrity { hashes, salt: &[7; 32] },
            NegotiateContext::Encryption(Numbers::new(&cipher)),
        ];
        let request = NegotiateRequest {
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::LARGE_MTU,
            client_guid: [9; 16],
            dialects: Numbers::new(&dialect),
            contexts: NegotiateContexts::build(&mut buffer, contexts),
        };
        Self::new(Command::Negotiate, |out| request.encode(out))
    }

    pub(crate) fn log_off() -> Self {
        Self::new(Command::Logoff, |out| Empty.encode(out))
    }

    pub(crate) fn echo() -> Self {
        Self::new(Command::Echo, |out| Empty.encode(out))
    }

    /// Opens a file for all that its user may do, or makes it, and shares it.
    pub(crate) fn open(name: &str) -> Self {
        Self::open_as(name, CreateOptions::NON_DIRECTORY_FILE)
    }

    pub(crate) fn open_as(name: &str, options: CreateOptions) -> Self {
        let name = to_utf16(name);
        let request = CreateRequest {
            oplock: OplockLevel::NONE,
            impersonation: ImpersonationLevel::IMPERSONATION,
            desired_access: AccessMask::FILE_ALL_ACCESS,
            attributes: FileAttributes::NORMAL,
            share_access: ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE,
            disposition: CreateDisposition::OpenIf,
            options,
            name: &name,
            contexts: CreateContexts::default(),
        };
        Self::new(Command::Create, |out| request.encode(out))
    }

    pub(crate) fn close(file: FileId) -> Self {
        let request = CloseRequest { flags: CloseFlags::empty(), file };
        Self::new(Command::Close, |out| request.encode(out))
    }

    pub(crate) fn write(file: FileId, offset: u64, data: &[u8]) -> Self {
        let request = WriteRequest {
            offset,
            file,
            channel: Channel::NONE,
            remaining_bytes: 0,
            flags: WriteFlags::empty(),
            data: Payload { bytes: data, at: 0 },
        };
        let charge = data.len().div_ceil(64 << 10).max(1);
        let ask = Self::new(Command::Write, |out| request.encode(out));
        ask.charge(u16::try_from(charge).unwrap())
    }

    pub(crate) fn read(file: FileId, offset: u64, length: u32) -> Self {
        Self::read_at_least(0, file, offset, length)
    }

    /// A READ that fails if it finds less than `minimum_count` bytes.
    pub(crate) fn read_at_least(
        minimum_count: u32,
        file: FileId,
        offset: u64,
        length: u32,
    ) -> Self {
        let request = ReadRequest {
            flags: ReadFlags::empty(),
            length,
            offset,
            file,
            minimum_count,
            channel: Channel::NONE,
            remaining_bytes: 0,
        };
        let charge = length.div_ceil(64 << 10).max(1);
        let ask = Self::new(Command::Read, |out| request.encode(out));
        ask.charge(u16::try_from(charge).unwrap())
    }

    /// Copies the first `length` bytes of `source` to the front of `target`.
    pub(crate) fn copy(source: FileId, target: FileId, length: u32) -> Self {
        let mut input = Vec::new();
        input.extend_from_slice(&source.persistent.to_le_bytes());
        input.extend_from_slice(&source.volatile.to_le_bytes());
        input.extend_from_slice(&[0; 8]);
        input.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
        input.extend_from_slice(&[0; 16]);
        input.extend_from_slice(&length.to_le_bytes());
        input.extend_from_slice(&[0; 4]);
        let request = IoctlRequest {
            code: ControlCode::SRV_COPYCHUNK_WRITE,
            file: target,
            input: Payload { bytes: &input, at: 0 },
            max_input: 0,
            output_count: 0,
            max_output: 12,
            flags: IoctlFlags::IS_FSCTL,
        };
        Self::new(Command::Ioctl, |out| request.encode(out))
    }

    /// Asks whether the negotiation was changed on its way.
    pub(crate) fn validate() -> Self {
        let request = IoctlRequest {
            code: ControlCode::VALIDATE_NEGOTIATE_INFO,
            file: FileId::PREVIOUS,
            input: Payload { bytes: &[0; 26], at: 0 },
            max_input: 0,
            output_count: 0,
            max_output: 24,
            flags: IoctlFlags::IS_FSCTL,
        };
        Self::new(Command::Ioctl, |out| request.encode(out))
    }

    /// Renames what is open to a name that is free.
    pub(crate) fn rename(file: FileId, to: &str) -> Self {
        let name: Vec<u8> = to.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let info = SetInfo::Rename(Target { replace: false, posix: false, name: &name });
        let mut bytes = Vec::new();
        info.encode(&mut bytes);
        let request = SetInfoRequest {
            info_type: InfoType::FILE,
            class: info.class(),
            info: Payload { bytes: &bytes, at: 0 },
            security: SecurityInformation::empty(),
            file,
        };
        Self::new(Command::SetInfo, |out| request.encode(out))
    }

    /// Asks for the times and attributes of a file.
    pub(crate) fn query(file: FileId) -> Self {
        let request = QueryInfoRequest {
            info_type: InfoType::FILE,
            // FileBasicInformation (MS-FSCC §2.4).
            class: 4,
            max_output: 64,
            security: SecurityInformation::empty(),
            flags: QueryInfoFlags::empty(),
            file,
            input: Payload { bytes: &[], at: 0 },
        };
        Self::new(Command::QueryInfo, |out| request.encode(out))
    }

    pub(crate) fn lock(file: FileId, flags: LockFlags) -> Self {
        Self::lock_bytes(file, 0..1, flags)
    }

    /// Locks or unlocks each of these bytes by itself.
    pub(crate) fn lock_bytes(file: FileId, bytes: Range<u64>, flags: LockFlags) -> Self {
        let range = |offset| LockRange { offset, length: 1, flags };
        let ranges: Vec<_> = bytes.map(range).collect();
        Self::new(Command::Lock, |out| LockRequest::encode(0, file, &ranges, out))
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) header: Header,
    /// The message, from its header on.
    pub(crate) message: Vec<u8>,
    /// Its frame was sealed.
    pub(crate) sealed: bool,
}

impl Received {
    pub(crate) fn status(&self) -> Status {
        self.header.status
    }

    /// The asynchronous id, if the response has that form.
    pub(crate) fn async_id(&self) -> Option<u64> {
        match self.header.tree {
            TreeOrAsync::Async(id) => Some(id),
            TreeOrAsync::Tree(_) => None,
        }
    }

    /// The open that a CREATE made.
    pub(crate) fn file(&self) -> FileId {
        assert_eq!(self.status(), Status::SUCCESS, "of a CREATE");
        CreateResponse::decode(&self.message).unwrap().0.file
    }
}

/// The protection of the requests of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// TREE_CONNECT is signed, as it has to be (MS-SMB2 §3.3.5.7).
    Least,
    /// All are signed.
    Signed,
    /// All are sealed.
    Sealed,
}

/// A client on one connection.
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    next_id: u64,
    session: u64,
    tree: u32,
    /// The messages of NEGOTIATE.
    preauth: Preauth,
    /// The last frame that was sent, without its length.
    sent: Vec<u8>,
    key: Option<SigningKey<Provider>>,
    seal: Option<SealKeys<Provider>>,
    pub(crate) protection: Protection,
}

impl Client {
    /// A client on a connection of which nothing was used yet.
    pub(crate) fn over(socket: TcpStream) -> Self {
        let (preauth, sent) = (Preauth::new(), Vec::new());
        let (next_id, session, tree) = (0, 0, 0);
        let (key, seal, protection) = (None, None, Protection::Least);
        Self { socket, next_id, session, tree, preauth, sent, key, seal, protection }
    }

    /// Sends the requests in one frame. Gives the id of the first message.
    pub(crate) fn send(&mut self, asks: &[Ask]) -> u64 {
        let first = self.next_id;
        let mut frame = vec![0; 4];
        let mut writer = ChainWriter::new(&frame);
        for ask in asks {
            let mut flags = HeaderFlags::empty();
            flags.set(HeaderFlags::RELATED, ask.related);
            flags.set(HeaderFlags::SIGNED, self.signs(ask.command));
            let header = Header {
                credit_charge: ask.charge,
                status: Status::SUCCESS,
                command: Ok(ask.command),
                credits: CREDITS,
                flags,
                next_command: 0,
                message_id: self.next_id,
                tree: TreeOrAsync::Tree(self.tree),
                session_id: self.session,
                signature: [0; 16],
            };
            self.next_id += u64::from(ask.charge);
            writer.begin(&mut frame, &header);
            frame.extend_from_slice(&ask.body);
        }
        writer.finish(&mut frame);
        if let Some(key) = &self.key {
            let places: Vec<_> =
                Chain::decode(&frame[4..]).unwrap().iter().map(|element| element.at).collect();
            for (place, _) in
                places.into_iter().zip(asks).filter(|(_, ask)| self.signs(ask.command))
            {
                key.sign(&mut frame[4..][place]).unwrap();
            }
        }
        self.send_messages(frame.split_off(4));
        first
    }

    fn signs(&self, command: Command) -> bool {
        match self.protection {
            Protection::Least => command == Command::TreeConnect,
            Protection::Signed => true,
            Protection::Sealed => false,
        }
    }

    /// Cancels the request `id`, which is a message id, or an asynchronous id if the request got an
    /// interim response.
    pub(crate) fn cancel(&mut self, id: u64, asynchronous: bool) {
        let (flags, message_id, tree) = match asynchronous {
            true => (HeaderFlags::ASYNC, 0, TreeOrAsync::Async(id)),
            false => (HeaderFlags::empty(), id, TreeOrAsync::Tree(self.tree)),
        };
        let header = Header {
            credit_charge: 0,
            status: Status::SUCCESS,
            command: Ok(Command::Cancel),
            credits: 0,
            flags,
            next_command: 0,
            message_id,
            tree,
            session_id: self.session,
            signature: [0; 16],
        };
        let mut message = header.to_bytes().to_vec();
        Empty.encode(&mut message);
        self.send_messages(message);
    }

    /// Sends messages in one frame, sealed if all of the client's are.
    fn send_messages(&mut self, messages: Vec<u8>) {
        let mut frame = vec![0; 4];
        match (&self.seal, self.protection) {
            (Some(keys), Protection::Sealed) => {
                frame.resize(4 + TRANSFORM_BYTES, 0);
                frame.extend_from_slice(&messages);
                keys.seal(self.session, &mut frame[4..]).unwrap();
            }
            _ => frame.extend_from_slice(&messages),
        }
        let length = u32::try_from(frame.len() - 4).unwrap();
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.socket.write_all(&frame).unwrap();
        self.sent = messages;
    }

    /// The next frame with responses; nothing if the server has closed the connection.
    pub(crate) fn receive_frame(&mut self) -> Option<Vec<Received>> {
        let mut prefix = [0; 4];
        self.socket.read_exact(&mut prefix).ok()?;
        let mut frame = vec![0; usize::try_from(u32::from_be_bytes(prefix)).unwrap()];
        self.socket.read_exact(&mut frame).ok()?;
        let sealed = Transform::parse(&frame).is_ok();
        if sealed {
            frame = self.seal.as_ref().unwrap().open(&mut frame).unwrap().to_vec();
        }
        let chain = Chain::decode(&frame).unwrap();
        let response = |element: weir_smb::wire::Element| {
            let (header, message) = (element.header, frame[element.at].to_vec());
            if header.flags.contains(HeaderFlags::SIGNED) {
                self.key.as_ref().unwrap().verify(&Provider, &message).unwrap();
            }
            Received { header, message, sealed }
        };
        Some(chain.iter().map(response).collect())
    }

    /// The next frame that is no interim response.
    pub(crate) fn receive_final(&mut self) -> Vec<Received> {
        loop {
            let frame = self.receive_frame().expect("the connection is open");
            if frame[0].status() != Status::PENDING {
                return frame;
            }
        }
    }

    /// The next response that is no interim one.
    pub(crate) fn receive(&mut self) -> Received {
        let mut response = self.receive_final();
        assert_eq!(response.len(), 1, "responses in one frame");
        response.remove(0)
    }

    /// Waits until the server has closed the connection.
    pub(crate) fn until_closed(mut self) {
        assert!(self.receive_frame().is_none(), "the connection is closed");
    }

    /// Sends one request, and gives its response.
    pub(crate) fn ask(&mut self, ask: Ask) -> Received {
        self.send(&[ask]);
        self.receive()
    }

    /// Opens a file, or makes it.
    pub(crate) fn open(&mut self, name: &str) -> FileId {
        self.ask(Ask::open(name)).file()
    }

    /// Negotiates, and logs the user in.
    pub(crate) fn log_in(&mut self) {
        let response = self.ask(Ask::negotiate());
        assert_eq!(response.status(), Status::SUCCESS);
        self.preauth.update(&Provider, &self.sent);
        self.preauth.update(&Provider, &response.message);
        self.send_proof(PASSWORD);
        assert_eq!(self.receive().status(), Status::SUCCESS);
    }

    /// Begins a login, and sends its last request with the proof of `password`.
    pub(crate) fn send_proof(&mut self, password: &str) {
        self.session = 0;
        let account = Account {
            user: USER.to_owned(),
            domain: String::new(),
            workstation: "TEST".to_owned(),
        };
        let initiator = Initiator::new(account, nt_hash(&Provider, password), true);
        self.send_token(&initiator.first());
        let mut preauth = self.preauth.clone();
        preauth.update(&Provider, &self.sent);
        let response = self.receive();
        preauth.update(&Provider, &response.message);
        assert_eq!(response.status(), Status::MORE_PROCESSING_REQUIRED);
        self.session = response.header.session_id;
        let challenge = SessionSetupResponse::decode(&response.message).unwrap().token;
        let proven = initiator.prove(&Provider, challenge).unwrap();
        self.send_token(proven.token());
        preauth.update(&Provider, &self.sent);
        let keys = Derivation::new(&Provider, &proven.session_key(), &preauth);
        self.key = Some(keys.signing(SigningAlgorithm::AesCmac, Role::Client));
        self.seal = Some(keys.sealing(CIPHER, Role::Client).unwrap());
    }

    fn send_token(&mut self, token: &[u8]) {
        let request = SessionSetupRequest {
            flags: SessionSetupFlags::empty(),
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::empty(),
            previous_session_id: 0,
            token: Payload { bytes: token, at: 0 },
        };
        self.send(&[Ask::new(Command::SessionSetup, |out| request.encode(out))]);
    }

    /// Connects to a share, which later requests are for.
    pub(crate) fn tree(&mut self, share: &str) {
        let path = format!(r"\\server\{share}");
        let path = to_utf16(&path);
        let request = TreeConnectRequest { flags: TreeConnectFlags::empty(), path: &path };
        let response = self.ask(Ask::new(Command::TreeConnect, |out| request.encode(out)));
        assert_eq!(response.status(), Status::SUCCESS);
        self.tree = response.header.tree_id();
    }
}
