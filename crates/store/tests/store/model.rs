//! Random operations, compared one by one with the model in memory.

use crate::common::{Bed, Object, block_on, options, places};
use crate::player::{Player, STEPS, seen, step, told};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use weir_core::testing::{MemObject, MemStore};
use weir_core::{AclKind, FsError, Store};
use weir_store::StoreControl;

const CASES: u32 = 256;

#[test]
fn random_operations_answer_as_the_model_does() {
    for place in places() {
        let number = std::cell::Cell::new(0);
        let mut runner = TestRunner::new(Config {
            cases: CASES,
            failure_persistence: None,
            ..Config::default()
        });
        let steps = proptest::collection::vec(step(), 1..STEPS);
        let done = runner.run(&steps, |steps| {
            number.set(number.get() + 1);
            let directory = place.path().join(format!("v{}", number.get()));
            let bed = Bed::open(directory, options(), place.name);
            bed.open_to_all(&bed.root());
            let mut ours: Player<_> = Player::new(bed.store.clone());
            let mut model: Player<MemStore> = Player::new(MemStore::new());
            for step in &steps {
                let (ours, model) = (ours.play(step), model.play(step));
                prop_assert_eq!(ours, model, "{:?}", step);
            }
            // Nothing may be left that only a cache knows.
            let fresh: Vec<(Object, MemObject)> =
                ours.objects.iter().cloned().zip(model.objects.iter().copied()).collect();
            let again = bed.reopen();
            for (object, expected) in &fresh {
                let found = block_on(again.resolve(&ours.store.key(object)));
                let expected = block_on(model.store.resolve(&model.store.key(expected)));
                match (found, expected) {
                    (Ok(found), Ok(known)) => {
                        let (attr, list) = block_on(again.acl(&found, AclKind::Access)).unwrap();
                        let expected = block_on(model.store.acl(&known, AclKind::Access));
                        let (expected, expected_list) = expected.unwrap();
                        prop_assert_eq!((seen(&attr), list), (seen(&expected), expected_list));
                        let ours = block_on(again.details(&found)).unwrap().1;
                        let theirs = block_on(model.store.details(&known)).unwrap().1;
                        prop_assert_eq!(told(&ours), told(&theirs));
                    }
                    (found, expected) => prop_assert_eq!(
                        (found.err(), expected.err()),
                        (Some(FsError::Stale), Some(FsError::Stale))
                    ),
                }
            }
            for store in [&again, &bed.store] {
                store.close().unwrap();
            }
            std::fs::remove_dir_all(&bed.directory).unwrap();
            Ok(())
        });
        if let Err(error) = done {
            panic!("on {}: {error}", place.name);
        }
    }
}
