//! The source of nonces of sealed messages.

use super::CryptoError;
use core::sync::atomic::{AtomicU64, Ordering};

/// Nonces of one key. Each is a counter of 64 bits and a salt that is random for the key, so none
/// comes twice, and those of two keys differ. Threads may share it.
pub(super) struct Nonces {
    next: AtomicU64,
    salt: [u8; 4],
}

impl Nonces {
    pub(super) const fn new(salt: [u8; 4]) -> Self {
        Self { next: AtomicU64::new(0), salt }
    }

    /// The next nonce, in the 12 bytes of GCM; CCM takes the first 11.
    pub(super) fn next(&self) -> Result<[u8; 12], CryptoError> {
        let step = |counter: u64| counter.checked_add(1);
        let counter = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, step)
            .map_err(|_| CryptoError::NoncesExhausted)?;
        let mut nonce = [0; 12];
        let (first, last) = nonce.split_at_mut(8);
        first.copy_from_slice(&counter.to_le_bytes());
        last.copy_from_slice(&self.salt);
        Ok(nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn nonces_differ_in_the_part_that_every_cipher_uses() {
        let nonces = Nonces::new([1, 2, 3, 4]);
        let seen: BTreeSet<Vec<u8>> =
            (0..1000).map(|_| nonces.next().unwrap()[..11].to_vec()).collect();
        assert_eq!(seen.len(), 1000);
        assert!(seen.iter().all(|nonce| nonce.ends_with(&[1, 2, 3])));
    }

    #[test]
    fn the_last_nonce_is_refused_for_good() {
        let nonces = Nonces { next: AtomicU64::new(u64::MAX - 1), salt: [0; 4] };
        assert_eq!(nonces.next().unwrap()[..8], (u64::MAX - 1).to_le_bytes());
        for _ in 0..3 {
            assert_eq!(nonces.next(), Err(CryptoError::NoncesExhausted));
        }
    }
}
