//! Tests of descriptors, views and what is made of them.

use super::*;
use crate::security::sid::tests::{ADMINISTRATORS, nfs_mode, sid};
use crate::wire::{AccessMask, SecurityInformation};
use proptest::prelude::*;
use std::vec::Vec;
use weir_core::acl::{Entry, Who};
use weir_core::{Access, Acl, Attr, DeviceNumber, FileKind, Timestamp};

/// Users 1000 to 1009 and groups 100 to 109 are of the directory.
struct Ids;

impl Identities for Ids {
    fn domain(&self) -> Sid {
        Sid::domain([11, 22, 33])
    }
    fn user_rid(&self, uid: u32) -> Option<u32> {
        (1000..1010).contains(&uid).then_some(uid + 1000)
    }
    fn group_rid(&self, gid: u32) -> Option<u32> {
        (100..110).contains(&gid).then_some(gid + 3000)
    }
    fn by_rid(&self, rid: u32) -> Option<Principal> {
        match rid {
            2000..2010 => Some(Principal::User(rid - 1000)),
            3100..3110 => Some(Principal::Group(rid - 3000)),
            _ => None,
        }
    }
}

fn attr(kind: FileKind, mode: u32) -> Attr {
    Attr {
        kind,
        mode,
        has_acl: false,
        nlink: 1,
        uid: 1000,
        gid: 100,
        size: 0,
        used: 0,
        rdev: DeviceNumber::default(),
        fileid: 1,
        atime: Timestamp::default(),
        mtime: Timestamp::default(),
        ctime: Timestamp::default(),
    }
}

fn user() -> Sid {
    Ids.user_sid(1000)
}

fn group() -> Sid {
    Ids.group_sid(100)
}

fn allow(sid: Sid, mask: u32) -> Ace {
    let mask = AccessMask::from_bits_retain(mask);
    Ace { kind: AceKind::Allow, flags: AceFlags::empty(), mask, sid }
}

fn inherit(sid: Sid, mask: u32) -> Ace {
    Ace { flags: AceFlags::from_bits_retain(0x0B), ..allow(sid, mask) }
}

fn dacl(entries: &[Ace]) -> Descriptor {
    Descriptor { dacl: Dacl::List(entries.to_vec()), ..Descriptor::default() }
}

/// The change that a list means for a file or directory of mode 0600.
fn set(kind: FileKind, entries: &[Ace]) -> Result<SetPosix, NotExpressible> {
    let attr = attr(kind, 0o4600);
    posix_from(&dacl(entries), &Current { attr: &attr, acl: None, default: None }, &Ids)
}

fn mode(entries: &[Ace]) -> Option<u32> {
    let set = set(FileKind::Regular, entries).unwrap();
    assert_eq!(SetPosix { mode: set.mode, ..SetPosix::default() }, set);
    set.mode
}

const R: Access = Access::READ;
const W: Access = Access::WRITE;
const NONE: Access = Access::empty();

fn acl(entries: &[(Who, Access)]) -> Acl {
    Acl::new(entries.iter().map(|&(who, rights)| Entry { who, rights }).collect()).unwrap()
}

#[test]
fn principals_have_sids_and_back() {
    assert_eq!(Ids.user_sid(1001).to_string(), "S-1-5-21-11-22-33-2001");
    assert_eq!(Ids.user_sid(5).to_string(), "S-1-22-1-5");
    assert_eq!(Ids.group_sid(5).to_string(), "S-1-22-2-5");
    for (sid, principal) in [
        ("S-1-5-21-11-22-33-2001", Some(Principal::User(1001))),
        ("S-1-5-21-11-22-33-3101", Some(Principal::Group(101))),
        ("S-1-5-21-11-22-34-2001", None),
        ("S-1-5-21-11-22-33-9", None),
        ("S-1-22-1-7", Some(Principal::User(7))),
        ("S-1-22-2-7", Some(Principal::Group(7))),
        ("S-1-22-3-7", None),
        ("S-1-5-88-1-7", Some(Principal::User(7))),
        ("S-1-5-88-2-7", Some(Principal::Group(7))),
        ("S-1-5-88-3-7", None),
        ("S-1-22-1-4294967295", None),
        ("S-1-1-0", None),
    ] {
        assert_eq!(Ids.principal(&sid.parse().unwrap()), principal, "{sid}");
    }
}

