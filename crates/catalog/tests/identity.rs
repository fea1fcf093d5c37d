//! Users, groups and passwords as their callers see them: rules, refusals, persistence.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use rusqlite::Connection;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use weir_catalog::{
    Catalog, CatalogError, Fault, Mode, NT_HASH_BYTES, NewUser, RID_FIRST, Replace, Snapshot,
    Unsealed, User, UserChange, check, restore,
};

const HASH: [u8; NT_HASH_BYTES] = *b"0123456789abcdef";

fn new(name: &str, uid: u32) -> NewUser {
    NewUser { name: name.to_owned(), uid, gid: None, groups: Vec::new(), enabled: true }
}

fn add(catalog: &Catalog, name: &str, uid: u32) -> Arc<User> {
    let made = catalog.create_user(&new(name, uid), Mode::Commit).unwrap();
    Arc::clone(made.snapshot.user_named(name).unwrap())
}

fn code<T: std::fmt::Debug>(refused: weir_catalog::Result<T>) -> &'static str {
    refused.unwrap_err().code()
}

fn user(catalog: &Catalog, name: &str) -> Arc<User> {
    Arc::clone(catalog.snapshot().user_named(name).unwrap())
}

fn opened(catalog: &Catalog, name: &str) -> Result<[u8; NT_HASH_BYTES], Unsealed> {
    let user = user(catalog, name);
    catalog.sealer().open(user.rid, user.password.as_ref().unwrap())
}

fn group_names(user: &User) -> Vec<&str> {
    user.groups.iter().map(|group| group.name.as_str()).collect()
}

#[test]
fn users_and_groups_are_there_after_a_restart() {
    let base = tempfile::tempdir().unwrap();
    {
        let catalog = Catalog::open(base.path()).unwrap();
        catalog.create_group("staff", 50, Mode::Commit).unwrap();
        catalog.create_group("Own", 1001, Mode::Commit).unwrap();
        let alice = NewUser {
            gid: Some(100),
            groups: vec!["STAFF".into(), "staff".into()],
            ..new("Alice", 1000)
        };
        catalog.create_user(&alice, Mode::Commit).unwrap();
        catalog.create_user(&new("bob", 1001), Mode::Commit).unwrap();
        catalog.add_member("own", "ALICE", Mode::Commit).unwrap();
    }
    let catalog = Catalog::open(base.path()).unwrap();
    let snapshot = catalog.snapshot();
    let (alice, bob) = (user(&catalog, "aLiCe"), user(&catalog, "bob"));
    assert_eq!((alice.name.as_str(), alice.uid, alice.gid), ("Alice", 1000, 100));
    assert_eq!(alice.rid, RID_FIRST + 2, "users and groups share their RIDs");
    assert_eq!(group_names(&alice), ["staff", "Own"]);
    assert_eq!((&alice.primary, alice.enabled, &alice.password), (&None, true, &None));
    assert_eq!(bob.gid, 1001, "the primary group is that of the uid, unless another is given");
    assert_eq!(bob.primary.as_ref(), snapshot.group_named("own"));
    assert!(bob.groups.is_empty() && bob.is_in(RID_FIRST + 1));
    assert_eq!(snapshot.user_by_uid(1000), Some(&alice));
    assert_eq!(snapshot.user_by_rid(bob.rid), Some(&bob));
    assert_eq!(snapshot.group_by_gid(50), snapshot.group_by_rid(RID_FIRST));
    assert!(check(base.path(), None).is_err(), "it is in use");
    drop(catalog);
    assert!(check(base.path(), None).unwrap().findings.is_empty());
}

