//! An idle volume releases its objects and memory, and nothing is lost by it.

use crate::common::{Bed, ROOT, Random, block_on, everywhere};
use std::sync::atomic::{AtomicBool, Ordering};
use weir_core::store::MakeKind;
use weir_core::{ObjectKey, Store};
use weir_store::StoreControl;

/// Releases until no object has uncommitted data any more: each call syncs some.
fn release(bed: &Bed) {
    while bed.store.objects_open() > 0 {
        bed.store.release_idle();
        std::thread::yield_now();
    }
}

#[test]
fn a_released_object_is_found_again_and_one_in_use_stays() {
    everywhere(|bed| {
        let dir = bed.make(&bed.root(), b"dir", &MakeKind::Directory).unwrap();
        let written: Vec<(ObjectKey, u32)> = (0..40u32)
            .map(|number| {
                let name = format!("f{number}");
                let file = bed.create(&dir, name.as_bytes(), 0o644, &ROOT).unwrap();
                bed.write(&file, 0, &number.to_be_bytes()).unwrap();
                (file.key(), number)
            })
            .collect();
        let held = bed.lookup(&dir, b"f7").unwrap();
        let syncs = bed.store.syncs();
        while bed.store.objects_open() > 2 {
            bed.store.release_idle();
            std::thread::yield_now();
        }
        assert!(bed.store.syncs() >= syncs + 39, "uncommitted data is synced before");
        assert_eq!(bed.attr(&held).size, 4);
        assert_eq!(block_on(bed.store.resolve(&held.key())).unwrap().key(), held.key());
        drop((held, dir));
        release(bed);
        assert_eq!(bed.store.root().key(), bed.root().key());
        for (key, number) in &written {
            let file = block_on(bed.store.resolve(key)).unwrap();
            assert_eq!(bed.read(&file, 0, 4).unwrap().0, number.to_be_bytes());
        }
        let dir = bed.lookup(&bed.root(), b"dir").unwrap();
        assert_eq!(bed.lookup(&dir, b"f9").unwrap().key(), written[9].0);
    });
}

#[test]
fn a_volume_may_be_used_while_it_is_released() {
    everywhere(|bed| {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    bed.store.release_idle();
                }
            });
            let mut random = Random(1);
            let mut sizes = [None; 8];
            for step in 0..3000u32 {
                let number = random.below(sizes.len());
                let name = [b'a' + u8::try_from(number).unwrap()];
                match sizes[number] {
                    None => {
                        bed.create(&bed.root(), &name, 0o644, &ROOT).unwrap();
                        sizes[number] = Some(0);
                    }
                    Some(size) if step % 3 == 0 => {
                        assert_eq!(bed.attr(&bed.lookup(&bed.root(), &name).unwrap()).size, size);
                        bed.remove(&bed.root(), &name).unwrap();
                        sizes[number] = None;
                    }
                    Some(size) => {
                        let file = bed.lookup(&bed.root(), &name).unwrap();
                        assert_eq!(bed.attr(&file).size, size, "in step {step}");
                        bed.write(&file, size, b"more").unwrap();
                        sizes[number] = Some(size + 4);
                    }
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        release(bed);
        let left = bed.store.usage().bytes;
        let again = bed.store.rescan();
        assert!(again);
        while bed.store.usage().counting.is_some() {
            std::thread::yield_now();
        }
        assert_eq!(bed.store.usage().bytes, left, "usage is as it was counted");
    });
}
