//! The locks and cached replies of a volume that moves from one gateway to another, as an image:
//! its content, its bytes, and whether it may be used.
//!
//! The gateway that gives a volume up makes the image when no operation of the volume is under way
//! any more, and writes it beside the volume's files. The next home removes it there and then uses
//! it, so that it is used once. It is used only if it is whole and of the very move by which the
//! volume came; in all other cases the clients reclaim their locks in a grace period, as after the
//! death of a gateway.
//!
//! An image has the locks, share reservations and waiting requests of clients of NLM, the rest of a
//! grace period, and the replies of the duplicate request cache. Opens of SMB do not move.
//!
//! Not here: where images lie (`weir-store`), and the order of a move (`weir-server`).

#![forbid(unsafe_code)]

mod bytes;
mod decode;
mod encode;
mod image;
mod limits;

pub use image::{Blocked, Image, Move, MovedHost, TooLarge, Unusable};
pub use limits::{IMAGE_BYTES_MAX, REPLIES_BYTES_MAX};

/// The bytes of an image with this body, whatever it is, under a right checksum.
#[cfg(feature = "testing")]
#[must_use]
pub fn with_head(body: &[u8]) -> Vec<u8> {
    encode::with_head(body)
}

#[cfg(test)]
mod tests;
