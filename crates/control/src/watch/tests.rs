use super::*;
use crate::logins::Logins;
use crate::plane::{
    ClientState, Lock, OperationCount, PlaneError, SmbOpen, SmbSession, Step, Top, TopChange,
    Totals, VolumeConnection, VolumeHistograms, VolumeLive, VolumeReading, VolumeUses,
};
use weir_catalog::{
    Catalog, LevelChange, Mode, NewLevel, NewPool, NewVolume, PoolChange, Protocols, Terms,
};
use weir_core::{FsResult, Mono, OpClass};
use weir_qos::verdict::Reading;
use weir_qos::{BytesPerSecond, Cost, FileShare, Limits};

const START: u64 = 1_700_000_040;
const LIMIT: u64 = 16 << 20;
/// Bytes that files at their ceilings let through.
const FILED: u64 = 4 << 20;

/// A data plane with two volumes that a test drives in time of its own.
#[derive(Default)]
struct Driven(Mutex<HashMap<u32, Reading>>, Mutex<HashMap<u32, VolumeUses>>);

impl Plane for Driven {
    fn apply(&self, _: Arc<Snapshot>) -> Result<(), PlaneError> {
        Ok(())
    }

    fn volume_live(&self, id: VolumeId) -> Option<VolumeLive> {
        lock(&self.0).get(&id.0).map(|_| VolumeLive { waiting: 7, ..VolumeLive::default() })
    }

    fn volume_histograms(&self, _: VolumeId) -> Option<Box<VolumeHistograms>> {
        None
    }

    fn readings(&self, each: &mut dyn FnMut(VolumeReading)) {
        for (id, reading) in &*lock(&self.0) {
            let entitled = Limits::of(BytesPerSecond(LIMIT)).into();
            let uses = lock(&self.1);
            let counts = uses.get(id).into_iter().flat_map(|uses| &uses.operations);
            let answered = counts.map(|count| count.answered).sum();
            each(VolumeReading { id: VolumeId(*id), entitled, reading: *reading, answered });
        }
    }

    fn volume_uses(&self, id: VolumeId) -> Option<VolumeUses> {
        lock(&self.1).get(&id.0).cloned()
    }

    fn rescan(&self, _: VolumeId) -> Option<bool> {
        None
    }

    fn top(&self, _: VolumeId) -> Option<Top> {
        None
    }

    fn change_top(&self, _: VolumeId, _: TopChange) -> Step<'_, Option<FsResult<()>>> {
        Box::pin(async { None })
    }

    fn logins(&self) -> Arc<Logins> {
        Arc::default()
    }

    fn totals(&self) -> Totals {
        Totals::default()
    }
}

/// No client has anything.
impl ClientState for Driven {
    fn smb_sessions(&self, _: u64, _: usize) -> Vec<SmbSession> {
        Vec::new()
    }

    fn close_smb_session(&self, _: u64) -> Step<'_, Option<SmbSession>> {
        Box::pin(async { None })
    }

    fn smb_opens(&self, _: u64, _: usize) -> Vec<SmbOpen> {
        Vec::new()
    }

    fn close_smb_open(&self, _: u64) -> Step<'_, Option<SmbOpen>> {
        Box::pin(async { None })
    }

    fn locks(&self, after: Option<&str>, _: usize) -> Option<Vec<(String, Lock)>> {
        after.is_none().then(Vec::new)
    }

    fn close_lock(&self, _: &str) -> Option<Lock> {
        None
    }
}

