//! The process of a gateway: a driver over etcd, with a service that notes when it may reply.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::{mpsc, watch};
use weir_cluster::{
    Barrier, Came, Command, GatewayId, GroupId, Life, MachineId, SessionId, SharedRight,
};
use weir_core::Mono;
use weir_etcd::{Connection, Keys, Settings};
use weir_gateway::{Failure, Fencing, Gateway, LocalState, Machine, Parts, Places, Service, now};
use weir_links::KeyFile;

/// The environment variable that names the settings of a process.
pub(crate) const SETTINGS: &str = "WEIR_TEST_GATEWAY";
/// Time between two notes.
const NOTE_EVERY: Duration = Duration::from_millis(10);

/// The settings of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) base: PathBuf,
    pub(crate) gateway: u16,
    pub(crate) listens_at: SocketAddr,
    pub(crate) etcd: Vec<String>,
    pub(crate) gateways: BTreeMap<u16, SocketAddr>,
    pub(crate) helpers: BTreeMap<u16, SocketAddr>,
}

/// A line in the notes of a life, with the time on the clock of all processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) at: u64,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    Began(u64),
    /// It may reply for these groups now, and until this time.
    Replies(u64, Vec<u32>),
    /// It has groups to reply for, and no right.
    Lapsed(Vec<u32>),
    Adopted(u32, Option<(u16, u32)>),
    Stopped(u32),
    Resumed(u32),
    Notified(u32),
    Blocklisted(u16, u32),
    Answered(String),
    Ended(String),
}

impl Setup {
    pub(crate) fn notes_of(&self, life: Life) -> PathBuf {
        self.base.join(format!("notes-{}-{}", life.gateway, life.number))
    }

    pub(crate) fn helper_socket(&self) -> PathBuf {
        self.base.join(format!("helper-{}", self.gateway))
    }

    /// The blocklist of Ceph: a file for each session.
    pub(crate) fn blocklist(&self) -> PathBuf {
        self.base.join("blocklist")
    }
}

/// The notes of one life.
#[derive(Clone)]
struct Notes(Arc<Mutex<File>>);

impl Notes {
    fn add(&self, at: Mono, what: What) {
        let mut line = serde_json::to_vec(&Note { at: at.0, what }).unwrap();
        line.push(b'\n');
        self.0.lock().unwrap().write_all(&line).unwrap();
    }
}

/// The server's part and the world around it, of one life.
struct World {
    setup: Setup,
    notes: Notes,
    /// The groups that the service serves. A reply is under way while this is locked.
    served: Mutex<BTreeSet<u32>>,
}

impl World {
    async fn ask_helper(&self, line: String) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure(error.to_string());
        let mut stream = UnixStream::connect(self.setup.helper_socket()).await.map_err(failed)?;
        stream.write_all(line.as_bytes()).await.map_err(failed)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await.map_err(failed)?;
        if answer == "ok\n" { Ok(()) } else { Err(Failure(format!("the helper says {answer:?}"))) }
    }
}

impl Machine for World {
    async fn announce(&self, machine: MachineId, life: Life) -> Result<(), Failure> {
        self.ask_helper(format!("announce {} {}\n", machine.0, life.number)).await
    }

    async fn note(&self, life: Life) -> Result<(), Failure> {
        self.ask_helper(format!("note {} {}\n", life.gateway, life.number)).await
    }

    async fn unnote(&self, life: Life) -> Result<(), Failure> {
        self.ask_helper(format!("unnote {} {}\n", life.gateway, life.number)).await
    }

    async fn follow(&self, _: BTreeMap<GatewayId, SocketAddr>) -> Result<(), Failure> {
        Ok(())
    }

    async fn hold_until(&self, _: Mono) -> Result<(), Failure> {
        Ok(())
    }

    async fn address(&self, _: GroupId) -> Result<(), Failure> {
        Ok(())
    }

    async fn unaddress(&self, _: GroupId) -> Result<(), Failure> {
        Ok(())
    }
}

impl Fencing for World {
    fn blocklist(&self, life: Life, sessions: &[SessionId]) -> Result<Barrier, Failure> {
        for session in sessions {
            fs::write(self.setup.blocklist().join(session.nonce.to_string()), "").unwrap();
        }
        let entries = fs::read_dir(self.setup.blocklist()).unwrap().count();
        self.notes.add(now(), What::Blocklisted(life.gateway.0, life.number));
        Ok(Barrier(u64::try_from(entries).unwrap()))
    }
}

impl Service for World {
    fn adopt(&self, group: GroupId, came: Came) -> Result<(), Failure> {
        let from = match came {
            Came::Taken { from, .. } => Some((from.gateway.0, from.number)),
            Came::New | Came::Handed { .. } => None,
        };
        self.notes.add(now(), What::Adopted(group.0, from));
        self.served.lock().unwrap().insert(group.0);
        Ok(())
    }

    fn stop(&self, group: GroupId, _: Option<Life>) -> Result<(), Failure> {
        self.served.lock().unwrap().remove(&group.0);
        self.notes.add(now(), What::Stopped(group.0));
        Ok(())
    }

