//! The top directories of volumes: their owners and permissions, on creation and later.

use super::*;
use weir_api::{NewGroup, NewUser, TopChange, Volume};

fn mode(text: &str) -> Option<weir_api::UnixMode> {
    Some(text.parse().unwrap())
}

/// A change to the owner `anna` and this mode.
fn of_anna(text: &str) -> TopChange {
    TopChange { owner: Some("anna".into()), mode: mode(text), ..TopChange::default() }
}

fn to(top: TopChange) -> VolumeChange {
    VolumeChange { top: Some(top), ..VolumeChange::default() }
}

/// The owner, the group and the mode of a volume, with the names.
fn shown(volume: Volume) -> (u32, Option<String>, u32, Option<String>, String) {
    let top = volume.top.unwrap();
    (top.uid, top.owner, top.gid, top.group, top.mode.to_string())
}

async fn with_accounts() -> Running {
    let running = Running::with_volume(Qos::Auto).await;
    let (name, gid, groups) = ("Anna".to_owned(), None, Vec::new());
    let anna = NewUser { name, uid: 5001, gid, groups, enabled: true };
    running.client.create_user(&anna, Dry::No).await.unwrap();
    let staff = NewGroup { name: "staff".into(), gid: 50 };
    running.client.create_group(&staff, Dry::No).await.unwrap();
    running
}

#[tokio::test]
async fn a_new_volume_belongs_to_whom_it_is_made_for() {
    let running = with_accounts().await;
    let client = &running.client;
    assert_eq!(shown(client.volume("v").await.unwrap()), (0, None, 0, None, "0755".into()));
    let new = NewVolume { top: Some(of_anna("0770")), ..volume("w", None) };
    let plan = client.create_volume(&new, Dry::Run).await.unwrap();
    assert!(plan.item.unwrap().top.is_none() && lock(&running.plane.tops).is_empty());
    let made = client.create_volume(&new, Dry::No).await.unwrap().item.unwrap();
    let anna = || Some("Anna".to_owned());
    assert_eq!(shown(made), (5001, anna(), 0, None, "0770".into()));
    // Users that Weir does not know have numbers alone.
    let top = TopChange { uid: Some(7), gid: Some(50), ..TopChange::default() };
    let new = NewVolume { top: Some(top), ..volume("x", None) };
    let made = client.create_volume(&new, Dry::No).await.unwrap().item.unwrap();
    assert_eq!(shown(made), (7, None, 50, Some("staff".into()), "0755".into()));
    let log = std::fs::read_to_string(running.directory.path().join("audit.log")).unwrap();
    assert!(log.contains("\"top\":{\"mode\":\"0770\",\"owner\":\"anna\"}"), "{log}");
    running.stop().await;
}

#[tokio::test]
async fn a_top_directory_is_changed_online_and_what_is_not_given_stays() {
    let running = with_accounts().await;
    let client = &running.client;
    let before = client.volume("v").await.unwrap();
    let plan = client.change_volume("v", &to(of_anna("2770")), Dry::Run).await.unwrap();
    assert_eq!(shown(plan.item.unwrap()).0, 5001);
    assert_eq!(client.volume("v").await.unwrap(), before, "nothing is changed");
    let changed = client.change_volume("v", &to(of_anna("2770")), Dry::No).await.unwrap();
    assert!(changed.changes.is_empty());
    let item = changed.item.unwrap();
    assert_ne!(item.etag, before.etag, "it is a part of the volume");
    assert_eq!(shown(item.clone()), (5001, Some("Anna".into()), 0, None, "2770".into()));
    let (late, other) = (client.if_match(&before.etag), to(of_anna("0777")));
    assert_eq!(refusal(late.change_volume("v", &other, Dry::No).await).0, 412);
    let again = client.change_volume("v", &to(of_anna("2770")), Dry::No).await.unwrap();
    assert_eq!(again.item.unwrap().etag, item.etag, "a repetition changes nothing");
    let group = TopChange { group: Some("STAFF".into()), ..TopChange::default() };
    let grow = VolumeChange { quota_bytes: Some(2 * TIB), ..to(group) };
    let both = client.change_volume("v", &grow, Dry::No).await.unwrap().item.unwrap();
    assert_eq!(both.quota_bytes, 2 * TIB);
    assert_eq!(shown(both), (5001, Some("Anna".into()), 50, Some("staff".into()), "2770".into()));
    running.stop().await;
}

#[tokio::test]
async fn a_refused_change_of_a_top_directory_changes_nothing() {
    let running = with_accounts().await;
    let client = &running.client;
    let before = client.volume("v").await.unwrap();
    let unknown = TopChange { owner: Some("ben".into()), ..TopChange::default() };
    let no_group = TopChange { group: Some("anna".into()), ..TopChange::default() };
    let two = TopChange { uid: Some(1), ..of_anna("0770") };
    let none = TopChange { gid: Some(u32::MAX), ..TopChange::default() };
    for (status, code, top) in [
        (404, "no_such_user", unknown),
        (404, "no_such_group", no_group),
        (400, "bad_request", two),
        (400, "bad_id", none),
    ] {
        let grow = VolumeChange { quota_bytes: Some(2 * TIB), ..to(top.clone()) };
        for dry in [Dry::Run, Dry::No] {
            let (found, error) = refusal(client.change_volume("v", &grow, dry).await);
            assert_eq!((found, error.code.as_str()), (status, code));
            let new = NewVolume { top: Some(top.clone()), ..volume("w", None) };
            let (found, error) = refusal(client.create_volume(&new, dry).await);
            assert_eq!((found, error.code.as_str()), (status, code));
        }
    }
    // The other part of the change is refused.
    let huge = VolumeChange { quota_bytes: Some(9 * TIB), ..to(of_anna("0770")) };
    let (status, error) = refusal(client.change_volume("v", &huge, Dry::No).await);
    assert_eq!((status, error.code.as_str()), (422, "pool_capacity_exceeded"));
    assert_eq!(refusal(client.change_volume("none", &to(of_anna("0770")), Dry::No).await).0, 404);
    assert_eq!(client.volume("v").await.unwrap(), before);
    assert!(lock(&running.plane.tops).is_empty());
    running.stop().await;
}

#[tokio::test]
async fn a_file_system_that_refuses_leaves_the_catalogue_as_it_was() {
    let running = with_accounts().await;
    let client = &running.client;
    let before = client.volume("v").await.unwrap();
    for (fails, status, code) in
        [(FsError::NotPermitted, 409, "top_not_permitted"), (FsError::Io, 500, "io")]
    {
        let fail = || *lock(&running.plane.top_fails) = Some(fails);
        fail();
        let grow = VolumeChange { quota_bytes: Some(2 * TIB), ..to(of_anna("0770")) };
        let (found, error) = refusal(client.change_volume("v", &grow, Dry::No).await);
        assert_eq!((found, error.code.as_str()), (status, code));
        assert_eq!(client.volume("v").await.unwrap(), before, "it is undone");
        fail();
        let new = NewVolume { top: Some(of_anna("0770")), ..volume("w", None) };
        assert_eq!(refusal(client.create_volume(&new, Dry::No).await).0, status);
        assert_eq!(refusal(client.volume("w").await).0, 404, "it is taken back");
    }
    lock(&running.plane.limits).clear();
    let (status, error) = refusal(client.change_volume("v", &to(of_anna("0770")), Dry::No).await);
    assert_eq!((status, error.code.as_str()), (409, "volume_not_served"));
    assert!(client.volume("v").await.unwrap().top.is_none());
    running.stop().await;
}