struct World {
    plane: Driven,
    watch: Watch,
    now: u64,
    directory: tempfile::TempDir,
    snapshot: Arc<Snapshot>,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(directory.path()).unwrap();
        let (name, level) = ("pool".to_owned(), "standard".to_owned());
        let pool = NewPool { name, level, size_bytes: 4 << 40, ..NewPool::default() };
        catalog.create_pool(&pool, Mode::Commit).unwrap();
        for name in ["home", "idle"] {
            let (name, pool) = (name.to_owned(), "pool".to_owned());
            let volume = NewVolume { name, pool, quota_bytes: 1 << 40, ..NewVolume::default() };
            catalog.create_volume(&volume, Mode::Commit).unwrap();
        }
        let watch = Watch::new(Recorder::open(directory.path()), true);
        let snapshot = catalog.snapshot();
        Self { plane: Driven::default(), watch, now: START, directory, snapshot }
    }

    fn home(&self) -> &Volume {
        self.snapshot.volume_named("home").unwrap()
    }

    /// The server comes back, with a new plane.
    fn restart(self) -> Self {
        let rows = self.watch.unfinished(self.now);
        assert!(self.watch.recorder.write(rows, self.now).is_empty());
        let (now, directory, snapshot) = (self.now, self.directory, self.snapshot);
        drop(self.watch);
        let watch = Watch::new(Recorder::open(directory.path()), true);
        Self { plane: Driven::default(), watch, now, directory, snapshot }
    }

    /// Seconds in which `home` moves so many bytes in each, with somebody waiting if it is all, or
    /// for files.
    fn pass(&mut self, seconds: u64, bytes: u64) {
        for _ in 0..seconds {
            self.now += 1;
            let id = self.home().id.0;
            let mut readings = lock(&self.plane.0);
            let reading =
                readings.entry(id).or_insert(Reading { at: Mono(SECOND), ..Reading::default() });
            reading.at.0 += SECOND;
            reading.due.bytes += LIMIT;
            reading.requests += bytes / 8192;
            for cost in [&mut reading.offered, &mut reading.passed, &mut reading.delivered] {
                let operations = cost.operations + bytes / 8192;
                *cost = Cost { bytes: cost.bytes + bytes, operations };
            }
            let (asked, wait) = match bytes {
                LIMIT => (SECOND, 40 * SECOND),
                FILED => (0, 40 * SECOND),
                _ => (0, 0),
            };
            reading.asked_nanos += asked;
            reading.wait_nanos += wait;
            reading.inside_nanos += if bytes > 0 { SECOND / 2 } else { 0 };
            reading.busy_nanos += if bytes > 0 { SECOND / 4 } else { 0 };
            drop(readings);
            let rows = self.watch.look(&self.plane, self.now);
            if !rows.is_empty() {
                assert!(self.watch.recorder.write(rows, self.now).is_empty());
            }
        }
    }

    fn report(&self, seconds: u64) -> Report {
        let past = self.watch.past(self.home(), seconds);
        self.watch.report(&self.snapshot, self.home(), seconds, past)
    }
}

#[test]
fn a_report_has_each_minute_once() {
    let mut world = World::new();
    world.pass(150, LIMIT);
    let report = world.report(3600);
    let starts: Vec<_> = report.periods.iter().map(|period| period.start).collect();
    assert_eq!(starts, [START, START + 60, START + 120]);
    assert_eq!(report.periods[2].seconds, 30.0, "still running");
    let delivered: Vec<_> = report.periods.iter().map(|p| p.delivered_bytes_per_second).collect();
    // The first look is what the counters show from.
    assert!(delivered.iter().all(|rate| *rate >= LIMIT / 60 * 59), "{delivered:?}");
    assert_eq!((report.whole.kept, report.whole.broken), (15, 0));
    assert_eq!(report.whole.verdict, weir_api::Verdict::Kept);
    assert_eq!(report.resolution_seconds, 60);
    let quarters = world.report(2 * 24 * 3600);
    assert_eq!(quarters.resolution_seconds, 900);
    let requests = |report: &Report| report.periods.iter().map(|p| p.split.requests).sum::<u64>();
    assert_eq!(requests(&quarters), requests(&report));
    let seconds = world.report(30);
    assert_eq!((seconds.resolution_seconds, seconds.periods.len()), (1, 30));
}

#[test]
fn a_report_goes_back_before_a_restart() {
    let mut world = World::new();
    world.pass(90, LIMIT);
    let before: u64 = world.report(3600).periods.iter().map(|p| p.split.requests).sum();
    let mut world = world.restart();
    let after: u64 = world.report(3600).periods.iter().map(|p| p.split.requests).sum();
    // Nothing was looked at yet: the time is not known, and so is what lies in it.
    assert_eq!(after, before);
    world.pass(10, LIMIT);
    let report = world.report(3600);
    assert_eq!(report.periods.len(), 2, "the minute of the restart is one");
    let requests: u64 = report.periods.iter().map(|p| p.split.requests).sum();
    assert!(requests > before, "{requests}");
}