#[test]
fn names_and_ids_are_unique_and_bounded() {
    let base = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(base.path()).unwrap();
    catalog.create_group("staff", 50, Mode::Commit).unwrap();
    add(&catalog, "Jörg", 1000);
    let create = |name: &str, uid| code(catalog.create_user(&new(name, uid), Mode::Commit));
    assert_eq!(create("jÖRG", 1001), "name_taken");
    assert_eq!(create("STAFF", 1001), "name_taken");
    assert_eq!(create("x", 1000), "id_taken");
    assert_eq!(create("x", 0), "bad_id");
    assert_eq!(create("x", u32::MAX), "bad_id");
    assert_eq!(create("a/b", 1001), "bad_name");
    let gid = |gid| NewUser { gid: Some(gid), ..new("x", 1001) };
    assert_eq!(code(catalog.create_user(&gid(u32::MAX), Mode::Commit)), "bad_id");
    let nowhere = NewUser { groups: vec!["nowhere".into()], ..new("x", 1001) };
    assert_eq!(code(catalog.create_user(&nowhere, Mode::Commit)), "no_such_group");
    let group = |name: &str, gid| code(catalog.create_group(name, gid, Mode::Commit));
    assert_eq!(group("jörg", 51), "name_taken");
    assert_eq!(group("other", 50), "id_taken");
    assert_eq!(group("@", 51), "bad_name");
    let rename = |name: &str| UserChange { name: Some(name.into()), ..UserChange::default() };
    assert_eq!(code(catalog.change_user("jörg", &rename("Staff"), Mode::Commit)), "name_taken");
    assert_eq!(code(catalog.change_user("nobody", &rename("x"), Mode::Commit)), "no_such_user");
    catalog.change_user("jörg", &rename("JÖRG"), Mode::Commit).unwrap();
    assert_eq!(user(&catalog, "Jörg").name, "JÖRG");
    let refused = catalog.create_user(&new("x", 0), Mode::Commit).unwrap_err();
    assert_eq!(refused.fault(), Fault::Invalid);
    assert!(refused.to_string().contains("root has no access over SMB"), "{refused}");
}

#[test]
fn a_rid_is_never_used_again() {
    let base = tempfile::tempdir().unwrap();
    let first = {
        let catalog = Catalog::open(base.path()).unwrap();
        let first = add(&catalog, "a", 1000).rid;
        catalog.delete_user("a", Mode::Commit).unwrap();
        first
    };
    let catalog = Catalog::open(base.path()).unwrap();
    assert_eq!((first, add(&catalog, "a", 1000).rid), (RID_FIRST, RID_FIRST + 1));
    let preview = catalog.create_user(&new("b", 1001), Mode::Preview).unwrap();
    assert!(preview.snapshot.user_named("b").is_some());
    assert!(catalog.snapshot().user_named("b").is_none());
}

#[test]
fn members_come_and_go_and_take_nothing_with_them() {
    let base = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(base.path()).unwrap();
    for (name, gid) in [("g", 7), ("h", 8)] {
        catalog.create_group(name, gid, Mode::Commit).unwrap();
    }
    add(&catalog, "a", 1000);
    catalog.add_member("g", "a", Mode::Commit).unwrap();
    assert_eq!(code(catalog.add_member("g", "a", Mode::Commit)), "member_exists");
    assert_eq!(code(catalog.remove_member("h", "a", Mode::Commit)), "no_such_member");
    assert_eq!(code(catalog.add_member("x", "a", Mode::Commit)), "no_such_group");
    assert_eq!(code(catalog.add_member("g", "x", Mode::Commit)), "no_such_user");
    let both = UserChange {
        groups: Some(vec!["h".into(), "g".into()]),
        gid: Some(9),
        enabled: Some(false),
        name: None,
    };
    catalog.change_user("a", &both, Mode::Commit).unwrap();
    let changed = user(&catalog, "a");
    assert_eq!((group_names(&changed), changed.gid, changed.enabled), (vec!["g", "h"], 9, false));
    let identity = weir_core::Credentials::new(1000, 9).with_groups(&[7, 8]);
    assert_eq!(changed.credentials(), identity);
    catalog.remove_member("g", "a", Mode::Commit).unwrap();
    catalog.delete_group("h", Mode::Commit).unwrap();
    assert!(user(&catalog, "a").groups.is_empty());
    catalog.add_member("g", "a", Mode::Commit).unwrap();
    catalog.delete_user("a", Mode::Commit).unwrap();
    assert_eq!(code(catalog.delete_user("a", Mode::Commit)), "no_such_user");
    assert_eq!(code(catalog.delete_group("h", Mode::Commit)), "no_such_group");
    assert!(catalog.snapshot().group_named("g").is_some());
}

