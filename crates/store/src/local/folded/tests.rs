//! The index of a directory's names beside changes of all kinds.

use super::*;
use crate::{Descriptors, Durability, Options, Pool};
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Wake, Waker};
use weir_core::rng::step;
use weir_core::store::{CreateHow, MakeKind, Replace};
use weir_core::testing::block_on;
use weir_core::{Credentials, SetAttr, Store};

const ROOT: Credentials = Credentials::ROOT;

fn store(directory: &tempfile::TempDir, metadata_cache: bool) -> LocalStore {
    let options = Options {
        quota_bytes: 1 << 30,
        namespace_durability: Durability::Process,
        metadata_cache,
        cached_objects_max: 1000,
        descriptors: Descriptors::new(4096),
        pool: Pool::new(16).unwrap(),
    };
    LocalStore::open(&directory.path().join("volume"), &options).unwrap()
}

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn create(store: &LocalStore, dir: &Arc<Inode>, text: &str) -> Arc<Inode> {
    let how = CreateHow::Guarded(SetAttr::default());
    block_on(store.create(dir, name(text), &how, &ROOT)).unwrap().object
}

fn find(store: &LocalStore, dir: &Arc<Inode>, text: &str) -> FsResult<String> {
    let found = block_on(store.lookup_folded(dir, name(text)))?;
    let (named, _) = block_on(store.lookup(dir, Name::new(&found.name).unwrap())).unwrap();
    assert_eq!(named.serial, found.object.serial, "the name leads to the object");
    Ok(String::from_utf8(found.name.into_vec()).unwrap())
}

fn is_ready(dir: &Inode) -> bool {
    matches!(&*dir.folded().unwrap().state.lock(), State::Ready(_))
}

/// The directory's index, as if it were being built.
fn begin_building(store: &LocalStore, dir: &Arc<Inode>) -> Arc<Folded> {
    let volume = &store.0;
    let new = || Folded::new(Arc::clone(&volume.index_memory), Arc::clone(&volume.lane));
    let folded = Arc::clone(dir.extras().folded.get_or_init(new));
    assert!(folded.join(promise().0));
    folded
}

#[test]
fn every_kind_of_change_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, true);
    let root = store.root();
    create(&store, &root, "First");
    assert_eq!(find(&store, &root, "FIRST").as_deref(), Ok("First"));
    assert!(is_ready(&root));
    let object = create(&store, &root, "Second");
    assert_eq!(find(&store, &root, "second").as_deref(), Ok("Second"));
    block_on(store.link(&object, &root, name("Third"), &ROOT)).unwrap();
    assert_eq!(find(&store, &root, "tHIRD").as_deref(), Ok("Third"));
    let (set, kind) = (SetAttr::default(), MakeKind::Directory);
    let dir = block_on(store.make(&root, name("Dir"), &kind, &set, &ROOT)).unwrap().object;
    assert_eq!(find(&store, &root, "dIR").as_deref(), Ok("Dir"));
    assert_eq!(find(&store, &dir, "fourth"), Err(FsError::NotFound));
    block_on(Store::rename(&store, &root, name("Third"), &dir, name("Fourth"), &ROOT)).unwrap();
    assert_eq!(find(&store, &root, "THIRD"), Err(FsError::NotFound));
    assert_eq!(find(&store, &dir, "fourth").as_deref(), Ok("Fourth"));
    let (from, to) = ((&root, name("Second")), (&root, name("SECOND")));
    block_on(store.rename_this(&object, from, to, Replace::No, &ROOT)).unwrap();
    assert_eq!(find(&store, &root, "second").as_deref(), Ok("SECOND"));
    block_on(Store::remove(&store, &root, name("First"), &ROOT)).unwrap();
    assert_eq!(find(&store, &root, "FIRST"), Err(FsError::NotFound));
    block_on(store.remove_this(&dir, name("Fourth"), &object, &ROOT)).unwrap();
    assert_eq!(find(&store, &dir, "FOURTH"), Err(FsError::NotFound));
    block_on(Store::remove_dir(&store, &root, name("Dir"), &ROOT)).unwrap();
    assert_eq!(find(&store, &root, "dir"), Err(FsError::NotFound));
    assert!(is_ready(&root), "it was built once");
}

