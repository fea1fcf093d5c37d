//! The client against a small server made of the server's side of `weir-smb`, which can be told to
//! break a rule.

use crate::{
    Channel, ClientError, Data, Login, Progress, Request, Security, Setup, SetupError, Write,
};
use alloc::sync::Arc;
use alloc::vec::Vec;
use weir_crypto::Provider;
use weir_smb::auth::ntlm::ServerNames;
use weir_smb::auth::{Acceptor, Next, NtHash, nt_hash};
use weir_smb::crypto::{
    Cipher, Derivation, Preauth, Role, SealKeys, SigningAlgorithm, SigningKey, TRANSFORM_BYTES,
};
use weir_smb::utf16::to_utf16;
use weir_smb::wire::netbios::{self, Step};
use weir_smb::wire::*;

const NOW: u64 = 0x01D0_AECB_ADF5_A1A1;
const SESSION: u64 = 0x77;
const TREE: u32 = 5;
const PASSWORD: &str = "correct horse";

/// A message of a frame: its header, and what appends its body.
type Message<'a> = (Header, &'a dyn Fn(&mut Vec<u8>));

/// The server's side of one connection, and the rule that it breaks.
struct Server {
    acceptor: Acceptor,
    preauth: Preauth,
    signing: Option<SigningKey<Provider>>,
    sealing: Option<SealKeys<Provider>>,
    algorithm: SigningAlgorithm,
    cipher: Option<Cipher>,
    mode: SecurityMode,
    session_flags: SessionFlags,
    granted: u16,
    requests: Vec<Header>,
}

impl Server {
    fn new(algorithm: SigningAlgorithm, cipher: Option<Cipher>) -> Self {
        let names = Arc::new(ServerNames::new("WEIR", "weir.example").unwrap());
        Self {
            acceptor: Acceptor::new(names),
            preauth: Preauth::new(),
            signing: None,
            sealing: None,
            algorithm,
            cipher,
            mode: SecurityMode::SIGNING_ENABLED,
            session_flags: SessionFlags::empty(),
            granted: 16,
            requests: Vec::new(),
        }
    }

    fn header(&self, request: &Header, status: Status) -> Header {
        Header {
            status,
            credits: self.granted,
            flags: HeaderFlags::RESPONSE | (request.flags & HeaderFlags::RELATED),
            next_command: 0,
            signature: [0; 16],
            ..*request
        }
    }

    /// The response to one frame of the set-up.
    fn answer(&mut self, frame: &mut [u8]) -> Vec<u8> {
        let sealed = frame.starts_with(b"\xfdSMB");
        let message = match (&self.sealing, sealed) {
            (Some(keys), true) => keys.open(frame).unwrap().to_vec(),
            _ => frame.to_vec(),
        };
        let header = Header::decode(&message).unwrap();
        self.requests.push(header);
        match header.command.unwrap() {
            Command::Negotiate => self.negotiate(&header, &message),
            Command::SessionSetup => self.session_setup(&header, &message),
            Command::TreeConnect => {
                let request = TreeConnectRequest::decode(&message).unwrap();
                assert_eq!(request.path, to_utf16("\\\\127.0.0.1\\vol"));
                assert!(sealed || header.flags.contains(HeaderFlags::SIGNED));
                let mut answer = self.header(&header, Status::SUCCESS);
                answer.tree = TreeOrAsync::Tree(TREE);
                let body = TreeConnectResponse {
                    share_type: ShareType::DISK,
                    share_flags: ShareFlags::empty(),
                    capabilities: ShareCapabilities::empty(),
                    maximal_access: AccessMask::all(),
                };
                let frame = self.frame(&[(answer, &|out| body.encode(out))]);
                self.protect(frame, sealed, true)
            }
            other => panic!("{other:?}"),
        }
    }

    fn negotiate(&mut self, header: &Header, message: &[u8]) -> Vec<u8> {
        self.preauth.update(&Provider, message);
        let numbers = |number: u16| number.to_le_bytes();
        let (hash, signing) = (numbers(1), numbers(self.algorithm as u16));
        let cipher = numbers(self.cipher.map_or(0, |cipher| cipher as u16));
        let mut buffer = Vec::new();
        let contexts = [
            NegotiateContext::PreauthIntegrity { hashes: Numbers::new(&hash), salt: b"salt" },
            NegotiateContext::Encryption(Numbers::new(&cipher)),
            NegotiateContext::Signing(Numbers::new(&signing)),
        ];
        let response = NegotiateResponse {
            security_mode: self.mode,
            dialect: Dialect::SMB_3_1_1,
            server_guid: [1; 16],
            capabilities: Capabilities::LARGE_MTU,
            max_transact_size: 1 << 20,
            max_read_size: 1 << 20,
            max_write_size: 1 << 20,
            system_time: NOW,
            start_time: 0,
            token: &[],
            contexts: NegotiateContexts::build(&mut buffer, contexts),
        };
        let answer = self.header(header, Status::SUCCESS);
        let frame = self.frame(&[(answer, &|out| response.encode(out))]);
        self.preauth.update(&Provider, &frame);
        frame
    }

