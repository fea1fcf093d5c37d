//! A client of SMB 3.1.1 with one session and one tree connect, which signs all that it sends.

use crate::bed::{SERVER, WAIT};
use std::io::{Read, Write};
use std::net::TcpStream;
use weir_crypto::Provider;
use weir_smb::auth::{Account, Initiator, nt_hash};
use weir_smb::crypto::{Derivation, Preauth, Role, SigningAlgorithm, SigningKey};
use weir_smb::fscc::SetInfo;
use weir_smb::wire::{
    AccessMask, Capabilities, Channel, CloseFlags, CloseRequest, Command, CreateContexts,
    CreateDisposition, CreateOptions, CreateRequest, CreateResponse, Dialect, FileAttributes,
    FileId, HashAlgorithm, Header, HeaderFlags, ImpersonationLevel, InfoType, LockFlags, LockRange,
    LockRequest, NegotiateContext, NegotiateContexts, NegotiateRequest, Numbers, OplockLevel,
    Payload, ReadFlags, ReadRequest, ReadResponse, SecurityInformation, SecurityMode,
    SessionSetupFlags, SessionSetupRequest, SessionSetupResponse, SetInfoRequest, ShareAccess,
    Status, TreeConnectFlags, TreeConnectRequest, TreeOrAsync, WriteFlags, WriteRequest,
};

pub(crate) const USER: &str = "alice";
pub(crate) const PASSWORD: &str = "correct horse battery";
const AES_CMAC: u16 = SigningAlgorithm::AesCmac as u16;

/// A response with an error status.
pub(crate) type Refused = Status;

pub(crate) struct Smb {
    tcp: TcpStream,
    next: u64,
    session: u64,
    tree: u32,
    key: Option<SigningKey<Provider>>,
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn payload(bytes: &[u8]) -> Payload<'_> {
    Payload { bytes, at: 0 }
}

impl Smb {
    /// Logs in and connects to the share.
    pub(crate) fn connect(share: &str) -> Self {
        let tcp = TcpStream::connect((SERVER, 445)).unwrap();
        tcp.set_read_timeout(WAIT).unwrap();
        let mut own = Self { tcp, next: 0, session: 0, tree: 0, key: None };
        let mut preauth = Preauth::new();
        own.negotiate(&mut preauth);
        own.log_in(preauth);
        let path = utf16(&format!(r"\\{SERVER}\{share}"));
        let connect = TreeConnectRequest { flags: TreeConnectFlags::default(), path: &path };
        let sent = own.send(Command::TreeConnect, |out| connect.encode(out));
        let (header, _) = own.receive(sent);
        assert_eq!(header.status, Status::SUCCESS);
        let TreeOrAsync::Tree(tree) = header.tree else { panic!("{header:?}") };
        own.tree = tree;
        own
    }

    fn negotiate(&mut self, preauth: &mut Preauth) {
        let hashes = HashAlgorithm::SHA_512.0.to_le_bytes();
        let (signing, dialects) = (AES_CMAC.to_le_bytes(), Dialect::SMB_3_1_1.0.to_le_bytes());
        let mut buffer = Vec::new();
        let contexts = [
            NegotiateContext::PreauthIntegrity { hashes: Numbers::new(&hashes), salt: &[7; 32] },
            NegotiateContext::Signing(Numbers::new(&signing)),
        ];
        let request = NegotiateRequest {
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::LARGE_MTU,
            client_guid: [9; 16],
            dialects: Numbers::new(&dialects),
            contexts: NegotiateContexts::build(&mut buffer, contexts),
        };
        let (_, sent) = self.send_with(Command::Negotiate, |out| request.encode(out));
        let (header, response) = self.receive_from(0);
        assert_eq!(header.status, Status::SUCCESS);
        preauth.update(&Provider, &sent);
        preauth.update(&Provider, &response);
    }

    fn log_in(&mut self, mut preauth: Preauth) {
        let account = Account {
            user: USER.to_owned(),
            domain: String::new(),
            workstation: "test".to_owned(),
        };
        let client = Initiator::new(account, nt_hash(&Provider, PASSWORD), false);
        let (sent, response) = self.setup(&client.first(), Status::MORE_PROCESSING_REQUIRED);
        preauth.update(&Provider, &sent);
        preauth.update(&Provider, &response);
        let challenge = SessionSetupResponse::decode(&response).unwrap().token;
        let proven = client.prove(&Provider, challenge).unwrap();
        let (sent, response) = self.setup(proven.token(), Status::SUCCESS);
        preauth.update(&Provider, &sent);
        let done = SessionSetupResponse::decode(&response).unwrap();
        proven.finish(&Provider, done.token).unwrap();
        let keys = Derivation::new(&Provider, &proven.session_key(), &preauth);
        let key = keys.signing(SigningAlgorithm::AesCmac, Role::Client);
        key.verify(&Provider, &response).unwrap();
        self.key = Some(key);
    }

    /// One step of the login: the request and the response.
    fn setup(&mut self, token: &[u8], expected: Status) -> (Vec<u8>, Vec<u8>) {
        let request = SessionSetupRequest {
            flags: SessionSetupFlags::default(),
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::default(),
            previous_session_id: 0,
            token: payload(token),
        };
        let (id, sent) = self.send_with(Command::SessionSetup, |out| request.encode(out));
        let (header, response) = self.receive_from(id);
        assert_eq!(header.status, expected);
        self.session = header.session_id;
        (sent, response)
    }

