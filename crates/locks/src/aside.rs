//! The thread for what takes long in the tables of locks: a worker that did it itself would keep
//! its other connections waiting.
//!
//! It is started when it is first needed. Its queue has no more jobs than there are requests in
//! flight, each of which waits for its own.

use super::LockDoor;
use crate::sync::{Arc, OnceLock, mpsc, oneshot};
use std::thread::Builder;

type Job = Box<dyn FnOnce() + Send>;

/// The way to the thread.
#[derive(Default)]
pub(crate) struct Aside(OnceLock<Option<mpsc::UnboundedSender<Job>>>);

impl Aside {
    /// Was the thread needed?
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn has_begun(&self) -> bool {
        self.0.get().is_some()
    }

    /// Has the thread do `job`; does it here if there is no thread to be had.
    fn carry_out(&self, job: Job) {
        let unsent = match self.0.get_or_init(start) {
            Some(thread) => thread.send(job).err().map(|unsent| unsent.0),
            None => Some(job),
        };
        if let Some(job) = unsent {
            job();
        }
    }
}

fn start() -> Option<mpsc::UnboundedSender<Job>> {
    let (sender, mut jobs) = mpsc::unbounded_channel::<Job>();
    let serve = move || {
        while let Some(job) = jobs.blocking_recv() {
            job();
        }
    };
    match Builder::new().name("weir-long-locks".to_owned()).spawn(serve) {
        Ok(_detached) => Some(sender),
        Err(error) => {
            tracing::warn!(%error, "no thread for long changes of locks: workers make them");
            None
        }
    }
}

impl<W: Send + 'static> LockDoor<W> {
    /// Was anything done on the thread for what takes long?
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn has_thread(&self) -> bool {
        self.aside.has_begun()
    }

    /// Has `act` done on the thread for what takes long. `None` if the server ends meanwhile.
    pub async fn aside<R: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> Option<R> {
        let (door, (done, result)) = (Arc::clone(self), oneshot::channel());
        self.aside.carry_out(Box::new(move || {
            // A request whose worker has left wants no result.
            let _unwanted = done.send(act(&door));
        }));
        result.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::testing::block_on;
    use weir_state::Limits;

    #[test]
    fn long_changes_are_made_on_another_thread_in_their_order() {
        let door = Arc::new(LockDoor::<()>::new(Limits::SERVER));
        let here = std::thread::current().id();
        assert!(!door.has_thread(), "nobody needs it");
        for number in 0..3 {
            let act = move |door: &LockDoor<()>| {
                drop(door.tables());
                (number, std::thread::current().id())
            };
            let (done, there) = block_on(door.aside(act)).unwrap();
            assert!(done == number && there != here);
        }
    }
}