    fn session_setup(&mut self, header: &Header, message: &[u8]) -> Vec<u8> {
        let request = SessionSetupRequest::decode(message).unwrap();
        self.preauth.update(&Provider, message);
        let known = |user: &str, _: &str| -> Option<NtHash> {
            (user == "ada").then(|| nt_hash(&Provider, PASSWORD))
        };
        let next = self.acceptor.step(&Provider, request.token.bytes, NOW, known);
        let (status, token, key) = match next {
            Next::Continue(token) => (Status::MORE_PROCESSING_REQUIRED, token, None),
            Next::Done(login) => (Status::SUCCESS, login.token, Some(login.session_key)),
            Next::Refused(_) => (Status::LOGON_FAILURE, Vec::new(), None),
        };
        let mut answer = self.header(header, status);
        answer.session_id = SESSION;
        let body = SessionSetupResponse { flags: self.session_flags, token: &token };
        let frame = self.frame(&[(answer, &|out| body.encode(out))]);
        let Some(key) = key else {
            self.preauth.update(&Provider, &frame);
            return frame;
        };
        let derivation = Derivation::new(&Provider, &key, &self.preauth);
        self.signing = Some(derivation.signing(self.algorithm, Role::Server));
        self.sealing = self.cipher.map(|c| derivation.sealing(c, Role::Server).unwrap());
        self.protect(frame, false, true)
    }