#[test]
fn a_password_stays_with_its_user_and_its_data_directory() {
    let base = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(base.path()).unwrap();
    add(&catalog, "a", 1000);
    catalog.set_password("a", &HASH, Mode::Preview).unwrap();
    assert!(!base.path().join("smb.key").exists(), "a preview makes nothing");
    assert_eq!(user(&catalog, "a").password, None);
    catalog.set_password("A", &HASH, Mode::Commit).unwrap();
    assert_eq!(opened(&catalog, "a"), Ok(HASH));
    let rename = UserChange { name: Some("b".into()), ..UserChange::default() };
    catalog.change_user("a", &rename, Mode::Commit).unwrap();
    add(&catalog, "c", 1001);
    drop(catalog);
    let database = std::fs::read(base.path().join("weir.db")).unwrap();
    assert!(!database.windows(8).any(|part| part == &HASH[..8]), "it is sealed");
    // Whoever can write to the database can still not give a password to another user.
    Connection::open(base.path().join("weir.db"))
        .unwrap()
        .execute_batch(
            "UPDATE accounts SET nt_hash = (SELECT nt_hash FROM accounts WHERE name = 'b')
             WHERE name = 'c'",
        )
        .unwrap();
    let catalog = Catalog::open(base.path()).unwrap();
    assert_eq!(opened(&catalog, "b"), Ok(HASH));
    assert_eq!(opened(&catalog, "c"), Err(Unsealed::OtherKey));
    drop(catalog);
    assert_eq!(findings(base.path()), ["passwords_unreadable"]);
}

fn findings(data: &Path) -> Vec<&'static str> {
    check(data, None).unwrap().findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn without_its_key_a_password_is_set_again_and_nothing_else_is_lost() {
    let base = tempfile::tempdir().unwrap();
    let key = base.path().join("smb.key");
    let catalog = Catalog::open(base.path()).unwrap();
    for (name, uid) in [("a", 1000), ("b", 1001)] {
        add(&catalog, name, uid);
        catalog.set_password(name, &HASH, Mode::Commit).unwrap();
    }
    drop(catalog);
    assert_eq!(findings(base.path()), [""; 0]);
    let whole = std::fs::read(&key).unwrap();
    std::fs::write(&key, "damaged").unwrap();
    assert_eq!(findings(base.path()), ["bad_smb_key", "passwords_unreadable"]);
    let catalog = Catalog::open(base.path()).unwrap();
    assert_eq!(opened(&catalog, "a"), Err(Unsealed::Damaged));
    assert_eq!(code(catalog.set_password("a", &HASH, Mode::Commit)), "bad_smb_key");
    drop(catalog);
    std::fs::remove_file(&key).unwrap();
    std::fs::DirBuilder::new().mode(0o700).create(&key).unwrap();
    assert_eq!(findings(base.path()), ["smb_key_unreadable", "passwords_unreadable"]);
    let catalog = Catalog::open(base.path()).unwrap();
    assert_eq!(opened(&catalog, "a"), Err(Unsealed::Unreadable));
    assert_eq!(code(catalog.set_password("a", &HASH, Mode::Commit)), "smb_key_unreadable");
    drop(catalog);
    std::fs::remove_dir(&key).unwrap();
    assert_eq!(findings(base.path()), ["passwords_unreadable"]);
    let catalog = Catalog::open(base.path()).unwrap();
    assert_eq!(opened(&catalog, "a"), Err(Unsealed::NoKey));
    catalog.set_password("a", &HASH, Mode::Commit).unwrap();
    assert_eq!((opened(&catalog, "a"), opened(&catalog, "b")), (Ok(HASH), Err(Unsealed::OtherKey)));
    assert_eq!(catalog.snapshot().users().len(), 2);
    drop(catalog);
    std::fs::write(&key, whole).unwrap();
    assert_eq!(opened(&Catalog::open(base.path()).unwrap(), "b"), Ok(HASH));
}

