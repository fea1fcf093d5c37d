//! One phase of a run: a server in one durability mode, clients, and a number of kills or power
//! cuts.

use super::audit::Compared;
use super::client::{Client, Role};
use super::held;
use super::journal::Tally;
use super::operator;
use super::smb::{self, SmbClient, SmbRole};
use super::watcher;
use super::world::{Finding, TICK, World};
use crate::disk::Disk;
use crate::server::{Settings, TestServer};
use crate::stop::Stop;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use weir_core::rng::Rng;
use weir_load::{NfsTarget, Password, SmbSecurity, SmbTarget};

const POOL: &str = "crash";
const POOL_TEBIBYTES: u64 = 256;
/// The volumes that clients work in: contracts that never bind them.
const BUSY: &str = "busy";
const QUIET: &str = "quiet";
const VOLUME_GIBIBYTES: u64 = 32 * 1024;
/// The user of the SMB clients.
const USER: &str = "crash";
const PASSWORD: &str = "a password of the crash tests";
/// Operations after which the client of the quiet volume only watches.
const QUIET_OPERATIONS: u64 = 200;
/// Kills between two pauses in which usage is compared; after power cuts it always is.
const PAUSE_EVERY: u64 = 8;
/// One in this number of kills comes while the server starts.
const START_KILLS: u64 = 5;
/// Longest time until a pause is reached.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longest time until a recount is right, with nothing else to do.
const RECOUNT_PATIENCE: Duration = Duration::from_secs(60);
/// A server is killed while it starts within this time, and otherwise so long after it serves.
const START_MS: u64 = 80;
const LOAD_MS: std::ops::Range<u64> = 20..500;
/// Longest time that the server runs after a power cut (ms).
const DYING_MS: u64 = 40;

/// An event of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// SIGKILL.
    Kill,
    /// The file system stops as in a power cut; the server is killed soon after.
    PowerCut,
}

/// A phase.
pub(super) struct Phase<'a> {
    pub(super) settings: Settings,
    pub(super) event: Event,
    pub(super) events: u64,
    /// Clients of NFS.
    pub(super) clients: u32,
    pub(super) smb_clients: u32,
    pub(super) seed: u64,
    /// The disk of the data directory, for [`Event::PowerCut`].
    pub(super) disk: Option<&'a Disk>,
}

/// The outcome of a phase.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct PhaseOutcome {
    pub(super) events: u64,
    /// Of those, how many while the server started.
    pub(super) during_start: u64,
    /// Successful operations by kind.
    pub(super) operations: BTreeMap<&'static str, u64>,
    /// Calls without an answer when the server was killed, and audits that found their changes
    /// made.
    pub(super) in_doubt: u64,
    pub(super) were_done: u64,
    /// Changes of names that were answered before a restart, and sent again after it.
    pub(super) asked_again: u64,
    /// Blocks that were sent again because the write verifier had changed.
    pub(super) rewritten_blocks: u64,
    /// Comparisons of a client's whole tree with the server's, and their extent.
    pub(super) audits: u64,
    pub(super) compared: Compared,
    /// Comparisons of a volume's usage, in units of 4 KiB, with what the file system says and,
    /// where that is certain, with what clients had written.
    pub(super) usages: u64,
    /// Changes of the catalogue that were answered.
    pub(super) catalogue_changes: u64,
    /// Milliseconds from start to the first answer, after each kill.
    pub(super) serving_ms: Vec<f64>,
    pub(super) findings: Vec<Finding>,
}

impl PhaseOutcome {
    fn add(&mut self, tally: &Tally) {
        for (word, count) in &tally.operations {
            *self.operations.entry(word).or_default() += count;
        }
        self.in_doubt += tally.in_doubt;
        self.were_done += tally.were_done;
        self.asked_again += tally.asked_again;
        self.rewritten_blocks += tally.rewritten_blocks;
        self.audits += tally.audits;
        self.compared.add(tally.compared);
    }
}

