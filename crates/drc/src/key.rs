//! The key by which a retransmitted call is recognized.

use std::hash::{BuildHasherDefault, Hash, Hasher};
use weir_core::limits::HANDLE_BYTES_MAX;
use weir_core::{CallId, OpClass};
use weir_nfs::rpc::{Call, Credential};
use weir_nfs::{PROGRAM_NFS, v3};
use weir_qos::ClientKey;

/// Bytes of the arguments in the fingerprint of a call that is neither READ nor WRITE: all of them.
const ARGS_HEAD: usize = 128 << 10;

/// Bytes of the arguments in the fingerprint of a READ or WRITE: file handle with its length,
/// offset and count (RFC 1813 §3.3.6, §3.3.7).
const DATA_HEAD: usize = 4 + HANDLE_BYTES_MAX + 8 + 4;

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A call of one client and all its retransmissions: the xid, the procedure, and a fingerprint of
/// the credentials and arguments. Another call with the same xid has another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallKey {
    pub(super) xid: u32,
    pub(super) program: u32,
    pub(super) procedure: u32,
    pub(super) print: u64,
}

impl CallKey {
    /// The call of `client` as a store records it, if it changes names.
    pub(super) fn on_record(self, client: ClientKey) -> Option<CallId> {
        let Self { xid, program, procedure, print } = self;
        let of_names = program == PROGRAM_NFS && v3::changes_names(procedure);
        of_names.then_some(CallId { client: client.0, xid, procedure, print })
    }

    /// The key of a call that an earlier process has recorded.
    pub(super) fn of_record(call: &CallId) -> Self {
        let CallId { xid, procedure, print, .. } = *call;
        Self { xid, program: PROGRAM_NFS, procedure, print }
    }
}

/// Makes keys. The fingerprints depend on a number that peers cannot know, and that is the same in
/// the next process.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprints {
    seed: u64,
}

impl Fingerprints {
    /// Fingerprints that depend on `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The key of a call that waits at the gate. Its reply goes to every connection with the same
    /// key, so all of the arguments count, but for the data of a WRITE.
    #[inline]
    pub fn of_waiting(self, call: &Call, class: OpClass) -> CallKey {
        match class {
            OpClass::Read | OpClass::Write => self.of_data(call),
            OpClass::Null | OpClass::Metadata | OpClass::Commit => self.of(call),
        }
    }

    /// The key of a call of which all arguments count.
    #[inline]
    pub fn of(self, call: &Call) -> CallKey {
        self.key(call, ARGS_HEAD)
    }

    /// The key of a READ or WRITE.
    #[inline]
    pub fn of_data(self, call: &Call) -> CallKey {
        self.key(call, DATA_HEAD)
    }

    fn key(self, call: &Call, head: usize) -> CallKey {
        let Call { xid, program, version, procedure, credential, args } = call;
        let (uid, gid) = match credential {
            Credential::Sys(auth) => (auth.credentials.uid, auth.credentials.gid),
            Credential::None | Credential::Other(_) => (u32::MAX, u32::MAX),
        };
        let mut print = fold(self.seed ^ pair(*xid, *procedure), ODD ^ pair(*program, *version));
        print = fold(print ^ pair(uid, gid), ODD ^ args.len() as u64);
        let head = args.get(..head.min(args.len())).unwrap_or(&[]);
        let (blocks, rest) = head.as_chunks::<16>();
        let mut last = [0; 16];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        for block in blocks.iter().chain([&last]) {
            let [left, right] = words(block);
            print = fold(print ^ left, ODD ^ right);
        }
        CallKey { xid: *xid, program: *program, procedure: *procedure, print }
    }
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn words(block: &[u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(*block);
    [low(both), low(both >> 64)]
}

/// The two halves of the product, so that every bit of either factor counts.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    low(product) ^ low(product >> 64)
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn low(value: u128) -> u64 {
    value as u64
}

impl Hash for CallKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.print);
    }
}

/// Keys are hashes already.
pub(super) type Plain = BuildHasherDefault<PlainHasher>;

/// Takes the one number it is given for the hash.
#[derive(Default)]
pub(super) struct PlainHasher(u64);

impl Hasher for PlainHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::Credentials;
    use weir_core::Shared;
    use weir_nfs::rpc::auth::AuthSys;

    fn call(xid: u32, procedure: u32, uid: u32, args: &[u8]) -> Call {
        let credentials = Credentials::new(uid, 0);
        Call {
            xid,
            program: 100_003,
            version: 3,
            procedure,
            credential: Credential::Sys(AuthSys { stamp: xid, credentials }),
            args: Shared::from(args.to_vec()),
        }
    }

    #[test]
    fn the_same_call_has_the_same_key_and_any_other_another() {
        let fingerprints = Fingerprints::new(7);
        let base = fingerprints.of(&call(1, 8, 0, b"handle and name"));
        assert_eq!(base, fingerprints.of(&call(1, 8, 0, b"handle and name")));
        let others = [
            call(2, 8, 0, b"handle and name"),
            call(1, 9, 0, b"handle and name"),
            call(1, 8, 5, b"handle and name"),
            call(1, 8, 0, b"handle and nam"),
            call(1, 8, 0, b"handle and name\0"),
            call(1, 8, 0, b"Handle and name"),
        ];
        for other in &others {
            assert_ne!(base, fingerprints.of(other), "{other:?}");
        }
        assert_ne!(base.print, Fingerprints::new(8).of(&call(1, 8, 0, b"handle and name")).print);
    }

    #[test]
    fn every_byte_of_the_head_counts() {
        let fingerprints = Fingerprints::new(7);
        for len in [1, 15, 16, 17, 64, 1024] {
            let base = fingerprints.of(&call(1, 8, 0, &vec![3; len]));
            for at in 0..len {
                let mut args = vec![3; len];
                args[at] = 4;
                assert_ne!(base, fingerprints.of(&call(1, 8, 0, &args)), "byte {at} of {len}");
            }
        }
    }

    #[test]
    fn names_that_differ_at_their_end_have_different_keys_while_their_calls_wait() {
        let fingerprints = Fingerprints::new(7);
        let lookup = |last: u8| {
            let mut args = vec![5; 200];
            args[199] = last;
            fingerprints.of_waiting(&call(1, 3, 0, &args), OpClass::Metadata)
        };
        assert_eq!(lookup(1), lookup(1));
        assert_ne!(lookup(1), lookup(2));
    }

    #[test]
    fn the_offset_behind_the_longest_handle_counts() {
        let fingerprints = Fingerprints::new(7);
        for at in [0, 4 + HANDLE_BYTES_MAX, DATA_HEAD - 1] {
            let mut args = vec![0; 4 + HANDLE_BYTES_MAX + 8 + 4];
            let base = fingerprints.of_waiting(&call(1, 6, 0, &args), OpClass::Read);
            args[at] = 1;
            let other = fingerprints.of_waiting(&call(1, 6, 0, &args), OpClass::Read);
            assert_ne!(base, other, "byte {at}");
        }
    }

    #[test]
    fn of_data_only_the_place_counts() {
        let fingerprints = Fingerprints::new(7);
        let (mut one, mut two) = (vec![0; 5000], vec![0; 5000]);
        one[3000] = 1;
        assert_eq!(
            fingerprints.of_data(&call(1, 7, 0, &one)),
            fingerprints.of_data(&call(1, 7, 0, &two))
        );
        two[40] = 1;
        assert_ne!(
            fingerprints.of_data(&call(1, 7, 0, &one)),
            fingerprints.of_data(&call(1, 7, 0, &two))
        );
    }
}
