//! The log of calls: what the next process knows of each call that changes names, wherever the
//! process before ended.
//!
//! A process that is killed is one whose store is opened a second time and left alone from then on.

use crate::common::*;
use rustix::io::Errno;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use weir_core::limits::{CALLS_CLIENT_MAX, CALLS_VOLUME_MAX};
use weir_core::store::{CreateHow, MakeKind};
use weir_core::{CallId, FsError, FsResult, Name, ObjectKey, SetAttr, Store};
use weir_store::testing::{Fault, Kernel, Kind, PowerCut, Rule, When};
use weir_store::{Durability, LocalStore, Options, Pool, StoreControl};

const CLIENT: u128 = 0xffff_0a00_0001;

fn call(xid: u32) -> CallId {
    CallId { client: CLIENT, xid, procedure: 8, print: u64::from(xid) }
}

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

/// The next process's knowledge of a call: the call made its change, and the object it made.
fn known(store: &LocalStore, call: CallId) -> Option<Option<ObjectKey>> {
    let all = store.remembered();
    let mut of_call = all.iter().filter(|known| known.call == call);
    let made = of_call.next().map(|known| known.made);
    assert!(of_call.next().is_none(), "known once");
    made
}

const SET: SetAttr = SetAttr {
    mode: Some(0o644),
    uid: None,
    gid: None,
    size: None,
    atime: weir_core::SetTime::Keep,
    mtime: weir_core::SetTime::Keep,
};

/// Makes a pipe in the top directory.
fn pipe(store: &LocalStore, text: &str) -> ObjectKey {
    let (root, cred) = (store.root(), ROOT);
    block_on(store.make(&root, name(text), &MakeKind::Fifo, &SET, &cred)).unwrap().object.key()
}

/// A change of names by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Create(CreateHow),
    Mkdir,
    Symlink,
    Fifo,
    Link,
    Remove,
    Rmdir,
    Rename,
    RenameOver,
    RenameAway,
}

const ALL: [Change; 12] = [
    Change::Create(CreateHow::Guarded(SET)),
    Change::Create(CreateHow::Unchecked(SET)),
    Change::Create(CreateHow::Unchecked(SetAttr { size: Some(5), ..SET })),
    Change::Create(CreateHow::Exclusive([7; 8])),
    Change::Mkdir,
    Change::Symlink,
    Change::Fifo,
    Change::Link,
    Change::Remove,
    Change::Rmdir,
    Change::Rename,
    Change::RenameOver,
];

impl Change {
    /// Makes the objects that the change needs.
    fn prepare(self, bed: &Bed) {
        let root = bed.root();
        match self {
            Self::Create(_) | Self::Mkdir | Self::Symlink | Self::Fifo => {}
            Self::Rmdir => drop(bed.make(&root, b"old", &MakeKind::Directory).unwrap()),
            Self::Link | Self::Remove | Self::Rename => {
                bed.create(&root, b"old", 0o644, &ROOT).unwrap();
            }
            Self::RenameOver => {
                bed.create(&root, b"old", 0o644, &ROOT).unwrap();
                bed.create(&root, b"new", 0o644, &ROOT).unwrap();
            }
            Self::RenameAway => {
                bed.create(&root, b"old", 0o644, &ROOT).unwrap();
                bed.make(&root, b"dir", &MakeKind::Directory).unwrap();
            }
        }
    }

    /// The system call that makes the change.
    fn kind(self) -> Kind {
        match self {
            Self::Create(CreateHow::Exclusive(_)) | Self::Link => Kind::Link,
            Self::Create(CreateHow::Unchecked(set)) if set.size.is_some() => Kind::Link,
            Self::Create(_) | Self::Mkdir | Self::Symlink | Self::Fifo => Kind::Make,
            Self::Remove | Self::Rmdir => Kind::Remove,
            Self::Rename | Self::RenameOver | Self::RenameAway => Kind::Rename,
        }
    }

