//! Changes that are too large for one transaction of the store, such as imports.
//!
//! 1. The intent is written, guarded by the head, which is written too: no other guarded change can
//!    be made until the intent is gone.
//! 2. The chunks are staged beside the documents, where nobody reads them.
//! 3. One transaction replaces the head and makes the intent *valid*. From then on the chunks count
//!    as documents.
//! 4. Each chunk becomes documents in a transaction that also removes the chunk; at last the intent
//!    is removed.
//!
//! If the gateway ends before step 3, nothing was changed, and the intent and its chunks are
//! removed ([`Link::undo`]): by the same gateway before its next change, or by another one that is
//! told that it has ended. If it ends after step 3, any gateway completes the change before its own
//! next one ([`Link::resolve`]). Every step is guarded by the revision of the intent, so that none
//! can be carried out late.

use super::envelope::{self, Chunk, Head, Intent, Staged};
use super::link::{Link, Sent, State, grouped};
use super::store::{Guard, OPERATIONS_MAX, Operation};
use crate::error::{CatalogError, ClusterError, Result};

/// Most values of a chunk: the transaction that makes it documents also removes it.
const CHUNK_VALUES_MAX: usize = OPERATIONS_MAX - 8;
/// Most bytes of keys and values of a chunk, which has some more around them.
const CHUNK_BYTES_MAX: usize = 900_000;

impl Link {
    /// Carries out a guarded change in chunks.
    pub(super) fn send_large(
        &self,
        state: &State,
        head: &Head,
        operations: Vec<Operation>,
        change: &str,
    ) -> Result<Sent> {
        let intent = Intent::of(change, &self.place.gateway);
        let begun = format!("{change}-intent");
        // The generation stays until the change is valid.
        let mut all = self.heading(&state.head, &begun)?;
        all.push(Operation::Put { key: self.key("intent"), value: envelope::write(&intent)? });
        let at = self.decide(None, &all, &begun, state.head_revision)?;
        let valid = self.stage(operations, change, at).and_then(|()| {
            let mut all = self.heading(head, change)?;
            let valid = envelope::write(&Intent { valid: true, ..intent })?;
            all.push(Operation::Put { key: self.key("intent"), value: valid });
            self.decide(Some(&self.intent_at(at)), &all, change, at)
        });
        match valid {
            Ok(_) => Ok(Sent::default()),
            Err(error) => {
                // Otherwise it is undone before the next change.
                let _undone_later = self.undo(change, at);
                Err(match error {
                    // The intent kept all others away, so it is gone.
                    CatalogError::Cluster(ClusterError::Overtaken) => ClusterError::Undone.into(),
                    error => error,
                })
            }
        }
    }

    fn intent_at(&self, revision: u64) -> Guard {
        Guard::At { key: self.key("intent"), revision }
    }

    /// Stages `operations` under the intent at this revision.
    fn stage(&self, operations: Vec<Operation>, change: &str, at: u64) -> Result<()> {
        let mut guards = vec![self.intent_at(at)];
        guards.extend(self.place.life.get().cloned());
        self.sweep(&self.key("staged/"), &guards)?;
        for (number, group) in
            grouped(operations, CHUNK_VALUES_MAX, CHUNK_BYTES_MAX).into_iter().enumerate()
        {
            let staged = group.into_iter().map(|operation| self.staged(operation));
            let chunk = Chunk::of(staged.collect::<Result<_>>()?);
            let key = self.key(&format!("staged/{change}/{number:06}"));
            let put = Operation::Put { key, value: envelope::write(&chunk)? };
            self.insist(&guards, &[put], ClusterError::Undone)?;
        }
        Ok(())
    }

    fn staged(&self, operation: Operation) -> Result<Staged> {
        let path = |key: String| key.strip_prefix(&self.prefix).map_or(key.clone(), str::to_owned);
        match operation {
            Operation::Put { key, value } => {
                let value = envelope::any(&key, &value)?;
                Ok(Staged { key: path(key), value: Some(value) })
            }
            Operation::Delete { key } => Ok(Staged { key: path(key), value: None }),
        }
    }

