//! The helpers of the machines: each outlives the process of its gateway, keeps its notes, answers
//! questions over links, and says by itself that the process has ended.

use crate::process::Setup;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::interval;
use weir_cluster::{Asked, GatewayId, HelperWord, Life, MachineId, Version};
use weir_links::{Identity, KeyFile, Mesh, Word};

/// The knowledge of a helper.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The number of the latest life that was announced, and its local state.
    announced: Option<(MachineId, u32)>,
    runs: bool,
    notes: BTreeMap<GatewayId, u32>,
}

impl Known {
    /// The process of the gateway has ended.
    pub(crate) fn ended(&mut self) {
        self.runs = false;
    }

    fn word(&self, gateway: GatewayId, answers: Option<Asked>) -> Option<HelperWord> {
        let (machine, number) = self.announced?;
        let life = Life { gateway, number };
        Some(HelperWord { version: Version::CURRENT, machine, life, runs: self.runs, answers })
    }

    fn obey(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.trim_end().split(' ').collect();
        let number = |at: usize| words[at].parse::<u32>().unwrap();
        let gateway = |at: usize| GatewayId(words[at].parse().unwrap());
        match words[0] {
            "announce" => {
                self.announced = Some((MachineId(words[1].parse().unwrap()), number(2)));
                self.runs = true;
            }
            "note" => {
                self.notes.insert(gateway(1), number(2));
            }
            "unnote" => self.notes.retain(|noted, last| *noted != gateway(1) || *last > number(2)),
            _ => return false,
        }
        true
    }
}

/// Runs the helper of a machine, for ever.
pub(crate) async fn run(
    setup: Setup,
    listener: TcpListener,
    reaches: BTreeMap<GatewayId, SocketAddr>,
    known: Arc<Mutex<Known>>,
) {
    let gateway = GatewayId(setup.gateway);
    let key = KeyFile::read(&setup.base.join("key")).unwrap();
    let (sender, mut heard) = mpsc::channel(256);
    let identity = Identity::new(&key, Life { gateway, number: 0 }).unwrap();
    let mut mesh = Mesh::new(identity, sender);
    mesh.listen(listener);
    mesh.follow(&reaches);
    let local = UnixListener::bind(setup.helper_socket()).unwrap();
    let mut speaks = interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            Ok((stream, _)) = local.accept() => {
                tokio::spawn(serve(stream, Arc::clone(&known)));
            }
            Some((_, word)) = heard.recv() => {
                let Word::Question { by, at, .. } = word else { continue };
                let known = known.lock().unwrap();
                let noted = known.notes.get(&by.gateway).is_some_and(|last| *last >= by.number);
                if let Some(word) = known.word(gateway, Some(Asked { by, at, noted })) {
                    mesh.send(by.gateway, Word::Helper(word));
                }
            }
            _ = speaks.tick() => {
                let word = known.lock().unwrap().word(gateway, None);
                if let Some(word) = word.filter(|word| !word.runs) {
                    reaches.keys().for_each(|other| mesh.send(*other, Word::Helper(word)));
                }
            }
        }
    }
}

async fn serve(stream: UnixStream, known: Arc<Mutex<Known>>) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    // A gateway that is killed asks nothing more.
    if stream.read_line(&mut line).await.is_ok() && known.lock().unwrap().obey(&line) {
        let _ = stream.write_all(b"ok\n").await;
    }
}
