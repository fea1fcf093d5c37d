//! Replies of RPC out of the byte stream of a connection (RFC 5531 §11): records with marks, and
//! records in fragments for a peer that sends such.

use crate::engine::net::{Event, Fault, Inbox, MARK_BYTES, Mark, Records};
use weir_nfs::rpc::{Deframer, Step};

/// Bytes of a record that are enough to understand any reply: RPC header with the largest verifier
/// (428 bytes), status, and the largest result before data (WRITE, 248 bytes).
pub(super) const HEAD_BYTES: usize = 704;
const LAST_FRAGMENT: u32 = 1 << 31;

/// The state of the stream between two receives.
#[derive(Debug)]
pub(super) struct RpcRecords {
    plain: Inbox,
    /// Takes over for good when a peer splits a record into fragments.
    fragments: Option<Box<Fragments>>,
}

#[derive(Debug, Default)]
struct Fragments {
    bytes: Vec<u8>,
    deframer: Deframer,
}

impl RpcRecords {
    /// Gives the front of each record.
    pub(super) const fn heads() -> Self {
        Self { plain: Inbox::heads(HEAD_BYTES), fragments: None }
    }

    /// Gives records whole, which are at most `most` bytes long.
    pub(super) const fn whole(most: usize) -> Self {
        Self { plain: Inbox::whole(most), fragments: None }
    }
}

impl Records for RpcRecords {
    #[inline]
    fn skip(&self) -> usize {
        self.plain.skip()
    }

    #[inline]
    fn dropped(&mut self, count: usize) -> bool {
        self.plain.dropped(count)
    }

    #[inline]
    fn restore(&mut self, buffer: &mut [u8]) -> usize {
        self.plain.restore(buffer)
    }

    #[inline]
    fn feed(
        &mut self,
        bytes: &mut [u8],
        mut each: impl FnMut(Event<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if let Some(fragments) = &mut self.fragments {
            return fragments.feed(bytes, each);
        }
        match self.plain.feed(bytes, mark, &mut each)? {
            None => Ok(()),
            Some(at) => {
                let rest = bytes.get(at..).unwrap_or(&[]);
                self.fragments.insert(Box::default()).feed(rest, each)
            }
        }
    }
}

/// A record that is one fragment, its last, or the first of several fragments.
#[expect(clippy::unnecessary_wraps, reason = "a mark of another protocol can be wrong")]
const fn mark(mark: [u8; MARK_BYTES]) -> Result<Mark, Fault> {
    let mark = u32::from_be_bytes(mark);
    if mark & LAST_FRAGMENT == 0 {
        return Ok(Mark::Other);
    }
    Ok(Mark::Record((mark & !LAST_FRAGMENT) as usize))
}

impl Fragments {
    fn feed(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Event<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.bytes.extend_from_slice(bytes);
        let mut start = 0;
        loop {
            let rest = self.bytes.get_mut(start..).unwrap_or(&mut []);
            start += match self.deframer.next(rest)? {
                Step::NeedMore { .. } => break,
                Step::Fragment { consumed } => consumed,
                Step::Record { at, consumed } => {
                    let record = rest.get_mut(at).unwrap_or(&mut []);
                    let len = record.len();
                    each(Event::Head(record, len))?;
                    each(Event::End)?;
                    consumed
                }
                Step::Assembled { mut record, consumed } => {
                    let len = record.len();
                    each(Event::Head(&mut record, len))?;
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
    use crate::engine::net::MARK_BYTES;

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
        let (mut inbox, mut heads, mut ends) = (RpcRecords::heads(), Vec::new(), 0);
        for chunk in stream.chunks(step) {
            let mut buffer = vec![0; HEAD_BYTES + MARK_BYTES + chunk.len()];
            let kept = inbox.restore(&mut buffer);
            buffer[kept..kept + chunk.len()].copy_from_slice(chunk);
            inbox
                .feed(&mut buffer[..kept + chunk.len()], |event| {
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
        let mut inbox = RpcRecords::whole(2000);
        let stream = [record(&[7; 1999], 1), record(&[8; 3], 1)].concat();
        let mut heads = Vec::new();
        for chunk in stream.chunks(700) {
            let mut buffer = vec![0; 4000];
            let kept = inbox.restore(&mut buffer);
            buffer[kept..kept + chunk.len()].copy_from_slice(chunk);
            inbox
                .feed(&mut buffer[..kept + chunk.len()], |event| {
                    if let Event::Head(head, _) = event {
                        heads.push(head.to_vec());
                    }
                    Ok(())
                })
                .unwrap();
        }
        assert_eq!(heads, [vec![7; 1999], vec![8; 3]]);
        let mut longer = record(&[9; 2001], 1);
        assert!(inbox.feed(&mut longer[..8], |_| Ok(())).is_err());
    }

    #[test]
    fn dropping_unseen_bytes_ends_the_record() {
        let mut inbox = RpcRecords::heads();
        let mut stream = record(&vec![5; 5000], 1);
        inbox.feed(&mut stream[..1000], |_| Ok(())).unwrap();
        assert_eq!(inbox.skip(), 4004);
        assert!(!inbox.dropped(4000));
        assert!(inbox.dropped(4));
    }
}
