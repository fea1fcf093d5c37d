//! Many changes of names in the same directories at once.

use crate::common::{Bed, Object, ROOT, block_on, everywhere};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::scope;
use weir_core::store::{MakeKind, Want};
use weir_core::{FsError, FsResult, Name, Store};
use weir_store::StoreControl;

const THREADS: usize = 8;
const ROUNDS: usize = 25;

/// The threads that had success, where the others were refused with `refusal`.
fn successes(refusal: FsError, each: impl Fn(usize) -> FsResult<()> + Sync) -> usize {
    let (won, start) = (AtomicUsize::new(0), Barrier::new(THREADS));
    scope(|scope| {
        for thread in 0..THREADS {
            let (won, start, each) = (&won, &start, &each);
            scope.spawn(move || {
                start.wait();
                match each(thread) {
                    Ok(()) => _ = won.fetch_add(1, Relaxed),
                    Err(error) => assert_eq!(error, refusal),
                }
            });
        }
    });
    won.into_inner()
}

fn names_in(bed: &Bed, dir: &Object) -> usize {
    let page = block_on(bed.store.read_dir(dir, 0, 1000, 1 << 16, Want::Names)).unwrap();
    page.entries.iter().filter(|entry| !matches!(&*entry.name, b"." | b"..")).count()
}

#[test]
fn of_many_changes_of_one_name_one_has_success() {
    everywhere(|bed| {
        let dir = bed.make(&bed.root(), b"d", &MakeKind::Directory).unwrap();
        for _ in 0..ROUNDS {
            let made = |_| bed.create(&dir, b"same", 0o644, &ROOT).map(drop);
            assert_eq!(successes(FsError::Exists, made), 1);
            let file = bed.lookup(&dir, b"same").unwrap();
            bed.write(&file, 0, &[7; 1000]).unwrap();
            let removed = |_| bed.remove(&dir, b"same");
            assert_eq!(successes(FsError::NotFound, removed), 1);
        }
        assert_eq!((names_in(bed, &dir), bed.store.usage().bytes), (0, 0));
    });
}

#[test]
fn changes_of_many_names_lose_none_of_them_and_count_each_byte_once() {
    everywhere(|bed| {
        let [from, to] = [&b"d"[..], b"e"]
            .map(|name| bed.make(&bed.root(), name, &MakeKind::Directory).unwrap());
        let own = |thread: usize, round: usize| format!("{thread}-{round}").into_bytes();
        let each = |thread| {
            for round in 0..ROUNDS {
                let name = own(thread, round);
                let file = bed.create(&from, &name, 0o644, &ROOT)?;
                bed.write(&file, 0, &[7; 100])?;
                // A second name for one in three, and a move for one in two.
                let name = Name::new(&name)?;
                if round % 3 == 0 {
                    block_on(bed.store.link(
                        &file,
                        &to,
                        Name::new(&own(thread, round + 1000))?,
                        &ROOT,
                    ))?;
                    block_on(bed.store.remove(&from, name, &ROOT))?;
                } else if round % 2 == 0 {
                    // Over a name that others replace too.
                    let shared = Name::new(b"shared")?;
                    block_on(bed.store.rename(&from, name, &to, shared, &ROOT))?;
                }
            }
            Ok(())
        };
        assert_eq!(successes(FsError::Io, each), THREADS);
        let linked = ROUNDS.div_ceil(3);
        let renamed = (0..ROUNDS).filter(|round| round % 3 != 0 && round % 2 == 0).count();
        let left = ROUNDS - linked - renamed;
        assert_eq!(names_in(bed, &from), THREADS * left);
        assert_eq!(names_in(bed, &to), THREADS * linked + 1);
        let files = THREADS * (left + linked) + 1;
        assert_eq!(usize::try_from(bed.store.usage().bytes), Ok(files * 100));
    });
}
