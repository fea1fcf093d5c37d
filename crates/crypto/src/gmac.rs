//! AES-128-GMAC by `ring`, which has GCM alone.
//!
//! GMAC is GCM over empty data, with the message as the data that is only authenticated. `ring`
//! takes such data in one block at a time, at a fifth of the speed of data that it encrypts, so a
//! long message is encrypted here: twice in place with the same nonce, which gives the message
//! back, as the cipher adds a keystream. The second tag is then one over the message, and differs
//! from its GMAC in the last block alone, in which GCM authenticates the two lengths:
//!
//! - GMAC: `E(nonce) + (… + [bits, 0]) · H`
//! - here: `E(nonce) + (… + [0, bits]) · H`
//!
//! So the sum of both is `[bits, bits] · H`, with `H` the encrypted zero block (SP 800-38D §7.1).
//! No ciphertext leaves this module.
//!
//! To verify a tag, the message is taken for a ciphertext and decrypted, once: its tag is that of
//! the message as it is. That needs a copy, in memory that its thread keeps.

use crate::keys::Gcm;
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt as _, KeyInit as _};
use std::cell::RefCell;
use weir_smb::crypto::{self, Aead as _, AesKey};

/// A message from this length on is encrypted: two calls cost less than the slow way.
const ENCRYPT_FROM: usize = 1024;
/// Bytes that a thread keeps for copies: enough for the largest message of a server.
const COPY_BYTES_KEPT: usize = 2 << 20;
/// The reduction of a product by `x^128 + x^7 + x^2 + x + 1`; the highest bit is that of `x^0`.
const REDUCTION: u128 = 0xE1 << 120;

/// A key of AES-128-GMAC.
pub struct Gmac {
    key: Gcm,
    /// `[1 << i, 1 << i] · H` for each bit `i` of a length.
    lengths: [u128; 64],
}

impl Gmac {
    pub(crate) fn new(key: &[u8; 16]) -> Self {
        let mut block = [0; 16].into();
        Aes128::new(key.into()).encrypt_block(&mut block);
        let lengths = lengths(u128::from_be_bytes(block.into()));
        Self { key: Gcm::new(&AesKey::Aes128(*key)), lengths }
    }

    /// The tag of a message as `ring` computes it, at any length.
    fn authenticate(&self, nonce: &[u8; 12], message: &[u8]) -> Option<[u8; 16]> {
        self.key.seal(nonce, message, &mut [])
    }

    fn encrypt_twice(&self, nonce: &[u8; 12], message: &mut [u8]) -> Option<[u8; 16]> {
        self.key.seal(nonce, &[], message)?;
        let tag = self.key.seal(nonce, &[], message)?;
        self.other(tag, message.len())
    }

    /// The tag of an encrypted message of `len` bytes, from its GMAC, or the other way.
    fn other(&self, tag: [u8; 16], len: usize) -> Option<[u8; 16]> {
        let mut bits = u64::try_from(len).ok()?.checked_mul(8)?;
        let mut tag = u128::from_be_bytes(tag);
        while bits != 0 {
            tag ^= self.lengths.get(usize::try_from(bits.trailing_zeros()).ok()?)?;
            bits &= bits - 1;
        }
        Some(tag.to_be_bytes())
    }

    /// Verifies the tag of `message`, which is worthless afterwards.
    fn verify_copy(&self, nonce: &[u8; 12], message: &mut [u8], tag: &[u8; 16]) -> bool {
        if message.len() < ENCRYPT_FROM {
            return self.key.open(nonce, message, &mut [], tag);
        }
        let tag = self.other(*tag, message.len());
        tag.is_some_and(|tag| self.key.open(nonce, &[], message, &tag))
    }
}

impl crypto::Gmac for Gmac {
    fn tag(&self, nonce: &[u8; 12], message: &mut [u8]) -> Option<[u8; 16]> {
        if message.len() < ENCRYPT_FROM {
            self.authenticate(nonce, message)
        } else {
            self.encrypt_twice(nonce, message)
        }
    }

    fn verify(&self, nonce: &[u8; 12], parts: &[&[u8]], tag: &[u8; 16]) -> bool {
        thread_local! {
            static COPY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        COPY.with_borrow_mut(|copy| {
            copy.clear();
            parts.iter().for_each(|part| copy.extend_from_slice(part));
            let is_sound = self.verify_copy(nonce, copy, tag);
            copy.shrink_to(COPY_BYTES_KEPT);
            is_sound
        })
    }
}

/// `[1 << i, 1 << i] · h` for each `i` below 64.
fn lengths(h: u128) -> [u128; 64] {
    let mut lengths = [0; 64];
    let mut power = h;
    // The two halves of a block, and in each the highest power of two first.
    for _ in 0..2 {
        for length in lengths.iter_mut().rev() {
            *length ^= power;
            // Times `x`, without a branch on the key.
            let carry = (power & 1).wrapping_neg();
            power = (power >> 1) ^ (carry & REDUCTION);
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::Gmac as _;

    #[test]
    fn both_ways_agree_and_leave_the_message() {
        let gmac = Gmac::new(b"0123456789abcdef");
        let nonce = b"abcdefghijkl";
        for len in (0..70).chain([1023, 1024, 1025, 4096, 65_616, 1 << 20]) {
            let original: Vec<u8> = (0..len).map(|i: u32| (i * 7 % 251) as u8).collect();
            let mut message = original.clone();
            let tag = gmac.authenticate(nonce, &original);
            assert!(tag.is_some());
            assert_eq!(gmac.encrypt_twice(nonce, &mut message), tag, "{len}");
            assert_eq!(message, original);
            assert_eq!(gmac.tag(nonce, &mut message), tag, "{len}");
            assert_eq!(message, original);
            let (one, two) = original.split_at(original.len() / 3);
            let mut tag = tag.unwrap();
            assert!(gmac.verify(nonce, &[one, two], &tag), "{len}");
            assert!(len == 0 || !gmac.verify(nonce, &[&original[1..]], &tag), "{len}");
            assert!(!gmac.verify(b"another nonc", &[one, two], &tag), "{len}");
            tag[len as usize % 16] ^= 1;
            assert!(!gmac.verify(nonce, &[one, two], &tag), "{len}");
        }
    }
}