    /// Makes the change. Returns the key of the object it made.
    fn run(self, store: &LocalStore) -> FsResult<Option<ObjectKey>> {
        let root = store.root();
        let make = |kind: MakeKind| {
            let made = block_on(store.make(&root, name("new"), &kind, &SET, &ROOT))?;
            Ok(Some(made.object.key()))
        };
        let old = || block_on(store.lookup(&root, name("old")));
        match self {
            Self::Create(how) => {
                let made = block_on(store.create(&root, name("new"), &how, &ROOT))?;
                Ok(Some(made.object.key()))
            }
            Self::Mkdir => make(MakeKind::Directory),
            Self::Symlink => make(MakeKind::Symlink(b"target".to_vec())),
            Self::Fifo => make(MakeKind::Fifo),
            Self::Link => {
                let old = old()?.0;
                block_on(store.link(&old, &root, name("new"), &ROOT)).map(|_| None)
            }
            Self::Remove => block_on(store.remove(&root, name("old"), &ROOT)).map(|_| None),
            Self::Rmdir => block_on(store.remove_dir(&root, name("old"), &ROOT)).map(|_| None),
            Self::Rename | Self::RenameOver => {
                block_on(store.rename(&root, name("old"), &root, name("new"), &ROOT)).map(|_| None)
            }
            Self::RenameAway => {
                let dir = block_on(store.lookup(&root, name("dir")))?.0;
                block_on(store.rename(&root, name("old"), &dir, name("new"), &ROOT)).map(|_| None)
            }
        }
    }
}

fn both(options: &Options) -> [Options; 2] {
    [Durability::Power, Durability::Process]
        .map(|namespace_durability| Options { namespace_durability, ..options.clone() })
}

/// Runs `case` with a new volume for each change, in both modes, everywhere.
fn each(case: impl Fn(&Bed, Change)) {
    for place in places() {
        for options in both(&options()) {
            for (number, change) in ALL.into_iter().chain([Change::RenameAway]).enumerate() {
                let directory = format!("{:?}-{number}", options.namespace_durability);
                let bed = Bed::open(place.path().join(directory), options.clone(), place.name);
                eprintln!("{} {:?} {change:?}", place.name, options.namespace_durability);
                change.prepare(&bed);
                case(&bed, change);
            }
        }
    }
}

#[test]
fn a_change_that_was_made_is_known_to_the_next_process_and_the_one_after() {
    each(|bed, change| {
        let made = change.run(&bed.store.for_call(call(1))).unwrap();
        // The change is known although its end is written only with the next record.
        let second = bed.reopen();
        assert_eq!(known(&second, call(1)), Some(made));
        let third = bed.reopen();
        assert_eq!(known(&third, call(1)), Some(made));
        assert_eq!(known(&third, call(2)), None);
    });
}

#[test]
fn a_change_is_known_whatever_becomes_of_its_names_later() {
    each(|bed, change| {
        let made = change.run(&bed.store.for_call(call(1))).unwrap();
        let root = bed.root();
        // By calls and without, as others may.
        for (xid, new) in [(2, "new"), (3, "old")] {
            let store = bed.store.for_call(call(xid));
            let gone = block_on(store.remove(&root, name(new), &ROOT)).is_ok()
                || block_on(store.remove_dir(&root, name(new), &ROOT)).is_ok();
            if gone {
                bed.create(&root, new.as_bytes(), 0o600, &ROOT).unwrap();
            }
        }
        assert_eq!(known(&bed.reopen(), call(1)), Some(made));
    });
}

#[test]
fn a_change_that_failed_or_was_forgotten_is_not_known() {
    each(|bed, change| {
        change.run(&bed.store.for_call(call(1))).unwrap();
        bed.store.forget_calls(&[call(1)]);
        assert_eq!(known(&bed.reopen(), call(1)), None);
        let again = change.run(&bed.store.for_call(call(2)));
        // These may be repeated.
        if !matches!(change, Change::Create(CreateHow::Unchecked(_) | CreateHow::Exclusive(_))) {
            again.unwrap_err();
        }
        let next = bed.reopen();
        assert_eq!(known(&next, call(2)), None);
        assert_eq!(known(&bed.reopen(), call(2)), None);
    });
}

#[test]
fn a_clean_stop_keeps_what_is_known() {
    each(|bed, change| {
        let made = change.run(&bed.store.for_call(call(1))).unwrap();
        bed.store.close().unwrap();
        assert_eq!(known(&bed.reopen(), call(1)), Some(made));
    });
}

