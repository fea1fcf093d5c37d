//! The rules of access, written down a second time, from POSIX.1e and RFC 1813 §4.4: the server's
//! own decision is under test.

use weir_core::acl::Who;
use weir_core::{Access, Acl, Attr, Credentials, FileKind};

/// An object as the decision needs it.
pub(crate) struct Subject<'a> {
    pub(crate) attr: &'a Attr,
    pub(crate) acl: Option<&'a Acl>,
    pub(crate) cred: &'a Credentials,
}

const READ: u32 = 4;
const WRITE: u32 = 2;
const EXECUTE: u32 = 1;

impl Subject<'_> {
    /// The rights, as three bits.
    fn rights(&self) -> Vec<u32> {
        let (attr, cred) = (self.attr, self.cred);
        if cred.uid == 0 {
            let runs = attr.kind == FileKind::Directory || attr.mode & 0o111 != 0;
            return vec![READ | WRITE | if runs { EXECUTE } else { 0 }];
        }
        if cred.uid == attr.uid {
            return vec![attr.mode >> 6 & 7];
        }
        // Linux looks at a list only where its mask, the mode's group bits, lets anything through.
        let acl = self.acl.filter(|_| attr.mode & 0o070 != 0);
        let Some(acl) = acl else {
            let member = cred.in_group(attr.gid);
            let shift = if member { 3 } else { 0 };
            return vec![attr.mode >> shift & 7];
        };
        let bits = |rights: Access| u32::from(rights.bits());
        let entries = acl.entries();
        let find = |who: Who| entries.iter().find(|entry| entry.who == who);
        let mask = find(Who::Mask).map_or(7, |entry| bits(entry.rights));
        if let Some(user) = find(Who::User(cred.uid)) {
            return vec![bits(user.rights) & mask];
        }
        let groups = entries.iter().filter(|entry| match entry.who {
            Who::OwningGroup => cred.in_group(attr.gid),
            Who::Group(gid) => cred.in_group(gid),
            _ => false,
        });
        let groups: Vec<u32> = groups.map(|entry| bits(entry.rights) & mask).collect();
        if groups.is_empty() {
            return find(Who::Others).map(|entry| bits(entry.rights)).into_iter().collect();
        }
        groups
    }

    /// One of the sets of rights must have all wanted rights.
    fn may(&self, want: u32) -> bool {
        self.rights().iter().any(|rights| rights & want == want)
    }

    pub(crate) fn may_read_and_write(&self) -> bool {
        self.may(READ | WRITE)
    }

    pub(crate) fn may_search(&self) -> bool {
        self.may(EXECUTE)
    }

    pub(crate) fn may_list(&self) -> bool {
        self.may(READ)
    }

    /// READ: the owner always, and who may run a file may read it.
    pub(crate) fn may_read_data(&self) -> bool {
        self.cred.uid == self.attr.uid || self.may(READ) || self.may(EXECUTE)
    }

    /// WRITE and setting a size: the owner always.
    pub(crate) fn may_write_data(&self) -> bool {
        self.cred.uid == self.attr.uid || self.may(WRITE)
    }

    /// The bits that ACCESS grants of all there are (RFC 1813 §3.3.4).
    pub(crate) fn access_bits(&self) -> u32 {
        const GRANT_READ: u32 = 0x01;
        const GRANT_LOOKUP: u32 = 0x02;
        const GRANT_CHANGE: u32 = 0x04 | 0x08;
        const GRANT_DELETE: u32 = 0x10;
        const GRANT_EXECUTE: u32 = 0x20;
        let grants = if self.attr.kind == FileKind::Directory {
            [
                (READ, GRANT_READ),
                (EXECUTE, GRANT_LOOKUP),
                (WRITE | EXECUTE, GRANT_CHANGE | GRANT_DELETE),
            ]
        } else {
            [(READ, GRANT_READ), (WRITE, GRANT_CHANGE), (EXECUTE, GRANT_EXECUTE)]
        };
        let granted = grants.iter().filter(|(want, _)| self.may(*want));
        granted.fold(0, |bits, (_, grant)| bits | grant)
    }
}
