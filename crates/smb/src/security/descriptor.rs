//! Self-relative security descriptors (MS-DTYP §2.4.6): owner, group and discretionary list.

use super::limits::DESCRIPTOR_BYTES_MAX;
use super::sid::{NoSid, Sid};
use crate::le::{Reader, Truncated, length, patch, put};
use crate::wire::{AccessMask, SecurityInformation};
use alloc::vec::Vec;

bitflags::bitflags! {
    /// The inheritance of an entry (MS-DTYP §2.4.4.1). Bits without a name survive.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub struct AceFlags: u8 {
        /// By files made in the directory.
        const OBJECT_INHERIT = 0x01;
        /// By directories made in the directory.
        const CONTAINER_INHERIT = 0x02;
        /// But not by those in them.
        const NO_PROPAGATE = 0x04;
        /// And not for the directory itself.
        const INHERIT_ONLY = 0x08;
        /// Has been inherited.
        const INHERITED = 0x10;

        const _ = !0;
    }
}

/// The effect of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AceKind {
    /// Grants (ACCESS_ALLOWED_ACE).
    Allow,
    /// Denies (ACCESS_DENIED_ACE).
    Deny,
}

/// An entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ace {
    /// The effect.
    pub kind: AceKind,
    /// The inheritance.
    pub flags: AceFlags,
    /// The rights; bits without a name survive.
    pub mask: AccessMask,
    /// The users that the entry is for.
    pub sid: Sid,
}

/// A discretionary list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Dacl {
    /// Not part of the descriptor.
    #[default]
    Absent,
    /// No list: everyone may do everything.
    Null,
    /// These entries in this order; without any, nobody may do anything.
    List(Vec<Ace>),
}

/// A security descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// The owner.
    pub owner: Option<Sid>,
    /// The group.
    pub group: Option<Sid>,
    /// The discretionary list.
    pub dacl: Dacl,
}

/// Why bytes are no descriptor, or a descriptor can't become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// Lengths, offsets or revisions contradict: STATUS_INVALID_SECURITY_DESCR.
    #[error("the security descriptor is malformed")]
    Malformed,
    /// An entry is of a kind that can't be honoured: STATUS_ACCESS_DENIED.
    #[error("an entry of the security descriptor is of a kind that is not supported")]
    Unsupported,
    /// Beyond [`DESCRIPTOR_BYTES_MAX`].
    #[error("the security descriptor is too long")]
    TooLong,
}

impl From<Truncated> for DescriptorError {
    fn from(_: Truncated) -> Self {
        Self::Malformed
    }
}

impl From<NoSid> for DescriptorError {
    fn from(_: NoSid) -> Self {
        Self::Malformed
    }
}

const HEADER_BYTES: usize = 20;
/// ACE_HEADER and mask.
const ACE_HEAD_BYTES: usize = 8;
const ALLOWED: u8 = 0;
const DENIED: u8 = 1;
/// ACL_REVISION and ACL_REVISION_DS; the second allows for kinds of entries that are refused.
const REVISIONS: core::ops::RangeInclusive<u8> = 2..=4;
const DACL_PRESENT: u16 = 0x0004;
/// Nothing reaches the list from the directory above, once the object is made.
const DACL_PROTECTED: u16 = 0x1000;
const SELF_RELATIVE: u16 = 0x8000;

impl Descriptor {
    /// The descriptor without the parts that are not asked for.
    #[must_use]
    pub fn restricted(self, parts: SecurityInformation) -> Self {
        Self {
            owner: self.owner.filter(|_| parts.contains(SecurityInformation::OWNER)),
            group: self.group.filter(|_| parts.contains(SecurityInformation::GROUP)),
            dacl: if parts.contains(SecurityInformation::DACL) { self.dacl } else { Dacl::Absent },
        }
    }

