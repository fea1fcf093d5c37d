//! Reading XDR from a borrowed slice.

use super::error::XdrError;
use super::padding;

/// A cursor over XDR input. Every method takes its bytes from the front or fails without
/// allocating; after a failure the position is unspecified.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front of `input`.
    #[inline]
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    /// The bytes not read yet.
    #[inline]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `N` bytes as they are, without padding.
    ///
    /// # Errors
    /// [`XdrError::Truncated`].
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], XdrError> {
        let (head, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(XdrError::Truncated { needed: N, left: self.rest.len() })?;
        self.rest = rest;
        Ok(head)
    }

    /// The next `len` bytes as they are, without padding.
    ///
    /// # Errors
    /// [`XdrError::Truncated`].
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], XdrError> {
        let (head, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(XdrError::Truncated { needed: len, left: self.rest.len() })?;
        self.rest = rest;
        Ok(head)
    }

    /// An unsigned integer (RFC 4506 §4.2).
    ///
    /// # Errors
    /// [`XdrError::Truncated`].
    #[inline]
    pub fn u32(&mut self) -> Result<u32, XdrError> {
        self.array().copied().map(u32::from_be_bytes)
    }

    /// An unsigned hyper integer (RFC 4506 §4.5).
    ///
    /// # Errors
    /// [`XdrError::Truncated`].
    #[inline]
    pub fn u64(&mut self) -> Result<u64, XdrError> {
        self.array().copied().map(u64::from_be_bytes)
    }

    /// A boolean (RFC 4506 §4.4).
    ///
    /// # Errors
    /// [`XdrError::BadDiscriminant`] for anything but 0 and 1; [`XdrError::Truncated`].
    #[inline]
    pub fn bool(&mut self) -> Result<bool, XdrError> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(XdrError::BadDiscriminant { what: "bool", value }),
        }
    }

    /// Variable-length opaque data or a string of at most `max` bytes, called `what` in the error
    /// (RFC 4506 §4.10, §4.11).
    ///
    /// # Errors
    /// [`XdrError::TooLong`] above `max`; [`XdrError::Truncated`] if data or padding is missing.
    #[inline]
    pub fn opaque(&mut self, what: &'static str, max: usize) -> Result<&'a [u8], XdrError> {
        let len = self.u32()? as usize;
        if len > max {
            return Err(XdrError::TooLong { what, len, max });
        }
        let data = self.bytes(len)?;
        self.bytes(padding(len))?;
        Ok(data)
    }

    /// The element count of a variable-length array (RFC 4506 §4.13) of at most `max` elements.
    ///
    /// # Errors
    /// [`XdrError::TooLong`] above `max`; [`XdrError::Truncated`].
    #[inline]
    pub fn count(&mut self, what: &'static str, max: usize) -> Result<usize, XdrError> {
        let len = self.u32()? as usize;
        if len > max {
            return Err(XdrError::TooLong { what, len, max });
        }
        Ok(len)
    }

    /// Ends reading where nothing may follow.
    ///
    /// # Errors
    /// [`XdrError::Trailing`] if something does.
    pub const fn finish(self) -> Result<(), XdrError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(XdrError::Trailing { left }),
        }
    }
}
