//! The list of entries in READDIR and READDIRPLUS results (`dirlist3`, `dirlistplus3`).

use super::attributes::Fattr3;
use super::status::Status;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError};
use core::fmt;
use core::marker::PhantomData;

/// A list of entries of type `E`, still in its wire form but proved well formed.
#[derive(Clone, Copy)]
pub struct Entries<'a, E> {
    /// Each entry with the flag in front of it, without the flag that ends the list.
    list: &'a [u8],
    entry: PhantomData<fn() -> E>,
}

impl<'a, E: Decode<'a>> Entries<'a, E> {
    /// The entries in their order.
    pub fn iter(&self) -> impl Iterator<Item = E> + use<'a, E> {
        let mut input = Reader::new(self.list);
        core::iter::from_fn(move || Option::<E>::decode(&mut input).ok().flatten())
    }
}

impl<'a, E: Decode<'a>> Decode<'a> for Entries<'a, E> {
    fn decode(input: &mut Reader<'a>) -> Result<Self, XdrError> {
        let start = input.rest();
        loop {
            let bytes = start.len().saturating_sub(input.rest().len());
            if Option::<E>::decode(input)?.is_none() {
                let list = start.get(..bytes).unwrap_or(&[]);
                return Ok(Self { list, entry: PhantomData });
            }
        }
    }
}

impl<E> Encode for Entries<'_, E> {
    fn encode(&self, out: &mut Writer) {
        out.bytes(self.list);
        out.bool(false);
    }
}

impl<E> PartialEq for Entries<'_, E> {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl<E> Eq for Entries<'_, E> {}

impl<'a, E: Decode<'a> + fmt::Debug> fmt::Debug for Entries<'a, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Flag that ends the list, and the end-of-directory flag.
const TAIL_BYTES: usize = 8;

/// Writes a successful READDIR or READDIRPLUS result entry by entry, within the size the caller
/// allows.
#[derive(Debug)]
pub struct ListWriter<'w> {
    out: &'w mut Writer,
    /// Where the last entry must end at the latest.
    end: usize,
}

impl<'w> ListWriter<'w> {
    /// Starts the result: status, the directory's attributes, the cookie verifier. `bytes_max` is
    /// the size allowed for all that follows the status (RFC 1813 §3.3.16 `count`, §3.3.17
    /// `maxcount`).
    pub fn begin(
        out: &'w mut Writer,
        dir_attributes: Option<Fattr3>,
        cookie_verifier: [u8; 8],
        bytes_max: usize,
    ) -> Self {
        Status::OK.encode(out);
        let end = out.position().saturating_add(bytes_max).saturating_sub(TAIL_BYTES);
        dir_attributes.encode(out);
        cookie_verifier.encode(out);
        Self { out, end }
    }

    /// Appends `entry` if it fits, and says whether it did. After a `false` call
    /// [`ListWriter::finish`]: entries may not be left out.
    #[must_use = "an entry that did not fit ends the list"]
    pub fn push(&mut self, entry: &impl Encode) -> bool {
        let start = self.out.position();
        self.out.bool(true);
        entry.encode(self.out);
        let fits = self.out.position() <= self.end;
        if !fits {
            self.out.truncate(start);
        }
        fits
    }

    /// Ends the list. `eof`: was the last entry the directory's last?
    pub fn finish(self, eof: bool) {
        self.out.bool(false);
        self.out.bool(eof);
    }
}
