//! Linked lists, which XDR writes as optional data that ends in the next optional data
//! (RFC 4506 §4.19).

use super::error::XdrError;
use super::message::{Decode, Encode};
use super::reader::Reader;
use super::writer::Writer;
use core::fmt;
use core::marker::PhantomData;

/// A list of elements of type `E`, still in its wire form but proved well formed.
#[derive(Clone, Copy)]
pub struct List<'a, E> {
    /// Each element with the flag in front of it, without the flag that ends the list.
    list: &'a [u8],
    element: PhantomData<fn() -> E>,
}

impl<'a, E: Decode<'a>> List<'a, E> {
    /// The elements in their order.
    pub fn iter(&self) -> impl Iterator<Item = E> + use<'a, E> {
        let mut input = Reader::new(self.list);
        core::iter::from_fn(move || Option::<E>::decode(&mut input).ok().flatten())
    }
}

impl<'a, E: Decode<'a>> Decode<'a> for List<'a, E> {
    fn decode(input: &mut Reader<'a>) -> Result<Self, XdrError> {
        let start = input.rest();
        loop {
            let bytes = start.len().saturating_sub(input.rest().len());
            if Option::<E>::decode(input)?.is_none() {
                let list = start.get(..bytes).unwrap_or(&[]);
                return Ok(Self { list, element: PhantomData });
            }
        }
    }
}

impl<E> Encode for List<'_, E> {
    fn encode(&self, out: &mut Writer) {
        out.bytes(self.list);
        out.bool(false);
    }
}

impl<E> PartialEq for List<'_, E> {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl<E> Eq for List<'_, E> {}

impl<'a, E: Decode<'a> + fmt::Debug> fmt::Debug for List<'a, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
