//! Random operations on CephFS, compared one by one with the model in memory.

use crate::common::{Bed, block_on, conf, connect, new_path, options};
use crate::player::{Player, STEPS, seen, step, told};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;
use weir_core::testing::MemStore;
use weir_core::{AclKind, FsError, Store};
use weir_store::StoreControl;

const CASES: u32 = 128;

#[test]
fn random_operations_answer_as_the_model_does() {
    let Some(conf) = conf() else { return };
    let ceph = Arc::new(connect(conf, 2));
    let mut runner =
        TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let steps = proptest::collection::vec(step(), 1..STEPS);
    let done = runner.run(&steps, |steps| {
        let bed = Bed::open(Arc::clone(&ceph), new_path(), options());
        bed.open_to_all(&bed.root());
        let mut ours: Player<_> = Player::new(bed.store.clone());
        let mut model: Player<MemStore> = Player::new(MemStore::new());
        for step in &steps {
            let (ours, model) = (ours.play(step), model.play(step));
            prop_assert_eq!(ours, model, "{:?}", step);
        }
        // A second life finds the same by the same keys.
        let again = bed.reopen();
        for (object, expected) in ours.objects.iter().zip(&model.objects) {
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
        bed.store.close().unwrap();
        Ok(())
    });
    if let Ok(ceph) = Arc::try_unwrap(ceph) {
        ceph.disconnect();
    }
    if let Err(error) = done {
        panic!("{error}");
    }
}
