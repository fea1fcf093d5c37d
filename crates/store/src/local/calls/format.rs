//! The records of the log of calls, and their form on disk.
//!
//! The file is two halves that are filled in turns. A half begins with a head, which has its
//! generation; then come frames, one record each: length (2 bytes), kind (1), content, checksum
//! (8), in the byte order of x86. The checksum covers the generation and the place, so that what an
//! earlier generation has left is not taken for a record. Reading ends at the first frame that is
//! not whole.

use weir_core::limits::OBJECT_KEY_BYTES_MAX;
use weir_core::{CallId, ObjectKey, Timestamp};

/// Bytes of a half.
pub(super) const HALF: usize = 1 << 20;
/// Bytes of the file.
pub(super) const SIZE: usize = 2 * HALF;
/// Where the frames of a half begin.
pub(super) const HEAD: usize = 64;
/// Bytes of the longest frame: two places and a key, and what stands around them.
pub(super) const FRAME_MAX: usize = 1024;

const MAGIC: &[u8; 8] = b"weircall";
const VERSION: u32 = 1;
const AROUND: usize = 2 + 1 + 8;

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::local) struct Place<'a> {
    pub(in crate::local) dir: ObjectKey,
    pub(in crate::local) name: &'a [u8],
}

/// A change of names, with what is needed to find out later whether it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::local) enum NameChange<'a> {
    /// An object is made. Is it `whole` once it has its name, or are attributes set afterwards?
    Make { at: Place<'a>, whole: bool },
    /// The name of `object` goes, its `last` one or not.
    Remove { at: Place<'a>, object: ObjectKey, last: bool },
    /// `object` gets another name instead of its own.
    Rename { from: Place<'a>, to: Place<'a>, object: ObjectKey },
    /// `object` gets one more name.
    Link { at: Place<'a>, object: ObjectKey },
}

/// One record. Calls are numbered within the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// A call is about to change names. If it has not `begun`, that is told apart.
    Intent { number: u64, call: CallId, at: Timestamp, begun: bool, synced: bool, change: &'a [u8] },
    /// It has the locks of the directories, and makes the change next.
    Begun { number: u64 },
    /// The change was made.
    Acted { number: u64, made: Option<ObjectKey> },
    /// The change is on stable storage.
    Settled { number: u64 },
    /// The call changes nothing, or is not to be remembered.
    Void { number: u64 },
    /// All of this of an earlier call.
    Done { number: u64, call: CallId, at: Timestamp, made: Option<ObjectKey>, settled: bool },
    /// Everything that is known of earlier generations was said in this one.
    Whole,
}

/// Frames that are put together to be written at one place.
pub(super) struct Frames<'a> {
    out: &'a mut Vec<u8>,
    generation: u64,
    /// Where in the half the first byte of `out` will be.
    start: usize,
}

impl<'a> Frames<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, generation: u64, start: usize) -> Self {
        out.clear();
        Self { out, generation, start }
    }

    /// The head of a half, for the file with this key.
    pub(super) fn head(&mut self, file: &ObjectKey) {
        let begin = self.out.len();
        self.out.extend_from_slice(MAGIC);
        self.word32(VERSION);
        self.word32(0);
        self.word64(self.generation);
        self.word64(identity(file));
        let sum = checksum(0, 0, &self.out[begin..]);
        self.word64(sum);
        self.out.resize(begin + HEAD, 0);
    }

    /// Adds a record.
    pub(super) fn push(&mut self, record: &Record<'_>) {
        let begin = self.out.len();
        self.out.extend_from_slice(&[0, 0]);
        self.body(record);
        let len = self.out.len() + 8 - begin;
        let len = u16::try_from(len).unwrap_or(0).to_le_bytes();
        self.out[begin..begin + 2].copy_from_slice(&len);
        let sum = checksum(self.generation, self.start + begin, &self.out[begin..]);
        self.word64(sum);
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    fn body(&mut self, record: &Record<'_>) {
        match *record {
            Record::Intent { number, call, at, begun, synced, change } => {
                self.head_of(1, number);
                self.call(&call, at);
                self.out.push(u8::from(begun) | u8::from(synced) << 1);
                self.out.extend_from_slice(change);
            }
            Record::Begun { number } => self.head_of(2, number),
            Record::Acted { number, made } => {
                self.head_of(3, number);
                self.made(made);
            }
            Record::Settled { number } => self.head_of(4, number),
            Record::Void { number } => self.head_of(5, number),
            Record::Done { number, call, at, made, settled } => {
                self.head_of(6, number);
                self.call(&call, at);
                self.out.push(u8::from(settled));
                self.made(made);
            }
            Record::Whole => self.head_of(7, 0),
        }
    }

    fn head_of(&mut self, kind: u8, number: u64) {
        self.out.push(kind);
        self.word64(number);
    }

    fn call(&mut self, call: &CallId, at: Timestamp) {
        self.out.extend_from_slice(&call.client.to_le_bytes());
        self.word32(call.xid);
        self.word32(call.procedure);
        self.word64(call.print);
        self.out.extend_from_slice(&at.secs.to_le_bytes());
        self.word32(at.nanos);
    }

    fn made(&mut self, made: Option<ObjectKey>) {
        self.out.push(u8::from(made.is_some()));
        if let Some(key) = made {
            put_key(self.out, &key);
        }
    }

    fn word32(&mut self, word: u32) {
        self.out.extend_from_slice(&word.to_le_bytes());
    }

    fn word64(&mut self, word: u64) {
        self.out.extend_from_slice(&word.to_le_bytes());
    }
}