#[test]
fn verdicts_stand_for_what_was() {
    let mut world = World::new();
    world.pass(60, LIMIT);
    let home = world.home().id;
    let standing = world.watch.standing(home).unwrap();
    assert_eq!(standing.verdict, Verdict::Kept);
    assert!(standing.errors.iter().all(|error| error.unwrap().abs() < 0.02), "{standing:?}");
    world.pass(20, LIMIT / 10);
    let standing = world.watch.standing(home).unwrap();
    assert_eq!((standing.verdict, standing.errors[0]), (Verdict::NotDemanded, None));
    assert!(standing.errors[2].is_some(), "in the hour it was");
    assert!(world.watch.standing(VolumeId(999)).is_none());
}

#[test]
fn why_says_what_holds_a_volume_back() {
    let mut world = World::new();
    world.pass(60, LIMIT);
    let why = world.watch.why(&world.snapshot, &world.plane, world.home());
    assert_eq!((why.window.verdict, why.waiting), (weir_api::Verdict::Kept, 7));
    assert!(why.findings[0].starts_with("The contract is kept"), "{:?}", why.findings);
    assert!(why.findings[1].contains("98.8 % waiting for the contract"), "{:?}", why.findings);
    assert!(why.advice[0].contains("weir volume resize home"), "{:?}", why.advice);
    world.pass(60, FILED);
    let why = world.watch.why(&world.snapshot, &world.plane, world.home());
    assert_eq!(why.window.verdict, weir_api::Verdict::NotDemanded);
    assert!(why.findings[0].contains("the ceilings of files"), "{:?}", why.findings);
    assert!(why.advice[0].contains("--max-file-throughput"), "{:?}", why.advice);
    let idle = world.snapshot.volume_named("idle").unwrap();
    let why = world.watch.why(&world.snapshot, &world.plane, idle);
    assert_eq!(why.window.verdict, weir_api::Verdict::NotDemanded);
    assert_eq!(why.findings, ["The contract is not demanded: there were no requests."]);
    assert_eq!(why.window.limit_bytes_per_second, LIMIT);
}

#[test]
fn clients_are_advised_in_the_terms_of_their_protocols() {
    let mut world = World::new();
    world.pass(60, LIMIT / 10);
    let advice = |nfs, smb| {
        let mut volume = world.home().clone();
        volume.protocols = Protocols::new(nfs, smb).unwrap();
        let why = world.watch.why(&world.snapshot, &world.plane, &volume);
        assert_eq!(why.window.verdict, weir_api::Verdict::NotDemanded);
        assert!(why.advice[0].contains("too few requests in flight"), "{:?}", why.advice);
        why.advice[0].clone()
    };
    let [nfs, smb, both] = [advice(true, false), advice(false, true), advice(true, true)];
    for option in ["rsize", "wsize", "nconnect"] {
        assert!(nfs.contains(option) && both.contains(option) && !smb.contains(option), "{option}");
    }
    assert!(both.contains("over NFS"), "{both}");
}

/// The seconds of a load: how often each operation comes in a second, the share of the first
/// connection in percent, and the size of each transfer.
struct Made {
    operations: &'static [(&'static str, OpClass, u64)],
    first_percent: u64,
    bytes: u64,
    file_percent: u64,
    in_flight: u64,
}

impl Made {
    /// A load of 1,000 READs of 1 MiB in a second, which are spread well.
    const BALANCED: Self = Self {
        operations: &[("READ", OpClass::Read, 1000)],
        first_percent: 25,
        bytes: 1 << 20,
        file_percent: 1,
        in_flight: 1,
    };
}

