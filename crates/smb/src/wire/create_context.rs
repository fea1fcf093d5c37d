//! The contexts of CREATE (MS-SMB2 §2.2.13.2, §2.2.14.2). Not here: their meaning for an open.

use super::codec::{Cursor, Field, bits};
use super::{AccessMask, Status, WireError};
use crate::le::{align, length, patch};
use crate::limits::{CREATE_CONTEXTS_BYTES_MAX, CREATE_CONTEXTS_MAX};
use alloc::vec::Vec;

/// Names of contexts that come as [`RequestContext::Other`] but are not just ignored.
pub mod context_name {
    /// A durable open is asked for.
    pub const DURABLE_REQUEST: &[u8] = b"DHnQ";
    /// A durable open is taken up again.
    pub const DURABLE_RECONNECT: &[u8] = b"DHnC";
    /// A durable open is asked for, version 2.
    pub const DURABLE_REQUEST_V2: &[u8] = b"DH2Q";
    /// A durable open is taken up again, version 2.
    pub const DURABLE_RECONNECT_V2: &[u8] = b"DH2C";
    /// Extensions of Apple's clients.
    pub const APPLE: &[u8] = b"AAPL";
}

const EXTENDED_ATTRIBUTES: &[u8] = b"ExtA";
const SECURITY_DESCRIPTOR: &[u8] = b"SecD";
const ALLOCATION_SIZE: &[u8] = b"AlSi";
const MAXIMAL_ACCESS: &[u8] = b"MxAc";
const TIME_WARP: &[u8] = b"TWrp";
const DISK_ID: &[u8] = b"QFid";
const LEASE: &[u8] = b"RqLs";

bits! {
    /// The caching that a lease allows (MS-SMB2 §2.2.13.2.8).
    pub struct LeaseState: u32 {
        /// Of data read.
        const READ = 1;
        /// Of the open itself.
        const HANDLE = 2;
        /// Of data written.
        const WRITE = 4;
    }

    /// The flags of a lease.
    pub struct LeaseFlags: u32 {
        /// The lease is being broken.
        const BREAK_IN_PROGRESS = 2;
        /// The key of the directory's lease is there.
        const PARENT_KEY_SET = 4;
    }
}

/// A lease, as it is asked for (MS-SMB2 §2.2.13.2.8, §2.2.13.2.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The client's key for the file.
    pub key: [u8; 16],
    /// The caching asked for.
    pub state: LeaseState,
    /// The flags.
    pub flags: LeaseFlags,
    /// The fields of version 2.
    pub version_2: Option<LeaseVersion2>,
}

/// The fields of a lease of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseVersion2 {
    /// The key of the directory's lease, if [`LeaseFlags::PARENT_KEY_SET`].
    pub parent_key: [u8; 16],
    /// The number of changes of the lease.
    pub epoch: u16,
}

/// Bytes of both versions.
const LEASE_BYTES: usize = 32;
const LEASE_2_BYTES: usize = 52;

impl Lease {
    fn of(data: &[u8]) -> Result<Self, WireError> {
        exact("lease", data, &[LEASE_BYTES, LEASE_2_BYTES])?;
        let mut input = Cursor::new(data, 0);
        let (key, state, flags) = (input.get()?, input.get()?, input.get()?);
        input.skip(8)?;
        let version_2 = if data.len() == LEASE_2_BYTES {
            Some(LeaseVersion2 { parent_key: input.get()?, epoch: input.get()? })
        } else {
            None
        };
        Ok(Self { key, state, flags, version_2 })
    }

    #[cfg(any(test, feature = "client"))]
    fn put(&self, out: &mut Vec<u8>) {
        self.key.put(out);
        self.state.put(out);
        self.flags.put(out);
        0u64.put(out);
        if let Some(more) = self.version_2 {
            more.parent_key.put(out);
            more.epoch.put(out);
            0u16.put(out);
        }
    }
}

