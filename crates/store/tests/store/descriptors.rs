//! The budget of descriptors that all volumes share: it holds whatever clients do, an idle volume
//! gives way to a busy one, and only objects in use keep a client waiting.

use crate::common::{Bed, Object, ROOT, block_on, options};
use std::path::Path;
use weir_core::{FsError, ObjectKey, Store};
use weir_store::{Descriptors, Options, StoreControl};

const FILES: usize = 40;

/// Volumes with `FILES` files each, which share a budget of `max` descriptors.
fn volumes(place: &Path, count: usize, max: usize) -> (Vec<(Bed, Vec<ObjectKey>)>, Options) {
    let options = Options { descriptors: Descriptors::new(max), ..options() };
    let made = (0..count).map(|number| {
        let bed = Bed::open(place.join(number.to_string()), options.clone(), "temp");
        let keys = (0..FILES).map(|file| {
            let name = format!("f{file}");
            let file = bed.create(&bed.root(), name.as_bytes(), 0o644, &ROOT);
            bed.store.key(&file.unwrap())
        });
        let keys = keys.collect();
        (bed, keys)
    });
    (made.collect(), options)
}

fn resolve(bed: &Bed, key: &ObjectKey) -> Result<Object, FsError> {
    block_on(bed.store.resolve(key))
}

#[test]
fn many_volumes_stay_within_one_budget_and_each_is_served() {
    let place = tempfile::tempdir().unwrap();
    let (volumes, options) = volumes(place.path(), 50, 120);
    for round in 0..3 {
        for (bed, keys) in &volumes {
            for key in keys {
                let file = resolve(bed, key).unwrap();
                bed.write(&file, 0, &[round; 10]).unwrap();
                assert!(options.descriptors.used() <= 120);
            }
        }
    }
    drop(volumes);
    // Syncs in the background end by themselves; the test hangs if a share is never returned.
    while options.descriptors.used() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn the_volume_that_holds_the_most_closes_idle_objects_for_another() {
    let place = tempfile::tempdir().unwrap();
    let (volumes, _) = volumes(place.path(), 3, 100);
    let [(greedy, greedy_keys), (modest, modest_keys), (late, late_keys)] = &volumes[..] else {
        panic!("three volumes")
    };
    for (bed, _) in &volumes {
        bed.store.release_idle();
    }
    modest_keys[..4].iter().for_each(|key| drop(resolve(modest, key).unwrap()));
    greedy_keys.iter().for_each(|key| drop(resolve(greedy, key).unwrap()));
    let before = (greedy.store.objects_open(), modest.store.objects_open());
    assert_eq!(before, (FILES, 4));
    // Of 100, three are roots: 53 are left, so the greedy volume gives some.
    late_keys.iter().for_each(|key| drop(resolve(late, key).unwrap()));
    assert_eq!(late.store.objects_open(), FILES);
    let new = Bed::open(place.path().join("new"), late.options.clone(), "temp");
    for number in 0..30 {
        let name = format!("n{number}");
        drop(new.create(&new.root(), name.as_bytes(), 0o644, &ROOT).unwrap());
    }
    assert_eq!(new.store.objects_open(), 30);
    assert_eq!(modest.store.objects_open(), 4, "the least is left alone");
    assert!(greedy.store.objects_open() + late.store.objects_open() < 2 * FILES);
}

#[test]
fn a_client_waits_only_for_objects_in_use() {
    let place = tempfile::tempdir().unwrap();
    let (volumes, options) = volumes(place.path(), 2, 30);
    let [(one, one_keys), (other, other_keys)] = &volumes[..] else { panic!("two volumes") };
    let held: Vec<_> = one_keys.iter().map_while(|key| resolve(one, key).ok()).collect();
    assert_eq!(options.descriptors.used(), 30, "two roots and what is in use");
    assert_eq!(held.len(), 28);
    assert_eq!(resolve(other, &other_keys[0]).err(), Some(FsError::Busy));
    assert_eq!(other.create(&other.root(), b"new", 0o644, &ROOT).err(), Some(FsError::Busy));
    assert_eq!(other.lookup(&other.root(), b"new").err(), Some(FsError::NotFound), "undone");
    drop(held);
    assert!(resolve(other, &other_keys[0]).is_ok());
    assert!(other.create(&other.root(), b"new", 0o644, &ROOT).is_ok());
}

#[test]
fn uncommitted_data_takes_half_of_the_budget_at_most() {
    let place = tempfile::tempdir().unwrap();
    let (volumes, _) = volumes(place.path(), 4, 64);
    for (bed, keys) in &volumes {
        for key in keys {
            bed.write(&resolve(bed, key).unwrap(), 0, b"data").unwrap();
        }
    }
    // So there is always another to close; those with uncommitted data are synced meanwhile.
    for (bed, keys) in &volumes {
        keys.iter().for_each(|key| drop(resolve(bed, key).unwrap()));
    }
}