impl World {
    /// Seconds in which `home` gets this load on four connections of two clients.
    fn load(&mut self, seconds: u64, made: &Made) {
        for _ in 0..seconds {
            let id = self.home().id.0;
            let is_data = |class| matches!(class, OpClass::Read | OpClass::Write);
            let each = made.operations.iter().copied();
            let data: u64 = each.clone().filter(|one| is_data(one.1)).map(|one| one.2).sum();
            let all: u64 = each.clone().map(|one| one.2).sum();
            {
                let mut uses = lock(&self.plane.1);
                let uses = uses.entry(id).or_default();
                uses.at = Mono(uses.at.0 + SECOND);
                uses.bytes += data * made.bytes;
                uses.latency_nanos += made.in_flight * SECOND;
                for (operation, class, count) in each {
                    let known = uses.operations.iter_mut().find(|one| one.operation == operation);
                    match known {
                        Some(known) => known.answered += count,
                        None => uses.operations.push(OperationCount {
                            protocol: "nfs3",
                            operation,
                            class,
                            answered: count,
                            failed: 0,
                        }),
                    }
                }
                if uses.connections.is_empty() {
                    uses.connections = (0..4).map(connection).collect();
                }
                for (one, percent) in uses.connections.iter_mut().zip([
                    made.first_percent,
                    100 - made.first_percent,
                    0,
                    0,
                ]) {
                    one.operations += all * percent / 100;
                    one.bytes += data * made.bytes * percent / 100;
                }
                uses.file =
                    FileShare { file: 1, at_least: data * made.file_percent / 100, of: data };
            }
            self.pass(1, if data > 0 { LIMIT / 10 } else { 0 });
        }
    }

    fn kinds(&self) -> Vec<&'static str> {
        let load = self.watch.load(&self.plane, self.home());
        load.kinds.into_iter().map(weir_api::LoadKind::word).collect()
    }
}

fn connection(number: u64) -> VolumeConnection {
    let address = std::net::Ipv4Addr::from_bits(0x0A00_0001 + u32::from(number > 1)).into();
    VolumeConnection { connection: number, address, protocol: "nfs", operations: 0, bytes: 0 }
}

#[test]
fn five_made_loads_are_named_rightly() {
    let metadata = Made {
        operations: &[
            ("LOOKUP", OpClass::Metadata, 500),
            ("GETATTR", OpClass::Metadata, 300),
            ("READ", OpClass::Read, 200),
        ],
        ..Made::BALANCED
    };
    let loads = [
        (Made::BALANCED, vec![], vec![]),
        (metadata, vec!["metadata-heavy"], vec!["80 % of the operations", "actimeo"]),
        (
            Made { first_percent: 100, ..Made::BALANCED },
            vec!["one-connection"],
            vec!["One connection of 10.0.0.1 has 100 %", "waits for one request"],
        ),
        (
            Made { file_percent: 95, ..Made::BALANCED },
            vec!["one-file"],
            vec!["One file has at least 95 %", "several files"],
        ),
        (
            Made { bytes: 4096, ..Made::BALANCED },
            vec!["small-requests"],
            vec!["4.0 KiB on average", "wsize"],
        ),
    ];
    for (made, kinds, said) in loads {
        let mut world = World::new();
        world.load(30, &made);
        assert_eq!(world.kinds(), kinds);
        let why = world.watch.why(&world.snapshot, &world.plane, world.home());
        let text = [why.findings.clone(), why.advice.clone()].concat().join("\n");
        for words in said {
            assert!(text.contains(words), "{words}: {text}");
        }
        // A finding for each kind, beside the headline, the latency, the hour and the summary.
        assert_eq!(why.findings.len(), 4 + 1 + kinds.len(), "{text}");
        let connections = if made.first_percent == 100 {
            "on 1 connection of 1 client"
        } else {
            "on 2 connections of 1 client"
        };
        assert!(text.contains(connections), "those without requests do not count: {text}");
        // Later the load is another one, and the old one is forgotten.
        world.load(20, &Made::BALANCED);
        assert!(world.kinds().is_empty(), "{kinds:?}");
    }
}

