//! The rate at which lines alike may be written. Plain data, with time as an argument.
//!
//! Lines are alike if one place in the code writes them. Each place has a token bucket for its
//! lines without a peer, one for each origin of the peers that its lines name, and one for all
//! peers together. So a peer that causes many lines hides at most lines about itself, and many
//! peers together still write a bounded number.

use crate::limits::{LOG_PEERS_MAX, LOG_REPORT_LINES_MAX};
use std::collections::HashMap;
use std::net::IpAddr;
use tracing::callsite::Identifier;
use weir_core::{Mono, Origin};

/// The rate for lines of one origin.
const PEER: Rate = Rate { burst: 20, nanos: 1_000_000_000 };
/// The rate for one place's lines that name peers, over all origins. It admits the mounts of a
/// thousand clients that come back after a power cut.
const PEERS: Rate = Rate { burst: 2000, nanos: 50_000_000 };
/// The rate for one place's lines that name no peer.
const OTHERS: Rate = Rate { burst: 1000, nanos: 100_000_000 };

/// A burst of `burst` lines at once, and one more line every `nanos` nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Rate {
    burst: u64,
    nanos: u64,
}

/// A token bucket, kept as the time at which it is full.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    full_at: Mono,
    left_out: u64,
}

impl Bucket {
    fn take(&mut self, rate: Rate, now: Mono) -> bool {
        let begun = self.full_at.0.max(now.0);
        let admitted = begun - now.0 <= (rate.burst - 1) * rate.nanos;
        if admitted {
            self.full_at = Mono(begun + rate.nanos);
        } else {
            self.left_out += 1;
        }
        admitted
    }
}

/// The rate state of one place in the code.
#[derive(Debug, Default)]
struct Place {
    /// The message that was left out first.
    like: String,
    others: Bucket,
    peers: Bucket,
    /// The shared bucket of origins that the table has no room for.
    crowd: Bucket,
}

/// The lines of one origin from one place.
#[derive(Debug)]
struct Named {
    peer: IpAddr,
    bucket: Bucket,
}

/// Lines alike that were left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// The message of one of them.
    pub(super) like: String,
    /// The peer that they name, if all name one origin.
    pub(super) peer: Option<IpAddr>,
    /// The number of lines left out.
    pub(super) lines: u64,
}

/// The rates of all lines.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// The places, one for each in the code that has logged.
    places: HashMap<Identifier, Place>,
    /// The origins with buckets of their own, at most [`LOG_PEERS_MAX`].
    named: HashMap<(Identifier, Origin), Named>,
    tidied: Mono,
}

impl Rates {
    /// May a line from `place` be written at `now`? `like` gives its message.
    pub(super) fn admit(
        &mut self,
        place: &Identifier,
        peer: Option<IpAddr>,
        now: Mono,
        like: impl FnOnce() -> String,
    ) -> bool {
        let known = self.places.entry(place.clone()).or_default();
        let admitted = match peer {
            None => known.others.take(OTHERS, now),
            Some(peer) => self.admit_named(place.clone(), peer, now),
        };
        if !admitted
            && let Some(known) = self.places.get_mut(place)
            && known.like.is_empty()
        {
            known.like = like();
        }
        admitted
    }

    fn admit_named(&mut self, place: Identifier, peer: IpAddr, now: Mono) -> bool {
        let key = (place.clone(), Origin::of(peer));
        if self.named.len() >= LOG_PEERS_MAX && !self.named.contains_key(&key) {
            self.tidy(now);
        }
        let full = self.named.len() >= LOG_PEERS_MAX && !self.named.contains_key(&key);
        let place = self.places.entry(place).or_default();
        let new = || Named { peer, bucket: Bucket::default() };
        let own = match full {
            true => &mut place.crowd,
            false => &mut self.named.entry(key).or_insert_with(new).bucket,
        };
        own.take(PEER, now) && place.peers.take(PEERS, now)
    }

    /// Forgets origins that have written nothing for long enough to have their burst again. The
    /// table is searched at most once in the time of one line.
    fn tidy(&mut self, now: Mono) {
        if now.0.saturating_sub(self.tidied.0) >= PEER.nanos {
            self.tidied = now;
            self.named.retain(|_, named| named.bucket.full_at > now || named.bucket.left_out > 0);
        }
    }