#[test]
fn of_several_names_the_one_asked_for_comes_first_and_then_the_first_by_its_bytes() {
    for metadata_cache in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory, metadata_cache);
        let root = store.root();
        for text in ["aB", "Ab", "ab"] {
            create(&store, &root, text);
        }
        for _ in 0..2 {
            let found = ["AB", "ab", "aB"].map(|text| find(&store, &root, text).unwrap());
            assert_eq!(found, ["Ab", "ab", "aB"]);
        }
        block_on(Store::remove(&store, &root, name("Ab"), &ROOT)).unwrap();
        assert_eq!(find(&store, &root, "Ab").as_deref(), Ok("aB"));
        assert_eq!(find(&store, &root, "..").as_deref(), Ok(".."));
    }
}

#[test]
fn a_change_during_the_building_is_not_lost_whether_the_listing_has_it_or_not() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, true);
    let root = store.root();
    for text in ["Goes", "Goes and comes", "Moves"] {
        create(&store, &root, text);
    }
    let folded = begin_building(&store, &root);
    let before = scan::listed(&store.0, &root, &store.0.index_memory).unwrap().ok().unwrap();
    for text in ["Goes", "Goes and comes"] {
        block_on(Store::remove(&store, &root, name(text), &ROOT)).unwrap();
    }
    for text in ["Comes", "Comes and goes", "Goes and comes"] {
        create(&store, &root, text);
    }
    block_on(Store::remove(&store, &root, name("Comes and goes"), &ROOT)).unwrap();
    block_on(Store::rename(&store, &root, name("Moves"), &root, name("Moved"), &ROOT)).unwrap();
    let after = scan::listed(&store.0, &root, &store.0.index_memory).unwrap().ok().unwrap();
    let check = || {
        let all = ["GOES", "GOES AND COMES", "COMES", "COMES AND GOES", "MOVES", "MOVED"];
        let found = all.map(|text| find(&store, &root, text).ok());
        let there = ["Goes and comes", "Comes", "Moved"].map(|text| Some(text.to_owned()));
        let [back, new, moved] = there;
        assert_eq!(found, [None, back, new, None, None, moved]);
        assert!(is_ready(&root));
    };
    folded.put_into_use(before).unwrap();
    check();
    // The same listing and journal once more, with a listing that had it all.
    let journal = {
        let mut journal = Journal::new(&store.0.index_memory);
        for (count, (text, there)) in [("Goes", false), ("Comes", true)].into_iter().enumerate() {
            journal.push(text.as_bytes(), there, count as u64);
        }
        journal
    };
    folded.invalidate();
    let folded = begin_building(&store, &root);
    if let State::Building(building) = &mut *folded.state.lock() {
        building.journal = journal;
    }
    folded.put_into_use(after).unwrap();
    check();
}

#[test]
fn many_changes_during_the_building_are_made_up_for_in_parts() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, true);
    let root = store.root();
    let folded = begin_building(&store, &root);
    let before = scan::listed(&store.0, &root, &store.0.index_memory).unwrap().ok().unwrap();
    for number in 0..LAST_CHANGES_MAX + 10 {
        create(&store, &root, &format!("n{number}"));
    }
    folded.put_into_use(before).unwrap();
    for number in 0..LAST_CHANGES_MAX + 10 {
        assert_eq!(find(&store, &root, &format!("N{number}")), Ok(format!("n{number}")));
    }
    assert!(is_ready(&root));
}