type Job = Box<dyn FnOnce() + Send>;

/// A volume under a kernel that obeys rules, and a thread that makes changes.
struct Held {
    kernel: Kernel,
    bed: Bed,
    jobs: Sender<Job>,
    _directory: tempfile::TempDir,
}

impl Held {
    fn new(namespace_durability: Durability, change: Change) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let volume = directory.path().join("volume");
        let (kernel, (bed, jobs)) = Kernel::under(|| {
            let pool = Pool::new(16).unwrap();
            let options = Options { namespace_durability, pool, ..options() };
            let bed = Bed::open(volume, options, "temp");
            change.prepare(&bed);
            // The call makes sure that the log exists already.
            let store = bed.store.for_call(call(9));
            pipe(&store, "first");
            let (jobs, coming) = channel::<Job>();
            std::thread::spawn(move || coming.into_iter().for_each(|job| job()));
            (bed, jobs)
        })
        .unwrap();
        Self { kernel, bed, jobs, _directory: directory }
    }

    /// Begins `change` as call 1, and kills the process where a rule strikes. Returns the next
    /// process's knowledge of the call, and the object that the change would have made.
    fn killed(
        &self,
        change: Change,
        rule: Rule,
    ) -> (Option<Option<ObjectKey>>, FsResult<Option<ObjectKey>>) {
        let id = self.kernel.add(rule);
        let (store, (done, outcome)) = (self.bed.store.for_call(call(1)), channel());
        self.jobs.send(Box::new(move || done.send(change.run(&store)).unwrap())).unwrap();
        self.kernel.wait_for(id, 1);
        let known = known(&self.bed.reopen(), call(1));
        self.kernel.lift(id);
        (known, outcome.recv().unwrap())
    }
}

/// Changes with every durability, and the place of the volume's log.
fn each_held(durabilities: &[Durability], case: impl Fn(&Held, Change)) {
    for durability in durabilities {
        for change in ALL.into_iter().chain([Change::RenameAway]) {
            eprintln!("{durability:?} {change:?}");
            case(&Held::new(*durability, change), change);
        }
    }
}

const BOTH: [Durability; 2] = [Durability::Power, Durability::Process];

fn log(held: &Held) -> std::path::PathBuf {
    held.bed.directory.join("meta/calls")
}

#[test]
fn a_call_that_was_killed_before_its_intent_was_on_record_is_not_known() {
    each_held(&BOTH, |held, change| {
        let rule = Rule::new(&[Kind::Write], log(held), Fault::Hold);
        assert_eq!(held.killed(change, rule).0, None);
    });
}

#[test]
fn a_call_that_was_killed_before_its_change_is_not_known() {
    each_held(&BOTH, |held, change| {
        let rule = Rule::new(&[change.kind()], held.bed.path(), Fault::Hold);
        assert_eq!(held.killed(change, rule).0, None);
    });
}

#[test]
fn a_call_that_was_killed_after_its_change_is_known_by_the_names() {
    // The third record says that the change was made.
    each_held(&[Durability::Power], |held, change| {
        let rule = Rule::new(&[Kind::Write], log(held), Fault::Hold).when(When::Nth(3));
        let (known, made) = held.killed(change, rule);
        assert_eq!(known, Some(made.unwrap()));
    });
}

#[test]
fn a_call_that_was_killed_while_its_change_was_synced_is_known() {
    each_held(&[Durability::Power], |held, change| {
        let rule = Rule::new(&[Kind::Sync], held.bed.path(), Fault::Hold);
        let (known, made) = held.killed(change, rule);
        assert_eq!(known, Some(made.unwrap()));
    });
}

impl Change {
    /// Has the change been made?
    fn is_there(self, bed: &Bed) -> bool {
        let there = |name: &[u8]| bed.lookup(&bed.root(), name).is_ok();
        match self {
            Self::Remove | Self::Rmdir | Self::Rename | Self::RenameOver => !there(b"old"),
            _ => there(b"new"),
        }
    }
}