    /// Sends a request and gives its number.
    pub(crate) fn send(&mut self, command: Command, body: impl FnOnce(&mut Vec<u8>)) -> u64 {
        self.send_with(command, body).0
    }

    fn send_with(&mut self, command: Command, body: impl FnOnce(&mut Vec<u8>)) -> (u64, Vec<u8>) {
        let message_id = self.next;
        self.next += 1;
        let header = Header {
            credit_charge: 1,
            status: Status::SUCCESS,
            command: Ok(command),
            credits: 32,
            flags: HeaderFlags::default(),
            next_command: 0,
            message_id,
            tree: TreeOrAsync::Tree(self.tree),
            session_id: self.session,
            signature: [0; 16],
        };
        let mut message = Vec::new();
        header.encode(&mut message);
        body(&mut message);
        if let Some(key) = &self.key {
            key.sign(&mut message).unwrap();
        }
        let prefix = u32::try_from(message.len()).unwrap().to_be_bytes();
        self.tcp.write_all(&[&prefix[..], &message].concat()).unwrap();
        (message_id, message)
    }

    /// The next message.
    fn message(&mut self) -> (Header, Vec<u8>) {
        let mut prefix = [0; 4];
        self.tcp.read_exact(&mut prefix).unwrap();
        let mut message = vec![0; u32::from_be_bytes(prefix) as usize];
        self.tcp.read_exact(&mut message).unwrap();
        (Header::decode(&message).unwrap(), message)
    }

    fn receive_from(&mut self, id: u64) -> (Header, Vec<u8>) {
        let (header, message) = self.message();
        assert_eq!(header.message_id, id);
        (header, message)
    }

    /// Waits until the server says that request `id` waits.
    pub(crate) fn receive_interim(&mut self, id: u64) {
        let (header, _) = self.receive_from(id);
        assert_eq!(header.status, Status::PENDING);
    }

    /// The final response to request `id`, whose signature is verified.
    pub(crate) fn receive(&mut self, id: u64) -> (Header, Vec<u8>) {
        let (mut header, mut message) = self.receive_from(id);
        while header.status == Status::PENDING {
            (header, message) = self.receive_from(id);
        }
        let key = self.key.as_ref().unwrap();
        key.verify(&Provider, &message).unwrap();
        (header, message)
    }

    fn call(
        &mut self,
        command: Command,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Vec<u8>, Refused> {
        let id = self.send(command, body);
        match self.receive(id) {
            (header, message) if header.status == Status::SUCCESS => Ok(message),
            (header, _) => Err(header.status),
        }
    }

    /// Opens a file that is there.
    pub(crate) fn open(
        &mut self,
        name: &str,
        access: AccessMask,
        share_access: ShareAccess,
    ) -> Result<FileId, Refused> {
        let name = utf16(name);
        let request = CreateRequest {
            oplock: OplockLevel::NONE,
            impersonation: ImpersonationLevel::IMPERSONATION,
            desired_access: access,
            attributes: FileAttributes::default(),
            share_access,
            disposition: CreateDisposition::Open,
            options: CreateOptions::default(),
            name: &name,
            contexts: CreateContexts::default(),
        };
        let response = self.call(Command::Create, |out| request.encode(out))?;
        Ok(CreateResponse::decode(&response).unwrap().0.file)
    }

    pub(crate) fn close(&mut self, file: FileId) {
        let request = CloseRequest { flags: CloseFlags::default(), file };
        self.call(Command::Close, |out| request.encode(out)).unwrap();
    }

    pub(crate) fn read(&mut self, file: FileId, offset: u64) -> Result<Vec<u8>, Refused> {
        let request = ReadRequest {
            flags: ReadFlags::default(),
            length: 10,
            offset,
            file,
            minimum_count: 0,
            channel: Channel::NONE,
            remaining_bytes: 0,
        };
        let response = self.call(Command::Read, |out| request.encode(out))?;
        Ok(ReadResponse::decode(&response).unwrap().data.to_vec())
    }

    pub(crate) fn write(&mut self, file: FileId, offset: u64, data: &[u8]) -> Result<(), Refused> {
        let request = WriteRequest {
            offset,
            file,
            channel: Channel::NONE,
            remaining_bytes: 0,
            flags: WriteFlags::default(),
            data: payload(data),
        };
        self.call(Command::Write, |out| request.encode(out)).map(drop)
    }

    pub(crate) fn set_size(&mut self, file: FileId, size: u64) -> Result<(), Refused> {
        let (set, mut info) = (SetInfo::EndOfFile(size), Vec::new());
        set.encode(&mut info);
        let request = SetInfoRequest {
            info_type: InfoType::FILE,
            class: set.class(),
            info: payload(&info),
            security: SecurityInformation::default(),
            file,
        };
        self.call(Command::SetInfo, |out| request.encode(out)).map(drop)
    }

    /// Sends a request to lock or unlock, and gives its number.
    pub(crate) fn send_lock(
        &mut self,
        file: FileId,
        (offset, length): (u64, u64),
        flags: LockFlags,
    ) -> u64 {
        let range = LockRange { offset, length, flags };
        self.send(Command::Lock, |out| LockRequest::encode(0, file, &[range], out))
    }

    /// Locks or unlocks at once.
    pub(crate) fn lock(
        &mut self,
        file: FileId,
        range: (u64, u64),
        flags: LockFlags,
    ) -> Result<(), Refused> {
        let id = self.send_lock(file, range, flags);
        match self.receive(id).0.status {
            Status::SUCCESS => Ok(()),
            status => Err(status),
        }
    }
}