#[test]
fn a_mode_is_shown_as_three_entries() {
    let attr = attr(FileKind::Regular, 0o640);
    let shown = view(&Current { attr: &attr, acl: None, default: None }, &Ids);
    let entries = [
        allow(user(), 0x0016_019F),
        allow(group(), 0x0012_0089),
        allow(Sid::EVERYONE, 0x0012_0080),
    ];
    assert_eq!((shown.owner, shown.group), (Some(user()), Some(group())));
    assert_eq!(shown.dacl, Dacl::List(entries.to_vec()));
}

#[test]
fn lists_are_shown_under_their_mask() {
    let attr = attr(FileKind::Directory, 0o750);
    let base = [(Who::Owner, Access::all()), (Who::OwningGroup, R | W), (Who::Others, NONE)];
    let access = acl(&[&base[..], &[(Who::User(7), R | W), (Who::Mask, R)]].concat());
    let default = acl(&base);
    let current = Current { attr: &attr, acl: Some(&access), default: Some(&default) };
    let all = 0x0016_01FF;
    let expected = [
        allow(user(), all),
        allow(Sid::unix_user(7), 0x0012_0089),
        allow(group(), 0x0012_0089),
        allow(Sid::EVERYONE, 0x0012_0080),
        inherit(Sid::CREATOR_OWNER, all),
        inherit(Sid::CREATOR_GROUP, 0x0012_01DF),
        inherit(Sid::EVERYONE, 0x0012_0080),
    ];
    assert_eq!(view(&current, &Ids).dacl, Dacl::List(expected.to_vec()));
    let file = Attr { kind: FileKind::Regular, ..attr };
    let Dacl::List(shown) = view(&Current { attr: &file, ..current }, &Ids).dacl else { panic!() };
    assert_eq!(shown.len(), 4, "only directories have a default list");
}

#[test]
fn a_descriptor_is_laid_out_as_specified() {
    let descriptor = Descriptor {
        owner: Some(Sid::SYSTEM),
        group: None,
        dacl: Dacl::List(vec![allow(Sid::EVERYONE, 0x0012_0089)]),
    };
    let mut out = vec![0xEE];
    descriptor.encode(&mut out).unwrap();
    let expected = [
        0xEE, 1, 0, 4, 0x90, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, //
        1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0, //
        2, 0, 28, 0, 1, 0, 0, 0, 0, 0, 20, 0, 0x89, 0, 0x12, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0,
    ];
    assert_eq!(out, expected);
    assert_eq!(Descriptor::decode(&out[1..]), Ok(descriptor.clone()));
    let parts = SecurityInformation::OWNER | SecurityInformation::GROUP;
    let owner = Descriptor { dacl: Dacl::Absent, ..descriptor.clone() };
    assert_eq!(descriptor.restricted(parts), owner);
}

#[test]
fn malformed_descriptors_are_refused() {
    let mut good = Vec::new();
    dacl(&[allow(Sid::EVERYONE, 1), allow(user(), 1)]).encode(&mut good).unwrap();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Descriptor::decode(&bytes)
    };
    let malformed = Err(DescriptorError::Malformed);
    assert_eq!(with(0, 2), malformed, "the revision");
    assert_eq!(with(3, 0), malformed, "not self-relative");
    assert_eq!(with(4, 200), malformed, "an owner outside");
    assert_eq!(with(16, 19), malformed, "a list within the header");
    assert_eq!(with(20, 1), malformed, "the revision of the list");
    assert_eq!(with(22, 7), malformed, "a list shorter than its head");
    assert_eq!(with(22, 200), malformed, "a list longer than the rest");
    assert_eq!(with(24, 3), malformed, "more entries than there are");
    assert_eq!(with(25, 255), malformed, "many more");
    assert_eq!(with(30, 3), malformed, "an entry shorter than its head");
    assert_eq!(with(28, 5), Err(DescriptorError::Unsupported), "for objects");
    assert_eq!(with(28, 9), Err(DescriptorError::Unsupported), "with conditions");
    assert_eq!(with(2, 0), Ok(Descriptor::default()), "a list that is said not to be there");
    let null = with(16, 0).unwrap();
    assert_eq!(null.dacl, Dacl::Null);
    let long = vec![0; DESCRIPTOR_BYTES_MAX + 1];
    assert_eq!(Descriptor::decode(&long), Err(DescriptorError::TooLong));
    let many = dacl(&[allow(user(), 1); 2000]);
    assert_eq!(many.encode(&mut Vec::new()), Err(DescriptorError::TooLong));
}

