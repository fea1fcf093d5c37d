//! Views, changes and watches.

use super::etcd::{Members, Signal};
use super::{make, place, present, records, register, upon};
use weir_cluster::{Generation, GroupId};
use weir_etcd::RecordsError;

#[tokio::test]
async fn of_two_changes_upon_one_generation_one_happens_and_every_follower_sees_it() {
    let members = Members::start(3);
    let (client, other) = (records(&members), records(&members));
    let mut follower = other.follow();
    assert_eq!(follower.next().await.unwrap().generation(), Generation(0));
    let empty = present(&client).await;
    let first = client.change(&empty.records, &upon(&empty.records, place(1))).await;
    assert!(first.unwrap());
    let second = other.change(&empty.records, &upon(&empty.records, place(2))).await;
    assert!(!second.unwrap(), "the generation is another");
    let seen = follower.next().await.unwrap();
    assert_eq!(seen.records.groups.keys().copied().collect::<Vec<_>>(), [GroupId(1)]);
    assert_eq!(*seen, present(&client).await);
    assert!(seen.revision > empty.revision);
}

#[tokio::test]
async fn a_stopped_or_killed_leader_is_passed_over() {
    let mut members = Members::start(3);
    let client = records(&members);
    let mut follower = client.follow();
    follower.next().await.unwrap();
    for (group, kills) in [(1, false), (2, true)] {
        let leader = members.leader();
        if kills {
            members.kill(leader);
        } else {
            members.signal(leader, Signal::Stop);
        }
        let made = make(&client, place(group)).await;
        let mut seen = follower.next().await.unwrap();
        while seen.generation() < made.generation() {
            seen = follower.next().await.unwrap();
        }
        assert_eq!(*seen.records, *made.records);
        if kills {
            members.run(leader);
        } else {
            members.signal(leader, Signal::Continue);
        }
        members.wait_until_healthy();
    }
}

#[tokio::test]
async fn all_members_stopped_are_no_answer_and_everything_goes_on_when_they_continue() {
    let members = Members::start(3);
    let client = records(&members);
    let mut follower = client.follow();
    let empty = follower.next().await.unwrap();
    members.signal_all(Signal::Stop);
    let change = client.change(&empty.records, &upon(&empty.records, place(1))).await;
    let error = change.unwrap_err();
    assert!(error.to_string().contains("did not answer"), "it may happen yet: {error}");
    members.signal_all(Signal::Continue);
    let made = make(&client, place(2)).await;
    let mut seen = follower.next().await.unwrap();
    while seen.generation() < made.generation() {
        seen = follower.next().await.unwrap();
    }
    assert_eq!(*seen.records, *made.records);
}

#[tokio::test]
async fn all_members_killed_cannot_be_reached_and_nothing_was_done() {
    let mut members = Members::start(3);
    let client = records(&members);
    let empty = present(&client).await;
    (0..3).for_each(|index| members.kill(index));
    // The connections that were open notice at different times; once more tells.
    let mut told = String::new();
    for _ in 0..20 {
        let change = client.change(&empty.records, &upon(&empty.records, place(1))).await;
        told = change.unwrap_err().to_string();
        if told.contains("can't be reached") {
            break;
        }
    }
    assert!(told.contains("can't be reached"), "{told}");
    (0..3).for_each(|index| members.run(index));
    members.wait_until_healthy();
    assert_eq!(present(&client).await.generation(), empty.generation());
}

#[tokio::test]
async fn a_follower_that_was_away_during_a_compaction_reads_everything_again() {
    let mut members = Members::start(1);
    let client = records(&members);
    let mut follower = client.follow();
    let first = follower.next().await.unwrap();
    let mut made = first.clone();
    for group in 1..=5 {
        made = make(&client, place(group)).await;
    }
    let revision = made.revision.to_string();
    members.control(&["compact", "--physical", &revision]);
    // The process takes the events with it that were on the way.
    members.kill(0);
    members.run(0);
    members.wait_until_healthy();
    let made = make(&client, place(6)).await;
    let mut seen = first;
    while seen.generation() < made.generation() {
        if let Ok(next) = follower.next().await {
            assert!(next.revision >= seen.revision);
            seen = next;
        }
    }
    assert_eq!(*seen.records, *made.records);
}

#[tokio::test]
async fn rows_that_are_foreign_or_damaged_are_refused_by_name_until_they_are_mended() {
    let members = Members::start(1);
    let client = records(&members);
    let mut follower = client.follow();
    follower.next().await.unwrap();
    let made = make(&client, register(super::life(1))).await;
    while follower.next().await.unwrap().generation() < made.generation() {}
    for (row, value) in
        [("gateway/00001", "{}"), ("other", "x"), ("gateway/00002", "{\"version\":9}")]
    {
        let key = format!("/weir/test/cluster/{row}");
        let before = members.control(&["get", "--print-value-only", &key]);
        members.control(&["put", &key, value]);
        let error = follower.next().await.unwrap_err();
        assert!(matches!(error, RecordsError::Row(_)), "{error}");
        assert!(error.to_string().contains(row), "{error}");
        assert!(client.view().await.unwrap_err().to_string().contains(row));
        assert!(follower.next().await.is_err(), "it is refused as long as it is there");
        match before.trim() {
            "" => members.control(&["del", &key]),
            before => members.control(&["put", &key, before]),
        };
        let mended = loop {
            if let Ok(view) = follower.next().await {
                break view;
            }
        };
        assert_eq!(*mended.records, *made.records);
    }
}