    fn resume(&self, group: GroupId) -> Result<(), Failure> {
        self.notes.add(now(), What::Resumed(group.0));
        self.served.lock().unwrap().insert(group.0);
        Ok(())
    }

    fn notify(&self, group: GroupId) {
        self.notes.add(now(), What::Notified(group.0));
    }
}

/// The session of a life with Ceph.
fn session(life: Life) -> SessionId {
    let nonce = u32::from(life.gateway.0) * 1_000_000 + life.number;
    SessionId { address: ([10, 0, 0, 1], 0).into(), nonce }
}

/// The body of a gateway's process.
#[test]
#[ignore = "the body of the other tests, which run it in processes of its own"]
fn gateway() {
    let settings = std::env::var(SETTINGS).unwrap();
    let setup: Setup = serde_json::from_slice(&fs::read(settings).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(setup));
    // Threads that block must not hold up the end of the process.
    std::process::exit(0);
}

async fn run(setup: Setup) {
    let id = GatewayId(setup.gateway);
    let mut state = LocalState::open(&setup.base.join(format!("state-{id}")), id).unwrap();
    let settings = Settings { endpoints: setup.etcd.clone(), ..Settings::default() };
    let connection = Connection::new(&settings).unwrap();
    let keys = Keys::new("test").unwrap();
    let recorded = loop {
        if let Ok(number) = Gateway::recorded(&connection, &keys, id).await {
            break number;
        }
    };
    let life = state.begin(recorded).unwrap();
    let file = File::create_new(setup.notes_of(life)).unwrap();
    let notes = Notes(Arc::new(Mutex::new(file)));
    let pid = u64::from(std::process::id());
    notes.add(now(), What::Began(pid));
    let places = |ports: &BTreeMap<u16, SocketAddr>| {
        ports.iter().map(|(gateway, address)| (GatewayId(*gateway), *address)).collect()
    };
    let places = Places { gateways: places(&setup.gateways), helpers: places(&setup.helpers) };
    let (_places, places) = watch::channel(places);
    let world =
        Arc::new(World { setup: setup.clone(), notes: notes.clone(), served: Mutex::default() });
    let right = Arc::<SharedRight>::default();
    let gateway = Gateway::start(Parts {
        life,
        state,
        sessions: vec![session(life)],
        connection,
        keys,
        key_file: KeyFile::read(&setup.base.join("key")).unwrap(),
        listener: TcpListener::bind(setup.listens_at).await.unwrap(),
        places,
        machine: Arc::clone(&world),
        fencing: Arc::clone(&world),
        service: Arc::clone(&world),
        right: Arc::clone(&right),
    });
    let gateway = gateway.unwrap();
    let status = gateway.status();
    std::thread::spawn(move || note_replies(&right, &status, &world));
    let end = obey(&gateway, &setup, &notes).await;
    notes.add(now(), What::Ended(end));
}

/// Carries out the commands that the test sends, until the life ends.
async fn obey(gateway: &Gateway, setup: &Setup, notes: &Notes) -> String {
    let (sender, mut lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if sender.blocking_send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    let blocklisted = setup.blocklist().join(session(gateway.life()).nonce.to_string());
    loop {
        tokio::select! {
            end = gateway.ended() => return end.to_string(),
            () = tokio::time::sleep(Duration::from_millis(100)) => {
                if blocklisted.exists() {
                    gateway.blocklisted().await;
                }
            }
            Some(line) = lines.recv() => {
                if let Some(end) = carry_out(gateway, &line, notes).await {
                    return end;
                }
            }
        }
    }
}

async fn carry_out(gateway: &Gateway, line: &str, notes: &Notes) -> Option<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words[at].parse::<u32>().unwrap();
    let target = |at: usize| GatewayId(words[at].parse().unwrap());
    let command = match words[0] {
        "place" => Command::Place { group: GroupId(number(1)), weight: 1 },
        "move" => Command::Move { group: GroupId(number(1)), to: target(2) },
        "undrain" => Command::Drain { gateway: target(1), draining: false },
        "drain" => return gateway.drain().await.ok().map(|end| format!("drained: {end}")),
        "end" => return Some(gateway.end().await.to_string()),
        other => panic!("unknown command {other}"),
    };
    let answer = gateway.command(command).await;
    let words = answer.map_or_else(|refusal| refusal.to_string(), |()| "done".to_owned());
    notes.add(now(), What::Answered(words));
    None
}

/// Notes for which groups this life may reply, as its server would check before each send.
fn note_replies(
    right: &SharedRight,
    status: &watch::Receiver<Arc<weir_gateway::Status>>,
    world: &World,
) {
    let notes = &world.notes;
    loop {
        let status = Arc::clone(&status.borrow());
        let served = world.served.lock().unwrap();
        let groups = status.replying.iter().map(|group| group.0);
        let groups: Vec<u32> = groups.filter(|group| served.contains(group)).collect();
        let at = now();
        if right.allows(at) && !groups.is_empty() {
            notes.add(at, What::Replies(status.right.end().0, groups));
        } else if !groups.is_empty() {
            notes.add(at, What::Lapsed(groups));
        }
        drop(served);
        std::thread::sleep(NOTE_EVERY);
    }
}