#[test]
fn lists_that_a_mode_can_say_become_one() {
    let (r, rw, all) = (0x0012_0089, 0x0012_019F, 0x001F_01FF);
    let owner = allow(user(), all);
    assert_eq!(mode(&[owner, allow(group(), r)]), Some(0o4740), "the other bits stay");
    assert_eq!(mode(&[owner, allow(Sid::EVERYONE, 0x0013_01BF)]), Some(0o4777), "modify");
    assert_eq!(mode(&[allow(Sid::EVERYONE, 0x1200A9)]), Some(0o4555), "the owner is someone");
    assert_eq!(mode(&[allow(Sid::OWNER_RIGHTS, 0x8000_0000)]), Some(0o4400), "generic");
    assert_eq!(mode(&[allow(Sid::AUTHENTICATED_USERS, r)]), Some(0o4444));
    assert_eq!(mode(&[]), Some(0o4000));
    assert_eq!(mode(&[allow(user(), rw)]), None, "as it is");
    assert_eq!(mode(&[allow(user(), r), allow(user(), 0x0012_0116)]), None, "the sum is");
    assert_eq!(mode(&[owner, allow(Sid::SYSTEM, all)]), Some(0o4700));
    assert_eq!(mode(&[owner, allow(Sid::CREATOR_GROUP, all)]), Some(0o4700), "is nobody");
    let inherited = Ace { flags: AceFlags::INHERITED, ..allow(user(), r) };
    assert_eq!(mode(&[inherited]), Some(0o4400));
    assert_eq!(mode(&[owner, inherit(group(), r)]), Some(0o4700), "nothing is in a file");
    let nothing = Ace { kind: AceKind::Deny, ..allow(Sid::EVERYONE, 0) };
    assert_eq!(mode(&[nothing, owner]), Some(0o4700));
    assert_eq!(mode(&[allow(nfs_mode(0o1644), 0), owner]), Some(0o1644));
    let denied = Ace { kind: AceKind::Deny, ..allow(nfs_mode(0o4600), 0) };
    assert_eq!(mode(&[denied]), None);
}

#[test]
fn named_users_and_groups_make_a_list() {
    let (r, rw) = (0x0012_0089, 0x0012_019F);
    let entries = [allow(user(), rw), allow(Ids.user_sid(1001), rw), allow(Ids.group_sid(101), r)];
    let expected = acl(&[
        (Who::Owner, R | W),
        (Who::User(1001), R | W),
        (Who::OwningGroup, NONE),
        (Who::Group(101), R),
        (Who::Mask, R | W),
        (Who::Others, NONE),
    ]);
    let done = set(FileKind::Regular, &entries).unwrap();
    assert_eq!(done, SetPosix { acl: Some(expected.clone()), ..SetPosix::default() });
    let file = attr(FileKind::Regular, 0o660);
    let current = Current { attr: &file, acl: Some(&expected), default: None };
    let done = posix_from(&dacl(&entries[..1]), &current, &Ids).unwrap();
    assert_eq!(done.acl, Some(Acl::from_mode(0o600)), "the list goes");
    assert_eq!(done.mode, None);
}

#[test]
fn inherited_entries_of_a_directory_make_its_default_list() {
    let (r, all) = (0x0012_0089, 0x001F_01FF);
    let full = allow(user(), 0x0016_019F);
    let entries = [
        full,
        inherit(Sid::CREATOR_OWNER, all),
        Ace { flags: AceFlags::from_bits_retain(3), ..allow(Ids.user_sid(1001), r) },
    ];
    let done = set(FileKind::Directory, &entries).unwrap();
    let named = (Who::User(1001), R);
    let base = [named, (Who::OwningGroup, NONE), (Who::Mask, R), (Who::Others, NONE)];
    assert_eq!(done.acl, Some(acl(&[&base[..], &[(Who::Owner, R | W)]].concat())));
    let default = acl(&[&base[..], &[(Who::Owner, Access::all())]].concat());
    assert_eq!(done.default, SetDefault::To(default.clone()));
    let directory = attr(FileKind::Directory, 0o600);
    let current = Current { attr: &directory, acl: None, default: Some(&default) };
    let base = [full, allow(group(), 0x0012_0080), allow(Sid::EVERYONE, 0x0012_0080)];
    let done = posix_from(&dacl(&base), &current, &Ids).unwrap();
    assert_eq!(done, SetPosix { default: SetDefault::Remove, ..SetPosix::default() });
}

