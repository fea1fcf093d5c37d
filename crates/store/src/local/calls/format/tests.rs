use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn key() -> impl Strategy<Value = ObjectKey> {
    (vec(any::<u8>(), 0..=OBJECT_KEY_BYTES_MAX), any::<u32>())
        .prop_map(|(bytes, birth)| ObjectKey::new(&bytes).unwrap().born(birth))
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 1..=255)
}

fn call() -> impl Strategy<Value = CallId> {
    (any::<u128>(), any::<u32>(), 8..16u32, any::<u64>())
        .prop_map(|(client, xid, procedure, print)| CallId { client, xid, procedure, print })
}

fn time() -> impl Strategy<Value = Timestamp> {
    (any::<i64>(), 0..1_000_000_000u32).prop_map(|(secs, nanos)| Timestamp { secs, nanos })
}

/// A record that owns what it says.
#[derive(Clone, Debug)]
enum Owned {
    Intent(u64, CallId, Timestamp, [bool; 2], Vec<u8>),
    Acted(u64, Option<ObjectKey>),
    Done(u64, CallId, Timestamp, Option<ObjectKey>, bool),
    Plain(u8, u64),
}

impl Owned {
    fn record(&self) -> Record<'_> {
        match self {
            Self::Intent(number, call, at, [begun, synced], change) => Record::Intent {
                number: *number,
                call: *call,
                at: *at,
                begun: *begun,
                synced: *synced,
                change,
            },
            Self::Acted(number, made) => Record::Acted { number: *number, made: *made },
            Self::Done(number, call, at, made, settled) => {
                let (number, call, at, made, settled) = (*number, *call, *at, *made, *settled);
                Record::Done { number, call, at, made, settled }
            }
            Self::Plain(0, number) => Record::Begun { number: *number },
            Self::Plain(1, number) => Record::Settled { number: *number },
            Self::Plain(2, number) => Record::Void { number: *number },
            Self::Plain(..) => Record::Whole,
        }
    }
}

fn record() -> impl Strategy<Value = Owned> {
    prop_oneof![
        (any::<u64>(), call(), time(), any::<[bool; 2]>(), vec(any::<u8>(), 0..700)).prop_map(
            |(number, call, at, flags, change)| { Owned::Intent(number, call, at, flags, change) }
        ),
        (any::<u64>(), proptest::option::of(key())).prop_map(|(n, made)| Owned::Acted(n, made)),
        (any::<u64>(), call(), time(), proptest::option::of(key()), any::<bool>())
            .prop_map(|(n, call, at, made, settled)| Owned::Done(n, call, at, made, settled)),
        (0..4u8, any::<u64>()).prop_map(|(kind, number)| Owned::Plain(kind, number)),
    ]
}

fn half(file: &ObjectKey, generation: u64, records: &[Owned]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut frames = Frames::new(&mut bytes, generation, 0);
    frames.head(file);
    records.iter().for_each(|record| frames.push(&record.record()));
    bytes.resize(bytes.len() + 100, 0);
    bytes
}

fn all<'a>(mut half: Half<'a>) -> Vec<Record<'a>> {
    std::iter::from_fn(|| half.next()).collect()
}

fn change() -> impl Strategy<Value = Vec<u8>> {
    let parts = (key(), name(), key(), name(), key(), any::<bool>(), 0..4u8);
    parts.prop_map(|(dir, name, other, to, object, flag, kind)| {
        let at = Place { dir, name: &name };
        let to = Place { dir: other, name: &to };
        let change = match kind {
            0 => NameChange::Make { at, whole: flag },
            1 => NameChange::Remove { at, object, last: flag },
            2 => NameChange::Rename { from: at, to, object },
            _ => NameChange::Link { at, object },
        };
        let mut bytes = Vec::new();
        change.encode(&mut bytes);
        assert_eq!(NameChange::decode(&bytes), Some(change));
        bytes
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read_up_to_where_it_was_damaged(
        file in key(),
        generation: u64,
        records in vec(record(), 0..12),
        at: prop::sample::Index,
        bit in 0..8u32,
    ) {
        let mut bytes = half(&file, generation, &records);
        let expected: Vec<_> = records.iter().map(Owned::record).collect();
        let found = all(Half::read(&bytes, &file).unwrap());
        prop_assert_eq!(&found, &expected);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let damaged = Half::read(&bytes, &file).map(all).unwrap_or_default();
        prop_assert!(expected.starts_with(&damaged), "{:?}", damaged);
        bytes.truncate(at);
        let torn = Half::read(&bytes, &file).map(all).unwrap_or_default();
        prop_assert!(expected.starts_with(&torn), "{:?}", torn);
    }

    #[test]
    fn what_an_earlier_generation_left_is_not_read(
        file in key(),
        old in vec(record(), 1..6),
        new in vec(record(), 0..3),
    ) {
        let mut bytes = half(&file, 7, &old);
        let over = half(&file, 8, &new);
        let end = over.len() - 100;
        if end <= bytes.len() {
            bytes[..end].copy_from_slice(&over[..end]);
            let expected: Vec<_> = new.iter().map(Owned::record).collect();
            prop_assert_eq!(all(Half::read(&bytes, &file).unwrap()), expected);
        }
    }

    #[test]
    fn the_longest_frame_has_room_for_any_change(change in change()) {
        let (call, at) = (CallId { client: 1, xid: 2, procedure: 8, print: 3 }, Timestamp::default());
        let record = Record::Intent { number: 1, call, at, begun: true, synced: true, change: &change };
        let mut bytes = Vec::new();
        Frames::new(&mut bytes, 1, 0).push(&record);
        prop_assert!(bytes.len() <= FRAME_MAX, "{}", bytes.len());
    }

    #[test]
    fn anything_is_refused_or_understood(bytes in vec(any::<u8>(), 0..200), file in key()) {
        let _any = (NameChange::decode(&bytes), record_of(&bytes));
        prop_assert!(Half::read(&bytes, &file).is_none());
    }
}

fn record_of(bytes: &[u8]) -> Option<Record<'_>> {
    super::record(bytes)
}

#[test]
fn a_copy_of_the_file_says_nothing() {
    let (file, copy) = (ObjectKey::new(&[1; 8]).unwrap(), ObjectKey::new(&[2; 8]).unwrap());
    let bytes = half(&file, 1, &[Owned::Plain(0, 1)]);
    assert!(Half::read(&bytes, &file).is_some());
    assert!(Half::read(&bytes, &copy).is_none());
    assert!(Half::read(&bytes, &file.born(5)).is_none(), "nor does another file at its place");
}