#[test]
fn a_load_is_told_by_name_and_by_client() {
    let mut world = World::new();
    let operations = &[("WRITE", OpClass::Write, 300), ("COMMIT", OpClass::Commit, 100)];
    let made = Made { first_percent: 30, bytes: 1000, file_percent: 0, ..Made::BALANCED };
    world.load(30, &Made { operations, in_flight: 7, ..made });
    let load = world.watch.load(&world.plane, world.home());
    assert!((10.0..=15.0).contains(&load.seconds), "{load:?}");
    let rates: Vec<_> =
        load.operations.iter().map(|one| (one.operation.as_str(), one.per_second)).collect();
    assert_eq!(rates, [("WRITE", 300.0), ("COMMIT", 100.0)]);
    assert_eq!((load.clients_total, load.connections_total, load.metadata_share), (1, 2, 0.0));
    assert_eq!(load.in_flight, 7.0);
    let client = &load.clients[0];
    assert_eq!((client.address.as_str(), client.protocol.as_str()), ("10.0.0.1", "nfs"));
    assert_eq!((client.connections, client.bytes_per_second), (2, 300_000));
    let activity = world.watch.activity(&world.snapshot, &world.plane);
    let home = &activity.volumes[0];
    assert_eq!((home.clients, home.connections, home.operations_per_second), (1, 2, 400.0));
    assert_eq!(home.kinds, load.kinds);
    let idle = world.watch.load(&world.plane, world.snapshot.volume_named("idle").unwrap());
    assert_eq!((idle.seconds, idle.small_below_bytes), (0.0, (16 << 10) + 1));
}

#[test]
fn requests_in_flight_are_those_of_all_operations() {
    let operations = &[("GETATTR", OpClass::Metadata, 5000)];
    let one_connection = Made { operations, first_percent: 100, ..Made::BALANCED };
    for (in_flight, said) in [(64, "nconnect=4"), (1, "waits for one request")] {
        let mut world = World::new();
        world.load(30, &Made { in_flight, ..one_connection });
        let why = world.watch.why(&world.snapshot, &world.plane, world.home());
        assert!(why.advice.iter().any(|text| text.contains(said)), "{said}: {:?}", why.advice);
        let counted = format!("{in_flight}.0 of them in the server");
        assert!(why.findings.iter().any(|text| text.contains(&counted)), "{:?}", why.findings);
    }
}

#[test]
fn marks_keep_connections_without_operations_once() {
    let mut world = World::new();
    world.load(30, &Made::BALANCED);
    {
        let board = lock(&world.watch.board);
        let marks = &board.volumes[&world.home().id].marks;
        // Two of the four connections have operations.
        assert_eq!(marks.sizes(), [2, 2, 4]);
    }
    // A connection that begins again has the operations since then, and not all of its own.
    for one in &mut lock(&world.plane.1).get_mut(&world.home().id.0).unwrap().connections {
        one.operations += 500;
    }
    let load = world.watch.load(&world.plane, world.home());
    assert_eq!((load.connections_total, load.clients_total), (4, 2));
    let of_second = load.clients.iter().find(|one| one.address == "10.0.0.2").unwrap();
    assert_eq!(of_second.operations_per_second, 1000.0 / load.seconds);
    world.load(30, &Made::BALANCED);
    let load = world.watch.load(&world.plane, world.home());
    assert_eq!(load.connections_total, 2, "and none if it has none: {load:?}");
}

/// Seconds in which `home` gets these operations on connections of these numbers.
fn metadata_on(world: &mut World, seconds: u64, of: &[(u64, u64)]) {
    for _ in 0..seconds {
        let id = world.home().id.0;
        {
            let mut uses = lock(&world.plane.1);
            let uses = uses.entry(id).or_default();
            uses.at = Mono(uses.at.0 + SECOND);
            if uses.operations.is_empty() {
                uses.operations.push(OperationCount {
                    protocol: "nfs3",
                    operation: "GETATTR",
                    class: OpClass::Metadata,
                    answered: 0,
                    failed: 0,
                });
            }
            for (number, count) in of {
                uses.operations[0].answered += count;
                if !uses.connections.iter().any(|one| one.connection == *number) {
                    uses.connections.push(connection(*number));
                }
                let mut known = uses.connections.iter_mut();
                let known = known.find(|one| one.connection == *number).unwrap();
                known.operations += count;
            }
        }
        world.pass(1, 0);
    }
}

