//! [`Either`]: the future of an operation that goes to one of two kinds of stores. Not here: which
//! kinds there are, and how one is chosen.

use std::pin::Pin;
use std::task::{Context, Poll};
use weir_core::{FsError, FsResult};

/// The future of a store of one of two kinds, or a refusal. It is as large as the larger of the
/// two, and costs a comparison at each poll: an `async` block around both would keep the arguments
/// of the operation a second time, and states of its own.
pub(crate) enum Either<A, B> {
    /// That of the first kind.
    First(A),
    /// That of the second.
    Second(B),
    /// The operation is of neither.
    Neither(FsError),
}

impl<T, A, B> Future for Either<A, B>
where
    A: Future<Output = FsResult<T>>,
    B: Future<Output = FsResult<T>>,
{
    type Output = FsResult<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<FsResult<T>> {
        // SAFETY: nothing is moved out of the reference: the futures are pinned again below, and an
        // error is copied.
        match unsafe { self.get_unchecked_mut() } {
            // SAFETY: the future is a part of what is pinned. It is never moved, this type has no
            // `Drop` of its own, and it is `Unpin` only if the future is.
            Self::First(first) => unsafe { Pin::new_unchecked(first) }.poll(cx),
            // SAFETY: as above.
            Self::Second(second) => unsafe { Pin::new_unchecked(second) }.poll(cx),
            Self::Neither(error) => Poll::Ready(Err(*error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{Pending, Ready, pending, ready};
    use std::pin::pin;
    use std::task::Waker;
    use weir_core::testing::block_on;

    type Both = Either<Ready<FsResult<u32>>, Pending<FsResult<u32>>>;

    #[test]
    fn the_future_that_was_chosen_is_polled_and_what_is_neither_is_refused() {
        assert_eq!(block_on(Both::First(ready(Ok(7)))), Ok(7));
        assert_eq!(block_on(Both::Neither(FsError::CrossVolume)), Err(FsError::CrossVolume));
        let second = pin!(Both::Second(pending()));
        assert!(second.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }

    #[test]
    fn it_is_no_larger_than_the_larger_future_and_the_choice() {
        let large = async {
            let room = [0u8; 256];
            ready(()).await;
            FsResult::Ok(u32::from(room[7]))
        };
        let alone = size_of_val(&large);
        let either: Either<_, Ready<FsResult<u32>>> = Either::First(large);
        assert!(alone >= 256 && size_of_val(&either) <= alone + 8);
    }
}
