//! The shape all results share.

use super::status::Status;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError};

/// The result of a procedure: a union of what success gives (`…3resok`) and what failure gives
/// (`…3resfail`), chosen by the status (RFC 1813 §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Res<O, F> {
    /// NFS3_OK and what comes with it.
    Ok(O),
    /// Another status, never [`Status::OK`], and what comes with that.
    Fail(Status, F),
}

impl<O, F> Res<O, F> {
    /// The status.
    #[inline]
    pub const fn status(&self) -> Status {
        match self {
            Self::Ok(_) => Status::OK,
            Self::Fail(status, _) => *status,
        }
    }
}

impl<'a, O: Decode<'a>, F: Decode<'a>> Decode<'a> for Res<O, F> {
    #[inline]
    fn decode(input: &mut Reader<'a>) -> Result<Self, XdrError> {
        match Status::decode(input)? {
            Status::OK => O::decode(input).map(Self::Ok),
            status => F::decode(input).map(|fail| Self::Fail(status, fail)),
        }
    }
}

impl<O: Encode, F: Encode> Encode for Res<O, F> {
    #[inline]
    fn encode(&self, out: &mut Writer) {
        self.status().encode(out);
        match self {
            Self::Ok(ok) => ok.encode(out),
            Self::Fail(_, fail) => fail.encode(out),
        }
    }
}
