//! The store itself: completeness, order, guards, limits, compaction.

use crate::ETCD;
use crate::faults::Shared;
use crate::members::{Etcd, Real};
use std::time::Duration;
use weir_catalog::{
    ClusterStore, Decision, Event, Guard, OPERATIONS_MAX, Operation, StoreError,
    TRANSACTION_BYTES_MAX,
};

fn put(key: &str, value: &str) -> Operation {
    Operation::Put { key: key.to_owned(), value: value.as_bytes().to_vec() }
}

fn delete(key: &str) -> Operation {
    Operation::Delete { key: key.to_owned() }
}

fn at(key: &str, revision: u64) -> Guard {
    Guard::At { key: key.to_owned(), revision }
}

fn made(store: &Real, operations: &[Operation]) -> u64 {
    match store.commit(&[], operations).unwrap() {
        Decision::At(revision) => revision,
        Decision::Refused => panic!("there is no guard"),
    }
}

#[test]
fn guards_hold_and_a_refused_transaction_leaves_nothing() {
    let store = ETCD.store("guards");
    let (a, b) = ("/weir/guards/catalog/a", "/weir/guards/catalog/b");
    assert_eq!(store.get(a).unwrap(), None);
    let refused = Ok(Decision::Refused);
    assert_eq!(store.commit(&[at(a, 7)], &[put(b, "x")]), refused);
    let Ok(Decision::At(first)) = store.commit(&[at(a, 0)], &[put(a, "1")]) else { panic!() };
    assert_eq!(store.commit(&[at(a, 0)], &[put(b, "x")]), refused);
    let found = store.get(a).unwrap().unwrap();
    assert_eq!((found.value.as_slice(), found.revision), (b"1".as_slice(), first));
    let second = made(&store, &[put(a, "2")]);
    assert_eq!(store.commit(&[at(a, first)], &[put(b, "x")]), refused);
    let since = |revision| Guard::Since { key: a.to_owned(), revision };
    assert_eq!(store.commit(&[since(second)], &[put(b, "x")]), refused);
    assert!(matches!(store.commit(&[since(first), at(a, second)], &[]), Ok(Decision::At(_))));
    made(&store, &[delete(a)]);
    made(&store, &[put(a, "3")]);
    assert_eq!(store.commit(&[since(first)], &[put(b, "x")]), refused);
    assert_eq!(store.get(b).unwrap(), None);
}

#[test]
fn events_are_complete_at_each_call_in_their_order_and_told_once() {
    // Its own, which no other test compacts.
    let etcd = Etcd::start();
    let (writer, reader) = (etcd.store("events"), etcd.store("events"));
    let prefix = "/weir/events/catalog/";
    let key = |number: u32| format!("{prefix}{}", number % 5);
    let mut after = reader.range(prefix).unwrap().revision;
    let mut told = Vec::new();
    let mut wrote = Vec::new();
    for number in 0..200_u32 {
        let (one, two) = (key(number), key(number + 1));
        let value = number.to_string();
        let operations = if number % 7 == 3 {
            vec![delete(&one), put(&two, &value)]
        } else {
            vec![put(&one, &value)]
        };
        let there = writer.get(&one).unwrap().is_some();
        let revision = made(&writer, &operations);
        for operation in operations {
            let (key, value) = match operation {
                Operation::Put { key, value } => (key, Some(value)),
                Operation::Delete { .. } if !there => continue,
                Operation::Delete { key } => (key, None),
            };
            wrote.push(Event { key, value, revision });
        }
        if number % 3 == 0 {
            let changes = reader.changes(prefix, after).unwrap();
            assert!(changes.revision >= revision, "complete up to the call");
            told.extend(changes.events);
            assert_eq!(told, wrote);
            after = changes.revision;
        }
    }
}

