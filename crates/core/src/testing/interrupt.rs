//! Actions between two operations of a store: the work of somebody else, at a point that a test
//! chooses. Not here: threads, and points within an operation.

use std::boxed::Box;
use std::cell::RefCell;

type Interrupt = (u32, Box<dyn FnOnce()>);

std::thread_local! {
    static NEXT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// Lets this thread carry out `operations` more operations of its `MemStore`s, and runs `act`
/// before the one after them. One action can be planned at a time; operations of the action itself
/// do not count.
pub fn interrupt_after(operations: u32, act: impl FnOnce() + 'static) {
    NEXT.set(Some((operations, Box::new(act))));
}

/// Counts an operation, and runs the action that is planned before it.
pub(super) fn interrupt() {
    match NEXT.take() {
        None => {}
        Some((0, act)) => act(),
        Some((operations, act)) => NEXT.set(Some((operations - 1, act))),
    }
}
