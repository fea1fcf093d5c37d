//! Three machines with their gateways, an etcd, and everything between them.

use crate::checks::{Life, Notes};
use crate::etcd::Members;
use crate::helper::{self, Known};
use crate::process::{SETTINGS, Setup, What};
use crate::proxy;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};
use weir_cluster::{GatewayId, View};
use weir_etcd::{Connection, Keys, RecordsClient, Settings};
use weir_links::KeyFile;

/// The gateways.
pub(crate) const GATEWAYS: [u16; 3] = [1, 2, 3];
/// The groups.
pub(crate) const GROUPS: u32 = 6;
/// Looks, 100 ms apart, until what has to come about counts as missing.
const LOOKS: usize = 1200;

/// The bed of one scenario. Everything ends when this is dropped.
pub(crate) struct Bed {
    pub(crate) etcd: Members,
    setups: BTreeMap<u16, Setup>,
    known: BTreeMap<u16, Arc<Mutex<Known>>>,
    processes: BTreeMap<u16, Child>,
    cuts: BTreeMap<(u16, u16), watch::Sender<bool>>,
    killed: Vec<Life>,
    base: TempDir,
    /// Helpers and links run here, until the other field is dropped.
    runtime: Handle,
    _running: oneshot::Sender<()>,
}

/// The places of one machine.
struct Sockets {
    gateway: std::net::TcpListener,
    helper: std::net::TcpListener,
}

impl Bed {
    /// Starts etcd and the gateways, and waits until every group is served by one.
    pub(crate) fn start() -> Self {
        let etcd = Members::start(3);
        let base = TempDir::new().unwrap();
        fs::create_dir(base.path().join("blocklist")).unwrap();
        KeyFile::create(&base.path().join("key")).unwrap();
        let own = Builder::new_current_thread().enable_all().build().unwrap();
        let (runtime, (running, over)) = (own.handle().clone(), oneshot::channel::<()>());
        std::thread::spawn(move || own.block_on(over));
        let bind = || {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        };
        let sockets: BTreeMap<u16, Sockets> = GATEWAYS
            .iter()
            .map(|gateway| (*gateway, Sockets { gateway: bind(), helper: bind() }))
            .collect();
        let mut bed = Self {
            etcd,
            setups: BTreeMap::new(),
            known: BTreeMap::new(),
            processes: BTreeMap::new(),
            cuts: BTreeMap::new(),
            killed: Vec::new(),
            base,
            runtime,
            _running: running,
        };
        bed.connect(sockets);
        for gateway in GATEWAYS {
            fs::create_dir(bed.base.path().join(format!("state-{gateway}"))).unwrap();
            bed.run(gateway);
        }
        // A gateway that does not know of another yet can't be replaced by that one.
        bed.until("every gateway knows all others", |bed| {
            let view = bed.view();
            let newest = view.members().map(|(_, member)| member.since).max();
            let knows = |life| {
                let known = view.acknowledged.get(&life);
                view.attached.contains_key(&life) && known.copied() >= newest
            };
            view.members().count() == GATEWAYS.len()
                && view.members().all(|(life, _)| knows(life.gateway))
        });
        for group in 1..=GROUPS {
            bed.place(group);
        }
        bed.until_all_are_served(&GATEWAYS);
        bed
    }

    /// The state of etcd, which has to be up.
    pub(crate) fn view(&self) -> View {
        let settings = Settings { endpoints: self.etcd.endpoints(), ..Settings::default() };
        self.runtime.block_on(async {
            let connection = Connection::new(&settings).unwrap();
            let records = RecordsClient::new(connection, Keys::new("test").unwrap());
            loop {
                if let Ok(view) = records.view().await {
                    return view;
                }
            }
        })
    }

    /// Makes the links between all machines, each through something that can cut it.
    fn connect(&mut self, sockets: BTreeMap<u16, Sockets>) {
        let address = |listener: &std::net::TcpListener| listener.local_addr().unwrap();
        for from in GATEWAYS {
            let (mut gateways, mut helpers) = (BTreeMap::new(), BTreeMap::new());
            for to in GATEWAYS.into_iter().filter(|to| *to != from) {
                let (cut, is_cut) = watch::channel(false);
                self.cuts.insert((from, to), cut);
                let targets = [address(&sockets[&to].gateway), address(&sockets[&to].helper)];
                let [gateway, helper] = targets.map(|target| self.through(target, is_cut.clone()));
                gateways.insert(to, gateway);
                helpers.insert(to, helper);
            }
            let setup = Setup {
                base: self.base.path().to_owned(),
                gateway: from,
                listens_at: address(&sockets[&from].gateway),
                etcd: self.etcd.endpoints(),
                gateways,
                helpers,
            };
            self.setups.insert(from, setup);
        }
        // The places of gateways are free again behind this, for their processes.
        for (gateway, Sockets { helper, .. }) in sockets {
            let setup = self.setups[&gateway].clone();
            let reaches = setup.gateways.iter();
            let reaches = reaches.map(|(to, address)| (GatewayId(*to), *address)).collect();
            let known = Arc::new(Mutex::new(Known::default()));
            self.known.insert(gateway, Arc::clone(&known));
            let _in = self.runtime.enter();
            let helper = tokio::net::TcpListener::from_std(helper).unwrap();
            self.runtime.spawn(helper::run(setup, helper, reaches, known));
        }
    }

