//! Requests with an idempotency key, remembered for a day, so that a client that lost the response
//! can repeat the request without creating anything twice. The request is recorded in the
//! transaction of its change, and its response after that. The content of requests belongs to the
//! API; here a request is two hashes.

use crate::catalog::Catalog;
use crate::error::Result;
use crate::idempotency::IdempotencyKey;
use crate::limits::{REQUEST_ANSWER_BYTES_MAX, REQUEST_SECS};
use rusqlite::{OptionalExtension, params};

/// The record of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// The request is new.
    Nothing,
    /// Another request had the same key.
    Other,
    /// The request was carried out, with this response, unless the server ended before it was
    /// stored or it was too long.
    Done(Option<Vec<u8>>),
}

impl Catalog {
    /// The record of the request with this key.
    ///
    /// # Errors
    /// `Database`.
    pub fn recall(&self, key: &IdempotencyKey) -> Result<Known> {
        self.read_latest(|db| {
            let find = "SELECT request, answer FROM requests WHERE key = ?1 AND at > ?2";
            let since = key.at.saturating_sub(REQUEST_SECS);
            let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?));
            let found = db.query_row(find, params![key.key, since], read).optional()?;
            Ok(match found {
                None => Known::Nothing,
                Some((request, answer)) if request == key.request => Known::Done(answer),
                Some(_) => Known::Other,
            })
        })
    }

    /// Stores the response to a request that was carried out.
    ///
    /// # Errors
    /// `Database`.
    pub fn keep_response(&self, key: &IdempotencyKey, response: &[u8]) -> Result<()> {
        if response.len() > REQUEST_ANSWER_BYTES_MAX {
            return Ok(());
        }
        self.write(|db| {
            let keep = "UPDATE requests SET answer = ?2 WHERE key = ?1";
            db.execute(keep, params![key.key, response])?;
            Ok(())
        })
    }

    /// Forgets a request whose change was undone.
    ///
    /// # Errors
    /// `Database`.
    pub fn forget_request(&self, key: &IdempotencyKey) -> Result<()> {
        self.write(|db| {
            db.execute("DELETE FROM requests WHERE key = ?1", [key.key])?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idempotency::note;
    use crate::limits::REQUESTS_MAX;
    use crate::{BytesPerSecond, Mode};

    fn claim(key: u64, request: u8, at: u64) -> IdempotencyKey {
        let mut long = [0; 32];
        long[..8].copy_from_slice(&key.to_be_bytes());
        IdempotencyKey { key: long, request: [request; 32], at }
    }

    fn make(catalog: &Catalog, name: &str, claim: IdempotencyKey) {
        let rate = BytesPerSecond::from_mib(1);
        catalog.create_level(name, rate, Mode::Once(claim)).unwrap();
    }

    #[test]
    fn a_request_is_known_with_what_it_made_or_not_at_all() {
        let base = tempfile::tempdir().unwrap();
        let one = claim(1, 1, 1000);
        {
            let catalog = Catalog::open(base.path()).unwrap();
            assert_eq!(catalog.recall(&one).unwrap(), Known::Nothing);
            make(&catalog, "a", one);
            // A failed request leaves no trace.
            let failed = claim(2, 1, 1000);
            let rate = BytesPerSecond::from_mib(1);
            catalog.create_level("a", rate, Mode::Once(failed)).unwrap_err();
            assert_eq!(catalog.recall(&failed).unwrap(), Known::Nothing);
        }
        let catalog = Catalog::open(base.path()).unwrap();
        assert_eq!(catalog.recall(&one).unwrap(), Known::Done(None));
        catalog.keep_response(&one, b"made").unwrap();
        let again = IdempotencyKey { at: 2000, ..one };
        assert_eq!(catalog.recall(&again).unwrap(), Known::Done(Some(b"made".to_vec())));
        assert_eq!(
            catalog.recall(&IdempotencyKey { request: [9; 32], ..one }).unwrap(),
            Known::Other
        );
        catalog.forget_request(&one).unwrap();
        assert_eq!(catalog.recall(&one).unwrap(), Known::Nothing);
    }

    #[test]
    fn requests_are_forgotten_after_a_day_and_beyond_a_number() {
        let base = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(base.path()).unwrap();
        let day = REQUEST_SECS;
        make(&catalog, "a", claim(1, 1, day));
        assert_eq!(catalog.recall(&claim(1, 1, 2 * day - 1)).unwrap(), Known::Done(None));
        assert_eq!(catalog.recall(&claim(1, 1, 2 * day)).unwrap(), Known::Nothing);
        // The request's key is free again.
        make(&catalog, "b", claim(1, 2, 2 * day));
        catalog
            .write(|db| {
                (2..=REQUESTS_MAX as u64)
                    .try_for_each(|key| note(db, &claim(key, 1, 2 * day + key)))
            })
            .unwrap();
        assert_eq!(catalog.recall(&claim(1, 2, 2 * day)).unwrap(), Known::Done(None));
        make(&catalog, "c", claim(7777, 1, 2 * day + 7777));
        assert_eq!(catalog.recall(&claim(1, 2, 2 * day)).unwrap(), Known::Nothing);
        assert_eq!(catalog.recall(&claim(2, 1, 2 * day)).unwrap(), Known::Done(None));
    }

    #[test]
    fn an_answer_that_is_too_long_is_not_kept() {
        let base = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(base.path()).unwrap();
        make(&catalog, "a", claim(1, 1, 1));
        catalog.keep_response(&claim(1, 1, 1), &vec![b'x'; REQUEST_ANSWER_BYTES_MAX + 1]).unwrap();
        assert_eq!(catalog.recall(&claim(1, 1, 1)).unwrap(), Known::Done(None));
    }
}