/// Runs a phase to its end, or to the first finding.
///
/// # Errors
/// If the server ends by itself or does not come back, or the machine fails.
pub(super) fn run(phase: &Phase<'_>, stop: &Stop) -> Result<PhaseOutcome> {
    let (mut server, operator) = TestServer::start_new(phase.settings.clone())?;
    operator.make_pool(POOL, POOL_TEBIBYTES, None)?;
    for name in [BUSY, QUIET, operator::RESIZED] {
        operator.make_volume(name, POOL, VOLUME_GIBIBYTES)?;
    }
    operator.share(BUSY)?;
    operator.make_user(USER, smb::UID, PASSWORD)?;
    let mut mount = |volume| server.mount(&format!("/{volume}"), &watcher::caller());
    let roots = [mount(BUSY)?, mount(QUIET)?];
    let durable_names = phase.settings.durability == "power";
    let world = World::new(server.address(), phase.seed, durable_names);
    world.begin_life();
    let mut run = PhaseRun {
        phase,
        world: &world,
        server,
        roots,
        rng: Rng::new(phase.seed),
        outcome: PhaseOutcome::default(),
    };
    std::thread::scope(|scope| {
        let clients = run.start_clients(scope);
        let data = run.server.data().to_owned();
        let quota = VOLUME_GIBIBYTES << 30;
        let shared = &world;
        let changes = scope.spawn(move || operator::run(shared, &data, POOL, quota));
        let done = clients.as_ref().map_or(Ok(()), |_| run.events(stop));
        world.stop();
        for client in clients? {
            let tally = client.join().map_err(|_| anyhow::anyhow!("a client has panicked"))?;
            run.outcome.add(&tally);
        }
        run.outcome.catalogue_changes = changes.join().unwrap_or(0);
        done
    })?;
    run.server.stop();
    run.outcome.findings = world.take_findings();
    Ok(run.outcome)
}

struct PhaseRun<'a> {
    phase: &'a Phase<'a>,
    world: &'a World,
    server: TestServer,
    /// Top directories of the busy and the quiet volume.
    roots: [Box<[u8]>; 2],
    rng: Rng,
    outcome: PhaseOutcome,
}