#[test]
fn a_directory_that_is_too_large_for_the_memory_is_listed() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, true);
    let root = store.root();
    let memory = IndexMemory::new(2000);
    let folded = Folded::new(Arc::clone(&memory), Arc::clone(&store.0.lane));
    root.extras().folded.set(folded).unwrap();
    create(&store, &root, "Small");
    assert_eq!(find(&store, &root, "SMALL").as_deref(), Ok("Small"));
    assert!(is_ready(&root) && memory.taken() > 0);
    for number in 0..300 {
        create(&store, &root, &format!("n{number}"));
    }
    // It has grown past the memory, and is dropped for that in the pool.
    while is_ready(&root) {
        std::thread::yield_now();
    }
    assert_eq!(memory.taken(), 0);
    assert_eq!(find(&store, &root, "N299").as_deref(), Ok("n299"));
    assert_eq!(find(&store, &root, "N300"), Err(FsError::NotFound));
    let too_large = matches!(&*root.folded().unwrap().state.lock(), State::TooLarge { gone: 0 });
    assert!(too_large);
    block_on(Store::remove(&store, &root, name("n299"), &ROOT)).unwrap();
    assert_eq!(find(&store, &root, "N299"), Err(FsError::NotFound));
    assert_eq!(find(&store, &root, "small").as_deref(), Ok("Small"));
}

#[test]
fn indexes_that_are_built_at_once_share_the_memory() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, true);
    let root = store.root();
    for number in 0..300 {
        create(&store, &root, &format!("n{number}"));
    }
    let memory = IndexMemory::new(20_000);
    let folded = Folded::new(Arc::clone(&memory), Arc::clone(&store.0.lane));
    root.extras().folded.set(folded).unwrap();
    let other = scan::listed(&store.0, &root, &memory).unwrap().ok().unwrap();
    let one = memory.taken();
    assert!(one > other.index.bytes() && 2 * one > 20_000, "{one}");
    let second = scan::listed(&store.0, &root, &memory).unwrap();
    assert!(matches!(second, Err(Unusable::NoMemory)), "while the other is built");
    assert_eq!(memory.taken(), one);
    assert_eq!(find(&store, &root, "N299").as_deref(), Ok("n299"), "by listing");
    assert!(!is_ready(&root) && memory.taken() == one);
    drop(other);
    assert_eq!(memory.taken(), 0);
    assert_eq!(find(&store, &root, "N299").as_deref(), Ok("n299"));
    assert!(is_ready(&root));
    let state = root.folded().unwrap().state.lock();
    let State::Ready(ready) = &*state else { panic!("there is an index") };
    assert_eq!((ready.accounted, memory.taken()), (ready.bytes(), ready.bytes()));
}

#[test]
fn names_that_differ_in_case_alone_may_be_many() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, true);
    let root = store.root();
    let variant = |bits: u32| -> String {
        let letter = |bit: u32| if bits >> bit & 1 == 0 { 'b' } else { 'B' };
        (0..8).map(letter).collect()
    };
    for bits in 0..200 {
        create(&store, &root, &variant(bits));
    }
    let first = (0..200).map(variant).min().unwrap();
    assert_eq!(find(&store, &root, "BBBBBBBB"), Ok(first), "which is not there");
    assert_eq!(find(&store, &root, &variant(77)), Ok(variant(77)));
    for bits in 0..200 {
        block_on(Store::remove(&store, &root, name(&variant(bits)), &ROOT)).unwrap();
    }
    assert_eq!(find(&store, &root, "BBBBBBBB"), Err(FsError::NotFound));
    assert!(is_ready(&root));
}

#[test]
fn an_index_that_misses_a_change_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, true);
    let root = store.root();
    create(&store, &root, "Name");
    assert_eq!(find(&store, &root, "NAME").as_deref(), Ok("Name"));
    create(&store, &root, "Other");
    root.names.lock().add();
    create(&store, &root, "Third");
    assert!(!is_ready(&root));
    assert_eq!(find(&store, &root, "THIRD").as_deref(), Ok("Third"));
    assert!(is_ready(&root));
}

#[test]
fn the_memory_of_a_directory_that_is_closed_is_free_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, true);
    let root = store.root();
    let (set, kind) = (SetAttr::default(), MakeKind::Directory);
    let dir = block_on(store.make(&root, name("d"), &kind, &set, &ROOT)).unwrap().object;
    create(&store, &dir, "Name");
    assert_eq!(find(&store, &dir, "NAME").as_deref(), Ok("Name"));
    assert_eq!(find(&store, &root, "D").as_deref(), Ok("d"));
    let memory = Arc::clone(&store.0.index_memory);
    assert!(memory.taken() > 2 * BASE_BYTES);
    drop(dir);
    crate::StoreControl::release_idle(&store);
    // A job of the pool may still hold the directory.
    while memory.taken() > 0 {
        crate::StoreControl::release_idle(&store);
        std::thread::yield_now();
    }
}