/// Cuts the power with one of the syncs of `change`. Returns false if it has fewer.
fn cut(change: Change, syncs: u64) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let volume = directory.path().join("volume");
    let power_mode = Options { namespace_durability: Durability::Power, ..options() };
    let bed = Bed::open(volume.clone(), power_mode.clone(), "temp");
    change.prepare(&bed);
    if change == Change::Remove {
        // The second link lets the cut bring the name back with the same object.
        let old = bed.lookup(&bed.root(), b"old").unwrap();
        block_on(bed.store.link(&old, &bed.root(), name("other"), &ROOT)).unwrap();
    }
    pipe(&bed.store.for_call(call(9)), "first");
    bed.store.close().unwrap();
    drop(bed);
    let power = Arc::new(PowerCut::new(&volume).unwrap());
    let (_kernel, outcome) = Kernel::with_power(&power, || {
        let options = Options { pool: Pool::new(16).unwrap(), ..power_mode.clone() };
        let store = LocalStore::open(&volume, &options).unwrap();
        pipe(&store.for_call(call(8)), "second");
        power.cut_after(syncs);
        change.run(&store.for_call(call(1)))
    })
    .unwrap();
    let in_time = power.is_cut();
    let answered = outcome.is_ok() && !in_time;
    power.cut();
    power.restore().unwrap();
    let bed = Bed::open(volume, power_mode, "temp");
    let known = known(&bed.store, call(1));
    eprintln!("{change:?}, {syncs} syncs: {known:?}");
    assert_eq!(known.is_some(), change.is_there(&bed), "known, and there");
    assert!(known.is_some() || !answered, "what was answered is there");
    match known {
        Some(made) => assert_eq!(made, outcome.unwrap()),
        None => drop(change.run(&bed.store.for_call(call(1))).unwrap()),
    }
    in_time
}

#[test]
fn after_a_power_cut_a_change_is_known_just_where_it_is_there() {
    // A directory that is gone can't be brought back here as the object that it was, by which the
    // store tells that it is there; `make crash` cuts the power of real devices for that.
    for change in ALL.into_iter().filter(|change| *change != Change::Rmdir) {
        let syncs = (0..20).take_while(|syncs| cut(change, *syncs)).count();
        assert!(syncs >= 2, "its intent, and the change");
    }
}

#[test]
fn a_log_that_can_not_be_written_holds_up_nobody_and_says_nothing() {
    each_held(&BOTH, |held, change| {
        let rule = Rule::new(&[Kind::Write], log(held), Fault::Fail(Errno::IO));
        let id = held.kernel.add(rule);
        let (store, (done, outcome)) = (held.bed.store.for_call(call(1)), channel());
        held.jobs.send(Box::new(move || done.send(change.run(&store)).unwrap())).unwrap();
        outcome.recv().unwrap().unwrap();
        assert!(held.kernel.hits(id) > 0);
        let next = held.bed.reopen();
        assert_eq!(known(&next, call(1)), None);
        assert_eq!(next.remembered(), [], "nor of others, whose names may have changed since");
    });
}

#[test]
fn without_room_for_the_log_names_are_changed_without_it() {
    for namespace_durability in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let volume = directory.path().join("volume");
        let (kernel, (store, jobs)) = Kernel::under(|| {
            let options =
                Options { namespace_durability, pool: Pool::new(16).unwrap(), ..options() };
            let store = LocalStore::open(&volume, &options).unwrap();
            let (jobs, coming) = channel::<Job>();
            std::thread::spawn(move || coming.into_iter().for_each(|job| job()));
            (store, jobs)
        })
        .unwrap();
        let full = Fault::Fail(Errno::NOSPC);
        let id = kernel.add(Rule::new(&[Kind::Write], volume.join("meta/calls"), full));
        for (xid, change) in [(1, Change::Mkdir), (2, Change::Rmdir)] {
            let (store, (done, outcome)) = (store.for_call(call(xid)), channel());
            let run = move || match change {
                Change::Mkdir => change.run(&store).map(drop),
                _ => block_on(store.remove_dir(&store.root(), name("new"), &ROOT)).map(drop),
            };
            jobs.send(Box::new(move || done.send(run()).unwrap())).unwrap();
            outcome.recv().unwrap().unwrap();
        }
        assert_eq!(kernel.hits(id), 1, "it is not tried again at once");
        assert_eq!(std::fs::metadata(volume.join("meta/calls")).unwrap().len(), 0);
    }
}

