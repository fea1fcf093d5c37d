//! Records out of the byte stream of a connection. Only the front of a record is looked at; the
//! data of a read is passed over where it lies, or not even copied out of the kernel. Where data is
//! verified, or signatures are, records are gathered whole.

use super::Fault;

/// Bytes in front of a record that say how long it is.
pub(in crate::engine) const MARK_BYTES: usize = 4;

/// The state of the stream between two receives.
#[derive(Debug)]
pub(in crate::engine) struct Inbox {
    /// Bytes of a record that are looked at.
    head_bytes: usize,
    /// A longer record is a fault, because all of it is wanted.
    whole: bool,
    /// Bytes of the present record that are still to come and of no interest.
    skip: usize,
    /// A beginning of a record too short to be understood.
    partial: Vec<u8>,
}

/// An event of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::engine) enum Event<'a> {
    /// The front of a record (all of it, if that is short), and the length of all of it.
    Head(&'a mut [u8], usize),
    /// The record whose head came last is there in full.
    End,
}

/// The meaning of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Mark {
    /// A record of so many bytes follows.
    Record(usize),
    /// The stream goes on in another form, this mark included.
    Other,
}

/// Records as a connection takes them.
pub(in crate::engine) trait Records: Send {
    /// Bytes that may be dropped unseen.
    fn skip(&self) -> usize;

    /// Notes that `count` bytes were dropped. `true` if the record is there in full now.
    fn dropped(&mut self, count: usize) -> bool;

    /// Puts what is left from the last time in front of `buffer`; received bytes belong after it.
    /// Gives the number of these bytes.
    fn restore(&mut self, buffer: &mut [u8]) -> usize;

    /// Looks through `bytes`: what [`Records::restore`] put there, and what came after it.
    fn feed(
        &mut self,
        bytes: &mut [u8],
        each: impl FnMut(Event<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault>;
}

impl Inbox {
    /// Gives of each record the first `head_bytes`.
    pub(in crate::engine) const fn heads(head_bytes: usize) -> Self {
        Self { head_bytes, whole: false, skip: 0, partial: Vec::new() }
    }

    /// Gives records whole, which are at most `most` bytes long.
    pub(in crate::engine) const fn whole(most: usize) -> Self {
        Self { head_bytes: most, whole: true, skip: 0, partial: Vec::new() }
    }

    /// Bytes that may be dropped unseen.
    #[inline]
    pub(in crate::engine) const fn skip(&self) -> usize {
        self.skip
    }

    /// Notes that `count` bytes were dropped. `true` if the record is there in full now.
    #[inline]
    pub(in crate::engine) const fn dropped(&mut self, count: usize) -> bool {
        self.skip = self.skip.saturating_sub(count);
        self.skip == 0
    }

    /// As [`Records::restore`].
    #[inline]
    pub(in crate::engine) fn restore(&mut self, buffer: &mut [u8]) -> usize {
        let len = self.partial.len();
        if let Some(front) = buffer.get_mut(..len) {
            front.copy_from_slice(&self.partial);
        }
        self.partial.clear();
        len
    }

    /// Looks through `bytes` as [`Records::feed`]; `read` understands marks. Gives the place of a
    /// mark with which the stream changes its form.
    #[inline]
    pub(in crate::engine) fn feed(
        &mut self,
        bytes: &mut [u8],
        read: impl Fn([u8; MARK_BYTES]) -> Result<Mark, Fault>,
        mut each: impl FnMut(Event<'_>) -> Result<(), Fault>,
    ) -> Result<Option<usize>, Fault> {
        let mut at = 0;
        loop {
            let rest = bytes.get_mut(at..).unwrap_or(&mut []);
            if self.skip > 0 {
                let count = self.skip.min(rest.len());
                at += count;
                if !self.dropped(count) {
                    return Ok(None);
                }
                each(Event::End)?;
                continue;
            }
            let Some((mark, record)) = rest.split_first_chunk_mut::<MARK_BYTES>() else { break };
            let len = match read(*mark)? {
                Mark::Record(len) => len,
                Mark::Other => return Ok(Some(at)),
            };
            if self.whole && len > self.head_bytes {
                return Err(Fault::Protocol(format!(
                    "a reply of {len} bytes, where {} are the most",
                    self.head_bytes
                )));
            }
            let Some((head, _)) = record.split_at_mut_checked(len.min(self.head_bytes)) else {
                break;
            };
            at += MARK_BYTES + head.len();
            self.skip = len - head.len();
            each(Event::Head(head, len))?;
            if self.skip == 0 {
                each(Event::End)?;
            }
        }
        self.partial.extend_from_slice(bytes.get(at..).unwrap_or(&[]));
        Ok(None)
    }
}
