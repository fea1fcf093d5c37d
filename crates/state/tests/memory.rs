//! The memory of opens: 100,000 of them, each on a file of its own, must fit beside all else that a
//! server keeps of an open. A test alone in its process, whose resident memory it looks at.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use weir_core::{ObjectKey, Origin, VolumeId};
use weir_state::{Client, File, Limits, OpenId, OpenMode, Part, Protocol, Sharing, Tables, Use};

const OPENS: u64 = 100_000;
const PAGE: u64 = 4096;
/// The most bytes for an open on a file of its own, those that the allocator adds included.
const EACH_MAX: u64 = 225;

/// The bytes of this process in memory (`proc(5)`, `statm`).
fn resident() -> u64 {
    let sizes = std::fs::read_to_string("/proc/self/statm").unwrap();
    PAGE * sizes.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
}

/// Opens a file for each of the keys, by 100 clients in turn.
fn open_all(keys: impl Iterator<Item = u64>) -> (Tables<()>, Vec<OpenId>) {
    let limits = Limits { origin: Part::ALL, volume: Part::ALL, ..Limits::SERVER };
    let mut tables = Tables::new(limits);
    tables.open(VolumeId(1));
    let mode = OpenMode { access: Sharing::READ | Sharing::WRITE, share: Sharing::all() };
    let client = |name: u64| Client::new(Protocol::Smb, Origin::default(), &name.to_be_bytes());
    let mut open = |key: u64| {
        let object = ObjectKey::new(&key.to_be_bytes()).unwrap();
        let file = File { volume: VolumeId(1), object };
        tables.open_file(&file, &client(key % 100), mode, false).unwrap()
    };
    let opens = keys.map(&mut open).collect();
    (tables, opens)
}

#[test]
fn an_open_on_a_file_of_its_own_takes_few_bytes() {
    let before = resident();
    // Ascending keys fill the nodes of trees least.
    let (mut tables, opens) = open_all(0..OPENS);
    let list = 8 * u64::try_from(opens.capacity()).unwrap();
    let each = (resident() - before - list) / OPENS;
    println!("{each} bytes for each open");
    assert!((100..=EACH_MAX).contains(&each), "{each} bytes for each open");
    for open in opens {
        assert!(tables.close_file(open, &mut Vec::new()).unwrap().last);
    }
    assert_eq!(tables.used(), Use::default());
}