    fn through(&self, target: SocketAddr, cut: watch::Receiver<bool>) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let _in = self.runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        self.runtime.spawn(proxy::run(listener, target, cut));
        address
    }
}

/// The gateways' processes.
impl Bed {
    /// Starts the process of a gateway.
    pub(crate) fn run(&mut self, gateway: u16) {
        let setup = &self.setups[&gateway];
        let settings = self.base.path().join(format!("setup-{gateway}"));
        fs::write(&settings, serde_json::to_vec(setup).unwrap()).unwrap();
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.base.path().join(format!("log-{gateway}")))
            .unwrap();
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::gateway", "--ignored", "--nocapture"])
            .env(SETTINGS, settings)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.processes.insert(gateway, process.unwrap());
    }

    /// Sends a command to a gateway.
    pub(crate) fn tell(&self, gateway: u16, command: &str) {
        let mut input = self.processes[&gateway].stdin.as_ref().unwrap();
        writeln!(input, "{command}").unwrap();
    }

    /// Creates a group, over whichever gateway may at that time.
    fn place(&self, group: u32) {
        for look in 0.. {
            assert!(look < LOOKS);
            let before = self.answers();
            self.tell(1, &format!("place {group} 1"));
            self.until("an answer", |bed| bed.answers().len() > before.len());
            if self.answers().last().is_some_and(|answer| answer == "done") {
                return;
            }
        }
    }

    /// The answers of gateway 1 to commands.
    fn answers(&self) -> Vec<String> {
        let answered = |what: &What| match what {
            What::Answered(words) => Some(words.clone()),
            _ => None,
        };
        let notes = self.notes();
        let own = notes.lives().filter(|life| life.0 == 1);
        own.flat_map(|life| notes.of(life)).filter_map(|note| answered(&note.what)).collect()
    }

    /// Kills the process of a gateway. Its helper learns of it, and says so.
    pub(crate) fn kill(&mut self, gateway: u16) {
        let life = self.life(gateway);
        let mut process = self.processes.remove(&gateway).unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        self.killed.push(life);
        self.known[&gateway].lock().unwrap().ended();
    }

    /// Waits until the process of a gateway has ended by itself; its helper learns of it.
    pub(crate) fn wait_for_end(&mut self, gateway: u16) {
        let mut process = self.processes.remove(&gateway).unwrap();
        let has_ended = (0..LOOKS).any(|_| {
            sleep(Duration::from_millis(100));
            process.try_wait().unwrap().is_some()
        });
        if !has_ended {
            // It would outlive the test.
            process.kill().unwrap();
            process.wait().unwrap();
        }
        assert!(has_ended, "gateway {gateway} does not end");
        self.known[&gateway].lock().unwrap().ended();
    }

    /// Has the process of a gateway ended by itself?
    pub(crate) fn has_ended(&mut self, gateway: u16) -> bool {
        let process = self.processes.get_mut(&gateway).unwrap();
        process.try_wait().unwrap().is_some()
    }

    /// Stops the process of a gateway, or lets it go on.
    pub(crate) fn signal(&self, gateway: u16, name: &str) {
        let process = self.processes[&gateway].id().to_string();
        assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
    }

    /// Cuts all links of a gateway and its helper, or mends them.
    pub(crate) fn cut(&self, gateway: u16, cut: bool) {
        let touched = self.cuts.iter().filter(|((a, b), _)| *a == gateway || *b == gateway);
        touched.for_each(|(_, link)| {
            link.send_replace(cut);
        });
    }

    /// The latest life of a gateway.
    pub(crate) fn life(&self, gateway: u16) -> Life {
        self.notes().lives().filter(|life| life.0 == gateway).max().unwrap()
    }

    /// Everything that was noted so far.
    pub(crate) fn notes(&self) -> Notes {
        Notes::read(self.base.path(), &self.killed)
    }

    /// Waits until something has come about.
    pub(crate) fn until(&self, what: &str, has: impl Fn(&Self) -> bool) {
        let came = (0..LOOKS).any(|_| {
            sleep(Duration::from_millis(100));
            has(self)
        });
        if !came {
            self.show();
        }
        assert!(came, "missing: {what}");
    }

    /// Waits until every group is served by one of these gateways.
    pub(crate) fn until_all_are_served(&self, gateways: &[u16]) {
        let from = weir_gateway::now().0;
        self.until("every group is served", |bed| {
            let notes = bed.notes();
            (1..=GROUPS).all(|group| {
                notes
                    .last_reply(group)
                    .is_some_and(|(at, life)| at > from && gateways.contains(&life.0))
            })
        });
    }

    /// Lets some time pass in which nothing is to happen.
    pub(crate) fn let_pass(&self, time: Duration) {
        sleep(time);
    }

    /// Checks what has to hold in every scenario.
    pub(crate) fn check(&self) {
        let notes = self.notes();
        let wrong = notes.overlaps();
        if !wrong.is_empty() {
            self.show();
        }
        assert!(wrong.is_empty(), "two lives replied for a group: {wrong:#?}");
        notes.check_takeovers();
    }

    /// Prints what the processes said, and what they noted besides replies.
    fn show(&self) {
        for gateway in GATEWAYS {
            let log = fs::read_to_string(self.base.path().join(format!("log-{gateway}")));
            println!("gateway {gateway}:\n{}", log.unwrap_or_default());
        }
        println!("{}", self.notes().summary());
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for process in self.processes.values_mut() {
            // The signal to kill ends a stopped process too.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