#[test]
fn each_client_has_its_last_calls_whatever_strangers_do() {
    let directory = tempfile::tempdir().unwrap();
    let bed = Bed::open(directory.path().join("volume"), options(), "temp");
    let root = bed.root();
    let victim = |xid| CallId { client: 1 << 64, ..call(xid) };
    for xid in 0..100 {
        let store = bed.store.for_call(victim(xid));
        pipe(&store, &format!("victim-{xid}"));
    }
    // One network of 64 bits, and addresses of their own; enough to fill the file several times.
    for number in 0..20_000u32 {
        let client = match number % 16 {
            0..4 => u128::from(2 + number % 16) << 64,
            _ => 1 << 90 | u128::from(number % 1000),
        };
        let store = bed.store.for_call(CallId { client, ..call(number) });
        pipe(&store, "x");
        block_on(bed.store.for_call(CallId { client, ..call(number + 1_000_000) }).remove(
            &root,
            name("x"),
            &ROOT,
        ))
        .unwrap();
    }
    let size = std::fs::metadata(bed.directory.join("meta/calls")).unwrap();
    assert_eq!((size.len(), size.mode() & 0o7777), (2 << 20, 0o600));
    let next = bed.reopen();
    for xid in 0..100 {
        assert!(known(&next, victim(xid)).is_some(), "{xid}");
    }
    let all = next.remembered();
    assert!(all.len() <= CALLS_VOLUME_MAX, "{}", all.len());
    let of = |client: u128| all.iter().filter(|known| known.call.client == client).count();
    assert!((2..6).all(|number| of(number << 64) <= CALLS_CLIENT_MAX));
}

#[test]
fn two_threads_leave_a_log_of_everything_they_did() {
    for options in both(&options()) {
        let directory = tempfile::tempdir().unwrap();
        let bed = Bed::open(directory.path().join("volume"), options, "temp");
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let bed = &bed;
                scope.spawn(move || {
                    for number in 0..50 {
                        let id = CallId { client: thread.into(), ..call(number) };
                        pipe(&bed.store.for_call(id), &format!("{thread}-{number}"));
                    }
                });
            }
        });
        assert_eq!(bed.reopen().remembered().len(), 200);
    }
}

#[test]
fn a_volume_at_rest_gives_the_space_back_once_nothing_is_to_be_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let bed = Bed::open(directory.path().join("volume"), options(), "temp");
    let log = bed.directory.join("meta/calls");
    assert!(!log.exists(), "free where no names change");
    Change::Mkdir.run(&bed.store.for_call(call(1))).unwrap();
    bed.store.release_idle();
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 2 << 20);
    bed.store.forget_calls(&[call(1)]);
    bed.store.release_idle();
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    let made = Change::Symlink.run(&bed.store.for_call(call(2)));
    assert_eq!(made.unwrap_err(), FsError::Exists);
    let key = pipe(&bed.store.for_call(call(3)), "other");
    assert_eq!(known(&bed.reopen(), call(3)), Some(Some(key)));
}

#[test]
fn a_log_that_is_damaged_or_of_another_volume_is_no_obstacle() {
    let directory = tempfile::tempdir().unwrap();
    let bed = Bed::open(directory.path().join("volume"), options(), "temp");
    Change::Mkdir.run(&bed.store.for_call(call(1))).unwrap();
    bed.store.close().unwrap();
    let log = bed.directory.join("meta/calls");
    let good = std::fs::read(&log).unwrap();
    let other = directory.path().join("other");
    drop(Bed::open(other.clone(), options(), "temp"));
    std::fs::write(other.join("meta/calls"), &good).unwrap();
    assert_eq!(Bed::open(other, options(), "temp").store.remembered(), []);
    for damaged in [&[][..], &good[..5000], &[0xff; 2 << 20]] {
        std::fs::write(&log, damaged).unwrap();
        let next = bed.reopen();
        assert_eq!(next.remembered(), []);
        next.close().unwrap();
    }
}