    /// The lines left out since the last call, most first; the least of them in one sum for each
    /// place if there would be more than [`LOG_REPORT_LINES_MAX`] reports.
    pub(super) fn take_left_out(&mut self) -> Vec<LeftOut> {
        let mut all = Vec::new();
        for ((id, _), named) in &mut self.named {
            let lines = std::mem::take(&mut named.bucket.left_out);
            if lines > 0 {
                all.push((id.clone(), Some(named.peer), lines));
            }
        }
        all.sort_by_key(|(_, _, lines)| std::cmp::Reverse(*lines));
        for (id, _, lines) in all.split_off(all.len().min(LOG_REPORT_LINES_MAX)) {
            if let Some(place) = self.places.get_mut(&id) {
                place.crowd.left_out += lines;
            }
        }
        for (id, place) in &mut self.places {
            let buckets = [&mut place.others, &mut place.peers, &mut place.crowd];
            let lines = buckets.map(|bucket| std::mem::take(&mut bucket.left_out)).iter().sum();
            if lines > 0 {
                all.push((id.clone(), None, lines));
            }
        }
        let like = |id: &Identifier| {
            self.places.get(id).map(|place| place.like.clone()).unwrap_or_default()
        };
        all.into_iter().map(|(id, peer, lines)| LeftOut { like: like(&id), peer, lines }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::callsite::Callsite;
    use tracing::metadata::Kind;
    use tracing::subscriber::Interest;
    use tracing::{Level, Metadata, metadata};

    struct At(fn() -> &'static Metadata<'static>);

    impl Callsite for At {
        fn set_interest(&self, _: Interest) {}
        fn metadata(&self) -> &Metadata<'_> {
            (self.0)()
        }
    }

    static HERE: At = At(|| &OF_HERE);
    static THERE: At = At(|| &OF_THERE);
    static OF_HERE: Metadata<'static> = metadata! {
        name: "here", target: "test", level: Level::INFO, fields: &[],
        callsite: &HERE, kind: Kind::EVENT
    };
    static OF_THERE: Metadata<'static> = metadata! {
        name: "there", target: "test", level: Level::INFO, fields: &[],
        callsite: &THERE, kind: Kind::EVENT
    };

    fn place(at: &'static At) -> Identifier {
        at.metadata().callsite()
    }

    fn peer(number: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(number.into()))
    }

    fn admitted(rates: &mut Rates, from: u32, now: Mono, lines: usize) -> usize {
        let like = || "like".to_owned();
        (0..lines).filter(|_| rates.admit(&place(&HERE), peer(from), now, like)).count()
    }

    #[test]
    fn an_origin_writes_its_burst_and_then_one_line_a_second_and_hides_nobody_elses() {
        let mut rates = Rates::default();
        assert_eq!(admitted(&mut rates, 1, Mono::ZERO, 100_000), 20);
        assert_eq!(admitted(&mut rates, 2, Mono::ZERO, 20), 20);
        assert!(rates.admit(&place(&THERE), peer(1), Mono::ZERO, String::new));
        assert_eq!(admitted(&mut rates, 1, Mono::from_secs(3), 100), 3);
        assert_eq!(admitted(&mut rates, 1, Mono::from_secs(1000), 100), 20);
        let like = "like".to_owned();
        let left_out = rates.take_left_out();
        let first = LeftOut { like, peer: peer(1), lines: 99_980 + 97 + 80 };
        assert_eq!(left_out, [first]);
        assert_eq!(rates.take_left_out(), []);
    }

    #[test]
    fn any_number_of_origins_write_and_take_up_a_bounded_amount() {
        let mut rates = Rates::default();
        let mut lines = 0;
        for from in 0..200_000 {
            lines += admitted(&mut rates, from, Mono::ZERO, 2);
        }
        assert_eq!(lines, 2000);
        assert!(rates.named.len() <= LOG_PEERS_MAX);
        let left_out = rates.take_left_out();
        assert!(left_out.len() <= LOG_REPORT_LINES_MAX + 1);
        assert_eq!(left_out.iter().map(|one| one.lines).sum::<u64>(), 400_000 - 2000);
        // Later others take their places.
        assert_eq!(admitted(&mut rates, 300_000, Mono::from_secs(3600), 100), 20);
        assert!(rates.named.len() < 10);
    }

    #[test]
    fn lines_without_a_peer_have_a_rate_too() {
        let mut rates = Rates::default();
        let mut write = |now| rates.admit(&place(&HERE), None, now, || "like".to_owned());
        assert_eq!((0..5000).filter(|_| write(Mono::ZERO)).count(), 1000);
        assert_eq!((0..5000).filter(|_| write(Mono::from_secs(1))).count(), 10);
        let like = "like".to_owned();
        let lines = 4000 + 4990;
        assert_eq!(rates.take_left_out(), [LeftOut { like, peer: None, lines }]);
    }
}
