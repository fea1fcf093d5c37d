//! The conditions in the headers of a change: the state that it is meant for (`If-Match`, RFC 9110
//! §13.1.1), and the key by which it is made only once (`Idempotency-Key`).

use super::access::Caller;
use super::failure::Failure;
use super::{Control, convert, groups, time_of_day};
use axum::extract::FromRequestParts;
use axum::http::header::IF_MATCH;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use ring::digest::{Context, SHA256};
use weir_catalog::{IdempotencyKey, Snapshot};

/// The header with the key of a request.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Longest such key.
const KEY_CHARS_MAX: usize = 255;

/// The conditions of a change.
#[derive(Clone, Debug, Default)]
pub(super) struct Preconditions {
    if_match: Option<Vec<String>>,
    /// The key of a request that must be carried out only once.
    pub(super) key: Option<IdempotencyKey>,
}

impl<S: Sync> FromRequestParts<S> for Preconditions {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let key = parts.extensions.get::<IdempotencyKey>().copied();
        Ok(Self { if_match: if_match(&parts.headers)?, key })
    }
}

/// The etags of `If-Match`, one of which must be the current one; `*` matches any.
fn if_match(headers: &HeaderMap) -> Result<Option<Vec<String>>, Failure> {
    let mut tags = Vec::new();
    for value in headers.get_all(IF_MATCH) {
        let bad = || Failure::bad_request("If-Match contains no etag: send a quoted etag, or *");
        for tag in value.to_str().map_err(|_| bad())?.split(',').map(str::trim) {
            let quoted = tag.strip_prefix("W/").unwrap_or(tag);
            if tag != "*" && !(quoted.len() > 1 && quoted.starts_with('"') && quoted.ends_with('"'))
            {
                return Err(bad());
            }
            tags.push(tag.to_owned());
        }
    }
    Ok((!tags.is_empty()).then_some(tags))
}

/// The key of a request by `caller` that creates something.
pub(super) fn idempotency_key(
    caller: &Caller,
    parts: &Parts,
    body: &[u8],
) -> Result<Option<IdempotencyKey>, Failure> {
    let Some(value) = parts.headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    if parts.method != Method::POST {
        return Ok(None);
    }
    let key = value.to_str().ok().filter(|key| !key.is_empty() && key.len() <= KEY_CHARS_MAX);
    let key = key.ok_or_else(|| {
        let message = format!("an Idempotency-Key must be 1 to {KEY_CHARS_MAX} ASCII characters");
        Failure::bad_request(message)
    })?;
    let owner = match caller {
        Caller::Socket { .. } | Caller::Nobody { .. } => "",
        Caller::Token { name, .. } => name,
    };
    let path = parts.uri.path_and_query().map_or("", |whole| whole.as_str());
    Ok(Some(IdempotencyKey {
        key: hash(&[owner.as_bytes(), key.as_bytes()]),
        request: hash(&[parts.method.as_str().as_bytes(), path.as_bytes(), body]),
        at: time_of_day::seconds(),
    }))
}

/// A hash of several parts with their lengths, so that their boundaries count.
fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Context::new(&SHA256);
    for part in parts {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hash.finish().as_ref());
    bytes
}

/// The etag of an object with the representation `text`.
pub(super) fn etag(text: &[u8]) -> String {
    hash(&[text]).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The object that a request changes.
pub(super) enum Target {
    /// A new object.
    New,
    /// A level.
    Level(String),
    /// A pool.
    Pool(String),
    /// A volume, or its export rules.
    Volume(String),
    /// The calibration of a directory.
    Calibration(String),
    /// A user.
    User(String),
    /// A group, or its members.
    Group(String),
    /// An address of the cluster.
    Address(String),
}

impl Target {
    fn etag(&self, control: &Control, snapshot: &Snapshot) -> Option<String> {
        match self {
            Self::New => None,
            Self::Level(name) => {
                let level = snapshot.level_named(name)?;
                Some(convert::level(snapshot, level).etag)
            }
            Self::Pool(name) => Some(convert::pool(snapshot, snapshot.pool_named(name)?).etag),
            Self::Volume(name) => control.volume(snapshot, name).map(|volume| volume.etag),
            Self::Calibration(name) => {
                Some(convert::calibration(snapshot.calibration_of(name)?).etag)
            }
            Self::User(name) => control.user(snapshot, name).map(|user| user.etag),
            Self::Group(name) => groups::find(snapshot, name).map(|group| group.etag),
            Self::Address(ip) => {
                let address = control.address(snapshot, ip).ok().flatten()?;
                Some(address.etag)
            }
        }
    }

    /// Refuses a change that is meant for another state of the object than that in `snapshot`. An
    /// object that does not exist is left to the change itself.
    pub(super) fn check(
        &self,
        preconditions: &Preconditions,
        control: &Control,
        snapshot: &Snapshot,
    ) -> Result<(), Failure> {
        if matches!(self, Self::New) && preconditions.if_match.is_some() {
            let message = "If-Match applies only to changes of existing objects, but this request creates one";
            return Err(Failure::bad_request(message));
        }
        let Some(wanted) = &preconditions.if_match else { return Ok(()) };
        let refused =
            |message| Failure::new(StatusCode::PRECONDITION_FAILED, "changed_meanwhile", message);
        let etag = match (self.etag(control, snapshot), self) {
            (Some(etag), _) => etag,
            // The change would create the calibration and not refuse. No etag matches an object
            // that does not exist, nor does `*`.
            (None, Self::Calibration(name)) => {
                return Err(refused(format!(
                    "calibration {name:?} does not exist, so nothing was stored: to create it, send the request without If-Match"
                )));
            }
            (None, _) => return Ok(()),
        };
        let now = format!("\"{etag}\"");
        if wanted.iter().any(|tag| tag == "*" || *tag == now) {
            return Ok(());
        }
        let (thing, name) = match self {
            Self::New => return Ok(()),
            Self::Level(name) => ("level", name),
            Self::Pool(name) => ("pool", name),
            Self::Volume(name) => ("volume", name),
            Self::Calibration(name) => ("calibration", name),
            Self::User(name) => ("user", name),
            Self::Group(name) => ("group", name),
            Self::Address(ip) => ("address", ip),
        };
        Err(refused(format!(
            "{thing} {name:?} was modified, so nothing was changed: read it again (its etag is now {etag})"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_are_read_with_their_quotes() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_MATCH, text.parse().unwrap());
            if_match(&headers).map_err(|failure| failure.code().to_owned())
        };
        assert_eq!(read("\"a\", \"b\"").unwrap().unwrap(), ["\"a\"", "\"b\""]);
        assert_eq!(read("*").unwrap().unwrap(), ["*"]);
        for wrong in ["a", "\"a", "\"", "\"a\",", ""] {
            assert_eq!(read(wrong).unwrap_err(), "bad_request", "{wrong}");
        }
        assert!(if_match(&HeaderMap::new()).unwrap().is_none());
    }

    /// The catalogue keeps the hashes of requests, and clients keep etags, over an upgrade.
    #[test]
    fn hashes_are_those_of_earlier_versions() {
        let digits: String =
            hash(&[b"ci", b"request-1"]).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digits, "08b71a58f7a2e0c2ecf790ffb5465035970a91fc0731f3e73c18368ac510a936");
        assert_eq!(etag(b"{\"name\":\"home\"}"), "0bacc0eaa29a4f94389af268512fd493");
    }

    #[test]
    fn parts_of_a_hash_do_not_run_into_one_another() {
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
        assert_eq!(etag(b"x").len(), 32);
    }
}
