//! Security identifiers (MS-DTYP §2.4.2).

use super::limits::SUB_AUTHORITIES_MAX;
use crate::le::{Reader, Truncated, put};
use alloc::vec::Vec;
use core::fmt;

/// The identity of a user, a group or a domain of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sid {
    /// Below 2^48.
    authority: u64,
    /// At most the length of `subs`.
    count: usize,
    /// Zero beyond `count`.
    subs: [u32; SUB_AUTHORITIES_MAX],
}

const REVISION: u8 = 1;
const AUTHORITY_MAX: u64 = (1 << 48) - 1;

/// The bytes are no SID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a security identifier")]
pub struct NoSid;

impl From<Truncated> for NoSid {
    fn from(_: Truncated) -> Self {
        Self
    }
}

impl Sid {
    /// Everyone.
    pub const EVERYONE: Self = Self::known(1, [0]);
    /// In lists that are inherited: the owner of the new object.
    pub const CREATOR_OWNER: Self = Self::known(3, [0]);
    /// In lists that are inherited: the group of the new object.
    pub const CREATOR_GROUP: Self = Self::known(3, [1]);
    /// The present owner.
    pub const OWNER_RIGHTS: Self = Self::known(3, [4]);
    /// Every user who has logged in.
    pub const AUTHENTICATED_USERS: Self = Self::known(5, [11]);
    /// The server itself.
    pub const SYSTEM: Self = Self::known(5, [18]);

    const fn known<const N: usize>(authority: u64, known: [u32; N]) -> Self {
        let mut subs = [0; SUB_AUTHORITIES_MAX];
        let (head, _) = subs.split_at_mut(N);
        head.copy_from_slice(&known);
        Self { authority, count: N, subs }
    }

    /// The SID of this authority and these sub-authorities, if it has few enough.
    #[must_use]
    pub fn new(authority: u64, sub_authorities: &[u32]) -> Option<Self> {
        let mut subs = [0; SUB_AUTHORITIES_MAX];
        subs.get_mut(..sub_authorities.len())?.copy_from_slice(sub_authorities);
        let count = sub_authorities.len();
        (authority <= AUTHORITY_MAX).then_some(Self { authority, count, subs })
    }

    /// The domain S-1-5-21-a-b-c.
    #[must_use]
    pub const fn domain(parts: [u32; 3]) -> Self {
        let [a, b, c] = parts;
        Self::known(5, [21, a, b, c])
    }

    /// A user outside every domain: S-1-22-1-uid.
    #[must_use]
    pub const fn unix_user(uid: u32) -> Self {
        Self::known(22, [1, uid])
    }

    /// A group outside every domain: S-1-22-2-gid.
    #[must_use]
    pub const fn unix_group(gid: u32) -> Self {
        Self::known(22, [2, gid])
    }

    /// The first number, below 2^48.
    #[must_use]
    pub const fn authority(&self) -> u64 {
        self.authority
    }

    /// The other numbers.
    #[must_use]
    pub fn sub_authorities(&self) -> &[u32] {
        self.subs.get(..self.count).unwrap_or(&self.subs)
    }

    /// The member `rid` of this domain; nothing if the SID would be too long.
    #[must_use]
    pub fn member(&self, rid: u32) -> Option<Self> {
        let mut member = *self;
        *member.subs.get_mut(self.count)? = rid;
        member.count = self.count.saturating_add(1);
        Some(member)
    }

    /// The number of this member of `domain`, if it is one.
    #[must_use]
    pub fn rid_in(&self, domain: &Self) -> Option<u32> {
        let (rid, own) = self.sub_authorities().split_last()?;
        (self.authority == domain.authority && own == domain.sub_authorities()).then_some(*rid)
    }

    /// Reads a SID.
    ///
    /// # Errors
    /// [`NoSid`].
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, NoSid> {
        let [revision, count, authority @ ..] = input.array::<8>()?;
        let [a, b, c, d, e, f] = authority;
        let authority = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let mut subs = [0; SUB_AUTHORITIES_MAX];
        let count = usize::from(count);
        let used = subs.get_mut(..count).filter(|_| revision == REVISION);
        for sub in used.ok_or(NoSid)? {
            *sub = input.u32()?;
        }
        Ok(Self { authority, count, subs })
    }

    /// Appends the SID to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let [_, _, authority @ ..] = self.authority.to_be_bytes();
        put!(out; REVISION, u8::try_from(self.count).unwrap_or(0));
        out.extend_from_slice(&authority);
        for sub in self.sub_authorities() {
            put!(out; *sub);
        }
    }

    /// Bytes of the SID on the wire.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        self.count.saturating_mul(4).saturating_add(8)
    }
}

/// The form that people read (MS-DTYP §2.4.2.1).
impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.authority > u64::from(u32::MAX) {
            write!(f, "S-1-{:#014x}", self.authority)?;
        } else {
            write!(f, "S-1-{}", self.authority)?;
        }
        self.sub_authorities().iter().try_for_each(|sub| write!(f, "-{sub}"))
    }
}

