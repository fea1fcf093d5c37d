//! The connection by itself: what the catalogue uses.

use super::connection;
use super::etcd::Members;
use weir_etcd::{Condition, EtcdError, Write};

fn put(key: &str, value: &[u8]) -> Write {
    Write::Put { key: key.to_owned(), value: value.to_vec(), lease: 0 }
}

#[tokio::test]
async fn transactions_hold_for_revisions_and_a_watch_tells_each_in_order() {
    let members = Members::start(1);
    let connection = connection(&members);
    let before = connection.range("/a/", 1000).await.unwrap();
    assert_eq!(before.pairs, []);
    let mut watch = connection.watch("/a/", before.revision);
    let absent = Condition::At { key: "/a/1".to_owned(), revision: 0 };
    let first = connection.commit(std::slice::from_ref(&absent), &[put("/a/1", b"x")]).await;
    let first = first.unwrap();
    assert!(first.applied);
    let again = connection.commit(&[absent], &[put("/a/1", b"y")]).await.unwrap();
    assert!(!again.applied);
    let second = connection.commit(&[], &[put("/a/1", b"z"), put("/b", b"other")]).await.unwrap();
    let since = Condition::Since { key: "/a/1".to_owned(), revision: first.revision };
    let delete = Write::Delete { key: "/a/1".to_owned() };
    let third = connection.commit(&[since], &[delete]).await.unwrap();
    assert!(third.applied);
    let mut told = Vec::new();
    while told.len() < 3 {
        told.extend(watch.next().await.unwrap().events);
    }
    let told: Vec<_> = told.iter().map(|event| (event.revision, event.value.as_deref())).collect();
    assert_eq!(
        told,
        [
            (first.revision, Some(b"x".as_slice())),
            (second.revision, Some(b"z")),
            (third.revision, None)
        ]
    );
    assert_eq!(connection.get("/a/1").await.unwrap(), None);
    let other = connection.get("/b").await.unwrap().unwrap();
    assert_eq!((other.value.as_slice(), other.modified), (b"other".as_slice(), second.revision));
}

#[tokio::test]
async fn many_and_large_rows_are_read_at_one_revision_within_a_bound() {
    let members = Members::start(1);
    let connection = connection(&members);
    let large = vec![7; 1 << 20];
    for row in 0..600 {
        let size = if row < 8 { large.len() } else { 10 };
        connection.commit(&[], &[put(&format!("/a/{row:03}"), &large[..size])]).await.unwrap();
    }
    let all = connection.range("/a/", 16 << 20).await.unwrap();
    assert_eq!(all.pairs.len(), 600);
    assert!(all.pairs.windows(2).all(|pair| pair[0].key < pair[1].key));
    assert_eq!(connection.range("/a/", 1 << 20).await, Err(EtcdError::TooLong));
    let mut watch = connection.watch("/a/", 1);
    let mut told = 0;
    while told < 600 {
        told += watch.next().await.unwrap().events.len();
    }
    let huge = connection.commit(&[], &[put("/a/huge", &vec![7; 2 << 20])]).await;
    assert!(matches!(huge, Err(EtcdError::Refused(_))), "{huge:?}");
    members.control(&["compact", &all.revision.to_string()]);
    assert_eq!(connection.watch("/a/", 1).next().await, Err(EtcdError::Compacted));
}

#[tokio::test]
async fn a_removal_that_was_compacted_is_not_passed_over() {
    let members = Members::start(1);
    let connection = connection(&members);
    let first = connection.commit(&[], &[put("/a/1", b"x")]).await.unwrap();
    let delete = Write::Delete { key: "/a/1".to_owned() };
    let removed = connection.commit(&[], &[delete]).await.unwrap();
    members.control(&["compact", "--physical", &removed.revision.to_string()]);
    // etcd 3.4 lets a watch begin at the compacted revision, and does not tell a removal there.
    let mut watch = connection.watch("/a/", first.revision);
    connection.commit(&[], &[put("/a/2", b"y")]).await.unwrap();
    assert_eq!(watch.next().await, Err(EtcdError::Compacted));
    // Behind that revision nothing is missing.
    let mut watch = connection.watch("/a/", removed.revision);
    let told = watch.next().await.unwrap().events;
    assert_eq!(told.iter().map(|event| event.key.as_slice()).collect::<Vec<_>>(), [b"/a/2"]);
}
