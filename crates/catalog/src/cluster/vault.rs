//! The secrets of a cluster in its store.

use super::envelope::{self, SealedSecret};
use super::key::Secret;
use super::link::{ClusterPlace, TRIES};
use super::store::{Decision, Guard, Listing, Operation, StoreError};
use crate::error::{ClusterError, Result};

/// Access to the secrets of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Vault {
    place: ClusterPlace,
    prefix: String,
}

impl Vault {
    /// The secrets of this cluster.
    ///
    /// # Errors
    /// `BadName`.
    pub(crate) fn of(place: &ClusterPlace) -> Result<Self> {
        Ok(Self { prefix: place.prefix()?, place: place.clone() })
    }

    fn key(&self, which: Secret) -> String {
        format!("{}{}", self.prefix, which.path())
    }

    /// A secret and the revision at which it was written, if the cluster has it.
    ///
    /// # Errors
    /// `WrongKey`, `Row`, `Newer`, `Unreachable`.
    pub(crate) fn read(&self, which: Secret) -> Result<Option<(Vec<u8>, u64)>> {
        let key = self.key(which);
        let Some(pair) = self.place.store.get(&key)? else { return Ok(None) };
        let found: SealedSecret = envelope::read(&key, &pair.value)?;
        Ok(Some((self.place.key.open(&key, &found.sealed)?, pair.revision)))
    }

    /// The operation that stores a secret.
    pub(crate) fn seal(&self, which: Secret, content: &[u8]) -> Result<Operation> {
        let key = self.key(which);
        let value = envelope::write(&SealedSecret::of(self.place.key.seal(&key, content)?))?;
        Ok(Operation::Put { key, value })
    }

    /// Replaces a secret that was written at the revision `at`, or that is not there if that is 0.
    /// Gives the new revision; `None` if it was written meanwhile, and so not replaced. `content`
    /// is unlike any that another gateway would write.
    ///
    /// # Errors
    /// `NotMember`, `Unreachable`, `InDoubt`, `WrongKey`.
    pub(crate) fn replace(&self, which: Secret, content: &[u8], at: u64) -> Result<Option<u64>> {
        let put = self.seal(which, content)?;
        let mut guards = vec![Guard::At { key: self.key(which), revision: at }];
        guards.extend(self.place.life.get().cloned());
        let mut lost = false;
        for _ in 0..TRIES {
            match self.place.store.commit(&guards, std::slice::from_ref(&put)) {
                Ok(Decision::At(revision)) => return Ok(Some(revision)),
                Ok(Decision::Refused) => {
                    let (found, revision) = self.read(which)?.unwrap_or_default();
                    if revision == at {
                        let gateway = self.place.gateway.clone();
                        return Err(ClusterError::NotMember { gateway }.into());
                    }
                    return Ok((lost && found == content).then_some(revision));
                }
                Err(StoreError::Unavailable(_)) if lost => {}
                Err(StoreError::Unknown(_)) => lost = true,
                Err(error) => return Err(error.into()),
            }
        }
        Err(ClusterError::InDoubt.into())
    }
}

/// The secrets among `listing`, the keys of the catalogue with this prefix, as they are sealed.
///
/// # Errors
/// `Row`, `Newer`.
pub(super) fn sealed(prefix: &str, listing: &Listing) -> Result<Vec<(Secret, String)>> {
    let mut all = Vec::new();
    for which in Secret::ALL {
        let key = format!("{prefix}{}", which.path());
        if let Some(pair) = listing.pairs.iter().find(|pair| pair.key == key) {
            let found: SealedSecret = envelope::read(&key, &pair.value)?;
            all.push((which, found.sealed));
        }
    }
    Ok(all)
}