/// Begins the next building of an index as soon as it is woken.
struct BeginsNext(Arc<Folded>, Mutex<Option<Promise<FsResult<()>>>>);

impl Wake for BeginsNext {
    fn wake(self: Arc<Self>) {
        self.0.invalidate();
        assert!(self.0.join(self.1.lock().take().unwrap()));
    }
}

#[test]
fn the_end_of_a_building_does_not_end_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, true);
    let root = store.root();
    create(&store, &root, "Name");
    let (first, mut first_answer) = promise();
    let (second, mut second_answer) = promise();
    let new = || Folded::new(Arc::clone(&store.0.index_memory), Arc::clone(&store.0.lane));
    let folded = Arc::clone(root.extras().folded.get_or_init(new));
    assert!(folded.join(first));
    let next = Arc::new(BeginsNext(Arc::clone(&folded), Mutex::new(Some(second))));
    let waker = Waker::from(next);
    assert!(Pin::new(&mut first_answer).poll(&mut Context::from_waker(&waker)).is_pending());
    let mut answer = || Pin::new(&mut second_answer).poll(&mut Context::from_waker(Waker::noop()));
    scan::build(&store.0, &root, &folded);
    assert!(answer().is_pending(), "its building has not begun");
    scan::build(&store.0, &root, &folded);
    assert_eq!(answer(), Poll::Ready(Some(Ok(()))));
    assert_eq!(find(&store, &root, "NAME").as_deref(), Ok("Name"));
}

#[test]
fn whatever_threads_do_at_once_the_index_has_the_names_in_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, true);
    let root = store.root();
    let done = AtomicBool::new(false);
    let text = |random: &mut u64| {
        let word = step(random) >> 33;
        let letter = |bit: u64| if word >> bit & 1 == 0 { 'n' } else { 'N' };
        format!("{}{}{}", letter(0), letter(1), word % 40)
    };
    std::thread::scope(|threads| {
        let changers: Vec<_> = (0..3)
            .map(|thread| {
                let (store, root) = (&store, &root);
                threads.spawn(move || {
                    let random = &mut (thread + 1);
                    for number in 0..2000 {
                        let (one, other) = (text(random), text(random));
                        let (one, other) = (name(&one), name(&other));
                        let how = CreateHow::Guarded(SetAttr::default());
                        let _any_outcome = match step(random) % 4 {
                            0 => block_on(Store::remove(store, root, one, &ROOT)).map(drop),
                            1 => block_on(Store::rename(store, root, one, root, other, &ROOT))
                                .map(drop),
                            _ => block_on(store.create(root, one, &how, &ROOT)).map(drop),
                        };
                        if number % 500 == 0
                            && let Some(folded) = root.folded()
                        {
                            folded.invalidate();
                        }
                    }
                })
            })
            .collect();
        threads.spawn(|| {
            let random = &mut 99;
            while !done.load(Relaxed) {
                let wanted = text(random).to_uppercase();
                match block_on(store.lookup_folded(&root, name(&wanted))) {
                    Ok(found) => assert!(found.name.eq_ignore_ascii_case(wanted.as_bytes())),
                    Err(error) => {
                        assert!(matches!(error, FsError::NotFound | FsError::Stale), "{error:?}");
                    }
                }
            }
        });
        changers.into_iter().for_each(|changer| changer.join().unwrap());
        done.store(true, Relaxed);
    });
    for number in 0..40 {
        let wanted = format!("nX{number}").replace('X', "n");
        let listed = scan::matches(&store.0, &root, wanted.as_bytes()).unwrap();
        let first = listed.others.first().map(|name| String::from_utf8(name.to_vec()).unwrap());
        let expected = if listed.exact { Some(wanted.clone()) } else { first };
        assert_eq!(find(&store, &root, &wanted).ok(), expected, "{wanted}");
    }
    assert!(is_ready(&root));
}
