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

/// The volume's usage beside a file that is always there, without which bytes that are counted as
/// gone twice would not be seen.
struct Counted<'a> {
    bed: &'a Bed,
    from: u64,
}

impl<'a> Counted<'a> {
    fn new(bed: &'a Bed) -> Self {
        let ballast = bed.create(&bed.root(), b"ballast", 0o644, &ROOT).unwrap();
        bed.write(&ballast, 0, &[1; 100_000]).unwrap();
        Self { bed, from: bed.store.usage().bytes }
    }

    fn bytes(&self) -> i128 {
        i128::from(self.bed.store.usage().bytes) - i128::from(self.from)
    }
}

fn write(bed: &Bed, file: &Object, bytes: usize) -> FsResult<()> {
    bed.write(file, 0, &vec![7; bytes]).map(drop)
}

fn directory(bed: &Bed, name: &[u8]) -> Object {
    bed.make(&bed.root(), name, &MakeKind::Directory).unwrap()
}

#[test]
fn of_many_changes_of_one_name_one_has_success() {
    everywhere(|bed| {
        let (counted, dir) = (Counted::new(bed), directory(bed, b"d"));
        for _ in 0..ROUNDS {
            let made = |_| bed.create(&dir, b"same", 0o644, &ROOT).map(drop);
            assert_eq!(successes(FsError::Exists, made), 1);
            write(bed, &bed.lookup(&dir, b"same").unwrap(), 1000).unwrap();
            assert_eq!(counted.bytes(), 1000);
            let removed = |_| bed.remove(&dir, b"same");
            assert_eq!(successes(FsError::NotFound, removed), 1);
            assert_eq!(counted.bytes(), 0);
        }
        assert_eq!(names_in(bed, &dir), 0);
    });
}

#[test]
fn one_name_that_is_made_and_removed_again_and_again_counts_what_is_there() {
    everywhere(|bed| {
        let (counted, dir) = (Counted::new(bed), directory(bed, b"d"));
        let each = |thread| {
            for round in 0..ROUNDS {
                // Another thread may have made or removed the file at any time.
                match bed.create(&dir, b"same", 0o644, &ROOT) {
                    Ok(file) => match write(bed, &file, 1 + thread * ROUNDS + round) {
                        Ok(()) | Err(FsError::Stale) => {}
                        Err(error) => return Err(error),
                    },
                    Err(FsError::Exists) => {}
                    Err(error) => return Err(error),
                }
                match bed.remove(&dir, b"same") {
                    Ok(()) | Err(FsError::NotFound) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        assert_eq!(successes(FsError::Io, each), THREADS);
        assert_eq!((names_in(bed, &dir), counted.bytes()), (0, 0));
    });
}

#[test]
fn a_file_whose_only_name_is_removed_gets_another_name_before_or_not_at_all() {
    everywhere(|bed| {
        let (counted, dir) = (Counted::new(bed), directory(bed, b"d"));
        let (old, new) = (Name::new(b"old").unwrap(), Name::new(b"new").unwrap());
        for _ in 0..ROUNDS {
            let file = bed.create(&dir, b"old", 0o644, &ROOT).unwrap();
            write(bed, &file, 1000).unwrap();
            let start = Barrier::new(2);
            let linked = scope(|scope| {
                let linking = scope.spawn(|| {
                    start.wait();
                    block_on(bed.store.link(&file, &dir, new, &ROOT))
                });
                start.wait();
                block_on(bed.store.remove(&dir, old, &ROOT)).unwrap();
                linking.join().unwrap()
            });
            match linked {
                Ok(_) => {
                    assert_eq!((bed.attr(&file).nlink, counted.bytes()), (1, 1000));
                    let found = block_on(bed.store.resolve(&file.key()));
                    assert_eq!(found.map(|found| found.key()), Ok(file.key()));
                    bed.remove(&dir, b"new").unwrap();
                }
                Err(error) => assert!(matches!(error, FsError::Stale | FsError::NotFound)),
            }
            assert_eq!((names_in(bed, &dir), counted.bytes()), (0, 0));
        }
    });
}

#[test]
fn changes_of_many_names_lose_none_of_them_and_count_each_byte_once() {
    everywhere(|bed| {
        let (counted, from, to) = (Counted::new(bed), directory(bed, b"d"), directory(bed, b"e"));
        let own = |thread: usize, round: usize| format!("{thread}-{round}").into_bytes();
        // Each file has a size of its own.
        let bytes = |thread, round| 1 + thread * ROUNDS + round;
        let is_linked = |round| round % 3 == 0;
        let is_renamed = |round| round % 3 != 0 && round % 2 == 0;
        let each = |thread| {
            for round in 0..ROUNDS {
                let text = own(thread, round);
                let file = bed.create(&from, &text, 0o644, &ROOT)?;
                write(bed, &file, bytes(thread, round))?;
                let name = Name::new(&text)?;
                if is_linked(round) {
                    block_on(bed.store.link(&file, &to, name, &ROOT))?;
                    block_on(bed.store.remove(&from, name, &ROOT))?;
                } else if is_renamed(round) {
                    // Over a name that other threads replace too.
                    let shared = Name::new(b"shared")?;
                    block_on(bed.store.rename(&from, name, &to, shared, &ROOT))?;
                }
            }
            Ok(())
        };
        assert_eq!(successes(FsError::Io, each), THREADS);
        let linked = (0..ROUNDS).filter(|round| is_linked(*round)).count();
        let renamed = (0..ROUNDS).filter(|round| is_renamed(*round)).count();
        assert_eq!(names_in(bed, &from), THREADS * (ROUNDS - linked - renamed));
        assert_eq!(names_in(bed, &to), THREADS * linked + 1);
        let kept = (0..ROUNDS).filter(|round| !is_renamed(*round));
        let kept: usize = kept.flat_map(|round| (0..THREADS).map(move |t| bytes(t, round))).sum();
        let shared = bed.attr(&bed.lookup(&to, b"shared").unwrap()).size;
        assert_eq!(counted.bytes(), i128::from(shared) + i128::try_from(kept).unwrap());
    });
}