    /// The messages as one frame without prefix and protection.
    fn frame(&self, messages: &[Message<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut chain = ChainWriter::new(&out);
        for (header, body) in messages {
            chain.begin(&mut out, header);
            body(&mut out);
        }
        chain.finish(&mut out);
        out
    }

    fn protect(&self, mut frame: Vec<u8>, sealed: bool, signed: bool) -> Vec<u8> {
        if sealed {
            let mut whole = alloc::vec![0; TRANSFORM_BYTES];
            whole.extend_from_slice(&frame);
            self.sealing.as_ref().unwrap().seal(SESSION, &mut whole).unwrap();
            return whole;
        }
        if signed {
            let places: Vec<_> = Chain::decode(&frame).unwrap().iter().map(|one| one.at).collect();
            for at in places {
                self.signing.as_ref().unwrap().sign(&mut frame[at]).unwrap();
            }
        }
        frame
    }
}

/// The frames in `out`, without prefixes.
fn frames(out: &[u8]) -> Vec<Vec<u8>> {
    let (mut frames, mut rest) = (Vec::new(), out);
    while let Step::Frame { at } = netbios::next(rest).unwrap() {
        frames.push(rest[at.clone()].to_vec());
        rest = &rest[at.end..];
    }
    assert!(rest.is_empty());
    frames
}

fn login(user: &str, password: &str, security: Security) -> Login {
    Login {
        user: user.into(),
        hash: nt_hash(&Provider, password),
        server: "127.0.0.1".into(),
        share: "vol".into(),
        security,
        credits: 64,
    }
}

fn connect_as(server: &mut Server, login: Login) -> Result<Channel<Provider>, SetupError> {
    let mut out = Vec::new();
    let mut setup = Setup::begin(Provider, login, &mut out)?;
    loop {
        let mut sent = frames(&out);
        out.clear();
        let mut answer = server.answer(&mut sent[0]);
        match setup.take(&mut answer, &mut out)? {
            Progress::More(next) => setup = *next,
            Progress::Done(channel) => return Ok(channel),
        }
    }
}

fn connect(server: &mut Server, security: Security) -> Result<Channel<Provider>, SetupError> {
    connect_as(server, login("ada", PASSWORD, security))
}

/// The tokens and places of the answers in `frame`.
fn take(
    channel: &mut Channel<Provider>,
    mut frame: Vec<u8>,
) -> Result<Vec<(u32, usize, Status)>, ClientError> {
    let mut answers = Vec::new();
    let bytes = frame.len();
    channel.take(&mut frame, bytes, |answer| {
        answers.push((answer.token, answer.element, answer.status));
        Ok::<_, ClientError>(())
    })?;
    Ok(answers)
}

const ALL: [(SigningAlgorithm, Cipher); 4] = [
    (SigningAlgorithm::AesGmac, Cipher::Aes128Gcm),
    (SigningAlgorithm::AesCmac, Cipher::Aes256Gcm),
    (SigningAlgorithm::HmacSha256, Cipher::Aes128Ccm),
    (SigningAlgorithm::AesGmac, Cipher::Aes256Ccm),
];

#[test]
fn a_share_is_reached_with_every_algorithm_and_compounds_are_answered() {
    for (algorithm, cipher) in ALL {
        for security in [Security::None, Security::Sign, Security::Seal] {
            let mut server = Server::new(algorithm, Some(cipher));
            let mut channel = connect(&mut server, security).unwrap();
            assert_eq!(channel.takes_data_behind(), security == Security::None);
            assert_eq!(channel.sizes().read, 1 << 20);
            let mut out = Vec::new();
            let file = FileId { persistent: 1, volatile: 2 };
            let compound = [Request::Flush(file), Request::Close(FileId::PREVIOUS)];
            assert!(channel.queue(&mut out, 9, &compound).unwrap());
            let mut frame = frames(&out).remove(0);
            let sealed = security == Security::Seal;
            assert_eq!(frame.starts_with(b"\xfdSMB"), sealed);
            if sealed {
                frame = server.sealing.as_ref().unwrap().open(&mut frame).unwrap().to_vec();
            }
            let elements: Vec<_> = Chain::decode(&frame).unwrap().iter().collect();
            assert!(elements[1].header.flags.contains(HeaderFlags::RELATED));
            for element in &elements {
                assert_eq!(element.header.tree, TreeOrAsync::Tree(TREE));
                let signed = element.header.flags.contains(HeaderFlags::SIGNED);
                assert_eq!(signed, security == Security::Sign);
                if signed {
                    let key = server.signing.as_ref().unwrap();
                    key.verify(&Provider, &frame[element.at.clone()]).unwrap();
                }
            }
            let body: &dyn Fn(&mut Vec<u8>) = &|out| FlushResponse {}.encode(out);
            let error: &dyn Fn(&mut Vec<u8>) = &|out| ErrorResponse::Plain.encode(out);
            let answers = [
                (server.header(&elements[0].header, Status::SUCCESS), body),
                (server.header(&elements[1].header, Status::FILE_CLOSED), error),
            ];
            let answer = server.frame(&answers);
            let answer = server.protect(answer, sealed, security == Security::Sign);
            let taken = take(&mut channel, answer).unwrap();
            assert_eq!(taken, [(9, 0, Status::SUCCESS), (9, 1, Status::FILE_CLOSED)]);
        }
    }
}

#[test]
fn a_login_that_fails_says_so() {
    let refused = |user: &str, password: &str| {
        let mut server = Server::new(SigningAlgorithm::AesGmac, None);
        connect_as(&mut server, login(user, password, Security::Sign)).err()
    };
    let failed = Some(SetupError::Refused { step: "the login", status: Status::LOGON_FAILURE });
    assert_eq!(refused("ada", "wrong"), failed);
    assert_eq!(refused("eve", PASSWORD), failed);
    assert_eq!(refused("ada", PASSWORD), None);
}

#[test]
fn demands_of_the_server_that_are_not_met_are_told() {
    let mut server = Server::new(SigningAlgorithm::AesGmac, None);
    server.mode = SecurityMode::SIGNING_REQUIRED;
    assert_eq!(connect(&mut server, Security::None).err(), Some(SetupError::SigningRequired));
    let mut server = Server::new(SigningAlgorithm::AesGmac, None);
    assert_eq!(connect(&mut server, Security::Seal).err(), Some(SetupError::NoCipher));
    for (flags, error) in [
        (SessionFlags::ENCRYPT_DATA, SetupError::SealingRequired),
        (SessionFlags::IS_GUEST, SetupError::Guest),
        (SessionFlags::IS_NULL, SetupError::Guest),
    ] {
        let mut server = Server::new(SigningAlgorithm::AesGmac, Some(Cipher::Aes128Gcm));
        server.session_flags = flags;
        assert_eq!(connect(&mut server, Security::Sign).err(), Some(error));
    }
}

/// A change of any message before the session's key is noticed by the last response's signature.
#[test]
fn a_changed_negotiation_is_noticed() {
    let mut server = Server::new(SigningAlgorithm::AesGmac, None);
    let mut out = Vec::new();
    let mut setup =
        Setup::begin(Provider, login("ada", PASSWORD, Security::Sign), &mut out).unwrap();
    // The server sees another GUID than the client sent.
    let mut changed = false;
    let error = loop {
        let mut sent = frames(&out);
        out.clear();
        if !core::mem::replace(&mut changed, true) {
            sent[0][HEADER_BYTES + 12] ^= 1;
        }
        let mut answer = server.answer(&mut sent[0]);
        match setup.take(&mut answer, &mut out) {
            Ok(Progress::More(next)) => setup = *next,
            Ok(Progress::Done(_)) => panic!("nothing was noticed"),
            Err(error) => break error,
        }
    };
    let forged = ClientError::Crypto(weir_smb::crypto::CryptoError::Forged);
    assert_eq!(error, SetupError::Client(forged));
}

/// One ECHO on a session of `security`; `respond` makes the response to its header.
fn echo(
    security: Security,
    respond: impl FnOnce(&Server, Header) -> Vec<u8>,
) -> Result<Vec<(u32, usize, Status)>, ClientError> {
    let mut server = Server::new(SigningAlgorithm::AesGmac, Some(Cipher::Aes128Gcm));
    let mut channel = connect(&mut server, security).unwrap();
    let mut out = Vec::new();
    assert!(channel.queue(&mut out, 3, &[Request::Echo]).unwrap());
    let mut frame = frames(&out).remove(0);
    if security == Security::Seal {
        frame = server.sealing.as_ref().unwrap().open(&mut frame).unwrap().to_vec();
    }
    let header = Header::decode(&frame).unwrap();
    take(&mut channel, respond(&server, server.header(&header, Status::SUCCESS)))
}

fn plain(server: &Server, header: Header) -> Vec<u8> {
    server.frame(&[(header, &|out| EchoResponse {}.encode(out))])
}

#[test]
fn responses_that_break_a_rule_end_the_connection() {
    let (none, sign, seal) = (Security::None, Security::Sign, Security::Seal);
    let fine = Ok(alloc::vec![(3, 0, Status::SUCCESS)]);
    assert_eq!(echo(none, plain), fine);
    assert_eq!(echo(sign, |s, h| s.protect(plain(s, h), false, true)), fine);
    assert_eq!(echo(seal, |s, h| s.protect(plain(s, h), true, false)), fine);
    assert_eq!(echo(sign, plain), Err(ClientError::NotSigned));
    assert_eq!(echo(seal, plain), Err(ClientError::NotSealed));
    assert_eq!(echo(none, |s, h| s.protect(plain(s, h), true, false)), Err(ClientError::NotSealed));
    let forged = Err(ClientError::Crypto(weir_smb::crypto::CryptoError::Forged));
    for (security, sealed) in [(sign, false), (seal, true)] {
        let changed = |s: &Server, h: Header| {
            let mut frame = s.protect(plain(s, h), sealed, !sealed);
            *frame.last_mut().unwrap() ^= 1;
            frame
        };
        assert_eq!(echo(security, changed), forged);
    }
    let wrong = |change: fn(&mut Header)| {
        echo(none, move |s, mut h| {
            change(&mut h);
            plain(s, h)
        })
    };
    assert_eq!(wrong(|h| h.session_id += 1), Err(ClientError::Foreign));
    assert_eq!(wrong(|h| h.flags = HeaderFlags::empty()), Err(ClientError::Foreign));
    assert!(matches!(wrong(|h| h.message_id += 9), Err(ClientError::Unasked(_))));
    assert!(matches!(wrong(|h| h.command = Ok(Command::Read)), Err(ClientError::Unasked(_))));
    assert_eq!(wrong(|h| h.message_id = u64::MAX), Ok(Vec::new()), "a notification");
    let twice = |s: &Server, h: Header| {
        let body: &dyn Fn(&mut Vec<u8>) = &|out| EchoResponse {}.encode(out);
        s.frame(&[(h, body), (h, body)])
    };
    assert!(matches!(echo(none, twice), Err(ClientError::Unasked(_))));
    for next in [1_u32, 56, 60, 72, 1 << 31] {
        let astray = |s: &Server, h: Header| {
            let mut frame = plain(s, h);
            frame[20..24].copy_from_slice(&next.to_le_bytes());
            frame
        };
        assert!(echo(none, astray).is_err(), "{next}");
    }
}

#[test]
fn an_interim_response_is_no_answer_and_the_final_one_is() {
    let mut server = Server::new(SigningAlgorithm::AesGmac, None);
    let mut channel = connect(&mut server, Security::Sign).unwrap();
    let mut out = Vec::new();
    assert!(channel.queue(&mut out, 3, &[Request::Echo]).unwrap());
    let header = Header::decode(&frames(&out)[0]).unwrap();
    let mut interim = server.header(&header, Status::PENDING);
    interim.tree = TreeOrAsync::Async(8);
    assert_eq!(take(&mut channel, plain(&server, interim)), Ok(Vec::new()));
    let mut last = server.header(&header, Status::SUCCESS);
    last.tree = TreeOrAsync::Async(8);
    let last = server.protect(plain(&server, last), false, true);
    assert_eq!(take(&mut channel, last), Ok(alloc::vec![(3, 0, Status::SUCCESS)]));
}

#[test]
fn requests_wait_for_credits() {
    let mut server = Server::new(SigningAlgorithm::AesGmac, None);
    server.granted = 1;
    let mut channel = connect(&mut server, Security::None).unwrap();
    let mut out = Vec::new();
    assert!(channel.queue(&mut out, 1, &[Request::Echo]).unwrap());
    assert!(!channel.queue(&mut out, 2, &[Request::Echo]).unwrap());
    let header = Header::decode(&frames(&out)[0]).unwrap();
    assert!(header.credits > 1, "more are asked for");
    let mut answer = server.header(&header, Status::SUCCESS);
    answer.credits = 4;
    take(&mut channel, plain(&server, answer)).unwrap();
    let file = FileId::default();
    let large = Request::Read { file, offset: 0, length: 5 << 16 };
    assert!(!channel.queue(&mut out, 2, &[large]).unwrap());
    let fits = Request::Read { file, offset: 0, length: 4 << 16 };
    assert!(channel.queue(&mut out, 2, &[fits]).unwrap());
}

#[test]
fn data_may_follow_a_plain_frame_alone() {
    let file = FileId::default();
    let write = |behind| {
        let data = Data { here: [b"here", &[]], behind };
        Request::Write(Write { file, offset: 0, through: false, data })
    };
    let queue = |security, requests: &[Request<'_>]| {
        let mut server = Server::new(SigningAlgorithm::AesGmac, Some(Cipher::Aes128Gcm));
        let mut channel = connect(&mut server, security).unwrap();
        let mut out = Vec::new();
        channel.queue(&mut out, 0, requests).map(|_| out)
    };
    let mut out = queue(Security::None, &[write(100)]).unwrap();
    out.resize(out.len() + 100, 7);
    let frame = frames(&out).remove(0);
    assert_eq!(WriteRequest::decode(&frame).unwrap().data.bytes.len(), 104);
    let refused = Err(ClientError::DataBehind);
    assert_eq!(queue(Security::Sign, &[write(1)]), refused);
    assert_eq!(queue(Security::Seal, &[write(1)]), refused);
    assert_eq!(queue(Security::None, &[write(1), Request::Close(file)]), refused);
    assert!(queue(Security::Seal, &[write(0), Request::Close(file)]).is_ok());
}

#[test]
fn data_of_a_read_is_found_in_the_front_of_its_frame() {
    let read = Request::Read { file: FileId::default(), offset: 0, length: 5000 };
    // A connection, the READ on it, and the whole response.
    let asked = || {
        let mut server = Server::new(SigningAlgorithm::AesGmac, None);
        let mut channel = connect(&mut server, Security::None).unwrap();
        let mut out = Vec::new();
        assert!(channel.queue(&mut out, 1, &[read]).unwrap());
        let header = Header::decode(&frames(&out)[0]).unwrap();
        let answer = server.header(&header, Status::SUCCESS);
        let body: &dyn Fn(&mut Vec<u8>) = &|out| {
            let reply = ReadReply::begin(out);
            out.resize(out.len() + 5000, 9);
            reply.finish(out);
        };
        (channel, server.frame(&[(answer, body)]))
    };
    for (missing, fits) in [(0, true), (1, false)] {
        let (mut channel, whole) = asked();
        let mut front = whole[..1024].to_vec();
        let mut found = None;
        channel
            .take(&mut front, whole.len() - missing, |answer| {
                found = Some(answer.data().map(|data| (data.data.len(), data.length)));
                Ok::<_, ClientError>(())
            })
            .unwrap();
        assert_eq!(found.unwrap().ok(), fits.then_some((1024 - 80, 5000)));
    }
    let (mut channel, whole) = asked();
    let mut front = whole[..1024].to_vec();
    front[20] = 8;
    let taken = channel.take(&mut front, whole.len(), |_| Ok::<_, ClientError>(()));
    assert_eq!(taken, Err(ClientError::TooLong));
}