impl<'a> PhaseRun<'a> {
    /// All clients of NFS but the last work in the busy volume, and so do those of SMB.
    fn start_clients<'s>(
        &self,
        scope: &'s Scope<'s, '_>,
    ) -> Result<Vec<ScopedJoinHandle<'s, Tally>>>
    where
        'a: 's,
    {
        let (count, world) = (self.phase.clients, self.world);
        let [busy, quiet] = &self.roots;
        let start = |number: u32| {
            let last = number + 1 == count;
            let role = Role {
                number,
                root: if last { quiet.clone() } else { busy.clone() },
                source: self.source(number),
                operations_max: last.then_some(QUIET_OPERATIONS),
            };
            let client = Client::new(world, role, watcher::caller());
            let named = Builder::new().name(format!("client-{number}"));
            Ok(named.spawn_scoped(scope, move || client.run())?)
        };
        let start_smb = |number: u32| {
            let password = Password::new(PASSWORD.to_owned());
            let target = SmbTarget::new(self.server.smb_address(), BUSY, USER, password);
            // Every second one has its messages encrypted.
            let security =
                if number.is_multiple_of(2) { SmbSecurity::Seal } else { SmbSecurity::Sign };
            let role = SmbRole {
                number,
                target: SmbTarget { security, ..target },
                root: busy.clone(),
                source: self.source(number),
            };
            let client = SmbClient::new(world, role);
            let named = Builder::new().name(format!("smb-client-{number}"));
            Ok(named.spawn_scoped(scope, move || client.run())?)
        };
        (0..count).map(start).chain((count..self.all_clients()).map(start_smb)).collect()
    }

    /// The number of clients of both protocols.
    fn all_clients(&self) -> u32 {
        self.phase.clients + self.phase.smb_clients
    }

    /// The address of a client.
    fn source(&self, number: u32) -> Option<IpAddr> {
        let target = NfsTarget::new(self.world.address, "");
        target.source(number, self.all_clients().max(2))
    }

    fn events(&mut self, stop: &Stop) -> Result<()> {
        let mut warm = false;
        while self.outcome.events < self.phase.events && !self.world.stopped() {
            if stop.asked() {
                bail!("interrupted");
            }
            let in_start =
                self.phase.event == Event::Kill && warm && self.rng.below(START_KILLS) == 0;
            if in_start {
                self.outcome.during_start += 1;
                sleep_ms(self.rng.below(START_MS));
            } else {
                self.serve()?;
                if warm && self.pause_is_due() {
                    self.pause()?;
                }
                self.work_on();
            }
            self.strike()?;
            warm = true;
        }
        if !self.world.stopped() {
            self.serve()?;
            self.pause()?;
        }
        Ok(())
    }

    /// Is the usage compared before the next kill? After a cut, clients work for a while first, so
    /// that the recount runs under load.
    fn pause_is_due(&mut self) -> bool {
        if self.phase.event == Event::PowerCut {
            self.work_on();
            return true;
        }
        self.outcome.events.is_multiple_of(PAUSE_EVERY)
    }

    /// Lets clients work for a random time.
    fn work_on(&mut self) {
        sleep_ms(LOAD_MS.start + self.rng.below(LOAD_MS.end - LOAD_MS.start));
    }

    fn serve(&mut self) -> Result<()> {
        let [busy, _] = &self.roots;
        let after = watcher::serving(&mut self.server, busy)?;
        self.outcome.serving_ms.push(after.as_secs_f64() * 1e3);
        Ok(())
    }

    /// Kills the server, and starts it again.
    fn strike(&mut self) -> Result<()> {
        if self.phase.event == Event::PowerCut {
            let disk = self.phase.disk.context("a power cut needs a disk")?;
            self.world.begin_cut();
            disk.cut()?;
            sleep_ms(self.rng.below(DYING_MS));
            self.server.kill_if_running()?;
            disk.restore()?;
            self.world.end_cut();
        } else {
            self.server.kill()?;
        }
        self.outcome.events += 1;
        self.world.begin_life();
        self.server.start()
    }

    /// Pauses all clients after a comparison of their trees, and compares the usage of the volumes.
    fn pause(&mut self) -> Result<()> {
        let clients = usize::try_from(self.all_clients())?;
        let begun = Instant::now();
        self.world.pause(true);
        while self.world.parked() < clients && !self.world.stopped() {
            if begun.elapsed() > PATIENCE {
                bail!("{} of {clients} clients paused in time", self.world.parked());
            }
            std::thread::sleep(TICK);
        }
        let last = self.phase.clients - 1;
        let busy: Vec<u32> = (0..last).chain(last + 1..self.all_clients()).collect();
        for (root, clients) in [(0, &busy[..]), (1, &[last])] {
            // Unknown where a client had to begin anew.
            let known = self.world.used_by(clients).filter(|_| self.names_are_certain());
            let written = known.map(|blocks| blocks * super::content::BLOCK);
            if let Some(root) = self.roots.get(root).cloned() {
                self.compare_usage(&root, written)?;
            }
        }
        self.world.pause(false);
        while self.world.parked() > 0 {
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    /// Trees whose names may be lost are left behind.
    fn names_are_certain(&self) -> bool {
        self.phase.event == Event::Kill || self.world.durable_names
    }

    /// Usage is counted anew after an unclean stop: it must become what the files hold, and what
    /// clients have `written` where that is certain.
    fn compare_usage(&mut self, root: &[u8], written: Option<u64>) -> Result<()> {
        let address = self.world.address;
        let top = held::top_directory(self.server.data(), watcher::fileid(address, root)?)?;
        let begun = Instant::now();
        loop {
            let used = watcher::space(address, root)?;
            let held = held::held_bytes(&top)?;
            if used == held && written.is_none_or(|written| written == used) {
                self.outcome.usages += 1;
                return Ok(());
            }
            if begun.elapsed() > RECOUNT_PATIENCE || self.world.stopped() {
                let written = written.map_or("?".to_owned(), |written| written.to_string());
                let what = format!(
                    "the volume counts {used} bytes, its files hold {held}, clients wrote {written}"
                );
                self.world.found("usage".to_owned(), vec![what], Vec::new());
                return Ok(());
            }
            std::thread::sleep(TICK * 10);
        }
    }
}

fn sleep_ms(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}
