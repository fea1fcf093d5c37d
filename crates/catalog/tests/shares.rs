//! Protocols of volumes, shares and share rules as their callers see them.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use weir_catalog::{
    Access, Catalog, Mode, NamedPrincipal, NewPool, NewUser, NewVolume, Principal, Protocols,
    Replace, ShareAccess, ShareClients, SharingChange, User, Volume, VolumeChange, restore,
};

const GIB: u64 = 1 << 30;

fn with_pool(data: &Path) -> Catalog {
    let catalog = Catalog::open(data).unwrap();
    let (name, level) = ("p".to_owned(), "premium".to_owned());
    let pool = NewPool { name, level, size_bytes: 1024 * GIB, ..NewPool::default() };
    catalog.create_pool(&pool, Mode::Commit).unwrap();
    catalog
}

fn new(name: &str, sharing: SharingChange) -> NewVolume {
    let (name, pool) = (name.to_owned(), "p".to_owned());
    NewVolume { name, pool, quota_bytes: GIB, sharing, ..NewVolume::default() }
}

fn protocols(nfs: bool, smb: bool) -> SharingChange {
    SharingChange { protocols: Protocols::new(nfs, smb), ..SharingChange::default() }
}

fn change(catalog: &Catalog, name: &str, sharing: SharingChange) -> weir_catalog::Result<()> {
    let change = VolumeChange { sharing, ..VolumeChange::default() };
    catalog.change_volume(name, &change, None, Mode::Commit).map(drop)
}

fn volume(catalog: &Catalog, name: &str) -> Arc<Volume> {
    Arc::clone(catalog.snapshot().volume_named(name).unwrap())
}

fn add_user(catalog: &Catalog, name: &str, uid: u32, groups: &[&str]) -> Arc<User> {
    let groups = groups.iter().map(|&group| group.to_owned()).collect();
    let new = NewUser { name: name.to_owned(), uid, gid: None, groups, enabled: true };
    let made = catalog.create_user(&new, Mode::Commit).unwrap();
    Arc::clone(made.snapshot.user_named(name).unwrap())
}

fn clients(network: &str, principal: NamedPrincipal) -> ShareClients {
    let network = (network != "any").then(|| network.parse().unwrap());
    ShareClients { network, principal }
}

fn anyone(network: &str) -> ShareClients {
    clients(network, NamedPrincipal::Anyone)
}

fn one(network: &str, name: &str) -> ShareClients {
    clients(network, NamedPrincipal::User(name.to_owned()))
}

fn group(network: &str, name: &str) -> ShareClients {
    clients(network, NamedPrincipal::Group(name.to_owned()))
}

fn code(refused: weir_catalog::Result<impl std::fmt::Debug>) -> &'static str {
    refused.unwrap_err().code()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn a_volume_is_served_by_the_protocols_it_has() {
    let base = tempfile::tempdir().unwrap();
    let catalog = with_pool(base.path());
    let user = add_user(&catalog, "u", 1000, &[]);
    catalog.create_volume(&new("v", SharingChange::default()), Mode::Commit).unwrap();
    let here = ip("127.0.0.1");
    let rights = || {
        let volume = volume(&catalog, "v");
        (volume.rule_for(here).is_some(), volume.share_access(here, &user))
    };
    assert_eq!((volume(&catalog, "v").protocols, rights()), (Protocols::NFS, (true, None)));
    assert_eq!(catalog.snapshot().share_named("v"), None);
    change(&catalog, "v", protocols(true, true)).unwrap();
    assert_eq!(rights(), (true, Some(Access::ReadWrite)));
    assert_eq!(volume(&catalog, "v").share_access(ip("::1"), &user), Some(Access::ReadWrite));
    assert_eq!(volume(&catalog, "v").share_access(ip("10.0.0.1"), &user), None);
    assert_eq!(catalog.snapshot().share_named("V"), Some(&volume(&catalog, "v")));
    change(&catalog, "v", protocols(false, true)).unwrap();
    assert_eq!(rights(), (false, Some(Access::ReadWrite)));
    assert_eq!(Protocols::new(false, false), None);
    let settings = SharingChange {
        encrypt: Some(true),
        hidden: Some(true),
        abe: Some(true),
        ..SharingChange::default()
    };
    change(&catalog, "v", settings).unwrap();
    change(&catalog, "v", SharingChange { hidden: Some(false), ..protocols(true, false) }).unwrap();
    assert_eq!(rights(), (true, None));
    assert_eq!(catalog.snapshot().shares().len(), 0);
    drop(catalog);
    let smb = volume(&Catalog::open(base.path()).unwrap(), "v").smb.clone();
    assert_eq!((smb.encrypt, smb.hidden, smb.abe, smb.rules.len()), (true, false, true, 2));
}

