//! Replies out of the byte stream of a connection. Only the front of a record is looked at; the
//! data of a READ is passed over where it lies, or not even copied out of the kernel. Where data is
//! verified, records are gathered whole.

use weir_nfs::rpc::{Deframer, FrameError, Step};

/// Bytes of a record that are enough to understand any reply: RPC header with the largest verifier
/// (428 bytes), status, and the largest result before data (WRITE, 248 bytes).
pub(super) const HEAD_BYTES: usize = 704;
pub(super) const MARK_BYTES: usize = 4;
const LAST_FRAGMENT: u32 = 1 << 31;

/// The state of the stream between two receives.
#[derive(Debug)]
pub(super) struct Inbox {
    /// Bytes of a record that are looked at.
    head_bytes: usize,
    /// A longer record is a fault, because all of it is wanted.
    whole: bool,
    /// Bytes of the present record that are still to come and of no interest.
    skip: usize,
    /// A beginning of a record too short to be understood.
    partial: Vec<u8>,
    /// Takes over for good when a peer splits a record into fragments.
    fragments: Option<Box<Fragments>>,
}

#[derive(Debug, Default)]
struct Fragments {
    bytes: Vec<u8>,
    deframer: Deframer,
}

/// An event of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// The front of a record (all of it, if that is short), and the length of all of it.
    Head(&'a [u8], usize),
    /// The record whose head came last is there in full.
    End,
}

impl Default for Inbox {
    fn default() -> Self {
        let (skip, partial, fragments) = (0, Vec::new(), None);
        Self { head_bytes: HEAD_BYTES, whole: false, skip, partial, fragments }
    }
}

impl Inbox {
    /// Gives records whole, which are at most `most` bytes long.
    pub(super) fn whole(most: usize) -> Self {
        Self { head_bytes: most, whole: true, ..Self::default() }
    }

    /// Bytes that may be dropped unseen.
    #[inline]
    pub(super) const fn skip(&self) -> usize {
        self.skip
    }

    /// Notes that `count` bytes were dropped. `true` if the record is there in full now.
    #[inline]
    pub(super) const fn dropped(&mut self, count: usize) -> bool {
        self.skip = self.skip.saturating_sub(count);
        self.skip == 0
    }

    /// Puts what is left from the last time in front of `buffer`; received bytes belong after it.
    #[inline]
    pub(super) fn restore(&mut self, buffer: &mut [u8]) -> usize {
        let len = self.partial.len();
        if let Some(front) = buffer.get_mut(..len) {
            front.copy_from_slice(&self.partial);
        }
        self.partial.clear();
        len
    }

    /// Looks through `bytes`: what [`Inbox::restore`] put there, and what came after it.
    pub(super) fn feed<E: From<FrameError>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(fragments) = &mut self.fragments {
            return fragments.feed(bytes, each);
        }
        let mut rest = bytes;
        loop {
            if self.skip > 0 {
                let count = self.skip.min(rest.len());
                rest = rest.get(count..).unwrap_or(&[]);
                if !self.dropped(count) {
                    return Ok(());
                }
                each(Event::End)?;
            }
            let Some((mark, record)) = rest.split_first_chunk::<MARK_BYTES>() else { break };
            let mark = u32::from_be_bytes(*mark);
            if mark & LAST_FRAGMENT == 0 {
                return self.fragments.insert(Box::default()).feed(rest, each);
            }
            let len = (mark & !LAST_FRAGMENT) as usize;
            if self.whole && len > self.head_bytes {
                return Err(FrameError::TooLong { bytes: len }.into());
            }
            let Some((head, after)) = record.split_at_checked(len.min(self.head_bytes)) else {
                break;
            };
            each(Event::Head(head, len))?;
            rest = after;
            self.skip = len - head.len();
            if self.skip == 0 {
                each(Event::End)?;
            }
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }
}

