//! Compounds: several messages in one frame (MS-SMB2 §3.3.5.2.7, §3.3.4.1.3). A single message is
//! a chain of one. Not here: whether related messages make sense.

use super::WireError;
use super::header::{HEADER_BYTES, Header, NEXT_COMMAND_AT};
use crate::le::{align, length, patch};
use crate::limits::COMPOUND_ELEMENTS_MAX;
use alloc::vec::Vec;
use core::ops::Range;

/// A chain of messages, proved well formed to its end before any of it is run: every element has
/// a header, and every `NextCommand` leads on, by a multiple of eight, to a place in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain<'a> {
    frame: &'a [u8],
    elements: usize,
}

/// One message of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its header.
    pub header: Header,
    /// Its place in the frame: header, body, and padding up to the next header. A signature covers
    /// all of it (§3.1.4.1).
    pub at: Range<usize>,
}

impl<'a> Chain<'a> {
    /// The chain in `frame`.
    ///
    /// # Errors
    /// [`WireError`] if an element's header is malformed or a `NextCommand` is not that of a
    /// message in the frame;
    /// [`WireError::TooLong`] above [`COMPOUND_ELEMENTS_MAX`] elements.
    #[inline]
    pub fn decode(frame: &'a [u8]) -> Result<Self, WireError> {
        let mut elements = 0usize;
        let mut start = Some(0);
        while let Some(at) = start {
            elements = elements.saturating_add(1);
            if elements > COMPOUND_ELEMENTS_MAX {
                let max = COMPOUND_ELEMENTS_MAX;
                return Err(WireError::TooLong { what: "compound", len: elements, max });
            }
            let rest = frame.get(at..).unwrap_or_default();
            start = next(&Header::decode(rest)?, rest.len())?.map(|len| at.saturating_add(len));
        }
        Ok(Self { frame, elements })
    }

    /// The number of messages, at least one.
    #[must_use]
    pub const fn elements(&self) -> usize {
        self.elements
    }

    /// The messages in their order.
    pub fn iter(&self) -> impl Iterator<Item = Element> + use<'a> {
        let frame = self.frame;
        let mut start = Some(0usize);
        core::iter::from_fn(move || {
            let at = start?;
            let rest = frame.get(at..)?;
            let header = Header::decode(rest).ok()?;
            start = next(&header, rest.len()).ok()?.map(|len| at.saturating_add(len));
            Some(Element { header, at: at..start.unwrap_or(frame.len()) })
        })
    }
}

/// The bytes from a header to the next, if there is one, when `left` are there.
#[inline]
fn next(header: &Header, left: usize) -> Result<Option<usize>, WireError> {
    let offset = header.next_command as usize;
    if offset == 0 {
        return Ok(None);
    }
    if !offset.is_multiple_of(8) {
        return Err(WireError::Misaligned { what: "NextCommand", offset });
    }
    if offset < HEADER_BYTES || offset >= left {
        return Err(WireError::OutOfPlace { what: "NextCommand", offset, len: HEADER_BYTES });
    }
    Ok(Some(offset))
}

/// Appends the messages of a chain to one frame.
#[derive(Clone, Copy, Debug)]
pub struct ChainWriter {
    start: usize,
    last: Option<usize>,
}

impl ChainWriter {
    /// Begins a chain at the end of `out`.
    #[inline]
    #[must_use]
    pub const fn new(out: &[u8]) -> Self {
        Self { start: out.len(), last: None }
    }

    /// Pads and links the message before, and appends the header of the next, whose body the caller
    /// appends then. Gives the position of that header. `next_command` in `header` is ignored.
    #[inline]
    pub fn begin(&mut self, out: &mut Vec<u8>, header: &Header) -> usize {
        if let Some(last) = self.last {
            align(out, self.start, 8);
            let len: u32 = length(out.len().saturating_sub(last));
            patch(out, last.saturating_add(NEXT_COMMAND_AT), &len.to_le_bytes());
        }
        let at = out.len();
        self.last = Some(at);
        Header { next_command: 0, ..*header }.encode(out);
        at
    }

    /// Pads the last of several messages, as responses should be (§3.3.4.1.3).
    #[inline]
    pub fn finish(self, out: &mut Vec<u8>) {
        if self.last.is_some_and(|last| last > self.start) {
            align(out, self.start, 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Command, HeaderFlags, Status, TreeOrAsync};

    fn header(message_id: u64) -> Header {
        Header {
            credit_charge: 1,
            status: Status::SUCCESS,
            command: Ok(Command::Echo),
            credits: 1,
            flags: HeaderFlags::default(),
            next_command: 0x1234,
            message_id,
            tree: TreeOrAsync::Tree(1),
            session_id: 9,
            signature: [0; 16],
        }
    }

    /// A chain of messages whose bodies have these sizes, after a prefix.
    fn chain(bodies: &[usize]) -> Vec<u8> {
        let mut out = alloc::vec![0; 3];
        let mut writer = ChainWriter::new(&out);
        for (id, body) in (0..).zip(bodies) {
            writer.begin(&mut out, &header(id));
            out.extend(core::iter::repeat_n(0xaa, *body));
        }
        writer.finish(&mut out);
        out.split_off(3)
    }

    #[test]
    fn messages_are_padded_to_eight_bytes_and_linked() {
        let frame = chain(&[4, 16, 5]);
        assert_eq!(frame.len(), 72 + 80 + 72);
        assert_eq!(chain(&[5]).len(), 69, "a single message is not padded");
        let decoded = Chain::decode(&frame).unwrap();
        assert_eq!(decoded.elements(), 3);
        let found: Vec<_> = decoded
            .iter()
            .map(|element| (element.header.message_id, element.header.next_command, element.at))
            .collect();
        assert_eq!(found, [(0, 72, 0..72), (1, 80, 72..152), (2, 0, 152..224)]);
        assert_eq!(frame[68..72], [0; 4]);
    }

    #[test]
    fn links_that_lead_astray_are_refused() {
        let frame = chain(&[8, 8]);
        for next in [1u32, 8, 56, 63, 71, 73, 80, 144, 152, u32::MAX - 7, u32::MAX] {
            let mut frame = frame.clone();
            frame[NEXT_COMMAND_AT..NEXT_COMMAND_AT + 4].copy_from_slice(&next.to_le_bytes());
            assert!(Chain::decode(&frame).is_err(), "{next}");
        }
        for len in 0..136 {
            let is_first_alone = Chain::decode(&frame[..len]).is_ok();
            assert!(!is_first_alone, "{len} bytes");
        }
    }

    #[test]
    fn the_number_of_messages_is_bounded() {
        let longest = alloc::vec![0; COMPOUND_ELEMENTS_MAX];
        assert_eq!(Chain::decode(&chain(&longest)).unwrap().elements(), COMPOUND_ELEMENTS_MAX);
        let longer = alloc::vec![0; COMPOUND_ELEMENTS_MAX + 1];
        assert!(matches!(Chain::decode(&chain(&longer)), Err(WireError::TooLong { .. })));
    }
}
