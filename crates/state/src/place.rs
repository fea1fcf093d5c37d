//! The entries of the list of all locks, with their places, also as text for readers that resume
//! the list there. Not here: the list.

use crate::file::File;
use crate::owner::{Client, OpenId, Owner, Protocol};
use crate::range::Mode;
use crate::span::Span;
use alloc::format;
use alloc::string::{String, ToString};
use weir_core::{ObjectKey, Origin, VolumeId, hex};

/// The place of a lock in the list of all locks; the order is the list's. No two have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockPlace {
    /// The file.
    pub file: File,
    /// The place among the locks of the file.
    pub spot: LockSpot,
}

/// The place of a lock in the list of one file's locks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockSpot {
    /// The range of a named owner that begins at this byte.
    Named(Owner, u64),
    /// The lock of an open, with its range and mode, however many times it is held.
    Open(Owner, Span, Mode),
    /// The request that waits as this number.
    Waiting(u64),
}

/// A lock, or a request that waits for one, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedLock {
    /// Its place.
    pub place: LockPlace,
    /// Its owner.
    pub owner: Owner,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes; `None` if the range of a named owner reaches to the end of the file.
    pub length: Option<u64>,
    /// Its mode.
    pub mode: Mode,
}

/// A lock that was released, or a request whose wait was ended
/// ([`Tables::release_lock`](crate::Tables::release_lock)).
#[derive(Debug, PartialEq, Eq)]
pub struct ReleasedLock<W> {
    /// The lock or the request, as it was.
    pub lock: ListedLock,
    /// The token of the request; `None` for a lock.
    pub waiter: Option<W>,
}

/// Between the parts of a text.
const BREAK: char = '.';

impl LockPlace {
    /// The place as text, which names it as long as the server runs.
    #[must_use]
    pub fn to_text(&self) -> String {
        let File { volume, object } = self.file;
        let spot = match &self.spot {
            LockSpot::Named(owner, first) => format!("r.{}.{first}", owner_text(owner)),
            LockSpot::Open(owner, span, mode) => {
                let mode = if *mode == Mode::Shared { "s" } else { "x" };
                format!("o.{}.{}.{}.{mode}", owner_text(owner), span.offset(), span.length())
            }
            LockSpot::Waiting(number) => format!("w.{number}"),
        };
        format!("{}.{}.{spot}", volume.0, hex::encode(object.as_bytes()))
    }

    /// Parses a place; `None` if the text is malformed.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.split(BREAK);
        let mut next = || parts.next();
        let volume = VolumeId(next()?.parse().ok()?);
        let object = ObjectKey::new(&hex::decode(next()?)?).ok()?;
        let spot = match next()? {
            "r" => LockSpot::Named(owner(&mut next)?, next()?.parse().ok()?),
            "o" => {
                let owner = owner(&mut next)?;
                let span = Span::new(next()?.parse().ok()?, next()?.parse().ok()?)?;
                let mode = match next()? {
                    "s" => Mode::Shared,
                    "x" => Mode::Exclusive,
                    _ => return None,
                };
                LockSpot::Open(owner, span, mode)
            }
            "w" => LockSpot::Waiting(next()?.parse().ok()?),
            _ => return None,
        };
        next().is_none().then_some(Self { file: File { volume, object }, spot })
    }
}

/// Protocol, origin, client, name and open of an owner.
fn owner_text(owner: &Owner) -> String {
    let client = owner.client();
    let protocol = match client.protocol() {
        Protocol::Nlm => "n",
        Protocol::Smb => "s",
        #[cfg(feature = "testing")]
        Protocol::Test => "t",
    };
    let (origin, id) = (client.origin().number(), hex::encode(client.id()));
    let open = owner.open().map_or_else(String::new, |OpenId(number)| number.to_string());
    format!("{protocol}.{origin}.{id}.{}.{open}", hex::encode(owner.name()))
}

fn owner<'a>(next: &mut impl FnMut() -> Option<&'a str>) -> Option<Owner> {
    let protocol = match next()? {
        "n" => Protocol::Nlm,
        "s" => Protocol::Smb,
        #[cfg(feature = "testing")]
        "t" => Protocol::Test,
        _ => return None,
    };
    let origin = Origin::of_client(next()?.parse().ok()?);
    let (client, name, open) = (hex::decode(next()?)?, hex::decode(next()?)?, next()?);
    let client = Client::new(protocol, origin, &client);
    Some(match open {
        "" => Owner::new(client, &name),
        open => Owner::of_open(client, OpenId(open.parse().ok()?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn places() -> Vec<LockPlace> {
        let file = File { volume: VolumeId(7), object: ObjectKey::new(&[0x81, 0, 7]).unwrap() };
        let host = |address: &str, id: &[u8]| {
            Client::new(Protocol::Nlm, Origin::of(address.parse().unwrap()), id)
        };
        let session = Client::new(Protocol::Smb, Origin::of([10, 0, 0, 1].into()), &[0; 8]);
        let open = || Owner::of_open(session.clone(), OpenId(9));
        let span = Span::new(5, u64::MAX - 9).unwrap();
        let spots = vec![
            LockSpot::Named(Owner::new(host("10.0.0.1", b"a.b"), b"\0\0\0\x07 words"), u64::MAX),
            LockSpot::Named(Owner::new(host("2001:db8::7", b""), b""), 0),
            LockSpot::Open(open(), span, Mode::Shared),
            LockSpot::Open(open(), span, Mode::Exclusive),
            LockSpot::Waiting(12),
        ];
        spots.into_iter().map(|spot| LockPlace { file, spot }).collect()
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        for place in places() {
            let text = place.to_text();
            assert_eq!(LockPlace::from_text(&text), Some(place), "{text}");
            assert_eq!(LockPlace::from_text(&format!("{text}.1")), None);
        }
    }

    #[test]
    fn no_other_text_is_a_place() {
        for place in places() {
            let (text, parts) = (place.to_text(), place.to_text().split(BREAK).count());
            for kept in 0..parts {
                let cut: Vec<&str> = text.split(BREAK).take(kept).collect();
                assert_eq!(LockPlace::from_text(&cut.join(".")), None, "{cut:?}");
            }
        }
        for wrong in ["7.zz.w.1", "7.8100.q.1", "x.8100.w.1", "7.8100.w.-1", "7.8100.r.q.1...1"] {
            assert_eq!(LockPlace::from_text(wrong), None, "{wrong}");
        }
    }
}