    /// Ends a large change that is under way: completes it if it is valid, and undoes it if it is
    /// one of this gateway, whose life ended meanwhile or which had no answer. Tells whether there
    /// was one.
    ///
    /// # Errors
    /// `Busy` if another gateway makes it; `Unreachable`, `InDoubt`.
    pub(crate) fn resolve(&self) -> Result<bool> {
        match self.state().intent {
            None => Ok(false),
            Some((intent, at)) if intent.valid => self.complete(&intent.change, at).map(|()| true),
            Some((intent, at)) if intent.gateway == self.place.gateway => {
                self.undo(&intent.change, at).map(|()| true)
            }
            Some((intent, _)) => Err(ClusterError::Busy { gateway: intent.gateway }.into()),
        }
    }

    /// Whether a large change of this gateway is under way, or valid and not complete.
    pub(crate) fn has_own_intent(&self) -> bool {
        let intent = self.state().intent;
        intent.is_some_and(|(intent, _)| intent.gateway == self.place.gateway)
    }

    /// Undoes the large change that `gateway`, which has ended, did not make valid. Tells whether
    /// there was one.
    ///
    /// # Errors
    /// `Unreachable`, `InDoubt`.
    pub(crate) fn undo_of(&self, gateway: &str) -> Result<bool> {
        match self.state().intent {
            Some((intent, at)) if !intent.valid && intent.gateway == gateway => {
                self.undo(&intent.change, at).map(|()| true)
            }
            _ => Ok(false),
        }
    }

    /// Removes the intent at this revision, and then its chunks: none can be added any more.
    fn undo(&self, change: &str, at: u64) -> Result<()> {
        let gone = Operation::Delete { key: self.key("intent") };
        match self.insist(&[self.intent_at(at)], &[gone], ClusterError::Undone) {
            // It was removed already, or is valid.
            Err(CatalogError::Cluster(ClusterError::Undone)) => Ok(()),
            Err(error) => Err(error),
            Ok(()) => self.sweep(&self.key(&format!("staged/{change}/")), &[]),
        }
    }

    /// Makes the chunks of a valid change documents.
    fn complete(&self, change: &str, at: u64) -> Result<()> {
        let guards = [self.intent_at(at)];
        let own = self.key(&format!("staged/{change}/"));
        let chunks = self.place.store.range(&own)?;
        let steps = chunks.pairs.into_iter().map(|pair| -> Result<Vec<Operation>> {
            let chunk: Chunk = envelope::read(&pair.key, &pair.value)?;
            let operation = |staged: Staged| {
                let key = self.key(&staged.key);
                match staged.value {
                    Some(value) => Operation::Put { key, value: value.to_string().into_bytes() },
                    None => Operation::Delete { key },
                }
            };
            let mut operations: Vec<_> = chunk.staged.into_iter().map(operation).collect();
            operations.push(Operation::Delete { key: pair.key });
            Ok(operations)
        });
        let last = vec![Operation::Delete { key: self.key("intent") }];
        for operations in steps.chain([Ok(last)]) {
            match self.insist(&guards, &operations?, ClusterError::Undone) {
                // Another gateway completed it.
                Err(CatalogError::Cluster(ClusterError::Undone)) => return Ok(()),
                done => done?,
            }
        }
        Ok(())
    }

    /// Deletes everything under `prefix`, which nobody reads.
    fn sweep(&self, prefix: &str, guards: &[Guard]) -> Result<()> {
        let found = self.place.store.range(prefix)?;
        let deletes = found.pairs.into_iter().map(|pair| Operation::Delete { key: pair.key });
        for group in grouped(deletes.collect(), OPERATIONS_MAX, CHUNK_BYTES_MAX) {
            self.insist(guards, &group, ClusterError::Undone)?;
        }
        Ok(())
    }
}
