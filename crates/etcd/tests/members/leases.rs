//! The lease of a life.

use super::etcd::{Members, Signal};
use super::{life, make, place, present, records, register};
use weir_cluster::{Kept, LeaseRequest, Records};
use weir_etcd::{RecordsClient, RecordsError};

const ROW: &str = "/weir/test/cluster/life/00001";

/// Asks about the lease of gateway 1 until there is an answer.
async fn ask(client: &RecordsClient, kind: LeaseRequest, records: &Records) -> Kept {
    loop {
        match client.lease(kind, life(1), records).await {
            Ok(kept) => return kept,
            Err(RecordsError::Etcd(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Asks every half second, until the lease was renewed so often.
async fn keep(client: &RecordsClient, times: usize) {
    let mut renewed = 0;
    while renewed < times {
        let kind = LeaseRequest::Renew;
        match client.lease(kind, life(1), &Records::default()).await {
            Ok(Kept::Yes) => renewed += 1,
            Ok(Kept::No) => panic!("the lease was lost"),
            Err(RecordsError::Etcd(_)) => {}
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(weir_cluster::timing::RENEW_EVERY).await;
    }
}

#[tokio::test]
async fn only_a_member_attaches_and_upon_older_records_too() {
    let members = Members::start(3);
    let client = records(&members);
    let none = Records::default();
    assert_eq!(ask(&client, LeaseRequest::Attach, &none).await, Kept::No, "it is no member");
    assert_eq!(ask(&client, LeaseRequest::Renew, &none).await, Kept::No, "there is no lease");
    let older = make(&client, register(life(1))).await;
    make(&client, place(1)).await;
    assert_eq!(ask(&client, LeaseRequest::Attach, &older.records).await, Kept::Yes);
    assert_eq!(present(&client).await.attached, [(life(1).gateway, 1)].into());
    assert_eq!(ask(&client, LeaseRequest::Attach, &older.records).await, Kept::Yes, "once more");
    keep(&client, 2).await;
}

#[tokio::test]
async fn a_lease_is_kept_while_members_are_stopped_and_killed() {
    let mut members = Members::start(3);
    let client = records(&members);
    let view = make(&client, register(life(1))).await;
    assert_eq!(ask(&client, LeaseRequest::Attach, &view.records).await, Kept::Yes);
    let follower = (0..3).find(|index| *index != members.leader()).unwrap();
    members.signal(follower, Signal::Stop);
    keep(&client, 3).await;
    members.signal(follower, Signal::Continue);
    members.kill(follower);
    keep(&client, 3).await;
    members.run(follower);
    members.wait_until_healthy();
    let leader = members.leader();
    members.kill(leader);
    keep(&client, 8).await;
}

#[tokio::test]
async fn a_lease_that_ended_is_lost_and_can_be_taken_again() {
    let members = Members::start(3);
    let client = records(&members);
    let view = make(&client, register(life(1))).await;
    assert_eq!(ask(&client, LeaseRequest::Attach, &view.records).await, Kept::Yes);
    while !present(&client).await.attached.is_empty() {}
    assert_eq!(ask(&client, LeaseRequest::Renew, &view.records).await, Kept::No);
    assert_eq!(ask(&client, LeaseRequest::Attach, &view.records).await, Kept::Yes);
    client.release().await.unwrap();
    assert!(present(&client).await.attached.is_empty(), "it is gone at once");
    client.release().await.unwrap();
}

#[tokio::test]
async fn a_row_that_somebody_else_wrote_or_removed_is_a_lost_lease() {
    let members = Members::start(1);
    let client = records(&members);
    let view = make(&client, register(life(1))).await;
    for command in [["put", ROW, "1"].as_slice(), &["put", ROW, "2"], &["del", ROW]] {
        assert_eq!(ask(&client, LeaseRequest::Attach, &view.records).await, Kept::Yes);
        assert_eq!(ask(&client, LeaseRequest::Renew, &view.records).await, Kept::Yes);
        members.control(command);
        assert_eq!(ask(&client, LeaseRequest::Renew, &view.records).await, Kept::No);
    }
}

#[tokio::test]
async fn a_leader_without_followers_renews_nothing() {
    let members = Members::start(3);
    let leader = members.leader();
    // A client that knows the leader alone.
    let alone = weir_etcd::Settings {
        endpoints: vec![members.endpoints().remove(leader)],
        ..weir_etcd::Settings::default()
    };
    let connection = weir_etcd::Connection::new(&alone).unwrap();
    let client = RecordsClient::new(connection, super::keys());
    let view = make(&client, register(life(1))).await;
    assert_eq!(ask(&client, LeaseRequest::Attach, &view.records).await, Kept::Yes);
    assert_eq!(ask(&client, LeaseRequest::Renew, &view.records).await, Kept::Yes);
    for index in (0..3).filter(|index| *index != leader) {
        members.signal(index, Signal::Stop);
    }
    let renewed = client.lease(LeaseRequest::Renew, life(1), &view.records).await;
    assert!(matches!(renewed, Err(RecordsError::Etcd(_))), "{renewed:?}");
}
