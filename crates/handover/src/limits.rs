//! The bounds of images. Each says what happens when it is reached.

use weir_nfs::limits::{NLM_NAME_BYTES_MAX, NLM_OBJECT_BYTES_MAX};

/// Longest image, in bytes: about 100,000 locks. Beyond: none is made, and the clients reclaim
/// their locks in a grace period.
pub const IMAGE_BYTES_MAX: usize = 8 << 20;

/// Bytes of cached replies in an image: about 10,000. Beyond: the clients have their newest replies
/// in it, by turns; an older call that is sent again is executed again.
pub const REPLIES_BYTES_MAX: usize = 2 << 20;

/// Longest name of an owner, in bytes: a kind and a process stand before its opaque bytes.
pub(crate) const OWNER_BYTES_MAX: usize = NLM_OBJECT_BYTES_MAX + 5;

const _: () = assert!(REPLIES_BYTES_MAX < IMAGE_BYTES_MAX);
const _: () = assert!(OWNER_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(NLM_NAME_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(weir_drc::CACHED_REPLY_BYTES_MAX <= u16::MAX as usize);
