//! Users, groups, passwords and share rules over HTTP.

use super::*;
use std::collections::BTreeSet;
use weir_api::{
    AuditQuery, Group, NewGroup, NewPassword, NewUser, PasswordState, Protocol, ShareAccess,
    ShareRule, Sharing, SharingChange, User, UserChange,
};

const SECRET: &str = "correct horse";

fn user(name: &str, uid: u32) -> NewUser {
    NewUser { name: name.into(), uid, gid: None, groups: Vec::new(), enabled: true }
}

fn password() -> NewPassword {
    NewPassword { password: SECRET.into() }
}

fn rule(network: &str, user: Option<&str>, group: Option<&str>, access: ShareAccess) -> ShareRule {
    let (user, group) = (user.map(str::to_owned), group.map(str::to_owned));
    ShareRule { network: network.into(), user, group, access }
}

/// A PUT at the socket: status and body.
async fn put(running: &Running, path: &str, body: &str) -> (u16, String) {
    let request = format!(
        "PUT {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = raw_unix(&running.directory.path().join("api.sock"), &request).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

async fn with_users() -> Running {
    let running = Running::with_volume(Qos::Auto).await;
    let staff = NewGroup { name: "staff".into(), gid: 50 };
    running.client.create_group(&staff, Dry::No).await.unwrap();
    let ann = NewUser { groups: vec!["staff".into()], ..user("Ann Lee", 1000) };
    running.client.create_user(&ann, Dry::No).await.unwrap();
    running
}

#[tokio::test]
async fn users_and_groups_come_change_and_go() {
    let running = with_users().await;
    let client = &running.client;
    let ann = client.user("ANN LEE").await.unwrap();
    assert_eq!((ann.name.as_str(), ann.uid, ann.gid, ann.enabled), ("Ann Lee", 1000, 1000, true));
    assert_eq!((ann.rid, ann.password), (1001, PasswordState::None));
    assert!(ann.sid.starts_with("S-1-5-21-") && ann.sid.ends_with("-1001"), "{}", ann.sid);
    assert_eq!(ann.groups, ["staff"]);
    assert_eq!(client.group("staff").await.unwrap().members, ["Ann Lee"]);
    let plan = client.create_user(&user("bob", 1001), Dry::Run).await.unwrap();
    assert!(plan.dry_run && plan.item.unwrap().name == "bob");
    client.create_user(&user("bob", 1001), Dry::No).await.unwrap();
    client.add_member("staff", "bob", Dry::No).await.unwrap();
    let names = |all: Vec<User>| all.into_iter().map(|one| one.name).collect::<Vec<_>>();
    assert_eq!(names(client.users().await.unwrap()), ["Ann Lee", "bob"]);
    let groups: Vec<Group> = client.groups().await.unwrap();
    assert_eq!(groups[0], client.group("staff").await.unwrap());
    assert_eq!(groups[0].members, ["Ann Lee", "bob"]);
    client.remove_member("staff", "Ann Lee", Dry::No).await.unwrap();
    let off =
        UserChange { enabled: Some(false), name: Some("Ann".into()), ..UserChange::default() };
    let changed = client.change_user("Ann Lee", &off, Dry::No).await.unwrap().item.unwrap();
    assert_eq!((changed.name.as_str(), changed.enabled, changed.groups.len()), ("Ann", false, 0));
    let plan = client.delete_user("ann", Dry::Run).await.unwrap();
    assert_eq!(plan.item.as_ref(), Some(&changed));
    assert_eq!(client.delete_user("ann", Dry::No).await.unwrap().item, None);
    assert_eq!(client.delete_group("staff", Dry::No).await.unwrap().item, None);
    assert_eq!(names(client.users().await.unwrap()), ["bob"]);
    for (code, status, refused) in [
        ("no_such_user", 404, client.user("ann").await.map(drop)),
        ("no_such_group", 404, client.group("staff").await.map(drop)),
        ("id_taken", 409, client.create_user(&user("x", 1001), Dry::No).await.map(drop)),
        ("bad_id", 400, client.create_user(&user("x", 0), Dry::No).await.map(drop)),
        ("bad_name", 400, client.create_user(&user("x@y", 7), Dry::No).await.map(drop)),
        ("name_taken", 409, client.create_user(&user("BOB", 7), Dry::No).await.map(drop)),
        ("no_such_group", 404, client.add_member("staff", "bob", Dry::No).await.map(drop)),
    ] {
        let (found, error) = refusal(refused);
        assert_eq!((found, error.code.as_str()), (status, code));
    }
    running.stop().await;
}

#[tokio::test]
async fn a_change_can_be_for_the_user_that_was_seen() {
    let running = with_users().await;
    let seen = running.client.user("Ann Lee").await.unwrap();
    let group = running.client.group("staff").await.unwrap();
    let off = UserChange { enabled: Some(false), ..UserChange::default() };
    let careful = running.client.if_match(&seen.etag);
    careful.change_user("Ann Lee", &off, Dry::No).await.unwrap();
    let (status, error) = refusal(careful.set_password("Ann Lee", &password(), Dry::No).await);
    assert_eq!((status, error.code.as_str()), (412, "changed_meanwhile"));
    let careful = running.client.if_match(&group.etag);
    careful.remove_member("staff", "Ann Lee", Dry::No).await.unwrap();
    assert_eq!(refusal(careful.delete_group("staff", Dry::No).await).0, 412);
    running.stop().await;
}

#[tokio::test]
async fn a_password_is_set_and_told_to_nobody() {
    let running = with_users().await;
    let client = &running.client;
    let plan = client.set_password("Ann Lee", &password(), Dry::Run).await.unwrap();
    assert_eq!(plan.item.unwrap().password, PasswordState::None);
    let set = client.set_password("ann lee", &password(), Dry::No).await.unwrap();
    assert_eq!(set.item.unwrap().password, PasswordState::Set);
    for wrong in [String::new(), "x".repeat(257)] {
        let (status, error) = refusal(
            client.set_password("Ann Lee", &NewPassword { password: wrong }, Dry::No).await,
        );
        assert_eq!((status, error.code.as_str()), (400, "bad_password"));
    }
    let longest = NewPassword { password: "ü".repeat(256) };
    client.set_password("Ann Lee", &longest, Dry::No).await.unwrap();
    // A body in a wrong form must not come back in a message, which is logged.
    for body in [
        format!("{{\"password\":[\"{SECRET}\"]}}"),
        format!("{{\"{SECRET}\":1}}"),
        format!("\"{SECRET}\""),
        SECRET.to_owned(),
    ] {
        let (status, answer) = put(&running, "/v1/users/Ann%20Lee/password", &body).await;
        assert!((400..500).contains(&status) && !answer.contains(SECRET), "{answer}");
    }
    let create = format!("{{\"name\":\"x\",\"uid\":7,\"password\":\"{SECRET}\"}}");
    let request = format!(
        "POST /v1/users HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{create}",
        create.len()
    );
    let answer = raw_unix(&running.directory.path().join("api.sock"), &request).await;
    assert!(answer.contains("unknown field") && !answer.contains(SECRET), "{answer}");
    client.set_password("Ann Lee", &password(), Dry::No).await.unwrap();
    let records = client.audit(&AuditQuery { limit: Some(1000), ..AuditQuery::default() }).await;
    let about: Vec<_> = records.unwrap().items;
    let about =
        about.iter().filter(|one| one.route.as_deref() == Some("/v1/users/{name}/password"));
    let told: Vec<_> = about.map(|record| record.request.clone().unwrap()).collect();
    assert_eq!(told.len(), 9, "each attempt but the dry run");
    assert!(told.iter().all(|one| *one == serde_json::json!({ "password": "(not recorded)" })));
    let directory = running.stop().await;
    let hash = {
        let catalog = Catalog::open(directory.path()).unwrap();
        let snapshot = catalog.snapshot();
        let user = snapshot.user_named("Ann Lee").unwrap();
        catalog.sealer().open(user.rid, user.password.as_ref().unwrap()).unwrap()
    };
    for name in ["audit.log", "weir.db", "weir.db-wal"] {
        let Ok(bytes) = std::fs::read(directory.path().join(name)) else { continue };
        for secret in [SECRET.as_bytes(), &hash] {
            assert!(!bytes.windows(secret.len()).any(|part| part == secret), "{name}");
        }
    }
    std::fs::remove_file(directory.path().join("smb.key")).unwrap();
    let running = Running::start_in(directory).await;
    let unreadable = running.client.user("Ann Lee").await.unwrap();
    assert_eq!(unreadable.password, PasswordState::Unreadable);
    running.stop().await;
}

#[tokio::test]
async fn a_volume_has_protocols_and_share_rules() {
    let running = with_users().await;
    let client = &running.client;
    let made = client.volume("v").await.unwrap();
    assert_eq!((made.sharing, made.share_rules.len()), (Sharing::default(), 0));
    let both = SharingChange {
        protocols: Some(vec![Protocol::Smb, Protocol::Nfs]),
        smb_encrypt: Some(true),
        ..SharingChange::default()
    };
    let change = VolumeChange { sharing: both.clone(), ..VolumeChange::default() };
    let changed = client.change_volume("v", &change, Dry::No).await.unwrap().item.unwrap();
    assert_eq!(changed.sharing.protocols, [Protocol::Nfs, Protocol::Smb]);
    assert!(changed.sharing.smb_encrypt && !changed.sharing.smb_hidden);
    let here = [
        rule("::1/128", None, None, ShareAccess::ReadWrite),
        rule("127.0.0.0/8", None, None, ShareAccess::ReadWrite),
    ];
    assert_eq!(client.share_rules("v").await.unwrap(), here);
    let ann = rule("any", Some("ann lee"), None, ShareAccess::None);
    client.add_share_rule("v", &ann, Dry::No).await.unwrap();
    let staff = rule("10.0.0.0/8", None, Some("staff"), ShareAccess::ReadOnly);
    let changed = client.add_share_rule("v", &staff, Dry::No).await.unwrap().item.unwrap();
    let shown: BTreeSet<_> = changed
        .share_rules
        .iter()
        .map(|rule| (rule.network.as_str(), rule.user.as_deref(), rule.group.as_deref()))
        .collect();
    assert_eq!(shown.len(), 4);
    assert!(shown.contains(&("any", Some("Ann Lee"), None)), "{shown:?}");
    assert!(shown.contains(&("10.0.0.0/8", None, Some("staff"))), "{shown:?}");
    client.remove_share_rule("v", &staff, Dry::No).await.unwrap();
    client.set_share_rules("v", std::slice::from_ref(&ann), Dry::No).await.unwrap();
    let two = rule("any", Some("Ann Lee"), Some("staff"), ShareAccess::None);
    let none = SharingChange { protocols: Some(Vec::new()), ..SharingChange::default() };
    let none = VolumeChange { sharing: none, ..VolumeChange::default() };
    let taken = NewVolume { sharing: both, ..volume("V", None) };
    for (code, status, refused) in [
        ("share_rule_exists", 409, client.add_share_rule("v", &ann, Dry::No).await.map(drop)),
        ("no_such_share_rule", 404, client.remove_share_rule("v", &staff, Dry::No).await.map(drop)),
        ("account_in_use", 409, client.delete_user("ann lee", Dry::No).await.map(drop)),
        ("bad_request", 400, client.add_share_rule("v", &two, Dry::No).await.map(drop)),
        ("no_protocol", 400, client.change_volume("v", &none, Dry::No).await.map(drop)),
        ("share_name_taken", 409, client.create_volume(&taken, Dry::No).await.map(drop)),
    ] {
        let (found, error) = refusal(refused);
        assert_eq!((found, error.code.as_str()), (status, code));
    }
    let path = "/v1/volumes/v/share-rules";
    let (status, answer) = put(&running, path, "[{\"access\":\"rw\"}]").await;
    assert!(status == 422 && answer.contains("network"), "{status}: {answer}");
    let (status, answer) = put(&running, path, "[{\"network\":\"any\",\"access\":\"rw\"}]").await;
    assert_eq!(status, 200, "{answer}");
    let everybody = rule("any", None, None, ShareAccess::ReadWrite);
    assert_eq!(client.share_rules("v").await.unwrap(), [everybody]);
    running.stop().await;
}