impl fmt::Debug for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use core::str::FromStr;
    use proptest::prelude::*;
    use std::string::ToString;

    /// The group of administrators.
    pub(in crate::security) const ADMINISTRATORS: Sid = Sid::known(5, [32, 544]);

    /// A mode, as NFS clients of Windows put it into a list.
    pub(in crate::security) const fn nfs_mode(mode: u32) -> Sid {
        Sid::known(5, [88, 3, mode])
    }

    impl FromStr for Sid {
        type Err = NoSid;

        fn from_str(text: &str) -> Result<Self, NoSid> {
            let mut numbers = text.strip_prefix("S-1-").ok_or(NoSid)?.split('-');
            let authority = numbers.next().ok_or(NoSid)?;
            let authority = match authority.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => authority.parse(),
            };
            let mut sid = Self::new(authority.map_err(|_| NoSid)?, &[]).ok_or(NoSid)?;
            for number in numbers {
                sid = sid.member(number.parse().map_err(|_| NoSid)?).ok_or(NoSid)?;
            }
            Ok(sid)
        }
    }

    fn bytes(sid: &Sid) -> Vec<u8> {
        let mut out = Vec::new();
        sid.encode(&mut out);
        out
    }

    #[test]
    fn sids_have_their_forms() {
        for (sid, text) in [
            (Sid::EVERYONE, "S-1-1-0"),
            (Sid::CREATOR_OWNER, "S-1-3-0"),
            (Sid::CREATOR_GROUP, "S-1-3-1"),
            (Sid::OWNER_RIGHTS, "S-1-3-4"),
            (Sid::AUTHENTICATED_USERS, "S-1-5-11"),
            (Sid::SYSTEM, "S-1-5-18"),
            (ADMINISTRATORS, "S-1-5-32-544"),
            (Sid::unix_user(1000), "S-1-22-1-1000"),
            (Sid::unix_group(100), "S-1-22-2-100"),
            (nfs_mode(0o644), "S-1-5-88-3-420"),
            (Sid::domain([1, 2, 3]).member(1001).unwrap(), "S-1-5-21-1-2-3-1001"),
            (Sid::new(1 << 40, &[7]).unwrap(), "S-1-0x010000000000-7"),
        ] {
            assert_eq!(sid.to_string(), text);
            assert_eq!(text.parse(), Ok(sid));
        }
        let expected = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0];
        assert_eq!(bytes(&ADMINISTRATORS), expected);
    }

    #[test]
    fn whatever_is_no_sid_is_refused() {
        for text in ["", "S-1", "S-1-", "S-2-5", "S-1-5-", "S-1-5--1", "S-1-281474976710656"] {
            assert_eq!(text.parse::<Sid>(), Err(NoSid), "{text}");
        }
        assert!(("S-1-5".to_owned() + &"-7".repeat(15)).parse::<Sid>().is_ok());
        assert!(("S-1-5".to_owned() + &"-7".repeat(16)).parse::<Sid>().is_err());
        let full = Sid::new(5, &[7; 15]).unwrap();
        assert_eq!(full.member(1), None);
        let mut wire = bytes(&full);
        wire.extend_from_slice(&[0; 8]);
        assert_eq!(Sid::decode(&mut Reader::new(&wire)), Ok(full));
        wire[1] = 16;
        assert_eq!(Sid::decode(&mut Reader::new(&wire)), Err(NoSid));
        assert_eq!(Sid::decode(&mut Reader::new(&bytes(&full)[..67])), Err(NoSid));
        let mut other = bytes(&Sid::EVERYONE);
        other[0] = 2;
        assert_eq!(Sid::decode(&mut Reader::new(&other)), Err(NoSid), "the revision");
    }

    #[test]
    fn a_member_has_its_number_in_its_own_domain_alone() {
        let domain = Sid::domain([1, 2, 3]);
        let member = domain.member(500).unwrap();
        assert_eq!(member.rid_in(&domain), Some(500));
        assert_eq!(member.rid_in(&Sid::domain([1, 2, 4])), None);
        assert_eq!(domain.rid_in(&domain), None);
    }

    pub(in crate::security) fn sid() -> impl Strategy<Value = Sid> {
        (0..=AUTHORITY_MAX, prop::collection::vec(any::<u32>(), 0..=SUB_AUTHORITIES_MAX))
            .prop_filter_map("a SID", |(authority, subs)| Sid::new(authority, &subs))
    }

    proptest! {
        #[test]
        fn every_sid_survives(sid in sid()) {
            let wire = bytes(&sid);
            prop_assert_eq!(wire.len(), sid.wire_bytes());
            prop_assert_eq!(Sid::decode(&mut Reader::new(&wire)), Ok(sid));
            prop_assert!(Sid::decode(&mut Reader::new(&wire[..wire.len() - 1])).is_err());
            prop_assert_eq!(sid.to_string().parse(), Ok(sid));
        }
    }
}
