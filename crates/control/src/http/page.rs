//! Lists in pages. A list is sorted by the keys of its entries, which are unique. A page begins
//! after the key of the last entry of the page before. So a list that changes between two pages
//! shows every entry that existed all the time exactly once.

use super::failure::Failure;
use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use serde::Deserialize;
use std::fmt::Write as _;
use weir_api::Page;
use weir_api::limits::PAGE_ITEMS_MAX;
use weir_catalog::limits::PATH_BYTES_MAX;

/// Longest cursor, with two digits for each byte: that of a lock, in which client and owner of NLM
/// are two digits for each of some 1,040 bytes again.
const CURSOR_CHARS_MAX: usize = 16 << 10;
const _: () = assert!(CURSOR_CHARS_MAX > 2 * PATH_BYTES_MAX + 64);

/// The requested page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    limit: Option<usize>,
    after: Option<String>,
}

/// The query of a list.
pub(super) type PageQuery = Result<Query<Which>, QueryRejection>;

/// The requested page of `all`, whose keys are in ascending order.
pub(super) fn page<I, T>(
    query: PageQuery,
    kind: &str,
    all: impl Iterator<Item = (String, I)>,
    show: impl Fn(I) -> T,
) -> Result<Json<Page<T>>, Failure> {
    let part = |after: Option<&str>, most| {
        let is_behind = |key: &str| after.is_none_or(|after| key > after);
        Some(all.filter(|(key, _)| is_behind(key)).take(most).collect())
    };
    page_of(query, kind, part, show)
}

/// The requested page of a list of this `kind`. `part` gives at most the given number of
/// entries after a key, or from the first entry, each with its key; `None` if the key is malformed.
pub(super) fn page_of<I, T>(
    query: PageQuery,
    kind: &str,
    part: impl FnOnce(Option<&str>, usize) -> Option<Vec<(String, I)>>,
    show: impl Fn(I) -> T,
) -> Result<Json<Page<T>>, Failure> {
    let Query(Which { limit, after }) = query?;
    let limit = limit.unwrap_or(PAGE_ITEMS_MAX);
    if !(1..=PAGE_ITEMS_MAX).contains(&limit) {
        return Err(Failure::bad_request(format!("limit must be from 1 to {PAGE_ITEMS_MAX}")));
    }
    let unknown = || Failure::bad_request("after is not a `next` returned by a page of this list");
    let after = after.map(|text| unseal(&text, kind).ok_or_else(unknown)).transpose()?;
    // One more than fits tells whether there is a next page.
    let mut part = part(after.as_deref(), limit + 1).ok_or_else(unknown)?;
    let has_more = part.len() > limit;
    part.truncate(limit);
    let next = part.last().filter(|_| has_more).map(|(key, _)| seal(kind, key));
    Ok(Json(Page { items: part.into_iter().map(|(_, item)| show(item)).collect(), next }))
}

/// A key as opaque text.
fn seal(kind: &str, key: &str) -> String {
    let whole = format!("{kind}:{key}");
    whole.bytes().fold(String::new(), |mut text, byte| {
        // Writing to a text never fails.
        let _never = write!(text, "{byte:02x}");
        text
    })
}

fn unseal(text: &str, kind: &str) -> Option<String> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) || text.len() > CURSOR_CHARS_MAX {
        return None;
    }
    let byte = |place| u8::from_str_radix(text.get(place..place + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    let whole = String::from_utf8(bytes?).ok()?;
    Some(whole.strip_prefix(kind)?.strip_prefix(':')?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(limit: usize, after: Option<String>, all: &[u32]) -> Page<u32> {
        let query = Ok(Query(Which { limit: Some(limit), after }));
        let all = all.iter().map(|number| (format!("{number:010}"), *number));
        page(query, "volume", all, |number| number).map(|Json(page)| page).unwrap()
    }

    #[test]
    fn what_stays_is_shown_once_whatever_comes_and_goes_between_pages() {
        let first = ask(2, None, &[1, 3, 5, 7]);
        assert_eq!(first.items, [1, 3]);
        let second = ask(2, first.next, &[2, 5, 7, 9]);
        assert_eq!(second.items, [5, 7]);
        let third = ask(2, second.next, &[9]);
        assert_eq!((third.items, third.next), (vec![9], None));
        assert_eq!(ask(3, None, &[1, 2, 3]).next, None);
        assert_eq!(ask(3, None, &[]).items, [] as [u32; 0]);
    }

    #[test]
    fn a_cursor_is_of_one_list() {
        let text = seal("pool", "0000000007");
        assert_eq!(unseal(&text, "pool").unwrap(), "0000000007");
        for (text, kind) in
            [(text.as_str(), "volume"), ("zz", "pool"), ("1", "pool"), ("é", "pool")]
        {
            assert_eq!(unseal(text, kind), None);
        }
        let path = "/".repeat(PATH_BYTES_MAX);
        assert_eq!(unseal(&seal("calibration", &path), "calibration"), Some(path));
    }
}