/// A context of a CREATE request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestContext<'a> {
    /// `ExtA`: extended attributes for a new file, a list of `FILE_FULL_EA_INFORMATION`.
    ExtendedAttributes(&'a [u8]),
    /// `SecD`: the security descriptor of a new file.
    SecurityDescriptor(&'a [u8]),
    /// `AlSi`: storage to set aside for a new file, in bytes.
    AllocationSize(u64),
    /// `MxAc`: the caller's most access is asked for; only if the file has changed since the time,
    /// if there is one.
    MaximalAccess(Option<u64>),
    /// `TWrp`: the file as it was at this time.
    TimeWarp(u64),
    /// `QFid`: the file's number on its volume is asked for.
    DiskId,
    /// `RqLs`: a lease is asked for.
    Lease(Lease),
    /// Any other context.
    Other {
        /// The name: four bytes, or sixteen of a GUID.
        name: &'a [u8],
        /// The data.
        data: &'a [u8],
    },
}

impl<'a> RequestContext<'a> {
    fn of(name: &'a [u8], data: &'a [u8]) -> Result<Self, WireError> {
        let number = |what| {
            exact(what, data, &[8])?;
            Cursor::new(data, 0).get::<u64>()
        };
        Ok(match name {
            EXTENDED_ATTRIBUTES => Self::ExtendedAttributes(data),
            SECURITY_DESCRIPTOR => Self::SecurityDescriptor(data),
            ALLOCATION_SIZE => Self::AllocationSize(number("allocation size")?),
            MAXIMAL_ACCESS if data.is_empty() => Self::MaximalAccess(None),
            MAXIMAL_ACCESS => Self::MaximalAccess(Some(number("maximal access")?)),
            TIME_WARP => Self::TimeWarp(number("time warp")?),
            DISK_ID => {
                exact("disk id", data, &[0])?;
                Self::DiskId
            }
            // A server without leases ignores them (MS-SMB2 §3.3.5.9.8, §3.3.5.9.11), also such as
            // a later version may have.
            LEASE => Lease::of(data).map_or(Self::Other { name, data }, Self::Lease),
            name => Self::Other { name, data },
        })
    }

    #[cfg(any(test, feature = "client"))]
    fn append(&self, out: &mut Vec<u8>, list: &mut ContextList) {
        match self {
            Self::ExtendedAttributes(data) => list.append(out, EXTENDED_ATTRIBUTES, data),
            Self::SecurityDescriptor(data) => list.append(out, SECURITY_DESCRIPTOR, data),
            Self::AllocationSize(size) => list.append(out, ALLOCATION_SIZE, &size.to_le_bytes()),
            Self::MaximalAccess(None) => list.append(out, MAXIMAL_ACCESS, &[]),
            Self::MaximalAccess(Some(at)) => list.append(out, MAXIMAL_ACCESS, &at.to_le_bytes()),
            Self::TimeWarp(at) => list.append(out, TIME_WARP, &at.to_le_bytes()),
            Self::DiskId => list.append(out, DISK_ID, &[]),
            Self::Lease(lease) => {
                let mut data = Vec::new();
                lease.put(&mut data);
                list.append(out, LEASE, &data);
            }
            Self::Other { name, data } => list.append(out, name, data),
        }
    }
}

/// A context of a CREATE response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseContext {
    /// `MxAc`: the caller's most access.
    MaximalAccess {
        /// Could it be found out?
        status: Status,
        /// The access.
        access: AccessMask,
    },
    /// `QFid`: the file's number on its volume.
    DiskId {
        /// The file's number.
        file: u64,
        /// The volume's number.
        volume: u64,
    },
}

impl ResponseContext {
    fn append(&self, out: &mut Vec<u8>, list: &mut ContextList) {
        match *self {
            Self::MaximalAccess { status, access } => {
                let mut data = [0; 8];
                data[0..4].copy_from_slice(&status.0.to_le_bytes());
                data[4..8].copy_from_slice(&access.bits().to_le_bytes());
                list.append(out, MAXIMAL_ACCESS, &data);
            }
            Self::DiskId { file, volume } => {
                let mut data = [0; 32];
                data[0..8].copy_from_slice(&file.to_le_bytes());
                data[8..16].copy_from_slice(&volume.to_le_bytes());
                list.append(out, DISK_ID, &data);
            }
        }
    }

    #[cfg(any(test, feature = "client"))]
    fn of(name: &[u8], data: &[u8]) -> Result<Option<Self>, WireError> {
        let mut input = Cursor::new(data, 0);
        Ok(match name {
            MAXIMAL_ACCESS => {
                Some(Self::MaximalAccess { status: input.get()?, access: input.get()? })
            }
            DISK_ID => Some(Self::DiskId { file: input.get()?, volume: input.get()? }),
            _ => None,
        })
    }
}

/// The contexts of one CREATE request, still in their wire form but proved well formed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateContexts<'a>(&'a [u8]);

