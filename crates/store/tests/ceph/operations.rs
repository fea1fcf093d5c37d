//! Operations that ask the store several times, as one job of the pool.

use crate::common::{Bed, Object, ROOT, block_on, everywhere, new_path};
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread::current;
use weir_core::{FsError, Name, Store};
use weir_store::{CephStore, VolumeStore};

fn thread_name() -> String {
    current().name().unwrap_or_default().to_owned()
}

/// Asks for the attributes of `object` and for a name of the top directory, many times, because the
/// answer of another thread is sometimes there at once. Gives the name of the thread before each.
async fn asked(store: CephStore, object: Object) -> Vec<String> {
    let mut threads = vec![thread_name()];
    for _ in 0..20 {
        store.attr(&object).await.unwrap();
        threads.push(thread_name());
        store.lookup(&store.root(), Name::new(b"f").unwrap()).await.unwrap();
        threads.push(thread_name());
    }
    threads
}

fn file(bed: &Bed) -> Object {
    bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap()
}

fn is_of_pool(thread: &str) -> bool {
    thread.starts_with("weir-disk-")
}

#[test]
fn an_operation_is_one_job_however_often_it_asks() {
    everywhere(|bed| {
        let operation = asked(bed.store.clone(), file(bed));
        let threads = block_on(bed.store.carry_out(operation)).unwrap();
        let first = threads.first().unwrap();
        assert!(is_of_pool(first), "{first}");
        assert!(threads.iter().all(|thread| thread == first), "{threads:?}");
    });
}

#[test]
fn an_operation_that_waits_for_something_else_goes_on_with_its_caller() {
    everywhere(|bed| {
        let (store, object) = (bed.store.clone(), file(bed));
        let (wakers, waker) = channel::<Waker>();
        let open = Arc::new(Mutex::new(false));
        let opened = Arc::clone(&open);
        let operation = async move {
            let before = asked(store.clone(), object.clone()).await.pop().unwrap();
            std::future::poll_fn(|cx| {
                if *opened.lock().unwrap() {
                    return Poll::Ready(());
                }
                wakers.send(cx.waker().clone()).unwrap();
                Poll::Pending
            })
            .await;
            let after = thread_name();
            store.attr(&object).await.unwrap();
            (before, after)
        };
        let waking = std::thread::spawn(move || {
            // The first is that of the thread of the pool, which wakes nobody.
            let _of_pool = waker.recv().unwrap();
            let of_caller = waker.recv().unwrap();
            *open.lock().unwrap() = true;
            of_caller.wake();
        });
        let (before, after) = block_on(bed.store.carry_out(operation)).unwrap();
        waking.join().unwrap();
        assert!(is_of_pool(&before), "{before}");
        assert_eq!(after, thread_name());
    });
}

#[test]
fn an_operation_whose_caller_is_gone_is_carried_out() {
    everywhere(|bed| {
        let (store, object) = (bed.store.clone(), file(bed));
        let (start, started) = channel::<()>();
        let (done, end) = channel();
        let operation = async move {
            started.recv().unwrap();
            asked(store, object).await;
            done.send(()).unwrap();
        };
        {
            let queued = pin!(bed.store.carry_out(operation));
            assert!(queued.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        start.send(()).unwrap();
        assert_eq!(end.recv(), Ok(()));
    });
}

#[test]
fn an_operation_that_panics_gives_the_result_for_that() {
    everywhere(|bed| {
        let panics = async { panic!("intended by the test") };
        assert_eq!(block_on(bed.store.carry_out::<_>(panics)), Err::<(), _>(FsError::Io));
        let volume = VolumeStore::open_ceph(&bed.ceph, &new_path(), &bed.options).unwrap();
        let answer = |panics: bool| {
            let operation = async move {
                assert!(!panics, "intended by the test");
                1
            };
            block_on(volume.carry_out(operation, || 2))
        };
        assert_eq!((answer(true), answer(false)), (2, 1));
    });
}