#[test]
fn connections_opened_between_marks_have_all_their_operations() {
    // The layout on connection 0 makes the volume active; the load comes on connection 2, which is
    // another client's. Connection 1 is idle, and has some operations at the very end.
    let mut world = World::new();
    metadata_on(&mut world, 1, &[(0, 100), (1, 700)]);
    for seconds in 1..40 {
        metadata_on(&mut world, 1, &[(2, 1000)]);
        let load = world.watch.load(&world.plane, world.home());
        if load.seconds < 5.0 {
            continue;
        }
        let rates: Vec<_> = load.clients.iter().map(|one| one.operations_per_second).collect();
        assert_eq!(rates, [1000.0], "after {seconds} s: {load:?}");
        assert_eq!((load.operations_per_second, load.busiest_connection_share), (1000.0, 1.0));
        assert_eq!(load.kinds.len(), 2, "after {seconds} s: {:?}", load.kinds);
    }
    metadata_on(&mut world, 1, &[(1, 300), (2, 1000)]);
    let load = world.watch.load(&world.plane, world.home());
    let idle = load.clients.iter().find(|one| one.address == "10.0.0.1").unwrap();
    assert_eq!((load.connections_total, idle.operations_per_second), (2, 300.0 / load.seconds));
}

#[test]
fn the_first_moments_of_a_load_have_no_rates_and_no_kinds() {
    let mut world = World::new();
    let operations = &[("GETATTR", OpClass::Metadata, 1000)];
    let made = Made { operations, ..Made::BALANCED };
    // The first second makes the volume active, and its counts are those that later ones grow from.
    for seconds in 0..5 {
        world.load(1, &made);
        let load = world.watch.load(&world.plane, world.home());
        assert_eq!((load.seconds, load.operations_per_second), (f64::from(seconds), 0.0));
        assert!(load.kinds.is_empty() && load.operations.is_empty(), "{load:?}");
        let why = world.watch.why(&world.snapshot, &world.plane, world.home());
        assert_eq!(why.advice, Vec::<String>::new(), "nothing is known yet");
    }
    world.load(1, &made);
    let load = world.watch.load(&world.plane, world.home());
    assert_eq!((load.seconds, load.operations_per_second), (5.0, 1000.0));
    assert_eq!(world.kinds(), ["metadata-heavy"]);
}

#[test]
fn advice_knows_whether_the_metadata_cache_is_off_by_configuration() {
    let mut world = World::new();
    let operations = &[("GETATTR", OpClass::Metadata, 1000)];
    world.load(12, &Made { operations, ..Made::BALANCED });
    let home = world.home().clone();
    let mut is_told_off = |configured, own| {
        world.watch.metadata_cache = configured;
        let volume = Volume { terms: Terms { metadata_cache: own, ..home.terms }, ..home.clone() };
        let why = world.watch.why(&world.snapshot, &world.plane, &volume);
        why.advice.iter().any(|text| text.contains("weir volume set home --metadata-cache on"))
    };
    assert!(is_told_off(false, None) && is_told_off(true, Some(false)));
    assert!(!is_told_off(true, None) && !is_told_off(false, Some(true)));
}

#[test]
fn a_volume_at_the_ceiling_of_its_level_is_advised_to_raise_that() {
    let mut world = World::new();
    world.pass(60, LIMIT);
    let catalog = Catalog::open(world.directory.path()).unwrap();
    let ceiling = Some(BytesPerSecond(LIMIT));
    let level = NewLevel { rate_per_tib: BytesPerSecond(2 * LIMIT), volume_ceiling: ceiling };
    catalog.create_level("capped", level, Mode::Commit).unwrap();
    let change = PoolChange { level: Some("capped".to_owned()), ..PoolChange::default() };
    catalog.change_pool("pool", &change, Mode::Commit).unwrap();
    let advice = |snapshot: &Snapshot| {
        let home = snapshot.volume_named("home").unwrap();
        world.watch.why(snapshot, &world.plane, home).advice[0].clone()
    };
    let text = advice(&catalog.snapshot());
    assert!(text.contains("weir level set capped --volume-ceiling"), "{text}");
    assert!(text.contains("weir pool set pool --level") && !text.contains("resize"), "{text}");
    // Below the ceiling, the quota decides again.
    let higher = LevelChange { volume_ceiling: Some(None), ..LevelChange::default() };
    catalog.change_level("capped", higher, Mode::Commit).unwrap();
    assert!(advice(&catalog.snapshot()).contains("weir volume resize home"));
}

