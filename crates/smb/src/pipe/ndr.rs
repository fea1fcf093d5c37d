//! The transfer syntax NDR (C706 §14), as far as the operations need it. Input and output begin at
//! the beginning of their alignment.

use super::rpc::Fault;
use crate::le::{Reader, align, length, put};
use crate::utf16::put_utf16;
use alloc::string::String;
use alloc::vec::Vec;

/// The input of a call.
pub(super) struct Input<'a> {
    whole: usize,
    reader: Reader<'a>,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { whole: bytes.len(), reader: Reader::new(bytes) }
    }

    /// An aligned number.
    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        let at = self.whole.saturating_sub(self.reader.rest().len());
        let padding = at.next_multiple_of(4).saturating_sub(at);
        self.reader.bytes(padding)?;
        Ok(self.reader.u32()?)
    }

    /// Is there something behind a pointer?
    pub(super) fn pointer(&mut self) -> Result<bool, Fault> {
        Ok(self.u32()? != 0)
    }

    /// A string of UTF-16 with its end (C706 §14.3.4.2), without it.
    pub(super) fn string(&mut self) -> Result<String, Fault> {
        let (max, offset, actual) = (self.u32()?, self.u32()?, self.u32()?);
        if offset != 0 || actual > max {
            return Err(Fault::BAD_INPUT);
        }
        let bytes = self.reader.bytes_u32(actual.checked_mul(2).ok_or(Fault::BAD_INPUT)?)?;
        let (units, _) = bytes.as_chunks::<2>();
        let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
        let letters = char::decode_utf16(units.take_while(|unit| *unit != 0));
        Ok(letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
    }

    /// Passes over a pointer to a string: the name of the server that is called.
    pub(super) fn server_name(&mut self) -> Result<(), Fault> {
        if self.pointer()? {
            self.string()?;
        }
        Ok(())
    }
}

/// The output of a call.
#[derive(Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    pointers: u32,
}

/// The first number of a referent. Each referent has a number of its own, which is not 0
/// (C706 §14.3.10).
const FIRST_POINTER: u32 = 0x0002_0000;

impl Output {
    pub(super) fn u32(&mut self, value: u32) {
        align(&mut self.bytes, 0, 4);
        put!(self.bytes; value);
    }

    /// A pointer to what follows later.
    pub(super) fn pointer(&mut self) {
        self.u32(FIRST_POINTER.saturating_add(self.pointers.saturating_mul(4)));
        self.pointers = self.pointers.saturating_add(1);
    }

    /// A pointer to nothing.
    pub(super) fn null(&mut self) {
        self.u32(0);
    }

    /// A string of UTF-16, with its end.
    pub(super) fn string(&mut self, text: &str) {
        let units = length::<u32>(text.encode_utf16().count().saturating_add(1));
        self.u32(units);
        self.u32(0);
        self.u32(units);
        put_utf16(&mut self.bytes, text);
        put!(self.bytes; 0u16);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Results of operations (MS-ERREF §2.2).
pub(super) mod status {
    /// ERROR_SUCCESS.
    pub(in crate::pipe) const SUCCESS: u32 = 0;
    /// ERROR_INVALID_LEVEL.
    pub(in crate::pipe) const INVALID_LEVEL: u32 = 124;
    /// ERROR_MORE_DATA.
    pub(in crate::pipe) const MORE_DATA: u32 = 234;
    /// NERR_NetNameNotFound.
    pub(in crate::pipe) const SHARE_NOT_FOUND: u32 = 2310;
}

/// PLATFORM_ID_NT.
pub(super) const PLATFORM: u32 = 500;
/// The version of Windows that clients take this for: that of the dialect, 10.0.
pub(super) const VERSION: [u32; 2] = [10, 0];
