//! The IDs by which operators name locks. The ID of a lock is a keyed digest of its place in the
//! list of all locks: the same in each list as long as the lock exists, of the same length whatever
//! names a client chooses, and without memory for each lock. The key is that of one process, so no
//! ID names a lock of the next one.
//!
//! Not here: the search for the lock of an ID, which goes through the list.

use ring::hmac::{self, HMAC_SHA256};
use weir_core::{HandleKey, hex};
use weir_state::LockPlace;

/// Length of an ID in bytes. No two of some 2^18 locks have the same, and since the key is secret,
/// no client can choose names for which they do.
const ID_BYTES: usize = 16;

/// The ID of a lock, or of a request that waits for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LockId([u8; ID_BYTES]);

impl LockId {
    /// The ID as text.
    pub(super) fn to_text(self) -> String {
        hex::encode(&self.0)
    }

    /// Parses an ID; `None` if the text is malformed.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        hex::decode(text)?.try_into().ok().map(Self)
    }
}

/// The IDs of the locks of this process.
pub(super) struct LockIds(hmac::Key);

impl LockIds {
    /// The IDs under the server's key, in the process that has this verifier.
    pub(super) fn new(keys: &HandleKey, verifier: [u8; 8]) -> Self {
        let key = [keys.derive("ids of locks").to_be_bytes(), verifier].concat();
        Self(hmac::Key::new(HMAC_SHA256, &key))
    }

    /// The ID of the lock in this place.
    pub(super) fn of(&self, place: &LockPlace) -> LockId {
        let tag = hmac::sign(&self.0, place.to_text().as_bytes());
        let mut id = [0; ID_BYTES];
        id.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
        LockId(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::{ObjectKey, VolumeId};
    use weir_state::{File, LockSpot};

    fn place(number: u64) -> LockPlace {
        let file = File { volume: VolumeId(7), object: ObjectKey::new(b"file").unwrap() };
        LockPlace { file, spot: LockSpot::Waiting(number) }
    }

    #[test]
    fn an_id_names_one_place_in_one_process() {
        let keys = HandleKey::new(&[1; 16]);
        let (ids, next) = (LockIds::new(&keys, [2; 8]), LockIds::new(&keys, [3; 8]));
        let id = ids.of(&place(1));
        assert_eq!(LockId::from_text(&id.to_text()), Some(id));
        assert_eq!(ids.of(&place(1)), id);
        assert_ne!(ids.of(&place(2)), id);
        assert_ne!(next.of(&place(1)), id, "after a restart");
    }

    #[test]
    fn no_other_text_is_an_id() {
        let text = LockId([0xab; ID_BYTES]).to_text();
        for wrong in ["", "12", "x", &text[2..], &format!("{text}00"), &text.replace('a', "g")] {
            assert_eq!(LockId::from_text(wrong), None, "{wrong}");
        }
    }
}
