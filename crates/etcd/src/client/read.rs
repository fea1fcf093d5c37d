//! Reads: one row, or all rows below a prefix at one revision.

use super::connection::{CALL_WITHIN, Connection, Repeats};
use super::error::EtcdError;
use etcd_client::{Client, GetOptions, GetResponse, KeyValue};

/// Most rows of one answer.
const PAGE_ROWS: i64 = 256;
/// Longest answer, in bytes. A single row of etcd is never longer. Beyond: the page is halved.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// A row as it stands in etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// The revision since which it exists without a break.
    pub created: u64,
    /// The revision at which it was last written.
    pub modified: u64,
    /// The lease with which it ends; 0 for none.
    pub lease: i64,
}

/// Rows at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The revision of etcd then.
    pub revision: u64,
    /// The rows, by key.
    pub pairs: Vec<Pair>,
}

/// One row, with the place of the answer in the course of etcd.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) pair: Option<Pair>,
    /// The term of etcd's leader.
    pub(super) term: u64,
}

struct Page {
    revision: u64,
    pairs: Vec<Pair>,
    more: bool,
}

impl Connection {
    /// The row of `key`, not older than the call, within [`CALL_WITHIN`].
    ///
    /// # Errors
    /// [`EtcdError`].
    pub async fn get(&self, key: &str) -> Result<Option<Pair>, EtcdError> {
        let key = key.to_owned();
        let attempt = move |client| {
            let key = key.clone();
            async move { Ok(found(client, &key).await?.pair) }
        };
        self.call(CALL_WITHIN, Repeats::Harmless, |_| true, attempt).await
    }

    /// All rows of which the keys begin with `prefix`, at one revision, not older than the call.
    /// Each answer of etcd has to come within [`CALL_WITHIN`].
    ///
    /// # Errors
    /// [`EtcdError`]; [`EtcdError::TooLong`] if keys and values have more than `bytes_max` bytes;
    /// [`EtcdError::Compacted`] if the revision was compacted meanwhile.
    pub async fn range(&self, prefix: &str, bytes_max: usize) -> Result<Listing, EtcdError> {
        let end = end_of(prefix.as_bytes());
        let mut listing = Listing::default();
        let (mut from, mut rows, mut bytes) = (prefix.as_bytes().to_vec(), PAGE_ROWS, 0);
        loop {
            let page = match self.page(&from, &end, listing.revision, rows).await {
                Err(EtcdError::TooLong) if rows > 1 => {
                    rows /= 2;
                    continue;
                }
                page => page?,
            };
            rows = PAGE_ROWS.min(2 * rows);
            listing.revision = page.revision;
            bytes += page.pairs.iter().map(|pair| pair.key.len() + pair.value.len()).sum::<usize>();
            if bytes > bytes_max {
                return Err(EtcdError::TooLong);
            }
            let last = page.pairs.last().map(|pair| pair.key.clone());
            listing.pairs.extend(page.pairs);
            match last {
                Some(last) if page.more => from = [last.as_slice(), &[0]].concat(),
                _ => return Ok(listing),
            }
        }
    }

    /// Some rows at `revision`, or at the newest one if that is 0.
    async fn page(
        &self,
        from: &[u8],
        end: &[u8],
        revision: u64,
        rows: i64,
    ) -> Result<Page, EtcdError> {
        let options = GetOptions::new()
            .with_range(end)
            .with_limit(rows)
            .with_revision(i64::try_from(revision).unwrap_or(i64::MAX));
        let from = from.to_vec();
        let attempt = move |client: Client| {
            let (from, options) = (from.clone(), options.clone());
            async move {
                let mut reading = client.kv_client().max_decoding_message_size(PAGE_BYTES_MAX);
                let mut answer = reading.get(from, Some(options)).await?;
                let read = if revision == 0 { head(&answer)?.0 } else { revision };
                let more = answer.more();
                let pairs = answer.take_kvs().into_iter().map(pair).collect();
                Ok(Page { revision: read, pairs, more })
            }
        };
        self.call(CALL_WITHIN, Repeats::Harmless, |_| true, attempt).await
    }
}

/// Reads a row at one member, linearizably.
pub(super) async fn found(mut client: Client, key: &str) -> Result<Found, EtcdError> {
    let mut answer = client.get(key, None).await?;
    let (_, term) = head(&answer)?;
    Ok(Found { pair: answer.take_kvs().pop().map(pair), term })
}

/// The revision and the term of an answer.
fn head(answer: &GetResponse) -> Result<(u64, u64), EtcdError> {
    let header = answer.header();
    let header =
        header.ok_or_else(|| EtcdError::Unanswered("an answer without a header".to_owned()))?;
    Ok((u64::try_from(header.revision()).unwrap_or(0), header.raft_term()))
}

fn pair(row: KeyValue) -> Pair {
    let revision = |revision: i64| u64::try_from(revision).unwrap_or(0);
    let (created, modified) = (revision(row.create_revision()), revision(row.mod_revision()));
    let lease = row.lease();
    let (key, value) = row.into_key_value();
    Pair { key, value, created, modified, lease }
}

/// The first key behind all that begin with `prefix`.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return end;
        }
    }
    // Every key.
    vec![0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        assert_eq!(end_of(b"/a/"), b"/a0");
        assert_eq!(end_of(b"a\xff"), b"b");
        assert_eq!(end_of(b"\xff"), b"\0");
    }
}