impl<'a> CreateContexts<'a> {
    /// The list that has these bytes.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (len, max) = (bytes.len(), CREATE_CONTEXTS_BYTES_MAX);
        if len > max {
            return Err(WireError::TooLong { what: "bytes of create contexts", len, max });
        }
        let mut count = 0usize;
        for part in parts(bytes) {
            let (name, data) = part?;
            RequestContext::of(name, data)?;
            count = count.saturating_add(1);
            if count > CREATE_CONTEXTS_MAX {
                let max = CREATE_CONTEXTS_MAX;
                return Err(WireError::TooLong { what: "create contexts", len: count, max });
            }
        }
        Ok(Self(bytes))
    }

    /// Replaces `buffer` by the wire form of `contexts`, and gives them back as a list.
    #[cfg(any(test, feature = "client"))]
    pub fn build<'c>(
        buffer: &'a mut Vec<u8>,
        contexts: impl IntoIterator<Item = RequestContext<'c>>,
    ) -> Self {
        buffer.clear();
        let mut list = ContextList::new(buffer);
        for context in contexts {
            context.append(buffer, &mut list);
        }
        Self(buffer)
    }

    /// The contexts in their order.
    pub fn iter(&self) -> impl Iterator<Item = RequestContext<'a>> + use<'a> {
        parts(self.0)
            .map_while(|part| part.and_then(|(name, data)| RequestContext::of(name, data)).ok())
    }

    #[cfg(any(test, feature = "client"))]
    pub(super) const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// Appends `contexts` and gives the number of their bytes.
pub(super) fn append(
    out: &mut Vec<u8>,
    contexts: impl IntoIterator<Item = ResponseContext>,
) -> usize {
    let start = out.len();
    let mut list = ContextList::new(out);
    for context in contexts {
        context.append(out, &mut list);
    }
    out.len().saturating_sub(start)
}

/// The contexts of a response, in their order; those that a request here never asks for are left
/// out.
#[cfg(any(test, feature = "client"))]
pub(super) fn response(bytes: &[u8]) -> Result<Vec<ResponseContext>, WireError> {
    let found = parts(bytes).take(CREATE_CONTEXTS_MAX);
    found
        .filter_map(|part| {
            part.and_then(|(name, data)| ResponseContext::of(name, data)).transpose()
        })
        .collect()
}

fn exact(what: &'static str, data: &[u8], lengths: &[usize]) -> Result<(), WireError> {
    if lengths.contains(&data.len()) {
        Ok(())
    } else {
        Err(WireError::BadLength { what, len: data.len() })
    }
}

/// Bytes before the name of a context.
const HEAD_BYTES: usize = 16;

/// Name and data of each context in `bytes`, up to the first that is malformed.
fn parts(bytes: &[u8]) -> impl Iterator<Item = Result<(&[u8], &[u8]), WireError>> {
    let mut rest = (!bytes.is_empty()).then_some(bytes);
    core::iter::from_fn(move || {
        let context = rest.take()?;
        Some(part(context).map(|(name, data, after)| {
            rest = after;
            (name, data)
        }))
    })
}

/// Name and data of the context at the front of `rest`, and the contexts after it.
#[expect(clippy::type_complexity, reason = "three slices, named above")]
fn part(rest: &[u8]) -> Result<(&[u8], &[u8], Option<&[u8]>), WireError> {
    let mut input = Cursor::new(rest, HEAD_BYTES);
    let next: u32 = input.get()?;
    let (name_at, name_len): (u16, u16) = (input.get()?, input.get()?);
    input.skip(2)?;
    let (data_at, data_len): (u16, u32) = (input.get()?, input.get()?);
    let next = next as usize;
    let (context, after) = match next {
        0 => (rest, None),
        _ if !next.is_multiple_of(8) => {
            return Err(WireError::Misaligned { what: "create context", offset: next });
        }
        _ => match rest.split_at_checked(next) {
            Some((context, after)) if !after.is_empty() => (context, Some(after)),
            _ => {
                let len = rest.len();
                return Err(WireError::OutOfPlace { what: "create context", offset: next, len });
            }
        },
    };
    let parts = Cursor::new(context, HEAD_BYTES);
    let name = parts.part("name of a create context", name_at.into(), name_len.into())?.bytes;
    if name.len() < 4 {
        return Err(WireError::BadLength { what: "name of a create context", len: name.len() });
    }
    let data = parts.part("data of a create context", data_at.into(), data_len as usize)?.bytes;
    Ok((name, data, after))
}

/// Appends contexts, each linked to the one before.
struct ContextList {
    start: usize,
    last: Option<usize>,
}