#[test]
fn a_backup_has_users_but_no_key_of_passwords() {
    let base = tempfile::tempdir().unwrap();
    let (data, other) = (base.path().join("data"), base.path().join("other"));
    let catalog = Catalog::open(&data).unwrap();
    add(&catalog, "a", 1000);
    catalog.set_password("a", &HASH, Mode::Commit).unwrap();
    let (domain, backup) = (catalog.snapshot().domain(), catalog.backup().unwrap());
    let key = std::fs::read_to_string(data.join("smb.key")).unwrap();
    let digits = key.lines().nth(1).unwrap().as_bytes();
    assert!(!backup.windows(digits.len()).any(|part| part == digits));
    let later = add(&catalog, "later", 1001).rid;
    restore(&other, Path::new("b"), &backup, Replace::Never).unwrap();
    let restored = Catalog::open(&other).unwrap();
    assert_eq!(restored.snapshot().domain(), domain);
    assert_eq!(opened(&restored, "a"), Err(Unsealed::NoKey));
    assert!(add(&restored, "b", 1001).rid > later + 1000, "a forgotten RID is not used again");
    drop((catalog, restored));
    // In its own directory the key is still there.
    restore(&data, Path::new("b"), &backup, Replace::Kept).unwrap();
    assert_eq!(opened(&Catalog::open(&data).unwrap(), "a"), Ok(HASH));
}

#[test]
fn each_data_directory_is_a_domain_of_its_own() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let domain = |data: &Path| Catalog::open(data).unwrap().snapshot().domain();
    assert_ne!(domain(one.path()), domain(two.path()));
    assert_eq!(domain(one.path()), domain(one.path()));
    assert_ne!(domain(one.path()), [0; 3]);
}

#[test]
fn a_group_that_a_membership_refers_to_and_that_is_gone_is_damage() {
    let base = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(base.path()).unwrap();
    add(&catalog, "a", 1000);
    drop(catalog);
    let db = Connection::open(base.path().join("weir.db")).unwrap();
    db.execute_batch("PRAGMA foreign_keys = OFF; INSERT INTO members VALUES (1000, 5000)").unwrap();
    drop(db);
    let damaged = Catalog::open(base.path()).unwrap_err();
    assert!(matches!(damaged, CatalogError::Damaged(_)), "{damaged}");
    assert!(findings(base.path()).contains(&"damaged"));
}

#[test]
fn thousands_of_users_are_one_snapshot() {
    let base = tempfile::tempdir().unwrap();
    drop(Catalog::open(base.path()).unwrap());
    let db = Connection::open(base.path().join("weir.db")).unwrap();
    db.execute_batch(
        "INSERT INTO accounts (name, gid) VALUES ('g', 5);
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
             INSERT INTO accounts (name, uid, gid) SELECT 'user' || i, i, 5 FROM n;
         INSERT INTO members SELECT rid, 1000 FROM accounts WHERE uid IS NOT NULL;",
    )
    .unwrap();
    drop(db);
    let catalog = Catalog::open(base.path()).unwrap();
    let snapshot: Arc<Snapshot> = catalog.snapshot();
    assert_eq!(snapshot.users().len(), 10_000);
    for user in snapshot.users() {
        assert_eq!(snapshot.user_named(&user.name.to_uppercase()), Some(user));
        assert_eq!((user.groups.len(), user.primary.as_ref()), (1, snapshot.group_named("G")));
    }
}
