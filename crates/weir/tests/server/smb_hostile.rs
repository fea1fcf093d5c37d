//! Clients of SMB that begin logins and never end them, and clients with as many opens as they can
//! have: the memory of the server stays bounded, and others are served as ever.

use crate::peer::raise_descriptor_limit;
use crate::smb_share::{PASSWORD, SHARE, Share, USER};
use crate::test_server::connect_from;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use weir_crypto::Provider;
use weir_load::Control;
use weir_load::engine::{SmbReplies, SmbSession, smb_outcome};
use weir_smb::auth::{Account, Initiator, nt_hash};
use weir_smb::utf16::to_utf16;
use weir_smb::wire::{
    AccessMask, Capabilities, Command, CreateContexts, CreateDisposition, CreateOptions, FileId,
    Header, HeaderFlags, Payload, SecurityMode, SessionSetupFlags, SessionSetupRequest, Status,
    TreeOrAsync,
};
use weir_smb_client::{
    Data, Login, Open, Progress, Request, Security, Setup, Write as WriteRequest,
};

/// The address of clients that do nothing wrong.
const GOOD: Ipv4Addr = Ipv4Addr::new(127, 2, 0, 1);

/// A client that has logged in and does everyday work.
struct Good(SmbSession);

impl Good {
    fn log_in(share: &Share) -> Self {
        Self(share.log_in_from(GOOD))
    }

    /// A file is made, written and closed.
    fn works(&mut self) {
        let name = to_utf16("good");
        let data = Data { here: [b"everyday work", &[]], behind: 0 };
        let write = WriteRequest { file: FileId::PREVIOUS, offset: 0, through: false, data };
        let create = create(&name, CreateDisposition::OverwriteIf);
        let close = Request::Close(FileId::PREVIOUS);
        succeeded(&self.0.call(&[create, Request::Write(write), close]).unwrap());
    }
}

fn create(name: &[u8], disposition: CreateDisposition) -> Request<'_> {
    let access = AccessMask::WRITE_DATA | AccessMask::READ_ATTRIBUTES;
    let (options, contexts) = (CreateOptions::NON_DIRECTORY_FILE, CreateContexts::default());
    Request::Create(Open { name, access, disposition, options, contexts })
}

fn succeeded(replies: &SmbReplies) {
    assert_eq!(smb_outcome(replies), Status::SUCCESS);
}

fn login() -> Login {
    Login {
        user: USER.to_owned(),
        hash: nt_hash(&Provider, PASSWORD),
        server: "127.0.0.1".to_owned(),
        share: SHARE.to_owned(),
        security: Security::Sign,
        credits: 16,
    }
}

/// A connection on which a login has begun: the server has answered the first SESSION_SETUP with
/// its challenge.
struct HalfOpen {
    stream: TcpStream,
    setup: Setup<Provider>,
    /// The request that would go on.
    out: Vec<u8>,
}

impl HalfOpen {
    fn begin(share: &Share, source: Ipv4Addr) -> Self {
        let stream = connect_from(source, share.address);
        let mut out = Vec::new();
        let setup = Setup::begin(Provider, login(), &mut out).unwrap();
        let mut half = Self { stream, setup, out };
        half = half.step().unwrap_or_else(|()| panic!("NEGOTIATE ends the login"));
        half.step().unwrap_or_else(|()| panic!("the first SESSION_SETUP ends the login"))
    }

    /// Sends the next request and takes its response. Nothing is left to be done once the share is
    /// there.
    fn step(mut self) -> Result<Self, ()> {
        self.stream.write_all(&self.out).unwrap();
        self.out.clear();
        match self.setup.take(&mut receive(&mut self.stream), &mut self.out).unwrap() {
            Progress::More(setup) => Ok(Self { setup: *setup, ..self }),
            Progress::Done(_) => Err(()),
        }
    }

    /// Logs in and connects to the share.
    fn end(mut self) {
        while let Ok(next) = self.step() {
            self = next;
        }
    }
}

/// The next frame, without its prefix.
fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).unwrap();
    let mut frame = vec![0; u32::from_be_bytes(prefix) as usize];
    stream.read_exact(&mut frame).unwrap();
    frame
}