#[test]
fn callers_at_different_revisions_each_get_their_events() {
    // Its own, which no other test compacts.
    let etcd = Etcd::start();
    let store = etcd.store("callers");
    let prefix = "/weir/callers/catalog/";
    let start = store.range(prefix).unwrap().revision;
    let revisions: Vec<u64> =
        (0..20).map(|number| made(&store, &[put(&format!("{prefix}{number}"), "x")])).collect();
    let seen = |after| {
        let changes = store.changes(prefix, after).unwrap();
        changes.events.into_iter().map(|event| event.revision).collect::<Vec<_>>()
    };
    for at in [19, 3, 11, 0, 18, 7] {
        assert_eq!(seen(revisions[at]), revisions[at + 1..], "{at}");
    }
    assert_eq!(seen(start), revisions);
    assert_eq!(seen(revisions[19] + 1000), [0; 0], "the revision of another prefix");
}

#[test]
fn a_transaction_of_the_largest_size_is_carried_out_and_a_larger_one_refused() {
    let store = ETCD.store("limits");
    let key = |number: usize| format!("/weir/limits/catalog/{number:04}");
    let guard = |number: usize| at(&key(1000 + number), 0);
    let guards: Vec<_> = (0..OPERATIONS_MAX).map(guard).collect();
    let room = TRANSACTION_BYTES_MAX / OPERATIONS_MAX - key(0).len();
    let value = "x".repeat(room);
    let all: Vec<_> = (0..OPERATIONS_MAX).map(|number| put(&key(number), &value)).collect();
    assert!(matches!(store.commit(&guards, &all), Ok(Decision::At(_))));
    assert_eq!(store.range("/weir/limits/catalog/").unwrap().pairs.len(), OPERATIONS_MAX);
    let one = [put(&key(0), &"y".repeat(TRANSACTION_BYTES_MAX - key(0).len()))];
    assert!(matches!(store.commit(&guards, &one), Ok(Decision::At(_))));
    let more: Vec<_> = (0..OPERATIONS_MAX + 2).map(|number| put(&key(number), "z")).collect();
    let huge = [put(&key(0), &"z".repeat(2 << 20))];
    for refused in [store.commit(&[], &more), store.commit(&[], &huge)] {
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    }
    let kept = store.range("/weir/limits/catalog/").unwrap().pairs;
    assert!(!kept.iter().any(|pair| pair.value.starts_with(b"z")), "nothing was done");
}

#[test]
fn compacted_events_are_named_as_such_and_later_ones_are_told() {
    // An etcd of its own: a compaction by another test would hide the later events as well.
    let etcd = Etcd::start();
    let store = etcd.store("compacted");
    let (prefix, key) = ("/weir/compacted/catalog/", "/weir/compacted/catalog/a");
    let first = made(&store, &[put(key, "1")]);
    made(&store, &[put(key, "2")]);
    let last = made(&store, &[put(key, "3")]);
    store.compact();
    let fresh = etcd.store("compacted");
    assert_eq!(fresh.changes(prefix, first).unwrap_err(), StoreError::Compacted);
    let listing = fresh.range(prefix).unwrap();
    assert_eq!((listing.pairs.len(), listing.pairs[0].revision), (1, last));
    let next = made(&store, &[put(key, "4")]);
    let changes = fresh.changes(prefix, listing.revision).unwrap();
    assert_eq!(changes.events.iter().map(|event| event.revision).collect::<Vec<_>>(), [next]);
}

#[test]
fn a_wait_ends_with_an_event_that_is_new_and_with_its_time() {
    // An etcd of its own, which no other test compacts.
    let etcd = Etcd::start();
    let (store, other) = (etcd.store("waits"), etcd.store("waits"));
    let (prefix, key) = ("/weir/waits/catalog/", "/weir/waits/catalog/a");
    let after = made(&store, &[put(key, "1")]);
    store.wait(prefix, after, Duration::from_millis(50));
    let waiting = std::thread::spawn(move || {
        store.wait("/weir/waits/catalog/", after, Duration::from_secs(3600));
        store.changes("/weir/waits/catalog/", after).unwrap()
    });
    let next = made(&other, &[put(key, "2")]);
    let changes = waiting.join().unwrap();
    assert_eq!((changes.events.len(), changes.revision), (1, next));
}
