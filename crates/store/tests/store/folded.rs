//! Lookups without regard to case beside faults of the kernel. Not here: the index itself
//! (`src/local/folded/tests.rs`) and comparisons with the model (`model.rs`).

use crate::common::{Faulty, ROOT, block_on};
use rustix::io::Errno;
use weir_core::attr::SetTime;
use weir_core::store::CreateHow;
use weir_core::{FsError, Name, SetAttr, Store, Timestamp};
use weir_store::testing::{Fault, Kind, Rule, When};

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

/// Makes a file while the call number `nth` of `kind` fails, and gives whether there was such a
/// call. Afterwards the index agrees with the directory.
fn create_with_fault(faulty: &Faulty, kind: Kind, nth: u64, set: SetAttr) -> bool {
    let text = format!("File {:?} {kind:?} {nth}", set.size);
    let how = CreateHow::Guarded(set);
    let path = faulty.directory.join("root");
    let rule = Rule::new(&[kind], path, Fault::Fail(Errno::IO)).when(When::Nth(nth));
    let rule = faulty.kernel.add(rule);
    let own = text.clone();
    let made = faulty
        .run(move |bed| block_on(bed.store.create(&bed.root(), name(&own), &how, &ROOT)).map(drop));
    let struck = faulty.kernel.hits(rule) > 0;
    faulty.kernel.lift(rule);
    assert_eq!(made, if struck { Err(FsError::Io) } else { Ok(()) }, "{text}");
    let there = std::fs::exists(faulty.directory.join("root").join(&text)).unwrap();
    let own = text.clone();
    let found = faulty.run(move |bed| {
        let folded =
            |text: &str| block_on(bed.store.lookup_folded(&bed.root(), name(text))).map(drop);
        [folded(&own), folded(&own.to_uppercase())]
    });
    let expected = if there { Ok(()) } else { Err(FsError::NotFound) };
    assert_eq!(found, [expected; 2], "{text}");
    struck
}

#[test]
fn the_index_agrees_with_the_directory_whichever_call_of_a_create_fails() {
    let faulty = Faulty::new();
    let time = SetTime::To(Timestamp { secs: 1_000_000, nanos: 0 });
    let plain = SetAttr { mode: Some(0o600), ..SetAttr::default() };
    let timed = SetAttr { mtime: time, size: Some(10_000), ..plain };
    faulty.run(|bed| {
        // Builds the index.
        bed.create(&bed.root(), b"first", 0o600, &ROOT).unwrap();
        let first = block_on(bed.store.lookup_folded(&bed.root(), name("FIRST")));
        assert_eq!(&*first.unwrap().name, b"first");
    });
    for set in [plain, timed] {
        for kind in [Kind::Make, Kind::Resize, Kind::Change, Kind::Link, Kind::Status] {
            let mut nth = 1;
            while create_with_fault(&faulty, kind, nth, set) {
                nth += 1;
            }
        }
    }
}