#[test]
fn owner_and_group_change_where_they_are_users_and_groups() {
    let file = attr(FileKind::Regular, 0o600);
    let current = Current { attr: &file, acl: None, default: None };
    let wanted = |owner, group| Descriptor { owner, group, dacl: Dacl::Absent };
    let change = |owner, group| posix_from(&wanted(owner, group), &current, &Ids);
    let (bob, team) = (Ids.user_sid(1001), Sid::unix_group(7));
    let both = SetPosix { uid: Some(1001), gid: Some(7), ..SetPosix::default() };
    assert_eq!(change(Some(bob), Some(team)), Ok(both));
    assert_eq!(change(Some(user()), Some(group())), Ok(SetPosix::default()));
    assert_eq!(change(None, None), Ok(SetPosix::default()));
    assert_eq!(change(Some(team), None), Err(NotExpressible));
    assert_eq!(change(None, Some(bob)), Err(NotExpressible));
    assert_eq!(change(Some(ADMINISTRATORS), None), Err(NotExpressible));
    // The list is read with the new owner: the old one is a named user then.
    let given = Descriptor { owner: Some(bob), ..dacl(&[allow(user(), 0x0012_019F)]) };
    let done = posix_from(&given, &current, &Ids).unwrap();
    assert_eq!((done.uid, done.acl.map(|acl| acl.mode_bits())), (Some(1001), Some(0o060)));
}

#[test]
fn what_posix_cannot_say_is_refused() {
    let deny = Ace { kind: AceKind::Deny, ..allow(Sid::EVERYONE, 2) };
    let flags = |bits| Ace { flags: AceFlags::from_bits_retain(bits), ..allow(group(), 0x12_0089) };
    let directory = FileKind::Directory;
    for (kind, entry) in [
        (FileKind::Regular, deny),
        (FileKind::Regular, allow(ADMINISTRATORS, 0x12_0089)),
        (FileKind::Regular, allow("S-1-5-21-9-9-9-500".parse().unwrap(), 0x12_0089)),
        (FileKind::Regular, allow(group(), 0x0004)),
        (FileKind::Regular, allow(group(), 0x0002)),
        (FileKind::Regular, allow(group(), 0x0100)),
        (FileKind::Regular, allow(group(), 0x0004_0000)),
        (FileKind::Regular, allow(Sid::EVERYONE, 0x001F_01FF)),
        (FileKind::Regular, allow(user(), 0x0100_0000)),
        (FileKind::Regular, allow(user(), 0x0200_0000)),
        (directory, flags(0x01)),
        (directory, flags(0x02)),
        (directory, flags(0x0A)),
        (directory, flags(0x07)),
        (directory, inherit(Sid::OWNER_RIGHTS, 0x12_0089)),
    ] {
        assert_eq!(set(kind, &[entry]), Err(NotExpressible), "{entry:?}");
    }
    let null = Descriptor { dacl: Dacl::Null, ..Descriptor::default() };
    let file = attr(FileKind::Regular, 0o600);
    let current = Current { attr: &file, acl: None, default: None };
    assert_eq!(posix_from(&null, &current, &Ids), Err(NotExpressible));
}

fn rights() -> impl Strategy<Value = Access> {
    (0..8_u8).prop_map(Access::from_bits_truncate)
}

fn id() -> impl Strategy<Value = u32> {
    prop_oneof![1000..1003_u32, 100..103_u32, 0..3_u32]
}

fn any_acl() -> impl Strategy<Value = Acl> {
    let named = prop::collection::btree_map(
        prop_oneof![id().prop_map(Who::User), id().prop_map(Who::Group)],
        rights(),
        0..5,
    );
    (named, rights(), rights(), rights(), rights()).prop_map(
        |(named, owner, group, mask, others)| {
            let named: Vec<_> = named.into_iter().collect();
            let base = [(Who::Owner, owner), (Who::OwningGroup, group), (Who::Others, others)];
            acl(&[&named[..], &base, &[(Who::Mask, mask)]].concat())
        },
    )
}