#[test]
fn a_share_gets_its_first_rules_once() {
    let base = tempfile::tempdir().unwrap();
    let catalog = with_pool(base.path());
    catalog.create_volume(&new("v", protocols(false, true)), Mode::Commit).unwrap();
    let rules = || volume(&catalog, "v").smb.rules.len();
    assert_eq!(rules(), 2);
    catalog.set_share_rules("v", &[], Mode::Commit).unwrap();
    let encrypt = SharingChange { encrypt: Some(true), ..protocols(true, true) };
    change(&catalog, "v", encrypt).unwrap();
    assert_eq!(rules(), 0, "it had SMB before");
    catalog.add_share_rule("v", &anyone("any"), ShareAccess::ReadOnly, Mode::Commit).unwrap();
    change(&catalog, "v", protocols(true, false)).unwrap();
    change(&catalog, "v", protocols(true, true)).unwrap();
    assert_eq!(rules(), 1, "it has rules");
}

#[test]
fn names_of_shares_differ_by_more_than_case() {
    let base = tempfile::tempdir().unwrap();
    let catalog = with_pool(base.path());
    let create =
        |name: &str, sharing| catalog.create_volume(&new(name, sharing), Mode::Commit).map(drop);
    create("a", protocols(true, true)).unwrap();
    assert_eq!(code(create("A", protocols(true, true))), "share_name_taken");
    create("A", SharingChange::default()).unwrap();
    assert_eq!(code(change(&catalog, "A", protocols(false, true))), "share_name_taken");
    change(&catalog, "A", SharingChange { hidden: Some(true), ..protocols(true, false) }).unwrap();
    change(&catalog, "a", protocols(true, true)).unwrap();
    change(&catalog, "a", protocols(true, false)).unwrap();
    change(&catalog, "A", protocols(true, true)).unwrap();
    assert_eq!(catalog.snapshot().share_named("a").unwrap().name, "A");
    catalog.delete_volume("A", Mode::Commit).unwrap();
    assert_eq!(catalog.snapshot().share_named("a"), None);
    assert_eq!(code(create("Pipe", protocols(true, true))), "share_name_reserved");
    create("Pipe", SharingChange::default()).unwrap();
    // The names of the protocol's own shares are none of volumes.
    for reserved in ["IPC$", "ADMIN$", "PRINT$"] {
        assert_eq!(code(create(reserved, SharingChange::default())), "bad_name");
    }
}

#[test]
fn the_most_specific_network_decides_then_the_most_specific_users() {
    let base = tempfile::tempdir().unwrap();
    let catalog = with_pool(base.path());
    catalog.create_volume(&new("v", protocols(true, true)), Mode::Commit).unwrap();
    for (name, gid) in [("staff", 50), ("guests", 51), ("own", 1003)] {
        catalog.create_group(name, gid, Mode::Commit).unwrap();
    }
    let ann = add_user(&catalog, "ann", 1000, &["staff", "guests"]);
    let bob = add_user(&catalog, "bob", 1001, &["guests"]);
    let eve = add_user(&catalog, "eve", 1002, &[]);
    let own = add_user(&catalog, "own-user", 1003, &[]);
    let rules = [
        (anyone("any"), ShareAccess::ReadOnly),
        (group("any", "own"), ShareAccess::ReadWrite),
        (anyone("10.0.0.0/8"), ShareAccess::ReadWrite),
        (group("10.0.0.0/8", "staff"), ShareAccess::ReadWrite),
        (group("10.0.0.0/8", "guests"), ShareAccess::ReadOnly),
        (one("10.0.0.0/8", "eve"), ShareAccess::None),
        (anyone("10.1.0.0/16"), ShareAccess::None),
        (one("10.1.0.0/16", "eve"), ShareAccess::ReadOnly),
        (one("0.0.0.0/0", "bob"), ShareAccess::ReadWrite),
    ];
    catalog.set_share_rules("v", &rules, Mode::Commit).unwrap();
    let shared = volume(&catalog, "v");
    let (ro, rw) = (Some(Access::ReadOnly), Some(Access::ReadWrite));
    for (who, from, expected, why) in [
        (&ann, "192.0.2.1", ro, "everybody from anywhere"),
        (&own, "192.0.2.1", rw, "a primary group counts"),
        (&own, "10.0.0.1", rw, "everybody of the network"),
        (&ann, "10.0.0.1", rw, "the most permissive of the groups"),
        (&bob, "10.0.0.1", ro, "the group before everybody"),
        (&eve, "10.0.0.1", None, "the user before everybody"),
        (&eve, "::ffff:10.0.0.1", None, "the same address"),
        (&ann, "10.1.0.1", None, "the network before the groups of a larger one"),
        (&eve, "10.1.0.1", ro, "the user in the most specific network"),
        (&bob, "192.0.2.1", rw, "a network of all addresses before any"),
        (&bob, "fd00::1", ro, "a network is of one family"),
    ] {
        assert_eq!(shared.share_access(ip(from), who), expected, "{} {from}: {why}", who.name);
    }
    let first = shared.smb.rules.first().unwrap();
    assert_eq!(first.principal, Principal::User(eve.rid), "they are listed as they are evaluated");
    assert_eq!(shared.smb.rules.last().unwrap().principal, Principal::Anyone);
}