    /// Reads a descriptor. A system list is passed over.
    ///
    /// # Errors
    /// [`DescriptorError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DescriptorError> {
        if bytes.len() > DESCRIPTOR_BYTES_MAX {
            return Err(DescriptorError::TooLong);
        }
        let mut input = Reader::new(bytes);
        let (revision, _resource_manager, control) = (input.u8()?, input.u8()?, input.u16()?);
        if revision != 1 || control & SELF_RELATIVE == 0 {
            return Err(DescriptorError::Malformed);
        }
        let mut part = || -> Result<_, DescriptorError> {
            let offset = usize::try_from(input.u32()?).map_err(|_| DescriptorError::Malformed)?;
            let inside = offset == 0 || offset >= HEADER_BYTES;
            let rest = bytes.get(offset..).filter(|_| inside).ok_or(DescriptorError::Malformed)?;
            Ok((offset != 0).then_some(Reader::new(rest)))
        };
        let (owner, group, _sacl, dacl) = (part()?, part()?, part()?, part()?);
        let sid =
            |part: Option<Reader<'_>>| part.map(|mut part| Sid::decode(&mut part)).transpose();
        let dacl = match dacl {
            _ if control & DACL_PRESENT == 0 => Dacl::Absent,
            None => Dacl::Null,
            Some(mut list) => Dacl::List(entries(&mut list)?),
        };
        Ok(Self { owner: sid(owner)?, group: sid(group)?, dacl })
    }

    /// Appends the descriptor to `out`.
    ///
    /// # Errors
    /// [`DescriptorError::TooLong`]; `out` has then some bytes more.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), DescriptorError> {
        let start = out.len();
        let control = match self.dacl {
            Dacl::Absent => SELF_RELATIVE,
            _ => SELF_RELATIVE | DACL_PRESENT | DACL_PROTECTED,
        };
        put!(out; 1u8, 0u8, control, 0u32, 0u32, 0u32, 0u32);
        let begin = |field: usize, out: &mut Vec<u8>| {
            let offset = length::<u32>(out.len().saturating_sub(start));
            patch(out, start.saturating_add(field), &offset.to_le_bytes());
        };
        for (field, sid) in [(4, self.owner), (8, self.group)] {
            if let Some(sid) = sid {
                begin(field, out);
                sid.encode(out);
            }
        }
        if let Dacl::List(entries) = &self.dacl {
            begin(16, out);
            let list = out.len();
            let count = u16::try_from(entries.len()).map_err(|_| DescriptorError::TooLong)?;
            // Revision, reserved, size, number of entries, reserved.
            put!(out; 2u8, 0u8, 0u16, count, 0u16);
            entries.iter().for_each(|entry| entry.encode(out));
            let bytes = u16::try_from(out.len().saturating_sub(list));
            let bytes = bytes.map_err(|_| DescriptorError::TooLong)?;
            patch(out, list.saturating_add(2), &bytes.to_le_bytes());
        }
        let bytes = out.len().saturating_sub(start);
        if bytes > DESCRIPTOR_BYTES_MAX { Err(DescriptorError::TooLong) } else { Ok(()) }
    }
}

/// Reads a list (MS-DTYP §2.4.5).
fn entries(input: &mut Reader<'_>) -> Result<Vec<Ace>, DescriptorError> {
    let (revision, _, bytes, count, _) =
        (input.u8()?, input.u8()?, input.u16()?, input.u16()?, input.u16()?);
    if !REVISIONS.contains(&revision) {
        return Err(DescriptorError::Malformed);
    }
    // The size counts these eight bytes too.
    let bytes = usize::from(bytes).checked_sub(8).ok_or(DescriptorError::Malformed)?;
    let mut input = Reader::new(input.bytes(bytes)?);
    let least = usize::from(count).saturating_mul(ACE_HEAD_BYTES);
    if least > bytes {
        return Err(DescriptorError::Malformed);
    }
    (0..count).map(|_| Ace::decode(&mut input)).collect()
}

impl Ace {
    fn decode(input: &mut Reader<'_>) -> Result<Self, DescriptorError> {
        let (kind, flags, bytes) = (input.u8()?, input.u8()?, input.u16()?);
        let body = usize::from(bytes).checked_sub(4).ok_or(DescriptorError::Malformed)?;
        let mut body = Reader::new(input.bytes(body)?);
        let kind = match kind {
            ALLOWED => AceKind::Allow,
            DENIED => AceKind::Deny,
            _ => return Err(DescriptorError::Unsupported),
        };
        let mask = AccessMask::from_bits_retain(body.u32()?);
        let sid = Sid::decode(&mut body)?;
        Ok(Self { kind, flags: AceFlags::from_bits_retain(flags), mask, sid })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let kind = match self.kind {
            AceKind::Allow => ALLOWED,
            AceKind::Deny => DENIED,
        };
        // At most 8 + 8 + 15 × 4.
        let bytes = self.sid.wire_bytes().saturating_add(ACE_HEAD_BYTES);
        put!(out; kind, self.flags.bits(), u16::try_from(bytes).unwrap_or(u16::MAX));
        put!(out; self.mask.bits());
        self.sid.encode(out);
    }
}