/// A half as it was found.
pub(super) struct Half<'a> {
    pub(super) generation: u64,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Half<'a> {
    /// The records in `bytes`, if they are a half of the file with this key.
    pub(super) fn read(bytes: &'a [u8], file: &ObjectKey) -> Option<Self> {
        let mut head = Reader(bytes.get(..40)?);
        let sum = checksum(0, 0, bytes.get(..32)?);
        let ours = head.take(8)? == MAGIC && head.word32()? == VERSION;
        head.word32()?;
        let generation = head.word64()?;
        let of_file = head.word64()? == identity(file);
        (ours && of_file && head.word64()? == sum).then_some(Self { generation, bytes, at: HEAD })
    }

    /// The next record.
    pub(super) fn next(&mut self) -> Option<Record<'a>> {
        let rest = self.bytes.get(self.at..)?;
        let len = usize::from(u16::from_le_bytes(*rest.first_chunk()?));
        let frame = rest.get(..len).filter(|_| (AROUND..=FRAME_MAX).contains(&len))?;
        let (content, sum) = frame.split_at_checked(len - 8)?;
        if Reader(sum).word64()? != checksum(self.generation, self.at, content) {
            return None;
        }
        let record = record(content.get(2..)?)?;
        self.at += len;
        Some(record)
    }
}

fn record(content: &[u8]) -> Option<Record<'_>> {
    let mut from = Reader(content);
    let (kind, number) = (from.byte()?, from.word64()?);
    Some(match kind {
        1 => {
            let (call, at, flags) = (from.call()?, from.time()?, from.byte()?);
            let (begun, synced) = (flags & 1 != 0, flags & 2 != 0);
            Record::Intent { number, call, at, begun, synced, change: from.0 }
        }
        2 => Record::Begun { number },
        3 => Record::Acted { number, made: from.made()? },
        4 => Record::Settled { number },
        5 => Record::Void { number },
        6 => {
            let (call, at, settled) = (from.call()?, from.time()?, from.byte()? != 0);
            Record::Done { number, call, at, settled, made: from.made()? }
        }
        7 => Record::Whole,
        _ => return None,
    })
}

impl<'a> NameChange<'a> {
    /// The change as a record has it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Make { at, whole } => {
                out.extend_from_slice(&[1, u8::from(*whole)]);
                put_place(out, at);
            }
            Self::Remove { at, object, last } => {
                out.extend_from_slice(&[2, u8::from(*last)]);
                put_place(out, at);
                put_key(out, object);
            }
            Self::Rename { from, to, object } => {
                out.extend_from_slice(&[3, 0]);
                put_place(out, from);
                put_place(out, to);
                put_key(out, object);
            }
            Self::Link { at, object } => {
                out.extend_from_slice(&[4, 0]);
                put_place(out, at);
                put_key(out, object);
            }
        }
    }

    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let (kind, flag) = (from.byte()?, from.byte()? != 0);
        let at = from.place()?;
        Some(match kind {
            1 => Self::Make { at, whole: flag },
            2 => Self::Remove { at, object: from.key()?, last: flag },
            3 => Self::Rename { from: at, to: from.place()?, object: from.key()? },
            4 => Self::Link { at, object: from.key()? },
            _ => return None,
        })
    }
}

fn put_key(out: &mut Vec<u8>, key: &ObjectKey) {
    let bytes = key.as_bytes();
    out.push(u8::try_from(bytes.len()).unwrap_or(0));
    out.extend_from_slice(bytes);
    out.extend_from_slice(&key.birth().to_le_bytes());
}

fn put_place(out: &mut Vec<u8>, place: &Place<'_>) {
    put_key(out, &place.dir);
    // A name has at most 255 bytes.
    out.push(u8::try_from(place.name.len()).unwrap_or(0));
    out.extend_from_slice(place.name);
}

/// Takes values from the front of bytes that may be anything.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn word32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn word64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn call(&mut self) -> Option<CallId> {
        let client = self.array().map(u128::from_le_bytes)?;
        let (xid, procedure, print) = (self.word32()?, self.word32()?, self.word64()?);
        Some(CallId { client, xid, procedure, print })
    }

    fn time(&mut self) -> Option<Timestamp> {
        let secs = self.array().map(i64::from_le_bytes)?;
        Some(Timestamp { secs, nanos: self.word32()? })
    }

    fn made(&mut self) -> Option<Option<ObjectKey>> {
        if self.byte()? == 0 { Some(None) } else { self.key().map(Some) }
    }

    fn key(&mut self) -> Option<ObjectKey> {
        let len = usize::from(self.byte()?);
        let bytes = self.take(len).filter(|_| len <= OBJECT_KEY_BYTES_MAX)?;
        Some(ObjectKey::new(bytes).ok()?.born(self.word32()?))
    }

    fn place(&mut self) -> Option<Place<'a>> {
        let dir = self.key()?;
        let len = usize::from(self.byte()?);
        Some(Place { dir, name: self.take(len)? })
    }
}

/// A number for the file that a log is: a copy of it is another file, and says nothing of the
/// objects that are where the copy is.
fn identity(file: &ObjectKey) -> u64 {
    checksum(file.birth().into(), 1, file.as_bytes())
}

/// Of `bytes` at a place in a generation: each word is folded in by a product, of which every bit
/// of both factors counts.
fn checksum(generation: u64, place: usize, bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let halves = (product as u64, (product >> 64) as u64);
        halves.0 ^ halves.1
    };
    let mut sum = fold(generation ^ ODD, ODD ^ (place as u64) << 32 ^ bytes.len() as u64);
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    for (at, word) in words.iter().chain([&last]).enumerate() {
        sum = fold(sum ^ u64::from_le_bytes(*word), ODD ^ (at as u64) << 1);
    }
    sum
}

#[cfg(test)]
mod tests;
