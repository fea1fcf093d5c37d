//! Access control lists and the other rights that the kernel keeps with a file, as it keeps them.

use crate::acl::{FRIEND, OWNER, STRANGER, chmod, for_friend, get, in_both_cache_modes, set};
use crate::common::{ROOT, block_on, everywhere};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use weir_core::store::CreateHow;
use weir_core::{Access, AclKind, Name, SetAttr, Store, access};

#[test]
fn the_kernel_s_own_lists_are_honoured() {
    in_both_cache_modes(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o600, &OWNER).unwrap();
        let key = bed.store.key(&file);
        // The attribute that setfacl writes: version 2; the owner, user 1002, the group, a mask,
        // others.
        let (owner, none) = (1u16, u32::MAX);
        let entries =
            [(owner, 6u16, none), (2, 4, FRIEND.uid), (4, 0, none), (16, 4, none), (32, 0, none)];
        let bytes: Vec<u8> = 2u32
            .to_le_bytes()
            .into_iter()
            .chain(entries.iter().flat_map(|(tag, rights, id)| {
                [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
            }))
            .collect();
        let path = bed.path().join("f");
        weir_store::reset_identity().unwrap();
        setxattr(&path, "system.posix_acl_access", &bytes, XattrFlags::empty()).unwrap();
        let fresh = bed.reopen();
        let file = block_on(fresh.resolve(&key)).unwrap();
        let (attr, acl) = block_on(fresh.acl(&file, AclKind::Access)).unwrap();
        assert_eq!((attr.mode, attr.has_acl), (0o640, true));
        assert!(access::allows(&attr, acl.as_ref(), &FRIEND, Access::READ));
        assert!(!access::allows(&attr, acl.as_ref(), &STRANGER, Access::READ));
    });
}

/// Lists and extended attributes stay with a file whatever happens to its names and data.
#[test]
fn lists_and_extended_attributes_survive_every_operation_on_names_and_data() {
    everywhere(|bed| {
        bed.open_to_all(&bed.root());
        let file = bed.create(&bed.root(), b"f", 0o660, &OWNER).unwrap();
        let list = for_friend(Access::READ, Access::READ);
        set(bed, &file, AclKind::Access, Some(&list)).unwrap();
        weir_store::reset_identity().unwrap();
        let kept = [("user.note", b"kept"), ("security.note", b"safe")];
        let kept = kept.map(|(name, value)| {
            let path = bed.path().join("f");
            (name, value, setxattr(path, name, value, XattrFlags::empty()).is_ok())
        });
        assert!(kept.iter().all(|(_, _, kept)| *kept));
        let root = bed.root();
        let name = |bytes| Name::new(bytes).unwrap();
        bed.write(&file, 0, b"hello").unwrap();
        block_on(bed.store.link(&file, &root, name(b"g"), &OWNER)).unwrap();
        block_on(bed.store.rename(&root, name(b"f"), &root, name(b"h"), &OWNER)).unwrap();
        bed.set(&file, &SetAttr { size: Some(2), ..SetAttr::default() }, &OWNER).unwrap();
        let how = CreateHow::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
        block_on(bed.store.create(&root, name(b"h"), &how, &OWNER)).unwrap();
        bed.remove(&root, b"g").unwrap();
        chmod(bed, &file, 0o640);
        bed.set(&file, &SetAttr { gid: Some(3000), ..SetAttr::default() }, &ROOT).unwrap();
        assert_eq!(get(bed, &file).1, Some(list.with_mode(0o640)));
        weir_store::reset_identity().unwrap();
        for (name, value, _) in kept.iter().filter(|(_, _, kept)| *kept) {
            let mut room = [0; 16];
            let length = getxattr(bed.path().join("h"), *name, &mut room).unwrap();
            assert_eq!(&room[..length], *value, "{name}");
        }
    });
}