#[test]
fn share_rules_are_added_removed_and_bounded() {
    let base = tempfile::tempdir().unwrap();
    let catalog = with_pool(base.path());
    catalog.create_volume(&new("v", protocols(true, true)), Mode::Commit).unwrap();
    add_user(&catalog, "u", 1000, &[]);
    let add = |clients: &ShareClients| {
        code(catalog.add_share_rule("v", clients, ShareAccess::ReadOnly, Mode::Commit))
    };
    catalog.add_share_rule("v", &one("any", "U"), ShareAccess::ReadOnly, Mode::Commit).unwrap();
    assert_eq!(add(&one("any", "u")), "share_rule_exists");
    assert_eq!(add(&one("any", "x")), "no_such_user");
    assert_eq!(add(&group("any", "u")), "no_such_group");
    let remove = |clients| catalog.remove_share_rule("v", &clients, Mode::Commit);
    assert_eq!(code(remove(anyone("any"))), "no_such_share_rule");
    let told = remove(one("10.0.0.0/8", "u")).unwrap_err().to_string();
    assert_eq!(told, "volume \"v\" has no share rule for user \"u\" from 10.0.0.0/8");
    let many: Vec<_> = (0..=256_u32)
        .map(|n| (anyone(&format!("10.0.{}.{}", n / 256, n % 256)), ShareAccess::ReadOnly))
        .collect();
    assert_eq!(code(catalog.set_share_rules("v", &many, Mode::Commit)), "too_many");
    catalog.set_share_rules("v", &many[1..], Mode::Commit).unwrap();
    catalog.set_share_rules("v", &[many[0].clone()], Mode::Commit).unwrap();
    remove(many[0].0.clone()).unwrap();
    assert!(volume(&catalog, "v").smb.rules.is_empty());
    let unknown = catalog.add_share_rule("w", &anyone("any"), ShareAccess::None, Mode::Commit);
    assert_eq!(code(unknown), "no_such_volume");
}

#[test]
fn a_user_that_a_rule_names_is_not_deleted() {
    let base = tempfile::tempdir().unwrap();
    let (data, other) = (base.path().join("data"), base.path().join("other"));
    let catalog = with_pool(&data);
    catalog.create_volume(&new("v", protocols(true, true)), Mode::Commit).unwrap();
    catalog.create_group("g", 5, Mode::Commit).unwrap();
    add_user(&catalog, "u", 1000, &[]);
    for clients in [one("any", "u"), group("any", "g")] {
        catalog.add_share_rule("v", &clients, ShareAccess::None, Mode::Commit).unwrap();
    }
    assert_eq!(code(catalog.delete_user("u", Mode::Commit)), "account_in_use");
    let refused = catalog.delete_user("u", Mode::Commit).unwrap_err().to_string();
    let remedy = "`weir share remove v --network NETWORK --user \"u\"`";
    assert!(refused.contains(remedy), "{refused}");
    let refused = catalog.delete_group("g", Mode::Commit).unwrap_err().to_string();
    assert!(refused.contains("share rules of volume \"v\""), "{refused}");
    assert!(refused.contains("--network NETWORK --group \"g\"`"), "{refused}");
    let backup = catalog.backup().unwrap();
    restore(&other, Path::new("b"), &backup, Replace::Never).unwrap();
    assert_eq!(volume(&Catalog::open(&other).unwrap(), "v").smb, volume(&catalog, "v").smb);
    catalog.delete_volume("v", Mode::Commit).unwrap();
    catalog.delete_user("u", Mode::Commit).unwrap();
    catalog.delete_group("g", Mode::Commit).unwrap();
}