impl Fragments {
    fn feed<E: From<FrameError>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.bytes.extend_from_slice(bytes);
        let mut start = 0;
        loop {
            let rest = self.bytes.get(start..).unwrap_or(&[]);
            start += match self.deframer.next(rest)? {
                Step::NeedMore { .. } => break,
                Step::Fragment { consumed } => consumed,
                Step::Record { at, consumed } => {
                    let record = rest.get(at).unwrap_or(&[]);
                    each(Event::Head(record, record.len()))?;
                    each(Event::End)?;
                    consumed
                }
                Step::Assembled { record, consumed } => {
                    each(Event::Head(&record, record.len()))?;
                    each(Event::End)?;
                    consumed
                }
            };
        }
        self.bytes.drain(..start);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(body: &[u8], fragments: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut chunks: Vec<_> = body.chunks(body.len().div_ceil(fragments).max(1)).collect();
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        for (index, chunk) in chunks.iter().enumerate() {
            let last = if index + 1 == chunks.len() { LAST_FRAGMENT } else { 0 };
            out.extend_from_slice(&(u32::try_from(chunk.len()).unwrap() | last).to_be_bytes());
            out.extend_from_slice(chunk);
        }
        out
    }

    /// Feeds `stream` in steps of `step` bytes; gives the heads, and how many records ended.
    fn run(stream: &[u8], step: usize) -> (Vec<Vec<u8>>, usize) {
        let (mut inbox, mut heads, mut ends) = (Inbox::default(), Vec::new(), 0);
        for chunk in stream.chunks(step) {
            let mut buffer = vec![0; HEAD_BYTES + MARK_BYTES + chunk.len()];
            let kept = inbox.restore(&mut buffer);
            buffer[kept..kept + chunk.len()].copy_from_slice(chunk);
            inbox
                .feed::<FrameError>(&buffer[..kept + chunk.len()], |event| {
                    match event {
                        Event::Head(head, _) => {
                            assert_eq!(heads.len(), ends, "one record at a time");
                            heads.push(head.to_vec());
                        }
                        Event::End => ends += 1,
                    }
                    Ok(())
                })
                .unwrap();
        }
        (heads, ends)
    }

    #[test]
    fn records_are_found_however_the_stream_is_cut() {
        let bodies: Vec<Vec<u8>> =
            [32, 0, 4, 700, 704, 705, 9000].iter().map(|len| vec![7; *len]).collect();
        let stream: Vec<u8> = bodies.iter().flat_map(|body| record(body, 1)).collect();
        let heads: Vec<Vec<u8>> =
            bodies.iter().map(|body| body[..body.len().min(HEAD_BYTES)].to_vec()).collect();
        for step in [1, 2, 3, 5, 64, 703, 1000, stream.len()] {
            assert_eq!(run(&stream, step), (heads.clone(), bodies.len()), "step {step}");
        }
    }

    #[test]
    fn fragmented_records_are_put_together_and_plain_ones_may_follow() {
        let (first, second) = (vec![1; 300], vec![2; 50]);
        let stream = [record(&first, 3), record(&second, 1)].concat();
        for step in [1, 7, 128, stream.len()] {
            assert_eq!(run(&stream, step), (vec![first.clone(), second.clone()], 2));
        }
    }

    #[test]
    fn whole_records_come_in_one_piece_and_none_is_longer_than_agreed() {
        let mut inbox = Inbox::whole(2000);
        let stream = [record(&[7; 1999], 1), record(&[8; 3], 1)].concat();
        let mut heads = Vec::new();
        for chunk in stream.chunks(700) {
            let mut buffer = vec![0; 4000];
            let kept = inbox.restore(&mut buffer);
            buffer[kept..kept + chunk.len()].copy_from_slice(chunk);
            inbox
                .feed::<FrameError>(&buffer[..kept + chunk.len()], |event| {
                    if let Event::Head(head, _) = event {
                        heads.push(head.to_vec());
                    }
                    Ok(())
                })
                .unwrap();
        }
        assert_eq!(heads, [vec![7; 1999], vec![8; 3]]);
        let longer = record(&[9; 2001], 1);
        assert!(inbox.feed::<FrameError>(&longer[..8], |_| Ok(())).is_err());
    }

    #[test]
    fn dropping_unseen_bytes_ends_the_record() {
        let mut inbox = Inbox::default();
        let stream = record(&vec![5; 5000], 1);
        inbox.feed::<FrameError>(&stream[..1000], |_| Ok(())).unwrap();
        assert_eq!(inbox.skip(), 4004);
        assert!(!inbox.dropped(4000));
        assert!(inbox.dropped(4));
    }
}