impl ContextList {
    const fn new(out: &[u8]) -> Self {
        Self { start: out.len(), last: None }
    }

    fn append(&mut self, out: &mut Vec<u8>, name: &[u8], data: &[u8]) {
        if let Some(last) = self.last {
            align(out, self.start, 8);
            let next: u32 = length(out.len().saturating_sub(last));
            patch(out, last, &next.to_le_bytes());
        }
        let at = out.len();
        self.last = Some(at);
        let data_at = HEAD_BYTES.saturating_add(name.len()).next_multiple_of(8);
        0u32.put(out);
        length::<u16>(HEAD_BYTES).put(out);
        length::<u16>(name.len()).put(out);
        0u16.put(out);
        length::<u16>(if data.is_empty() { 0 } else { data_at }).put(out);
        length::<u32>(data.len()).put(out);
        out.extend_from_slice(name);
        align(out, at, 8);
        out.extend_from_slice(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples::hex;

    /// `MxAc` without data.
    const ACCESS: &str = "00000000 1000 0400 0000 0000 00000000 4d784163 00000000";

    fn decode(bytes: &[u8]) -> Result<usize, WireError> {
        CreateContexts::decode(bytes).map(|contexts| contexts.iter().count())
    }

    /// As many contexts.
    fn many(count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        CreateContexts::build(&mut bytes, (0..count).map(|_| RequestContext::DiskId));
        bytes
    }

    #[test]
    fn no_bytes_are_no_contexts() {
        assert_eq!(decode(&[]), Ok(0));
        assert_eq!(decode(&hex(ACCESS)), Ok(1));
        assert_eq!(decode(&hex(ACCESS)[..20]), Ok(1), "the last need not be padded");
    }

    #[test]
    fn links_that_lead_astray_are_refused() {
        let bytes = hex(&[ACCESS, ACCESS].concat());
        for (next, count) in [(0, Some(1)), (24, Some(2)), (4, None), (8, None), (16, None)] {
            let mut bytes = bytes.clone();
            bytes[0] = next;
            assert_eq!(decode(&bytes).ok(), count, "{next}");
        }
        for next in [20, 25, 32, 40, 48, 56, u32::MAX - 7, u32::MAX] {
            let mut bytes = bytes.clone();
            bytes[0..4].copy_from_slice(&next.to_le_bytes());
            assert!(decode(&bytes).is_err(), "{next}");
        }
    }

    #[test]
    fn names_and_data_lie_within_their_context() {
        let bytes = hex(&[ACCESS, ACCESS].concat());
        for (at, value) in [(4, 15), (4, 21), (4, 24), (6, 3), (6, 9), (6, 0), (12, 1)] {
            let mut bytes = bytes.clone();
            bytes[0] = 24;
            bytes[at] = value;
            assert!(decode(&bytes).is_err(), "byte {at}: {value}");
        }
    }

    #[test]
    fn data_of_another_length_is_refused() {
        for (name, lengths) in [
            (MAXIMAL_ACCESS, &[0, 8][..]),
            (DISK_ID, &[0]),
            (ALLOCATION_SIZE, &[8]),
            (TIME_WARP, &[8]),
        ] {
            for len in 0..64 {
                let is_read = RequestContext::of(name, &[0; 64][..len]).is_ok();
                assert_eq!(is_read, lengths.contains(&len), "{len} bytes");
            }
        }
    }

    #[test]
    fn a_lease_of_another_length_is_none() {
        for len in 0..64 {
            let lease = RequestContext::of(LEASE, &[0; 64][..len]).unwrap();
            assert_eq!(matches!(lease, RequestContext::Lease(_)), [32, 52].contains(&len));
        }
    }

    #[test]
    fn number_and_size_are_bounded() {
        assert_eq!(decode(&many(CREATE_CONTEXTS_MAX)), Ok(CREATE_CONTEXTS_MAX));
        let (what, max) = ("create contexts", CREATE_CONTEXTS_MAX);
        let error = WireError::TooLong { what, len: max + 1, max };
        assert_eq!(decode(&many(CREATE_CONTEXTS_MAX + 1)), Err(error));
        let mut bytes = hex(ACCESS);
        bytes.resize(CREATE_CONTEXTS_BYTES_MAX, 0);
        assert_eq!(decode(&bytes), Ok(1));
        bytes.push(0);
        assert!(matches!(decode(&bytes), Err(WireError::TooLong { .. })));
    }
}
