//! From an image to its bytes.
//!
//! The head has a mark, the version, the length of the rest, and a checksum of all other bytes. The
//! mark and the version stay where they are in all versions.

use crate::bytes::{put_address, put_count, put_key, put_move, put_text};
use crate::image::{Image, Move, TooLarge};
use crate::limits::{IMAGE_BYTES_MAX, OWNER_BYTES_MAX, REPLIES_BYTES_MAX};
use ring::digest::{Context, SHA256};
use std::collections::{BTreeMap, BTreeSet};
use weir_drc::Answered;
use weir_nfs::nlm::Host;
use weir_state::{Client, GraceLeft, Mode, MovingLock, MovingShare, MovingWait, Owner};

pub(crate) const MARK: &[u8; 8] = b"WEIRMOVE";
pub(crate) const VERSION: u16 = 1;
pub(crate) const CHECKSUM_BYTES: usize = 32;

/// Bytes of a reply in an image beside the reply itself.
pub(crate) const REPLY_HEAD_BYTES: usize = 16 + 4 + 4 + 4 + 8 + 4 + 2;

pub(crate) const EXCLUSIVE: u8 = 1;
pub(crate) const SHARED: u8 = 0;

impl Image {
    /// The bytes of the image of this move. Replies beyond [`REPLIES_BYTES_MAX`] are left out.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn encode(&self, of: Move) -> Result<Vec<u8>, TooLarge> {
        let hosts = self.all_hosts();
        let mut body = Vec::new();
        put_move(&mut body, of);
        self.put_hosts(&mut body, &hosts);
        self.put_locks(&mut body, &hosts);
        let replies = newest(&self.replies);
        put_count(&mut body, replies.len());
        replies.iter().for_each(|one| put_reply(&mut body, one));
        let image = with_head(&body);
        if image.len() > IMAGE_BYTES_MAX { Err(TooLarge) } else { Ok(image) }
    }

    /// The clients by their places in the list of hosts.
    fn all_hosts(&self) -> BTreeMap<Client, u32> {
        let told = self.hosts.iter().map(|one| one.host.client());
        let owners = self.locks.owners().map(Owner::client);
        let awaited = self.locks.grace.iter().flat_map(|grace| &grace.clients.known);
        let mut hosts = BTreeMap::new();
        for client in told.chain(owners.chain(awaited).cloned()) {
            let place = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
            hosts.entry(client).or_insert(place);
        }
        hosts
    }

    fn put_hosts(&self, out: &mut Vec<u8>, hosts: &BTreeMap<Client, u32>) {
        let (none, grace) = (BTreeSet::new(), self.locks.grace.as_ref());
        let (known, awaited) =
            grace.map_or((&none, &none), |grace| (&grace.clients.known, &grace.clients.awaited));
        let told: BTreeMap<Client, _> =
            self.hosts.iter().map(|one| (one.host.client(), one)).collect();
        let mut in_order: Vec<(&u32, &Client)> =
            hosts.iter().map(|(client, place)| (place, client)).collect();
        in_order.sort_unstable();
        put_count(out, in_order.len());
        for (_, client) in in_order {
            let host = Host::of(client).unwrap_or_else(nobody);
            put_address(out, host.address);
            put_text(out, &host.name);
            let one = told.get(client);
            out.extend(one.map_or(0, |one| one.state).to_be_bytes());
            out.push(one.is_some_and(|one| one.owed).into());
            out.push(known.contains(client).into());
            out.push(awaited.contains(client).into());
        }
        out.push(grace.is_some().into());
        let left = grace.map_or(0, milliseconds);
        out.extend(left.to_be_bytes());
    }

    fn put_locks(&self, out: &mut Vec<u8>, hosts: &BTreeMap<Client, u32>) {
        put_count(out, self.locks.locks.len());
        self.locks.locks.iter().for_each(|lock| put_lock(out, lock, hosts));
        put_count(out, self.locks.shares.len());
        for MovingShare { object, owner, share } in &self.locks.shares {
            put_key(out, object);
            put_owner(out, owner, hosts);
            out.extend([share.access.bits(), share.deny.bits()]);
        }
        put_count(out, self.locks.waits.len());
        for MovingWait { lock, waiter } in &self.locks.waits {
            put_lock(out, lock, hosts);
            put_text(out, &waiter.handle);
            out.push(waiter.by_message.into());
        }
    }
}

/// The host of a client of another protocol, which has no place in an image.
fn nobody() -> Host {
    Host::new(std::net::Ipv6Addr::UNSPECIFIED.into(), &[])
}

fn milliseconds(grace: &GraceLeft) -> u64 {
    u64::try_from(grace.time.as_millis()).unwrap_or(u64::MAX)
}

fn put_owner(out: &mut Vec<u8>, owner: &Owner, hosts: &BTreeMap<Client, u32>) {
    out.extend(hosts.get(owner.client()).copied().unwrap_or(u32::MAX).to_be_bytes());
    let name = owner.name();
    put_text(out, name.get(..OWNER_BYTES_MAX).unwrap_or(name));
}

/// A length of 0 reaches to the end of the file.
fn put_lock(out: &mut Vec<u8>, lock: &MovingLock, hosts: &BTreeMap<Client, u32>) {
    let MovingLock { object, owner, range, mode } = lock;
    put_key(out, object);
    put_owner(out, owner, hosts);
    out.extend(range.first().to_be_bytes());
    out.extend(range.length().unwrap_or(0).to_be_bytes());
    out.push(match mode {
        Mode::Shared => SHARED,
        Mode::Exclusive => EXCLUSIVE,
    });
}

fn put_reply(out: &mut Vec<u8>, one: &Answered) {
    let Answered { client, xid, program, procedure, print, age, reply } = one;
    out.extend(client.to_be_bytes());
    for number in [xid, program, procedure] {
        out.extend(number.to_be_bytes());
    }
    out.extend(print.to_be_bytes());
    out.extend(u32::try_from(age.as_millis()).unwrap_or(u32::MAX).to_be_bytes());
    put_text(out, reply);
}

/// The newest replies of each client, by turns, as far as there is room; those of one client the
/// oldest first.
fn newest(replies: &[Answered]) -> Vec<&Answered> {
    let mut clients: BTreeMap<u128, Vec<&Answered>> = BTreeMap::new();
    for one in replies {
        clients.entry(one.client).or_default().push(one);
    }
    let (mut kept, mut bytes) = (Vec::new(), 0);
    while bytes < REPLIES_BYTES_MAX && !clients.is_empty() {
        clients.retain(|_, rest| {
            let one = rest.pop();
            bytes += one.map_or(0, |one| REPLY_HEAD_BYTES + one.reply.len());
            kept.extend(one.filter(|_| bytes <= REPLIES_BYTES_MAX));
            !rest.is_empty()
        });
    }
    kept.reverse();
    kept
}

/// An image with this body.
pub(crate) fn with_head(body: &[u8]) -> Vec<u8> {
    let mut image = MARK.to_vec();
    image.extend(VERSION.to_be_bytes());
    put_count(&mut image, body.len());
    let sum = checksum(&image, body);
    image.extend(sum);
    image.extend(body);
    image
}

/// The checksum of an image: of the head before it, and of the body.
pub(crate) fn checksum(head: &[u8], body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut context = Context::new(&SHA256);
    context.update(head);
    context.update(body);
    let mut sum = [0; CHECKSUM_BYTES];
    for (to, from) in sum.iter_mut().zip(context.finish().as_ref()) {
        *to = *from;
    }
    sum
}