/// `acl` as a list of Windows has it: nobody gets less than everyone, and the mask lets all
/// through.
fn summed(acl: &Acl) -> Acl {
    let find = |who| acl.entries().iter().find(|entry| entry.who == who).unwrap().rights;
    let (mask, others) = (find(Who::Mask), find(Who::Others));
    let named = acl.entries().len() > 4;
    let rights = |entry: &Entry| match entry.who {
        Who::Owner | Who::Others => entry.rights | others,
        _ => entry.rights & mask | others,
    };
    let kept = acl.entries().iter().filter(|entry| entry.who != Who::Mask);
    let mut entries: Vec<_> =
        kept.map(|entry| Entry { who: entry.who, rights: rights(entry) }).collect();
    if named {
        let class = entries.iter().filter(|entry| !matches!(entry.who, Who::Owner | Who::Others));
        let rights = class.fold(NONE, |most, entry| most | entry.rights);
        entries.push(Entry { who: Who::Mask, rights });
    }
    Acl::new(entries).unwrap()
}

proptest! {
    #[test]
    fn setting_what_was_shown_changes_nothing(
        access in prop::option::of(any_acl()),
        default in prop::option::of(any_acl()),
        (uid, gid, mode) in (id(), id(), 0..0o1_0000_u32),
        directory: bool,
    ) {
        let kind = if directory { FileKind::Directory } else { FileKind::Regular };
        let attr = Attr { uid, gid, ..attr(kind, mode) };
        let current = Current { attr: &attr, acl: access.as_ref(), default: default.as_ref() };
        let mut bytes = Vec::new();
        view(&current, &Ids).encode(&mut bytes).unwrap();
        let read = Descriptor::decode(&bytes).unwrap();
        prop_assert_eq!(posix_from(&read, &current, &Ids), Ok(SetPosix::default()));
    }

    #[test]
    fn a_list_that_was_shown_can_be_set_elsewhere(
        access in any_acl(), default in any_acl(), mode in 0..0o1000_u32,
    ) {
        // Owner and group that the lists don't name.
        let attr = Attr { uid: 77, gid: 77, ..attr(FileKind::Directory, mode) };
        let from = Current { attr: &attr, acl: Some(&access), default: Some(&default) };
        let shown = view(&from, &Ids);
        let other = acl(&[
            (Who::Owner, NONE), (Who::OwningGroup, NONE), (Who::Others, NONE),
            (Who::User(88), NONE), (Who::Mask, NONE),
        ]);
        let to = Current { attr: &attr, acl: Some(&other), default: None };
        let done = posix_from(&shown, &to, &Ids).unwrap();
        prop_assert_eq!(done.acl, Some(summed(&access)));
        prop_assert_eq!(done.default, SetDefault::To(summed(&default)));
    }

    #[test]
    fn descriptors_survive(
        owner in prop::option::of(sid()),
        group in prop::option::of(sid()),
        entries in prop::option::of(prop::collection::vec(
            (any::<bool>(), any::<u8>(), any::<u32>(), sid()), 0..8)),
    ) {
        let ace = |(allow, flags, mask, sid)| Ace {
            kind: if allow { AceKind::Allow } else { AceKind::Deny },
            flags: AceFlags::from_bits_retain(flags),
            mask: AccessMask::from_bits_retain(mask),
            sid,
        };
        let dacl = entries.map_or(Dacl::Null, |entries| Dacl::List(entries.into_iter().map(ace).collect()));
        let descriptor = Descriptor { owner, group, dacl };
        let mut bytes = Vec::new();
        descriptor.encode(&mut bytes).unwrap();
        prop_assert_eq!(Descriptor::decode(&bytes), Ok(descriptor.clone()));
        let short = Descriptor::decode(&bytes[..bytes.len() - 1]);
        prop_assert!(short.is_err());
        let current = attr(FileKind::Directory, 0o750);
        let _ = posix_from(&descriptor, &Current { attr: &current, acl: None, default: None }, &Ids);
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in any::<Vec<u8>>(),
        at in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        let _ = Descriptor::decode(&bytes);
        let mut changed = Vec::new();
        let attr = attr(FileKind::Directory, 0o750);
        let current = Current { attr: &attr, acl: None, default: None };
        view(&current, &Ids).encode(&mut changed).unwrap();
        let at = at.index(changed.len());
        changed[at] = byte;
        if let Ok(read) = Descriptor::decode(&changed) {
            let _ = posix_from(&read, &current, &Ids);
        }
    }
}