#[test]
fn a_volume_with_metadata_operations_alone_is_active() {
    let mut world = World::new();
    let operations = &[("GETATTR", OpClass::Metadata, 50)];
    world.load(12, &Made { operations, ..Made::BALANCED });
    let why = world.watch.why(&world.snapshot, &world.plane, world.home());
    assert_eq!(why.findings[0], "The contract is not demanded: there were no READs and WRITEs.");
    assert_eq!(world.kinds(), ["metadata-heavy"]);
    assert_eq!(world.watch.activity(&world.snapshot, &world.plane).volumes.len(), 1);
    assert!(world.report(3600).periods.is_empty(), "no contract is judged by them");
    world.pass(130, 0);
    assert!(world.watch.activity(&world.snapshot, &world.plane).volumes.is_empty());
    assert_eq!(world.watch.load(&world.plane, world.home()).seconds, 0.0, "its counts are dropped");
}

#[test]
fn only_those_in_use_are_active() {
    let mut world = World::new();
    world.pass(5, LIMIT);
    let activity = world.watch.activity(&world.snapshot, &world.plane);
    assert_eq!((activity.served, activity.volumes.len()), (2, 1));
    assert_eq!(activity.volumes[0].volume, "home");
    assert_eq!(activity.volumes[0].second.delivered_bytes_per_second, LIMIT);
    world.pass(130, 0);
    assert!(world.watch.activity(&world.snapshot, &world.plane).volumes.is_empty());
}

#[test]
fn a_volume_that_is_gone_is_forgotten() {
    let mut world = World::new();
    world.pass(5, LIMIT);
    let home = world.home().id;
    lock(&world.plane.0).clear();
    world.watch.look(&world.plane, world.now + 1);
    assert!(world.watch.standing(home).is_none());
}

#[test]
fn a_signature_fits_the_report_and_its_key() {
    let world = World::new();
    let signer = Signer::new(&[9; 32]).unwrap();
    let signed = signer.sign(&world.report(60)).unwrap();
    assert_eq!(signed.verify(Some(&signer.public_key())).unwrap(), world.report(60));
}

#[test]
fn a_volume_that_leaves_leaves_its_last_minute_behind() {
    let mut world = World::new();
    // A minute and a half, so that a minute is under way.
    world.pass(90, LIMIT);
    let before: u64 = world.report(3600).periods.iter().map(|p| p.split.requests).sum();
    lock(&world.plane.0).clear();
    let rows = world.watch.look(&world.plane, world.now + 1);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].0, rows[0].1.start), (world.home().id, START + 60));
    assert!(world.watch.recorder.write(rows, world.now + 1).is_empty());
    let after: u64 = world.report(3600).periods.iter().map(|p| p.split.requests).sum();
    assert_eq!(after, before, "nothing is lost");
}

#[test]
fn recent_windows_begin_when_the_volume_comes_here() {
    let mut world = World::new();
    let lengths = |world: &World| {
        let why = world.watch.why(&world.snapshot, &world.plane, world.home());
        (why.minute.seconds, why.hour.seconds, why.hour.delivered_bytes_per_second > LIMIT / 10 * 9)
    };
    let elsewhere = |world: &mut World, seconds| {
        lock(&world.plane.0).clear();
        for _ in 0..seconds {
            world.now += 1;
            world.watch.look(&world.plane, world.now);
        }
    };
    elsewhere(&mut world, 1800);
    world.pass(40, LIMIT);
    assert_eq!(lengths(&world), (40.0, 40.0, true));
    world.pass(80, LIMIT);
    assert_eq!(lengths(&world), (60.0, 120.0, true));
    elsewhere(&mut world, 600);
    world.pass(50, LIMIT);
    assert_eq!(lengths(&world), (50.0, 50.0, true), "it came back");
    world.pass(3700, LIMIT);
    assert_eq!(lengths(&world), (60.0, 3600.0, true));
}

#[test]
fn a_minute_under_way_stays_in_reports_when_another_volume_leaves() {
    let mut world = World::new();
    world.pass(90, LIMIT);
    let before = world.report(3600).periods;
    let minute = Period { start: START + 60, ..Period::default() };
    let rows = vec![(VolumeId(77), minute)];
    assert!(world.watch.recorder.write(rows, world.now).is_empty());
    assert_eq!(world.report(3600).periods, before);
}
