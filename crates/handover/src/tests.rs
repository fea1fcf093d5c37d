//! Images are read as they were written, and nothing else is read.

use crate::encode::{CHECKSUM_BYTES, MARK, VERSION, checksum, with_head};
use crate::{
    Blocked, IMAGE_BYTES_MAX, Image, Move, MovedHost, REPLIES_BYTES_MAX, TooLarge, Unusable,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;
use weir_cluster::{GatewayId, Life};
use weir_core::{Access, ObjectKey, VolumeId};
use weir_drc::Answered;
use weir_nfs::nlm::Host;
use weir_state::{
    Claimants, Client, GraceLeft, Mode, MovingLock, MovingShare, MovingWait, Owner, Range, Share,
    VolumeLocks,
};

const HEAD: usize = MARK.len() + 2 + 4 + CHECKSUM_BYTES;

fn life(gateway: u16, number: u32) -> Life {
    Life { gateway: GatewayId(gateway), number }
}

fn of() -> Move {
    Move { volume: VolumeId(7), from: life(1, 4), to: life(2, 9) }
}

fn host(number: u8) -> Host {
    let address: [u8; 4] = [10, 0, 0, number];
    match number {
        0 => Host::new("fd00::1".parse().unwrap(), b"six"),
        _ => Host::new(address.into(), format!("host-{number}").as_bytes()),
    }
}

fn client(number: u8) -> Client {
    host(number).client()
}

prop_compose! {
    fn lock()(
        object in vec(any::<u8>(), 0..40),
        birth in any::<u32>(),
        number in 0..4u8,
        name in vec(any::<u8>(), 0..40),
        first in any::<u64>(),
        length in prop_oneof![Just(1), any::<u64>()],
        exclusive in any::<bool>(),
    ) -> MovingLock {
        let object = ObjectKey::new(&object).unwrap().born(birth);
        let range = Range::new(first, length).unwrap_or(Range::to_eof(first));
        let mode = if exclusive { Mode::Exclusive } else { Mode::Shared };
        MovingLock { object, owner: Owner::new(client(number), &name), range, mode }
    }
}

prop_compose! {
    fn share()(lock in lock(), access in 0..8u8, deny in 0..8u8) -> MovingShare {
        let MovingLock { object, owner, .. } = lock;
        let [access, deny] = [access, deny].map(Access::from_bits_truncate);
        MovingShare { object, owner, share: Share { access, deny } }
    }
}

prop_compose! {
    fn wait()(
        lock in lock(),
        handle in vec(any::<u8>(), 0..64),
        by_message in any::<bool>(),
    ) -> MovingWait<Blocked> {
        MovingWait { lock, waiter: Blocked { handle: handle.into(), by_message } }
    }
}

prop_compose! {
    fn reply()(
        client in 0..3u128,
        xid in any::<u32>(),
        program in any::<u32>(),
        procedure in any::<u32>(),
        print in any::<u64>(),
        age in any::<u32>(),
        reply in vec(any::<u8>(), 0..200),
    ) -> Answered {
        let age = Duration::from_millis(age.into());
        Answered { client, xid, program, procedure, print, age, reply }
    }
}

prop_compose! {
    fn image()(
        locks in vec(lock(), 0..12),
        shares in vec(share(), 0..4),
        waits in vec(wait(), 0..6),
        replies in vec(reply(), 0..12),
        states in vec(any::<u32>(), 4),
        owed in vec(any::<bool>(), 4),
        grace in option::of((0..100_000u64, vec(0..4u8, 0..4), vec(0..4u8, 0..4))),
    ) -> Image {
        let set = |numbers: Vec<u8>| -> BTreeSet<Client> { numbers.into_iter().map(client).collect() };
        let grace = grace.map(|(milliseconds, known, awaited)| GraceLeft {
            time: Duration::from_millis(milliseconds),
            clients: Claimants { known: set(known), awaited: set(awaited) },
        });
        let numbers = (0..4u8).zip(states.into_iter().zip(owed));
        let hosts = numbers
            .map(|(number, (state, owed))| MovedHost { host: host(number), state, owed })
            .collect();
        Image { hosts, locks: VolumeLocks { locks, shares, waits, grace }, replies }
    }
}

/// The replies by client, in their order.
fn sorted(replies: &[Answered]) -> Vec<Answered> {
    let mut sorted = replies.to_vec();
    sorted.sort_by_key(|one| one.client);
    sorted
}

proptest! {
    #[test]
    fn an_image_is_read_as_it_was_written(image in image()) {
        let read = Image::decode(&image.encode(of()).unwrap(), of()).unwrap();
        prop_assert_eq!((&read.hosts, &read.locks), (&image.hosts, &image.locks));
        let births = |locks: &[MovingLock]| -> Vec<u32> {
            locks.iter().map(|lock| lock.object.birth()).collect()
        };
        prop_assert_eq!(births(&read.locks.locks), births(&image.locks.locks));
        prop_assert_eq!(sorted(&read.replies), sorted(&image.replies));
    }

    #[test]
    fn an_image_that_is_cut_short_is_refused(image in image(), part in 0.0..1.0f64) {
        let bytes = image.encode(of()).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of it")]
        let kept = (bytes.len() as f64 * part) as usize;
        let read = Image::decode(&bytes[..kept], of());
        prop_assert!(matches!(read, Err(Unusable::Damaged(_))), "{read:?}");
    }

    #[test]
    fn an_image_with_another_bit_is_refused(image in image(), place in any::<usize>(), bit in 0..8u8) {
        let mut bytes = image.encode(of()).unwrap();
        let place = place % bytes.len();
        bytes[place] ^= 1 << bit;
        let read = Image::decode(&bytes, of());
        prop_assert!(matches!(read, Err(Unusable::Damaged(_) | Unusable::Newer(_))), "{read:?}");
    }

    /// The checksum is right, as somebody might make it.
    #[test]
    fn other_bytes_under_a_right_checksum_break_nothing(
        image in image(),
        changes in vec((any::<usize>(), any::<u8>()), 1..4),
        cut in 0..40usize,
    ) {
        let bytes = image.encode(of()).unwrap();
        let mut body = bytes[HEAD..].to_vec();
        body.truncate(body.len().saturating_sub(cut));
        for (place, byte) in changes {
            let place = place % body.len().max(1);
            if let Some(changed) = body.get_mut(place) {
                *changed = byte;
            }
        }
        if let Ok(read) = Image::decode(&with_head(&body), of()) {
            prop_assert!(read.encode(of()).is_ok());
        }
    }
}

/// The body of an image without anything, up to the list with this number, which begins with its
/// count.
fn body_with_count(list: usize, count: u32) -> Vec<u8> {
    let empty = Image::default().encode(of()).unwrap();
    let body = &empty[HEAD..];
    // The move, the hosts, whether there is a grace period and its rest, and then the lists.
    let places = [16, 16 + 4 + 9, 16 + 4 + 9 + 4, 16 + 4 + 9 + 8, 16 + 4 + 9 + 12];
    let mut body = body.to_vec();
    let place = places[list];
    body[place..place + 4].copy_from_slice(&count.to_be_bytes());
    with_head(&body)
}

#[test]
fn counts_beyond_the_bytes_are_refused_before_memory_is_taken() {
    for list in 0..5 {
        assert_eq!(Image::decode(&body_with_count(list, 0), of()), Ok(Image::default()));
        for count in [100, 1 << 20, u32::MAX] {
            let read = Image::decode(&body_with_count(list, count), of());
            let fewer = Unusable::Damaged("there are fewer entries than it says");
            assert_eq!(read, Err(fewer), "list {list}, {count}");
        }
    }
}

#[test]
fn an_image_of_another_move_is_refused() {
    let bytes = Image::default().encode(of()).unwrap();
    let others = [
        Move { volume: VolumeId(8), ..of() },
        Move { from: life(1, 5), ..of() },
        Move { from: life(3, 4), ..of() },
        Move { to: life(2, 8), ..of() },
    ];
    for other in others {
        assert_eq!(Image::decode(&bytes, other), Err(Unusable::OtherMove(of())));
    }
}

#[test]
fn what_is_newer_foreign_or_longer_is_refused_by_its_name() {
    let bytes = Image::default().encode(of()).unwrap();
    let mut newer = bytes.clone();
    newer[MARK.len() + 1] = 2;
    assert_eq!(Image::decode(&newer, of()), Err(Unusable::Newer(VERSION + 1)));
    let mut foreign = bytes.clone();
    foreign[0] = b'w';
    assert_eq!(Image::decode(&foreign, of()), Err(Unusable::Damaged("it has no mark")));
    assert_eq!(Image::decode(&vec![0; IMAGE_BYTES_MAX + 1], of()), Err(Unusable::TooLong));
    let mut longer = bytes;
    longer.push(0);
    let length = Unusable::Damaged("it has another length than it says");
    assert_eq!(Image::decode(&longer, of()), Err(length));
    let mut behind = longer[HEAD..].to_vec();
    behind.push(0);
    let more = Unusable::Damaged("there is more behind its end");
    assert_eq!(Image::decode(&with_head(&behind), of()), Err(more));
}

#[test]
fn the_checksum_covers_the_head() {
    let bytes = Image::default().encode(of()).unwrap();
    let (head, body) = (&bytes[..HEAD - CHECKSUM_BYTES], &bytes[HEAD..]);
    assert_eq!(bytes[HEAD - CHECKSUM_BYTES..HEAD], checksum(head, body));
    assert_ne!(checksum(&head[1..], body), checksum(head, body));
}

fn answered(client: u128, xid: u32, bytes: usize) -> Answered {
    let (age, reply) = (Duration::ZERO, vec![1; bytes]);
    Answered { client, xid, program: 100_003, procedure: 12, print: 1, age, reply }
}

#[test]
fn where_replies_have_no_room_each_client_keeps_its_newest() {
    let greedy = (0..20_000).map(|xid| answered(1, xid, 400));
    let replies: Vec<_> = greedy.chain((0..3).map(|xid| answered(2, xid, 400))).collect();
    let image = Image { replies, ..Image::default() };
    let bytes = image.encode(of()).unwrap();
    let read = Image::decode(&bytes, of()).unwrap().replies;
    let xids = |client| -> Vec<u32> {
        read.iter().filter(|one| one.client == client).map(|one| one.xid).collect()
    };
    assert_eq!(xids(2), [0, 1, 2]);
    let greedy = xids(1);
    assert!(greedy.is_sorted() && greedy.last() == Some(&19_999), "{:?}", greedy.last());
    assert!(bytes.len() <= REPLIES_BYTES_MAX + 1000);
    assert!(greedy.len() * 450 > REPLIES_BYTES_MAX, "{}", greedy.len());
}

#[test]
fn too_many_locks_are_no_image() {
    let owner = Owner::new(client(1), &[7; 1000]);
    let lock = |at: u64| MovingLock {
        object: ObjectKey::new(b"file").unwrap(),
        owner: owner.clone(),
        range: Range::new(at, 1).unwrap(),
        mode: Mode::Shared,
    };
    let locks = (0..9000).map(lock).collect();
    let image =
        Image { locks: VolumeLocks { locks, ..VolumeLocks::default() }, ..Image::default() };
    assert_eq!(image.encode(of()), Err(TooLarge));
}