#[test]
fn ten_thousand_half_open_logins_take_little_memory_and_delay_nobody() {
    const LOGINS: usize = 10_000;
    let limit = raise_descriptor_limit();
    assert!(limit >= 12_000, "needs 12,000 descriptors; the hard limit is {limit}");
    let share = Share::new("required");
    let mut good = Good::log_in(&share);
    good.works();
    let before = share.server.resident_kib();
    let mut half_open = Vec::new();
    for at in 0..LOGINS {
        // A thousand of each address: one alone may not have so many connections.
        let source = Ipv4Addr::new(127, 1, 0, u8::try_from(at / 1000).unwrap());
        half_open.push(HalfOpen::begin(&share, source));
    }
    let grown = share.server.resident_kib().saturating_sub(before);
    println!("{LOGINS} half-open logins: {grown} KiB");
    assert!(grown < 4 * LOGINS as u64, "{LOGINS} half-open logins hold {grown} KiB");
    good.works();
    Good::log_in(&share).works();
    share.log_in_from([127, 1, 0, 1]);
    half_open.into_iter().step_by(500).for_each(HalfOpen::end);
    good.works();
}

#[test]
fn logins_that_begin_on_one_connection_without_end_hold_bounded_memory() {
    const LOGINS: u64 = 50_000;
    let share = Share::new("required");
    let mut good = Good::log_in(&share);
    let mut greedy = HalfOpen::begin(&share, Ipv4Addr::new(127, 1, 0, 1)).stream;
    good.works();
    let before = share.server.resident_kib();
    // NEGOTIATE and one SESSION_SETUP took the message ids 0 and 1.
    for message_id in 2..LOGINS {
        greedy.write_all(&first_session_setup(message_id)).unwrap();
        let response = Header::decode(&receive(&mut greedy)).unwrap();
        assert_eq!(response.status, Status::MORE_PROCESSING_REQUIRED);
    }
    let grown = share.server.resident_kib().saturating_sub(before);
    println!("{LOGINS} logins that began on one connection: {grown} KiB");
    assert!(grown < 4 << 10, "logins that began on one connection hold {grown} KiB");
    good.works();
    Good::log_in(&share).works();
    HalfOpen::begin(&share, Ipv4Addr::new(127, 1, 0, 1)).end();
}

/// A frame with the first SESSION_SETUP of a login.
fn first_session_setup(message_id: u64) -> Vec<u8> {
    let header = Header {
        credit_charge: 1,
        status: Status::SUCCESS,
        command: Ok(Command::SessionSetup),
        credits: 1,
        flags: HeaderFlags::empty(),
        next_command: 0,
        message_id,
        tree: TreeOrAsync::Tree(0),
        session_id: 0,
        signature: [0; 16],
    };
    let account = Account { user: USER.to_owned(), ..Account::default() };
    let token = Initiator::new(account, nt_hash(&Provider, PASSWORD), false).first();
    let request = SessionSetupRequest {
        flags: SessionSetupFlags::empty(),
        security_mode: SecurityMode::SIGNING_ENABLED,
        capabilities: Capabilities::empty(),
        previous_session_id: 0,
        token: Payload { bytes: &token, at: 0 },
    };
    let mut frame = vec![0; 4];
    header.encode(&mut frame);
    request.encode(&mut frame);
    let length = u32::try_from(frame.len() - 4).unwrap();
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame
}

#[test]
fn a_hundred_thousand_opens_take_little_memory() {
    const OPENS: u32 = 100_000;
    const SESSIONS: u8 = 4;
    const FILES: u32 = 1000;
    let share = Share::new("offered");
    let mut good = Good::log_in(&share);
    good.works();
    let log_in = |number| share.log_in_from([127, 1, 0, number]);
    let mut sessions: Vec<SmbSession> = (0..SESSIONS).map(log_in).collect();
    // The files are there, and the server has them in its cache.
    open(&mut sessions[0], FILES, FILES, true);
    let before = share.server.resident_kib();
    for session in &mut sessions {
        open(session, OPENS / u32::from(SESSIONS), FILES, false);
    }
    let grown = share.server.resident_kib().saturating_sub(before);
    println!("{OPENS} opens: {grown} KiB");
    assert!(grown < 64 << 10, "{OPENS} opens hold {grown} KiB");
    good.works();
    Good::log_in(&share).works();
}

/// Opens files, one after another of so many, and closes each at once where that is asked for.
fn open(session: &mut SmbSession, opens: u32, files: u32, closes: bool) {
    let opened = session.ahead(
        &Control::new(),
        0..opens,
        |session, token, number| {
            let name = to_utf16(&format!("a-name-of-the-usual-length-{:08}", number % files));
            let requests =
                [create(&name, CreateDisposition::OpenIf), Request::Close(FileId::PREVIOUS)];
            session.queue(token, &requests[..if closes { 2 } else { 1 }])
        },
        |_, replies| {
            succeeded(&replies);
            Ok(None)
        },
    );
    opened.unwrap();
}
