//! Operations that ask the store several times, as one job of the pool.

use crate::common::{Bed, Object, ROOT, block_on, everywhere};
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread::current;
use weir_core::{FsError, Name, Store};
use weir_store::CephStore;

/// Asks for the attributes of `object` and for a name of the top directory, and gives the name of
/// the thread before, between and after that.
async fn asked(store: CephStore, object: Object) -> [String; 3] {
    let here = || current().name().unwrap_or_default().to_owned();
    let first = here();
    store.attr(&object).await.unwrap();
    let second = here();
    store.lookup(&store.root(), Name::new(b"f").unwrap()).await.unwrap();
    [first, second, here()]
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
        let [first, second, third] = block_on(bed.store.carry_out(operation)).unwrap();
        assert!(is_of_pool(&first), "{first}");
        assert_eq!((&first, &first), (&second, &third));
        let own = current().name().map(str::to_owned);
        let [first, ..] =
            block_on(asked(bed.store.clone(), bed.lookup(&bed.root(), b"f").unwrap()));
        assert_eq!(Some(first), own, "without that each question is a job");
    });
}

#[test]
fn what_waits_for_something_else_goes_on_with_its_caller() {
    everywhere(|bed| {
        let (store, object) = (bed.store.clone(), file(bed));
        let (wakers, waker) = channel::<Waker>();
        let let_go = Arc::new(Mutex::new(false));
        let free = Arc::clone(&let_go);
        let operation = async move {
            let [before, ..] = asked(store.clone(), object.clone()).await;
            std::future::poll_fn(|cx| {
                if *free.lock().unwrap() {
                    return Poll::Ready(());
                }
                wakers.send(cx.waker().clone()).unwrap();
                Poll::Pending
            })
            .await;
            let after = current().name().unwrap_or_default().to_owned();
            store.attr(&object).await.unwrap();
            (before, after)
        };
        let waking = std::thread::spawn(move || {
            // The first is that of the thread of the pool, which wakes nobody.
            let _of_pool = waker.recv().unwrap();
            let of_caller = waker.recv().unwrap();
            *let_go.lock().unwrap() = true;
            of_caller.wake();
        });
        let (before, after) = block_on(bed.store.carry_out(operation)).unwrap();
        waking.join().unwrap();
        assert!(is_of_pool(&before), "{before}");
        assert_eq!(Some(&*after), current().name());
    });
}

#[test]
fn an_operation_that_nobody_waits_for_is_carried_out() {
    everywhere(|bed| {
        let (store, object) = (bed.store.clone(), file(bed));
        let (done, end) = channel();
        let operation = async move {
            asked(store, object).await;
            done.send(()).unwrap();
        };
        {
            let queued = pin!(bed.store.carry_out(operation));
            assert!(queued.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(end.recv(), Ok(()));
    });
}

#[test]
fn another_volume_is_asked_as_ever_and_a_panic_is_an_error() {
    everywhere(|bed| {
        let path = crate::common::new_path();
        let other = CephStore::open(&bed.ceph, &path, &bed.options).unwrap();
        let (store, object) = (bed.store.clone(), file(bed));
        let both = async move {
            let top = other.root();
            let (one, two) = (store.attr(&object).await, other.attr(&top).await);
            one.is_ok() && two.is_ok()
        };
        assert_eq!(block_on(bed.store.carry_out(both)), Ok(true));
        let panics = async { panic!("as this test wants") };
        assert_eq!(block_on(bed.store.carry_out::<_>(panics)), Err::<(), _>(FsError::Io));
        let again = asked(bed.store.clone(), bed.lookup(&bed.root(), b"f").unwrap());
        assert!(block_on(bed.store.carry_out(again)).is_ok(), "the thread goes on");
    });
}
