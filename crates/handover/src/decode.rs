//! From bytes to an image, if they are one and of the right move.

use crate::bytes::Rest;
use crate::encode::{CHECKSUM_BYTES, EXCLUSIVE, MARK, REPLY_HEAD_BYTES, SHARED, VERSION, checksum};
use crate::image::{Blocked, Image, Move, MovedHost, Unusable};
use crate::limits::{IMAGE_BYTES_MAX, OWNER_BYTES_MAX};
use std::collections::BTreeSet;
use std::time::Duration;
use weir_core::Access;
use weir_drc::{Answered, CACHED_REPLY_BYTES_MAX};
use weir_nfs::limits::{NLM_NAME_BYTES_MAX, NLM_OBJECT_BYTES_MAX};
use weir_nfs::nlm::Host;
use weir_state::{
    Claimants, Client, GraceLeft, Mode, MovingLock, MovingShare, MovingWait, Owner, Range, Share,
    VolumeLocks,
};

/// Least bytes of an entry of each list.
const HOST_BYTES: usize = 16 + 2 + 4 + 3;
const SHARE_BYTES: usize = 2 + 4 + 4 + 2 + 2;
const LOCK_BYTES: usize = 2 + 4 + 4 + 2 + 8 + 8 + 1;
const WAIT_BYTES: usize = LOCK_BYTES + 2 + 1;

impl Image {
    /// The image in `bytes`, which has to be that of this move.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn decode(bytes: &[u8], of: Move) -> Result<Self, Unusable> {
        let mut rest = Rest(body(bytes)?);
        let found = rest.of_move()?;
        if found != of {
            return Err(Unusable::OtherMove(found));
        }
        let (hosts, clients, grace) = hosts(&mut rest)?;
        let locks = locks(&mut rest, &clients, grace)?;
        let count = rest.count(REPLY_HEAD_BYTES)?;
        let replies = (0..count).map(|_| reply(&mut rest)).collect::<Result<_, _>>()?;
        if !rest.0.is_empty() {
            return Err(Unusable::Damaged("there is more behind its end"));
        }
        Ok(Self { hosts, locks, replies })
    }
}

/// The body of an image whose head and checksum are right.
fn body(bytes: &[u8]) -> Result<&[u8], Unusable> {
    if bytes.len() > IMAGE_BYTES_MAX {
        return Err(Unusable::TooLong);
    }
    let mut rest = Rest(bytes);
    if rest.take()? != *MARK {
        return Err(Unusable::Damaged("it has no mark"));
    }
    match rest.u16()? {
        VERSION => {}
        0 => return Err(Unusable::Damaged("it has no version")),
        newer => return Err(Unusable::Newer(newer)),
    }
    let length = usize::try_from(rest.u32()?).unwrap_or(usize::MAX);
    let head = bytes.len() - rest.0.len();
    let sum = rest.take::<CHECKSUM_BYTES>()?;
    if rest.0.len() != length {
        return Err(Unusable::Damaged("it has another length than it says"));
    }
    if checksum(bytes.get(..head).unwrap_or(&[]), rest.0) != sum {
        return Err(Unusable::Damaged("its checksum is wrong"));
    }
    Ok(rest.0)
}

/// The hosts, the clients in the same order, and the rest of the grace period.
type Hosts = (Vec<MovedHost>, Vec<Client>, Option<GraceLeft>);

fn hosts(rest: &mut Rest<'_>) -> Result<Hosts, Unusable> {
    let count = rest.count(HOST_BYTES)?;
    let (mut hosts, mut clients) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let (mut claimants, mut seen) = (Claimants::default(), BTreeSet::new());
    for _ in 0..count {
        let address = rest.address()?;
        let host = Host::new(address, rest.text(NLM_NAME_BYTES_MAX)?);
        let (state, owed, client) = (rest.u32()?, rest.flag()?, host.client());
        if !seen.insert(client.clone()) {
            return Err(Unusable::Damaged("a host stands there twice"));
        }
        if rest.flag()? {
            claimants.known.insert(client.clone());
        }
        if rest.flag()? {
            claimants.awaited.insert(client.clone());
        }
        clients.push(client);
        hosts.push(MovedHost { host, state, owed });
    }
    let is_on = rest.flag()?;
    let time = Duration::from_millis(rest.u64()?);
    Ok((hosts, clients, is_on.then_some(GraceLeft { time, clients: claimants })))
}

fn locks(
    rest: &mut Rest<'_>,
    clients: &[Client],
    grace: Option<GraceLeft>,
) -> Result<VolumeLocks<Blocked>, Unusable> {
    let count = rest.count(LOCK_BYTES)?;
    let locks = (0..count).map(|_| lock(rest, clients)).collect::<Result<_, _>>()?;
    let count = rest.count(SHARE_BYTES)?;
    let share = |_| {
        let (object, owner) = (rest.key()?, owner(rest, clients)?);
        let share = Share { access: access(rest)?, deny: access(rest)? };
        Ok(MovingShare { object, owner, share })
    };
    let shares = (0..count).map(share).collect::<Result<_, Unusable>>()?;
    let count = rest.count(WAIT_BYTES)?;
    let wait = |_| {
        let lock = lock(rest, clients)?;
        let handle = rest.text(NLM_OBJECT_BYTES_MAX)?.into();
        Ok(MovingWait { lock, waiter: Blocked { handle, by_message: rest.flag()? } })
    };
    let waits = (0..count).map(wait).collect::<Result<_, Unusable>>()?;
    Ok(VolumeLocks { locks, shares, waits, grace })
}

fn owner(rest: &mut Rest<'_>, clients: &[Client]) -> Result<Owner, Unusable> {
    let place = usize::try_from(rest.u32()?).unwrap_or(usize::MAX);
    let client = clients.get(place).ok_or(Unusable::Damaged("a lock has no client"))?;
    Ok(Owner::new(client.clone(), rest.text(OWNER_BYTES_MAX)?))
}

fn lock(rest: &mut Rest<'_>, clients: &[Client]) -> Result<MovingLock, Unusable> {
    let (object, owner) = (rest.key()?, owner(rest, clients)?);
    let (first, length) = (rest.u64()?, rest.u64()?);
    let range = match length {
        0 => Some(Range::to_eof(first)),
        length => Range::new(first, length),
    };
    let range = range.ok_or(Unusable::Damaged("a lock has no range"))?;
    let mode = match rest.take()? {
        [SHARED] => Mode::Shared,
        [EXCLUSIVE] => Mode::Exclusive,
        _ => return Err(Unusable::Damaged("a lock has no mode")),
    };
    Ok(MovingLock { object, owner, range, mode })
}

fn access(rest: &mut Rest<'_>) -> Result<Access, Unusable> {
    let [bits] = rest.take()?;
    Access::from_bits(bits).ok_or(Unusable::Damaged("a share has no access"))
}

fn reply(rest: &mut Rest<'_>) -> Result<Answered, Unusable> {
    Ok(Answered {
        client: u128::from_be_bytes(rest.take()?),
        xid: rest.u32()?,
        program: rest.u32()?,
        procedure: rest.u32()?,
        print: rest.u64()?,
        age: Duration::from_millis(rest.u32()?.into()),
        reply: rest.text(CACHED_REPLY_BYTES_MAX)?.to_vec(),
    })
}
